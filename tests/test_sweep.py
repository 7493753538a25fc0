"""`make sweep`: what is made, what is kept, and when a stored run is of other code."""

import json
import os
import signal
from datetime import UTC, datetime
from functools import partial

import pytest

import code_hash
import sweep

pytestmark = pytest.mark.usefixtures("one_thread")

CODE = '''"""A module."""

import math

SCALE = 2
UNUSED = 5


class Base:
    def size(self):
        return SCALE


class Model(Base):
    """Grows."""

    def grow(self, by=math.pi):
        # at once
        return self.size() * by


def small(seed):
    return Model


def measure(seed, model="small"):
    """Measure a model."""
    return small(seed).grow(1)
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A file of code in place of the project's."""
    path = tmp_path / "module.py"
    path.write_text(CODE)
    monkeypatch.setattr(code_hash, "GROUPS", [[path]])
    return path


@pytest.fixture
def edit(module):
    def edit(old, new):
        assert old in module.read_text()
        module.write_text(module.read_text().replace(old, new))

    return edit


# The hash


def hash_of(*names):
    return code_hash.code_hash(*names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    """Measure a model."""\n', '    """Measure it."""\n'),
        ('    """Measure a model."""\n', ""),
        ('    """Grows."""\n\n', ""),
        ("        # at once\n", ""),
        ("self.size() * by", "(self.size()\n            * by)"),
        ('model="small"', "model='small'"),
        ("\n\n\n", "\n"),
        ("UNUSED = 5", "UNUSED = 6"),
        ("UNUSED = 5\n", ""),
        ("UNUSED = 5\n", "UNUSED = 5\nOTHER = 7\n"),
    ],
    ids=[
        *("docstring", "no docstring", "no docstring of a class", "comment", "layout", "quotes"),
        *("empty lines", "what is not used", "what is not used gone", "an addition"),
    ],
)
@pytest.mark.usefixtures("module")
def test_what_changes_nothing_leaves_the_hash(edit, old, new):
    before = hash_of("measure")
    edit(old, new)
    assert hash_of("measure") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("grow(1)", "grow(2)"),
        ('model="small"', 'model="large"'),
        ("return Model", "return Model, seed"),
        ("self.size() * by", "self.size() + by"),
        ("return SCALE", "return SCALE + 1"),
        ("SCALE = 2", "SCALE = 3"),
    ],
    ids=["itself", "default", "function", "class of a function", "base of a class", "constant"],
)
@pytest.mark.usefixtures("module")
def test_a_change_of_what_is_used_however_far_away_changes_the_hash(edit, old, new):
    before = hash_of("measure")
    edit(old, new)
    assert hash_of("measure") != before


@pytest.mark.usefixtures("module")
def test_a_constant_assigned_with_others_counts(edit):
    edit("SCALE = 2", "SCALE, OTHER = 2, 1")
    before = hash_of("measure")
    edit("SCALE, OTHER = 2, 1", "SCALE, OTHER = 1, 2")
    assert hash_of("measure") != before


def test_a_name_that_two_modules_define_is_an_error_that_says_so(module, monkeypatch):
    monkeypatch.setattr(code_hash, "GROUPS", [[module, module]])
    with pytest.raises(ValueError, match=r"module\.py defines SCALE a second time: rename"):
        hash_of("measure")


@pytest.mark.usefixtures("module")
def test_a_change_behind_a_named_definition_changes_the_hash(edit):
    before = hash_of("measure"), hash_of("measure", "UNUSED")
    edit("UNUSED = 5", "UNUSED = 6")
    assert hash_of("measure") == before[0]
    assert hash_of("measure", "UNUSED") != before[1]


def test_the_order_of_definitions_and_files_leaves_the_hash(module, monkeypatch, tmp_path):
    before = hash_of("measure")
    head, tail = CODE.split("\n\n\ndef small", 1)
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(f"def small{tail}")
    second.write_text(head)
    monkeypatch.setattr(code_hash, "GROUPS", [[first, second]])
    assert hash_of("measure") == before


def test_of_a_module_with_chosen_names_these_alone_count(module, monkeypatch, tmp_path):
    before = hash_of("measure")
    other = tmp_path / "other.py"
    other.write_text("SCALE = 3\n\n\ndef more():\n    return 1\n")
    monkeypatch.setattr(code_hash, "GROUPS", [[module, (other, {"more"})]])
    assert hash_of("measure") == before
    assert hash_of("more") != before


def test_an_import_under_another_name_leads_to_what_it_names(module, monkeypatch, tmp_path):
    user = tmp_path / "user.py"
    user.write_text("from module import measure as judge\n\n\ndef run():\n    return judge(1)\n")
    monkeypatch.setattr(code_hash, "GROUPS", [[module, user]])
    before = hash_of("run")
    module.write_text(CODE.replace("grow(1)", "grow(2)"))
    assert hash_of("run") != before


def test_the_hash_of_a_run_of_the_project_covers_its_model_its_cells_and_its_training():
    run = sweep.run_hash(sweep.copy, {"model": "copier", "cell": "GRU", "seed": 0})
    assert run == code_hash.code_hash("copy", "copier", "GRU")
    assert run != code_hash.code_hash("copy", "reversed_copier", "GRU")
    found = code_hash.definitions(code_hash.GROUPS[0])
    assert {"copy", "copier", "train", "CELLS", "STEPS", "pairs"} <= found.keys()


# The sweep


class Now:
    """A pool that makes its runs one after the other, and is interrupted after `capacity`."""

    def __init__(self, capacity=100):
        self.capacity = capacity

    def imap_unordered(self, function, items):
        for item in items:
            if not self.capacity:
                raise KeyboardInterrupt
            self.capacity -= 1
            yield function(item)


@pytest.fixture
def made(module, tmp_path, monkeypatch):
    """A sweep of three seeds in place of the project's; a list of the recipes it makes."""
    calls = []

    def measure(**recipe):
        calls.append(recipe)
        return {"accuracy": 12.345678, "curve": [1 / 3, 2], "at": {10: [123456.0]}}

    monkeypatch.setattr("made.processor", lambda: "A processor")
    monkeypatch.setattr(sweep, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sweep, "SWEEPS", {"fake": (measure, [{"seed": s} for s in range(3)])})
    return calls


def seeds(recipes):
    return [recipe["seed"] for recipe in recipes]


def text():
    return (sweep.RESULTS / "fake.json").read_text("utf-8")


def runs():
    return json.loads(text())["runs"]


def swept():
    sweep.sweep("fake", sweep.to_make("fake"), Now())


def test_every_recipe_is_made_once_and_stored_in_order(made):
    swept()
    assert sorted(seeds(made)) == [0, 1, 2]
    assert seeds(run["recipe"] for run in runs()) == [0, 1, 2]


@pytest.mark.usefixtures("made")
def test_a_run_is_stored_with_its_code_its_measures_and_how_it_was_made():
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    swept()
    run = runs()[0]
    assert run["recipe"] == {"seed": 0}
    assert run["code"] == hash_of("measure")
    assert run["made"]["date"] >= today
    assert run["made"]["machine"] == "A processor"
    assert run["made"].keys() == {"date", "seconds", "machine", "python", "torch", "numpy"}


@pytest.mark.usefixtures("made")
def test_numbers_are_stored_with_four_significant_digits():
    swept()
    run = runs()[0]
    assert (run["accuracy"], run["curve"], run["at"]) == (12.35, [0.3333, 2], {"10": [123500.0]})


@pytest.mark.usefixtures("made")
def test_a_line_of_the_file_is_a_run():
    swept()
    assert [line.startswith('{"recipe": ') for line in text().splitlines()] == [
        *(False, True, True, True, False),
    ]


def test_what_is_stored_is_not_made_again(made, capsys):
    swept()
    before = text()
    made.clear()
    swept()
    assert made == []
    assert text() == before
    assert "fake: 3 runs are stored, 0 to make" in capsys.readouterr().out


def test_a_sweep_goes_on_with_what_is_missing_and_keeps_what_is_stored(made, capsys):
    swept()
    kept = runs()[:2]
    sweep.store("fake", kept)
    made.clear()
    swept()
    assert seeds(made) == [2]
    assert runs()[:2] == kept
    assert seeds(run["recipe"] for run in runs()) == [0, 1, 2]
    assert "fake: 2 runs are stored, 1 to make" in capsys.readouterr().out


def test_runs_of_other_code_are_made_again(made, edit):
    swept()
    old = {run["code"] for run in runs()}
    made.clear()
    edit("SCALE = 2", "SCALE = 3")
    swept()
    assert sorted(seeds(made)) == [0, 1, 2]
    assert {run["code"] for run in runs()}.isdisjoint(old)


def test_runs_of_the_same_code_with_other_words_are_kept(made, edit):
    swept()
    made.clear()
    edit("Measure a model.", "Measure it.")
    swept()
    assert made == []


def test_a_changed_recipe_is_made_and_the_old_one_no_longer_stored(made, monkeypatch):
    swept()
    made.clear()
    measure, _ = sweep.SWEEPS["fake"]
    recipes = [{"seed": 0}, {"seed": 1, "model": "small"}, {"seed": 2}]
    monkeypatch.setattr(sweep, "SWEEPS", {"fake": (measure, recipes)})
    swept()
    assert made == [{"seed": 1, "model": "small"}]
    assert [run["recipe"] for run in runs()] == recipes


@pytest.mark.usefixtures("made")
def test_a_run_carries_the_code_that_it_was_planned_with(edit):
    planned, before = sweep.to_make("fake"), hash_of("measure")
    edit("SCALE = 2", "SCALE = 3")
    sweep.sweep("fake", planned, Now())
    assert {run["code"] for run in runs()} == {before}


def test_a_recipe_that_is_taken_out_is_no_longer_stored(made, monkeypatch):
    swept()
    measure, recipes = sweep.SWEEPS["fake"]
    monkeypatch.setattr(sweep, "SWEEPS", {"fake": (measure, recipes[:2])})
    swept()
    assert seeds(run["recipe"] for run in runs()) == [0, 1]


@pytest.mark.usefixtures("made")
def test_a_run_is_stored_as_soon_as_it_is_finished():
    with pytest.raises(KeyboardInterrupt):
        sweep.sweep("fake", sweep.to_make("fake"), Now(capacity=2))
    assert seeds(run["recipe"] for run in runs()) == [0, 1]


# The command

MAIN = 'if __name__ == "__main__":'
QUICK = """from pathlib import Path

RECIPES = [{"seed": seed} for seed in range(8)]


def measure(seed):
    while seed and Path("slow").exists():
        time.sleep(0.05)
    return {"accuracy": 1.0}


SWEEPS.clear()
SWEEPS.update(fake=(measure, RECIPES), other=(measure, RECIPES))


"""
STUBS = {
    "seq2seq": "",
    "grammar": "",
    "weights": "",
    "cpuinfo": "def get_cpu_info():\n    return {}\n",
    "rfc3987_syntax": "raise ImportError",  # nbformat does without, and it takes seconds to load
    "torch": "__version__ = '1.2.3'\n\n\ndef set_num_threads(threads):\n    pass\n",
}


@pytest.fixture
def start(project, launch):
    """The command in a project whose runs take no time, except while there is a file `slow`."""
    tool = project / "tools" / "sweep.py"
    tool.write_text(tool.read_text().replace(MAIN, QUICK + MAIN))
    tool.with_name("ablation.py").write_text("ablation, recipes = None, list")
    tool.with_name("recurrence.py").write_text("transformer_copy = transformer_translation = None")
    tool.with_name("pixel_bottleneck.py").write_text(
        "read_through = read_through_for_longer = None"
    )
    for name, source in STUBS.items():
        (project / "notebooks" / f"{name}.py").write_text(source)
    return partial(launch, project, [project / "notebooks"], "tools/sweep.py")


def seeds_in(path):
    return seeds(run["recipe"] for run in json.loads(path.read_text())["runs"])


def test_an_interrupt_keeps_what_is_finished_and_the_next_sweep_goes_on_from_there(project, start):
    stored = project / "data" / "results" / "fake.json"
    (project / "slow").touch()
    process = start()
    assert process.stdout.readline() == "fake: 0 runs are stored, 8 to make\n"
    assert process.stdout.readline() == "fake: {'seed': 0}, 0 s\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    (project / "slow").unlink()
    assert process.returncode == 1
    assert "Stopped. What is finished is stored; `make sweep` goes on from there." in err
    assert seeds_in(stored) == [0]

    process = start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("fake: 1 runs are stored, 7 to make\n")
    assert seeds_in(stored) == list(range(8))


def test_the_sweeps_that_are_named_are_made_and_no_others(project, start):
    out, _ = start("other").communicate(timeout=60)
    assert out.startswith("other: 0 runs are stored, 8 to make\n")
    assert [path.name for path in (project / "data" / "results").iterdir()] == ["other.json"]


def test_a_sweep_that_is_not_there_is_an_error_that_lists_those_that_are(start):
    _, err = start("typo").communicate(timeout=60)
    assert "no sweep 'typo'; there are fake, other" in err
