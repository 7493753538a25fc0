"""Stored results: how they are found, and that those in the repository are today's code's."""

import json
import re
from datetime import date

import pytest

import lessons
import results
import sweep

RUNS = [
    {"recipe": {"model": "large", "size": 64, "seed": 1}, "exact": 91.0},
    {"recipe": {"model": "large", "size": 64, "seed": 0}, "exact": 90.0},
    {"recipe": {"model": "small", "size": 64, "seed": 0}, "exact": 20.0},
    {"recipe": {"model": "large", "size": 32, "seed": 0}, "exact": 50.0},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    (tmp_path / "copy.json").write_text(json.dumps({"runs": RUNS}))
    return tmp_path


def exact(**recipe):
    return [run["exact"] for run in results.load("copy", **recipe)]


@pytest.mark.usefixtures("folder")
def test_runs_are_found_by_any_part_of_their_recipe():
    assert exact(model="small") == [20.0]
    assert exact(size=32) == [50.0]
    assert exact(model="large", size=64, seed=1) == [91.0]


@pytest.mark.usefixtures("folder")
def test_runs_come_in_the_order_of_their_seeds():
    assert exact(model="large", size=64) == [90.0, 91.0]


@pytest.mark.usefixtures("folder")
def test_without_a_recipe_all_runs_are_found():
    assert sorted(exact()) == [20.0, 50.0, 90.0, 91.0]


@pytest.mark.parametrize(
    ("name", "recipe"),
    [("copy", {"size": 128}), ("copy", {"width": 64}), ("translate", {"size": 64})],
    ids=["value", "key", "file"],
)
def test_runs_that_are_not_there_are_an_error_that_says_what_writes_them(folder, name, recipe):
    says = f"{folder / name}.json holds no run with {recipe}: `make sweep` writes them"
    with pytest.raises(ValueError, match=re.escape(says)):
        results.load(name, **recipe)


# The stored results in the repository

each_sweep = pytest.mark.parametrize("name", sweep.SWEEPS)


def runs_of(name):
    return json.loads((results.FOLDER / f"{name}.json").read_text("utf-8"))["runs"]


def to_make(name):
    """The recipes without a run, and those whose run is of other code."""
    today = [run["recipe"] for run in sweep.stored(name)]
    return [recipe for recipe in sweep.SWEEPS[name][1] if recipe not in today]


def test_lessons_read_what_the_sweep_writes():
    assert results.FOLDER == sweep.RESULTS


@each_sweep
def test_every_recipe_is_stored_as_made_by_the_code_as_it_is_now(name):
    assert to_make(name) == [], "`make sweep` makes them"


@each_sweep
def test_every_stored_run_is_of_one_recipe_in_their_order(name):
    assert [run["recipe"] for run in runs_of(name)] == sweep.SWEEPS[name][1]


@each_sweep
def test_every_comparison_has_at_least_three_seeds(name):
    settings = [{**recipe, "seed": None} for recipe in sweep.SWEEPS[name][1]]
    assert [setting for setting in settings if settings.count(setting) < 3] == []


@each_sweep
def test_every_run_says_when_on_what_and_with_what_it_was_made(name):
    for run in runs_of(name):
        made = run["made"]
        assert date.fromisoformat(made["date"]) <= date.today()
        assert made["seconds"] > 0
        assert made["machine"]
        for versioned in ("python", "torch", "numpy"):
            assert re.match(r"\d+\.\d+\.\d+", made[versioned])


def test_every_file_of_results_is_that_of_a_sweep_of_the_bench_or_of_the_spread():
    sweeps = {results.FOLDER / f"{name}.json" for name in sweep.SWEEPS}
    assert set(results.FOLDER.glob("*.json")) == sweeps | {lessons.BENCH, lessons.SPREAD}


def fake(seed):
    return {"seed": float(seed)}


@pytest.mark.parametrize(
    ("code", "seeds", "missing"),
    [("today's", [0, 1, 2], []), ("today's", [0, 2], [1]), ("older", [0, 1, 2], [0, 1, 2])],
    ids=["complete", "one missing", "other code"],
)
def test_what_is_missing_or_out_of_date_is_found(tmp_path, monkeypatch, code, seeds, missing):
    recipes = [{"seed": seed} for seed in range(3)]
    monkeypatch.setattr(sweep, "SWEEPS", {"fake": (fake, recipes)})
    monkeypatch.setattr(sweep, "RESULTS", tmp_path)
    monkeypatch.setattr(sweep, "code_hash", lambda *names: "today's")
    sweep.store("fake", [{"recipe": {"seed": seed}, "code": code} for seed in seeds])
    assert to_make("fake") == [{"seed": seed} for seed in missing]
