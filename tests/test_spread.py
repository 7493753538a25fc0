"""`make spread`: how far numbers move between conditions, and the tolerances set from it."""

import hashlib
import json
import os
import subprocess
import sys

import nbformat.v4 as nbf
import pytest
import torch
from nbformat import write
from rich.console import Console

import lessons
import spread
from spread import Condition

THREADS = "import torch\ntorch.set_num_threads(1)"
TOLERANCE = "tol-accuracy"


def cell(printed, *tags):
    output = nbf.new_output("stream", name="stdout", text=printed)
    return nbf.new_code_cell("measure()", outputs=[output], metadata={"tags": list(tags)})


def compared(stored, *tags, **others):
    """A cell compared with the same one under each condition, given what each prints."""
    executed = {name: cell(printed, *tags) for name, printed in others.items()}
    return spread.compared(7, cell(stored, *tags), executed)


def found(*cells, failed=None):
    how = {"conditions": [], "failed": failed or {}}
    return {"lessons": {"01_a": how}, "cells": [{"lesson": "01_a", **cell} for cell in cells]}


# Comparing


def test_every_number_that_moved_is_kept_with_what_it_became():
    moved = compared("a 81.0 b 3.0", slow="a 81.0 b 2.5", fast="a 81.5 b 2.5")["moved"]
    assert moved == [["81.0", {"fast": "81.5"}], ["3.0", {"slow": "2.5", "fast": "2.5"}]]


def test_the_spread_of_a_cell_is_the_largest_move_from_what_is_stored():
    assert compared("81.0 and 3.0", slow="79.5 and 3.0", fast="82.0 and 3.2")["spread"] == 1.5


def test_a_cell_that_nothing_moves_has_no_spread():
    unmoved = compared("81.0", slow="81.0")
    assert (unmoved["spread"], unmoved["moved"], unmoved["numbers"]) == (0, [], 1)


def test_conditions_that_change_the_words_are_named():
    assert compared("3.0 less", slow="3.0 more", fast="3.1 less")["words"] == ["slow"]


def test_numbers_of_a_volatile_cell_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(spread, "BUILD", tmp_path)
    path = tmp_path / "01_a.ipynb"
    write(nbf.new_notebook(cells=[cell("3 s", "volatile"), cell("4.0")]), path)
    assert [number["cell"] for number in spread.cells_of(path, [])] == [2]


# What is said of it


def test_the_widest_move_under_each_tolerance_counts_over_all_cells():
    cells = [
        compared("81.0", TOLERANCE, slow="82.0"),
        compared("50.0", TOLERANCE, slow="47.5"),
        compared("0.5", "tol-attention", slow="0.5"),
    ]
    assert spread.widest(found(*cells)) == {TOLERANCE: 2.5, "tol-attention": 0}


@pytest.mark.parametrize(
    ("stored", "new", "tags", "fault"),
    [
        ("81.0", "81.1", [], "01_a, cell 7: 81.0 became 81.1 under slow"),
        ("81.0", "90.0", [TOLERANCE], "01_a, cell 7: 81.0 became 90.0 under slow"),
        ("12 read", "13 read", [TOLERANCE], "01_a, cell 7: 12 became 13 under slow"),
        ("1 less", "1 more", [], "01_a, cell 7: other words under slow"),
    ],
    ids=["without a tolerance", "beyond it", "a count, which is exact", "other words"],
)
def test_what_no_tolerance_covers_is_said(stored, new, tags, fault):
    assert list(spread.faults(found(compared(stored, *tags, slow=new)))) == [fault]


def test_what_a_tolerance_covers_is_no_fault():
    assert list(spread.faults(found(compared("81.0", TOLERANCE, slow="81.1")))) == []


def test_a_lesson_that_fails_under_a_condition_is_said_to():
    failed = {"slow": "01_a, cell 3 (assert x): AssertionError"}
    assert list(spread.faults(found(failed=failed))) == [
        "slow: 01_a, cell 3 (assert x): AssertionError"
    ]


def test_the_table_sets_the_spread_beside_what_is_allowed(capsys):
    spread.show(found(compared("81.0", TOLERANCE, slow="82.0")), Console(width=80))
    line = next(line for line in capsys.readouterr().out.splitlines() if TOLERANCE in line)
    assert [part.strip() for part in line.strip("│").split("│")] == [TOLERANCE, "1", "4.5"]


def test_what_is_written_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(spread, "SPREAD", tmp_path / "spread.json")
    measured = found(compared("81.0", slow="82.0"), compared("3", slow="3"))
    spread.SPREAD.write_text(spread.written(measured))
    assert spread.stored() == measured


# Executing


def test_a_lesson_that_does_not_set_its_threads_once_is_refused():
    with pytest.raises(ValueError, match="0 cells hold torch"):
        spread.prepared(nbf.new_notebook(cells=[nbf.new_code_cell("1 + 1")]), Condition())


def test_the_capabilities_below_the_machine_s_best_are_conditions(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert [how.capability for how in spread.conditions().values() if how.capability] == [
        "default",
        "avx2",
    ]


PRINTING = {
    "threads": "print(1.0 * torch.get_num_threads())",
    "capability": "print(int(torch.backends.cpu.get_cpu_capability() == 'DEFAULT'))",
    "oneDNN": "print(int(torch.backends.mkldnn.enabled))",
    "counter": "count = globals().get('count', 0) + 1; print(count)",
}


@pytest.fixture
def measure(project):
    """Run `make spread` for a lesson that prints its conditions and how often a cell was run."""
    (project / "data" / "results").mkdir(parents=True)
    cells = [nbf.new_code_cell(THREADS), *map(nbf.new_code_cell, PRINTING.values())]
    for cell, printed in zip(cells[1:], ("1.0", "0", "1", "1"), strict=True):
        cell.outputs = [nbf.new_output("stream", name="stdout", text=f"{printed}\n")]
    write(nbf.new_notebook(cells=cells), project / "notebooks" / "01_a.ipynb")

    def measure():
        return subprocess.run(
            [sys.executable, "tools/spread.py", "01"],
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(lessons.ROOT / "tests")},
            capture_output=True,
            text=True,
        )

    return measure


def test_a_lesson_is_executed_under_every_condition_and_keeps_what_was_done(project, measure):
    first, second = measure(), measure()
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("01_a  cell 5 of 5") == len(spread.conditions()) - 1
    assert "01_a  cell 10 of 10" in first.stdout
    assert "cell" not in second.stdout.partition("Largest")[0]
    measured = json.loads((project / "data" / "results" / "spread.json").read_text())
    assert measured["lessons"]["01_a"]["conditions"] == list(spread.conditions())
    default = "capability default" in spread.conditions()
    assert {cell["cell"]: cell["moved"] for cell in measured["cells"]} == {
        2: [["1.0", {"two threads, no oneDNN": "2.0"}]],
        3: [["0", {"capability default": "1"}]] if default else [],
        4: [["1", {"two threads, no oneDNN": "0"}]],
        5: [["1", {"each cell twice": "2"}]],
    }


# What was measured, and the tolerances


@pytest.fixture(scope="module")
def measured():
    return spread.stored()


def test_every_lesson_was_measured_and_none_of_its_claims_failed(measured):
    assert list(measured["lessons"]) == [path.stem for path in lessons.lesson_paths()]
    assert {name: how["failed"] for name, how in measured["lessons"].items() if how["failed"]} == {}


def test_every_lesson_was_measured_under_all_that_any_machine_can_do(path, measured):
    everywhere = {name for name, how in spread.conditions().items() if how.capability is None}
    assert everywhere <= set(measured["lessons"][path.stem]["conditions"])


def test_every_cell_with_a_tolerance_was_measured_as_it_is_now(path, code, measured):
    codes = {
        cell["cell"]: cell["code"] for cell in measured["cells"] if cell["lesson"] == path.stem
    }
    for number, cell in enumerate(code, start=1):
        if any(tag.startswith("tol-") for tag in lessons.tags(cell)) and spread.numbers(cell):
            now = hashlib.sha256(cell.source.encode()).hexdigest()[:16]
            assert codes.get(number) == now, f"cell {number} has changed: `make spread` measures it"


def test_nothing_moved_that_no_tolerance_covers(measured):
    assert list(spread.faults(measured)) == []


@pytest.mark.parametrize("name", spread.TOLERANCES)
def test_a_tolerance_was_measured_and_leaves_room_beyond_the_largest_move(measured, name):
    assert spread.MARGIN * spread.widest(measured)[name] <= spread.TOLERANCES[name].atol
