"""`make run` on a small project where the machine makes it hard."""

import os
import shutil
import signal
import subprocess
import time

import nbformat
import pytest

import execute
import lessons
import tiny_lesson
from tiny_lesson import SLOW, lesson

LESSON = lesson("print('größer – × 3')")
LINES = 3 + 1  # a cell, and one at the end


@pytest.fixture
def ready(project):
    """The project with a lesson."""
    tiny_lesson.write(project, {"01_a": LESSON})
    return project


@pytest.fixture
def alone(ready):
    """A command that runs another as root of a namespace, after a script: alone(kind, script)."""

    def alone(kind, script):
        shell = [
            "unshare",
            "--map-root-user",
            kind,
            "sh",
            "-c",
            f'set -e; {script}; exec "$@"',
            "sh",
        ]
        if not shutil.which("unshare") or subprocess.run([*shell, "true"], cwd=ready).returncode:
            pytest.skip("no namespace can be made and set up here, as Linux's `unshare` does")
        return shell

    return alone


def finish(process):
    """The exit status of a process, and what it has said on both streams."""
    said = "".join(process.communicate(timeout=300))
    return process.returncode, said


def assert_done(project, status, said):
    """The page is there, and no word too many was said."""
    assert (status, len(said.splitlines())) == (0, LINES), said
    assert "größer – × 3" in (project / "_site" / "01_a.html").read_text("utf-8")


def test_it_needs_no_network(ready, alone):
    within = alone("--net", "ip link set lo up")
    assert_done(ready, *finish(tiny_lesson.start(ready, within)))


def test_it_writes_into_two_folders_alone(ready, alone):
    for name in ("_build", "_site"):
        (ready / name).mkdir()
    mounts = 'for f in . _build _site; do mount --bind "$PWD/$f" "$PWD/$f"; done'
    within = alone("--mount", f'{mounts}; mount -o remount,bind,ro "$PWD"; cd "$PWD"; test ! -w .')
    assert_done(ready, *finish(tiny_lesson.start(ready, within)))


def test_it_needs_no_home(ready):
    nowhere = os.environ | {"HOME": "/dev/null/home"}
    status, said = finish(tiny_lesson.start(ready, environment=nowhere))
    assert status == 0, said
    assert (ready / "_site" / "01_a.html").exists()


def test_folders_and_lessons_may_have_any_name_in_any_language(ready):
    folder = ready.rename(ready.with_name("Übung – „eins“"))
    (folder / "notebooks" / "01_a.ipynb").rename(folder / "notebooks" / "01_größer.ipynb")
    ascii_only = os.environ | {"LC_ALL": "C"}
    status, said = finish(tiny_lesson.start(folder, environment=ascii_only))
    assert (status, len(said.splitlines())) == (0, LINES), said
    assert "01_größer  cell 1 of 3" in said
    assert "größer – × 3" in (folder / "_site" / "01_größer.html").read_text("utf-8")


@pytest.mark.skipif(not shutil.which("taskset"), reason="Linux's `taskset` is needed")
def test_one_core_is_enough(ready):
    assert_done(ready, *finish(tiny_lesson.start(ready, ["taskset", "--cpu-list", "0"])))


def test_no_lesson_takes_more_memory_than_is_reckoned_with(path):
    assert float(lessons.summarise(path).facts["memory"].split()[0]) * 1e6 < execute.MEMORY


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Pretend a machine of 8 cores: machine(gigabytes, limit of its container)."""

    def machine(gigabytes, limit="max"):
        sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes * 10**9 // 4096}
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        monkeypatch.setattr(execute.os, "sysconf", sizes.get)
        monkeypatch.setattr(execute, "CONTAINER_LIMITS", [tmp_path / "memory.max", tmp_path / "no"])
        monkeypatch.setattr(execute, "CORES", 8)

    return machine


@pytest.mark.parametrize(("gigabytes", "kernels"), [(1, 1), (4, 1), (8, 2), (64, 8)])
def test_with_little_memory_fewer_lessons_run_at_once(machine, gigabytes, kernels):
    machine(gigabytes)
    assert execute.kernels_at_once() == kernels


def test_a_container_with_little_memory_runs_fewer_lessons_at_once(machine):
    machine(64, limit=7 * 10**9)
    assert execute.kernels_at_once() == 2


def test_two_at_once_do_what_one_does(ready):
    for process in [tiny_lesson.start(ready), tiny_lesson.start(ready)]:
        assert_done(ready, *finish(process))


def test_a_notebook_of_format_4_4_is_executed(ready):
    old = nbformat.from_dict(LESSON | {"nbformat_minor": 4})
    for cell in old.cells:
        del cell["id"]
    tiny_lesson.write(ready, {"01_a": old})
    assert_done(ready, *finish(tiny_lesson.start(ready)))


def test_after_a_kill_it_goes_on_with_what_is_missing(ready):
    tiny_lesson.write(ready, {"02_b": lesson(SLOW)})
    process = tiny_lesson.start(ready)
    while not (ready / "_build" / "01_a.ipynb").exists():
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    tiny_lesson.write(ready, {"02_b": LESSON})
    status, said = finish(tiny_lesson.start(ready))
    assert status == 0, said
    assert "01_a" not in said


def test_a_full_disk_is_named_without_a_traceback(ready, alone):
    (ready / "_site").mkdir()
    within = alone("--mount", 'mount -t tmpfs -o size=100k none "$PWD/_site"')
    status, said = finish(tiny_lesson.start(ready, within))
    assert status == 1
    assert said.splitlines()[-2] == "This failed:"
    assert said.endswith(".html cannot be written: No space left on device\n")
