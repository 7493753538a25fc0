"""`make bench`: what is measured, what is kept, and what is said of it."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

import _memory
import _style
import bench
import bench_report
import digits
import lessons
import measure
import peak
import reader
import writing
from code_hash import code_hash

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {
    "article": partial(measure.article, composites=4 * 128, epochs=1),
    "ours": partial(measure.ours, steps=31),
}
each_reader = pytest.mark.parametrize("name", TINY)


def some_images(n=5):
    return torch.rand(n, 28, 84, generator=torch.Generator().manual_seed(0))


# The article's reader and ours


@pytest.fixture
def article_reader():
    """With this much more belief in END than it would have."""

    def build(end):
        torch.manual_seed(0)
        model = reader.Reader()
        with torch.no_grad():
            model.decoder.head.bias[reader.END] += end
        return model

    return build


def test_the_article_s_loop_reads_what_generate_reads_if_there_is_no_end(article_reader):
    model = article_reader(end=-100)
    read = measure.read_in_three_steps(model, some_images())
    assert torch.equal(read, reader.generate(model, some_images(), limit=3).tokens)


def test_the_article_s_loop_goes_on_after_end(article_reader):
    model = article_reader(end=100)
    calls = []
    model.decoder.register_forward_hook(lambda module, inputs, output: calls.append(inputs[0]))
    measure.read_in_three_steps(model, some_images())
    assert [tokens.shape for tokens in calls] == [(5, 1), (5, 2), (5, 3)]


def test_the_article_is_looked_at_every_quarter_of_an_epoch_from_the_first_on():
    looks = measure.article(seed=0).looks
    assert looks[0] == 20_000 // 128
    assert looks[-1] == 8 * looks[0]
    assert 4 * looks.step == looks[0]


def test_ours_is_looked_at_about_every_thousand_numbers_and_at_the_end():
    contender = measure.ours(seed=0)
    assert 950 < contender.looks.step * contender.batch_size <= 1_000
    assert contender.looks[-1] == measure.OURS["steps"]


@each_reader
def test_neither_is_trained_on_validation_or_test_digits(name, monkeypatch):
    given = []

    def noted(function):
        def call(images, *others, **options):
            given.append(len(images))
            return function(images, *others, **options)

        return call

    monkeypatch.setattr(digits, "compose", noted(digits.compose))
    monkeypatch.setattr(reader, "FreshNumbers", noted(reader.FreshNumbers))
    TINY[name](seed=0)
    assert given == [60_000 - digits.VALIDATION]


# The curve


def weights(contender):
    return list(contender.model.parameters())


@each_reader
def test_being_looked_at_does_not_change_the_training(name):
    seen, unseen = (TINY[name](seed=0) for _ in range(2))
    measure.curve(seen, numbers=2)
    unseen.learn()
    assert all(map(torch.equal, weights(seen), weights(unseen)))


@pytest.fixture
def looked_at(monkeypatch):
    """The curve of a training whose steps take a second each, whose looks a hundred.

    It is given how many of 1,000 numbers are read at each look, then of the test numbers.
    """

    def measured(*reads):
        now, reads = [0], iter(reads)

        def learn():
            optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
            for _ in range(4):
                now[0] += 1
                optimiser.step()

        def numbers_read(*_):
            now[0] += 100
            return next(reads)

        monkeypatch.setattr(measure.time, "process_time", lambda: now[0])
        monkeypatch.setattr(reader, "numbers_read", numbers_read)
        model = torch.nn.Identity()
        contender = measure.Contender(model, learn, model, batch_size=32, looks=range(2, 5))
        return measure.curve(contender, numbers=1_000)

    return measured


def test_a_curve_counts_the_numbers_and_the_seconds_of_training_alone(looked_at):
    found = looked_at(100, 200, 300)
    assert found == {"numbers": [64, 96, 128], "seconds": [2, 3, 4], "exact": [10, 20, 30]}


def test_the_test_numbers_are_read_once_when_the_goal_is_reached_first(looked_at):
    found = looked_at(872, 873, 860, 950)
    assert found["test"] == 860
    assert found["exact"] == [87.2, 87.3, 95]


# Writing


def test_both_loops_write_the_same_and_never_end():
    model, source = writing.endless(texts=3, seed=0)
    article, ours = (loop(model, source, 20) for loop in writing.LOOPS.values())
    assert torch.equal(article.tokens, ours.tokens)
    assert article.tokens.shape == (3, 20)
    assert not article.ended.any()


def test_what_is_timed_is_the_loop_without_the_encoder():
    model, source = writing.endless(texts=3, seed=0)
    model.encoder.register_forward_hook(lambda *_: pytest.fail("the source was read again"))
    for loop in writing.LOOPS.values():
        loop(model, source, 2)


# Memory and arithmetic


def test_memory_is_that_of_the_code_and_not_of_the_process_that_asks():
    small = peak.peak_megabytes("pass")
    assert small < 100
    assert peak.peak_megabytes("block = b'x' * 200_000_000") - small == pytest.approx(200, abs=10)


def test_without_a_status_file_memory_is_what_the_system_counts(monkeypatch, tmp_path):
    usage = SimpleNamespace(ru_maxrss=5_000_000)
    monkeypatch.setattr(_memory, "STATUS", tmp_path / "missing")
    monkeypatch.setattr(_memory.resource, "getrusage", lambda who: usage)
    assert _memory.peak_megabytes() == 5


def test_products_convolutions_and_attention_are_counted():
    a, b = torch.zeros(3, 4), torch.zeros(4, 5)
    assert measure.operations(lambda: a @ b) == 2 * 3 * 4 * 5
    image, kernel = torch.zeros(1, 1, 6, 6), torch.zeros(2, 1, 3, 3)
    assert measure.operations(lambda: F.conv2d(image, kernel)) == 2 * (4 * 4) * (3 * 3) * 2
    x = torch.zeros(2, 3, 7, 5)  # two products, of 7 × 5 × 7, for 2 × 3 heads
    attend = partial(F.scaled_dot_product_attention, x, x, x)
    assert measure.operations(attend) == 2 * (2 * 3) * (2 * 7 * 5 * 7)


def event(*names):
    """An event within others, given from the innermost out."""
    inner, *around = names
    return SimpleNamespace(name=inner, cpu_parent=event(*around) if around else None)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["aten::addmm", "aten::linear"], "matrix products"),
        (["aten::copy_", "aten::linear"], "matrix products"),
        (["aten::mul_", "Optimizer.step#AdamW.step"], "optimiser"),
        (["aten::mm", "AddmmBackward0"], "matrix products"),
        (["aten::mkldnn_convolution", "aten::conv2d"], "convolutions"),
        (["aten::_scaled_dot_product_flash_attention_for_cpu"], "attention"),
        (["aten::native_layer_norm"], "norms and activations"),
        (["aten::empty", "GeluBackward0"], "norms and activations"),
        (["aten::embedding", "all"], "rest"),
    ],
)
def test_an_operation_is_of_the_kind_of_the_nearest_around_it_that_has_one(names, kind):
    assert measure.kind(event(*names)) == kind


def test_the_shares_of_time_are_of_the_whole():
    square = torch.rand(500, 500)
    shares = measure.time_shares(lambda: [square @ square for _ in range(10)])
    assert sum(shares.values()) == pytest.approx(100)
    assert max(shares, key=shares.get) == "matrix products"


# The bench


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder in place of the project's."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{bench_report.BEGIN}{bench_report.END}after\n")
    monkeypatch.setattr(bench, "README", readme)
    monkeypatch.setattr(bench, "BENCH", tmp_path / "results" / "bench.json")
    monkeypatch.setattr(bench, "UNFINISHED", tmp_path / "build" / "bench.json")
    monkeypatch.setattr(bench_report, "ROOT", tmp_path)
    monkeypatch.setattr(bench_report, "FIGURE", tmp_path / "blog" / "bench.svg")
    monkeypatch.setattr("made.processor", lambda: "processor")
    return tmp_path


TIME = dict.fromkeys([*measure.KINDS, "rest"], 10)
MADE_UP = {
    "article": {
        "learning": {
            "numbers": [20_000, 40_000, 80_000],
            "seconds": [40.0, 80.0, 160.0],
            "exact": [50.0, 88.0, 90.0],
            "test": 1_750,
            "read_a_second": 1_000,
            "ms_for_one": 5.0,
        },
        "memory": {"import_mb": 200, "training_mb": 800, "reading_mb": 400},
        "arithmetic": {"flop": 8e7, "share_of_rate": 50.0, "matrix_rate": 6e10, "time": TIME},
        "writing": {"ms_for_20": 100, "ms_for_20_by_500": 3_000, "ms_for_256": 9_000},
    },
    "ours": {
        "learning": {
            "numbers": [4_000, 8_000, 12_000],
            "seconds": [4.0, 8.0, 12.0],
            "exact": [50.0, 87.3, 90.0],
            "test": 1_760,
            "read_a_second": 2_500,
            "ms_for_one": 10.0,
        },
        "memory": {"import_mb": 200, "training_mb": 400, "reading_mb": 400},
        "arithmetic": {"flop": 4e7, "share_of_rate": 25.0, "matrix_rate": 6e10, "time": TIME},
        "writing": {"ms_for_20": 50, "ms_for_20_by_500": 600, "ms_for_256": 900},
    },
}


@pytest.fixture
def calls(files, monkeypatch):
    """Measures that take no time; a list of what was asked of them."""
    calls = []

    def made_up(what):
        def measured(name, seed):
            calls.append((what, name, seed))
            return MADE_UP[name][what]

        return measured

    monkeypatch.setattr(bench_report, "figure", lambda runs: "a figure")
    monkeypatch.setattr(bench, "run_hash", lambda recipe: "today's")
    monkeypatch.setattr(bench, "MEASURES", {what: made_up(what) for what in bench.MEASURES})
    return calls


@pytest.fixture
def console():
    return Console(quiet=True)


def test_article_and_ours_are_measured_in_turn_three_times_each(calls, console):
    bench.bench(console)
    assert [name for _, name, _ in calls] == ["article", "ours"] * 12
    for what in bench.MEASURES:
        assert [seed for measured, _, seed in calls if measured == what] == [0, 0, 1, 1, 2, 2]


@pytest.fixture
def stopped(calls, console, monkeypatch):
    """A bench that was interrupted after its fifth run; the calls so far are forgotten."""
    execute = bench.execute

    def interrupted(recipe):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return execute(recipe)

    with monkeypatch.context() as patch:
        patch.setattr(bench, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench.bench(console)
    calls.clear()


@pytest.mark.usefixtures("stopped")
def test_a_bench_that_was_stopped_has_stored_no_result(files):
    assert not bench.BENCH.exists()
    assert bench.README.read_text() == f"before\n{bench_report.BEGIN}{bench_report.END}after\n"


@pytest.mark.usefixtures("stopped")
def test_a_bench_that_was_stopped_goes_on_from_there(calls, console):
    bench.bench(console)
    assert len(calls) == 24 - 5
    assert [run["recipe"] for run in bench.read(bench.BENCH)] == bench.recipes()


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("what", ["machine", "code"])
def test_what_was_measured_under_other_conditions_is_measured_again(
    calls, console, monkeypatch, what
):
    if what == "machine":
        monkeypatch.setattr("made.processor", lambda: "another")
    else:
        monkeypatch.setattr(bench, "run_hash", lambda recipe: "another")
    bench.bench(console)
    assert len(calls) == 24


def test_the_next_bench_measures_everything_anew(calls, console):
    bench.bench(console)
    calls.clear()
    bench.bench(console)
    assert len(calls) == 24


def test_the_hash_of_a_memory_run_covers_the_reader_that_only_its_program_names():
    recipe = {"measure": "memory", "reader": "ours"}
    assert bench.run_hash(recipe) == code_hash("memory", "ours")
    assert bench.run_hash(recipe) != code_hash("memory")


@pytest.mark.usefixtures("calls")
def test_a_run_says_how_when_and_where_it_was_made(console):
    run = bench.bench(console)[0]
    assert run["recipe"] == {"measure": "learning", "reader": "article", "seed": 0}
    assert run["made"]["machine"] == "processor"
    assert run["made"].keys() == {"date", "seconds", "machine", "python", "torch", "numpy"}


TINY_PROGRAMS = {
    "article": "measure.article({seed}, composites=512, epochs=1).learn()",
    "ours": "measure.ours({seed}, steps=4).learn()",
}


@pytest.fixture
def tiny(files, monkeypatch):
    """The real measures of trainings of a few steps, which reach the goal as soon as they begin."""

    def learning(name, seed):
        contender = TINY[name](seed)
        curve = measure.curve(contender, numbers=20)
        return curve | measure.reading_speed(contender, repetitions=1)

    monkeypatch.setattr(bench, "SEEDS", (0,))
    monkeypatch.setattr(measure, "GOAL", 0)
    monkeypatch.setattr(bench_report, "GOAL", 0)
    monkeypatch.setattr(measure, "STEPS", 4)
    monkeypatch.setattr(writing, "SIZES", dict.fromkeys(writing.SIZES, (2, 3, 1)))
    monkeypatch.setattr(measure, "BRIEFLY", TINY | {"ours": partial(measure.ours, steps=4)})
    for name, (_, to_read) in measure.PROGRAMS.items():
        monkeypatch.setitem(measure.PROGRAMS, name, (TINY_PROGRAMS[name], to_read))
    monkeypatch.setitem(bench.MEASURES, "learning", learning)


@pytest.mark.usefixtures("tiny")
def test_a_tiny_bench_measures_stores_and_reports(capsys):
    runs = bench.bench(Console(quiet=True))
    bench_report.show(runs, Console(width=120))
    assert bench.read(bench.BENCH) == runs
    assert "of 2,000 test numbers it then reads" in capsys.readouterr().out
    assert "<svg" in bench_report.FIGURE.read_text("utf-8")
    measured = [pair for run in runs for pair in run.items() if isinstance(pair[1], float)]
    assert [pair for pair in measured if pair[1] <= 0 and pair[0] != "test"] == []


# What is said of it


@pytest.fixture
def runs():
    """Those of made-up measurements; the seconds of a seed differ by as much as the seed."""
    found = []
    for recipe in bench.recipes():
        run = {"recipe": recipe, "made": MADE, **MADE_UP[recipe["reader"]][recipe["measure"]]}
        if recipe["measure"] == "learning":
            run["seconds"] = [second + recipe["seed"] - 1 for second in run["seconds"]]
        found.append(run)
    return found


MADE = {"machine": "processor", "date": "2026-11-30", "torch": "2.13.0"}
CURVE = {"exact": [50.0, 87.2, 87.3, 87.1, 90.0], "seconds": [1, 2, 3, 4, 5]}
SHORT = {"exact": [50.0, 87.2], "seconds": [1, 2]}


def test_the_goal_is_reached_at_the_first_look_that_is_not_below_it():
    assert bench_report.crossing(CURVE) == 2
    assert bench_report.seconds_to_goal(CURVE) == 3


def test_a_training_that_never_reaches_the_goal_takes_for_ever():
    assert bench_report.crossing(SHORT) is None
    assert bench_report.seconds_to_goal(SHORT) == math.inf


def test_what_is_reported_is_the_median_of_the_seeds(runs):
    assert bench_report.to_goal(runs) == {"article": 80, "ours": 8}
    assert bench_report.whole(runs) == {"article": 160, "ours": 12}


@pytest.mark.parametrize(
    ("times", "judged"),
    [
        (6.0, "6.0 times less; the goal of 6 is reached."),
        (5.9, "5.9 times less; the goal of 6 is missed, the least of 3 is reached."),
        (3.0, "3.0 times less; the goal of 6 is missed, the least of 3 is reached."),
        (2.9, "2.9 times less; the goal of 6 is missed, and so is the least of 3."),
    ],
)
def test_a_goal_is_said_to_be_reached_when_it_is(times, judged):
    assert bench_report.verdict(times, bench_report.SOONER).endswith(judged)


def test_both_goals_are_judged_by_the_time_that_ours_takes_to_the_goal(runs):
    assert bench_report.verdicts(runs) == [
        bench_report.verdict(80 / 8, bench_report.SOONER),
        bench_report.verdict(160 / 8, bench_report.WHOLE),
        bench_report.cache_verdict(runs),
    ]


def test_the_goal_of_the_cache_is_judged_for_few_and_for_many_texts(runs):
    assert bench_report.cache_verdict(runs) == (
        "A cache makes writing 20 tokens 2.0 times as fast for 16 texts (the goal of 5 is missed), "
        "5.0 times for 500 (the goal of 5 is reached), and writing 256 tokens 10.0 times for 16."
    )


@pytest.mark.parametrize(
    ("label", "cells"),
    [
        ("CPU seconds to 87.3 % of the validation numbers", ["80", "8", "10.0"]),
        ("of 2,000 test numbers it then reads", ["87.5 % [86.0, 88.9]", "88.0 % [86.5, 89.4]", ""]),
        ("numbers a second in training", ["500", "1,000", "2.0"]),
        ("milliseconds to read one", ["5", "10", "0.5"]),
        ("million operations to train on one", ["80", "40", "2.0"]),
        ("% of the rate of matrix products", ["50", "25", ""]),
        ("milliseconds to write 256 tokens, 16 texts at a time", ["9,000", "900", "10.0"]),
    ],
)
def test_a_row_has_both_readers_and_how_many_times_better_ours_is(runs, label, cells):
    assert [label, *cells] in bench_report.rows(runs)


def test_a_reader_that_never_reaches_the_goal_is_said_not_to(runs):
    for run in bench_report.of(runs, "learning", "article"):
        run["exact"] = [50.0, 60.0, 70.0]
        run.pop("test")
    first, second, *_ = bench_report.rows(runs)
    assert (first[1], second[1]) == ("never", "never")


def test_the_readme_s_part_is_written_between_its_marks(runs):
    readme = f"before\n{bench_report.BEGIN}old\n{bench_report.END}after\n"
    written = bench_report.with_bench(readme, runs)
    begin, end = f"before\n{bench_report.BEGIN}\n![Share of", f"{bench_report.END}after\n"
    assert written.startswith(begin)
    assert written.endswith(end)
    assert "old" not in written
    assert bench_report.with_bench(written, runs) == written


def test_the_figure_is_the_same_for_the_same_results(runs):
    assert bench_report.figure(runs) == bench_report.figure(runs)


def test_the_figure_has_paper_under_it_for_pages_that_are_dark(runs):
    assert f"fill: {_style.PAPER}" in bench_report.figure(runs).decode()


# The stored results


@pytest.fixture(scope="module")
def stored():
    return bench.read(lessons.BENCH)


def test_the_stored_runs_are_all_there_and_of_the_code_as_it_is_now(stored):
    assert [run["recipe"] for run in stored] == bench.recipes()
    old = [run["recipe"] for run in stored if run["code"] != bench.run_hash(run["recipe"])]
    assert old == [], "`make bench` measures them"


def test_the_stored_runs_were_made_under_the_same_conditions(stored):
    made = {tuple(run["made"][name] for name in bench.CONDITIONS) for run in stored}
    assert len(made) == 1


def test_the_readme_and_its_figure_show_the_stored_results(stored):
    readme = bench.README.read_text("utf-8")
    assert bench_report.with_bench(readme, stored) == readme, "run `make bench`"
    assert bench_report.alt(stored) in bench_report.FIGURE.read_text("utf-8"), "run `make bench`"


def test_the_stored_results_reach_what_is_asked_of_them_at_least(stored):
    ours = bench_report.to_goal(stored)["ours"]
    assert bench_report.to_goal(stored)["article"] / ours >= bench_report.SOONER.least
    assert bench_report.whole(stored)["article"] / ours >= bench_report.WHOLE.least
