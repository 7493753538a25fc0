"""Execute notebooks, several at a time: a kernel each, one kernel a core, one thread a kernel.

Kernels run in `notebooks/`, where the lessons' modules are; the files there are only read.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from lessons import NOTEBOOKS, first_line
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class LessonFailed(Exception):
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


class Executor:
    """Executes notebooks in place and in parallel; an interrupt leaves no kernel behind."""

    def __init__(self, workers=CORES):
        self.workers = workers
        self.reporter = Reporter()
        self.clients = []

    def run(self, notebooks):
        """Execute {name: notebook}. Returns {name: None or the LessonFailed}."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        pool = ThreadPoolExecutor(self.workers)
        with self.reporter.progress:
            try:
                return dict(zip(notebooks, pool.map(self.one, *zip(*notebooks.items(), strict=True)), strict=True))
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for client in self.clients:
                    client.km.provisioner.process.kill()
                raise

    def one(self, name, notebook):
        cells = len(notebook.cells)
        started = 0

        def on_cell_start(cell, cell_index):
            nonlocal started
            started = cell_index + 1
            self.reporter.cell(name, started, cells)

        client = NotebookClient(
            notebook,
            timeout=None,
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": str(NOTEBOOKS)}},
            on_cell_start=on_cell_start,
        )
        self.clients.append(client)
        try:
            client.execute()
        except CellExecutionError as error:
            return self.failed(name, notebook, started, f"{error.ename}: {error.evalue}")
        except DeadKernelError:
            return self.failed(name, notebook, started, "the kernel died")
        self.reporter.end(name, "done")
        return None

    def failed(self, name, notebook, number, error):
        self.reporter.end(name, "failed")
        line = first_line(notebook.cells[number - 1])
        return LessonFailed(f"{name}, cell {number} ({line}): {error}")
