"""How much memory this process has held at most, for footers of lessons and for `make bench`."""

import re
import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes():
    """The most memory that this process has held, in MB."""
    if STATUS.exists():  # Linux, whose ru_maxrss begins with the size of the parent process
        return int(re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text())[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes
