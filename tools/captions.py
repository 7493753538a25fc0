"""A lesson's figures and tables: numbered, captioned, named, as `_style` displays them."""

import re

from nbformat.v4 import new_output

RULE = re.compile(r"-+(  -+)+")


def parse_table(text):
    """What `_style.table` printed last in a text -> the text before it, headers, rows of cells.

    The rule under the headers says where the columns are.
    """
    lines = text.splitlines()
    at = max(i for i, line in enumerate(lines) if RULE.fullmatch(line))
    columns = [match.span() for match in re.finditer("-+", lines[at])]
    cells = [[line[a:b].strip() for a, b in columns] for line in lines[at - 1 :] if line]
    return "\n".join(lines[: at - 1]), cells[0], cells[2:]


def is_caption(output):
    return "caption" in output.get("metadata", ())


def is_picture(output):
    return any(kind.startswith("image/") for kind in output.get("data", ()))


def is_of(kind, output):
    """Whether an output is, or ends with, what a caption of the kind may stand under."""
    if kind == "Figure":
        return is_picture(output)
    return any(RULE.fullmatch(line) for line in output.get("text", "").splitlines()[1:])


def join_captions(notebook):
    """Give each figure and printed table its number, name and caption, an output of its own before.

    Returns {name: "Figure 2"} of what has a name, and a sentence for each fault.
    """
    names, problems = {}, []
    for cell in notebook.cells:
        joined = []
        for output in cell.get("outputs", []):
            if not is_caption(output):
                joined.append(output)
                continue
            kind = output.metadata.of.capitalize()
            label = f"{kind} {output.metadata.caption}"
            if not joined or not is_of(kind, joined[-1]):
                problems.append(f"the caption of {label} has no {kind.lower()} above it")
                continue
            if kind == "Table":
                joined[-1:] = as_table(joined[-1])
            name = output.metadata.get("name")
            if name in names:
                problems.append(f"{label} and {names[name]} are both named {name}")
            if name:
                names[name] = label
            joined[-1].metadata.update(
                id=name or label.lower().replace(" ", "-"),
                label=label,
                caption=output.data["text/markdown"],
            )
        for output in joined:
            if is_picture(output) and "caption" not in output.metadata:
                first = cell.source.partition("\n")[0]
                problems.append(f"a figure of cell {first!r} has no caption: use _style.show")
        if "outputs" in cell:
            cell.outputs = joined
    return names, problems


def as_table(stream):
    """The printed output as up to two: what is above the table, and the table in its metadata."""
    before, headers, rows = parse_table(stream.text)
    table = new_output(
        "display_data", {"text/plain": ""}, metadata={"headers": headers, "rows": rows}
    )
    above = [new_output("stream", name="stdout", text=before)] if before.strip() else []
    return [*above, table]
