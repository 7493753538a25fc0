"""`make update`: the author's way to refresh what is stored, of one lesson or of all.

Executes the lessons, stores their outputs in notebooks/, and writes what the README takes from
them: the table of lessons, and a figure.
"""

import argparse
import base64
import sys

import nbformat

from files import write_atomically
from lessons import NOTEBOOKS, ROOT, chosen, code_cells, lesson_paths, read, summarise
from readme import README, with_part
from run import execute_lessons, exit_with

BEGIN, END = "<!-- lessons: written by make update -->\n", "<!-- end of lessons -->\n"
PICTURE = ROOT / "blog" / "attention.png"
PICTURE_IN = "02_three_digit_reader"
PICTURE_CAPTION = "Where each token looks"


def lessons_table(summaries):
    rows = ["| lesson | question | what it found |", "|---|---|---|"]
    for lesson in summaries:
        link = f"[{lesson.name[:2]}. {lesson.title}](notebooks/{lesson.name}.ipynb)"
        rows.append(f"| {link} | {lesson.question} | {lesson.headline} |")
    minutes = sum(lesson.seconds for lesson in summaries) / 60
    return "\n".join([*rows, "", f"One core runs all of them in {minutes:.0f} minutes.", ""])


def with_lessons(readme, summaries):
    """The README's text with the part between the two marks written anew."""
    return with_part(readme, BEGIN, END, lessons_table(summaries))


def picture(notebook):
    """The PNG of the figure that the README shows."""
    for cell in code_cells(notebook):
        texts = [output.get("data", {}).get("text/markdown", "") for output in cell.outputs]
        if any(PICTURE_CAPTION in text for text in texts):
            return base64.b64decode(cell.outputs[0].data["image/png"])
    raise ValueError(f"{PICTURE_IN} has no figure captioned {PICTURE_CAPTION!r}")


def store(copies):
    """Put executed lessons into notebooks/, and what the README takes from all into it."""
    for copy in copies:
        notebook = read(copy)
        del notebook.metadata["fingerprint"]
        write_atomically(NOTEBOOKS / copy.name, nbformat.writes(notebook) + "\n")
    summaries = [summarise(path) for path in lesson_paths()]
    write_atomically(README, with_lessons(README.read_text("utf-8"), summaries))
    write_atomically(PICTURE, picture(read(NOTEBOOKS / f"{PICTURE_IN}.ipynb")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lesson", nargs="?", default="", help="its number, such as 02; all if none")
    try:
        copies, failures = execute_lessons(chosen(parser.parse_args().lesson))
        exit_with(failures)
        store(copies)
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped. No lesson was changed; the next `make update` goes on from here.")
    print(f"stored {len(copies)} lessons, updated README.md and {PICTURE.name}")
