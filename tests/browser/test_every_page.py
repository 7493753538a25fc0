"""What holds for every page, light and dark, on a wide and on a narrow screen."""

from dataclasses import dataclass, field
from itertools import product

import pytest
from axe_playwright_python.sync_playwright import Axe

from in_browser import NARROW, THEMES, WIDE, complaints, fail_with, measure, page_in

CONTRAST = 4.5  # WCAG 2, AA
AXE_RULES = {
    "target-size": {"enabled": True},  # WCAG 2.2, AA: off by default
    "color-contrast": {"enabled": False},  # which takes axe most of its time: tests of its own
}
CHARACTERS = 85  # about 80; narrower fonts than that of the tests make it a few more
LAYOUT_SHIFT = 0.01
FIRST_PAINT = 1000  # milliseconds


@dataclass
class Visit:
    """What was seen on one page in one theme at one width."""

    messages: list = field(default_factory=list)  # errors and warnings
    requests: list = field(default_factory=list)  # beside the page
    first_paint: float = 0.0
    layout_shift: float = 0.0
    violations: list = field(default_factory=list)  # those that axe finds
    folds: str = "closed"  # while axe looked
    sticks_out: list = field(default_factory=list)
    token_contrast: dict = field(default_factory=dict)
    faint: list = field(default_factory=list)
    long_lines: list = field(default_factory=list)
    small_text: list = field(default_factory=list)


def violations(page, **options):
    """What axe finds. Code is made plain first: its thousands of spans would take axe long."""
    page.evaluate(
        "document.querySelectorAll('.highlight pre').forEach(code => code.textContent += '')"
    )
    found = Axe().run(page, options={"resultTypes": ["violations"], **options})
    return [
        f"{violation['id']}: {node['html'][:120]}"
        for violation in found.response["violations"]
        for node in violation["nodes"][:3]
    ]


def look_at(page, url, folds):
    visit = Visit(messages=complaints(page), folds=folds)
    page.on("request", lambda request: visit.requests.append(request.url))
    page.goto(url)
    visit.requests.remove(url)
    visit.first_paint = measure(page, "firstPaint()")
    measure(page, "scrollThrough()")
    visit.layout_shift = measure(page, "layoutShift()")
    measure(page, "beginExplorers()")
    visit.sticks_out = measure(page, "sticksOut()")
    visit.token_contrast = measure(page, "tokenContrast()")
    if folds == "closed":
        visit.violations = violations(page, rules=AXE_RULES)
    measure(page, "openFolds()")
    visit.sticks_out += measure(page, "sticksOut()")
    visit.faint = measure(page, f"faint({CONTRAST})")
    visit.long_lines = measure(page, f"longLines({CHARACTERS})")
    visit.small_text = measure(page, "smallText()")
    if folds == "open":
        visit.violations = violations(page, rules=AXE_RULES)
    return visit


@pytest.fixture(scope="module")
def visits(browser, address, pages):
    """{(page, theme, width): the visit}

    Half of the visits show axe open folds, the others closed ones, so that it sees both in either
    theme and at either width.
    """
    seen = {}
    for name, theme, width in product(pages, THEMES, (WIDE, NARROW)):
        folds = "open" if (theme == "light") == (width == WIDE) else "closed"
        with page_in(browser, theme=theme, width=width) as page:
            seen[name, theme, width] = look_at(page, f"{address}/{name}", folds)
    return seen


def fail_where(visits, what):
    """Fail with what is wrong on each visit, if anything is."""
    fail_with({" ".join(map(str, key)): what(visit) for key, visit in visits.items()})


@pytest.mark.parametrize("folds", ["open", "closed"])
def test_axe_finds_nothing_that_shuts_people_out(visits, folds):
    seen = {key: visit for key, visit in visits.items() if visit.folds == folds}
    fail_where(seen, lambda visit: visit.violations)


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_enough_contrast(open_page, pages, lesson_pages, longest, theme):
    """On one lesson and what is not one: `test_no_text_is_faint` measures it on every page."""

    def faint(name):
        page = open_page(name, theme=theme)
        measure(page, "openFolds()")
        return violations(page, runOnly=["color-contrast"])

    fail_with({name: faint(name) for name in {*pages} - {*lesson_pages} | {longest}})


def test_no_text_is_faint(visits):
    fail_where(visits, lambda visit: visit.faint)


def test_no_page_reports_an_error_or_a_warning(visits):
    fail_where(visits, lambda visit: visit.messages)


def test_no_page_asks_another_host_for_anything(visits, address):
    def elsewhere(visit):
        return [url for url in visit.requests if not url.startswith((f"{address}/", "data:"))]

    fail_where(visits, elsewhere)


def test_a_lesson_needs_no_file_but_its_page_and_the_weights_of_its_explorer(visits, lesson_pages):
    of_lessons = {key: visit for key, visit in visits.items() if key[0] in lesson_pages}

    def needed(visit):
        return [u for u in visit.requests if u[:5] != "data:" and "/weights/" not in u]

    fail_where(of_lessons, needed)


def test_no_page_scrolls_sideways(visits):
    fail_where(visits, lambda visit: visit.sticks_out)


def test_nothing_moves_while_a_page_loads_or_is_scrolled(visits):
    fail_where(visits, lambda v: v.layout_shift >= LAYOUT_SHIFT and f"a shift of {v.layout_shift}")


def test_every_page_is_painted_within_a_second(visits, pages):
    """With nothing in the cache; the soonest of a page's visits, as the machine may be busy."""
    soonest = {
        name: min(visit.first_paint for key, visit in visits.items() if key[0] == name)
        for name in pages
    }
    print("\n".join(f"{name:<40}{paint:6.0f} ms" for name, paint in soonest.items()))
    fail_with({name: paint >= FIRST_PAINT and f"{paint} ms" for name, paint in soonest.items()})


def test_every_kind_of_token_in_code_stands_out_from_its_paper(visits):
    def faint(visit):
        return {kind: round(c, 2) for kind, c in visit.token_contrast.items() if c < CONTRAST}

    fail_where(visits, faint)
    assert any(len(visit.token_contrast) > 5 for visit in visits.values())


def test_no_line_of_text_is_too_long_to_read_with_ease(visits):
    fail_where(visits, lambda visit: visit.long_lines)


def test_no_text_is_smaller_than_16_pixels(visits):
    fail_where(visits, lambda visit: visit.small_text)
