"""Explorers on their pages, whatever they compute."""

import shutil
from pathlib import Path

import pytest

import _explorer
from in_browser import complaints

NAMES = sorted(path.stem for path in _explorer.FOLDER.glob("*-*.js"))
FIGURES = ":is(figure.picture, figure.table)"


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def page_name(name, site, lesson_pages):
    """The lesson that shows the explorer."""
    return next(page for page in lesson_pages if f"</{name}>" in (site / page).read_text("utf-8"))


def come_near(page, name):
    page.locator(name).scroll_into_view_if_needed()
    page.locator(f"{name} .static").wait_for()


def test_it_begins_when_one_comes_near(open_page, page_name, name):
    page = open_page(page_name)
    assert page.evaluate(f"document.querySelector('{name}').shadowRoot === null")
    come_near(page, name)
    page.locator(f"{name} .explorer").wait_for()


def test_its_figure_and_table_are_folded_away_where_it_works(open_page, page_name, name):
    page = open_page(page_name)
    come_near(page, name)
    assert not page.locator(f"{name} {FIGURES}").first.is_visible()
    page.locator(f"{name} .static summary").click()
    assert page.locator(f"{name} {FIGURES}").first.is_visible()


def test_a_link_to_its_figure_unfolds_it(new_page, address, page_name, name, open_page):
    figure = open_page(page_name).locator(f"{name} figure.picture").get_attribute("id")
    page = new_page()
    page.goto(f"{address}/{page_name}#{figure}")
    page.locator(f"[id='{figure}']").wait_for(state="visible")


def test_without_scripts_a_figure_and_a_table_stand_in_its_place(open_page, page_name, name):
    page = open_page(page_name, scripts=False)
    assert page.locator(f"{name} figure.picture").is_visible()
    assert page.locator(f"{name} figure.table").is_visible()


def test_on_paper_a_figure_and_a_table_stand_in_its_place(open_page, page_name, name):
    page = open_page(page_name)
    come_near(page, name)
    page.emulate_media(media="print")
    assert page.locator(f"{name} figure.picture").is_visible()
    assert page.locator(f"{name} figure.table").is_visible()
    assert not page.locator(f"{name} .explorer").is_visible()


def test_it_works_in_a_page_of_somebody_elses(new_page, site, page_name, name):
    fragment = (site / "fragments" / page_name).read_text("utf-8")
    page = new_page()
    said = complaints(page)
    page.set_content(f"<!DOCTYPE html><title>Foreign</title><body>{fragment}</body>")
    come_near(page, name)
    page.locator(f"{name} .explorer").wait_for()
    assert page.locator(f"{name} .message").text_content() == ""
    assert said == []


def test_its_weights_are_asked_for_when_one_comes_near(new_page, address, page_name, name):
    page = new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{page_name}")
    assert asked == [f"{address}/{page_name}"]
    come_near(page, name)
    page.locator(f"{name} .explorer:not([aria-busy])").wait_for()
    assert asked[1:] == [f"{address}/weights/{name}.js"]


@pytest.fixture
def page_with(new_page, site, tmp_path, page_name, name):
    """The page from disk, with this text in the file of the weights, or with no such file."""

    def page_with(weights=None):
        copied = shutil.copy(site / page_name, tmp_path)
        if weights:
            (tmp_path / "weights").mkdir()
            (tmp_path / "weights" / f"{name}.js").write_text(weights, "utf-8")
        page = new_page()
        page.goto(Path(copied).as_uri())
        come_near(page, name)
        return page

    return page_with


def test_it_works_from_disk(page_with, site, name):
    page = page_with((site / "weights" / f"{name}.js").read_text("utf-8"))
    page.locator(f"{name} .explorer:not([aria-busy])").wait_for()
    assert page.locator(f"{name} .message").text_content() == ""


def test_missing_weights_are_named(page_with, name):
    page_with().locator(f"{name} .message", has_text="The weights are missing").wait_for()


@pytest.mark.parametrize("place", [0, 20, 200, 1000])
def test_damaged_weights_are_named(page_with, site, name, place):
    """One character of the header is another one."""
    before, mark, weights = (site / "weights" / f"{name}.js").read_text("utf-8").rpartition(' = "')
    other = "A" if weights[place] != "A" else "Q"
    page = page_with(f"{before}{mark}{weights[:place]}{other}{weights[place + 1 :]}")
    page.locator(f"{name} .message", has_text="The weights are damaged").wait_for()
