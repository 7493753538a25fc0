"""MNIST digits, and numbers of three digits made from them.

    from digits import compose, load

    digits = load("small")
    images, labels = compose(digits.x_train, digits.y_train, n=20_000, seed=0)

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


def compose(images, labels, n, seed) -> tuple[torch.Tensor, torch.Tensor]:
    """Return n numbers of three digits each: float32 (n, 28, 84) in [0, 1] and int64 (n, 3).

    images: uint8 (N, 28, 28). labels: uint8 (N,), 0 to 9. Each number is three digits picked at
    random, with replacement, and set side by side; the same seed gives the same numbers.

    Raises ValueError for images or labels of another kind, and for n that is not an int above 0.
    """
    _check(images, labels)
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n is how many numbers to compose: give an int of at least 1, not {n!r}")
    picks = np.random.default_rng(seed).integers(0, len(images), size=(n, 3))
    strips = images[picks].transpose(0, 2, 1, 3).reshape(n, 28, 84)  # from (n, 3, 28, 28)
    pixels = torch.from_numpy(strips / np.float32(255))
    return pixels, torch.from_numpy(labels[picks].astype(np.int64))


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
