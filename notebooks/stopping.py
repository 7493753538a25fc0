"""Exported by `make export` from the lessons that teach it; edit them, not this file.

05_knowing_when_to_stop.ipynb
"""

import torch
import torch.nn.functional as F

from digits import PAD, scatter
from reader import END, START, Recipe, StemReader


def teacher_forcing(labels):
    """Labels (B, L), padded -> the decoder's inputs and its targets, both (B, L + 1).

    Inputs: START, then the digits. Targets: the digits, then END. PAD where nothing is asked.
    """
    lengths = (labels != PAD).sum(dim=1, keepdim=True)
    inputs = F.pad(labels.where(labels != PAD, END), (1, 0), value=START)
    return inputs, F.pad(labels, (0, 1), value=PAD).scatter(1, lengths, END)


def sinusoids(n, width):
    """Positions 0 to n - 1 as sines and cosines of falling frequency (n, width)."""
    angle = torch.arange(n)[:, None] * 100 ** (-torch.arange(0, width, 2) / width)
    return 0.7 * torch.cat([angle.sin(), angle.cos()], dim=1)


def build(canvas=140, tokens=8, width=96):
    """A `StemReader` for images of 28 x canvas pixels, its positions fixed sinusoids."""
    reader = StemReader(image_size=(28, canvas), width=width, max_tokens=tokens)
    stem = reader.encoder[0]
    rows, columns = stem.grid
    row = sinusoids(rows, width // 2)[:, None].expand(rows, columns, -1)
    column = sinusoids(columns, width // 2)[None].expand(rows, columns, -1)
    image = torch.cat([row, column], dim=2).flatten(0, 1)  # (P, width)
    for part, table in ((stem, image), (reader.decoder, sinusoids(tokens, width))):
        part.position = torch.nn.Parameter(table, requires_grad=False)
    return reader


class ScatteredNumbers:
    """Batches of numbers of one to five digits that are scattered when they are asked for.

    images (N, 28, 28) and labels (N,), uint8, as `digits.load` returns them.
    """

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __call__(self, n, generator):
        """Images (n, 28, 140), and the decoder's inputs and targets, both (n, 6)."""
        picks = torch.randint(len(self.images), (5 * n,), generator=generator).numpy()
        seed = torch.randint(2**31, (), generator=generator).item()
        numbers = scatter(self.images[picks], self.labels[picks], n, seed)
        inputs, targets = teacher_forcing(numbers.labels)
        return numbers.images, inputs, targets


RECIPE = Recipe(steps=4_000)


def wanted(labels, limit=8):
    """What a flawless reading of labels (B, L) is: the digits, then END to the limit (B, limit)."""
    return F.pad(labels.where(labels != PAD, END), (0, limit - labels.shape[1]), value=END)


def judge(reading, numbers):
    """Which numbers were read without a fault, and which have the right length: two (B,)."""
    exact = (reading.tokens == wanted(numbers.labels)).all(dim=1)
    return exact, reading.ended & (reading.lengths == numbers.lengths + 1)
