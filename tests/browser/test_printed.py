"""The pages on paper, as Chromium prints them."""

import re
from io import BytesIO

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from in_browser import fail_with, measure, page_in

A4 = (595, 842)  # points
COLUMN, HEIGHT = 643, 972  # pixels that margins of 20 mm leave of A4


def letters(text):
    return re.sub(r"\W", "", text)


def print_page(page):
    data = page.pdf(format="A4", prefer_css_page_size=True)
    return PdfReader(BytesIO(data)).pages


def as_on_paper(page):
    page.emulate_media(media="print")
    page.set_viewport_size({"width": COLUMN, "height": HEIGHT})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    return page


@pytest.fixture(scope="module")
def printed(browser, address, lesson_pages):
    """{lesson page: all its text on paper, without spaces and signs}"""
    texts = {}
    for name in lesson_pages:
        with page_in(browser) as page:
            page.goto(f"{address}/{name}")
            texts[name] = letters("".join(sheet.extract_text() for sheet in print_page(page)))
    return texts


@pytest.fixture(scope="module")
def soups(site, lesson_pages):
    return {
        name: BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
        for name in lesson_pages
    }


def test_solutions_and_answers_are_printed(printed, soups):
    """Code of a cell that only makes a figure is not for paper, what a fold asks and answers is."""

    def missing(text, soup):
        folds = [fold for fold in soup.main.find_all("details") if fold.summary.text != "Code"]
        answers = [letters(fold.text.removeprefix(fold.summary.text)) for fold in folds]
        return [answer[:40] for answer in answers if answer[:30] not in text]

    assert any(soup.main.find("details") for soup in soups.values())
    fail_with({name: missing(printed[name], soups[name]) for name in soups})


def test_navigation_is_not_printed(open_page, pages, printed, soups):
    navigation = "[...document.querySelectorAll('nav, button, .skip')].filter(shown).map(describe)"
    fail_with({name: measure(as_on_paper(open_page(name)), navigation) for name in pages})
    links = {name: soup.select_one(".skip, .contents summary") for name, soup in soups.items()}
    fail_with({name: letters(a.text) in printed[name] and a.text for name, a in links.items() if a})


def test_no_figure_is_cut_by_the_end_of_a_sheet(open_page, lesson_pages):
    def cut(page):
        return measure(page, f"cutFigures({HEIGHT})")

    fail_with({name: cut(as_on_paper(open_page(name))) for name in lesson_pages})


def test_nothing_is_cut_off_at_the_side_of_a_sheet_or_in_a_box_that_scrolls(open_page, pages):
    fail_with({name: measure(as_on_paper(open_page(name)), "cutOff()") for name in pages})


def test_paper_is_white_whatever_the_theme(open_page, lesson_pages):
    page = as_on_paper(open_page(lesson_pages[0], theme="dark"))
    faint = measure(page, "faintOnWhite()")
    assert faint == []


def test_the_cheat_sheet_is_one_sheet_of_a4_in_three_columns(open_page):
    page = open_page("cheat_sheet.html")
    sheets = print_page(page)
    assert len(sheets) == 1
    sizes = [round(float(side)) for side in (sheets[0].mediabox.width, sheets[0].mediabox.height)]
    assert sorted(sizes) == pytest.approx(A4, abs=2)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": round(sizes[0] * 4 / 3), "height": round(sizes[1] * 4 / 3)})
    lefts = "[...document.querySelectorAll('main h2')].map(h2 => h2.getBoundingClientRect().left)"
    assert len({round(left) for left in page.evaluate(lefts)}) == 3
