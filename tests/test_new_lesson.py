"""`make lesson` and CONTRIBUTING.md: from an idea to a page."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest

import checks
import lessons
import new_lesson

NAME = "10_my_question"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in place of notebooks/."""
    monkeypatch.setattr(new_lesson, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(lessons, "NOTEBOOKS", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_new_lesson_has_the_title_of_its_name():
    notebook = lessons.read(new_lesson.new_lesson(NAME))
    assert notebook.cells[0].source.startswith("# My question\n\n**")


@pytest.mark.parametrize("name", ["", "my_question", "10", "1_a", "10 a", "10_A", "../10_a"])
def test_a_name_of_another_form_is_refused_with_an_example(folder, name):
    with pytest.raises(ValueError, match="use two digits and words, such as 10_my_question"):
        new_lesson.new_lesson(name)
    assert list(folder.iterdir()) == []


def test_a_number_that_is_taken_is_refused_and_what_is_there_stays(folder):
    (folder / "10_another.ipynb").write_text("precious")
    with pytest.raises(ValueError, match=r"10 is taken by 10_another\.ipynb"):
        new_lesson.new_lesson(NAME)
    assert (folder / "10_another.ipynb").read_text() == "precious"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A new lesson as `make run` executes and renders it, in a project that has no other."""
    root = tmp_path_factory.mktemp("project")
    for name in ("tools", "blog", "tests"):
        shutil.copytree(lessons.ROOT / name, root / name)
    for name in ("constraints.txt", "pyproject.toml", "_style.py", "_memory.py"):
        shutil.copy(lessons.ROOT / name, root)
    for folder, pattern in (("notebooks", "*.py"), ("data", "mnist.npz")):
        (root / folder).mkdir()
        for path in (lessons.ROOT / folder).glob(pattern):
            shutil.copy(path, root / folder)
    for command in (["new_lesson.py", NAME], ["run.py"]):
        subprocess.run([sys.executable, f"tools/{command[0]}", *command[1:]], cwd=root, check=True)
    notebook = lessons.read(root / "_build" / f"{NAME}.ipynb")
    del notebook.metadata["fingerprint"]
    nbformat.write(notebook, root / "notebooks" / f"{NAME}.ipynb")
    return root


def test_a_new_lesson_becomes_a_page(executed):
    page = (executed / "_site" / f"{NAME}.html").read_text("utf-8")
    assert "Which digit takes the most ink?" in page
    assert "times the ink of a" in page


def test_the_text_of_a_new_lesson_passes_the_checks_of_the_build(executed):
    assert checks.text_problems(lessons.read(executed / "notebooks" / f"{NAME}.ipynb")) == []


@pytest.mark.parametrize("check", [["tests/test_lessons.py"], ["--nbval", "-p", "nbval_numbers"]])
def test_a_new_lesson_keeps_to_all_that_is_checked(executed, check):
    lesson = [] if "tests" in check[0] else ["--nbval-current-env", f"notebooks/{NAME}.ipynb"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *check, *lesson],
        cwd=executed,
        env=os.environ | {"PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout
