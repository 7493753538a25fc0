"""One lesson as its page shows it."""

import re
import subprocess
from urllib.parse import quote

import nbformat
from nbconvert import HTMLExporter
from traitlets.config import Config

from captions import is_picture, join_captions
from card import draw_card
from checks import text_problems
from explorers import take_explorers
from glossary import Linker
from lessons import NOTEBOOKS, ROOT, read, summarise
from markup import Markup

BLOG = ROOT / "blog"
STYLES = (BLOG / "content.css").read_text("utf-8")
OTHER_QUOTES = str.maketrans("\"'", "'\"")
HIGHLIGHTS = re.compile(r"\.highlight :is\(.*?\)")


def commit_of(path):
    """The commit that last changed a file, shortened, or None if git does not say."""
    command = ["git", "log", "-1", "--format=%h", "--", str(path)]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return found.stdout.strip() or None


def svg_address(svg):
    """An SVG as the address of a picture: percent-encoded, it is shorter than in base64.

    Shorter still without what only a parser of files needs, and with paths in hundredths of a
    point, their numbers parted by commas, which need no code.
    """
    needless = r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|(?<=>)\s+(?=<)"
    drawing = re.sub(needless, "", svg, flags=re.DOTALL)
    drawing = re.sub(r"<[^>]*>", lambda tag: tag[0].translate(OTHER_QUOTES), drawing)
    drawing = re.sub(r"(?<= d=')[^']*", lambda path: short_path(path[0]), drawing)
    drawing = re.sub(r"(?<= style=')[^']*", lambda style: style[0].replace(": ", ":"), drawing)
    return "data:image/svg+xml," + quote(re.sub(r"\s+", " ", drawing), safe="'=:;,/()!*@$+")


def short_path(path):
    """The data of an SVG path without blanks, its numbers cut after two decimals."""
    path = re.sub(r"(?<=\.\d\d)\d+", "", path)
    return ",".join(re.sub(r"\s*([A-Za-z])\s*", r"\1", path.strip()).split())


def address(output):
    """The picture of an output as an address that asks no server."""
    if "image/svg+xml" in output.data:
        return svg_address(output.data["image/svg+xml"])
    return "data:image/png;base64," + quote(output.data["image/png"].replace("\n", ""), "+/=")


def described(output):
    """Alt text, width and height of the picture of an output, if `_style.show` has drawn it."""
    kind = next(kind for kind in output.data if kind.startswith("image/"))
    return output.metadata.get(kind, {"alt": ""})


def lighter(highlighted):
    """Highlighted code without the spans that content.css gives no style: half of the bytes.

    As it may scroll sideways, the keyboard reaches it.
    """
    styled = "|".join(re.findall(r"\.(\w+)(?=[,)])", "".join(HIGHLIGHTS.findall(STYLES))))
    plain = re.sub(rf'<span class="(?!(?:{styled})")\w+">([^<]*)</span>', r"\1", highlighted)
    return plain.replace("<pre>", '<pre tabindex="0">')


def with_units(html):
    """Numbers are not parted from their % at the end of a line."""
    return html.replace(" %", "&nbsp;%")


def exporter(**filters):
    """nbconvert with our template; `prose` and `volatile` cells lose their code."""
    remove = {"enabled": True, "remove_input_tags": {"prose", "volatile"}}
    return HTMLExporter(
        template_name="lesson",
        extra_template_basedirs=[str(BLOG)],
        filters=filters,
        config=Config(TagRemovePreprocessor=remove),
    )


class Lesson:
    """An executed lesson, rendered, and a sentence for each fault in it.

    terms: of the glossary, see `read_terms`.
    """

    def __init__(self, path, terms):
        notebook = read(path)
        self.name = path.stem
        self.summary = summarise(path)
        self.updated = self.summary.facts["built"].replace(" UTC", ":00Z").replace(" ", "T")
        self.commit = commit_of(NOTEBOOKS / path.name)
        notebook.metadata.pop("fingerprint", None)
        self.notebook = nbformat.writes(notebook) + "\n"
        self.problems = text_problems(notebook)

        self.explorers, unexplained = take_explorers(notebook)
        names, problems = join_captions(notebook)
        markup, linked = Markup(names), Linker(terms)
        export = exporter(
            text=lambda source, attachments=None: linked(markup.html(source, attachments)),
            measured=lambda source: with_units(markup.html(source)),
            address=address,
            described=described,
            lighter=lighter,
        )
        self.body, _ = export.from_notebook_node(notebook)
        self.headline = with_units(markup.html(self.summary.headline))
        self.contents = [(id, text) for level, id, text in markup.contents if level == 2]
        self.problems += unexplained + problems + markup.problems
        self.figure, self.card = self.find_card(notebook)

    def fragment(self, site):
        """The body for a page elsewhere: links to other pages lead to the site, or are no links.

        Ids begin with the lesson's name, so that two lessons can stand on one page.
        """
        inside = r'<a ([^>]*)href="(?!https?:|#)([^"]*)"([^>]*)>(.*?)</a>'
        link = rf'<a \1href="{site}/\2"\3>\4</a>' if site else r"\4"
        body = re.sub(inside, link, self.body, flags=re.DOTALL)
        return re.sub(r'(<[^>]* (?:id="|href="#))', rf"\g<1>{self.name}-", body)

    def explorer(self, name):
        """An explorer with what stands for it, out of the body; for a page with its scripts."""
        return re.search(rf"<{name}.*?</{name}>", self.body, re.DOTALL)[0]

    def find_card(self, notebook):
        """The figure that stands for the lesson, and its card; None, None if there is none."""
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        chosen = [o for o in outputs if is_picture(o) and o.metadata.get("card")]
        if len(chosen) > 1:
            self.problems.append(f"{len(chosen)} figures have card=True: one stands for a lesson")
        if not chosen:
            return None, None
        if "image/png" not in chosen[0].data:
            self.problems.append("the card has no PNG: execute the lesson again")
            return None, None
        about = {"address": address(chosen[0]), **described(chosen[0])}
        return about, draw_card(chosen[0].data["image/png"])
