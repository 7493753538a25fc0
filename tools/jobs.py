"""What `make train` trains, how, and how each model is judged."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

import _style
import digits
import grammar
import seq2seq
import stopping
from checkpoints import by_steps
from reader import (
    DEEP_STEM,
    STRONGER,
    FreshNumbers,
    Reader,
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


# The small reader of lesson 03, which reads at half the resolution, and one without a causal mask


SMALL_RECIPE = Recipe(steps=2_500)
SMALL_SHAPE = {
    "image_size": (14, 42),
    "width": 64,
    "layers": 1,
    "norm_first": True,
    "position_std": 0.5,
}


def half(images):
    """Half the resolution: (B, 28, 84) -> (B, 14, 42)."""
    return F.avg_pool2d(images[:, None], kernel_size=2)[:, 0]


class HalfNumbers(FreshNumbers):
    """`FreshNumbers` at half the resolution."""

    def __call__(self, n, generator):
        images, inputs, targets = super().__call__(n, generator)
        return half(images), inputs, targets


def small_training(device):
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(SMALL_RECIPE.seed)
    model = Reader(**SMALL_SHAPE).to(device)
    return Training(model, HalfNumbers(*training_digits), SMALL_RECIPE)


def without_mask(module, given, named):
    return given, named | {"attn_mask": None}


def unmasked_training(device):
    training = small_training(device)
    for model in (training.model, training.average.module):
        attention = model.decoder.blocks[0].self_attention
        attention.register_forward_pre_hook(without_mask, with_kwargs=True)
    return training


def small_read(model, images, labels, n, seed):
    """How many of n composites of these digits are read at half the resolution."""
    numbers, asked = digits.compose(images, labels, n, seed)
    return numbers_read(model, half(numbers), asked)


def small_score(model):
    _, validation_digits = digits.split(digits.load())
    return small_read(model, *validation_digits, n=10_000, seed=3) / 100


def small_test(model):
    data = digits.load()
    right = small_read(model, data.x_test, data.y_test, n=2_000, seed=1)
    return {"2000 composites": interval(right, 2_000)}


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


class SentenceTraining(NamedTuple):
    """A copier or a translator, how it is to be trained, and on what."""

    model: seq2seq.Seq2Seq
    recipe: NamedTuple
    batches: Iterator


def at_once(name, training, progress):
    """Train from beginning to end; returns what `by_steps` returns."""
    model, recipe, batches = training
    start = time.monotonic()
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
        model = build(recipe.hidden_size, recipe.seed, recipe.cell)
        return SentenceTraining(model, recipe, seq2seq.copy_batches(recipe.seed))

    return Job(training, copier_score, copier_test, at_once)


# The translator of lesson 08: one of lesson 07's that gets many sentences wrong


class TranslatorRecipe(NamedTuple):
    """How a translator is trained: as in lesson 07."""

    encoder: str = "Encoder"  # of `seq2seq`, as the score
    score: str = "DotScore"
    pairs: int = 20_000
    steps: int = 1_000
    seed: int = 0


def languages(recipe):
    """The training pairs and both vocabularies."""
    corpus = grammar.pairs(recipe.pairs, seed=recipe.seed)
    english = seq2seq.vocabulary(pair.english for pair in corpus)
    return corpus, english, seq2seq.vocabulary(pair.french for pair in corpus)


def translator_training(_device):
    recipe = TranslatorRecipe()
    corpus, *both = languages(recipe)
    parts = getattr(seq2seq, recipe.encoder), getattr(seq2seq, recipe.score)
    model = seq2seq.translator(*both, recipe.seed, *parts)
    batches = seq2seq.translation_batches(*both, corpus, recipe.seed)
    return SentenceTraining(model, recipe, batches)


def translated(model, seed):
    """Which of 1,000 pairs with held-out combinations are translated exactly: (1000,)."""
    _, english, french = languages(TranslatorRecipe())
    pairs = grammar.pairs(1_000, seed=seed, held_out=True)
    source = english.encode([pair.english for pair in pairs])
    labels = french.encode([pair.french for pair in pairs])
    written = seq2seq.generate(model, source, limit=labels.shape[1] + 1)
    return seq2seq.exact_sequence(written.tokens, labels)


def translator_score(model):
    return 100 * translated(model, seed=2).float().mean().item()


def translator_test(model):
    exact = translated(model, seed=1)
    return {"1000 sentences": interval(exact.sum().item(), len(exact))}


JOBS = {
    "reader": Job(reader_training, reader_score, reader_test),
    "reader-small": Job(small_training, small_score, small_test),
    "reader-small-unmasked": Job(unmasked_training, small_score, small_test),
    "reader-variable": Job(variable_training, variable_score, variable_test),
    "copier-gru": copier_job("copier", "GRU"),
    "copier-gru-attention": copier_job("attention_copier", "GRU"),
    "copier-lstm": copier_job("copier", "LSTM"),
    "copier-rnn": copier_job("copier", "RNN"),
    "translator-one-way": Job(translator_training, translator_score, translator_test, at_once),
}
