"""`make mutants`: plant one fault after the other in copies of the project; do its tests notice?

The faults are in tests/mutants.toml, what found each of them is written to tests/mutants.md.
"""

import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree

import nbformat
from rich.console import Console
from rich.progress import track
from rich.table import Table

from files import write_atomically
from lessons import ROOT, read, tags
from warm import Warm

HEAD = """# Faults that the tests must find

Written by `make mutants`, last on {date}. It plants each fault of `mutants.toml` alone in a copy of
the project and runs what ought to notice. Here is the test, or the cell of a lesson, that failed.
Without a fault, all of them pass.

| fault | in | found by | seconds |
| --- | --- | --- | ---: |
"""
# What a test says that saw a difference, unlike one that could not do its work.
NOTICED = re.compile(
    r'^(failed on setup with ")?(AssertionError|assert )|^Failed: |: Cell outputs differ'
)
CHECK_LESSON = ["-p", "nbval.plugin", "-p", "nbval_numbers", "--nbval", "--nbval-current-env"]
REPORT = "report.xml"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to spoil the project: text replaced, a byte flipped, or another file's content."""

    name: str
    file: str
    caught_by: str  # a file of tests, a test in it, or a lesson, which is executed again
    old: str = ""  # must be there once; of a lesson, in the source of its cells
    new: str = ""
    byte: int | None = None
    content_of: str = ""
    until: str = ""  # of a lesson: what the last cell holds that is executed
    says: str = ""  # for faults that the project refuses in words, and not a test by comparison
    fast: bool = False  # in `make test`, too


class Outcome(NamedTuple):
    """How a check ended: what failed first, and why; both empty if nothing did."""

    test: str
    reason: str
    seconds: float


class Result(NamedTuple):
    fault: Fault
    verdict: str  # "caught", "not caught", or what went wrong instead
    outcome: Outcome

    @property
    def found_by(self):
        return f"{self.fault.caught_by.partition('::')[0]}::{self.outcome.test}"


def read_faults():
    tables = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text("utf-8"))
    return [Fault(name=name, **table) for name, table in tables.items()]


def copy_project(folder):
    """A copy of what git knows or would add, as it is in the working tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0")[:-1]:
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)  # with its time, or make would renew .venv
    (folder / ".venv").symlink_to(ROOT / ".venv")


def replaced(fault, texts):
    """The texts with the fault in one of them. Raises ValueError unless there is one place."""
    places = sum(text.count(fault.old) for text in texts)
    if places != 1:
        raise ValueError(
            f"{fault.name}: {fault.file} holds its old text {places} times, and must once: "
            "mend tests/mutants.toml"
        )
    return [text.replace(fault.old, fault.new) for text in texts]


def plant(fault, folder):
    """Put a fault into a copy of the project; return the modules that its cell is exported to."""
    path = folder / fault.file
    if fault.content_of:
        shutil.copy(folder / fault.content_of, path)
    elif fault.byte is not None:
        content = bytearray(path.read_bytes())
        content[fault.byte] ^= 0xFF
        path.write_bytes(content)
    elif path.suffix == ".ipynb":
        notebook = read(path)
        sources = replaced(fault, [cell.source for cell in notebook.cells])
        changed = [cell for cell in notebook.cells if fault.old in cell.source]
        for cell, source in zip(notebook.cells, sources, strict=True):
            cell.source = source
        nbformat.write(notebook, path)
        return [tag for tag in tags(changed[0]) if tag.startswith("export:")]
    else:
        path.write_text(*replaced(fault, [path.read_text("utf-8")]), "utf-8")
    return []


def cut(lesson, until):
    """Leave out what comes after the first cell that holds this text."""
    notebook = read(lesson)
    holding = [number for number, cell in enumerate(notebook.cells) if until in cell.source]
    if not holding:
        raise ValueError(f"{lesson.name} has no cell with {until!r}: mend tests/mutants.toml")
    notebook.cells = notebook.cells[: holding[0] + 1]
    nbformat.write(notebook, lesson)


def first_failure(report):
    """The name of the test, or the cell, that failed first, and what it said."""
    for case in ElementTree.parse(report).iter("testcase"):
        for problem in (*case.findall("failure"), *case.findall("error")):
            return case.get("name").partition("[")[0], f"{problem.get('message')}\n{problem.text}"
    return "", ""


def outcome(folder, run, checks, until=""):
    """Run tests, or a lesson, in a copy of the project, up to the first failure."""
    options = ["-x", "-q", "--disable-plugin-autoload", f"--junitxml={folder / REPORT}"]
    if until:
        cut(folder / checks[0], until)
        options += CHECK_LESSON
    start = time.monotonic()
    status, printed = run(folder, ["tests"], "pytest", *options, *checks)
    test, said = first_failure(folder / REPORT) if (folder / REPORT).exists() else ("", "")
    return Outcome(test, said or printed if status else "", time.monotonic() - start)


def judged(fault, found):
    """The verdict on a check's outcome: a test must have failed, and for the right reason."""
    if not found.reason:
        return "not caught"
    message = found.reason.partition("\n")[0]
    if fault.says in found.reason if fault.says else NOTICED.search(message):
        return "caught"
    return f"broken: {message}"


def tried(fault, run):
    """The `Result` of a fault in a fresh copy of the project."""
    with TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        copy_project(folder)
        exported = plant(fault, folder)
        shutil.copystat(ROOT / fault.file, folder / fault.file)
        if exported:
            status, printed = run(folder, ["tools"], "tools/export.py")
            if status:
                raise ValueError(f"{fault.name}: no module can be made of its cell:\n{printed}")
        found = outcome(folder, run, [fault.caught_by], fault.until)
    return Result(fault, judged(fault, found), found)


def refuse_unsound(faults, run):
    """Raise ValueError for checks that fail without any fault: they would prove nothing."""
    tests = list(dict.fromkeys(fault.caught_by for fault in faults if not fault.until))
    lessons = dict.fromkeys((fault.caught_by, fault.until) for fault in faults if fault.until)
    checks = [(tests, "")] * bool(tests) + [([lesson], until) for lesson, until in lessons]
    for check in track(checks, description="without a fault"):
        with TemporaryDirectory(prefix="mutant-") as name:
            copy_project(Path(name))
            found = outcome(Path(name), run, *check)
        if found.reason:
            raise ValueError(f"{found.test or check[0]} fails without a fault:\n{found.reason}")


def table_of(results):
    table = Table("fault", "found by", "seconds")
    for result in results:
        caught = result.verdict == "caught"
        shown = result.found_by if caught else result.verdict
        seconds = f"{result.outcome.seconds:.0f}"
        table.add_row(result.fault.name, shown, seconds, style="" if caught else "red")
    return table


def row(result):
    shown = f"`{result.found_by}`" if result.verdict == "caught" else f"**{result.verdict}**"
    fault, seconds = result.fault, result.outcome.seconds
    return f"| {fault.name} | `{fault.file}` | {shown} | {seconds:.0f} |\n"


def store(results, faults):
    """Write these results into the list; those of other faults that it holds are kept."""
    path = ROOT / "tests" / "mutants.md"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines}
    rows |= {result.fault.name: row(result) for result in results}
    head = HEAD.format(date=f"{datetime.now(UTC):%Y-%m-%d}")
    known = [rows[fault.name] for fault in faults if fault.name in rows]
    write_atomically(path, head + "".join(known))


def main(chosen):
    """Try the faults whose name holds this text, and store what is found."""
    every = read_faults()
    faults = [fault for fault in every if chosen in fault.name]
    results = []
    with Warm() as run:
        refuse_unsound(faults, run)
        for fault in track(faults, description="with a fault"):
            results.append(tried(fault, run))
            store(results, every)
    Console().print(table_of(results))
    survivors = sum(result.verdict != "caught" for result in results)
    print(f"{len(results) - survivors} of {len(results)} faults were caught")
    return survivors > 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(" ".join(sys.argv[1:])))
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped. No copy is left behind; what was found is in tests/mutants.md.")
