"""The pages on paper, as Chromium prints them."""

import re
from dataclasses import dataclass
from io import BytesIO

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from in_browser import fail_with, measure, page_in

A4 = (595, 842)  # points
PIXELS = 96 / 72  # to a point
COLUMN, HEIGHT = 673, 1001  # pixels that margins of 16 mm leave of A4
NAVIGATION = "[...document.querySelectorAll('nav, button, .skip')].filter(shown).map(describe)"
FAINT = "faint(4.5, [255, 255, 255])"


@dataclass
class Paper:
    """What was seen of one page in print."""

    navigation: list
    closed_folds: list
    cut_figures: list
    cut_off: list
    faint: list


def letters(text):
    return re.sub(r"\W", "", text)


def sheets_of(page):
    data = page.pdf(format="A4", prefer_css_page_size=True)
    return PdfReader(BytesIO(data)).pages


def print_it(page):
    page.emulate_media(media="print")
    page.set_viewport_size({"width": COLUMN, "height": HEIGHT})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    seen = (NAVIGATION, "closedFolds()", f"cutFigures({HEIGHT})", "cutOff()", FAINT)
    return Paper(*(measure(page, expression) for expression in seen))


@pytest.fixture(scope="module")
def papers(browser, address, pages):
    """{page: what it is in print, of a reader who has chosen the dark theme}"""
    seen = {}
    for name in pages:
        with page_in(browser) as page:
            page.goto(f"{address}/{name}")
            page.evaluate("document.documentElement.dataset.theme = 'dark'")
            seen[name] = print_it(page)
    return seen


def answers(soup):
    """What the folds of a page hold, without the words that open them, but not code on its own."""
    folds = [fold for fold in soup.main.find_all("details") if fold.summary.text != "Code"]
    for summary in soup.main.find_all("summary"):
        summary.extract()
    return [letters(fold.text) for fold in folds]


def test_solutions_and_answers_are_printed(papers):
    """What a fold asks and answers is for paper; the code of a cell that draws need not be."""
    fail_with({name: paper.closed_folds for name, paper in papers.items()})


def test_navigation_is_not_printed(papers):
    fail_with({name: paper.navigation for name, paper in papers.items()})


def test_the_pdf_of_a_lesson_has_its_answers_and_no_navigation(open_page, site, longest):
    text = letters("".join(sheet.extract_text() for sheet in sheets_of(open_page(longest))))
    soup = BeautifulSoup((site / longest).read_text("utf-8"), "html.parser")
    navigation = [letters(part.text) for part in soup.select(".skip, nav.turn a")]
    assert [words for words in navigation if words in text] == []
    assert [answer[:40] for answer in answers(soup) if answer[:30] not in text] == []


def test_no_figure_is_cut_by_the_end_of_a_sheet(papers):
    fail_with({name: paper.cut_figures for name, paper in papers.items()})


def test_nothing_is_cut_off_at_the_side_of_a_sheet_or_in_a_box_that_scrolls(papers):
    fail_with({name: paper.cut_off for name, paper in papers.items()})


def test_a_dark_page_is_printed_dark_on_white(papers):
    fail_with({name: paper.faint for name, paper in papers.items()})


def test_the_cheat_sheet_is_one_sheet_of_a4_in_three_columns(open_page):
    page = open_page("cheat_sheet.html")
    (sheet,) = sheets_of(page)
    size = float(sheet.mediabox.width), float(sheet.mediabox.height)
    assert sorted(size) == pytest.approx(A4, abs=2)
    page.emulate_media(media="print")
    width, height = (round(points * PIXELS) for points in size)
    page.set_viewport_size({"width": width, "height": height})
    lefts = "[...document.querySelectorAll('main h2')].map(h2 => h2.getBoundingClientRect().left)"
    assert len({round(left) for left in page.evaluate(lefts)}) == 3
