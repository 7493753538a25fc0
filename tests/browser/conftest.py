"""The site, rendered from the stored lessons, and a browser to open it in."""

import os
from contextlib import ExitStack, contextmanager

import pytest
from playwright.sync_api import sync_playwright

import lessons
import render
from browser import FLAGS, REMEDY, find_browser
from serve import serving

MEASURES = (lessons.ROOT / "tests" / "browser" / "measure.js").read_text("utf-8")
WIDE = 1280


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
def address(site):
    with serving(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    """Chromium. Closed with the module: its event loop is in the way of lessons that follow."""
    path = find_browser()
    if not path and not os.environ.get("CI"):
        pytest.skip(REMEDY)
    assert path, REMEDY
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=FLAGS)


@contextmanager
def page_in(browser, theme="light", width=WIDE, scripts=True, **options):
    """An empty page in a context of its own: nothing is stored, nothing in the cache."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        java_script_enabled=scripts,
        **options,
    )
    with context:
        yield context.new_page()


@pytest.fixture(scope="session")
def new_page_in():
    return page_in


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


@pytest.fixture(scope="session")
def measure():
    """Value of an expression in a page, which may use what measure.js defines."""
    return lambda page, expression: page.evaluate(
        f"async () => {{ {MEASURES}; return await ({expression}) }}"
    )
