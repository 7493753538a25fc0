"""The mask explorer of lesson 03: what it measures is what PyTorch measures under the same mask."""

import itertools
import random

import pytest
import torch
import torch.nn.functional as F

import digits
import jobs
import lessons
import reader
import weights
from in_browser import NARROW, WIDE, complaints

FRAME = 50  # milliseconds of work between two frames
LESSON = lessons.NOTEBOOKS / "03_take_each_part_away.ipynb"
PLACES = range(4)
CAUSAL = [[s <= t for s in PLACES] for t in PLACES]
PRESETS = {
    "causal": CAUSAL,
    "all open": [[True] * 4] * 4,
    "only itself": [[s == t for s in PLACES] for t in PLACES],
}
TRAINED = {"with the causal mask": "reader-small", "without a mask": "reader-small-unmasked"}
NAMES = [*"0123456789", "START", "END"]


def cell_of(start):
    """Source of the lesson's cell that begins so."""
    sources = [cell.source for cell in lessons.code_cells(lessons.read(LESSON))]
    return next(source for source in sources if source.startswith(start))


@pytest.fixture(scope="module")
def lesson(one_thread):
    """What the lesson defines to measure a mask, and the composites."""
    names = vars(reader) | {"torch": torch, "F": F, "digits": digits, "data": digits.load()}
    names |= {"SHAPE": jobs.SMALL_SHAPE, "half": jobs.half, "load_weights": weights.load}
    exec(cell_of("def reading_under"), names)
    exec(cell_of("drawn, asked").partition("\neverything")[0], names)
    return names


class Explorer:
    """An explorer in a page, and what a reader does with it."""

    def __init__(self, page, number=0):
        self.page, self.root = page, page.locator("mask-explorer").nth(number)
        self.root.scroll_into_view_if_needed()
        self.wait()

    def wait(self):
        self.root.locator(".explorer:not([aria-busy])").wait_for()

    def press(self, name):
        self.root.get_by_role("button", name=name, exact=True).click()
        self.wait()

    def choose(self, control, **option):
        self.root.get_by_label(control).select_option(**option)
        self.wait()

    def cell(self, t, s):
        return self.root.locator(".square button").nth(4 * t + s)

    def flip(self, t, s):
        self.cell(t, s).click()
        self.wait()

    def set(self, mask):
        """Flip cells until the mask is this one."""
        for t, s in itertools.product(PLACES, PLACES):
            if (self.cell(t, s).get_attribute("aria-pressed") == "true") != mask[t][s]:
                self.flip(t, s)

    def mask(self):
        pressed = [cell.get_attribute("aria-pressed") for cell in self.all(".square button")]
        return [[word == "true" for word in pressed[4 * t : 4 * t + 4]] for t in PLACES]

    def all(self, selector):
        return self.root.locator(selector).all()

    def read(self, name):
        return self.root.locator(f'[data-name="{name}"]').inner_text()

    def counts(self):
        return [self.read(name) for name in ("tokens", "taught", "free")]

    def tokens(self, line):
        return [self.read(f"{line}-{t + 1}") for t in PLACES]

    def changes(self):
        cells = self.root.locator(".moves")
        values = cells.evaluate_all("all => all.map((one) => Number(one.dataset.value))")
        return torch.tensor(values, dtype=torch.double).view(4, 4)

    def message(self):
        return self.root.get_by_role("alert").inner_text()


@pytest.fixture
def open_explorer(new_page, address):
    """Open the page: open_explorer(width=..., ...)."""

    def open_page(**options):
        page = new_page(**options)
        page.said = complaints(page)
        page.goto(f"{address}/{LESSON.stem}.html")
        return page

    return open_page


@pytest.fixture
def explorer(open_explorer):
    return Explorer(open_explorer())


@pytest.fixture
def expected(lesson):
    """What PyTorch finds under a mask: counts as they are shown, and largest changes."""

    def find(mask, name="reader-small", composite=0):
        sees = torch.tensor(mask)
        model = lesson["reading_under"](sees, name)
        pictures, asked = lesson["pictures"], lesson["asked"]
        found = lesson["counts"](model, pictures, asked)
        counts = [f"{n} of {total}" for n, total in zip(found, (128, 32, 32), strict=True)]
        return counts, lesson["largest_changes"](model, pictures[composite], asked[composite])

    return find


# What it measures


def test_it_opens_with_the_causal_mask_and_the_counts_of_pytorch(explorer, expected):
    assert explorer.mask() == CAUSAL
    assert explorer.counts() == expected(CAUSAL)[0]


@pytest.mark.parametrize("trained", TRAINED)
@pytest.mark.parametrize("preset", PRESETS)
def test_counts_are_those_of_pytorch_with_each_reader_under_each_preset(
    explorer, expected, preset, trained
):
    explorer.choose("The reader was trained", label=trained)
    explorer.press(preset)
    assert explorer.mask() == PRESETS[preset]
    assert explorer.counts() == expected(PRESETS[preset], TRAINED[trained])[0]


def random_mask(seed):
    """Each position sees itself, and others or not."""
    draw = random.Random(seed).random
    return [[s == t or draw() < 0.5 for s in PLACES] for t in PLACES]


@pytest.mark.parametrize("seed", range(4))
def test_logits_move_as_far_as_in_pytorch_under_any_mask(explorer, expected, seed):
    mask, composite = random_mask(seed), 7 * seed
    explorer.choose("Composite", index=composite)
    explorer.set(mask)
    counts, changes = expected(mask, composite=composite)
    assert explorer.counts() == counts
    assert torch.allclose(explorer.changes(), changes, rtol=0, atol=1e-3)
    assert torch.equal(explorer.changes() > 1e-6, changes > 1e-6)


def test_under_the_causal_mask_nothing_of_the_future_moves_a_logit(explorer):
    assert not (explorer.changes() > 1e-6).triu(diagonal=1).any()
    assert explorer.read("leaks") == "Logits move in 0 of the 6 places of the future (dashed)."


def test_a_cell_opened_to_the_future_moves_the_logits_of_its_row_alone(explorer):
    before = explorer.changes()
    explorer.flip(1, 2)
    moved = (explorer.changes() - before).abs() > 1e-6
    assert explorer.changes()[1, 2] > 1e-6
    assert moved.any(dim=1).tolist() == [False, True, False, False]
    assert "1 of the 6" in explorer.read("leaks")


def test_a_token_hidden_from_its_own_position_still_moves_its_logits(explorer):
    """Measured and not copied from the mask: the residual path goes round the attention."""
    explorer.flip(2, 2)
    assert explorer.changes()[2, 2] > 1e-6


def test_the_largest_changes_are_shown_when_asked_for(explorer):
    assert explorer.root.locator(".moves").first.inner_text() == "moves"
    explorer.root.get_by_label("Show the largest change").check()
    shown = float(explorer.root.locator(".moves").first.inner_text())
    assert shown == pytest.approx(explorer.changes()[0, 0].item(), abs=0.05)


@pytest.mark.parametrize("trained", TRAINED)
def test_the_answers_to_every_composite_are_those_of_pytorch(explorer, lesson, trained):
    explorer.choose("The reader was trained", label=trained)
    explorer.press("all open")
    model = lesson["reading_under"](torch.ones(4, 4, dtype=torch.bool), TRAINED[trained])
    pictures, asked = lesson["pictures"], lesson["asked"]
    with torch.no_grad():
        taught = model(pictures, reader.teacher_forcing(asked)[0]).argmax(dim=2)
    reading = reader.generate(model, pictures)
    for i in range(0, 32, 5):
        explorer.choose("Composite", index=i)
        free = [NAMES[token] for token in reading.tokens[i, : reading.lengths[i]]]
        assert explorer.tokens("asked") == [*map(str, asked[i].tolist()), "END"]
        assert [text.strip(" ✗") for text in explorer.tokens("taught")] == [
            NAMES[token] for token in taught[i]
        ]
        written = [text.strip(" ✗") for text in explorer.tokens("free")]
        assert written == free + ["–"] * (4 - len(free))


def test_wrong_tokens_are_marked_by_a_sign(explorer):
    explorer.choose("The reader was trained", label="without a mask")
    for line in ("taught", "free"):
        for text, asked in zip(explorer.tokens(line), explorer.tokens("asked"), strict=True):
            wrong = text.strip(" ✗") not in (asked, "–")
            assert text.endswith("✗") == wrong


def test_the_image_shown_is_named_by_its_digits(explorer, lesson):
    explorer.choose("Composite", index=3)
    first, second, third = lesson["asked"][3].tolist()
    picture = explorer.root.locator("canvas")
    assert picture.get_attribute("aria-label").endswith(f": {first}, {second}, {third}")


def test_the_image_shown_is_the_composite(explorer, lesson):
    explorer.choose("Composite", index=3)
    pixels = explorer.root.locator("canvas").evaluate(
        "canvas => [...canvas.getContext('2d').getImageData(0, 0, 42, 14).data]"
    )
    light = torch.tensor(pixels).view(14, 42, 4)[:, :, 0]
    assert torch.equal(255 - light, lesson["composites"][3].long())


# What it says


def test_it_says_when_the_counts_agree(explorer):
    assert explorer.read("said").endswith("no gap, and no answer depends on the future.")


def test_it_says_when_they_do_not(explorer):
    explorer.choose("The reader was trained", label="without a mask")
    explorer.press("all open")
    said = explorer.root.get_by_role("status").inner_text()
    assert said.startswith("32 numbers are right with a teacher, 0 running freely: a gap")


def test_it_says_when_a_leak_shows_in_no_count(explorer):
    explorer.press("all open")
    assert explorer.read("said").endswith("and here it shows in no count.")


def test_a_row_without_a_view_is_explained_and_shows_no_number(explorer):
    explorer.flip(0, 0)
    assert explorer.message().startswith("Position 1 (START) may see nothing")
    assert explorer.counts() == ["–", "–", "–"]
    assert "NaN" not in explorer.root.locator(".explorer").inner_text()


def test_after_a_row_without_a_view_the_grid_still_works(explorer, expected):
    explorer.flip(0, 0)
    explorer.flip(0, 0)
    assert explorer.message() == ""
    assert explorer.counts() == expected(CAUSAL)[0]


def test_a_row_that_sees_the_future_alone_is_explained_and_counted_with_a_teacher(explorer):
    explorer.flip(0, 1)
    explorer.flip(0, 0)
    assert explorer.message().startswith("Running freely, position 1 (START) sees nothing")
    tokens, taught, free = explorer.counts()
    assert "of 128" in tokens
    assert "of 32" in taught
    assert free == "–"


# How it is worked


def test_a_second_flip_undoes_the_first(explorer):
    counts, changes = explorer.counts(), explorer.changes()
    explorer.flip(0, 2)
    explorer.flip(0, 2)
    assert explorer.mask() == CAUSAL
    assert explorer.counts() == counts
    assert torch.equal(explorer.changes(), changes)


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_flips_a_cell(explorer, key):
    explorer.cell(1, 3).focus()
    explorer.page.keyboard.press(key)
    explorer.wait()
    assert explorer.cell(1, 3).get_attribute("aria-pressed") == "true"
    assert explorer.changes()[1, 3] > 1e-6


def test_arrow_keys_move_among_the_cells_and_stop_at_the_edge(explorer):
    focused = "document.activeElement.shadowRoot.activeElement.ariaLabel"
    explorer.cell(0, 0).focus()
    for key, place in (
        ("ArrowRight", (1, 2)),
        ("ArrowDown", (2, 2)),
        ("ArrowLeft", (2, 1)),
        ("ArrowLeft", (2, 1)),
        ("ArrowUp", (1, 1)),
        ("ArrowUp", (1, 1)),
    ):
        explorer.page.keyboard.press(key)
        name = explorer.page.evaluate(focused)
        assert name.startswith("position {} may see token {}".format(*place)), key


def test_tab_comes_by_all_controls_and_each_is_worked_by_the_keyboard(explorer):
    keyboard, counts = explorer.page.keyboard, explorer.counts()
    explorer.root.get_by_label("The reader was trained").focus()
    keyboard.press("ArrowDown")
    explorer.wait()
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    explorer.wait()
    for key in ("Tab", "Tab", "Enter", "Tab", "Tab", "Space"):
        keyboard.press(key)
        explorer.wait()
    assert explorer.mask() == PRESETS["all open"]
    assert explorer.counts() != counts
    assert explorer.root.get_by_label("Composite").input_value() == "1"
    assert explorer.root.get_by_label("Show the largest change").is_checked()


def test_a_touch_flips_a_cell(open_explorer):
    explorer = Explorer(open_explorer(width=NARROW, has_touch=True))
    explorer.cell(0, 1).tap()
    explorer.wait()
    assert explorer.mask()[0] == [True, True, False, False]


def test_a_cell_is_told_by_its_sign_and_its_name_not_by_colour_alone(explorer):
    assert [explorer.cell(1, s).inner_text() for s in PLACES] == ["✓", "✓", "–", "–"]
    names = [explorer.cell(1, s).get_attribute("aria-label") for s in PLACES]
    assert [name.endswith("the future") for name in names] == [False, False, True, True]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_cells_are_large_enough_and_nothing_is_wider_than_the_screen(open_explorer, width):
    explorer = Explorer(open_explorer(width=width))
    for cell in explorer.all(".square button"):
        box = cell.bounding_box()
        assert min(box["width"], box["height"]) >= 32
    assert explorer.page.evaluate("document.documentElement.scrollWidth") <= width
    for part in explorer.all(".explorer *"):
        assert part.evaluate("one => one.getBoundingClientRect().right") <= width


def test_two_on_a_page_do_not_meet(open_explorer):
    page = open_explorer()
    another = "document.createElement('mask-explorer')"
    page.evaluate(f"document.querySelector('mask-explorer').after({another})")
    one, other = Explorer(page), Explorer(page, 1)
    other.press("all open")
    assert one.mask() == CAUSAL
    assert other.mask() == PRESETS["all open"]
    assert "0 of the 6" in one.read("leaks")
    assert "6 of the 6" in other.read("leaks")


def test_the_console_stays_empty(open_explorer):
    page = open_explorer()
    explorer = Explorer(page)
    for preset in PRESETS:
        explorer.press(preset)
    explorer.flip(0, 0)
    assert page.said == []


def test_a_flip_never_holds_up_the_page(explorer):
    """The longest portion of work of a flip, the quickest of six, in milliseconds."""
    longest = []
    for _ in range(6):
        explorer.flip(0, 1)
        longest.append(max(explorer.root.evaluate("root => root.portions")))
    print(f"no portion of a flip takes more than {min(longest):.0f} ms")
    assert min(longest) < FRAME
