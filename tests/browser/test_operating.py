"""The pages are worked as a reader works them: with a mouse, with the keyboard, without scripts."""

import pytest

import lessons
from in_browser import NARROW, WIDE, complaints, fail_with, measure, page_in

HIDDEN_INPUT = {"prose", "volatile"}


def focused(page, expression):
    """A property of the element that has the focus."""
    return page.evaluate(f"document.activeElement.{expression}")


def tab_through(page):
    """Where Tab comes to until it leaves the page. Each fold is opened on the way."""
    measure(page, "beginExplorers()")
    measure(page, "numberElements()")
    stops = []
    while True:
        page.keyboard.press("Tab")
        stop = measure(page, "stop()")
        if stop is None or stop["number"] in {earlier["number"] for earlier in stops}:
            return stops
        stops.append(stop)
        if stop["closed"]:
            page.keyboard.press("Enter" if len(stops) % 2 else "Space")


@pytest.fixture(scope="module")
def walks(browser, address, pages, lesson_pages, longest):
    """{page: where Tab comes to, and all controls of the page at the end}"""
    seen = {}
    for name in {*pages} - {*lesson_pages} | {longest}:
        with page_in(browser) as page:
            page.goto(f"{address}/{name}")
            stops = tab_through(page)
            seen[name] = stops, measure(page, "allControls()")
    return seen


def test_tab_comes_by_every_control_in_the_order_of_the_page(walks):
    def missing(stops, controls):
        reached = [stop["number"] for stop in stops]
        never = [control["text"] for control in controls if control["number"] not in reached]
        return never[:5] or (reached != sorted(reached) and "not in the order of the page")

    fail_with({name: missing(*walk) for name, walk in walks.items()})


def test_one_sees_where_the_focus_is(walks):
    fail_with(
        {
            name: [stop["text"] for stop in stops if not stop["visible"]][:5]
            for name, (stops, _) in walks.items()
        }
    )


def test_enter_and_space_open_every_fold(walks):
    fail_with(
        {
            name: [control["text"] for control in controls if control["closed"]]
            for name, (_, controls) in walks.items()
        }
    )


def test_the_first_stop_skips_to_the_text(open_page, pages):
    def does_not_skip(page):
        page.keyboard.press("Tab")
        link = focused(page, "outerHTML")
        if not measure(page, "isInView(document.activeElement)"):
            return f"not to be seen: {link}"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        return not focused(page, "closest('main') !== null") and f"leads past main: {link}"

    fail_with({name: does_not_skip(open_page(name)) for name in pages})


def paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def theme(page):
    return page.evaluate("document.documentElement.dataset.theme")


@pytest.mark.parametrize(("preferred", "chosen"), [("light", "dark"), ("dark", "light")])
def test_the_switch_changes_the_theme_and_the_choice_is_kept(
    open_page, lesson_pages, preferred, chosen
):
    page = open_page(lesson_pages[0], theme=preferred)
    before = paper(page)
    page.click("button.theme")
    after = paper(page)
    assert theme(page) == chosen
    assert after != before
    page.reload()
    assert (theme(page), paper(page)) == (chosen, after)
    page.click("nav.turn a[rel=next]")
    page.wait_for_load_state()
    assert (theme(page), paper(page)) == (chosen, after)
    page.click("button.theme")
    assert (theme(page), paper(page)) == (preferred, before)


def test_a_chosen_theme_looks_as_the_same_theme_preferred(open_page, pages, lesson_pages):
    """Element by element: the style for the switch must not forget one colour."""

    def differs(name, wanted, other):
        chosen = open_page(name, theme=other)
        chosen.evaluate("document.querySelector('button.theme').click()")  # not hovered
        both = chosen, open_page(name, theme=wanted)
        for page in both:
            measure(page, "beginExplorers()")
        both = [measure(page, "looks()") for page in both]
        return [f"{one} or {two}" for one, two in zip(*both, strict=True) if one != two][:3]

    names = [lesson_pages[0], *(set(pages) - set(lesson_pages))]
    fail_with({f"{name} light": differs(name, "light", "dark") for name in names})
    fail_with({f"{name} dark": differs(name, "dark", "light") for name in names})


CHOSEN_EARLIER = """
localStorage.setItem("reading-in-order:theme", "dark");
new MutationObserver((_, observer) => {
  if (!document.body) return;
  window.themeAtBody = document.documentElement.dataset.theme;
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


def test_the_first_paint_is_in_the_chosen_theme(new_page, address, pages):
    """The theme is there before the body is: nothing is painted in the other one."""
    page = new_page()
    page.add_init_script(CHOSEN_EARLIER)

    def late(name):
        page.goto(f"{address}/{name}")
        return page.evaluate("themeAtBody") != "dark" and "the theme comes after the body"

    fail_with({name: late(name) for name in pages})


def test_the_switch_works_where_nothing_can_be_stored(new_page, address, pages):
    page = new_page()
    said = complaints(page)
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
    )
    page.goto(f"{address}/{pages[0]}")
    page.click("button.theme")
    assert theme(page) == "dark"
    assert said == []


def test_the_keyboard_works_the_switch(open_page, pages):
    page = open_page(pages[0])
    for key, expected in (("Enter", "dark"), ("Space", "light")):
        page.focus("button.theme")
        page.keyboard.press(key)
        assert theme(page) == expected


def shown_sources(path):
    code = lessons.code_cells(lessons.read(path))
    return [cell.source for cell in code if not HIDDEN_INPUT & set(lessons.tags(cell))]


def test_the_copy_button_copies_exactly_the_code_and_says_so(open_page, site):
    def wrong(path):
        page = open_page(f"{path.stem}.html", permissions=["clipboard-read", "clipboard-write"])
        copied = measure(page, "copyAll()")
        sources = shown_sources(path)
        if len(copied) != len(sources):
            return f"{len(copied)} buttons for {len(sources)} cells"
        return [
            text[:60] if text != source else f"says {said!r}"
            for (text, said), source in zip(copied, sources, strict=True)
            if text != source or "copied" not in said.lower()
        ][:3]

    fail_with({path.stem: wrong(path) for path in lessons.lesson_paths()})


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_works_a_copy_button(open_page, key):
    path = lessons.lesson_paths()[0]
    page = open_page(f"{path.stem}.html", permissions=["clipboard-read", "clipboard-write"])
    measure(page, "openFolds()")
    page.focus("main div.code > button.copy")
    page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert page.evaluate("navigator.clipboard.readText()") == shown_sources(path)[0]


def test_the_contents_mark_the_section_being_read(open_page, lesson_pages):
    fail_with({name: measure(open_page(name), "wronglyMarked()") for name in lesson_pages})


def test_links_within_a_page_bring_their_target_into_view(open_page, pages):
    """Contents, figures, tables and the like: not hidden by a header, not in a closed fold."""
    fail_with({name: measure(open_page(name), "misledLinks()") for name in pages})


def test_the_keyboard_follows_the_contents(open_page, lesson_pages):
    page = open_page(lesson_pages[0])
    link = page.locator("nav.contents li > a").last
    if not link.is_visible():
        page.focus("nav.contents summary")
        page.keyboard.press("Enter")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    assert measure(page, "isInView(document.querySelector(':target'))")


@pytest.mark.parametrize("turn", ["next", "prev"])
def test_one_turns_from_lesson_to_lesson(open_page, lesson_pages, turn):
    names = lesson_pages if turn == "next" else lesson_pages[::-1]
    page = open_page(names[0])
    for name in names[1:]:
        page.click(f"nav.turn a[rel={turn}]")
        page.wait_for_url(f"**/{name}")
        assert page.evaluate("scrollY") == 0
    assert page.locator(f"nav.turn a[rel={turn}]").count() == 0


def test_a_term_leads_to_its_definition(open_page, lesson_pages):
    def misled(name):
        page = open_page(name)
        terms = page.locator("main a.term")
        if not terms.count():
            return "no term is linked to the glossary"
        terms.first.click()
        page.wait_for_url("**/glossary.html#*")
        target = "document.querySelector(':target')"
        return not measure(page, f"{target} && isInView({target})") and page.url

    fail_with({name: misled(name) for name in lesson_pages})


def test_without_scripts_everything_is_there(open_page, pages):
    """In folds too, which the browser opens by itself."""

    def missing(name):
        page = open_page(name, scripts=False)
        measure(page, "openFolds()")
        return measure(page, "notShown()")[:5]

    fail_with({name: missing(name) for name in pages})


def test_without_scripts_a_fold_opens_at_a_click(open_page, lesson_pages):
    page = open_page(lesson_pages[0], scripts=False)
    page.locator("details.fold > summary").first.click()
    assert measure(page, "document.querySelector('details.fold').open")


def test_without_scripts_no_button_is_shown_that_does_nothing(open_page, pages, lesson_pages):
    idle = "[...document.querySelectorAll('button')].filter(shown).map(describe)"
    names = [lesson_pages[0], *({*pages} - {*lesson_pages})]
    fail_with({name: measure(open_page(name, scripts=False), idle) for name in names})


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_scripts_do_not_move_the_text(open_page, pages, lesson_pages, width):
    """Where they run after the first paint, on a slow machine, the page would jump."""
    top = "document.querySelector('main h1').getBoundingClientRect().top"

    def moved(name):
        before, after = (
            open_page(name, width=width, scripts=scripts).evaluate(top) for scripts in (False, True)
        )
        return before != after and f"from {before} to {after}"

    names = [lesson_pages[0], *({*pages} - {*lesson_pages})]
    fail_with({name: moved(name) for name in names})


def test_from_disk_a_page_works_as_from_a_server(new_page, site, lesson_pages):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    said = complaints(page)
    page.goto((site / lesson_pages[0]).as_uri())
    page.click("button.theme")
    page.reload()
    assert theme(page) == "dark"
    assert len(measure(page, "copyAll()")) > 0
    page.click("nav.turn a[rel=next]")
    page.wait_for_url(f"**/{lesson_pages[1]}")
    assert theme(page) == "dark"
    assert said == []
