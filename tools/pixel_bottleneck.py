"""The runs behind lesson 09's last section: a reader of numbers through one vector."""

import torch

import digits
import pixels
import reader

LONGER_STEPS = 2000


def read_through(memory, seed):
    """Train a small reader; its losses, and the numbers read without a fault by length."""
    network, losses = pixels.trained(getattr(pixels, memory), seed)
    _, validation_digits = digits.split(digits.load())
    return {"losses": losses, "exact": pixels.read_by_length(network, *validation_digits)}


def read_through_for_longer(memory, seed):
    """The same with four times the training."""
    training_digits, validation_digits = digits.split(digits.load())
    torch.manual_seed(seed)
    network = getattr(pixels, memory)(**pixels.SMALL_READER)
    recipe = reader.Recipe(LONGER_STEPS, batch_size=32, learning_rate=3e-3, seed=seed)
    training = reader.Training(network, pixels.ShortNumbers(*training_digits), recipe)
    while training.done < LONGER_STEPS:
        training.step()
    return {"exact": pixels.read_by_length(network, *validation_digits)}
