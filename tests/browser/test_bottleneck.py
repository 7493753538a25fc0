"""The bottleneck explorer of lesson 06: what it shows is what PyTorch computes."""

import base64
import re

import pytest
import safetensors.torch
import torch
from bs4 import BeautifulSoup

import weights
from in_browser import NARROW, THEMES, complaints
from seq2seq import DIGITS, Encoder, attention_copier, copier, generate, influence

pytestmark = pytest.mark.usefixtures("one_thread")

NAME = "06_the_fixed_vector.html"
PI = "3141592653589793238462643383279502884197"
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
KEEPING_GATES = {"GRU": "Update", "LSTM": "Forget"}
TRAINED = {
    "copier-rnn": ("RNN", False),
    "copier-gru": ("GRU", False),
    "copier-lstm": ("LSTM", False),
    "copier-gru-attention": ("GRU", True),
}
LENGTHS = (3, 12, 20, 40)
SLIDERS = {"Length": "20", "Update gate bias": "0", "Decoder step": "1"}
# From a move of the slider at 40 digits, H = 64, to what is drawn. The goal is 30 on a quiet
# machine; beside other tests on the same two cores 50 was measured.
MILLISECONDS = 100


class Explorer:
    """One of the explorers of a page, and how a reader works it."""

    def __init__(self, page, number=0):
        self.page = page
        self.root = page.locator("bottleneck-explorer").nth(number)
        self.root.scroll_into_view_if_needed()
        self.wait()

    def wait(self):
        self.root.locator(".explorer:not([aria-busy])").wait_for()

    def control(self, label):
        return self.root.get_by_label(re.compile(f"^{label}"))

    def choose(self, **chosen):
        """Set controls by the beginnings of their labels: Weights="trained", Length=12, ..."""
        for label, value in chosen.items():
            control = self.control(label.replace("_", " "))
            if isinstance(value, bool):
                control.set_checked(value)
            elif control.evaluate("one => one.localName") == "select":
                control.select_option(str(value))
            else:
                control.fill(str(value))
            self.wait()

    def text(self, selector):
        return self.root.locator(selector).text_content()

    def value(self, name):
        return float(self.root.locator(f"dd [data-name={name}]").get_attribute("data-value"))

    def column(self, name):
        """A column of the table of all numbers, which is opened."""
        self.root.locator("details:not(.static)").first.evaluate("one => { one.open = true }")
        cells = self.root.locator(f"td[data-name={name}]")
        cells.first.wait_for()
        return cells.evaluate_all("all => all.map(one => Number(one.dataset.value))")

    def message(self):
        return self.text(".message")


@pytest.fixture
def opened(open_page):
    """Open the lesson and wait until its explorer has computed: opened(theme=..., ...)."""
    return lambda **options: Explorer(open_page(NAME, **options))


@pytest.fixture(scope="module")
def tensors(site):
    """What the page loads, in single precision."""
    text = (site / "weights" / "bottleneck-explorer.js").read_text("utf-8")
    loaded = safetensors.torch.load(base64.b64decode(text.split('"')[-2]))
    return {name: tensor.float() for name, tensor in loaded.items()}


@pytest.fixture(scope="module")
def untrained(tensors):
    """Cut an encoder from the noise: untrained(cell, size, bias)."""

    def corner(name, gates, size, *columns):
        part = tensors[f"noise.{name}"][:gates, :size]
        return (part[:, :, : columns[0]] if columns else part).flatten(0, 1) / size**0.5

    def untrained(cell, size, bias):
        gates = GATES[cell]
        encoder = Encoder(len(DIGITS), 64, size, cell)
        encoder.load_state_dict(
            {
                "embed.weight": tensors["noise.embed"],
                "rnn.weight_ih_l0": corner("input", gates, size, 64),
                "rnn.weight_hh_l0": corner("recurrent", gates, size, size),
                "rnn.bias_ih_l0": corner("biasInput", gates, size),
                "rnn.bias_hh_l0": corner("biasRecurrent", gates, size),
            }
        )
        with torch.no_grad():
            encoder.rnn.bias_hh_l0[size : 2 * size] += bias
        return encoder

    return untrained


@pytest.fixture(scope="module")
def trained():
    """The copiers of data/ with weights rounded to float16, as they travel: trained(name)."""

    def trained(name):
        cell, attention = TRAINED[name]
        model = attention_copier(64, 0) if attention else copier(64, 0, cell)
        weights.load(name, model)
        state = {key: part.half().float() for key, part in model.state_dict().items()}
        model.load_state_dict(state)
        return model

    return trained


def bars_of(encoder, digits):
    return influence(encoder.double(), DIGITS.encode([digits]))[0]


def ratio(bars):
    third = len(bars) // 3
    return (bars[-third:].mean() / bars[:third].mean()).item()


def show_trained(explorer, name):
    cell, attention = TRAINED[name]
    explorer.choose(Weights="trained", Cell=cell)
    if attention:
        explorer.choose(Attention=True)


def test_it_begins_with_a_fresh_gru_that_hears_the_end(opened, untrained):
    explorer = opened()
    expected = ratio(bars_of(untrained("GRU", 64, 0), PI[:20]))
    assert explorer.value("ratio") == pytest.approx(expected, rel=1e-4)
    assert "Untrained GRU, H = 64" in explorer.text(".said")


@pytest.mark.parametrize(
    ("cell", "size", "bias", "length"),
    [
        ("RNN", 64, 0, 7),
        ("RNN", 8, 0, 20),
        ("GRU", 8, 0, 3),
        ("GRU", 64, 0, 40),
        ("GRU", 96, 2.5, 33),
        ("GRU", 128, 4, 40),
        ("LSTM", 16, 0, 20),
        ("LSTM", 32, 1.5, 11),
        ("LSTM", 128, 0, 40),
    ],
)
def test_bars_of_untrained_networks_are_pytorchs(opened, untrained, cell, size, bias, length):
    explorer = opened()
    explorer.choose(Cell=cell, Hidden_size=size, Length=length)
    if cell != "RNN":
        explorer.choose(**{f"{KEEPING_GATES[cell]}_gate_bias": bias})
    expected = bars_of(untrained(cell, size, bias), PI[:length])
    assert explorer.column("influence") == pytest.approx(expected.tolist(), rel=1e-4)
    assert explorer.value("ratio") == pytest.approx(ratio(expected), rel=1e-4)


@pytest.mark.parametrize("name", TRAINED)
def test_bars_of_trained_networks_are_pytorchs(opened, trained, name):
    explorer = opened()
    show_trained(explorer, name)
    encoder = trained(name).encoder
    for length in LENGTHS:
        explorer.choose(Length=length)
        expected = bars_of(encoder, PI[:length])
        assert explorer.column("influence") == pytest.approx(expected.tolist(), rel=1e-3)


@pytest.mark.parametrize("name", TRAINED)
def test_what_trained_networks_write_is_what_they_write_in_pytorch(opened, trained, name):
    explorer = opened()
    show_trained(explorer, name)
    model = trained(name)
    for length in LENGTHS:
        explorer.choose(Length=length)
        source = DIGITS.encode([PI[:length]])
        written = generate(model, source, limit=length + 1).tokens[0].tolist()
        assert explorer.column("written") == written
        digits = source[0].tolist()
        right = sum(one == other for one, other in zip(written, digits, strict=False))
        assert explorer.value("right") == right


@pytest.mark.parametrize("step", [1, 7, 21])
def test_attention_of_each_step_is_pytorchs_and_sums_to_1(opened, trained, step):
    explorer = opened()
    show_trained(explorer, "copier-gru-attention")
    explorer.choose(Decoder_step=step)
    looks = generate(trained("copier-gru-attention"), DIGITS.encode([PI[:20]]), 21).attention
    assert explorer.column("attention") == pytest.approx(looks[0, step - 1].tolist(), abs=1e-4)
    assert explorer.value("attention-sum") == pytest.approx(1, abs=1e-6)


def test_attention_bars_stand_under_the_digits_they_belong_to(opened):
    explorer = opened()
    show_trained(explorer, "copier-gru-attention")
    lefts = [
        explorer.root.locator(f".columns .{row}").evaluate_all(
            "all => all.slice(0, 20).map(one => one.getBoundingClientRect().left)"
        )
        for row in ("up", "read", "down", "written")
    ]
    assert lefts[0] == lefts[1] == lefts[2] == lefts[3]


def test_wrong_tokens_are_marked_and_right_ones_are_not(opened, trained):
    explorer = opened()
    show_trained(explorer, "copier-gru")
    marked = explorer.root.locator(".written").evaluate_all(
        "all => all.map(one => one.classList.contains('wrong'))"
    )
    source = DIGITS.encode([PI[:20]])
    written = generate(trained("copier-gru"), source, 21).tokens[0].tolist()
    asked = [*source[0].tolist(), 2]
    assert marked == [one != other for one, other in zip(written, asked, strict=True)]


def test_what_an_untrained_decoder_writes_is_not_shown(opened):
    explorer = opened()
    assert explorer.root.locator(".written").all_text_contents() == [""] * 21
    assert "writes noise" in explorer.text(".reasons")


@pytest.mark.parametrize(
    ("name", "channel"),
    [("copier-gru", 64), ("copier-lstm", 128), ("copier-gru-attention", 64)],
)
def test_what_crosses_and_what_all_states_hold_are_counted(opened, name, channel):
    explorer = opened()
    show_trained(explorer, name)
    assert explorer.value("channel") == channel
    assert explorer.value("memory") == 20 * 64


@pytest.mark.parametrize("name", TRAINED)
def test_parameters_are_counted(opened, trained, name):
    explorer = opened()
    show_trained(explorer, name)
    model = trained(name)
    counts = [sum(p.numel() for p in part.parameters()) for part in (model.encoder, model)]
    assert [explorer.value("encoder-parameters"), explorer.value("parameters")] == counts


def test_the_table_that_stands_for_it_says_what_it_shows(opened):
    explorer = opened()
    table = BeautifulSoup(explorer.page.content(), "html.parser").select_one(
        "bottleneck-explorer table"
    )
    stored = [
        [cell.text for cell in row.find_all(["th", "td"])] for row in table.select("tbody tr")
    ]
    shown = []
    for name, *_ in stored:
        cell, state = name.split(", ")
        explorer.choose(Cell=cell, Weights=state)
        right = explorer.text("[data-name=right]") if state == "trained" else ""
        shown.append([name, explorer.text("[data-name=ratio]"), right])
    assert stored == shown


# Controls


def test_one_types_digits(opened, untrained):
    explorer = opened()
    explorer.control("Digits").click()
    explorer.page.keyboard.press("End")
    explorer.page.keyboard.type("00")
    explorer.wait()
    expected = ratio(bars_of(untrained("GRU", 64, 0), f"{PI[:20]}00"))
    assert explorer.value("ratio") == pytest.approx(expected, rel=1e-4)
    assert explorer.control("Length").input_value() == "22"


def test_the_length_cuts_the_string_and_goes_on_with_pi(opened):
    explorer = opened()
    explorer.choose(Digits="999", Length=6)
    assert explorer.control("Digits").input_value() == "999159"
    explorer.choose(Length=3)
    assert explorer.control("Digits").input_value() == "999"


@pytest.mark.parametrize("label", SLIDERS)
def test_arrow_keys_move_a_slider(opened, label):
    explorer = opened()
    if label == "Decoder step":
        explorer.choose(Weights="trained")
    before = explorer.root.locator(".explorer").inner_text()
    explorer.control(label).focus()
    explorer.page.keyboard.press("ArrowRight")
    explorer.wait()
    assert explorer.control(label).input_value() != SLIDERS[label]
    assert explorer.root.locator(".explorer").inner_text() != before


@pytest.mark.parametrize("label", SLIDERS)
def test_the_mouse_moves_a_slider(opened, label):
    explorer = opened()
    if label == "Decoder step":
        explorer.choose(Weights="trained")
    said = explorer.text(".said")
    control = explorer.control(label)
    control.click(position={"x": 0.8 * control.bounding_box()["width"], "y": 10})
    explorer.wait()
    assert control.input_value() != SLIDERS[label]
    assert explorer.text(".said") != said


def test_a_finger_moves_a_slider_and_ticks_a_box(opened):
    explorer = opened(width=NARROW, has_touch=True)
    explorer.control("Logarithmic scale").tap()
    assert "10⁻" in explorer.text(".columns p >> nth=0")
    explorer.control("Length").tap(position={"x": 150, "y": 10})
    explorer.wait()
    assert len(explorer.control("Digits").input_value()) > 30


@pytest.mark.parametrize(("label", "key"), [("Weights", "t"), ("Cell", "L"), ("Hidden size", "1")])
def test_the_keyboard_chooses(opened, label, key):
    explorer = opened()
    before = explorer.value("ratio")
    explorer.control(label).focus()
    explorer.page.keyboard.press(key)
    explorer.wait()
    assert explorer.value("ratio") != before


def test_space_ticks_attention_and_the_scale(opened):
    explorer = opened()
    explorer.choose(Weights="trained")
    for label in ("Attention", "Logarithmic scale"):
        explorer.control(label).focus()
        explorer.page.keyboard.press("Space")
        explorer.wait()
    assert "with attention" in explorer.text(".said")
    assert "10⁻¹ to 10¹" in explorer.text(".columns p >> nth=0")


def test_bars_are_as_high_as_their_numbers(opened):
    explorer = opened()
    bars = torch.tensor(explorer.column("influence"))
    heights = "all => all.map(one => Number.parseFloat(one.style.height))"
    linear = torch.tensor(explorer.root.locator(".up i").evaluate_all(heights))
    assert linear == pytest.approx(100 * bars / bars.max(), abs=0.01)
    explorer.choose(Logarithmic_scale=True)
    high = torch.tensor(explorer.root.locator(".up i").evaluate_all(heights))
    logs = bars.log10()
    bottom, top = logs.min().floor(), logs.max().ceil()
    assert high == pytest.approx(100 * (logs - bottom) / (top - bottom), abs=0.01)


@pytest.mark.parametrize(
    ("chosen", "off", "reason"),
    [
        ({}, ["Attention", "Decoder step"], "need a trained decoder"),
        ({"Cell": "RNN"}, ["Update gate bias", "Attention", "Decoder step"], "no gate"),
        ({"Weights": "trained"}, ["Hidden size", "Update gate bias"], "of the training"),
        (
            {"Weights": "trained", "Cell": "LSTM"},
            ["Hidden size", "Forget gate bias", "Attention"],
            "with the GRU only",
        ),
    ],
)
def test_what_does_not_apply_is_off_and_the_reason_is_said(opened, chosen, off, reason):
    explorer = opened()
    explorer.choose(**chosen)
    disabled = explorer.root.locator("label:has(:disabled)")
    labels = disabled.locator("span:not(.value)").all_text_contents()
    assert sorted(label.removesuffix(" H").strip() for label in labels) == sorted(off)
    assert reason in explorer.text(".reasons")


# What can go wrong


REFUSED = {
    "": "These are 0 digits: give 3 to 40.",
    "7": "This is 1 digit: give 3 to 40.",
    "12": "These are 2 digits: give 3 to 40.",
    "12a4": "“a” is no digit: use 0 to 9.",
    "12٣4": "“٣” is no digit: use 0 to 9.",
    "123😀": "“😀” is no digit: use 0 to 9.",
    "1" * 41: "These are 41 digits: give 3 to 40.",
}


def test_what_is_no_string_of_digits_is_refused_in_a_sentence(opened):
    explorer = opened()

    def said(typed):
        explorer.choose(Digits=typed)
        return explorer.message()

    shown = f" What is shown is still of {PI[:20]}."
    assert {typed: said(typed) for typed in REFUSED} == {
        typed: f"{sentence}{shown}" for typed, sentence in REFUSED.items()
    }


def test_a_refused_string_leaves_what_was_shown(opened):
    explorer = opened()
    before = explorer.text(".columns"), explorer.text(".facts")
    explorer.choose(Digits="12")
    assert (explorer.text(".columns"), explorer.text(".facts")) == before


def test_the_message_goes_when_the_string_is_a_good_one_again(opened):
    explorer = opened()
    explorer.choose(Digits="12")
    explorer.choose(Digits="123")
    assert explorer.message() == ""


def test_blanks_between_digits_do_no_harm(opened):
    explorer = opened()
    explorer.choose(Digits=" 314 159 ")
    assert explorer.message() == ""
    assert explorer.control("Length").input_value() == "6"


def test_one_digit_again_and_again_gives_numbers(opened):
    explorer = opened()
    for cell in GATES:
        explorer.choose(Digits="0" * 40, Cell=cell, Hidden_size=8)
        assert not re.search("NaN|Infinity|∞", explorer.root.locator(".explorer").inner_text())


def test_two_explorers_on_a_page_do_not_meet(opened):
    first = opened()
    first.root.evaluate(
        "one => { const other = document.createElement(one.localName);"
        "other.setAttribute('digits', '123456'); one.after(other); }"
    )
    second = Explorer(first.page, 1)
    before = second.value("ratio"), second.control("Digits").input_value()
    first.choose(Length=9, Weights="trained")
    assert (second.value("ratio"), second.control("Digits").input_value()) == before
    second.choose(Cell="LSTM")
    assert "Trained GRU" in first.text(".said")


@pytest.mark.parametrize("theme", THEMES)
def test_nothing_is_complained_of(new_page, address, theme):
    page = new_page(theme=theme)
    said = complaints(page)
    page.goto(f"{address}/{NAME}")
    explorer = Explorer(page)
    explorer.choose(Weights="trained", Attention=True, Length=40, Logarithmic_scale=True)
    assert said == []


def test_a_narrow_screen_is_wide_enough_for_40_digits(opened):
    explorer = opened(width=NARROW)
    explorer.choose(Weights="trained", Length=40)
    explorer.column("written")
    assert explorer.page.evaluate("document.documentElement.scrollWidth") == NARROW
    assert explorer.root.locator(".strip").first.evaluate("one => one.scrollWidth") > NARROW


STEP = """async (root) => {
  const input = root.shadowRoot.querySelector("input[type=range]");
  const times = [];
  for (let i = 0; i < 40; i++) {
    const drawn = new Promise((done) => {
      const facts = root.shadowRoot.querySelector(".facts");
      new MutationObserver(done).observe(facts, { childList: true });
    });
    const start = performance.now();
    input.value = 40 - (i % 2);
    input.dispatchEvent(new Event("input"));
    await drawn;
    times.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
  }
  return times;
}"""


@pytest.mark.parametrize("state", ["untrained", "trained"])
def test_a_step_of_the_slider_is_drawn_at_once(opened, state):
    explorer = opened()
    explorer.choose(Weights=state)
    times = explorer.root.evaluate(STEP)
    print(f"a step at 40 digits, {state} GRU: {min(times):.0f} to {max(times):.0f} ms")
    assert min(times) < MILLISECONDS
