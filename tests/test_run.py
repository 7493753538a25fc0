"""`make run` on a small project of its own, in a folder whose name has a space."""

import signal
import time

import pytest

import lessons
import tiny_lesson
from tiny_lesson import SLOW, lesson


@pytest.fixture
def start(project):
    """Write lessons, start `make run`'s command, return the process."""

    def start(**notebooks):
        tiny_lesson.write(project, {name.removeprefix("_"): n for name, n in notebooks.items()})
        return tiny_lesson.start(project)

    return start


@pytest.fixture
def run(start):
    """The same to its end. Returns the exit status and what was printed to both streams."""

    def run(**notebooks):
        process = start(**notebooks)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    return run


def pages(project):
    """The pages of lessons, and the index."""
    return sorted(page.name for page in (project / "_site").glob("[0i]*.html"))


def test_executes_on_copies_and_renders_a_page_a_lesson_and_an_index(project, run):
    status, _, _ = run(_01_a=lesson(), _02_b=lesson())
    assert status == 0
    assert pages(project) == ["01_a.html", "02_b.html", "index.html"]
    assert lessons.read(project / "notebooks/01_a.ipynb").cells[1].execution_count is None


def test_says_which_cell_of_which_lesson_it_is_at(run):
    _, out, _ = run(_01_a=lesson())
    assert "01_a  cell 1 of 2  0:0" in out
    assert "01_a  cell 2 of 2  0:0" in out


def test_what_is_printed_below_an_output_stays_below_it(project, run):
    run(_01_a=lesson("print(1)\nprint(2)\ndisplay({'text/markdown': 'x'}, raw=True)\nprint(3)"))
    outputs = lessons.read(project / "_build/01_a.ipynb").cells[1].outputs
    assert [output.get("text") for output in outputs] == ["1\n2\n", None, "3\n"]


def test_does_nothing_twice(run):
    run(_01_a=lesson())
    status, out, _ = run()
    assert status == 0
    assert "cell" not in out


def test_executes_again_what_has_changed(run):
    run(_01_a=lesson(), _02_b=lesson())
    _, out, _ = run(_02_b=lesson("1 + 1"))
    assert "02_b  cell 1" in out
    assert "01_a" not in out


def test_a_lesson_that_raises_is_named_with_its_cell_and_error_and_stops_no_other(project, run):
    status, _, err = run(_01_a=lesson("x = 1\nx / 0"), _02_b=lesson())
    assert status == 1
    assert "01_a, cell 1 (x = 1): ZeroDivisionError: division by zero" in err
    assert pages(project) == ["02_b.html", "index.html"]


def test_a_kernel_that_dies_is_named_with_its_cell(run):
    status, _, err = run(_01_a=lesson("import os\nos._exit(1)"))
    assert status == 1
    assert "01_a, cell 1 (import os): the kernel died" in err


def test_the_page_of_a_lesson_that_is_gone_goes_too(project, run):
    run(_01_a=lesson(), _02_b=lesson())
    (project / "notebooks/02_b.ipynb").unlink()
    run()
    assert pages(project) == ["01_a.html", "index.html"]


@pytest.fixture
def interrupted(project, start):
    """A run that is interrupted while one lesson is done and the other is in a slow cell."""
    process = start(_01_a=lesson(), _02_b=lesson(SLOW))
    done = project / "_build/01_a.ipynb"
    lines = []
    while not any("02_b" in line for line in lines):
        lines.append(process.stdout.readline())
    while not done.exists():
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, err = process.communicate(timeout=60)
    return process.returncode, err, time.monotonic() - started


def test_an_interrupt_stops_it_at_once_with_a_sentence_and_no_traceback(interrupted):
    status, err, seconds = interrupted
    assert status == 1
    assert err.strip() == "Stopped. Nothing is half-written; the next `make run` goes on from here."
    assert seconds < 30


def test_an_interrupt_leaves_whole_files_only(project, interrupted):
    assert [file.name for file in (project / "_build").iterdir()] == ["01_a.ipynb"]
    assert lessons.read(project / "_build/01_a.ipynb")
    assert pages(project) == []


def test_after_an_interrupt_only_the_rest_is_executed(interrupted, run):
    status, out, _ = run(_02_b=lesson())
    assert status == 0
    assert "01_a" not in out
