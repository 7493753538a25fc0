"""The site, rendered from the stored lessons, and a browser to open it in."""

import os
from contextlib import ExitStack

import pytest
from playwright.sync_api import sync_playwright

import lessons
import render
from chromium import FLAGS, REMEDY, find_chromium
from in_browser import page_in
from serve import serving


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Folder of the rendered site."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "SITE", folder)
        render.render_site(lessons.lesson_paths())
    return folder


@pytest.fixture(scope="session")
def pages(site):
    """Names of all its pages."""
    return sorted(path.name for path in site.glob("*.html"))


@pytest.fixture(scope="session")
def lesson_pages():
    return [f"{path.stem}.html" for path in lessons.lesson_paths()]


@pytest.fixture(scope="session")
def longest(site, lesson_pages):
    """The longest lesson, which stands for all where a test takes long."""
    return max(lesson_pages, key=lambda name: (site / name).stat().st_size)


@pytest.fixture(scope="session")
def address(site):
    with serving(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    """Chromium. Closed with the module: its event loop is in the way of lessons that follow."""
    path = find_chromium()
    if not path and not os.environ.get("CI"):
        pytest.skip(REMEDY)
    assert path, REMEDY
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=FLAGS) as browser,
    ):
        yield browser


@pytest.fixture
def new_page(browser):
    """Make an empty page, closed with the test: new_page(theme=..., width=..., scripts=...)."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(page_in(browser, **options))


@pytest.fixture
def open_page(new_page, address):
    """Open a page of the served site: open_page(name, theme=..., ...)."""

    def open_page(name, **options):
        page = new_page(**options)
        page.goto(f"{address}/{name}")
        return page

    return open_page
