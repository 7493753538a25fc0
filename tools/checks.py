"""What must not be on a page: faults that a reader would meet, found before anything is written."""

import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from explorers import is_explorer
from policy import forbidden

# Not measured here: MNIST's licence, the level of our intervals, what the articles say.
CITED = {"3.0", "0.02", "95 %", "87.3 %", "0.96", "0.68"}
MEASURED = re.compile(r"\d+\.\d+(?: ?%)?|\d+ ?%")
LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)")
SHOWN = {"text/plain", "text/markdown", "image/png", "image/svg+xml"}  # explorers left out
ACTIVE = re.compile(r"<script|<foreignObject|\son\w+\s*=|javascript:", re.IGNORECASE)  # in SVG
LARGEST_OUTPUT = 200_000  # bytes, pictures and explorers left out


def measured_numbers(text):
    """Percentages and decimals in static text, those of links and citations left out."""
    return set(MEASURED.findall(LINK.sub("", text))) - CITED


def size(output):
    """Bytes of an output that is neither a picture nor an explorer with its weights."""
    if is_explorer(output):
        return 0
    data = output.get("data", {"text": output.get("text", "")})
    return sum(len(str(value)) for kind, value in data.items() if not kind.startswith("image/"))


def display_problems(output):
    """What an output holds that pages do not show, or that could run."""
    data = {} if is_explorer(output) else output.get("data", {})
    for kind in sorted(data.keys() - SHOWN):
        yield f"displays {kind}, which pages do not show: use print, _style.show or _style.table"
    if found := ACTIVE.search(data.get("image/svg+xml", "")):
        yield f"displays an SVG that could run a script ({found[0].strip()}): draw it without"


def text_problems(notebook):
    """A sentence for each fault in the cells of a lesson, as it is stored."""
    problems = []
    for number, cell in enumerate(notebook.cells, start=1):
        first = cell.source.partition("\n")[0]
        where = f"cell {number} of {len(notebook.cells)} ({first[:40]})"
        if not cell.source.strip():
            problems.append(f"{where} is empty")
        if cell.cell_type == "markdown" and (found := measured_numbers(cell.source)):
            typed = ", ".join(sorted(found))
            problems.append(
                f"{where} holds numbers typed by hand: {typed}. Print them by _style.prose"
            )
        for output in cell.get("outputs", []):
            problems += [f"{where} {fault}" for fault in display_problems(output)]
            if size(output) > LARGEST_OUTPUT:
                problems.append(
                    f"{where} prints {size(output):,} bytes; {LARGEST_OUTPUT:,} is the most"
                )
    return problems


class Page(HTMLParser):
    """The ids, the links and the pictures without alt text of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.mute = Counter(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if "id" in found:
            self.ids[found["id"]] += 1
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if tag == "img" and not (found.get("alt") or "").strip():
            self.mute.append(found.get("src", ""))


def leads_nowhere(target, name, pages, others):
    """Whether a link of a page to somewhere in the site finds nothing there."""
    address = urlsplit(target)
    path, anchor = unquote(address.path) or name, unquote(address.fragment)
    if address.scheme or path in others:
        return False
    return path not in pages or (anchor and anchor not in pages[path].ids)


def page_problems(files, absent=()):
    """A sentence for each fault in the pages of the site: {path: content}.

    absent: pages of lessons that could not be rendered this time; links may lead there.
    """
    pages = {name: Page(files[name]) for name in page_names(files)}
    others = {*files, *absent} - pages.keys()
    problems = []
    for name, page in pages.items():
        problems += [
            f"{name}: {n} elements have the id {id}" for id, n in page.ids.items() if n > 1
        ]
        problems += [f"{name}: a picture has no alt text: {source[:60]}" for source in page.mute]
        problems += [
            f"{name}: the link to {target} leads nowhere"
            for target in sorted(page.links)
            if leads_nowhere(target, name, pages, others)
        ]
        problems += [f"{name}: its policy forbids {what}" for what in forbidden(files[name])]
    return problems


def page_names(files):
    """The pages among the files of the site; fragments are parts of other pages."""
    return [name for name in files if name.endswith(".html") and "/" not in name]
