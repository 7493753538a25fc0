"""What `make train` trains, how, and how each model is judged."""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

import _style
import digits
import seq2seq
import stopping
from checkpoints import by_steps
from reader import (
    DEEP_STEM,
    STRONGER,
    FreshNumbers,
    Recipe,
    StemReader,
    Training,
    distort,
    generate,
    numbers_read,
)


class Job(NamedTuple):
    """A model that is trained, and how it is judged."""

    training: Callable  # device -> Training, or another that `run` knows, with a model and a recipe
    score: Callable  # model -> accuracy on validation data, %
    test: Callable  # model -> {what: accuracy with its interval}, reported and not chosen by
    run: Callable = by_steps  # name, training, progress -> {which: model}, seconds, losses


def interval(right, total):
    """Accuracy in % and its 95 % Wilson interval, of right among total."""
    exact, low, high = _style.wilson(right, total)
    return {"right": right, "of": total, "exact": exact, "interval": [low, high]}


# The reader of three digits

READER_RECIPE = Recipe(steps=12_500, decay=0.998)


def reader_training(device):
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(READER_RECIPE.seed)
    model = StemReader(DEEP_STEM, width=88).to(device)
    fresh = FreshNumbers(*training_digits, partial(distort, **STRONGER))
    return Training(model, fresh, READER_RECIPE)


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


# The copiers of lessons 06 and 07: a minute each, so without checkpoints, and always on the CPU


class CopierRecipe(NamedTuple):
    """How a copier is trained: as its lesson does."""

    constructor: str  # of `seq2seq`
    cell: str
    hidden_size: int = 64
    steps: int = 2_000
    seed: int = 0


class CopierTraining(NamedTuple):
    """A copier and how it is to be trained."""

    model: seq2seq.Seq2Seq
    recipe: CopierRecipe


def at_once(name, training, progress):
    """Train from beginning to end; returns what `by_steps` returns."""
    model, recipe = training
    start = time.monotonic()
    batches = seq2seq.copy_batches(recipe.seed)
    losses = seq2seq.train(
        model, progress.track(batches, recipe.steps, description=name), recipe.steps
    )
    return {"last": model}, time.monotonic() - start, losses


def copier_score(model):
    strings = seq2seq.digit_strings(1_000, 1, seq2seq.LONGEST, torch.Generator().manual_seed(3))
    written = seq2seq.generate(model, strings, limit=seq2seq.LONGEST + 1)
    return 100 * seq2seq.exact_sequence(written.tokens, strings).float().mean().item()


def copier_test(model):
    copied = {n: seq2seq.measure_copying(model, n).exact for n in (10, 15, 20)}
    return {f"{n} digits": interval(exact.sum().item(), len(exact)) for n, exact in copied.items()}


def copier_job(constructor, cell):
    recipe = CopierRecipe(constructor, cell)

    def training(_device):
        build = getattr(seq2seq, recipe.constructor)
        return CopierTraining(build(recipe.hidden_size, recipe.seed, recipe.cell), recipe)

    return Job(training, copier_score, copier_test, at_once)


JOBS = {
    "reader": Job(reader_training, reader_score, reader_test),
    "reader-variable": Job(variable_training, variable_score, variable_test),
    "copier-gru": copier_job("copier", "GRU"),
    "copier-gru-attention": copier_job("attention_copier", "GRU"),
    "copier-lstm": copier_job("copier", "LSTM"),
    "copier-rnn": copier_job("copier", "RNN"),
}
