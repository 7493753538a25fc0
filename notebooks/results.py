"""Stored results of many training runs: what `make sweep` has written to data/results/.

    import results

    runs = results.load("copy", model="copier", hidden_size=64)

Written by hand: the lessons use it, none teaches it.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "data" / "results"


def load(name, **recipe):
    """The runs of data/results/NAME.json whose recipe has these values, in the order of seeds.

    Each is a dict: what was measured, and under "recipe" how. Raises ValueError when there is
    none.
    """
    path = FOLDER / f"{name}.json"
    runs = json.loads(path.read_text("utf-8"))["runs"] if path.exists() else []
    found = [run for run in runs if recipe.items() <= run["recipe"].items()]
    if not found:
        raise ValueError(f"{path} holds no run with {recipe}: `make sweep` writes them")
    return sorted(found, key=lambda run: run["recipe"]["seed"])
