"""A Python that has the large libraries loaded: what it runs starts in no time.

Each program runs in a process forked from one that knows nothing of this project's modules, so
that it finds those of the folder in which it runs.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SERVER = """
import gc, json, os, runpy, signal, sys
import jupyter_client, nbformat.validator, pytest, torch

gc.freeze()
signal.signal(signal.SIGINT, signal.SIG_IGN)
for line in sys.stdin:
    folder, output, paths, program, arguments = json.loads(line)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        to = os.open(output, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(to, stream)
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path[:0], sys.argv = paths, [program, *arguments]
        run = runpy.run_path if program.endswith(".py") else runpy.run_module
        run(program, run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Warm:
    """`with Warm() as run: status, output = run(folder, paths, "pytest", "-q")`, one at a time."""

    def __enter__(self):
        environment = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVER],
            env=environment | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.communicate()

    def __call__(self, folder, paths, program, *arguments):
        """Run a file or a module in a folder; paths, in the folder, come first among Python's.

        Returns the exit status and what it printed. An interrupt ends it, too.
        """
        output = Path(folder) / "output.txt"
        paths = [str(Path(folder) / path) for path in paths]
        request = json.dumps([str(folder), str(output), paths, program, arguments])
        try:
            print(request, file=self.process.stdin, flush=True)
            status = int(self.process.stdout.readline())
        except BaseException:
            self.__exit__()
            raise
        return status, output.read_text("utf-8")
