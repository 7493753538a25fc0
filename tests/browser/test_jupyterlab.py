"""An explorer in JupyterLab, after its cell has been run."""

import os
import re
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import lessons
from in_browser import complaints

TOKEN = "reading"
CELL = """
import sys

sys.path[:0] = {paths}
import _explorer
import digits
import stopping

reader = stopping.build()
data = digits.load()
test = digits.scatter(data.x_test, data.y_test, n=1, seed=2)
images, labels = (255 * test.images).round().byte(), test.labels.byte()
stored = {{"numbers": images, "labels": labels, "hard": images, "hardLabels": labels}}
_explorer.show("live-reader", reader.state_dict() | stored)
"""


PATHS = [str(lessons.ROOT), str(lessons.NOTEBOOKS)]
WHOLE = [
    f"import sys\n\nsys.path[:0] = {PATHS}\nimport torch\n\nimport _style\nimport digits",
    "torch.set_num_threads(1)\n_style.start()\nink = digits.load().x_train.sum() / 255",
    "torch.manual_seed(0)\nprint(torch.randn(9, 9) @ torch.randn(9, 9))",
    "_style.table(['digits', 'ink'], [['all', f'{ink:,.0f}']], 1, 'All the ink.')",
    "_style.prose(f'There are {ink:,.0f} pixels of ink.')",
    "print('the end')",
]


def notebook_of(*cells):
    notebook = new_notebook(cells=list(cells))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return notebook


@pytest.fixture
def lab(tmp_path):
    """Address of a JupyterLab that serves three notebooks and nothing else: lab(name)."""
    fresh = new_code_cell(CELL.format(paths=PATHS))
    lesson = lessons.read(lessons.NOTEBOOKS / "05_knowing_when_to_stop.ipynb")
    stored = next(c for c in lessons.code_cells(lesson) if "_explorer.show" in c.source)
    whole = map(new_code_cell, WHOLE)
    for name, cells in (("fresh", [fresh]), ("stored", [stored]), ("whole", whole)):
        nbformat.write(notebook_of(*cells), tmp_path / f"{name}.ipynb")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0"]
    command += ["--ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"]
    homes = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "RUNTIME")}
    said = tmp_path / "said.txt"
    with (
        said.open("w") as stderr,
        subprocess.Popen(command, cwd=tmp_path, env=os.environ | homes, stderr=stderr) as server,
    ):
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/lab", said.read_text())):
            assert server.poll() is None, said.read_text()
            time.sleep(0.2)
        yield lambda name: f"{found[0]}/tree/{name}.ipynb?token={TOKEN}"
        server.kill()  # its kernels end with it


def test_an_explorer_works_once_its_cell_has_run(lab, new_page):
    page = new_page()
    said = complaints(page)
    page.goto(lab("fresh"))
    page.set_default_timeout(90_000)
    cell = page.locator(".jp-CodeCell .cm-content").first
    cell.click()
    page.keyboard.press("Shift+Enter")
    answer = page.locator("live-reader .answer")
    answer.filter(has_text="the reader writes").wait_for()
    page.locator("live-reader").get_by_role("button", name="Clear").click()
    page.locator("live-reader .message", has_text="draw a number").wait_for()
    assert [text for text in said if "explorer" in text or "live-reader" in text] == []


def test_in_a_notebook_that_is_not_trusted_a_figure_and_a_table_stand_in_its_place(lab, new_page):
    page = new_page()
    page.set_default_timeout(90_000)
    page.goto(lab("stored"))
    outputs = page.locator(".jp-OutputArea")
    outputs.locator("img").wait_for()
    assert "looks at, pixels from the left" in outputs.text_content()
    assert page.locator("live-reader").count() == 0


def test_what_run_all_gives_passes_the_check(lab, new_page, tmp_path):
    page = new_page()
    page.set_default_timeout(90_000)
    page.goto(lab("whole"))
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".jp-OutputArea-output", has_text="the end").wait_for()
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.keyboard.press("Control+s")
    path = tmp_path / "whole.ipynb"
    assert lessons.read(path).cells[-1].outputs
    check = ["-m", "pytest", "-q", "-p", "nbval_numbers", "--nbval", "--nbval-current-env"]
    checked = subprocess.run(
        [sys.executable, *check, str(path)],
        env=os.environ | {"PYTHONPATH": str(lessons.ROOT / "tests")},
        capture_output=True,
        text=True,
    )
    assert f"{len(WHOLE)} passed" in checked.stdout, checked.stdout
