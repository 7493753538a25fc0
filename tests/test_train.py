"""`make train`: what it writes and keeps, how it goes on, and the files that it has written."""

import copy
import hashlib
import json
import runpy
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.progress import Progress
from safetensors.torch import save

import checkpoints
import digits
import jobs
import lessons
import tiny_job
import train
import weights
from reader import snapshot

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The tiny training in place of the project's, with folders of its own."""
    monkeypatch.setattr(jobs, "JOBS", {})
    monkeypatch.setattr(train, "JOBS", jobs.JOBS)
    monkeypatch.setattr(checkpoints, "FOLDER", tmp_path / "train")
    monkeypatch.setattr(checkpoints, "EVERY", 5)
    monkeypatch.setattr(weights, "FOLDER", tmp_path / "data")
    monkeypatch.setattr("made.processor", lambda: "A processor")

    def scores(score=50.0, training=tiny_job.training):
        """What the trained model scores, given as a number or as a function of it."""
        judge = score if callable(score) else lambda _: score
        jobs.JOBS["tiny"] = jobs.Job(training, judge, tiny_job.test)

    scores()
    return scores


@pytest.fixture
def path(tiny):
    return weights.FOLDER / "tiny.safetensors"


@pytest.fixture
def checkpoint(tiny):
    return checkpoints.path_of("tiny")


def quietly():
    return Progress(disable=True)


def make(overwrite=False):
    train.train("tiny", "cpu", overwrite, quietly())


def facts(path):
    return weights.read(path)[1]


def interrupted_after(steps, recipe=tiny_job.RECIPE, width=16):
    """Run the tiny training until it is stopped after some steps."""
    training = tiny_job.training("cpu", recipe, width)
    draw = training.draw

    def draw_or_stop(n, generator):
        if training.done == steps:
            raise KeyboardInterrupt
        return draw(n, generator)

    training.draw = draw_or_stop
    with pytest.raises(KeyboardInterrupt):
        checkpoints.by_steps("tiny", training, quietly())


def assert_same(one, other):
    """Both are the same to the bit, whatever they are nested in."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        assert one == other


# Going on


@pytest.mark.usefixtures("tiny")
def test_a_resumed_run_ends_as_an_uninterrupted_one_bit_for_bit():
    whole, resumed = tiny_job.training("cpu"), tiny_job.training("cpu")
    while whole.done < tiny_job.RECIPE.steps:
        whole.step()
    interrupted_after(7)
    checkpoints.by_steps("tiny", resumed, quietly())
    assert_same(snapshot(resumed), snapshot(whole))


@pytest.mark.usefixtures("tiny")
def test_a_resumed_run_goes_on_from_the_last_checkpoint_and_keeps_the_losses_before_it():
    interrupted_after(7)
    training = tiny_job.training("cpu")
    _, losses = checkpoints.resume(training, checkpoints.path_of("tiny"))
    assert training.done == len(losses) == 5


def test_an_interrupted_command_goes_on_and_writes_the_file_of_an_uninterrupted_one(
    path, tiny_project, stop_and_go_on
):
    stopped, said = stop_and_go_on("tools/train.py", "tiny")
    assert "Stopped. The same command goes on from the last checkpoint" in stopped
    assert "wrote tiny.safetensors" in said
    make()
    tensors, made = weights.read(tiny_project / "data" / "tiny.safetensors")
    assert_same(tensors, weights.read(path)[0])
    assert made["losses"] == facts(path)["losses"]


def garbled(checkpoint):
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"no checkpoint")


def truncated(checkpoint):
    interrupted_after(7)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])


def of_something_else(checkpoint):
    checkpoint.parent.mkdir()
    torch.save([1, 2, 3], checkpoint)


def of_another_recipe(checkpoint):
    interrupted_after(7, recipe=tiny_job.RECIPE._replace(seed=9))


def of_another_model(checkpoint):
    interrupted_after(7, width=8)


WRONG = {
    garbled: "cannot be read",
    truncated: "cannot be read",
    of_something_else: "cannot be read",
    of_another_recipe: r"is of another recipe, .*'seed': 9",
    of_another_model: "is of another model",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_checkpoint_is_refused_with_a_remedy_and_left_there(checkpoint, wrong):
    wrong(checkpoint)
    content = checkpoint.read_bytes()
    with pytest.raises(ValueError, match=WRONG[wrong]) as refusal:
        make()
    assert str(refusal.value).startswith(str(checkpoint))
    assert "emove it to begin anew" in str(refusal.value)
    assert checkpoint.read_bytes() == content


# The file


def test_a_finished_training_leaves_its_file_and_no_checkpoint(path, checkpoint):
    make()
    model = tiny_job.training("cpu").model
    weights.load("tiny", model)
    assert [file.name for file in path.parent.iterdir()] == ["tiny.safetensors"]
    assert not checkpoint.exists()


def test_the_file_says_how_it_was_made_and_how_good_it_is(path):
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    make()
    made = facts(path)
    assert made["recipe"] == tiny_job.RECIPE._asdict()
    assert made["recipe"]["seed"] == 0
    assert made["validation"] == 50.0
    assert made["test"]["8 numbers"]["exact"] == 50.0
    assert made["test"]["8 numbers"]["interval"] == [21.5, 78.5]
    assert made["date"] >= today
    assert made["machine"] == "A processor"
    assert {"torch", "numpy", "python", "seconds"} <= made.keys()


def test_an_accuracy_comes_with_its_wilson_interval():
    found = jobs.interval(1684, 2000)
    assert found == {
        "right": 1684,
        "of": 2000,
        "exact": 84.2,
        "interval": pytest.approx([82.5, 85.7], abs=0.1),
    }


@pytest.mark.parametrize("best", [0, 1], ids=["last", "average"])
def test_of_the_last_weights_and_their_average_those_are_kept_that_score_better(tiny, path, best):
    judged = []

    def score(model):
        judged.append(copy.deepcopy(model.state_dict()))
        return 60.0 if len(judged) == best + 1 else 50.0

    tiny(score)
    make()
    assert facts(path)["weights"] == ["last", "average"][best]
    assert_same(weights.read(path)[0], judged[best])


def another(path, validation=80.0):
    """A file of the same model that another recipe has made; its content."""
    recipe = tiny_job.RECIPE._replace(steps=3)._asdict()
    made = {"recipe": recipe, "validation": validation}
    path.parent.mkdir()
    path.write_bytes(save(tiny_job.training("cpu").model.state_dict(), {"made": json.dumps(made)}))
    return path.read_bytes()


def test_a_better_file_is_kept_and_the_message_says_how_to_replace_it(path):
    better = another(path)
    with pytest.raises(
        ValueError, match=r"80\.00 % on the validation data against 50\.00 %, and was kept"
    ) as said:
        make()
    assert "`make train WHAT=tiny OVERWRITE=1`" in str(said.value)
    assert path.read_bytes() == better


def test_a_better_file_is_replaced_when_asked_without_training_again(tiny, path):
    another(path)
    with pytest.raises(ValueError, match="was kept"):
        make()

    def trained(device):
        training = tiny_job.training(device)
        training.step = None
        return training

    tiny(training=trained)
    make(overwrite=True)
    assert facts(path)["validation"] == 50.0


@pytest.mark.parametrize("validation", [49.0, 50.0], ids=["worse", "as good"])
def test_a_file_that_is_no_better_is_replaced(path, validation):
    another(path, validation)
    make()
    assert facts(path)["recipe"] == tiny_job.RECIPE._asdict()


def untrainable(device):
    training = tiny_job.training(device)
    training.step = None
    return training


def test_what_its_recipe_has_made_is_not_trained_again(tiny, path, capsys):
    make()
    content = path.read_bytes()
    tiny(training=untrainable)
    make()
    assert path.read_bytes() == content
    assert "tiny is there. To train it again: `make train WHAT=tiny OVERWRITE=1`" in (
        capsys.readouterr().out
    )


def test_what_its_recipe_has_made_is_trained_again_when_asked(tiny, path):
    make()
    tiny(70.0)
    make(overwrite=True)
    assert facts(path)["validation"] == 70.0


def test_a_model_of_other_shapes_is_trained_again(tiny, path):
    tiny(training=lambda device: tiny_job.training(device, width=8))
    make()
    tiny()
    make()
    weights.load("tiny", tiny_job.training("cpu").model)


def test_a_damaged_file_is_refused_before_anything_is_trained(tiny, path):
    path.parent.mkdir()
    path.write_bytes(b"no weights")
    tiny(training=untrainable)
    with pytest.raises(ValueError, match="make train OVERWRITE=1"):
        make()
    assert path.read_bytes() == b"no weights"


def test_a_write_that_fails_leaves_the_earlier_file_and_the_checkpoint(
    path, checkpoint, monkeypatch
):
    earlier = another(path, 10.0)
    replace = Path.replace

    def fails(self, target):
        if target == path:
            raise OSError("No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        make()
    assert path.read_bytes() == earlier
    assert [file.name for file in path.parent.iterdir()] == ["tiny.safetensors"]
    assert checkpoint.exists()


# The command


@pytest.fixture
def command(tiny, monkeypatch, capsys):
    """Give the command some arguments that it refuses; return what it says."""

    def refused(*arguments):
        monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(lessons.ROOT / "tools" / "train.py"), run_name="__main__")
        assert ended.value.code == 2
        return capsys.readouterr().err

    return refused


def test_a_training_that_is_not_there_is_an_error_that_lists_those_that_are(command):
    assert "no training 'typo'; there are tiny" in command("tiny", "typo")


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a device")
def test_a_device_that_is_not_there_is_refused_before_anything_is_trained(command, checkpoint):
    said = command("tiny", "--device", "cuda")
    assert "PyTorch finds no such device here; leave it out for the CPU" in said
    assert not checkpoint.exists()


# The data


@pytest.fixture(scope="module")
def mnist():
    return digits.load()


def as_bytes(images):
    return {image.tobytes() for image in images}


def test_the_parts_to_train_on_and_to_choose_by_are_together_the_training_digits(mnist):
    (images, labels), (chosen_by, their_labels) = digits.split(mnist)
    assert [*map(len, (images, labels, chosen_by, their_labels))] == [55_000, 55_000, 5_000, 5_000]
    assert (mnist.x_train[:55_000] == images).all()
    assert (mnist.x_train[55_000:] == chosen_by).all()
    assert (mnist.y_train[:55_000] == labels).all()
    assert (mnist.y_train[55_000:] == their_labels).all()


def test_no_test_digit_is_trained_on_or_chosen_by(mnist):
    assert as_bytes(mnist.x_test).isdisjoint(as_bytes(mnist.x_train))


def test_no_digit_is_both_trained_on_and_chosen_by(mnist):
    (images, _), (chosen_by, _) = digits.split(mnist)
    assert as_bytes(images).isdisjoint(as_bytes(chosen_by))


READERS = [name for name in jobs.JOBS if name.startswith("reader")]
each_reader = pytest.mark.parametrize("name", READERS)


@each_reader
def test_a_reader_is_trained_on_the_part_to_train_on_alone(mnist, name):
    (images, labels), _ = digits.split(mnist)
    draw = jobs.JOBS[name].training("cpu").draw
    assert np.array_equal(draw.images, images)
    assert np.array_equal(draw.labels, labels)


@each_reader
def test_a_reader_has_at_most_550_000_parameters(name):
    model = jobs.JOBS[name].training("cpu").model
    assert sum(p.numel() for p in model.parameters()) <= 550_000


@pytest.mark.parametrize(("name", "sees"), [("reader-small", 0), ("reader-small-unmasked", 3)])
def test_the_small_readers_are_trained_with_and_without_a_view_of_the_future(name, sees):
    """At how many of the first three positions the logits move with the last token."""
    model = jobs.JOBS[name].training("cpu").model
    one, other = torch.tensor([[10, 1, 2, 3]]), torch.tensor([[10, 1, 2, 4]])
    image = torch.zeros(1, 14, 42)
    moved = (model(image, one) - model(image, other)).abs().amax(dim=2)[0, :3] > 1e-6
    assert moved.sum() == sees


def test_without_a_mask_the_average_of_the_weights_is_judged_without_one_too():
    average = jobs.JOBS["reader-small-unmasked"].training("cpu").average.module
    (hook,) = average.decoder.blocks[0].self_attention._forward_pre_hooks.values()
    assert hook is jobs.without_mask


def test_the_small_readers_see_half_the_resolution():
    draw = jobs.JOBS["reader-small"].training("cpu").draw
    images, inputs, _ = draw(5, torch.Generator().manual_seed(0))
    assert images.shape == (5, 14, 42)
    assert len(inputs) == 5


# The files in data/

each_job = pytest.mark.parametrize("name", jobs.JOBS)


@each_job
def test_the_weights_load_and_reach_their_stated_accuracy(name):
    job = jobs.JOBS[name]
    model = job.training("cpu").model
    stated = weights.load(name, model)["test"]
    found = job.test(model)
    assert found.keys() == stated.keys()
    for what in stated:
        low, high = stated[what]["interval"]
        assert low <= found[what]["exact"] <= high, what


@each_job
def test_the_weights_are_those_of_their_checksum(name):
    lines = (lessons.ROOT / "tests" / "weights.sha256").read_text("utf-8").splitlines()
    known = {file: checksum for checksum, file in map(str.split, lines)}
    path = weights.FOLDER / f"{name}.safetensors"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found == known[path.name], "cd data && sha256sum *.safetensors > ../tests/weights.sha256"


@each_job
def test_the_weights_are_of_the_recipe_of_today(name):
    made = facts(weights.FOLDER / f"{name}.safetensors")
    assert made["recipe"] == jobs.JOBS[name].training("cpu").recipe._asdict(), "`make train`"


@pytest.mark.parametrize("name", [name for name in jobs.JOBS if name.startswith("copier")])
def test_a_file_of_a_copier_is_small(name):
    assert (weights.FOLDER / f"{name}.safetensors").stat().st_size < 300_000
