"""How lessons look: colours that everyone tells apart, figures, tables, sentences, the footer."""

import math
import platform
import re
from functools import partial
from importlib.metadata import version
from io import BytesIO
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from colorspacious import cspace_convert, deltaE
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.colors import to_rgb
from PIL import Image
from traitlets.config import Config

import _style
from _style import (
    COLOURS,
    INK,
    MUTED,
    PAPER,
    footer,
    headline,
    percent,
    prose,
    quiet,
    show,
    table,
    wilson,
)

NIGHT_PAPER = "#14171a"


@pytest.fixture(autouse=True)
def _look():
    """The look of a lesson, and afterwards the one that was."""
    plt.switch_backend("agg")
    with plt.rc_context():
        _style.start()
        yield
    plt.close("all")


@pytest.fixture
def displayed(tmp_path, monkeypatch):
    """Run a call as a notebook would and return the outputs that it displayed."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    settings = Config()
    settings.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=settings)

    def outputs_of(call, *args, **options):
        with capture_output() as captured:
            call(*args, **options)
        return captured.outputs

    yield outputs_of
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()


# Colours

VISION = ["normal", "deuteranomaly", "protanomaly", "tritanomaly"]


def seen(colour, vision):
    """The colour as someone sees it who lacks a kind of cone whole (Machado et al. 2009)."""
    if vision == "normal":
        return np.array(to_rgb(colour))
    space = {"name": "sRGB1+CVD", "cvd_type": vision, "severity": 100}
    return np.clip(cspace_convert(to_rgb(colour), space, "sRGB1"), 0, 1)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("one", "other"), [*combinations(COLOURS, 2)])
def test_two_colours_are_told_apart(one, other, vision):
    colours = [seen(COLOURS[name], vision) for name in (one, other)]
    assert deltaE(*colours, input_space="sRGB1", uniform_space="CAM02-UCS") >= 10


def contrast(one, other):
    """Contrast ratio by WCAG 2.2, of relative luminances, from 1 to 21."""

    def luminance(colour):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
        ]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("paper", [PAPER, NIGHT_PAPER], ids=["day", "night"])
@pytest.mark.parametrize("colour", [*COLOURS.values(), MUTED], ids=[*COLOURS, "muted"])
def test_a_colour_stands_out_from_the_page_by_day_and_by_night(colour, paper):
    assert contrast(colour, paper) >= 3  # WCAG 1.4.11, graphics


def test_ink_on_paper_is_easy_to_read():
    assert contrast(INK, PAPER) >= 7  # WCAG 1.4.6, text


def test_a_lesson_starts_with_the_look_of_the_house_whatever_was_set_before():
    house = dict(plt.rcParams)
    plt.rcParams.update({"font.size": 30, "axes.spines.top": True, "lines.linewidth": 9})
    _style.start()
    assert dict(plt.rcParams) == house


def test_lines_take_the_colours_of_the_house_in_turn():
    ax = plt.figure().subplots()
    lines = [ax.plot([0, 1])[0].get_color() for _ in COLOURS]
    assert lines == list(COLOURS.values())


# Figures

MIME = {"svg": "image/svg+xml", "png": "image/png"}
both_kinds = pytest.mark.parametrize("kind", MIME)


def a_figure():
    fig = plt.figure(figsize=(7, 3))
    fig.subplots().plot([0, 1, 4], label="squares")
    return fig


@pytest.fixture
def picture(displayed):
    """Show a figure of some kind and return its picture's output."""

    def picture_of(kind):
        return displayed(show, a_figure(), 3, "Squares grow.", "A line that rises.", kind)[0]

    return picture_of


@both_kinds
def test_a_figure_carries_its_alt_text_and_its_size_in_pixels(picture, kind):
    described = picture(kind).metadata[MIME[kind]]
    assert described == {"alt": "A line that rises.", "width": 672, "height": 288}


@both_kinds
def test_a_figure_is_one_picture_of_the_kind_asked_for_and_its_alt_text(picture, kind):
    data = picture(kind).data
    assert data.keys() == {MIME[kind], "text/plain"}
    assert data["text/plain"] == "Figure 3: A line that rises."


def test_lines_and_text_are_drawn_as_svg_unless_asked_otherwise(displayed):
    assert "image/svg+xml" in displayed(show, a_figure(), 1, "caption", "alt")[0].data


def test_text_in_an_svg_stays_text(displayed):
    fig = a_figure()
    fig.suptitle("attention")
    assert ">attention</text>" in displayed(show, fig, 1, "caption", "alt")[0].data[MIME["svg"]]


def test_a_png_has_two_pixels_for_each_that_it_takes_on_the_page(picture):
    header = picture("png").data["image/png"][:24]
    assert header.startswith(b"\x89PNG")
    assert [int.from_bytes(header[i : i + 4]) for i in (16, 20)] == [2 * 672, 2 * 288]


@both_kinds
def test_the_same_figure_is_the_same_to_the_byte(picture, kind):
    assert picture(kind).data == picture(kind).data


@pytest.fixture(scope="module")
def photo():
    """A figure of pixels as PNG: a grey ramp under a green glow."""
    fig, ax = plt.subplots(figsize=(3, 1))
    ax.imshow(np.linspace(0, 1, 300).reshape(10, 30), cmap="gray")
    ax.imshow(np.linspace(0, 1, 300).reshape(10, 30).T[:10], cmap="Greens", alpha=0.5)
    file = BytesIO()
    fig.savefig(file, format="png")
    plt.close(fig)
    return file


def test_a_palette_makes_a_png_smaller(photo):
    assert len(_style.with_palette(photo)) < 0.8 * len(photo.getvalue())


def test_a_palette_keeps_the_size_and_nearly_the_colours(photo):
    before = np.asarray(Image.open(photo).convert("RGB"), dtype=int)
    after = np.asarray(Image.open(BytesIO(_style.with_palette(photo))).convert("RGB"), dtype=int)
    assert after.shape == before.shape
    assert np.abs(after - before).mean() < 2


@pytest.mark.parametrize(("kind", "trace"), [("svg", "<dc:date>"), ("png", b"Software")])
def test_a_picture_keeps_no_trace_of_when_or_with_what_it_was_drawn(picture, kind, trace):
    assert trace not in picture(kind).data[MIME[kind]]


def test_the_numbered_caption_follows_the_figure(displayed):
    _, caption = displayed(show, a_figure(), 3, "Squares *grow*.", "A line that rises.")
    assert caption.data["text/markdown"] == "**Figure 3.** Squares *grow*."
    assert caption.metadata == {"caption": 3, "of": "figure", "name": None}


def test_a_figure_has_a_name_to_refer_to(displayed):
    _, caption = displayed(show, a_figure(), 3, "caption", "alt", name="squares")
    assert caption.metadata["name"] == "squares"


def test_the_figure_that_stands_for_a_lesson_is_a_png_too(displayed):
    output, _ = displayed(show, a_figure(), 3, "caption", "alt", card=True)
    assert output.metadata["card"]
    assert output.data.keys() == {*MIME.values(), "text/plain"}


@both_kinds
def test_a_figure_is_closed_once_shown(picture, kind):
    picture(kind)
    assert plt.get_fignums() == []


REFUSED = {
    "an empty caption": ({"caption": " "}, "figure 3 has an empty caption"),
    "an empty alt text": ({"alt": "\n"}, "figure 3 has an empty alt"),
    "another kind": ({"kind": "jpg"}, "kind is 'jpg': use \"svg\" for lines"),
}


@pytest.mark.parametrize(("changed", "message"), REFUSED.values(), ids=REFUSED)
def test_a_figure_that_cannot_be_shown_is_refused_and_displays_nothing(displayed, changed, message):
    figure = {"fig": a_figure(), "number": 3, "caption": "Squares grow.", "alt": "A line."}

    def refused():
        with pytest.raises(ValueError, match=message):
            show(**figure | changed)

    assert displayed(refused) == []


def test_quiet_axes_show_the_picture_and_nothing_around_it():
    ax = plt.figure().subplots()
    image = ax.imshow([[0, 1]])
    assert quiet(ax) is ax
    assert [len(ax.get_xticks()), len(ax.get_yticks())] == [0, 0]
    assert not any(spine.get_visible() for spine in ax.spines.values())
    assert image in ax.images


# Tables


@pytest.fixture
def print_table(monkeypatch):
    """Print a table without its caption."""
    monkeypatch.setattr(_style, "_caption", lambda *_: None)
    return partial(table, number=1, caption="It grows.")


def test_a_table_has_a_header_a_rule_and_columns_that_line_up(print_table, capsys):
    print_table(["epoch", "loss", "digits right"], [[1, "0.731", "39.4"], [10, "0.104", "87.3"]])
    assert capsys.readouterr().out.splitlines() == [
        "epoch        loss  digits right",
        "-----  ----------  ------------",
        "1           0.731          39.4",
        "10          0.104          87.3",
    ]


@pytest.mark.parametrize("number", ["0.1", "12,345.67", "−1.5e-10", "[95, 96]"])
def test_columns_keep_their_width_whatever_the_numbers_are(print_table, capsys, number):
    print_table(["part", "value", "unit"], [["a", number, "nats"]])
    header, rule, row = capsys.readouterr().out.splitlines()
    assert rule == "----  ----------  ----------"
    assert len(header) == len(row) == len(rule)


def test_the_first_column_is_as_wide_as_its_longest_label(print_table, capsys):
    print_table(["part", "n"], [["a", 1], ["image positions", 2]])
    assert capsys.readouterr().out.splitlines()[2] == "a".ljust(15) + "1".rjust(12)


def test_a_line_does_not_end_in_blanks(print_table, capsys):
    print_table(["epoch", "loss", "article"], [["0", "", ""]])
    assert capsys.readouterr().out.splitlines()[2] == "0"


def test_rows_of_a_generator_are_printed_as_they_come(print_table, capsys):
    printed = []

    def rows():
        for epoch in (1, 2):
            printed.append(capsys.readouterr().out.splitlines())
            yield [epoch, "0.5"]

    print_table(["epoch", "loss"], rows())
    assert printed == [["epoch        loss", "-----  ----------"], ["1             0.5"]]


@pytest.mark.parametrize("kind", [list, iter], ids=["list", "generator"])
@pytest.mark.parametrize("row", [[], ["a"], ["a", 1, 2]], ids=["empty", "short", "long"])
def test_a_row_of_another_length_is_refused(print_table, kind, row):
    with pytest.raises(ValueError, match=rf"has {len(row)} cells, the header 2"):
        print_table(["part", "n"], kind([row]))


@pytest.mark.parametrize("kind", [list, iter], ids=["list", "generator"])
def test_a_cell_that_would_push_the_columns_apart_is_refused(print_table, kind):
    with pytest.raises(ValueError, match="'12345678901' is wider than the 10 of its column 'n'"):
        print_table(["part", "n"], kind([["a", "12345678901"]]))


def test_a_label_of_a_generator_that_is_wider_than_its_header_is_refused(print_table):
    with pytest.raises(ValueError, match="'image positions' is wider than the 4 of its"):
        print_table(["part", "n"], iter([["image positions", 1]]))


def test_the_numbered_caption_follows_the_table(displayed):
    (caption,) = displayed(table, ["n"], [[1]], 2, "It *grows*.", name="growth")
    assert caption.data["text/markdown"] == "**Table 2.** It *grows*."
    assert caption.metadata == {"caption": 2, "of": "table", "name": "growth"}


def test_a_table_without_a_caption_is_refused(capsys):
    with pytest.raises(ValueError, match="table 2 has an empty caption"):
        table(["n"], [[1]], 2, " ")
    assert capsys.readouterr().out == ""


# Sentences


def test_prose_is_displayed_as_markdown(displayed):
    (sentence,) = displayed(prose, "It reads **83.0 %**.")
    assert sentence.data["text/markdown"] == "It reads **83.0 %**."
    assert "headline" not in sentence.metadata


def test_a_headline_is_markdown_that_says_so(displayed):
    (sentence,) = displayed(headline, "It reads **83.0 %**.")
    assert sentence.data["text/markdown"] == "It reads **83.0 %**."
    assert sentence.metadata["headline"]


def interval(right, total):
    """Wilson (1927): where |p - share| = z * sqrt(p * (1 - p) / total), solved for p."""
    z, share = 1.959964, right / total  # 97.5 % of a normal distribution lie below z
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    return 100 * (centre - half), 100 * (centre + half)


@pytest.mark.parametrize(("right", "total"), [(1684, 2000), (1, 2000), (9, 10), (1, 1), (0, 3)])
def test_wilson_gives_the_share_and_the_interval_of_the_formula(right, total):
    share, low, high = wilson(right, total)
    assert share == pytest.approx(100 * right / total)
    assert (low, high) == pytest.approx(interval(right, total), abs=1e-4)


def test_an_interval_stays_between_0_and_100():
    assert wilson(0, 50)[:2] == (0, 0)
    assert wilson(50, 50)[0::2] == (100, 100)


def test_an_interval_has_a_width_even_when_all_or_none_are_right():
    assert wilson(0, 50)[2] > 5
    assert wilson(50, 50)[1] < 95


@pytest.mark.parametrize(
    ("right", "total", "text"),
    [
        (1684, 2000, "84.2 % [82.5, 85.7]"),
        (0, 50, "0.0 % [0.0, 7.1]"),
        (50, 50, "100.0 % [92.9, 100.0]"),
    ],
)
def test_percent_is_the_share_with_its_interval_as_text(right, total, text):
    assert percent(right, total) == text


# The footer


@pytest.fixture
def built(displayed, monkeypatch):
    """The footer's output, 83.6 seconds after the start."""
    monkeypatch.setattr(_style.cpuinfo, "get_cpu_info", lambda: {"brand_raw": "AMD EPYC"})
    monkeypatch.setitem(_style._clock, "start", _style.time.monotonic() - 83.6)
    monkeypatch.setattr(_style, "peak_megabytes", lambda: 1234.0)
    (output,) = displayed(footer)
    return output


def test_the_footer_says_when_where_with_what_and_how_long(built):
    facts = dict(re.split(r" {2,}", line) for line in built.data["text/plain"].splitlines())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", facts.pop("built"))
    assert facts == {
        "seconds": "84",
        "memory": "1234 MB at most",
        "platform": f"{platform.system()} {platform.machine()}",
        "CPU": "AMD EPYC",
        "threads": str(torch.get_num_threads()),
        "Python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
        "matplotlib": version("matplotlib"),
    }


def test_the_footer_carries_the_seconds_where_tools_find_them(built):
    assert built.metadata == {"seconds": 84}


def test_a_processor_without_a_name_is_unknown(displayed, monkeypatch):
    monkeypatch.setattr(_style.cpuinfo, "get_cpu_info", dict)
    assert "CPU         unknown\n" in displayed(footer)[0].data["text/plain"]


def test_a_footer_without_a_start_is_refused(monkeypatch):
    monkeypatch.delitem(_style._clock, "start")
    with pytest.raises(RuntimeError, match=r"call _style\.start\(\) first"):
        footer()
