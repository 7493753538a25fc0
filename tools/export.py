"""Write the modules that lessons hand to each other from their `export:NAME` cells."""

import ast
import subprocess
import sys
from collections import defaultdict

from files import write_atomically
from lessons import NOTEBOOKS, ROOT, lesson_paths, read, tags


def exported_cells():
    """{module: [(lesson, source), ...]} of all tagged cells, in reading order."""
    modules = defaultdict(list)
    for path in lesson_paths():
        for cell in read(path).cells:
            for tag in tags(cell):
                if tag.startswith("export:"):
                    modules[tag.removeprefix("export:")].append((path.stem, cell.source))
    return modules


def split_imports(source):
    """The import statements at the top level of a cell, and the rest of it, as text."""
    lines = source.splitlines()
    imports = []
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.insert(0, "\n".join(lines[node.lineno - 1 : node.end_lineno]))
            del lines[node.lineno - 1 : node.end_lineno]
    return imports, "\n".join(lines).strip()


def formatted(source, name):
    """The source as ruff sorts and lays it out."""
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", f"{name}.py", "-"]
        source = subprocess.run(
            ruff, input=source, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return source


def module_source(name, cells):
    """The text of notebooks/NAME.py."""
    imports, bodies = [], []
    for _, source in cells:
        cell_imports, body = split_imports(source)
        imports += cell_imports
        bodies.append(body)
    lessons = "\n".join(f"    {lesson}.ipynb" for lesson in dict.fromkeys(c[0] for c in cells))
    header = (
        f'"""Exported by `make export` from the lessons that teach it; edit them, not this file.'
        f'\n\n{lessons}\n"""'
    )
    return formatted("\n\n\n".join([header, "\n".join(imports), *bodies]), name)


if __name__ == "__main__":
    for name, cells in exported_cells().items():
        path = NOTEBOOKS / f"{name}.py"
        write_atomically(path, module_source(name, cells))
        print(f"wrote {path.relative_to(ROOT)} from {len(cells)} cells")
