"""`make browser`: the browser in which the pages are tested and audited.

Chromium or Chrome from PATH, or the one that CHROME_PATH names. Where there is none, Debian's
is installed if that is possible without asking.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
REMEDY = (
    "no Chromium or Chrome found: install one (`make browser` does on Debian), or set CHROME_PATH"
)
FLAGS = (
    "--no-sandbox",  # which Chromium cannot have as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium():
    """Path of the browser, or None."""
    on_path = (shutil.which(name) for name in NAMES)
    candidates = (os.environ.get("CHROME_PATH"), *on_path, MAC if MAC.exists() else None)
    return next((str(path) for path in candidates if path), None)


def as_root():
    """What to put before a command to run it as root, or None where that needs a password."""
    if os.geteuid() == 0:
        return []
    asked = ["sudo", "--non-interactive"]
    allowed = (
        shutil.which("sudo")
        and not subprocess.run([*asked, "true"], capture_output=True).returncode
    )
    return asked if allowed else None


def install():
    if not shutil.which("apt-get") or (root := as_root()) is None:
        sys.exit(REMEDY)
    subprocess.run([*root, "apt-get", "update", "--quiet"], check=True)
    subprocess.run([*root, "apt-get", "install", "--yes", "--quiet", "chromium"], check=True)


if __name__ == "__main__":
    if not find_chromium():
        install()
    print(f"browser: {find_chromium()}")
