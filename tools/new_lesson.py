"""`make lesson NAME=10_my_question`: a lesson to write over, which keeps to all that is checked."""

import re
import sys

import nbformat

from files import write_atomically
from lessons import NOTEBOOKS, ROOT, lesson_paths, read

PATTERN = ROOT / "tools" / "new_lesson.ipynb"
NAME = re.compile(r"(\d\d)((?:_[a-z0-9]+)+)")


def new_lesson(name):
    """Write notebooks/NAME.ipynb and return its path.

    Raises ValueError for a name of another form, or a number that is taken.
    """
    if not (parts := NAME.fullmatch(name)):
        raise ValueError(f"NAME is {name!r}: use two digits and words, such as 10_my_question")
    number, words = parts.groups()
    taken = [path.name for path in lesson_paths() if path.name.startswith(number)]
    if taken:
        raise ValueError(f"{number} is taken by {taken[0]}: choose another number")
    notebook = read(PATTERN)
    opening = notebook.cells[0]
    opening.source = opening.source.replace("TITLE", words.replace("_", " ").strip().capitalize())
    path = NOTEBOOKS / f"{name}.ipynb"
    write_atomically(path, nbformat.writes(notebook) + "\n")
    return path


if __name__ == "__main__":
    try:
        path = new_lesson(sys.argv[1])
    except ValueError as error:
        sys.exit(str(error))
    print(f"wrote {path.relative_to(ROOT)}; next: `make lab`, `make update LESSON={path.name[:2]}`")
