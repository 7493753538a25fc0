"""`make spread`: how far the numbers of lessons move under conditions that readers have.

Each lesson is executed under each of CONDITIONS, and its outputs are compared with those that are
stored. What is found goes into data/results/spread.json; tests/tolerances.toml is set from it.
Executed copies are kept in _build/spread/: a measurement that was stopped goes on from there.
"""

import argparse
import copy
import hashlib
import json
import sys
from typing import NamedTuple

import nbformat
import torch
from rich.console import Console
from rich.table import Table

from execute import Executor
from files import write_atomically
from lessons import BUILD, SPREAD, chosen, code_cells, fingerprint, read, tags
from made import made
from nbval_numbers import NUMBER, TEXT, TOLERANCES, by_kind, value

ONE_THREAD = "torch.set_num_threads(1)"
CAPABILITIES = ["default", "avx2", "avx512"]
MARGIN = 1.5  # times the largest move is what a tolerance allows at least


class Condition(NamedTuple):
    """How a lesson is executed; without arguments, as `make test` does it, and as it was stored."""

    threads: int = 1
    capability: str | None = None  # of ATEN_CPU_CAPABILITY; None: the best that the machine has
    onednn: bool = True
    twice: bool = False  # each cell, and its second outputs count


def conditions():
    """{name: Condition} on this machine, so that each setting has its other values once."""
    best = torch.backends.cpu.get_cpu_capability().lower()
    worse = CAPABILITIES[: CAPABILITIES.index(best)] if best in CAPABILITIES else []
    return {
        **{f"capability {name}": Condition(capability=name) for name in worse},
        "two threads, no oneDNN": Condition(threads=2, onednn=False),
        "each cell twice": Condition(twice=True),
    }


# Executing


def prepared(notebook, condition):
    """The notebook with the condition's settings where it sets its threads, its cells doubled."""
    cells = [cell for cell in notebook.cells if ONE_THREAD in cell.source]
    if len(cells) != 1:
        raise ValueError(f"{len(cells)} cells hold {ONE_THREAD}: exactly one must")
    settings = f"torch.set_num_threads({condition.threads})"
    if not condition.onednn:
        settings += "; torch.backends.mkldnn.set_flags(False)"
    cells[0].source = cells[0].source.replace(ONE_THREAD, settings)
    if condition.twice:
        notebook.cells = [copy.deepcopy(cell) for cell in code_cells(notebook) for _ in range(2)]
    return notebook


def copy_of(path, name):
    return BUILD / "spread" / name / path.name


def is_done(path, name):
    kept = copy_of(path, name)
    return kept.exists() and read(kept).metadata.fingerprint == fingerprint(path)


def execute(paths, name, condition):
    """Execute these lessons under one condition, and keep them; return what failed.

    Lessons of one thread run side by side, others one after the other.
    """
    paths = {path.stem: path for path in paths if not is_done(path, name)}
    notebooks = {stem: prepared(read(path), condition) for stem, path in paths.items()}
    environment = {"OMP_WAIT_POLICY": "PASSIVE"}  # or two threads on a busy core wait for ever
    if condition.capability:
        environment["ATEN_CPU_CAPABILITY"] = condition.capability
    together = [notebooks] if condition.threads == 1 else [{n: notebooks[n]} for n in notebooks]
    failures = {}
    for batch in together:
        for stem, failure in Executor().run(batch, environment):
            if failure:
                failures[stem] = str(failure)
                continue
            notebook = notebooks[stem]
            if condition.twice:
                notebook.cells = notebook.cells[1::2]
            notebook.metadata.fingerprint = fingerprint(paths[stem])
            write_atomically(copy_of(paths[stem], name), nbformat.writes(notebook))
    return failures


# Comparing


def texts(cell):
    """All texts that a cell prints, kind by kind."""
    kinds = by_kind(cell.outputs)
    return [text for kind in sorted(TEXT & kinds.keys()) for text in kinds[kind]]


def numbers(cell):
    """All numbers that a cell prints, as they are written, in order."""
    return [number for text in texts(cell) for number in NUMBER.findall(text)]


def words(cell):
    return [NUMBER.sub("0", text).split() for text in texts(cell)]


def compared(number, cell, others):
    """What is stored of the cell of this number; others: {condition: the same cell}.

    `moved` holds each number that another condition changes: [stored, {condition: other}].
    `spread` is the largest such difference, `words` the conditions that change other words.
    """
    same = {name: numbers(other) for name, other in others.items() if words(other) == words(cell)}
    moved = []
    for place, stored in enumerate(numbers(cell)):
        changed = {name: found[place] for name, found in same.items() if found[place] != stored}
        if changed:
            moved.append([stored, changed])
    return {
        "cell": number,
        "code": hashlib.sha256(cell.source.encode()).hexdigest()[:16],
        "tolerance": next((tag for tag in tags(cell) if tag in TOLERANCES), None),
        "numbers": len(numbers(cell)),
        "spread": max((distance(s, n) for s, found in moved for n in found.values()), default=0),
        "moved": moved,
        "words": sorted(others.keys() - same.keys()),
    }


def distance(stored, new):
    return round(abs(value(new) - value(stored)), 6)


def cells_of(path, names):
    """`compared` for each cell of the lesson whose numbers count, under these conditions."""
    executed = {name: code_cells(read(copy_of(path, name))) for name in names}
    for number, cell in enumerate(code_cells(read(path)), start=1):
        if "volatile" not in tags(cell) and numbers(cell):
            others = {name: cells[number - 1] for name, cells in executed.items()}
            yield {"lesson": path.stem, **compared(number, cell, others)}


def stored():
    """What is stored: {"lessons": {name: how it was measured}, "cells": [as `cells_of`]}."""
    return (
        json.loads(SPREAD.read_text("utf-8")) if SPREAD.exists() else {"lessons": {}, "cells": []}
    )


def with_lessons(found, paths, failures):
    """What is stored, with these lessons as they were measured now."""
    stems = {path.stem for path in paths}
    how, cells = dict(found["lessons"]), [c for c in found["cells"] if c["lesson"] not in stems]
    for path in paths:
        done = [name for name in conditions() if is_done(path, name)]
        how[path.stem] = {
            "conditions": done,
            "failed": {
                name: lost[path.stem] for name, lost in failures.items() if path.stem in lost
            },
            "capability": torch.backends.cpu.get_cpu_capability(),
            "made": {fact: is_so for fact, is_so in made(0).items() if fact != "seconds"},
        }
        cells += cells_of(path, done)
    in_order = sorted(cells, key=lambda cell: (cell["lesson"], cell["cell"]))
    return {"lessons": dict(sorted(how.items())), "cells": in_order}


def written(found):
    """The JSON of what was found, a line for each lesson and each cell."""
    lessons = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(how)}" for name, how in found["lessons"].items()
    )
    cells = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in found["cells"])
    return f'{{"lessons": {{\n{lessons}\n}},\n"cells": [\n{cells}\n]}}\n'


def widest(found):
    """{tolerance: the largest move of a number that it applies to}."""
    spread = {}
    for cell in found["cells"]:
        if name := cell["tolerance"]:
            moves = [
                distance(was, new)
                for was, others in cell["moved"]
                for new in others.values()
                if TOLERANCES[name].applies_to(was)
            ]
            spread[name] = max([spread.get(name, 0), *moves])
    return spread


def faults(found):
    """What no tolerance covers: a sentence for each lesson or number."""
    for how in found["lessons"].values():
        for name, failure in how["failed"].items():
            yield f"{name}: {failure}"
    for cell in found["cells"]:
        where = f"{cell['lesson']}, cell {cell['cell']}"
        if cell["words"]:
            yield f"{where}: other words under {', '.join(cell['words'])}"
        tolerance = TOLERANCES.get(cell["tolerance"])
        for was, others in cell["moved"]:
            for name, new in others.items():
                if tolerance is None or not tolerance.accepts(was, new):
                    yield f"{where}: {was} became {new} under {name}"


def show(found, console):
    table = Table("tolerance", "spread", "allowed", title="Largest move of a number")
    for name, spread in widest(found).items():
        table.add_row(name, f"{spread:.3g}", f"{TOLERANCES[name].atol:g}")
    console.print(table)
    for fault in faults(found):
        console.print(fault, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lesson", nargs="?", default="", help="its number, such as 02; all if none")
    try:
        paths = chosen(parser.parse_args().lesson)
        failures = {name: execute(paths, name, how) for name, how in conditions().items()}
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped. What is executed is kept; `make spread` goes on from there.")
    found = with_lessons(stored(), paths, failures)
    write_atomically(SPREAD, written(found))
    show(found, Console())
