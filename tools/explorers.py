"""Explorers on pages: the element stands around its figure and table, its weights in a file.

A notebook gives the attributes and the weights alone. The code is that of blog/explorers/, so that
no script of a notebook gets onto a page.
"""

import json
import re
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser

from lessons import EXPLORERS

IMPORT = re.compile(r'^import .* from "\./(.+)\.js";\n', re.MULTILINE)
WEIGHTS = re.compile(r'<script type="text/plain" data-weights="[\w-]+">([\w+/]+=*)</script>')
NAMES = {path.stem for path in EXPLORERS.glob("*-*.js")}
STYLE = (EXPLORERS / "explorer.css").read_text("utf-8")


def collect(name, modules):
    """Add to modules, {name: source}, a file of `EXPLORERS` after all that it imports."""
    source = (EXPLORERS / f"{name}.js").read_text("utf-8")
    for imported in IMPORT.findall(source):
        if imported not in modules:
            collect(imported, modules)
    modules[name] = re.sub("^export ", "", IMPORT.sub("", source), flags=re.MULTILINE)


def bundle(name):
    """What `_explorer.bundle` makes, which needs torch: one classic script of an explorer."""
    modules = {}
    collect(name, modules)
    style = f"const STYLE = {json.dumps(STYLE)};"
    return "\n".join(["(() => {", '"use strict";', style, *modules.values(), "})();"])


@dataclass(frozen=True)
class Scripts:
    """What an explorer needs beside its element."""

    name: str
    weights: str  # base64
    code: str

    @property
    def file(self):
        """Where a site has the weights."""
        return f"weights/{self.name}.js"

    @property
    def filling(self):
        """What is in that file: pages opened from disk can load nothing but scripts."""
        place = f"script[data-weights='{self.name}']"
        return f'document.querySelector("{place}").textContent = "{self.weights}";\n'

    def html(self, inline):
        """The elements for the end of a page, which hold the weights or name their file."""
        start = f'<script type="text/plain" data-weights="{self.name}"'
        code = f"<script>{self.code}</script>"
        if inline:
            return f"{start}>{self.weights}</script>\n{code}"
        return f'{start} data-file="{self.file}"></script>\n{code}'


class Element(HTMLParser):
    """The attributes of the first element of an HTML text."""

    def __init__(self, html):
        super().__init__()
        self.attributes = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if self.attributes is None:
            self.attributes = attributes


def is_explorer(output):
    """Whether an output calls itself one of our explorers."""
    return output.get("metadata", {}).get("explorer") in NAMES


def take_explorers(notebook):
    """Take what `_explorer.show` displayed out of the cells.

    Returns {name: `Scripts`}, and a sentence for each fault. A cell that displayed one has the
    tags of the element as its metadata `explorer`.
    """
    scripts, problems = {}, []
    for cell in notebook.cells:
        cell.metadata.pop("explorer", None)
        for output in filter(is_explorer, list(cell.get("outputs", []))):
            name, html = output.metadata["explorer"], output.data.get("text/html", "")
            cell.outputs.remove(output)
            weights = WEIGHTS.search(html)
            if not weights:
                problems.append(f"{name} has no weights: execute the lesson again")
                continue
            given = "".join(f' {k}="{escape(v or "")}"' for k, v in Element(html).attributes)
            scripts[name] = Scripts(name, weights[1], bundle(name))
            cell.metadata["explorer"] = {"start": f"<{name}{given}>", "end": f"</{name}>"}
            if not cell.outputs:
                problems.append(f"no figure or table stands for {name} where no script runs")
    return scripts, problems
