"""How and where something was made, for what is stored of it."""

import platform
from datetime import UTC, datetime
from functools import cache

import cpuinfo
import numpy as np
import torch


@cache
def processor():
    return cpuinfo.get_cpu_info().get("brand_raw", platform.machine())


def made(seconds):
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seconds": round(seconds),
        "machine": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
