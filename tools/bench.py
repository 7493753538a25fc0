"""`make bench`: the article's reader against ours, measured in turn on one thread.

The results go into data/results/bench.json, and from there into the README and its figure. What is
finished is kept in _build/bench.json: a bench that was stopped goes on from there, on the same
machine and with the same code.
"""

import json
import sys
import time

import torch
from rich.console import Console

import bench_report
from code_hash import code_hash
from files import write_atomically
from lessons import BENCH, BUILD
from made import made
from measure import MEASURES, READERS
from readme import README
from sweep import rounded, write_runs

UNFINISHED = BUILD / "bench.json"
SEEDS = (0, 1, 2)
CONDITIONS = ("machine", "python", "torch", "numpy")


def recipes():
    """What is measured, in this order: a reader and then the other."""
    return [
        {"measure": measure, "reader": name, "seed": seed}
        for measure in MEASURES
        for seed in SEEDS
        for name in READERS
    ]


def run_hash(recipe):
    return code_hash(MEASURES[recipe["measure"]].__name__, READERS[recipe["reader"]].__name__)


def read(path):
    return json.loads(path.read_text("utf-8"))["runs"]


def finished():
    """The runs of a bench that was stopped, which code and machine of today would make again."""
    today = made(0)
    return [
        run
        for run in (read(UNFINISHED) if UNFINISHED.exists() else [])
        if run["code"] == run_hash(run["recipe"])
        and all(run["made"][condition] == today[condition] for condition in CONDITIONS)
    ]


def execute(recipe):
    """What is stored of one run."""
    code, start = run_hash(recipe), time.monotonic()
    measured = MEASURES[recipe["measure"]](recipe["reader"], recipe["seed"])
    seconds = time.monotonic() - start
    return {"recipe": recipe, "code": code, "made": made(seconds), **rounded(measured)}


def bench(console):
    """Measure what is missing, then write results, figure and README; return the runs."""
    runs = finished()
    for number, recipe in enumerate(recipes(), start=1):
        if recipe in [run["recipe"] for run in runs]:
            continue
        label = "{measure}, {reader}, seed {seed}".format(**recipe)
        with console.status(f"{number} of {len(recipes())}: {label}"):
            runs.append(execute(recipe))
        write_runs(UNFINISHED, runs, recipes())
        console.print(f"{label}: {runs[-1]['made']['seconds']} s", highlight=False)
    write_runs(BENCH, runs, recipes())
    UNFINISHED.unlink()
    write_atomically(bench_report.FIGURE, bench_report.figure(runs))
    write_atomically(README, bench_report.with_bench(README.read_text("utf-8"), runs))
    return runs


if __name__ == "__main__":
    torch.set_num_threads(1)
    console = Console()
    try:
        bench_report.show(bench(console), console)
    except KeyboardInterrupt:
        sys.exit("Stopped. What is finished is kept; `make bench` goes on from there.")
