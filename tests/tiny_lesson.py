"""Lessons that take a moment, and `make run`'s command to execute them."""

import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HEADLINE = "display({'text/markdown': 'All is well.'}, metadata={'headline': True}, raw=True)"
FACTS = "built  2026-01-01 00:00 UTC"
FOOTER = f"display({{'text/plain': '{FACTS}'}}, metadata={{'seconds': 1}}, raw=True)"
SLOW = "import time\ntime.sleep(60)"


def lesson(*sources):
    opening = new_markdown_cell("# A lesson\n\n**Does it run?**\n\nTime: a second.")
    cells = [new_code_cell(source) for source in (*sources, HEADLINE, FOOTER)]
    return new_notebook(cells=[opening, *cells])


def write(project, notebooks):
    """Write notebooks, {name: notebook}, into a project."""
    for name, notebook in notebooks.items():
        nbformat.write(notebook, project / "notebooks" / f"{name}.ipynb")


def start(project, within=(), environment=None):
    """Start the command and return its process.

    within: a command that runs another, which stands after it. environment replaces that of the
    tests.
    """
    return subprocess.Popen(
        [*within, sys.executable, "tools/run.py"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
