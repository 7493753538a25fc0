"""`make train`: trains what later lessons load, and writes it to data/*.safetensors.

    make train
    make train WHAT=reader
    torchrun --nproc-per-node 2 tools/train.py reader

A run that was stopped goes on from its checkpoint in _build/train/, on the same machine to the
same weights, bit for bit. Under torchrun, processes share each batch.
"""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

import torch
from rich.progress import Progress
from safetensors.torch import save

import _style
import digits
import stopping
import weights
from files import write_atomically
from lessons import BUILD
from made import made
from reader import (
    FreshNumbers,
    Recipe,
    StemReader,
    Training,
    generate,
    numbers_read,
    restore,
    snapshot,
)

CHECKPOINTS = BUILD / "train"
EVERY = 500  # steps from one checkpoint to the next
CURVE = 20  # steps over which a stored loss is the mean


class Job(NamedTuple):
    """A model that is trained step by step, and how it is judged."""

    training: Callable  # device -> Training
    score: Callable  # model -> accuracy on validation data, %
    test: Callable  # model -> {what: accuracy with its interval}, reported and not chosen by


# The reader of three digits

READER = {"layers": ((24, 5, 2), (48, 3, 2), (80, 3, 2))}
READER_RECIPE = Recipe(steps=25_000, decay=0.998)


def reader_training(device):
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(READER_RECIPE.seed)
    model = StemReader(**READER).to(device)
    return Training(model, FreshNumbers(*training_digits, distorted=True), READER_RECIPE)


def reader_score(model):
    _, validation_digits = digits.split(digits.load())
    images, labels = digits.compose(*validation_digits, n=10_000, seed=3)
    return 100 * numbers_read(model, images, labels) / len(images)


def reader_test(model):
    data = digits.load()
    found = {}
    for n, seed in ((2_000, 1), (10_000, 2)):
        right = numbers_read(model, *digits.compose(data.x_test, data.y_test, n, seed))
        found[f"{n} composites"] = interval(right, n)
    return found


# The reader of one to five digits


def variable_training(device):
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(stopping.RECIPE.seed)
    model = stopping.build().to(device)
    return Training(model, stopping.ScatteredNumbers(*training_digits), stopping.RECIPE)


def scattered_read(model, numbers):
    """How many of the `digits.Numbers` are read without a fault, END included."""
    device = next(model.parameters()).device
    reading = generate(model.cpu(), numbers.images)
    model.to(device)
    return stopping.judge(reading, numbers)[0].sum().item()


def variable_score(model):
    _, validation_digits = digits.split(digits.load())
    return scattered_read(model, digits.scatter(*validation_digits, n=3_000, seed=1)) / 30


def variable_test(model):
    data = digits.load()
    right = scattered_read(model, digits.scatter(data.x_test, data.y_test, n=3_000, seed=2))
    return {"3000 scattered numbers": interval(right, 3_000)}


# What all have in common

JOBS = {
    "reader": Job(reader_training, reader_score, reader_test),
    "reader-variable": Job(variable_training, variable_score, variable_test),
}


def interval(right, total):
    """Accuracy in % and its 95 % Wilson interval, of right among total."""
    exact, low, high = _style.wilson(right, total)
    return {"right": right, "of": total, "exact": exact, "interval": [low, high]}


def resume(training, checkpoint):
    """Put the run where its checkpoint is; return the seconds that it took, and its losses.

    Raises ValueError for a checkpoint that cannot be read or is of another recipe.
    """
    if not checkpoint.exists():
        return 0.0, []
    remedy = f"Remove {checkpoint} to begin anew."
    try:
        state = torch.load(checkpoint, weights_only=True)
    except Exception as error:  # torch.load raises many kinds, depending on where the damage is
        raise ValueError(f"the checkpoint cannot be read: {error}. {remedy}") from error
    if state["recipe"] != training.recipe._asdict():
        raise ValueError(f"the checkpoint is of another recipe, {state['recipe']}. {remedy}")
    restore(training, state)
    return state["seconds"], state["losses"]


def save_checkpoint(training, checkpoint, seconds, losses):
    content = io.BytesIO()
    facts = {"recipe": training.recipe._asdict(), "seconds": seconds, "losses": losses}
    torch.save({**facts, **snapshot(training)}, content)
    write_atomically(checkpoint, content.getvalue())


def run(name, training, progress):
    """Train to the end of the recipe, from the checkpoint if there is one.

    Returns the seconds that it took, and the loss of each step.
    """
    checkpoint = CHECKPOINTS / f"{name}.pt"
    steps = training.recipe.steps
    seconds, losses = resume(training, checkpoint)
    start = time.monotonic() - seconds
    line = progress.add_task(name, total=steps, completed=training.done)
    while training.done < steps:
        losses.append(training.step())
        progress.update(line, advance=1, description=f"{name}  loss {losses[-1]:.3f}")
        if training.rank == 0 and (training.done % EVERY == 0 or training.done == steps):
            save_checkpoint(training, checkpoint, time.monotonic() - start, losses)
    return time.monotonic() - start, losses


def refuse_to_lose(path, score, overwrite):
    """Raise ValueError if the file holds a better model than one of this score."""
    if not path.exists() or overwrite:
        return
    stored = weights.read(path)[1]["validation"]
    if stored > score:
        raise ValueError(
            f"{path} holds a better model, {stored:.2f} % on the validation data against "
            f"{score:.2f} %, and was kept. To replace it: `make train OVERWRITE=1`"
        )


def finish(name, job, training, seconds, losses, overwrite):
    """Choose between the last weights and their average, by validation; test; write the file."""
    models = {"last": training.model, "average": training.average.module}
    scores = {kind: job.score(model) for kind, model in models.items()}
    kind = max(scores, key=scores.get)
    path = weights.FOLDER / f"{name}.safetensors"
    refuse_to_lose(path, scores[kind], overwrite)
    facts = {
        "recipe": training.recipe._asdict(),
        "weights": kind,
        "validation": scores[kind],
        "test": job.test(models[kind]),
        "losses": [round(fmean(losses[i : i + CURVE]), 4) for i in range(0, len(losses), CURVE)],
        **made(seconds),
    }
    tensors = {key: value.cpu() for key, value in models[kind].state_dict().items()}
    write_atomically(path, save(tensors, {"made": json.dumps(facts)}))
    (CHECKPOINTS / f"{name}.pt").unlink()
    print(f"wrote {path.name}: {json.dumps(facts)}")


def train(names, device, overwrite):
    with Progress() as progress:
        for name in names:
            training = JOBS[name].training(device)
            seconds, losses = run(name, training, progress)
            if training.rank == 0:
                finish(name, JOBS[name], training, seconds, losses, overwrite)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(JOBS)}; all if none is named")
    parser.add_argument("--device", default="cpu", help="cpu, cuda")
    parser.add_argument("--overwrite", action="store_true", help="replace also a better file")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in JOBS]:
        parser.error(f"no training {unknown[0]!r}; there are {', '.join(JOBS)}")
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no such device here; leave it out for the CPU")
    torch.set_num_threads(1)
    if together := "RANK" in os.environ:  # which torchrun sets
        torch.distributed.init_process_group()
    try:
        train(arguments.names or list(JOBS), arguments.device, arguments.overwrite)
    except KeyboardInterrupt:
        sys.exit(f"Stopped. The same command goes on from the last checkpoint in {CHECKPOINTS}.")
    except ValueError as error:
        sys.exit(str(error))
    finally:
        if together:
            torch.distributed.destroy_process_group()
