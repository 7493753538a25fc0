"""Render executed lessons into _site/: one self-contained page each, and an index."""

from functools import partial

import jinja2
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html
from traitlets.config import Config

from files import write_atomically
from lessons import ROOT, read, summarise

BLOG = ROOT / "blog"
SITE = ROOT / "_site"


def page_exporter():
    """nbconvert with our template; `prose` cells lose their code, nothing is fetched."""
    remove = {"enabled": True, "remove_input_tags": {"prose", "volatile"}}
    return HTMLExporter(
        template_name="lesson",
        extra_template_basedirs=[str(BLOG)],
        exclude_anchor_links=True,
        config=Config(TagRemovePreprocessor=remove),
    )


def join_captions(notebook, name):
    """Move each caption, an output of its own in the notebook, into the figure before it.

    Raises ValueError for a figure that was displayed without `_style.show`.
    """
    for cell in notebook.cells:
        figure = None
        for output in list(cell.get("outputs", [])):
            if any(kind.startswith("image/") for kind in output.get("data", ())):
                figure = output
            elif "caption" in output.get("metadata", ()):
                number, text = output.metadata.caption, output.data["text/markdown"]
                figure.metadata.update(number=number, caption=text)
                cell.outputs.remove(output)
                figure = None
        if figure:
            raise ValueError(f"{name} has a figure without caption: display it with _style.show")


def link_to_pages(notebook):
    """Let links between lessons lead to their pages."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(".ipynb)", ".html)")


def render_page(path, **resources):
    """The HTML of one executed lesson."""
    notebook = read(path)
    join_captions(notebook, path.name)
    link_to_pages(notebook)
    html, _ = page_exporter().from_notebook_node(notebook, resources=resources)
    return html


def render_index(summaries, **shared):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(BLOG), autoescape=False)
    environment.filters["markdown2html"] = markdown2html
    return environment.get_template("index.html.j2").render(lessons=summaries, **shared)


def render_site(paths):
    """Write the pages of these executed lessons and the index; pages of no lesson are removed."""
    shared = {
        "stylesheet": (BLOG / "style.css").read_text("utf-8"),
        "credits": (BLOG / "credits.html").read_text("utf-8"),
    }
    summaries = [summarise(path) for path in paths]
    pages = {"index.html": partial(render_index, summaries)}
    neighbours = zip([None, *summaries], summaries, [*summaries[1:], None], strict=False)
    for path, (previous, summary, following) in zip(paths, neighbours, strict=True):
        pages[f"{summary.name}.html"] = partial(
            render_page, path, summary=summary, previous=previous, next=following
        )
    for name, render in pages.items():
        write_atomically(SITE / name, render(**shared))
    for stale in {page.name for page in SITE.glob("*.html")} - pages.keys():
        (SITE / stale).unlink()
    print(f"rendered {len(paths)} lessons: {SITE / 'index.html'}")
