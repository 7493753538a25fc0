"""How much memory Python code takes, measured in a process of its own."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def own_peak():
    """The most memory that this process has held, in MB."""
    if STATUS.exists():  # Linux, whose ru_maxrss begins with the size of the parent process
        return int(re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text())[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes


def peak_megabytes(code):
    """The most memory that a new process holds which runs this code, in MB.

    It finds the modules that this one finds. Raises subprocess.CalledProcessError if it fails.
    """
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport peak\nprint(peak.own_peak())"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(result.stdout)
