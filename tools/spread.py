"""`make spread LESSON=02`: how far a lesson's numbers move under conditions that readers have.

The lesson is executed with one and two threads and with each CPU capability of the machine. For
each tolerance, the spread is the largest difference between any two values of one number.
"""

import argparse
import itertools
from collections import defaultdict

import nbformat
import torch

from execute import Executor
from files import write_atomically
from lessons import BUILD, code_cells, fingerprint, lesson_paths, read, tags
from nbval_numbers import NUMBER, TEXT, TOLERANCES, by_kind, value

CAPABILITIES = ["default", "avx2", "avx512"]
ONE_THREAD = "torch.set_num_threads(1)"


def conditions():
    """{name: (threads, capability)}"""
    best = torch.backends.cpu.get_cpu_capability().lower()
    known = CAPABILITIES[: CAPABILITIES.index(best) + 1] if best in CAPABILITIES else ["default"]
    return {f"{t} threads, {c}": (t, c) for t, c in itertools.product((1, 2), known)}


def with_threads(notebook, threads):
    cells = [cell for cell in notebook.cells if ONE_THREAD in cell.source]
    if len(cells) != 1:
        raise ValueError(f"{len(cells)} cells hold {ONE_THREAD}: exactly one must")
    cells[0].source = cells[0].source.replace(ONE_THREAD, f"torch.set_num_threads({threads})")
    return notebook


def executed(path):
    """The lesson under each condition, one after the other; what an earlier call did is kept."""
    for name, (threads, capability) in conditions().items():
        copy = BUILD / "spread" / path.stem / f"{name}.ipynb"
        if not copy.exists() or read(copy).metadata.fingerprint != fingerprint(path):
            notebook = with_threads(read(path), threads)
            environment = {"ATEN_CPU_CAPABILITY": capability}
            for _, failure in Executor().run({name: notebook}, environment):
                if failure:
                    raise failure
            notebook.metadata.fingerprint = fingerprint(path)
            write_atomically(copy, nbformat.writes(notebook))
        yield read(copy)


def numbers(cell, tolerance):
    """All numbers of a cell's text outputs that its tolerance applies to."""
    texts = [
        text for kind, texts in by_kind(cell.outputs).items() if kind in TEXT for text in texts
    ]
    return [value(n) for text in texts for n in NUMBER.findall(text) if tolerance.applies_to(n)]


def report(notebooks):
    """Print the spread of each cell with a tolerance, and name cells that differ without one."""
    widest = defaultdict(float)
    print(f"\n{'cell':>4}  {'tolerance':<16}{'numbers':>8}{'spread':>10}{'allowed':>10}")
    for index, cells in enumerate(zip(*map(code_cells, notebooks), strict=True), start=1):
        tag = next((tag for tag in tags(cells[0]) if tag in TOLERANCES), None)
        if tag:
            tolerance = TOLERANCES[tag]
            values = list(zip(*(numbers(cell, tolerance) for cell in cells), strict=True))
            spread = max(max(v) - min(v) for v in values)
            widest[tag] = max(widest[tag], spread)
            print(f"{index:>4}  {tag:<16}{len(values):>8}{spread:>10.3f}{tolerance.atol:>10}")
        elif "volatile" not in tags(cells[0]) and len({str(by_kind(c.outputs)) for c in cells}) > 1:
            print(f"{index:>4}  differs, and has no tolerance")
    for tag, spread in widest.items():
        print(f"spread of {tag}: {spread:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lesson", help="the number of the lesson, such as 02")
    lesson = parser.parse_args().lesson
    paths = [path for path in lesson_paths() if path.stem.startswith(f"{lesson}_")]
    if not paths:
        numbers_known = ", ".join(path.stem[:2] for path in lesson_paths())
        parser.error(f"no lesson {lesson!r}; there are {numbers_known}")
    report(list(executed(paths[0])))
