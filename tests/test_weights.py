"""Trained weights: a file is loaded whole into the model it was made of, or not at all."""

import copy
import json
import re

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import weights

MADE = {"recipe": {"steps": 3}, "validation": 98.5}


@pytest.fixture
def model():
    torch.manual_seed(1)
    return nn.Linear(3, 2)


@pytest.fixture
def trained():
    """{name: tensor} of a model like the one above, with other weights."""
    torch.manual_seed(2)
    return nn.Linear(3, 2).state_dict()


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    return tmp_path / "small.safetensors"


@pytest.fixture
def stored(path, trained):
    save_file(trained, path, {"made": json.dumps(MADE)})
    return path


@pytest.mark.usefixtures("stored")
def test_trained_weights_are_put_into_the_model(model, trained):
    weights.load("small", model)
    assert all(torch.equal(tensor, trained[key]) for key, tensor in model.state_dict().items())


@pytest.mark.usefixtures("stored")
def test_loading_tells_how_they_were_made(model):
    assert weights.load("small", model) == MADE


def test_a_file_can_be_read_without_a_model(stored, trained):
    tensors, made = weights.read(stored)
    assert made == MADE
    assert tensors.keys() == trained.keys()


def absent(path, trained):
    pass


def truncated(path, trained):
    save_file(trained, path, {"made": json.dumps(MADE)})
    path.write_bytes(path.read_bytes()[:-4])


def foreign(path, trained):
    path.write_bytes(b"PK\x03\x04 something else altogether")


def empty(path, trained):
    path.touch()


def without_metadata(path, trained):
    save_file(trained, path)


def with_other_metadata(path, trained):
    save_file(trained, path, {"format": "pt"})


def with_garbled_metadata(path, trained):
    save_file(trained, path, {"made": "{"})


def without_a_key(path, trained):
    save_file({"weight": trained["weight"]}, path, {"made": "{}"})


def with_a_foreign_key(path, trained):
    save_file(trained | {"extra": torch.ones(1)}, path, {"made": "{}"})


def of_another_shape(path, trained):
    save_file(trained | {"weight": torch.ones(2, 4)}, path, {"made": "{}"})


def of_another_model(path, trained):
    save_file({"a": torch.ones(1), "weight": torch.ones(2, 4)}, path, {"made": "{}"})


FAULTS = {
    absent: "is not there",
    truncated: "is truncated or no safetensors file",
    foreign: "is truncated or no safetensors file",
    empty: "is truncated or no safetensors file",
    without_metadata: "does not say how it was made",
    with_other_metadata: "does not say how it was made",
    with_garbled_metadata: "does not say how it was made",
    without_a_key: "holds the weights of another model than this Linear: bias is missing.",
    with_a_foreign_key: "holds the weights of another model than this Linear: extra is foreign.",
    of_another_shape: "weight has shape (2, 4) and not (2, 3).",
    of_another_model: "a is foreign, and 2 more.",
}


each_fault = pytest.mark.parametrize("damage", FAULTS, ids=lambda damage: damage.__name__)


@each_fault
def test_a_faulty_file_is_refused_with_its_name_and_a_remedy(path, trained, model, damage):
    damage(path, trained)
    with pytest.raises(ValueError, match=re.escape(FAULTS[damage])) as refusal:
        weights.load("small", model)
    assert str(refusal.value).startswith(str(path))
    assert str(refusal.value).endswith(weights.REMEDY)


@each_fault
def test_a_faulty_file_leaves_the_model_as_it_was(path, trained, model, damage):
    damage(path, trained)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=r"small\.safetensors"):
        weights.load("small", model)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
