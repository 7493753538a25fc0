"""The modules that lessons hand to each other are what the lessons say, and do nothing else."""

import ast
import subprocess
import sys
from shutil import copy, copytree, ignore_patterns
from symtable import symtable

import nbformat
import pytest
from nbformat import v4

import lessons
from export import exported_cells, module_source
from lessons import NOTEBOOKS, ROOT, code_cells, lesson_paths, read

MODULES = exported_cells()
LESSONS = {path.stem: read(path) for path in lesson_paths()}
LIBRARIES = {"matplotlib", "numpy", "torch"}
BY_HAND = {"_arch", "_explorer", "_style", "digits", "grammar", "results", "weights"}

each_module = pytest.mark.parametrize("name", MODULES)
each_lesson = pytest.mark.parametrize("lesson", LESSONS)


def module(name):
    return (NOTEBOOKS / f"{name}.py").read_text("utf-8")


# The modules in the repository


@each_module
def test_a_module_is_what_the_tagged_cells_give(name):
    expected = module_source(name, MODULES[name])
    assert module(name) == expected, f"notebooks/{name}.py differs from its cells: `make export`"


def test_every_module_that_calls_itself_exported_has_cells():
    modules = [path for path in NOTEBOOKS.glob("*.py") if "by `make export`" in path.read_text()]
    assert {path.stem for path in modules} == MODULES.keys()


@each_module
def test_an_edited_cell_is_noticed_wherever_it_is(name):
    cells = MODULES[name]
    for i, (lesson, source) in enumerate(cells):
        edited = [*cells[:i], (lesson, source + "\n# why"), *cells[i + 1 :]]
        assert module_source(name, edited) != module(name)


@each_module
def test_a_module_names_the_lessons_that_teach_it(name):
    header = ast.get_docstring(ast.parse(module(name)))
    named = [line for line in header.splitlines() if line.endswith(".ipynb")]
    assert named == sorted({f"{lesson}.ipynb" for lesson, _ in MODULES[name]})


@each_module
def test_a_module_only_imports_and_defines(name):
    _docstring, *statements = ast.parse(module(name)).body
    definitions = ast.Import | ast.ImportFrom | ast.Assign | ast.FunctionDef | ast.ClassDef
    assert [ast.unparse(s) for s in statements if not isinstance(s, definitions)] == []


@each_module
def test_importing_a_module_prints_nothing_draws_nothing_and_needs_no_data(name, tmp_path):
    for path in NOTEBOOKS.glob("*.py"):
        copy(path, tmp_path)
    code = (
        "import torch; before = torch.get_rng_state(); "
        f"import {name}; assert torch.equal(torch.get_rng_state(), before)"
    )
    command = [sys.executable, "-E", "-c", code]  # -E: no PYTHONPATH, so the folder is all it has
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


# Who may import whom


def imports(source):
    """(module, names) of each import statement; no names where the module itself is imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, [alias.name for alias in node.names]


def imports_of_lesson(lesson):
    return [found for cell in code_cells(LESSONS[lesson]) for found in imports(cell.source)]


def roots(found):
    return {module.partition(".")[0] for module, _ in found} - sys.stdlib_module_names


@each_module
def test_a_module_imports_libraries_the_digits_and_modules_of_earlier_lessons_alone(name):
    taught = {module: [lesson for lesson, _ in cells] for module, cells in MODULES.items()}
    earlier = {other for other in MODULES if max(taught[other]) < min(taught[name])}
    assert roots(imports(module(name))) <= LIBRARIES | {"digits"} | earlier


@each_lesson
def test_a_lesson_imports_libraries_the_helpers_and_exported_modules_alone(lesson):
    assert roots(imports_of_lesson(lesson)) <= LIBRARIES | BY_HAND | MODULES.keys()


@each_lesson
def test_a_lesson_imports_only_what_earlier_lessons_export(lesson):
    for name, names in imports_of_lesson(lesson):
        if name in MODULES:
            earlier = "\n".join(source for taught, source in MODULES[name] if taught < lesson)
            symbols = symtable(earlier, lesson, "exec").get_symbols()
            assert names, f"import what is needed from {name} by name"
            assert set(names) <= {s.get_name() for s in symbols if s.is_assigned()}


# How a module is made


CELLS = [
    ("01_first", "from torch import nn\nimport torch\n\nONE = 1"),
    ("01_first", "def f():\n    import math\n    return math.pi"),
    (
        "02_second",
        "import torch\nfrom pathlib import (\n  Path,\n)\n\n\nclass G(nn.Module):\n  x = 2",
    ),
]


def test_imports_are_hoisted_and_sorted_and_said_once():
    body = module_source("made", CELLS).partition('\n"""\n\n')[2]
    assert body.startswith(
        "from pathlib import (\n    Path,\n)\n\nimport torch\nfrom torch import nn\n\nONE = 1\n"
    )


def test_an_import_inside_a_function_stays_there():
    assert "def f():\n    import math\n" in module_source("made", CELLS)


def test_cells_follow_each_other_as_the_formatter_lays_them_out():
    source = module_source("made", CELLS)
    assert source.endswith("return math.pi\n\n\nclass G(nn.Module):\n    x = 2\n")


def test_a_cell_of_imports_alone_leaves_no_gap():
    imports = [("01_first", "import torch"), ("01_first", "ONE = 1")]
    assert module_source("made", imports).endswith("import torch\n\nONE = 1\n")


def test_the_header_names_each_lesson_once_in_reading_order():
    header = module_source("made", CELLS).partition('"""\n\n')[0]
    assert header.endswith("\n\n01_first.ipynb\n02_second.ipynb\n")


def cell(source, *tags):
    return v4.new_code_cell(source, metadata={"tags": list(tags)})


def test_tagged_cells_are_taken_by_module_in_reading_order(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "NOTEBOOKS", tmp_path)
    cells = {
        "02_second": [cell("c = 3", "export:reader", "fold"), cell("shown", "fold")],
        "01_first": [cell("a = 1", "export:reader"), cell("b = 2", "export:seq2seq"), cell("x")],
        "notes": [cell("d = 4", "export:reader")],
    }
    for name, content in cells.items():
        nbformat.write(v4.new_notebook(cells=content), tmp_path / f"{name}.ipynb")
    assert exported_cells() == {
        "reader": [("01_first", "a = 1"), ("02_second", "c = 3")],
        "seq2seq": [("01_first", "b = 2")],
    }


# The command


@pytest.fixture
def project(tmp_path):
    """A copy of what `make export` reads, free to be edited."""
    folder = tmp_path / "a project"
    for name in ("notebooks", "tools"):
        copytree(ROOT / name, folder / name, ignore=ignore_patterns("__pycache__", ".*"))
    copy(ROOT / "pyproject.toml", folder)
    return folder


def test_make_export_brings_an_edited_cell_into_its_module_alone_and_says_so(project):
    modules = {path.stem: path for path in project.glob("notebooks/*.py")}
    before = {name: path.read_text() for name, path in modules.items()}
    path = project / "notebooks" / f"{MODULES['reader'][0][0]}.ipynb"
    notebook = read(path)
    exported = next(c for c in notebook.cells if "export:reader" in lessons.tags(c))
    exported.source += "\n\nEDITED = True"
    nbformat.write(notebook, path)

    command = [sys.executable, "tools/export.py"]
    said = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout

    changed = {name for name, path in modules.items() if path.read_text() != before[name]}
    assert changed == {"reader"}
    assert "\nEDITED = True\n" in modules["reader"].read_text()
    assert f"wrote notebooks/reader.py from {len(MODULES['reader'])} cells\n" in said
