"""The runs behind lesson 04: one change after the other, from the article's reader to ours."""

import time

import torch
import torch.nn.functional as F

import digits
import reader

SEEDS = (0, 1, 2)
NUMBERS = 24_000  # seen in training
VALIDATION_NUMBERS = 1_000
CHECKS = 8  # measurements in the course of a run, at equal distances


class Halve(torch.nn.Module):
    """Images (B, height, width) at half the resolution."""

    def forward(self, images):
        return F.avg_pool2d(images[None], 2)[0]


def model(name, position_std, norm_first):
    options = {"position_std": position_std, "norm_first": norm_first}
    match name:
        case "patches of 7":
            return reader.Reader(**options)
        case "half size":
            small = reader.Reader((14, 42), **options)
            small.encoder = torch.nn.Sequential(Halve(), small.encoder)
            return small
        case "stem":
            return reader.StemReader(position_std=position_std)


def ablation(encoder, digits_used, distorted, position_std, norm_first, numbers, seed, **recipe):
    """Train a reader; at equal distances how it reads validation numbers, and the seconds so far.

    Seconds are CPU seconds of training alone. `average` is of the averaged weights at the end.
    """
    (images, labels), validation_digits = digits.split(digits.load())
    validation = digits.compose(*validation_digits, n=VALIDATION_NUMBERS, seed=3)
    change = reader.distort if distorted else None
    draw = reader.FreshNumbers(images[:digits_used], labels[:digits_used], change)
    torch.manual_seed(seed)
    network = model(encoder, position_std, norm_first)
    steps = numbers // recipe["batch_size"]
    training = reader.Training(network, draw, reader.Recipe(steps, seed=seed, **recipe))
    measured = {"numbers": [], "seconds": [], "loss": [], "exact": []}
    seconds = 0.0
    for check in range(1, CHECKS + 1):
        start, losses = time.process_time(), []
        while training.done < check * steps // CHECKS:
            losses.append(training.step())
        seconds += time.process_time() - start
        measured["numbers"].append(training.done * recipe["batch_size"])
        measured["seconds"].append(seconds)
        measured["loss"].append(sum(losses) / len(losses))
        read = reader.numbers_read(network, *validation)
        measured["exact"].append(100 * read / VALIDATION_NUMBERS)
    read = reader.numbers_read(training.average.module, *validation)
    return {**measured, "average": 100 * read / VALIDATION_NUMBERS}


ARTICLE = {
    "encoder": "patches of 7",
    "digits_used": 6_000,
    "distorted": False,
    "position_std": 0.02,
    "norm_first": False,
    "numbers": NUMBERS,
    "batch_size": 128,
    "learning_rate": 1e-3,
    "cosine": False,
    "muon": False,
    "decay": 0.99,
}
# One change after the other; each stays.
CHANGES = [
    {},
    {"digits_used": 55_000},
    {"position_std": 0.5},
    {"norm_first": True},
    {"encoder": "stem"},
    {"learning_rate": 2e-3, "cosine": True},
    {"batch_size": 64},
    {"distorted": True},
    {"numbers": 4 * NUMBERS},
]
# Ours, before the longer training, with one thing otherwise.
ASIDE = [
    {"digits_used": 6_000},
    {"position_std": 0.02},
    {"encoder": "patches of 7"},
    {"encoder": "half size"},
    {"muon": True},
]


def recipes():
    """The runs in the order of the changes; then the last recipe with one thing otherwise."""
    chain = [ARTICLE]
    for change in CHANGES[1:]:
        chain.append({**chain[-1], **change})
    ours = chain[-2]  # before the longer training
    others = [{**ours, **change} for change in ASIDE]
    return [{**recipe, "seed": seed} for recipe in (*chain, *others) for seed in SEEDS]
