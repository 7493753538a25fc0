"""MNIST digits, and numbers made from them: three digits side by side, or some scattered.

    from digits import compose, load, scatter

    digits = load("small")
    images, labels = compose(digits.x_train, digits.y_train, n=20_000, seed=0)
    numbers = scatter(digits.x_train, digits.y_train, n=20_000, seed=0)

Written by hand: the lessons use it, none teaches it. data/README.md gives source and licence.
"""

import hashlib
import io
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

FILE = Path(__file__).resolve().parent.parent / "data" / "mnist.npz"
FILE_SHA256 = "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64"
SMALL_TRAIN, SMALL_TEST = 6_000, 2_000
PAD = -100  # F.cross_entropy leaves targets of this value out of the loss
VALIDATION = 5_000  # of the training digits, the last
SIZES = range(20, 37)  # in pixels, to which `scatter` brings a digit's square of 28
INK = 20  # pixels that a digit's ink is wide and high at most, in an image of 28 x 28
SWAY = 2  # pixels by which `scatter` moves a digit up or down at most

HUB_REPO = "roshbeed/ai-residency-blog-data"
# Size: (file in HUB_REPO, revision).
HUB_FILES = {
    "small": ("mnist/mnist-small.npz", "f705fed08827ff6c36e3b5329495c943a5e544e8"),
    "full": ("mnist/mnist-full.npz", "6bbb59474efaf5edfb62408686909305dbd45335"),
}
HUB_REMEDY = 'This repository has its own copy of the digits: load(source="file").'


class Digits(NamedTuple):
    """Images (N, 28, 28), 0 background to 255 ink, and labels (N,), 0 to 9. All uint8."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


class Numbers(NamedTuple):
    """What `scatter` returns: n numbers of up to L digits each."""

    images: torch.Tensor  # float32 (n, 28, width), 0 background to 1 ink
    labels: torch.Tensor  # int64 (n, L), PAD after the last digit
    lengths: torch.Tensor  # int64 (n,)
    boxes: torch.Tensor  # int64 (n, L, 4): left, top, right, bottom in pixels, 0 where no digit is


class DataError(RuntimeError):
    """The digits could not be had. The message says why, and what to do."""


def load(size="full", source="file") -> Digits:
    """Return MNIST as `Digits`.

    size: "full", 60,000 training and 10,000 test digits, or "small", the first 6,000 and 2,000.
    source: "file", data/mnist.npz of this repository, or "hub", the files that the article on the
    three-digit reader uses, from the Hugging Face Hub or the server that HF_ENDPOINT names. The
    hub's small file is the article's own selection and comes whole.

    Raises DataError when the digits are missing, damaged or out of reach, ValueError for any other
    size or source.
    """
    if size not in HUB_FILES:
        raise ValueError(f'size is "full" or "small", not {size!r}')
    if source not in ("file", "hub"):
        raise ValueError(f'source is "file" or "hub", not {source!r}')
    if source == "hub":
        return _from_hub(*HUB_FILES[size])
    digits = _from_file()
    if size == "full":
        return digits
    x_train, y_train, x_test, y_test = digits
    return Digits(
        x_train[:SMALL_TRAIN], y_train[:SMALL_TRAIN], x_test[:SMALL_TEST], y_test[:SMALL_TEST]
    )


def split(digits):
    """The training digits in two, each as (images, labels): to train on, and to choose by.

    digits: `Digits`. The second part, for validation, is the last 5,000 digits.
    """
    images, labels = digits.x_train, digits.y_train
    end = len(images) - VALIDATION
    return (images[:end], labels[:end]), (images[end:], labels[end:])


def compose(images, labels, n, seed) -> tuple[torch.Tensor, torch.Tensor]:
    """Return n numbers of three digits each: float32 (n, 28, 84) in [0, 1] and int64 (n, 3).

    images: uint8 (N, 28, 28). labels: uint8 (N,), 0 to 9. Each number is three digits picked at
    random, with replacement, and set side by side; the same seed gives the same numbers.

    Raises ValueError for images or labels of another kind, and for n that is not an int above 0.
    """
    _check(images, labels)
    _check_number(n)
    picks = np.random.default_rng(seed).integers(0, len(images), size=(n, 3))
    strips = images[picks].transpose(0, 2, 1, 3).reshape(n, 28, 84)  # from (n, 3, 28, 28)
    pixels = torch.from_numpy(strips / np.float32(255))
    return pixels, torch.from_numpy(labels[picks].astype(np.int64))


def scatter(images, labels, n, seed, lengths=(1, 2, 3, 4, 5), width=140) -> Numbers:
    """Return n numbers, each as long as one of `lengths`, laid out at random on a canvas.

    images: uint8 (N, 28, 28). labels: uint8 (N,), 0 to 9. lengths: ints above 0, all equally
    likely. width: of the canvas in pixels; its height is 28. Digits are picked with replacement;
    the same seed gives the same numbers.

    The digits of a number share one of `SIZES`. From its first column of ink to its last a number
    takes up anything from the least that its digits need to the whole canvas, and it begins
    anywhere. At least one empty column parts two digits; each stands up to `SWAY` pixels above or
    below the middle. A box ends before its right and bottom, and its digit's ink touches all
    four of its sides.

    Raises ValueError for images or labels of another kind, for ink wider or higher than `INK` or
    none at all, for n or lengths that are not ints above 0, and for a width that the longest
    number may not fit into.
    """
    _check(images, labels)
    _check_number(n)
    lengths = list(lengths)
    if not lengths or not all(isinstance(length, int) and length > 0 for length in lengths):
        raise ValueError(f"lengths are the numbers' digits: give ints of at least 1, not {lengths}")
    longest = max(lengths)
    least = longest * (INK * SIZES[-1] // 28 + 3) - 1  # ink can begin and end within a column
    if width < least:
        raise ValueError(
            f"numbers of {longest} digits can need {least} pixels: "
            f"give a width of at least that, not {width}, or shorter lengths"
        )
    reach = np.maximum(_span(images, axis=1)[1], _span(images, axis=2)[1])
    for i in np.flatnonzero((reach == 0) | (reach > INK))[:1]:
        raise ValueError(
            f"image {i} has ink over {reach[i]} pixels: give digits of 1 to {INK}, as MNIST has"
        )

    rng = np.random.default_rng(seed)
    count = rng.choice(lengths, size=n)
    used = np.arange(longest) < count[:, None]  # (n, longest)
    picks = rng.integers(len(images), size=(n, longest))[used]  # (all digits,)
    sizes = np.repeat(rng.choice(SIZES, size=n), count)
    cells = np.zeros((len(picks), SIZES[-1], SIZES[-1]), np.uint8)
    for size in SIZES:
        cells[sizes == size, :size, :size] = _resized(images[picks[sizes == size]], size)

    (left, wide), (top, high) = _span(cells, axis=1), _span(cells, axis=2)
    x = _layout(rng, wide, used, width)
    y = (28 - high) // 2 + rng.integers(-SWAY, SWAY + 1, size=len(picks))
    y = y.clip(0, 28 - high)
    canvas = np.zeros((n, 28, width), np.uint8)
    for row, x1, y1, w, h, x0, y0, cell in zip(
        used.nonzero()[0], x, y, wide, high, left, top, cells, strict=True
    ):
        canvas[row, y1 : y1 + h, x1 : x1 + w] = cell[y0 : y0 + h, x0 : x0 + w]

    padded = np.full((n, longest), PAD)
    padded[used] = labels[picks]
    boxes = np.zeros((n, longest, 4), np.int64)
    boxes[used] = np.stack([x, y, x + wide, y + high], axis=1)
    pixels = torch.from_numpy(canvas / np.float32(255))
    return Numbers(pixels, *map(torch.from_numpy, (padded, count, boxes)))


def _resized(images, size):
    """Images (N, 28, 28) as (N, size, size), by the mean over what each new pixel covers.

    Rounded up, so that ink stays ink. Every number on the way is an integer that float32 holds,
    so the result is the same on every machine.
    """
    new, old = 28 * np.arange(size)[:, None], size * np.arange(28)
    cover = np.minimum(new + 28, old + size) - np.maximum(new, old)  # (size, 28)
    cover = cover.clip(0).astype(np.float32)
    return -(-(cover @ images.astype(np.float32) @ cover.T) // 28**2)


def _span(images, axis):
    """Along the other axis: where the ink of each image begins, and how far it reaches."""
    ink = images.any(axis=axis)
    first, last = ink.argmax(axis=1), ink.shape[1] - 1 - ink[:, ::-1].argmax(axis=1)
    return first, np.where(ink.any(axis=1), last + 1 - first, 0)


def _layout(rng, wide, used, width):
    """The left edge of each digit (all digits,), given how wide each is and where each is used."""
    n, longest = used.shape
    count = used.sum(axis=1)
    pitch = np.zeros((n, longest), np.int64)
    pitch[used] = wide + 1
    slack = width + 1 - pitch.sum(axis=1)
    between = np.where(count > 1, rng.integers(slack + 1), 0)
    cuts = rng.integers(between[:, None] + 1, size=(n, longest))
    cuts = np.where(np.arange(longest) < count[:, None] - 2, cuts, between[:, None])
    extra = np.column_stack([np.zeros(n, np.int64), np.sort(cuts, axis=1)[:, :-1]])
    begin = rng.integers(slack - between + 1)
    return (begin[:, None] + extra + pitch.cumsum(axis=1) - pitch)[used]


def _check_number(n):
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n is how many numbers to compose: give an int of at least 1, not {n!r}")


def _check(images, labels):
    """Raise ValueError unless these are images and labels as `Digits` describes them."""
    for name, array in (("images", images), ("labels", labels)):
        if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
            kind = getattr(array, "dtype", type(array).__name__)
            raise ValueError(f"{name} is {kind}: give a uint8 NumPy array, as load() returns it")
    if images.shape[1:] != (28, 28) or len(images) == 0:
        raise ValueError(f"images has shape {images.shape}: give (N, 28, 28), N at least 1")
    if labels.shape != (len(images),):
        raise ValueError(
            f"labels has shape {labels.shape}: give one label an image, ({len(images)},)"
        )
    if labels.max() > 9:
        raise ValueError(f"labels go up to {labels.max()}: give digits, 0 to 9")


def _from_file():
    remedy = "Restore it with `git checkout data/mnist.npz`, or rebuild it as data/README.md says."
    try:
        content = FILE.read_bytes()
    except OSError as error:
        raise DataError(f"{FILE} cannot be read: {error.strerror}. {remedy}") from error
    if hashlib.sha256(content).hexdigest() != FILE_SHA256:
        raise DataError(
            f"{FILE} is truncated or altered: its SHA-256 is not the one known. {remedy}"
        )
    return _parse(content)


def _from_hub(filename, revision):
    path = _download(filename, revision)
    try:
        return _parse(path.read_bytes())
    except DataError as error:
        # The hub's cache would hand out the same file for ever: it trusts what it holds of a pinned
        # revision. In the cache, `path` is a link to the content.
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise DataError(
            f"{filename} from the hub is not the digits, and was removed from the cache: {error}. "
            f"The next call downloads it again. {HUB_REMEDY}"
        ) from error


def _download(filename, revision):
    """Return the path of a hub file in the local cache, downloading it where it is not there yet.

    huggingface_hub writes a download to a temporary file, compares its length, and only then
    renames it into its cache, so a broken download leaves nothing behind.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    # huggingface_hub reads HF_ENDPOINT when it is first imported, which may have been long ago.
    endpoint = os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")
    try:
        path = hf_hub_download(
            HUB_REPO, filename, repo_type="dataset", revision=revision, endpoint=endpoint
        )
    except LocalEntryNotFoundError as error:
        reason = error.__cause__ or error
        raise DataError(
            f"The hub at {endpoint} cannot be reached. {HUB_REMEDY} The cause: {reason}"
        ) from error
    except Exception as error:  # its own errors, its HTTP client's and its Xet client's
        raise DataError(
            f"The download of {filename} from {endpoint} failed. {HUB_REMEDY} The cause: {error}"
        ) from error
    return Path(path)


def _parse(content):
    """Turn the bytes of an npz file into Digits, checked."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            digits = Digits(*(archive[key] for key in Digits._fields))
    except KeyError as error:
        raise DataError(f"an array is missing, {error.args[0]}") from error
    except Exception as error:  # np.load raises many kinds, depending on where the damage is
        raise DataError("it is not an intact npz of plain arrays, free of pickles") from error
    for split, images, labels in (("train", *digits[:2]), ("test", *digits[2:])):
        try:
            _check(images, labels)
        except ValueError as error:
            raise DataError(f"in the {split} split, {error}") from error
    return digits
