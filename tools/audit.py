"""`make audit`: Lighthouse's four scores of every page, served on this machine.

Lighthouse comes from npm, into _build/. Fails for a score under 95.
"""

import json
import os
import subprocess
import sys

from chromium import FLAGS, REMEDY, find_chromium
from lessons import BUILD, ROOT, lesson_paths
from render import SITE, render_site
from serve import serving

LIGHTHOUSE = "lighthouse@12.2.3"
HOME = BUILD / LIGHTHOUSE
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
LOWEST = 95
BIN = ROOT / ".venv" / "bin"


def install():
    if not HOME.exists():
        silent = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts"]
        subprocess.run([BIN / "npm", "install", *silent, "--prefix", HOME, LIGHTHOUSE], check=True)


def scores(url, browser):
    """The page's score in each of `CATEGORIES`, out of 100."""
    command = [
        *(BIN / "node", HOME / "node_modules" / "lighthouse" / "cli" / "index.js", url),
        *("--quiet", "--output=json", f"--only-categories={','.join(CATEGORIES)}"),
        f"--chrome-flags=--headless=new {' '.join(FLAGS)}",
    ]
    result = subprocess.run(
        command, env=os.environ | {"CHROME_PATH": browser}, stdout=subprocess.PIPE, check=True
    )
    found = json.loads(result.stdout)["categories"]
    return [round(100 * (found[category]["score"] or 0)) for category in CATEGORIES]


def audit():
    browser = find_chromium() or sys.exit(REMEDY)
    install()
    render_site(lesson_paths())
    pages = sorted(page.name for page in SITE.glob("*.html"))
    width = max(map(len, pages))
    print(" " * width, *CATEGORIES, sep="  ")
    low = []
    with serving(SITE) as address:
        for page in pages:
            values = scores(f"{address}/{page}", browser)
            cells = [f"{v:>{len(c)}}" for v, c in zip(values, CATEGORIES, strict=True)]
            print(page.ljust(width), *cells, sep="  ", flush=True)
            low += [page] if min(values) < LOWEST else []
    if low:
        sys.exit(f"under {LOWEST}: {', '.join(low)}")


if __name__ == "__main__":
    audit()
