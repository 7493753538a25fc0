"""`make sweep`: the many training runs that lessons quote, stored in data/results/.

A run is a recipe, a dict with a seed. Runs that are stored already, made by the code as it is
now, are not made again: the sweep can be stopped and goes on from there. One run a core.
"""

import argparse
import json
import signal
import sys
import time
from functools import partial
from multiprocessing import Pool

import torch

import ablation
import grammar
import pixel_bottleneck
import recurrence
import seq2seq
import weights
from code_hash import code_hash
from execute import CORES
from files import write_atomically
from lessons import ROOT
from made import made

RESULTS = ROOT / "data" / "results"
SEEDS = (0, 1, 2)
STEPS = 2000
PADDING_STEPS = 1000
TRANSLATION_STEPS = 1000
REMEDY_STEPS = 200
TRANSLATION_LENGTHS = [(1, 7), (8, 11), (12, 15), (16, 30)]  # English words


def copy(model, cell, hidden_size, seed):
    """Train a copying model; its accuracy, bits, and influence by length and by position."""
    network = getattr(seq2seq, model)(hidden_size, seed, cell)
    seq2seq.train(network, seq2seq.copy_batches(seed), STEPS)
    tests = {length: seq2seq.measure_copying(network, length) for length in range(1, 31)}
    strings = seq2seq.digit_strings(50, 20, 20, torch.Generator().manual_seed(0))
    return {
        "exact": [100 * test.exact.float().mean().item() for test in tests.values()],
        "digits": [100 * test.right.float().mean().item() for test in tests.values()],
        "bits": [test.bits.mean().item() for test in tests.values()],
        "positions": {n: (100 * tests[n].right.float().mean(dim=0)).tolist() for n in (10, 15, 20)},
        "influence": seq2seq.influence(network.encoder, strings).mean(dim=0).tolist(),
    }


def padding(model, hidden_size, seed):
    """Train a copying model; exact copies of 5 digits in batches padded to several widths."""
    network = getattr(seq2seq, model)(hidden_size, seed)
    seq2seq.train(network, seq2seq.copy_batches(seed), PADDING_STEPS)
    copied = {width: seq2seq.copied_beside(network, 5, width) for width in (5, 6, 8, 10, 20, 40)}
    return {"beside": {width: 100 * exact.float().mean().item() for width, exact in copied.items()}}


def translation(encoder, score, seed):
    """Train a translating model; exact translations, and alignment error rates if it has any."""
    corpus = grammar.pairs(20_000, seed=0)
    english = seq2seq.vocabulary(pair.english for pair in corpus)
    french = seq2seq.vocabulary(pair.french for pair in corpus)
    network = seq2seq.translator(
        english, french, seed, getattr(seq2seq, encoder), score and getattr(seq2seq, score)
    )
    batches = seq2seq.translation_batches(english, french, corpus, seed)
    losses = seq2seq.train(network, batches, TRANSLATION_STEPS)

    pairs = grammar.pairs(1_000, seed=1, held_out=True)
    source = english.encode([pair.english for pair in pairs])
    labels = french.encode([pair.french for pair in pairs])
    written = seq2seq.generate(network, source, limit=labels.shape[1] + 1)
    exact = seq2seq.exact_sequence(written.tokens, labels)
    lengths = seq2seq.padding_mask(source).sum(dim=1)
    parts = [exact[(lengths >= low) & (lengths <= high)] for low, high in TRANSLATION_LENGTHS]
    measured = {
        "loss": sum(losses[-100:]) / 100,
        "exact": 100 * exact.float().mean().item(),
        "exact_by_length": [100 * part.float().mean().item() for part in parts],
    }
    if score:
        found = seq2seq.alignments(network, pairs, source, labels)
        right = exact.nonzero()[:, 0].tolist()
        measured["aer"] = seq2seq.alignment_error_rate(pairs, found)
        if right:
            measured["aer_of_exact"] = seq2seq.alignment_error_rate(
                [pairs[row] for row in right], [found[row] for row in right]
            )
    return measured


def both_ways(network, lengths):
    """By length: exact copies, also with a beam of 4, and digits right, freely and forced."""
    measured = {"exact": {}, "beam": {}, "free": {}, "forced": {}}
    for length in lengths:
        generator = torch.Generator().manual_seed(1000 + length)
        strings = seq2seq.digit_strings(500, length, length, generator)
        targets, forced, free = seq2seq.answer_both_ways(network, strings, strings)
        widest = seq2seq.beam_search(network, strings, length + 1, width=4).tokens[:, 0]
        shares = {
            "exact": (free == targets).all(dim=1),
            "beam": (widest == targets).all(dim=1),
            "free": (free == targets)[:, :length],
            "forced": (forced == targets)[:, :length],
        }
        for name, right in shares.items():
            measured[name][length] = 100 * right.float().mean().item()
    return measured


def beginning(own_share, steps, seed):
    """Train a small copying model from the start, on the true words or on its own."""
    network = seq2seq.copier(32, seed)
    sampling = seq2seq.ScheduledSampling(network, own_share, steps, seed)
    seq2seq.train(sampling, seq2seq.short_copies(seed, longest=6), steps)
    return both_ways(network, (3, 6))


def remedies(way, whole, seed):
    """Train the stored copying model on, with more teaching or with one of the remedies."""
    network = seq2seq.copier(64, seed=0)
    weights.load("copier-gru", network)
    measured = {}
    if "REINFORCE" in way:
        batches = seq2seq.short_copies(100 + seed, longest=10, batch_size=16)
        baseline = way == "REINFORCE"
        rewards = seq2seq.reinforce(network, batches, REMEDY_STEPS, seed, baseline)
        measured["rewards"] = [sum(part) / 20 for part in zip(*[iter(rewards)] * 20, strict=True)]
    else:
        sampling = seq2seq.ScheduledSampling(network, way, REMEDY_STEPS, seed, whole)
        batches = seq2seq.short_copies(100 + seed, longest=10)
        seq2seq.train(sampling, batches, REMEDY_STEPS, learning_rate=1e-3)
    return measured | both_ways(network, (5, 8, 10))


COPIERS = [
    ("copier", "GRU", 64),
    ("attention_copier", "GRU", 64),
    ("copier", "GRU", 128),
    ("reversed_copier", "GRU", 128),
    ("reversed_copier", "GRU", 64),
    ("copier", "GRU", 32),
    ("copier", "LSTM", 64),
    ("copier", "GRU", 256),
]
TRANSLATORS = [
    ("Encoder", None),
    ("BidirectionalEncoder", None),
    ("Encoder", "DotScore"),
    ("BidirectionalEncoder", "DotScore"),
    ("BidirectionalEncoder", "ScaledDotScore"),
    ("BidirectionalEncoder", "AdditiveScore"),
]
BEGINNINGS = [("never", 500), ("always", 500), ("always", 1000)]
REMEDIES = [
    ("never", False),
    ("linear", False),
    ("linear", True),
    ("linear, to a quarter", False),
    ("exponential", False),
    ("inverse sigmoid", False),
    ("REINFORCE", False),
    ("REINFORCE without baseline", False),
]
SWEEPS = {
    "copy": (
        copy,
        [
            {"model": model, "cell": cell, "hidden_size": size, "seed": seed}
            for model, cell, size in COPIERS
            for seed in SEEDS
        ],
    ),
    "padding": (
        padding,
        [{"model": "unmasked_copier", "hidden_size": 32, "seed": seed} for seed in SEEDS],
    ),
    "translation": (
        translation,
        [
            {"encoder": encoder, "score": score, "seed": seed}
            for encoder, score in TRANSLATORS
            for seed in SEEDS
        ],
    ),
    "beginning": (
        beginning,
        [
            {"own_share": share, "steps": steps, "seed": seed}
            for share, steps in BEGINNINGS
            for seed in SEEDS
        ],
    ),
    "remedies": (
        remedies,
        [{"way": way, "whole": whole, "seed": seed} for way, whole in REMEDIES for seed in SEEDS],
    ),
    "ablation": (ablation.ablation, ablation.recipes()),
    "transformer-copy": (
        recurrence.transformer_copy,
        [{"positions": kind, "seed": seed} for kind in ("sinusoidal", "learned") for seed in SEEDS],
    ),
    "transformer-translation": (
        recurrence.transformer_translation,
        [{"positions": "sinusoidal", "seed": seed} for seed in SEEDS],
    ),
    "pixels": (
        pixel_bottleneck.read_through,
        [
            {"memory": memory, "seed": seed}
            for memory in ("Reader", "MeanReader", "LastStateReader")
            for seed in SEEDS
        ],
    ),
    "pixels-longer": (
        pixel_bottleneck.read_through_for_longer,
        [{"memory": memory, "seed": seed} for memory in ("Reader", "MeanReader") for seed in SEEDS],
    ),
}


def rounded(value):
    """The same lists and dicts, with numbers of four significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}")


def run_hash(function, recipe):
    """The hash of the code that a run uses; recipes name functions and classes of `seq2seq`."""
    return code_hash(function.__name__, *(v for v in recipe.values() if isinstance(v, str)))


def execute(name, planned):
    """One run, on one thread: what is stored of it. planned: its recipe and its code's hash."""
    recipe, code = planned
    torch.set_num_threads(1)
    function, _ = SWEEPS[name]
    start = time.monotonic()
    measured = rounded(function(**recipe))
    return {"recipe": recipe, "code": code, "made": made(time.monotonic() - start), **measured}


def stored(name):
    """The stored runs of this sweep that today's code and recipes would make again."""
    path = RESULTS / f"{name}.json"
    function, recipes = SWEEPS[name]
    runs = json.loads(path.read_text("utf-8"))["runs"] if path.exists() else []
    return [
        run
        for run in runs
        if run["recipe"] in recipes and run["code"] == run_hash(function, run["recipe"])
    ]


def write_runs(path, runs, recipes):
    """Write the runs in the order of their recipes, one line a run."""
    ordered = sorted(runs, key=lambda run: recipes.index(run["recipe"]))
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in ordered)
    write_atomically(path, f'{{"runs": [\n{lines}\n]}}\n')


def store(name, runs):
    _, recipes = SWEEPS[name]
    write_runs(RESULTS / f"{name}.json", runs, recipes)


def to_make(name):
    """The recipes without a stored run of today's code, each with the hash of that code."""
    function, recipes = SWEEPS[name]
    done = [run["recipe"] for run in stored(name)]
    return [(recipe, run_hash(function, recipe)) for recipe in recipes if recipe not in done]


def sweep(name, planned, pool):
    """Make the planned runs and store each when it is finished; runs of other code are dropped."""
    runs = stored(name)
    store(name, runs)
    print(f"{name}: {len(runs)} runs are stored, {len(planned)} to make", flush=True)
    for run in pool.imap_unordered(partial(execute, name), planned):
        runs.append(run)
        store(name, runs)
        print(f"{name}: {run['recipe']}, {run['made']['seconds']} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SWEEPS)}; all if none is named")
    names = parser.parse_args().names or list(SWEEPS)
    if unknown := [name for name in names if name not in SWEEPS]:
        parser.error(f"no sweep {unknown[0]!r}; there are {', '.join(SWEEPS)}")
    plan = {name: to_make(name) for name in names}  # hashed before a run, as it was imported
    try:
        with Pool(CORES, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
            for name, planned in plan.items():
                sweep(name, planned, pool)
    except KeyboardInterrupt:
        sys.exit("Stopped. What is finished is stored; `make sweep` goes on from there.")
