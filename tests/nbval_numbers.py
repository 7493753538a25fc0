"""nbval made number-aware: a lesson must print again what it printed, within what its tags allow.

Loaded with `-p nbval_numbers` beside `--nbval`. nbval runs the cells; this decides which outputs
are the same, refuses lessons that would pass unchecked, and says which numbers moved and how far.
"""

import doctest
import re
import time
import tomllib
from collections import defaultdict
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from queue import Empty

import nbformat
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError, comment_markers
from pytest_doctestplus.output_checker import FLOAT_CMP, OutputChecker

TEXT = {"stdout", "text/plain", "text/markdown"}
NUMBER = re.compile(r"(?<![\w.])[-+−–]?(?:\d+(?:,\d{3})*(?:\.\d+)*(?:e[-+]?\d+)?|(?:nan|inf)\b)")
MINUS = str.maketrans("−–", "--")
MACHINE = re.compile(r"^(platform|CPU)\b.*")
VARIES = re.compile(
    r"\s*[-+−–]?\d+(?:[-.,:/]\d+)*(?:e[-+]?\d+)?"
    r"(?:\.?(?:a|b|rc|dev|post)\d+)*(?:\+[a-z]\w*)?"  # what versions end in: rc1, .dev3, +cpu
)


@pytest.hookimpl(optionalhook=True)  # the check of a single lesson needs no xdist
def pytest_xdist_auto_num_workers(config):
    """As many lessons at a time as `make run` executes."""
    import execute  # only now is tools/ on the path

    return execute.kernels_at_once()


def set_apart(line):
    """The line with a space on both sides of each number.

    The checker sees a number only between separators of its own list, which lacks `%`, `/`, `|`
    and `:`, and would take the integer that ends a sentence (`all 12.`) for a decimal.
    """
    return NUMBER.sub(lambda number: f" {number[0].translate(MINUS)} ", line)


def without_what_varies(line):
    return VARIES.sub(" 0", MACHINE.sub(r"\1", line))


def value(number):
    return float(number.translate(MINUS).replace(",", ""))


class Tolerance(OutputChecker):
    rtol = 1e-12  # a move of exactly atol passes, however the subtraction rounds

    def __init__(self, name, table):
        super().__init__()
        self.atol = table["atol"]
        self.allows = f"{name} allows {self.atol} {table['unit']}"

    def accepts(self, was, now):
        flags = FLOAT_CMP | doctest.DONT_ACCEPT_BLANKLINE
        return self.check_output(set_apart(was), set_apart(now), flags)

    def applies_to(self, number):
        return bool(self.find_numbers(set_apart(number)))


TABLES = tomllib.loads(Path(__file__).with_name("tolerances.toml").read_text("utf-8"))
TOLERANCES = {f"tol-{name}": Tolerance(f"tol-{name}", table) for name, table in TABLES.items()}
TAGS = {"prose", "fold", "solution", "volatile", "raises-exception", *TOLERANCES}


def first_line(cell):
    return cell.source.strip().partition("\n")[0]


def problems(cell):
    """What would let this cell pass unchecked, or makes its stored output no reference."""
    tags = cell.metadata.get("tags", [])
    for tag in tags:
        if tag not in TAGS and not re.fullmatch(r"export:\w+", tag):
            hint = ", no table of tolerances.toml" if tag.startswith("tol-") else ""
            yield f"unknown tag {tag}{hint}"
    if cell.cell_type != "code":
        return
    tolerances = [tag for tag in tags if tag.startswith("tol-")]
    if len(tolerances) > 1:
        yield f"more than one tolerance: {', '.join(tolerances)}"
    if tolerances and "volatile" in tags:
        yield f"{tolerances[0]} on a volatile cell, whose numbers are not compared"
    for marker in comment_markers:
        if re.search(rf"\b{marker}\b", cell.source):
            yield f"{marker} would change the check"
    if cell.source.strip() and cell.execution_count is None:
        yield "never executed"
    raised = any(output.output_type == "error" for output in cell.outputs)
    if raised and "raises-exception" not in tags:
        yield "stored traceback"
    if "raises-exception" in tags and not raised:
        yield "raises-exception, but no stored traceback"
    if any(output.get("name") == "stderr" for output in cell.outputs):
        yield "stored stderr"


def by_kind(outputs):
    """Each kind of output with its texts in order; of figures only that they are there."""
    kinds = defaultdict(list)
    for output in outputs:
        if output.output_type == "stream":
            kinds[output.name].append(output.text)
        elif output.output_type == "error":
            kinds["error"].append(f"{output.ename}: {output.evalue}")
        else:
            for kind, content in output.data.items():
                kinds[kind].append("" if kind.startswith("image/") else str(content))
    return kinds


def paired(stored, new):
    """Stored and new lines side by side; None for a line that the other side lacks."""
    stored, new = stored.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(stored) == len(new):
        yield from zip(stored, new, strict=True)
        return
    words = [[NUMBER.sub("0", line) for line in lines] for lines in (stored, new)]
    for _, i, i_end, j, j_end in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        yield from zip_longest(stored[i:i_end], new[j:j_end])


class WatchedKernel(RunningKernel):
    """nbval waits for a dead kernel as long as for a slow cell; this one looks every second."""

    def get_message(self, stream, timeout=None):
        deadline = time.monotonic() + timeout
        while True:
            with suppress(Empty):
                return super().get_message(stream, timeout=1)
            if not self.is_alive():
                raise RuntimeError("the kernel died")
            if time.monotonic() > deadline:
                raise Empty


class Lesson(IPyNbFile):
    died_at = None

    def collect(self):
        found, number = [], 0
        for cell in nbformat.read(self.path, as_version=4).cells:
            number += cell.cell_type == "code"
            where = f"cell {number}" if cell.cell_type == "code" else f"{cell.cell_type} cell"
            found += [f"{self.name}, {where} ({first_line(cell)}): {why}" for why in problems(cell)]
        if found:
            raise self.CollectError("\n".join(found))
        for item in super().collect():
            number = item.cell_num + 1
            yield LessonCell.from_parent(
                self, name=f"Cell {number}", cell_num=number, cell=item.cell, options=item.options
            )

    def setup(self):
        super().setup()
        self.kernel.__class__ = WatchedKernel  # nbval's setup offers no choice of class


class LessonCell(IPyNbCell):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.output_timeout = 60  # nbval's 5 s are too few on a busy machine
        tags = self.cell.metadata.get("tags", [])
        self.volatile = "volatile" in tags
        self.tolerance = next((TOLERANCES[tag] for tag in tags if tag in TOLERANCES), None)

    def runtest(self):
        if self.parent.died_at:
            pytest.skip(f"not run: the kernel died at cell {self.parent.died_at}")
        try:
            super().runtest()
        except RuntimeError:
            if self.parent.kernel.is_alive():
                raise
            self.parent.died_at = self.cell_num
            self.raise_cell_error("the kernel died")

    def compare_outputs(self, test, ref, skip_compare=None):
        new, stored = by_kind(test), by_kind(ref)
        self.comparison_traceback = [
            line
            for kind in sorted(stored.keys() | new.keys())
            for line in self.differences(kind, stored[kind], new[kind])
        ]
        return not self.comparison_traceback

    def differences(self, kind, stored, new):
        if len(stored) != len(new):
            yield f"{kind}: {len(stored)} stored, {len(new)} new"
        for texts in zip_longest(stored, new, fillvalue=""):
            for was, now in paired(*texts):
                if None in (was, now) or not self.same(kind, was, now):
                    yield f"{kind}:"
                    yield f"  stored  {'(no such line)' if was is None else was.rstrip()}"
                    yield f"  new     {'(no such line)' if now is None else now.rstrip()}"
                    yield from self.moves(was or "", now or "")

    def same(self, kind, was, now):
        if was == now or kind not in TEXT:
            return was == now
        if self.volatile:
            return without_what_varies(was) == without_what_varies(now)
        return self.tolerance is not None and self.tolerance.accepts(was, now)

    def moves(self, was, now):
        """By how much each number moved, if both lines hold equally many, and what is allowed."""
        before, after = NUMBER.findall(was), NUMBER.findall(now)
        if self.volatile or len(before) != len(after):
            return
        for old, new in zip(before, after, strict=True):
            if old != new:
                step, allowed = "", "compared exactly"
                with suppress(ValueError):  # a version has no difference
                    step = f" ({value(new) - value(old):+.6g})"
                if self.tolerance and self.tolerance.applies_to(old):
                    allowed = self.tolerance.allows
                yield f"  moved   {old} -> {new}{step}; {allowed}"

    def repr_failure(self, excinfo):
        error = excinfo.value
        if not isinstance(error, NbCellError):
            return super().repr_failure(excinfo)
        where = f"{self.parent.name}, cell {self.cell_num} ({first_line(self.cell)})"
        return f"{where}: {error}\n{error.inner_traceback or ''}"


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    nodes = yield
    return [
        Lesson.from_parent(parent, path=file_path) if isinstance(node, IPyNbFile) else node
        for node in nodes
    ]
