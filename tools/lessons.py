"""What the tools know of a lesson: where it is, what it asks, what it found, how long it took."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "_build"
EXPLORERS = ROOT / "blog" / "explorers"
BENCH, SPREAD = (ROOT / "data" / "results" / f"{name}.json" for name in ("bench", "spread"))


def lesson_paths():
    """The lessons in reading order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def chosen(number):
    """The lessons of this number, such as 02; all of them if it is empty. Raises ValueError."""
    paths = [path for path in lesson_paths() if path.stem.startswith(f"{number}_") or not number]
    if not paths:
        known = ", ".join(path.stem[:2] for path in lesson_paths())
        raise ValueError(f"no lesson {number!r}; there are {known}")
    return paths


def read(path):
    """A notebook in the current format. Raises ValueError naming the file if it is not one."""
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, nbformat.reader.NotJSONError) as error:
        raise ValueError(f"{path} cannot be read as a notebook: {error}") from error


def tags(cell):
    return cell.metadata.get("tags", [])


def code_cells(notebook):
    """The cells that run, numbered from 1 by their place: Jupyter shows the same in brackets."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def fingerprint(path):
    """SHA-256 of everything that the outputs of a lesson depend on; none reads BENCH or SPREAD."""
    digest = hashlib.sha256("\0".join(cell.source for cell in read(path).cells).encode())
    shared = [*NOTEBOOKS.glob("*.py"), *ROOT.glob("_*.py"), ROOT / "constraints.txt"]
    shared += EXPLORERS.glob("*.*")
    kinds = ("*.npz", "*.safetensors", "results/*.json")
    data = {path for kind in kinds for path in (ROOT / "data").glob(kind)} - {BENCH, SPREAD}
    for file in sorted([*shared, *data]):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@dataclass(frozen=True)
class Summary:
    """What the index and the README say of a lesson, taken from its notebook."""

    name: str  # 02_three_digit_reader
    title: str
    question: str
    headline: str  # Markdown
    time: str  # to run and to read, as its author says
    seconds: int  # of its last execution
    facts: dict  # when, where and with what it was executed


def summarise(path):
    """The `Summary` of an executed lesson. Raises ValueError for what is missing in it."""
    notebook = read(path)
    opening = [line for line in notebook.cells[0].source.splitlines() if line]
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    headlines = [o.data["text/markdown"] for o in outputs if "headline" in o.metadata]
    footers = [output for output in outputs if "seconds" in output.metadata]
    times = [line.removeprefix("Time: ") for line in opening if line.startswith("Time: ")]
    if not opening[0].startswith("# ") or not opening[1].startswith("**"):
        raise ValueError(f"{path.name}: the first cell must hold '# title', then '**question**'")
    if len(headlines) != 1 or len(footers) != 1 or len(times) != 1:
        raise ValueError(
            f"{path.name}: needs one line 'Time: ...', one _style.headline and one _style.footer, "
            "executed"
        )
    lines = footers[0].data["text/plain"].splitlines()
    return Summary(
        name=path.stem,
        title=opening[0].removeprefix("# "),
        question=opening[1].strip("*"),
        headline=headlines[0],
        time=times[0],
        seconds=footers[0].metadata.seconds,
        facts=dict(line.split(maxsplit=1) for line in lines),
    )
