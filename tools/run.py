"""`make run`: execute every lesson on a copy under _build/, then render the pages."""

import sys

import nbformat

from execute import Executor
from files import write_atomically
from lessons import BUILD, fingerprint, lesson_paths, read
from render import address_given, render_site


def up_to_date(path):
    built = BUILD / path.name
    return built.exists() and read(built).metadata.get("fingerprint") == fingerprint(path)


def execute_lessons(paths):
    """Execute those of these lessons that have changed since their copy was made.

    Returns the paths of the copies that are up to date, and the failures.
    """
    notebooks = {path.stem: read(path) for path in paths if not up_to_date(path)}
    fingerprints = {path.stem: fingerprint(path) for path in paths}
    failures = []
    for name, failure in Executor().run(notebooks):
        if failure:
            failures.append(failure)
            continue
        notebooks[name].metadata.fingerprint = fingerprints[name]
        write_atomically(BUILD / f"{name}.ipynb", nbformat.writes(notebooks[name]))
    return [BUILD / path.name for path in paths if up_to_date(path)], failures


def exit_with(failures):
    if failures:
        sys.exit("\n".join(["This failed:", *map(str, failures)]))


if __name__ == "__main__":
    try:
        address = address_given()
        copies, failures = execute_lessons(lesson_paths())
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped. Nothing is half-written; the next `make run` goes on from here.")
    try:
        if copies:
            render_site(copies, address)
    except (ValueError, OSError) as error:
        failures.append(error)
    exit_with(failures)
