"""The commands, as a person types them."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

import lessons

PRETENDS = "import sys; sys.version_info = (3, 10); sys.version = '3.10.9 old'; exec(sys.argv[1])"
OLD_PYTHON = f'#!/bin/sh\nexec python3 -c "{PRETENDS}" "$2"\n'


@pytest.fixture
def folder(tmp_path):
    """A folder with the Makefile and nothing else."""
    shutil.copy(lessons.ROOT / "Makefile", tmp_path)
    return tmp_path


def make(folder, *arguments):
    command = ["make", "--no-print-directory", *arguments]  # which a make within make would print
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_make_alone_lists_every_target_with_what_it_does(folder):
    phony = re.search(r"^\.PHONY: help (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)
    listed = make(folder).stdout.splitlines()
    assert [line.split()[1] for line in listed] == phony[1].split()
    assert all(len(line.split()) > 4 for line in listed)


@pytest.fixture
def installed(folder):
    """The same with an environment in which everything is installed."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    for name in ("requirements.txt", "constraints.txt", ".venv/ready"):
        (folder / name).touch()
    assert "pip install" not in make(folder, "--dry-run", "run").stdout
    return folder


def python_of_old(path):
    path.unlink(missing_ok=True)
    path.write_text(OLD_PYTHON)
    path.chmod(0o755)
    return path


def test_an_old_python_is_refused_with_a_remedy_before_anything_is_made(folder):
    for name in ("requirements.txt", "constraints.txt"):
        (folder / name).touch()
    result = make(folder, "run", f"PYTHON={python_of_old(folder / 'old')}")
    assert result.returncode != 0
    assert "Python 3.11 or newer is needed, this is 3.10.9: make PYTHON=python3.11" in result.stderr
    assert not (folder / ".venv").exists()


def test_an_environment_of_an_old_python_is_refused_with_a_remedy(installed):
    python_of_old(installed / ".venv" / "bin" / "python")
    result = make(installed, "run")
    assert result.returncode != 0
    assert "this is 3.10.9: remove .venv and make PYTHON=python3.11" in result.stderr


def test_an_environment_whose_python_is_gone_is_made_anew(installed):
    (installed / ".venv" / "bin" / "python").unlink()
    (installed / ".venv" / "bin" / "python").symlink_to("/gone/python3.11")
    commands = make(installed, "--dry-run", "run").stdout
    assert "-m venv --clear .venv" in commands
    assert "pip install" in commands


def test_an_unknown_lesson_for_spread_is_an_error_that_lists_the_lessons():
    result = make(lessons.ROOT, "spread", "LESSON=99")
    assert result.returncode != 0
    assert "no lesson '99'; there are 01, 02" in result.stderr


def test_an_unknown_training_is_an_error_that_lists_those_that_are_there():
    result = make(lessons.ROOT, "train", "WHAT=typo")
    assert result.returncode != 0
    assert "no training 'typo'; there are reader, " in result.stderr


def test_continuous_integration_calls_make_test():
    assert (lessons.ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1] == "make test"
    assert "run: .ci/run" in (lessons.ROOT / ".github/workflows/ci.yml").read_text("utf-8")


def test_every_direct_dependency_is_pinned_has_a_reason_and_is_in_the_constraints():
    constraints = (lessons.ROOT / "constraints.txt").read_text("utf-8").splitlines()
    for line in (lessons.ROOT / "requirements.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            pin, _, reason = line.partition(" ")
            assert pin in constraints
            assert reason.strip(" #")


def test_the_constraints_name_versions_that_every_machine_can_install():
    constraints = (lessons.ROOT / "constraints.txt").read_text("utf-8")
    assert "+" not in constraints.replace("such as +cpu", "")
    assert "file:" not in constraints


@pytest.mark.parametrize("changed", ["requirements.txt", "constraints.txt"])
def test_packages_are_installed_again_once_the_list_of_them_has_changed(installed, changed):
    later = time.time() + 9
    os.utime(installed / changed, (later, later))
    assert "pip install" in make(installed, "--dry-run", "run").stdout
