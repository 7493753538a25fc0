"""Explorers: elements of a page that compute with trained networks, in the page itself.

    _explorer.show("bottleneck-explorer", tensors, digits="31415926")

Their JavaScript is in blog/explorers/, a file an explorer and what they share. All that one needs
goes into the output, so that it works in JupyterLab, on a page and in a page opened from disk.
"""

import base64
import html
import json
import re
from pathlib import Path

from IPython.display import display
from safetensors.torch import save

FOLDER = Path(__file__).resolve().parent / "blog" / "explorers"
IMPORT = re.compile(r'^import .* from "\./(.+)\.js";\n', re.MULTILINE)


def collect(name, modules):
    """Add to modules, {name: source}, a file of `FOLDER` after all that it imports."""
    source = (FOLDER / f"{name}.js").read_text("utf-8")
    for imported in IMPORT.findall(source):
        if imported not in modules:
            collect(imported, modules)
    modules[name] = re.sub("^export ", "", IMPORT.sub("", source), flags=re.MULTILINE)


def bundle(name):
    """One classic script of an explorer: pages opened from disk cannot import modules."""
    modules = {}
    collect(name, modules)
    style = json.dumps((FOLDER / "explorer.css").read_text("utf-8"))
    return "\n".join(
        ["(() => {", '"use strict";', f"const STYLE = {style};", *modules.values(), "})();"]
    )


def show(name, tensors, **attributes):
    """Display an explorer: name is that of its element and of its file in blog/explorers/.

    tensors, {name: tensor}, are what it computes with; those of floats travel as float16. The
    attributes, texts, are those of the element. What stands for it where no script runs, a figure
    and a table of its first numbers, is displayed by the same cell, after it. Raises ValueError
    for a name without a file.
    """
    if not (FOLDER / f"{name}.js").is_file():
        raise ValueError(f"there is no explorer {name!r}: {FOLDER} has no {name}.js")
    rounded = {
        key: (tensor.half() if tensor.is_floating_point() else tensor).contiguous().clone()
        for key, tensor in tensors.items()
    }
    given = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
    weights = base64.b64encode(save(rounded)).decode()
    parts = [
        f"<{name}{given}></{name}>",
        f'<script type="text/plain" data-weights="{name}">{weights}</script>',
        f"<script>{bundle(name)}</script>",
    ]
    display(
        {"text/html": "\n".join(parts), "text/plain": f"{name}: needs a browser with scripts"},
        metadata={"explorer": name},
        raw=True,
    )
