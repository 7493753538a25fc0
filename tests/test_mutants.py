"""`make mutants`: how faults are planted and judged; that each was caught; the fast ones, again."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import mutants
from lessons import ROOT
from mutants import Fault, cut, plant, tried
from warm import Warm

FAULTS = mutants.read_faults()

each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture(scope="module")
def run():
    with Warm() as run:
        yield run


# The faults of this project


def test_there_are_at_least_forty_faults():
    assert len(FAULTS) >= 40


@each_fault
def test_a_fault_has_its_place(fault, tmp_path):
    for name in filter(None, (fault.file, fault.content_of)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    plant(fault, tmp_path)
    assert (tmp_path / fault.file).read_bytes() != (ROOT / fault.file).read_bytes()
    if fault.until:
        cut(tmp_path / fault.caught_by, fault.until)


@each_fault
def test_what_catches_a_fault_is_there(fault):
    file, _, test = fault.caught_by.partition("::")
    text = (ROOT / file).read_text("utf-8")
    assert fault.until or f"def {test.partition('[')[0]}" in text


def test_each_fault_of_the_list_was_caught():
    report = (ROOT / "tests" / "mutants.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| `(.+)` \| `(\S+)::.+` \| \d+ \|$", report, re.MULTILINE)
    wanted = [(f.name, f.file, f.caught_by.partition("::")[0]) for f in FAULTS]
    assert rows == wanted, "`make mutants` tries them and writes the list"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.fast], ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault, run):
    assert tried(fault, run).verdict == "caught"


# How a fault is planted


def fault(**changes):
    common = {"name": "the sum is wrong", "file": "sums.py", "caught_by": "tests/test_sums.py"}
    return Fault(**common | changes)


@pytest.fixture
def folder(project, monkeypatch):
    """A project with a function, its test and the tools, under git."""
    (project / "tests").mkdir()
    (project / "sums.py").write_text("def total(a, b):\n    return a + b\n")
    (project / "other.py").write_text("def total(a, b):\n    return 3 * b // 2\n")
    (project / "tests" / "test_sums.py").write_text(
        "from sums import total\n\n\ndef test_a_total():\n    assert total(1, 2) == 3\n"
    )
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    monkeypatch.setattr(mutants, "ROOT", project)
    return project


@pytest.mark.parametrize(("old", "times"), [("a - b", 0), ("a", 3)])
def test_a_place_that_is_not_there_once_is_an_error_that_names_the_fault(folder, old, times):
    says = f"the sum is wrong: sums.py holds its old text {times} times, and must once"
    with pytest.raises(ValueError, match=says):
        plant(fault(old=old), folder)


def test_a_byte_is_flipped(folder):
    plant(fault(byte=2), folder)
    before, after = b"f", (folder / "sums.py").read_bytes()[2:3]
    assert after[0] == before[0] ^ 0xFF


def test_another_file_takes_the_place(folder):
    plant(fault(content_of="other.py"), folder)
    assert (folder / "sums.py").read_bytes() == (folder / "other.py").read_bytes()


# How it is judged


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("a * b", "caught"),
        ("b + a", "not caught"),
        ("a + c", "broken: NameError"),
        ("a +", "broken: collection failure"),
    ],
    ids=["a difference", "no difference", "a crash", "no Python"],
)
def test_a_fault_is_caught_when_a_test_sees_the_difference(folder, run, new, verdict):
    assert tried(fault(old="a + b", new=new), run).verdict.startswith(verdict)


@pytest.mark.parametrize(("says", "caught"), [("name 'c' is not", True), ("else", False)])
def test_a_fault_that_the_project_refuses_is_caught_by_what_it_says(folder, run, says, caught):
    refused = tried(fault(old="a + b", new="a + c", says=says), run)
    assert (refused.verdict == "caught") == caught


def test_a_check_that_fails_without_a_fault_proves_nothing(folder, run):
    (folder / "sums.py").write_text("def total(a, b):\n    return 0\n")
    with pytest.raises(ValueError, match="fails without a fault:\nassert 0 == 3"):
        mutants.refuse_unsound([fault()], run)


# The command

TABLES = """
["the sum is a product"]
file = "sums.py"
old = "a + b"
new = "a * b"
caught_by = "tests/test_sums.py"

["the sum is turned round"]
file = "sums.py"
old = "a + b"
new = "b + a"
caught_by = "tests/test_sums.py"
"""


@pytest.fixture
def command(folder, launch, tmp_path, monkeypatch):
    """The command in that project; its copies are made in the folder `copies`."""
    (folder / "tests" / "mutants.toml").write_text(TABLES)
    (tmp_path / "copies").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "copies"))
    return lambda *arguments: launch(folder, [], "tools/mutants.py", *arguments)


def test_survivors_are_named_stored_and_end_the_command_with_status_1(command, folder):
    process = command()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "1 of 2 faults were caught" in out
    report = (folder / "tests" / "mutants.md").read_text()
    assert "| the sum is a product | `sums.py` | `tests/test_sums.py::test_a_total` |" in report
    assert "| the sum is turned round | `sums.py` | **not caught** |" in report


def test_faults_can_be_chosen_and_what_was_found_of_others_is_kept(command, folder):
    kept = "| the sum is turned round | `sums.py` | **not caught** | 7 |\n"
    (folder / "tests" / "mutants.md").write_text(f"{kept}| one of old | `gone.py` | `x` | 1 |\n")
    process = command("product")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "1 of 1 faults were caught" in out
    *_, product, turned = (folder / "tests" / "mutants.md").read_text().splitlines(keepends=True)
    assert product.startswith("| the sum is a product |")
    assert turned == kept


def test_an_interrupt_leaves_nothing_behind(command, folder, tmp_path):
    waits = f"import time\nopen({str(tmp_path / 'begun')!r}, 'w')\ntime.sleep(300)\n"
    (folder / "sums.py").write_text(waits)
    process = command()
    while not (tmp_path / "begun").exists():
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert err == "Stopped. No copy is left behind; what was found is in tests/mutants.md.\n"
    assert list((tmp_path / "copies").iterdir()) == []
