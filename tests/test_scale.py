"""Two processes that train together do what one does alone."""

import pytest
import torch

import tiny_job
import weights
from digits import PAD
from reader import END, own_rows
from together import together

pytestmark = pytest.mark.usefixtures("one_thread")


def first_gradients(training):
    training.step()
    return {name: p.grad.clone() for name, p in training.model.named_parameters()}


class OfAnyLength(tiny_job.Numbers):
    """Batches in which every second number ends after one digit."""

    def __call__(self, n, generator):
        images, inputs, targets = super().__call__(n, generator)
        targets[::2, 1], targets[::2, 2:] = END, PAD
        return images, inputs, targets


def trained():
    """The tiny training to its end: gradients of the first step, and all weights at the end."""
    of_any_length = tiny_job.training("cpu")
    of_any_length.draw.__class__ = OfAnyLength
    training = tiny_job.training("cpu")
    gradients = first_gradients(training)
    while training.done < tiny_job.RECIPE.steps:
        training.step()
    return {
        "gradients": gradients,
        "gradients of any length": first_gradients(of_any_length),
        "last": training.model.state_dict(),
        "average": training.average.module.state_dict(),
    }


def process(rank, folder):
    """What torchrun's process of this rank does; the result goes to a file."""
    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    torch.save(trained(), folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What each of two processes has after the same training."""
    folder = tmp_path_factory.mktemp("two")
    torch.multiprocessing.spawn(process, (folder,), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def one(one_thread):
    return trained()


def without_key_biases(weights):
    """Weights but for the biases of keys: a softmax does not see them.

    Their gradients are rounding errors, which Adam brings to the size of a step.
    """
    parts = {}
    for name, tensor in weights.items():
        if name.endswith("in_proj_bias"):
            parts[f"{name} query"], _, parts[f"{name} value"] = tensor.chunk(3)
        else:
            parts[name] = tensor
    return parts


def farthest(one, other):
    """The greatest difference between two dicts of tensors."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


@pytest.mark.parametrize("kind", ["gradients", "gradients of any length"])
def test_the_gradients_of_two_processes_are_those_of_one(one, two, kind):
    assert farthest(two[0][kind], one[kind]) <= 1e-6


def test_a_batch_that_processes_cannot_share_equally_is_refused():
    with pytest.raises(ValueError, match="batches of 8 cannot be shared equally by 3 processes"):
        own_rows([torch.zeros(8, 4)], rank=0, processes=3)


@pytest.mark.parametrize("kind", ["last", "average"])
def test_both_processes_hold_the_same_weights_to_the_bit(two, kind):
    assert farthest(two[0][kind], two[1][kind]) == 0


@pytest.mark.parametrize("kind", ["last", "average"])
def test_two_processes_end_with_nearly_the_weights_of_one(one, two, kind):
    weights = [without_key_biases(result[kind]) for result in (two[0], one)]
    assert farthest(*weights) <= 1e-4  # a step of the training moves a weight by up to 2e-3


def test_a_stopped_run_of_two_processes_goes_on_to_the_weights_of_one_that_was_not(
    two, tiny_project, stop_and_go_on
):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    _, said = stop_and_go_on(*torchrun, "tools/train.py", "tiny")
    assert said.count("wrote tiny.safetensors") == 1
    tensors, made = weights.read(tiny_project / "data" / "tiny.safetensors")
    assert farthest(tensors, two[0][made["weights"]]) == 0


def test_a_process_alone_needs_no_others():
    with together("cpu"):
        assert not torch.distributed.is_initialized()
