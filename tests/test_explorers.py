"""Explorers on their way from a cell to a page."""

import base64
import re
import subprocess
from collections import Counter

import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output
from safetensors.torch import load

import _explorer
import checks
import explorers
import lessons
from explorers import take_explorers

NODE = lessons.ROOT / ".venv" / "bin" / "node"
EXPLORERS = [path.stem for path in _explorer.FOLDER.glob("*-*.js")]
TENSORS = {"weights": torch.tensor([0.1, 2.0]), "image": torch.tensor([0, 255], dtype=torch.uint8)}


@pytest.fixture
def displayed(monkeypatch):
    """What _explorer has displayed: (data, metadata)."""
    shown = []
    monkeypatch.setattr(
        _explorer, "display", lambda data, metadata, raw: shown.append((data, metadata))
    )
    return shown


@pytest.fixture
def html(displayed):
    """The HTML of an explorer with an attribute."""
    _explorer.show("live-reader", TENSORS, digits='3 "7"')
    return displayed[0][0]["text/html"]


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_bundle_is_a_script_without_imports(name, tmp_path):
    script = tmp_path / "bundle.cjs"
    script.write_text(_explorer.bundle(name), "utf-8")
    subprocess.run([NODE, "--check", script], check=True)
    assert not re.search(r"^(import|export) ", script.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_page_has_the_script_that_a_lesson_has(name):
    assert explorers.bundle(name) == _explorer.bundle(name)


@pytest.mark.parametrize("name", EXPLORERS)
def test_no_two_files_of_a_bundle_name_anything_alike(name):
    names = re.findall(r"^(?:const|let|class|function\*?) (\w+)", _explorer.bundle(name), re.M)
    assert len(names) > 10
    assert not [found for found, times in Counter(names).items() if times > 1]


def test_floats_travel_as_float16_and_bytes_as_they_are(html):
    weights = re.search(r'data-weights="live-reader">([^<]*)<', html)[1]
    tensors = load(base64.b64decode(weights))
    assert torch.equal(tensors["weights"], TENSORS["weights"].half())
    assert torch.equal(tensors["image"], TENSORS["image"])


def test_attributes_are_escaped(html):
    assert html.startswith('<live-reader digits="3 &quot;7&quot;"></live-reader>')


def test_an_explorer_that_does_not_exist_is_refused(displayed):
    with pytest.raises(ValueError, match="no explorer 'dead-reader'"):
        _explorer.show("dead-reader", TENSORS)
    assert displayed == []


def cell_with(html, *more):
    output = new_output("display_data", {"text/html": html}, metadata={"explorer": "live-reader"})
    return new_notebook(cells=[new_code_cell("show()", outputs=[output, *more])])


def test_weights_and_code_are_taken_out_of_the_text(html):
    notebook = cell_with(html, new_output("stream", text="a table"))
    scripts, problems = take_explorers(notebook)
    assert scripts["live-reader"].html(inline=True) == html.partition("\n")[2]
    assert problems == []
    assert notebook.cells[0].metadata["explorer"]["start"].startswith("<live-reader digits=")
    assert [output.text for output in notebook.cells[0].outputs] == ["a table"]


def test_an_explorer_without_anything_for_readers_without_scripts_is_a_fault(html):
    _, problems = take_explorers(cell_with(html))
    assert problems == ["no figure or table stands for live-reader where no script runs"]


def test_an_explorer_may_be_larger_than_what_else_is_printed(html):
    large = html + "A" * checks.LARGEST_OUTPUT
    assert checks.text_problems(cell_with(large)) == []


def stored_explorers():
    """{name: HTML} of the explorers that the lessons have stored."""
    return {
        output.metadata["explorer"]: output.data["text/html"]
        for path in lessons.lesson_paths()
        for cell in lessons.code_cells(lessons.read(path))
        for output in cell.outputs
        if "explorer" in output.get("metadata", {})
    }


def test_lessons_hold_every_explorer_as_it_is_now():
    stored = stored_explorers()
    assert sorted(stored) == sorted(EXPLORERS) != []
    old = [name for name, html in stored.items() if _explorer.bundle(name) not in html]
    assert not old, "the lessons hold earlier explorers: run `make update`"
