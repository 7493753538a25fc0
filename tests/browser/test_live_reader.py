"""The live reader, worked as a reader of lesson 05 works it."""

import pytest
import torch
from bs4 import BeautifulSoup
from playwright.sync_api import expect

import digits
import stopping
import weights
from in_browser import NARROW, THEMES
from reader import generate

NAME = "05_knowing_when_to_stop.html"
READER = "document.querySelector('live-reader')"
THREE = [(30, 22), (45, 12), (62, 18), (64, 33), (50, 45), (55, 50), (66, 62), (62, 80), (45, 88)]
SEVEN = [(105, 18), (150, 16), (140, 45), (128, 88)]
ONE = [(200, 14), (198, 50), (195, 88)]
READING, FRAME = 60, 50  # milliseconds of work for three digits, and between two frames


@pytest.fixture
def opened(open_page):
    """Open the lesson and wait until its reader has read: opened(theme=..., ...)."""

    def opened(**options):
        page = open_page(NAME, **options)
        page.locator("live-reader").scroll_into_view_if_needed()
        wait_for(page, "test number")
        return page

    return opened


def wait_for(page, text):
    page.locator("live-reader .answer", has_text=text).wait_for()


def wait_for_another(page, answer):
    shown = page.locator("live-reader .answer")
    expect(shown).not_to_have_text(answer, timeout=10_000)


def answer(page):
    return page.locator("live-reader .answer").text_content()


def message(page):
    return page.locator("live-reader .message").text_content()


def points(page, stroke):
    """A stroke in hundredths of the pad's height -> in pixels of the screen."""
    page.locator("live-reader .pad").first.scroll_into_view_if_needed()
    box = page.locator("live-reader .pad").first.bounding_box()
    unit = box["height"] / 100
    return [(box["x"] + x * unit, box["y"] + y * unit) for x, y in stroke]


def draw(page, *strokes):
    for stroke in strokes:
        start, *rest = points(page, stroke)
        page.mouse.move(*start)
        page.mouse.down()
        for point in rest:
            page.mouse.move(*point, steps=4)
        page.mouse.up()


def touch(page, *strokes):
    session = page.context.new_cdp_session(page)

    def send(kind, *at):
        touches = [{"x": x, "y": y} for x, y in at]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    for stroke in strokes:
        start, *rest = points(page, stroke)
        send("touchStart", start)
        for point in rest:
            send("touchMove", point)
        send("touchEnd")


def press(page, button):
    page.locator("live-reader").get_by_role("button", name=button).click()


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_what_the_mouse_has_drawn(opened, theme):
    page = opened(theme=theme)
    draw(page, THREE, SEVEN, ONE)
    wait_for(page, "3 7 1 END, and stops")


def test_it_reads_what_a_finger_has_drawn_on_a_narrow_screen(opened):
    page = opened(width=NARROW, has_touch=True)
    touch(page, THREE, SEVEN, ONE)
    wait_for(page, "3 7 1 END, and stops")


def test_it_reads_what_the_keyboard_has_drawn(opened):
    page = opened()
    page.focus("live-reader .pad")
    for key in [*["ArrowUp"] * 12, "Space", *["ArrowDown"] * 24, "Space"]:
        page.keyboard.press(key)
    wait_for(page, "Your drawing: the reader writes 1 END, and stops")


def test_undo_takes_back_the_last_stroke(opened):
    page = opened()
    draw(page, THREE, SEVEN, ONE)
    wait_for(page, "3 7 1 END")
    press(page, "Undo")
    wait_for(page, "writes 3 7 END")


def test_clear_leaves_nothing_and_says_so(opened):
    page = opened()
    draw(page, THREE)
    wait_for(page, "writes 3 END")
    press(page, "Clear")
    assert "draw a number" in message(page)
    assert answer(page) == ""
    assert page.locator("live-reader .steps li").count() == 0


def test_ink_over_the_edge_is_named_and_the_rest_is_read(opened):
    page = opened()
    draw(page, [(100, 10), (100, 130)])
    wait_for(page, "writes 1 END")
    assert "left the pad" in message(page)


def test_more_digits_than_fit_are_refused(opened):
    page = opened()
    box = [(0, 10), (30, 10), (30, 40), (0, 40), (0, 10)]
    draw(page, *([(x + 36 * i, y) for x, y in box] for i in range(8)))
    assert "8 digits: more than fit" in message(page)


def test_a_dot_is_read_as_something(opened):
    page = opened()
    draw(page, [(100, 50), (100, 50)])
    wait_for(page, "Your drawing: the reader writes")
    assert message(page) == ""


def test_stump_me_shows_numbers_that_it_misreads(opened):
    page = opened()
    wrong = 0
    for _ in range(16):
        before = answer(page)
        press(page, "Stump me")
        wait_for_another(page, before)
        asked, _, written = answer(page).partition(": the reader writes ")
        wrong += not written.startswith(asked.removeprefix("The test number ") + " END,")
    assert wrong > 8


@pytest.fixture(scope="module")
def rounded():
    """The reader with its weights rounded to float16, as they travel."""
    reader = stopping.build()
    weights.load("reader-variable", reader)
    state = {name: part.half().float() for name, part in reader.state_dict().items()}
    reader.load_state_dict(state)
    return reader


def test_it_computes_what_pytorch_does(opened, rounded):
    """On the test numbers that it shows, token for token and in each probability."""
    page = opened()
    test = digits.load()
    numbers = digits.scatter(test.x_test, test.y_test, n=3_000, seed=2)
    for i in range(5):
        before = answer(page)
        press(page, "A test number")
        wait_for_another(page, before)
        reading = generate(rounded, numbers.images[i : i + 1])
        written = page.locator("live-reader .steps strong").evaluate_all(
            "all => all.map(one => Number(one.dataset.value))"
        )
        expected = reading.probabilities[0, : reading.lengths[0]]
        assert torch.tensor(written) == pytest.approx(expected, abs=1e-4)


def test_the_table_that_stands_for_it_says_what_it_shows_first(opened):
    page = opened()
    rows = BeautifulSoup(page.content(), "html.parser").select("live-reader tbody tr")
    stored = [row.find_all(["th", "td"])[1].text for row in rows]
    shown = page.locator("live-reader .steps strong small").all_text_contents()
    assert [text.replace("\xa0", " ") for text in stored] == shown
    tokens = [row.th.text for row in rows]
    assert answer(page).endswith(f"the reader writes {' '.join(tokens)}, and stops.")


@pytest.fixture
def portions(opened):
    """The milliseconds of work between two frames in which 371 was read, for each of ten times."""
    page = opened()
    found = []
    for _ in range(10):
        press(page, "Clear")
        draw(page, THREE, SEVEN, ONE)
        wait_for(page, "3 7 1 END")
        found.append(page.evaluate(f"{READER}.portions"))
    return found


def test_three_digits_are_read_at_once_and_no_frame_waits_long(portions):
    """In the best of ten times: the machine may be busy."""
    whole = [sum(times) for times in portions]
    longest = [max(times) for times in portions]
    print(f"a number of three digits: {min(whole):.0f} ms, at most {min(longest):.0f} at a time")
    assert min(whole) < READING
    assert min(longest) < FRAME


def test_two_readers_on_a_page_do_not_meet(opened):
    page = opened()
    page.evaluate(f"{READER}.after(document.createElement('live-reader'))")
    second = page.locator("live-reader").nth(1).locator(".answer")
    second.filter(has_text="test number").wait_for()
    before = second.text_content()
    draw(page, THREE)
    page.locator("live-reader .answer", has_text="Your drawing").wait_for()
    assert second.text_content() == before
