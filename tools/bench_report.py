"""What `make bench` found: as tables in the terminal, as a part of the README, as its figure."""

import math
from io import BytesIO
from statistics import median
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.ticker import FormatStrFormatter
from rich.table import Table

import _style
from lessons import ROOT
from measure import GOAL, READERS
from readme import with_part

FIGURE = ROOT / "blog" / "bench.svg"
BEGIN, END = "<!-- bench: written by make bench -->\n", "<!-- end of bench -->\n"
TEST_NUMBERS = 2_000
NAMES = {"article": "the article's", "ours": "ours"}
HEADERS = ("", *NAMES.values(), "times better")


class Goal(NamedTuple):
    """How many times less CPU time ours is to need than the article's."""

    against: str
    goal: float
    least: float


SOONER = Goal(f"to {GOAL} %", 6, 3)
WHOLE = Goal("for its 8 epochs", 20, 10)
WRITTEN = {
    "ms_for_20": "milliseconds to write 20 tokens with a cache, 16 texts at a time",
    "ms_for_20_by_500": "the same, 500 texts at a time",
    "ms_for_256": "milliseconds to write 256 tokens, 16 texts at a time",
}
CACHE_GOAL = 5  # times faster at 20 tokens


# From runs to numbers


def crossing(run):
    """At which of a run's looks GOAL was reached for the first time, None if never."""
    reached = (look for look, exact in enumerate(run["exact"]) if exact >= GOAL)
    return next(reached, None)


def seconds_to_goal(run):
    """CPU seconds of training until then; infinite if never."""
    look = crossing(run)
    return math.inf if look is None else run["seconds"][look]


def of(runs, measure, name):
    """The runs in which this was measured of this reader."""
    wanted = {"measure": measure, "reader": name}
    return [run for run in runs if wanted.items() <= run["recipe"].items()]


def medians(runs, measure, value):
    """{reader: median of value(run)}."""
    return {name: median(value(run) for run in of(runs, measure, name)) for name in READERS}


def to_goal(runs):
    return medians(runs, "learning", seconds_to_goal)


def whole(runs):
    return medians(runs, "learning", lambda run: run["seconds"][-1])


def verdict(times, goal):
    """A sentence: how many times less ours took, and whether that is what was aimed at."""
    if times >= goal.goal:
        judged = f"the goal of {goal.goal} is reached"
    elif times >= goal.least:
        judged = f"the goal of {goal.goal} is missed, the least of {goal.least} is reached"
    else:
        judged = f"the goal of {goal.goal} is missed, and so is the least of {goal.least}"
    return f"Against the article's time {goal.against}: {times:.1f} times less; {judged}."


def cache_verdict(runs):
    """A sentence: how many times faster a cache makes writing, and whether as was aimed at."""
    times = []
    for size in WRITTEN:
        without, cached = medians(runs, "writing", lambda run, size=size: run[size]).values()
        times.append(without / cached)
    few, many, long = times
    judged = [
        f"the goal of {CACHE_GOAL} is {'reached' if found >= CACHE_GOAL else 'missed'}"
        for found in (few, many)
    ]
    return (
        f"A cache makes writing 20 tokens {few:.1f} times as fast for 16 texts ({judged[0]}), "
        f"{many:.1f} times for 500 ({judged[1]}), and writing 256 tokens {long:.1f} times for 16."
    )


def verdicts(runs):
    ours = to_goal(runs)["ours"]
    return [
        verdict(to_goal(runs)["article"] / ours, SOONER),
        verdict(whole(runs)["article"] / ours, WHOLE),
        cache_verdict(runs),
    ]


# Tables


def shown(number):
    """A number with three digits or all before the point; "never" for infinity."""
    if math.isinf(number):
        return "never"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def row(label, values, more_is_better=False):
    """Cells of one row: what, the article's, ours, and how many times better ours is."""
    article, ours = values["article"], values["ours"]
    times = ours / article if more_is_better else article / ours
    return [label, shown(article), shown(ours), f"{times:.1f}"]


def at_goal(runs, name):
    """What the run with the median time to GOAL reads of the test numbers when it gets there."""
    trainings = sorted(of(runs, "learning", name), key=seconds_to_goal)
    middle = trainings[len(trainings) // 2]
    return _style.percent(round(middle["test"]), TEST_NUMBERS) if "test" in middle else "never"


def rows(runs):
    def found(measure, key, per=1):
        return medians(runs, measure, lambda run: run[key] / per)

    speed = medians(runs, "learning", lambda run: run["numbers"][-1] / run["seconds"][-1])
    shares = found("arithmetic", "share_of_rate")
    return [
        row(f"CPU seconds to {GOAL} % of the validation numbers", to_goal(runs)),
        ["of 2,000 test numbers it then reads", *(at_goal(runs, name) for name in READERS), ""],
        row("CPU seconds of the whole training", whole(runs)),
        row("numbers a second in training", speed, more_is_better=True),
        row("numbers a second read, 500 at a time", found("learning", "read_a_second"), True),
        row("milliseconds to read one", found("learning", "ms_for_one")),
        row("peak memory of training, MB", found("memory", "training_mb")),
        row("peak memory of reading 500, MB", found("memory", "reading_mb")),
        row("million operations to train on one", found("arithmetic", "flop", per=1e6)),
        ["% of the rate of matrix products", *(shown(share) for share in shares.values()), ""],
        *(row(label, found("writing", size)) for size, label in WRITTEN.items()),
    ]


def time_rows(runs):
    """Where the time of a training step goes, in %."""
    kinds = of(runs, "arithmetic", "ours")[0]["time"]
    for kind in kinds:
        parts = medians(runs, "arithmetic", lambda run, kind=kind: run["time"][kind])
        yield [kind, *(f"{part:.1f}" for part in parts.values())]


def show(runs, console):
    """Print the tables and whether the goals are reached."""
    for headers, lines in (
        (HEADERS, rows(runs)),
        (("% of the time of a training step", *NAMES.values()), time_rows(runs)),
    ):
        table = Table(headers[0])
        for header in headers[1:]:
            table.add_column(header, justify="right")
        for line in lines:
            table.add_row(*line)
        console.print(table)
    for sentence in [*verdicts(runs), conditions(runs)]:
        console.print(sentence, highlight=False)


# README and figure


def conditions(runs):
    made = runs[-1]["made"]
    imported = median(run["import_mb"] for run in runs if "import_mb" in run)
    rate = median(run["matrix_rate"] for run in runs if "matrix_rate" in run)
    return (
        f"Medians of three seeds, measured in turn on one thread ({made['machine']}, "
        f"{made['date']}, torch {made['torch']}). Importing PyTorch alone takes {imported:.0f} MB; "
        f"a product of 1024 × 1024 matrices runs at {rate / 1e9:.0f} thousand million operations "
        "a second."
    )


def alt(runs):
    """What a person would see in the figure."""
    article, ours = map(shown, to_goal(runs).values())
    return (
        "Share of the validation numbers read against CPU seconds of training, three trainings of "
        f"each reader. Ours gets to {GOAL} % after {ours} seconds, the article's after {article}."
    )


def part(runs):
    """The README's part, in Markdown."""
    lines = [HEADERS, ("---", "---:", "---:", "---:"), *rows(runs)]
    return "\n".join(
        [
            f"![{alt(runs)}]({FIGURE.relative_to(ROOT).as_posix()})",
            "",
            *(f"| {' | '.join(cells)} |" for cells in lines),
            "",
            *verdicts(runs),
            conditions(runs),
            "",
        ]
    )


def with_bench(readme, runs):
    """The README's text with the part between the two marks written anew."""
    return with_part(readme, BEGIN, END, part(runs))


def figure(runs):
    """Accuracy against CPU seconds of all trainings, as the bytes of an SVG file."""
    _style.start()
    fig, ax = plt.subplots(figsize=(8, 3.4))
    colours = {"article": _style.MUTED, "ours": _style.COLOURS["encoder"]}
    for name, colour in colours.items():
        for run in of(runs, "learning", name):
            ax.plot(run["seconds"], run["exact"], color=colour)
            if (look := crossing(run)) is not None:
                ax.plot(run["seconds"][look], run["exact"][look], "o", color=colour)
        end = run["seconds"][-1], run["exact"][-1]
        ax.annotate(NAMES[name], end, (0, 8), textcoords="offset points", ha="right")
    ax.axhline(GOAL, color=_style.INK, linestyle=":", linewidth=1)
    ax.text(0.01, GOAL + 1, f"{GOAL} %", transform=ax.get_yaxis_transform())
    ax.set(xscale="log", xlabel="CPU seconds of training", ylabel="numbers read, %", ylim=(0, 105))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    buffer = BytesIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None, "Description": alt(runs)})
    plt.close(fig)
    return buffer.getvalue()
