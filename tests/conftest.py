"""What several test files use."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import lessons
import render

# What tests start must heed an interrupt, also where they run in the background of a script.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=lessons.lesson_paths(), ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return lessons.read(path)


@pytest.fixture
def code(notebook):
    return lessons.code_cells(notebook)


def displayed(data, **metadata):
    return new_code_cell("1", outputs=[new_output("display_data", data, metadata=metadata)])


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Render a lesson with these cells after its opening; return the folder of the site."""
    monkeypatch.setattr(render, "SITE", tmp_path / "site")

    def build(*cells, title="A lesson"):
        opening = new_markdown_cell(f"# {title}\n\n**Does it render?**\n\nTime: a minute.")
        headline = displayed({"text/markdown": "Yes."}, headline=True)
        footer = displayed({"text/plain": "built  2026-01-01 00:00 UTC"}, seconds=1)
        lesson = new_notebook(cells=[opening, *cells, headline, footer])
        nbformat.write(lesson, tmp_path / "01_a.ipynb")
        render.render_site([tmp_path / "01_a.ipynb"])
        return tmp_path / "site"

    return build


@pytest.fixture
def project(tmp_path):
    """The tools and templates of this project, without its lessons and data."""
    root = tmp_path / "a folder"
    for name in ("tools", "blog"):
        shutil.copytree(lessons.ROOT / name, root / name)
    shutil.copy(lessons.ROOT / "constraints.txt", root)
    (root / "notebooks").mkdir()
    return root


@pytest.fixture
def tiny_project(project):
    """The same with the code of lessons, and a tiny training in place of those of `make train`."""
    for module in ("_style.py", "_memory.py"):
        shutil.copy(lessons.ROOT / module, project)
    for module in lessons.NOTEBOOKS.glob("*.py"):
        shutil.copy(module, project / "notebooks")
    tools = project / "tools"
    shutil.copy(lessons.ROOT / "tests" / "tiny_job.py", tools)
    with (tools / "jobs.py").open("a") as jobs:
        jobs.write("import tiny_job as t\nJOBS = {'tiny': Job(t.training, t.score, t.test)}\n")
    checkpoints = (tools / "checkpoints.py").read_text()
    (tools / "checkpoints.py").write_text(checkpoints.replace("EVERY = 500", "EVERY = 5"))
    return project


@pytest.fixture
def launch():
    """Start a Python command in a folder; return the process. Ended with the test at the latest."""
    processes = []

    def launch(folder, paths, *command):
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield launch
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def port():
    """A port that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def previewed(project):
    """A copy of the first lesson, in a project of its own, without links to other lessons."""
    first = lessons.lesson_paths()[0]
    copy = project / "notebooks" / first.name
    copy.write_text(re.sub(r"\d\d_\w+\.ipynb", first.name, first.read_text("utf-8")), "utf-8")
    return copy


@pytest.fixture
def preview(project, previewed, launch, port):
    """`make preview`'s process."""
    return launch(project, [project / "tools"], "tools/preview.py", str(port))


@pytest.fixture
def start_training(tiny_project, launch, monkeypatch):
    """Start a command that trains in the tiny project; return the process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return partial(launch, tiny_project, [tiny_project, tiny_project / "notebooks"])


@pytest.fixture
def stop_and_go_on(tiny_project, start_training):
    """Interrupt a command at its first checkpoint, start it again; return what both have said."""

    def outputs_of(*command):
        slow, checkpoint = tiny_project / "slow", tiny_project / "_build" / "train" / "tiny.pt"
        slow.touch()
        process = start_training(*command)
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        stopped = "".join(process.communicate(timeout=300))
        slow.unlink()
        return stopped, "".join(start_training(*command).communicate(timeout=300))

    return outputs_of


@pytest.fixture(scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
