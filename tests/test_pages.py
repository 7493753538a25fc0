"""The pages, rendered from the stored lessons."""

import re
import subprocess
import sys
from io import BytesIO
from itertools import pairwise
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from PIL import Image

import lessons
import page as lesson_page
import render
from checks import page_names

ATOM = "{http://www.w3.org/2005/Atom}"
ADDRESS = "https://example.org/series"


@pytest.fixture(scope="module")
def site():
    """{path in the site: content}, at an address that is known."""
    found = render.Site(lessons.lesson_paths(), ADDRESS)
    assert found.problems == []
    return found.files


@pytest.fixture(scope="module")
def pages(site):
    return {name: BeautifulSoup(site[name], "html.parser") for name in page_names(site)}


@pytest.fixture
def page(path, pages):
    return pages[f"{path.stem}.html"]


def test_there_is_a_page_a_lesson_an_index_a_glossary_and_a_cheat_sheet(pages):
    own = [f"{path.stem}.html" for path in lessons.lesson_paths()]
    assert sorted(pages) == sorted([*own, "index.html", "glossary.html", "cheat_sheet.html"])


def test_no_page_fetches_anything(pages):
    for name, soup in pages.items():
        assert all(tag["src"].startswith("data:") for tag in soup.find_all(src=True)), name
        assert not soup.find_all(["iframe", "video", "source", "object"]), name
        assert not soup.find_all("link", rel=["stylesheet", "preload"]), name
        own = "".join(tag.text for tag in soup(["style", "script"]))
        assert not re.search(r"@import|url\(|fetch\(|import\(", own), name


def test_every_page_says_what_may_run_before_anything_could(pages):
    for soup in pages.values():
        charset, policy = soup.head.find_all(True, limit=2)
        assert charset["charset"] == "utf-8"
        assert policy["http-equiv"] == "Content-Security-Policy"
        assert policy["content"].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
        assert not re.search(r"unsafe|\*|http", policy["content"])


def test_files_beside_a_page_may_run_only_where_an_explorer_needs_its_weights(pages):
    for soup in pages.values():
        policy = soup.find("meta", {"http-equiv": True})["content"]
        assert ("'self'" in policy) == bool(soup.find("script", {"data-file": True}))


def test_no_page_is_heavier_than_400_kilobytes(site, pages):
    assert {name: len(site[name]) for name in pages if len(site[name].encode()) > 400_000} == {}


def test_no_page_and_its_weights_are_heavier_than_two_and_a_half_megabytes(site, pages):
    weights = {name: len(text) for name, text in site.items() if name.startswith("weights/")}
    assert len(weights) == 3
    for name in pages:
        needed = [size for file, size in weights.items() if f'data-file="{file}"' in site[name]]
        assert len(site[name].encode()) + sum(needed) < 2_500_000


def alt_texts(code):
    return [
        next(about["alt"] for kind, about in output.metadata.items() if "image/" in kind)
        for cell in code
        for output in cell.outputs
        if any("image/" in kind for kind in output.get("data", {}))
    ]


def test_every_figure_of_the_lesson_is_on_its_page_with_alt_text_size_and_caption(page, code):
    figures = page.find_all("figure", class_="picture")
    assert [figure.img["alt"] for figure in figures] == alt_texts(code) != []
    for number, figure in enumerate(figures, start=1):
        assert figure.figcaption.text.strip().startswith(f"Figure {number}.")
        assert int(figure.img["width"]) > 0
        assert int(figure.img["height"]) > 0


SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg">
 <metadata>drawn today</metadata>
 <path d="M 10.123456 20
L 30 1.5e-05 z" style="fill: none; stroke: #0072b2"/>
 <text style="font: 10px 'DejaVu Sans', sans-serif">the model's "own" 50 %</text>
</svg>"""


def test_an_svg_says_the_same_in_its_address():
    address = lesson_page.svg_address(SVG)
    assert re.fullmatch(r"data:image/svg\+xml,[^ \"<>#]+", address)
    path, text = ElementTree.fromstring(unquote(address.partition(",")[2]))
    assert path.attrib == {"d": "M10.12,20L30,1.5e-05z", "style": "fill:none; stroke:#0072b2"}
    assert text.attrib["style"] == 'font:10px "DejaVu Sans", sans-serif'
    assert text.text == 'the model\'s "own" 50 %'


def test_code_loses_only_the_marks_that_have_no_style():
    code = '<span class="k">def</span> <span class="n">read</span>'
    assert lesson_page.lighter(code) == '<span class="k">def</span> read'


def test_every_table_of_the_lesson_is_on_its_page_with_caption_and_cells(page, code):
    stored = [
        output.data["text/markdown"]
        for cell in code
        for output in cell.outputs
        if output.get("metadata", {}).get("of") == "table"
    ]
    tables = page.find_all("figure", class_="table")
    assert len(tables) == len(stored) > 0
    for number, table in enumerate(tables, start=1):
        assert table.figcaption.text.strip().startswith(f"Table {number}.")
        columns = {len(row.find_all(["th", "td"])) for row in table.find_all("tr")}
        assert len(columns) == 1
        assert len(table.find_all("tr")) > 1


def test_no_table_is_left_as_text(page):
    assert not any(re.search(r"^---+  ---", block.text, re.M) for block in page.find_all("pre"))


def test_references_say_the_number_of_what_they_lead_to(page):
    references = page.find_all("a", class_="reference")
    assert len(references) >= 3
    for reference in references:
        caption = page.find(id=reference["href"][1:]).figcaption.text
        assert caption.strip().startswith(f"{reference.text}.")


def test_prose_cells_show_their_sentence_only(page, code):
    for cell in code:
        if "prose" in lessons.tags(cell):
            assert cell.source.splitlines()[0] not in page.text
    sentences = page.find("main").find_all(class_="measured")
    assert len(sentences) == sum("prose" in lessons.tags(cell) for cell in code)


def test_plumbing_is_folded_and_teaching_is_open(page, code):
    highlighted = [block.text.strip() for block in page.find_all(class_="highlight")]
    shown = [c for c in code if not {"prose", "volatile"} & set(lessons.tags(c))]
    assert highlighted == [cell.source.strip() for cell in shown]
    for block, cell in zip(page.find_all(class_="highlight"), shown, strict=True):
        closed = [fold for fold in block.find_parents("details") if not fold.has_attr("open")]
        assert bool(closed) == bool({"fold", "solution"} & set(lessons.tags(cell))), cell.source


def test_what_a_solution_prints_is_folded_with_it(page):
    solutions = [d for d in page.find_all("details") if d.summary.text == "Solution"]
    assert solutions
    assert all(solution.find(class_=["printed", "table"]) for solution in solutions)


def test_mathematics_is_in_the_page_as_mathml(page):
    assert page.find("math")
    assert "$" not in "".join(
        text for text in page.find("main").find_all(string=True, class_="text")
    )


def test_the_first_use_of_a_term_leads_to_its_definition(page, pages):
    terms = [link["href"] for link in page.find_all("a", class_="term")]
    assert len(terms) == len(set(terms)) > 3
    assert all(pages["glossary.html"].find(id=term.partition("#")[2]) for term in terms)


def test_the_contents_list_the_sections_in_order(page):
    listed = [link["href"][1:] for link in page.find("nav", class_="contents").find_all("a")]
    assert listed == [heading["id"] for heading in page.find_all("h2")]


def test_the_footer_says_with_what_the_page_was_made(page):
    provenance = [term.text for term in page.find("footer").find_all("dt")]
    for fact in ("built", "seconds", "CPU", "threads", "Python", "torch", "numpy", "matplotlib"):
        assert fact in provenance


def test_the_footer_names_the_commit_where_git_knows_it(monkeypatch):
    assert lesson_page.commit_of(lessons.ROOT / "Makefile")
    monkeypatch.setenv("PATH", "")
    assert lesson_page.commit_of(lessons.ROOT / "Makefile") is None


def test_a_page_can_be_cited(page, path):
    entry = page.find(class_="cite").pre.text
    assert lessons.summarise(path).title in entry
    assert f"{ADDRESS}/{path.stem}.html" in entry


def test_the_notebook_of_a_page_can_be_downloaded(page, path, site):
    address = page.find("a", download=True)["href"]
    assert site[address] == path.read_text("utf-8")


def test_neighbours_lead_from_each_lesson_to_the_next_and_back(pages):
    order = [f"{path.stem}.html" for path in lessons.lesson_paths()]
    for one, other in pairwise(order):
        assert pages[one].find(rel="next")["href"] == other
        assert pages[other].find(rel="prev")["href"] == one


def test_the_index_shows_each_lesson_with_question_figure_headline_and_time(pages):
    cards = pages["index.html"].find(class_="cards").find_all("li")
    for card, path in zip(cards, lessons.lesson_paths(), strict=True):
        summary = lessons.summarise(path)
        assert card.a["href"] == f"{summary.name}.html"
        assert summary.question in card.text
        assert card.img["alt"]
        headline = card.find(class_="measured").text.strip().replace("\xa0", " ")
        assert headline == summary.headline.replace("**", "")
        assert summary.time in card.text


def test_every_page_credits_mnist_and_its_licence(pages):
    for soup in pages.values():
        credit = soup.find("footer", class_="site").text
        assert "LeCun" in credit
        assert "CC BY-SA 3.0" in credit


# What other sites and readers of feeds see


def test_every_page_describes_itself_and_says_where_it_is(pages):
    for name, soup in pages.items():
        described = {
            tag.get("property") or tag.get("name"): tag["content"]
            for tag in soup("meta")
            if tag.get("content")
        }
        assert described["description"] == described["og:description"] != ""
        assert described["og:url"] == soup.find(rel="canonical")["href"] == f"{ADDRESS}/{name}"
        assert described["twitter:card"] == "summary_large_image"
        assert described["og:image:alt"]


def test_the_card_of_every_page_is_a_picture_of_1200_by_630(pages, site):
    for soup in pages.values():
        address = soup.find(property="og:image")["content"]
        picture = Image.open(BytesIO(site[address.removeprefix(f"{ADDRESS}/")]))
        assert picture.size == (1200, 630)


def test_without_an_address_pages_claim_none():
    files = render.Site(lessons.lesson_paths()[:1]).files
    assert "sitemap.xml" not in files
    assert "canonical" not in files["index.html"]
    assert "og:url" not in files["index.html"]


def test_the_sitemap_lists_every_page(site, pages):
    root = ElementTree.fromstring(site["sitemap.xml"].encode())
    listed = [element.text for element in root.iter() if element.tag.endswith("}loc")]
    assert sorted(listed) == sorted(f"{ADDRESS}/{name}" for name in pages)


def test_the_feed_has_an_entry_a_lesson(site):
    feed = ElementTree.fromstring(site["feed.xml"].encode())
    entries = feed.findall(f"{ATOM}entry")
    links = [entry.find(f"{ATOM}link").get("href") for entry in entries]
    assert links == [f"{ADDRESS}/{path.stem}.html" for path in lessons.lesson_paths()]
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:00Z", e.find(f"{ATOM}updated").text)
        for e in entries
    )


@pytest.mark.parametrize("address", ["example.org", "ftp://example.org", "/series"])
def test_an_address_that_is_none_is_refused_by_name(monkeypatch, address):
    monkeypatch.setenv("SITE_URL", address)
    with pytest.raises(ValueError, match=f"SITE_URL is '{address}': give all of it"):
        render.address_given()


def test_rendering_needs_no_torch(tmp_path):
    without = "import sys; sys.modules['torch'] = None; import render"
    done = subprocess.run(
        [sys.executable, "-c", without],
        cwd=lessons.ROOT / "tools",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
