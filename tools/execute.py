"""Execute notebooks, several at a time: a kernel each, of one thread, as many as the machine bears.

Kernels run in `notebooks/`, where the lessons' modules are; the files there are only read.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lessons import NOTEBOOKS, code_cells

os.environ["OMP_NUM_THREADS"] = "1"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
MEMORY = 3e9  # bytes for a lesson: the largest takes a little less
CONTAINER_LIMITS = [
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # of Linux' older control groups
]


def memory():
    """Bytes of memory that the machine has, or as many of them as its container may take."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # not on this system, or "max"
            sizes.append(int(limit.read_text()))
    return min(sizes)


def kernels_at_once():
    """One a core, as far as the memory goes."""
    return max(1, min(CORES, int(memory() / MEMORY)))


class LessonError(Exception):
    """A lesson that did not run to its end; the message names lesson, cell and error."""


class Reporter:
    """Progress for people: a line a lesson, kept up to date on a terminal, else a line a cell."""

    def __init__(self):
        console = Console()
        columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self.lines = {}
        self.start = time.monotonic()

    def cell(self, lesson, number, cells):
        text = f"{lesson}  cell {number} of {cells}"
        if self.progress.disable:
            minutes, seconds = divmod(round(time.monotonic() - self.start), 60)
            print(f"{text}  {minutes}:{seconds:02}", flush=True)
        elif lesson in self.lines:
            self.progress.update(self.lines[lesson], description=text)
        else:
            self.lines[lesson] = self.progress.add_task(text, total=None)

    def end(self, lesson, text):
        if lesson in self.lines:
            self.progress.update(self.lines[lesson], description=f"{lesson}  {text}", total=0)


def join_streams(cells):
    """Make one output of what cells print without a break, however it came in.

    nbclient's own way to do so would move what is printed under a table's caption above it.
    """
    for cell in cells:
        joined = []
        for output in cell.outputs:
            last = joined[-1] if joined else {}
            if output.output_type == "stream" and last.get("name") == output.name:
                last.text += output.text
            else:
                joined.append(output)
        cell.outputs = joined


class Executor:
    """Executes notebooks, in place and in parallel. An interrupt leaves no kernel behind."""

    def __init__(self):
        self.reporter = Reporter()
        self.clients = []

    def run(self, notebooks, environment=None):
        """Execute {name: notebook}; yield each name with None or its `LessonError` when it is done.

        environment, {variable: value}, is added to that of the kernels.
        """
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        pool = ThreadPoolExecutor(kernels_at_once())
        with self.reporter.progress:
            try:
                names = {
                    pool.submit(self.one, name, notebook, environment or {}): name
                    for name, notebook in notebooks.items()
                }
                for future in as_completed(names):
                    yield names[future], future.result()
            except (KeyboardInterrupt, GeneratorExit):
                pool.shutdown(wait=False, cancel_futures=True)
                for client in self.clients:
                    if client.km and client.km.has_kernel:
                        client.km.provisioner.process.kill()
                raise

    def one(self, name, notebook, environment):
        cells = code_cells(notebook)
        current = 0

        def on_cell_execute(cell, cell_index):
            nonlocal current
            current += 1
            self.reporter.cell(name, current, len(cells))

        client = NotebookClient(
            notebook,
            timeout=None,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            record_timing=False,
            resources={"metadata": {"path": str(NOTEBOOKS)}},
            on_cell_execute=on_cell_execute,
        )
        self.clients.append(client)
        try:
            client.execute(env=os.environ | environment)
        except CellExecutionError as error:
            problem = f"{error.ename}: {error.evalue}"
        except DeadKernelError:
            problem = "the kernel died"
        else:
            join_streams(cells)
            self.reporter.end(name, "done")
            return None
        self.reporter.end(name, "failed")
        line = cells[current - 1].source.partition("\n")[0]
        return LessonError(f"{name}, cell {current} ({line}): {problem}")
