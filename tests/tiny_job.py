"""A training of less than a second in place of the project's."""

import time
from pathlib import Path

import numpy as np
import torch

from reader import FreshNumbers, Recipe, StemReader, Training

RECIPE = Recipe(steps=12, batch_size=8)
SLOW, CHECKPOINT = Path("slow"), Path("_build/train/tiny.pt")


class Numbers(FreshNumbers):
    """Numbers of noise; while there is a file `slow`, none after the first checkpoint."""

    def __call__(self, n, generator):
        while SLOW.exists() and CHECKPOINT.exists():
            time.sleep(0.05)
        return super().__call__(n, generator)


def training(device, recipe=RECIPE, width=16):
    noise = np.random.default_rng(0)
    images = noise.integers(0, 256, (40, 28, 28), np.uint8)
    labels = noise.integers(0, 10, 40, np.uint8)
    torch.manual_seed(recipe.seed)
    model = StemReader(layers=((4, 5, 4), (8, 3, 2)), width=width, heads=2).to(device)
    return Training(model, Numbers(images, labels), recipe)


def score(model):
    return 50.0


def test(model):
    return {"8 numbers": {"right": 4, "of": 8, "exact": 50.0, "interval": [21.5, 78.5]}}
