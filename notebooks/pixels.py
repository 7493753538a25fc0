"""Exported by `make export` from the lessons that teach it; edit them, not this file.

09_without_the_recurrence.ipynb
"""

import torch
import torch.nn.functional as F
from torch import nn

import digits
from reader import END as NUMBER_END
from reader import Reader, Recipe, Training
from reader import generate as read_numbers
from reader import teacher_forcing as ask_for_digits

SMALL_READER = {
    "image_size": (14, 70),
    "width": 64,
    "layers": 1,
    "max_tokens": 6,
    "norm_first": True,
    "position_std": 0.5,
}


class MeanReader(Reader):
    """A `Reader` whose decoder gets the mean of the patch vectors and nothing else."""

    def __init__(self, **shape):
        super().__init__(**shape)
        self.encoder = nn.Sequential(self.encoder, Mean())


class Mean(nn.Module):
    """Memory (B, P, width) -> its mean as a memory of one vector (B, 1, width)."""

    def forward(self, memory):
        return memory.mean(dim=1, keepdim=True)


class LastStateReader(Reader):
    """A `Reader` whose decoder gets the last state of a GRU over the columns of patches."""

    def __init__(self, **shape):
        super().__init__(**shape)
        rows = shape["image_size"][0] // self.encoder.patch
        self.encoder = nn.Sequential(self.encoder, LastState(rows, shape["width"]))


class LastState(nn.Module):
    """Memory (B, P, width) in rows of patches -> the last of a GRU's states (B, 1, width)."""

    def __init__(self, rows, width):
        super().__init__()
        self.rows = rows
        self.rnn = nn.GRU(rows * width, width, batch_first=True)

    def forward(self, memory):
        columns = memory.unflatten(1, (self.rows, -1)).transpose(1, 2).flatten(2)
        return self.rnn(columns)[1].transpose(0, 1)


class ShortNumbers:
    """Batches of numbers of one to five digits at half size, side by side from the left edge.

    images (N, 28, 28) and labels (N,), uint8, as `digits.load` returns them. Labels are filled up
    with END behind the last digit.
    """

    def __init__(self, images, labels):
        pixels = torch.from_numpy(images).float() / 255
        self.images, self.labels = F.avg_pool2d(pixels, 2), torch.from_numpy(labels).long()

    def draw(self, lengths, generator):
        """Images (n, 14, 70) and labels (n, 5) of numbers with these lengths (n,)."""
        picks = torch.randint(len(self.images), (len(lengths), 5), generator=generator)
        shown = torch.arange(5) < lengths[:, None]
        cells = self.images[picks] * shown[..., None, None]  # (n, 5, 14, 14)
        return cells.transpose(1, 2).flatten(2), self.labels[picks].where(shown, NUMBER_END)

    def __call__(self, n, generator):
        """Images (n, 14, 70), and the decoder's inputs and targets, both (n, 6)."""
        lengths = torch.randint(1, 6, (n,), generator=generator)
        images, labels = self.draw(lengths, generator)
        return images, *ask_for_digits(labels)


PIXEL_STEPS = 500


def trained(kind, seed):
    """A trained small reader of this class, and its mean losses over each tenth of the steps."""
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(seed)
    model = kind(**SMALL_READER)
    recipe = Recipe(PIXEL_STEPS, batch_size=32, learning_rate=3e-3, seed=seed)
    training = Training(model, ShortNumbers(*training_digits), recipe)
    losses = [training.step() for _ in range(PIXEL_STEPS)]
    tenth = PIXEL_STEPS // 10
    return model, [sum(losses[i : i + tenth]) / tenth for i in range(0, PIXEL_STEPS, tenth)]


def read_by_length(model, images, labels, count=500):
    """How many of `count` numbers of one digit, of two, to five, are read without a fault, in %.

    images and labels are the digits that they are composed of; the numbers are the same at every
    call.
    """
    numbers, shares = ShortNumbers(images, labels), []
    for length in range(1, 6):
        generator = torch.Generator().manual_seed(length)
        shown, asked = numbers.draw(torch.full((count,), length), generator)
        targets = ask_for_digits(asked)[1]
        right = (read_numbers(model, shown).tokens == targets).all(dim=1)
        shares.append(100 * right.float().mean().item())
    return shares
