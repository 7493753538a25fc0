"""What the check of printed numbers accepts and what it refuses, by the command of `make test`.

Every case is one cell of a small lesson; all lessons are checked in one run.
"""

import os
import subprocess
import tomllib
from pathlib import Path
from shutil import copy
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import v4

ROOT = Path(__file__).parent.parent
TOLERANCES = tomllib.loads((ROOT / "tests" / "tolerances.toml").read_text("utf-8"))
ATOL = TOLERANCES["accuracy"]["atol"]


def cell(source, *stored, tags=(), executed=True):
    count = 1 if executed else None
    metadata = {"tags": list(tags)}
    return v4.new_code_cell(source, outputs=list(stored), metadata=metadata, execution_count=count)


def stream(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def error(name, message):
    return v4.new_output("error", ename=name, evalue=message, traceback=[])


def printing(now, *tags, stored):
    return cell(f"print({now!r})", stream(f"{stored}\n"), tags=tags)


def displaying(now, *tags, stored):
    """A cell that displays pairs of MIME type and content."""
    source = "\n".join(f"display({{{kind!r}: {content!r}}}, raw=True)" for kind, content in now)
    outputs = [v4.new_output("display_data", {kind: content}) for kind, content in stored]
    return cell(source or "pass", *outputs, tags=tags)


def raising(exception, *, stored):
    return cell(f"raise {exception}", error(*stored), tags=["raises-exception"])


def moved(notation, step):
    stored, now = notation.format(83.0), notation.format(round(83 + step, 6))
    return printing(now, "tol-accuracy", stored=stored)


NOTATIONS = [
    *["{}", "{}%", "{} %", "{}/0.04", "0.96/{}", "|{}|", "| {} |", "acc:{}", "acc={}", "({})"],
    *["[95.1, {}]", "[{}, 96.2]", "95.1–{}", "**{} %**", "`{}`", "{},", "{}.", "{};", "{}s"],
    *["±{}", "+{}", "-{}", "−{}", "–{}", "5 of 12. Then {}."],
]
PNG, SVG, HTML, MARKDOWN = "image/png", "image/svg+xml", "text/html", "text/markdown"
FOOTER = """built     2026-11-30 05:12 UTC
Python    3.11.7
CPU       AMD EPYC
platform  Linux x86_64
threads   1
torch     2.13.0
memory    1210 MB at most
seconds   312.4"""
FOOTER_ELSEWHERE = """built     2027-01-02 17:40 UTC
Python    3.12.0rc1
CPU       Apple M2
platform  macOS arm64
threads   16
torch     2.14.0+cpu
memory    987 MB at most
seconds   9.8"""

ACCEPTED = {
    "the same text": printing("83.0 % of 2,000", stored="83.0 % of 2,000"),
    **{f"within tolerance as {n}": moved(n, ATOL / 2) for n in NOTATIONS},
    "exactly the tolerance": moved("{}", ATOL),
    "within tolerance with an exponent": printing(
        f"{1e-3 + ATOL / 2:e}", "tol-accuracy", stored="1e-3"
    ),
    "within tolerance and one digit wider": printing(
        f" {9.9 + ATOL / 2:.3f}", "tol-accuracy", stored="  9.9"
    ),
    "within tolerance across zero": printing(
        f"gap {ATOL / 4:+}", "tol-accuracy", stored=f"gap −{ATOL / 4}"
    ),
    "within tolerance in a sentence": displaying(
        [(MARKDOWN, f"It reads **{83 + ATOL / 2} %**.")],
        "tol-accuracy",
        stored=[(MARKDOWN, "It reads **83.0 %**.")],
    ),
    "within tolerance as a value": cell(
        f"{83 + ATOL / 2}",
        v4.new_output("execute_result", {"text/plain": "83.0"}, execution_count=1),
        tags=["tol-accuracy"],
    ),
    "the tags that change nothing": cell(
        "x = 1", tags=["export:reader", "fold", "solution", "prose"]
    ),
    "other pixels": displaying([(PNG, "bb")], stored=[(PNG, "aa")]),
    "another drawing": displaying([(SVG, "<svg>2</svg>")], stored=[(SVG, "<svg>1</svg>")]),
    "the stored exception": raising("ValueError('n < 1')", stored=("ValueError", "n < 1")),
    "the footer of another machine": printing(FOOTER_ELSEWHERE, "volatile", stored=FOOTER),
}

REFUSED = {
    **{
        f"beyond tolerance as {n}": (
            moved(n, 2 * ATOL),
            f"{2 * ATOL:g}); tol-accuracy allows {ATOL}",
        )
        for n in NOTATIONS
    },
    "another last digit, untagged": (
        printing("loss 0.8302", stored="loss 0.8301"),
        "0.8301 -> 0.8302 (+0.0001); compared exactly",
    ),
    "another integer": (
        printing("534,349", "tol-accuracy", stored="534,348"),
        "534,348 -> 534,349 (+1); compared exactly",
    ),
    "another whole percentage": (
        printing("84%", "tol-accuracy", stored="83%"),
        "83 -> 84 (+1); compared exactly",
    ),
    "another integer before a full stop": (
        printing("All 4.", "tol-accuracy", stored="All 3."),
        "3 -> 4 (+1); compared exactly",
    ),
    "another version": (
        printing("torch 2.13.1", "tol-accuracy", stored="torch 2.13.0"),
        "2.13.0 -> 2.13.1; compared exactly",
    ),
    "two shares of attention swapped": (
        printing("0.04  0.96  0.00", "tol-attention", stored="0.96  0.04  0.00"),
        "0.96 -> 0.04 (-0.92); tol-attention allows",
    ),
    "not a number": (printing("loss nan", "tol-accuracy", stored="loss 0.5"), "0.5 -> nan"),
    "an infinity": (printing("acc:inf", "tol-accuracy", stored="acc:0.5"), "0.5 -> inf"),
    "a missing line": (
        printing("one\nthree", stored="one\ntwo\nthree"),
        "stored  two\n  new     (no such line)",
    ),
    "an added line": (
        printing("one\ntwo\nthree", stored="one\nthree"),
        "stored  (no such line)\n  new     two",
    ),
    "another word": (
        printing("83.0 % less", "tol-accuracy", stored="83.0 % more"),
        "stored  83.0 % more\n  new     83.0 % less",
    ),
    "another word in the footer": (
        printing(FOOTER.replace("threads", "workers"), "volatile", stored=FOOTER),
        "stored  threads   1\n  new     workers   1",
    ),
    "a footer without its platform": (
        printing(FOOTER.replace("platform  Linux x86_64\n", ""), "volatile", stored=FOOTER),
        "stored  platform  Linux x86_64\n  new     (no such line)",
    ),
    "cleared outputs": (cell("print('one')"), "stdout: 0 stored, 1 new"),
    "one sentence of two": (
        displaying([(MARKDOWN, "one")], stored=[(MARKDOWN, "one"), (MARKDOWN, "two")]),
        "text/markdown: 2 stored, 1 new",
    ),
    "other HTML": (
        displaying([(HTML, "<b>83.1</b>")], "tol-accuracy", stored=[(HTML, "<b>83.0</b>")]),
        "stored  <b>83.0</b>\n  new     <b>83.1</b>",
    ),
    "a missing figure": (displaying([], stored=[(PNG, "aa")]), "image/png: 1 stored, 0 new"),
    "a figure of another kind": (
        displaying([(SVG, "<svg/>")], stored=[(PNG, "aa")]),
        "image/svg+xml: 0 stored, 1 new",
    ),
    "new stderr": (cell("import sys; print('careful', file=sys.stderr)"), "new     careful"),
    "an unknown magic": (cell("%no_such_magic"), "`%no_such_magic` not found"),
    "an exception": (cell("1 / 0"), "division by zero"),
    "no exception any more": (
        cell("pass", error("ValueError", "n < 1"), tags=["raises-exception"]),
        "error: 1 stored, 0 new",
    ),
    "another exception": (
        raising("TypeError('n < 1')", stored=("ValueError", "n < 1")),
        "stored  ValueError: n < 1\n  new     TypeError: n < 1",
    ),
    "an exception with another message": (
        raising("ValueError('n < 0')", stored=("ValueError", "n < 1")),
        "stored  ValueError: n < 1\n  new     ValueError: n < 0",
    ),
}

PROBLEMS = {
    "an unknown tag": (cell("a", tags=["hide"]), "cell 1 (a): unknown tag hide"),
    "an unknown tolerance": (
        cell("b", tags=["tol-acuracy"]),
        "cell 2 (b): unknown tag tol-acuracy, no table of tolerances.toml",
    ),
    "an unknown tag on text": (
        v4.new_markdown_cell("# c\nd", metadata={"tags": ["hide"]}),
        "markdown cell (# c): unknown tag hide",
    ),
    "two tolerances": (
        cell("d", tags=["tol-accuracy", "tol-attention"]),
        "cell 3 (d): more than one tolerance: tol-accuracy, tol-attention",
    ),
    "a tolerance where no number is compared": (
        cell("e", tags=["tol-accuracy", "volatile"]),
        "cell 4 (e): tol-accuracy on a volatile cell",
    ),
    "nbval's tag to skip a cell": (
        cell("f", tags=["nbval-skip"]),
        "cell 5 (f): unknown tag nbval-skip",
    ),
    "nbval's comment to skip a cell": (cell("g\n# NBVAL_SKIP"), "cell 6 (g): NBVAL_SKIP"),
    "nbval's comment to ignore output": (
        cell("h\n#NBVAL_IGNORE_OUTPUT"),
        "cell 7 (h): NBVAL_IGNORE_OUTPUT",
    ),
    "a cell never executed": (cell("i", executed=False), "cell 8 (i): never executed"),
    "a stored traceback": (cell("j", error("ValueError", "n < 1")), "cell 9 (j): stored traceback"),
    "an exception that was never raised": (
        cell("k", tags=["raises-exception"]),
        "cell 10 (k): raises-exception, but no stored traceback",
    ),
    "stored stderr": (cell("l", stream("careful", "stderr")), "cell 11 (l): stored stderr"),
}

LESSONS = {
    "accepted": list(ACCEPTED.values()),
    "refused": [case for case, _ in REFUSED.values()],
    "problems": [case for case, _ in PROBLEMS.values()],
    "dies": [cell("x = 1"), cell("import os\nos._exit(1)"), cell("x = 2")],
}


class Report:
    """What one run of the check said: a cell is found by its lesson and its number."""

    def __init__(self, status, path):
        self.status = status
        self.results = {
            (result.get("classname"), result.get("name")): result
            for result in ElementTree.parse(path).iter("testcase")
        }

    def cell(self, lesson, number):
        return self.results[f"{lesson}.ipynb", f"Cell {number}"]

    def passed(self, lesson, number):
        return len(self.cell(lesson, number)) == 0  # no failure, error or skip inside

    def said_of(self, lesson, number):
        return "".join(self.cell(lesson, number).itertext())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lessons")
    copy(ROOT / "pyproject.toml", folder)  # pytest takes its settings from beside the lessons
    for name, cells in LESSONS.items():
        nbformat.write(v4.new_notebook(cells=cells), folder / f"{name}.ipynb")
    options = {"PYTEST_ADDOPTS": f"--junit-xml={folder / 'report.xml'}"}
    command = ["make", "check", f"LESSONS={folder}"]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | options)
    return Report(run.returncode, folder / "report.xml")


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepts(report, case):
    number = list(ACCEPTED).index(case) + 1
    assert report.passed("accepted", number), report.said_of("accepted", number)


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_and_says_why(report, case):
    number, (_, why) = list(REFUSED).index(case) + 1, REFUSED[case]
    assert report.cell("refused", number).find("failure") is not None
    assert why in report.said_of("refused", number)


def test_names_lesson_cell_and_first_line(report):
    assert report.said_of("refused", 1).startswith("refused.ipynb, cell 1 (print(")


@pytest.mark.parametrize("case", PROBLEMS)
def test_refuses_to_start_and_says_why(report, case):
    _, why = PROBLEMS[case]
    assert f"problems.ipynb, {why}" in "".join(report.results["", "problems.ipynb"].itertext())


def test_a_kernel_that_dies_fails_within_seconds(report):
    assert report.said_of("dies", 2).strip() == "dies.ipynb, cell 2 (import os): the kernel died"
    assert float(report.cell("dies", 2).get("time")) < 10


def test_cells_after_a_kernel_died_are_reported_as_not_run(report):
    assert "not run: the kernel died at cell 2" in report.cell("dies", 3).find("skipped").get(
        "message"
    )


def test_a_refused_cell_fails_the_run(report):
    assert report.status != 0


@pytest.mark.parametrize("name", TOLERANCES)
def test_a_tolerance_says_where_it_comes_from(name):
    assert TOLERANCES[name].keys() == {"atol", "claim", "unit", "from"}


@pytest.mark.parametrize("name", TOLERANCES)
def test_a_tolerance_is_a_third_of_the_claim_at_most(name):
    assert TOLERANCES[name]["atol"] <= TOLERANCES[name]["claim"] / 3
