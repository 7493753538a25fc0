"""A page in a browser, what is measured in it, and how tests say what is wrong with it."""

from contextlib import contextmanager
from pathlib import Path

import pytest

MEASURES = Path(__file__).with_name("measure.js").read_text("utf-8")
WIDE, NARROW = 1280, 360
THEMES = ("light", "dark")


@contextmanager
def page_in(browser, theme="light", width=WIDE, scripts=True, **options):
    """An empty page in a context of its own: nothing is stored, nothing in the cache."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        java_script_enabled=scripts,
        **options,
    )
    context.set_default_timeout(10_000)
    with context:
        yield context.new_page()


def measure(page, expression):
    """Value of a JavaScript expression in a page, which may use what measure.js defines."""
    return page.evaluate(f"async () => {{ {MEASURES}; return await ({expression}) }}")


def complaints(page):
    """A list that errors and warnings of the page are added to as they come."""
    said = []

    def of_console(message):
        if message.type in ("error", "warning"):
            said.append(message.text)

    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", of_console)
    return said


def fail_with(problems):
    """Fail with what is wrong, if anything is: {where: what}."""
    wrong = [f"{where}: {what}" for where, what in problems.items() if what]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
