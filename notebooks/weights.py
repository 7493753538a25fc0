"""Trained weights: what `make train` has written to data/*.safetensors.

    import weights

    reader = StemReader()
    made = weights.load("reader", reader)

Written by hand: the lessons use it, none teaches it.
"""

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

FOLDER = Path(__file__).resolve().parent.parent / "data"
REMEDY = "Restore it with `git checkout data`, or train it again with `make train OVERWRITE=1`."


def read(path):
    """The tensors {name: tensor} of a file that `make train` wrote, and how it was made, a dict.

    Raises ValueError for a file that is missing, truncated or of another origin.
    """
    try:
        with safe_open(path, framework="pt") as file:
            made = json.loads((file.metadata() or {})["made"])
            return {name: file.get_tensor(name) for name in file.keys()}, made  # noqa: SIM118
    except FileNotFoundError as error:
        raise ValueError(f"{path} is not there. {REMEDY}") from error
    except (KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} does not say how it was made. {REMEDY}") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"{path} is truncated or no safetensors file: {error}. {REMEDY}"
        ) from error


def load(name, model):
    """Fill the model with the weights of data/NAME.safetensors; return how they were made.

    Raises ValueError for a file that cannot be read or holds the weights of another model; the
    model is then as it was.
    """
    path = FOLDER / f"{name}.safetensors"
    tensors, made = read(path)
    expected = model.state_dict()
    missing, foreign = expected.keys() - tensors.keys(), tensors.keys() - expected.keys()
    other = [
        f"{key} has shape {tuple(tensors[key].shape)} and not {tuple(expected[key].shape)}"
        for key in expected.keys() & tensors.keys()
        if tensors[key].shape != expected[key].shape
    ]
    faults = [*(f"{key} is missing" for key in missing), *(f"{key} is foreign" for key in foreign)]
    if faults := sorted(faults + other):
        raise ValueError(
            f"{path} holds the weights of another model than this {type(model).__name__}: "
            f"{faults[0]}{f', and {len(faults) - 1} more' if faults[1:] else ''}. {REMEDY}"
        )
    model.load_state_dict(tensors)
    return made
