"""Explorers on pages: the element stands around its figure and table, its weights in a file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scripts:
    """What `_explorer.show` has displayed beside an element."""

    name: str
    weights: str  # base64
    code: str  # a script element

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
        if inline:
            return f"{start}>{self.weights}</script>\n{self.code}"
        return f'{start} data-file="{self.file}"></script>\n{self.code}'


def take_explorers(notebook):
    """Take what `_explorer.show` displayed out of the cells.

    Returns {name: `Scripts`}, and a sentence for each fault. A cell that displayed one has the
    tags of the element as its metadata `explorer`.
    """
    scripts, problems = {}, []
    for cell in notebook.cells:
        for output in list(cell.get("outputs", [])):
            if name := output.get("metadata", {}).get("explorer"):
                element, weights, code = output.data["text/html"].split("\n", 2)
                base64 = weights.partition(">")[2].removesuffix("</script>")
                scripts[name] = Scripts(name, base64, code)
                end = f"</{name}>"
                cell.metadata["explorer"] = {"start": element.removesuffix(end), "end": end}
                cell.outputs.remove(output)
                if not cell.outputs:
                    problems.append(f"no figure or table stands for {name} where no script runs")
    return scripts, problems
