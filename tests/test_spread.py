"""`make spread`: what the tolerances are set from."""

import os
import subprocess
import sys

import nbformat.v4 as nbf
import pytest
from nbformat import write

import lessons
import spread

THREADS = "import torch\ntorch.set_num_threads(1)"


def executed(source, printed, tag):
    output = nbf.new_output("stream", name="stdout", text=printed)
    cell = nbf.new_code_cell(source, outputs=[output], metadata={"tags": [tag] if tag else []})
    return nbf.new_notebook(cells=[cell])


def reported(capsys, *printed, tag="tol-accuracy"):
    spread.report([executed("measure()", text, tag) for text in printed])
    return capsys.readouterr().out


def test_the_spread_is_the_largest_difference_between_two_values_of_one_number(capsys):
    report = reported(capsys, "a 81.0 b 3.0", "a 83.5 b 3.1", "a 82.0 b 2.9")
    assert "spread of tol-accuracy: 2.500" in report


def test_a_cell_that_differs_without_a_tolerance_is_named(capsys):
    assert "1  differs, and has no tolerance" in reported(capsys, "81.0", "81.1", tag=None)


def test_times_in_a_volatile_cell_are_no_difference(capsys):
    assert "differs" not in reported(capsys, "3 s", "4 s", tag="volatile")


def test_a_lesson_that_does_not_set_its_threads_once_is_refused():
    with pytest.raises(ValueError, match="0 cells hold torch"):
        spread.with_threads(nbf.new_notebook(cells=[nbf.new_code_cell("1 + 1")]), 2)


def test_a_lesson_is_executed_under_every_condition_and_keeps_what_was_done(project):
    cells = [
        nbf.new_code_cell(THREADS),
        nbf.new_code_cell(
            "print(1.0 * torch.get_num_threads())", metadata={"tags": ["tol-accuracy"]}
        ),
    ]
    write(nbf.new_notebook(cells=cells), project / "notebooks" / "01_a.ipynb")
    command = [sys.executable, "tools/spread.py", "01"]
    environment = os.environ | {"PYTHONPATH": str(lessons.ROOT / "tests")}
    first, second = (
        subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
        for _ in range(2)
    )
    for name in spread.conditions():
        assert f"{name}  cell 2 of 2" in first.stdout
        assert name not in second.stdout
    assert "spread of tol-accuracy: 1.000" in first.stdout
    assert "spread of tol-accuracy: 1.000" in second.stdout
