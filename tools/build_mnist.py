"""Build data/mnist.npz from the four original MNIST files.

    python tools/build_mnist.py FOLDER

FOLDER holds the unpacked idx files; data/README.md says where they come from. The same files give
the same bytes every time, on any machine with the same zlib.
"""

import argparse
import hashlib
import io
import math
import struct
import sys
from pathlib import Path

import numpy as np

from files import write_atomically

TARGET = Path(__file__).resolve().parent.parent / "data" / "mnist.npz"

# Key in mnist.npz: (original file, its SHA-256).
ORIGINALS = {
    "x_train": (
        "train-images-idx3-ubyte",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "y_train": (
        "train-labels-idx1-ubyte",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "x_test": (
        "t10k-images-idx3-ubyte",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "y_test": (
        "t10k-labels-idx1-ubyte",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}


class OriginalError(ValueError):
    """An original file is missing or is not what it should be."""

    def __init__(self, path, problem):
        super().__init__(
            f"{path}: {problem}. Unpack the originals again (data/README.md says how) "
            "and give their folder. data/mnist.npz is as it was."
        )


def read_original(path, sha256):
    """Return the bytes of the file, once they are known to be the original's."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OriginalError(path, f"cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise OriginalError(path, "is not the original: truncated or altered (SHA-256 differs)")
    return content


def parse_idx(content, path):
    """Turn the bytes of an idx file of unsigned bytes into an array.

    An idx file starts with two zero bytes, the type (8: unsigned byte), the number of dimensions,
    and each dimension as a big-endian 32-bit integer; the items follow.
    """
    start = 4 + 4 * content[3] if len(content) > 3 else 4
    if content[:3] != b"\0\0\x08" or len(content) < start:
        raise OriginalError(path, "does not start with the idx header of unsigned bytes")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise OriginalError(path, f"does not hold the {shape} bytes its idx header promises")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def build(folder):
    """Write TARGET from the originals in `folder`, and return its SHA-256."""
    arrays = {}
    for key, (name, sha256) in ORIGINALS.items():
        path = folder / name
        arrays[key] = parse_idx(read_original(path, sha256), path)
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)
    write_atomically(TARGET, archive.getvalue())
    return hashlib.sha256(archive.getvalue()).hexdigest()


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Build data/mnist.npz from the original files.")
    parser.add_argument("folder", type=Path, help="where the four unpacked idx files are")
    try:
        sha256 = build(parser.parse_args(arguments).folder)
    except OriginalError as error:
        sys.exit(str(error))
    print(f"{sha256}  {TARGET.name}")


if __name__ == "__main__":
    main()
