"""The pages, rendered from the stored lessons."""

import re

import nbformat.v4 as nbf
import pytest
from bs4 import BeautifulSoup

import lessons
import render


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """{page name: its text}"""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "SITE", folder)
        render.render_site(lessons.lesson_paths())
    return {page.name: page.read_text("utf-8") for page in folder.iterdir()}


@pytest.fixture(scope="module")
def soups(site):
    return {name: BeautifulSoup(text, "html.parser") for name, text in site.items()}


@pytest.fixture
def page(path, soups):
    return soups[f"{path.stem}.html"]


def test_there_is_a_page_a_lesson_and_an_index(site):
    assert sorted(site) == sorted(
        [*(f"{p.stem}.html" for p in lessons.lesson_paths()), "index.html"]
    )


def test_no_page_asks_another_host_for_anything(site, soups):
    for name, soup in soups.items():
        fetched = [
            tag.get(attribute)
            for tag in soup.find_all(["img", "script", "link", "iframe", "video", "source"])
            for attribute in ("src", "href", "srcset")
            if tag.get(attribute)
        ]
        assert all(address.startswith("data:") for address in fetched), name
        assert not re.search(r"@import|url\(", "".join(s.text for s in soup.find_all("style"))), (
            name
        )


def test_pages_work_without_scripts(soups):
    assert not any(soup.find("script") for soup in soups.values())


def test_no_page_is_heavier_than_400_kilobytes(site):
    assert {name: len(text) for name, text in site.items() if len(text.encode()) > 400_000} == {}


def test_every_figure_of_the_lesson_is_on_its_page_with_alt_text_size_and_caption(page, code):
    stored = [
        next(iter(output.metadata.values()))["alt"]
        for cell in code
        for output in cell.outputs
        if any(kind.startswith("image/") for kind in output.get("data", {}))
    ]
    figures = page.find_all("figure")
    assert [figure.img["alt"] for figure in figures] == stored != []
    for number, figure in enumerate(figures, start=1):
        assert figure["id"] == f"figure-{number}"
        assert figure.figcaption.text.strip().startswith(f"Figure {number}.")
        assert int(figure.img["width"]) > 0
        assert int(figure.img["height"]) > 0


def test_prose_cells_show_their_sentence_only(page, code):
    for cell in code:
        if "prose" in lessons.tags(cell):
            assert cell.source.splitlines()[0] not in page.text
    assert len(page.find_all(class_="measured")) == sum("prose" in lessons.tags(c) for c in code)


def test_plumbing_is_folded_and_teaching_is_open(page, code):
    highlighted = [block.text.strip() for block in page.find_all(class_="highlight")]
    shown = [c for c in code if not {"prose", "volatile"} & set(lessons.tags(c))]
    assert highlighted == [cell.source.strip() for cell in shown]
    for block, cell in zip(page.find_all(class_="highlight"), shown, strict=True):
        folded = bool({"fold", "solution"} & set(lessons.tags(cell)))
        assert (block.find_parent("details") is not None) == folded, cell.source


def test_what_a_solution_prints_is_folded_with_it(page):
    solutions = [d for d in page.find_all("details") if d.summary.text == "Solution"]
    assert solutions
    assert all(solution.find(class_="printed") for solution in solutions)


def test_the_footer_says_with_what_the_page_was_made(page):
    provenance = page.find_all(class_="printed")[-1].text
    for fact in ("built", "seconds", "CPU", "threads", "Python", "torch", "numpy", "matplotlib"):
        assert fact in provenance


def test_headings_have_ids_of_their_own(soups):
    for name, soup in soups.items():
        ids = [tag["id"] for tag in soup.find_all(id=True)]
        assert len(ids) == len(set(ids)), name


def test_links_inside_the_site_lead_to_its_pages(site, soups):
    for soup in soups.values():
        targets = [link["href"] for link in soup.find_all("a")]
        inside = [target for target in targets if not target.startswith("https://")]
        assert set(inside) <= set(site)


def test_the_index_shows_each_lesson_with_its_question_and_headline(soups):
    cards = soups["index.html"].find(class_="cards").find_all("li")
    for card, path in zip(cards, lessons.lesson_paths(), strict=True):
        summary = lessons.summarise(path)
        assert card.a["href"] == f"{summary.name}.html"
        assert summary.question in card.text
        assert card.find(class_="measured").text.strip() == summary.headline.replace("**", "")


def test_every_page_credits_mnist_and_its_licence(soups):
    for soup in soups.values():
        credit = soup.find("footer").text
        assert "LeCun" in credit
        assert "CC BY-SA 3.0" in credit


def test_a_figure_without_caption_is_an_error_that_names_the_lesson():
    picture = nbf.new_output("display_data", {"image/png": "", "text/plain": ""})
    notebook = nbf.new_notebook(cells=[nbf.new_code_cell("plot()", outputs=[picture])])
    with pytest.raises(ValueError, match=r"07_x has a figure without caption.*_style\.show"):
        render.join_captions(notebook, "07_x")
