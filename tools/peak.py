"""How much memory Python code takes, measured in a process of its own."""

import os
import subprocess
import sys


def peak_megabytes(code):
    """The most memory that a new process holds which runs this code, in MB.

    It finds the modules that this one finds. Raises subprocess.CalledProcessError if it fails.
    """
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport _memory\nprint(_memory.peak_megabytes())"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(result.stdout)
