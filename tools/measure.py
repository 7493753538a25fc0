"""What `make bench` measures of the article's reader and of ours. All seconds are CPU seconds."""

import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

import digits
import reader
from peak import peak_megabytes
from writing import writing

GOAL = 87.3  # % of the numbers read without a fault, as the article reports
OURS = {
    "layers": ((12, 5, 2), (24, 3, 2), (48, 3, 2)),
    "recipe": {"batch_size": 32, "learning_rate": 3e-3},
    "steps": 372,
}  # our fastest to GOAL, chosen on validation numbers


class Contender(NamedTuple):
    """A reader, untrained, and all that is its own in the comparison."""

    model: torch.nn.Module
    learn: Callable  # () trains it, once
    read: Callable  # images (B, 28, 84) -> the numbers read, without gradients
    batch_size: int
    looks: range  # the steps after which its accuracy is measured


@torch.no_grad()
def read_in_three_steps(model, images):
    """The article's generation: images (B, 28, 84) -> tokens (B, 3), whatever they are.

    At each step the decoder goes over everything written so far. END is never looked for.
    """
    model.eval()
    memory = model.encoder(images)
    tokens = torch.full((len(images), 1), reader.START)
    for _ in range(3):
        logits, _ = model.decoder(tokens, memory)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(dim=-1)], dim=1)
    return tokens[:, 1:]


def article(seed, composites=20_000, epochs=8):
    """The article's reader and training: one fixed set of numbers, gone through in epochs.

    Its digits are all but those for validation. Looked at every quarter of an epoch, from the end
    of the first on.
    """
    training_digits, _ = digits.split(digits.load())
    numbers = digits.compose(*training_digits, n=composites, seed=seed)
    torch.manual_seed(seed)
    model = reader.Reader()
    batch_size = 128
    epoch = composites // batch_size

    def learn():
        for _ in reader.train(model, *numbers, epochs, batch_size, seed=seed):
            pass

    looks = range(epoch, epochs * epoch + 1, epoch // 4)
    return Contender(model, learn, partial(read_in_three_steps, model), batch_size, looks)


def ours(seed, steps=OURS["steps"]):
    """Our reader, trained on numbers that are composed as it goes; looked at every thousand."""
    training_digits, _ = digits.split(digits.load())
    torch.manual_seed(seed)
    model = reader.StemReader(OURS["layers"])
    recipe = reader.Recipe(steps, seed=seed, **OURS["recipe"])
    training = reader.Training(model, reader.FreshNumbers(*training_digits), recipe)

    def learn():
        while training.done < steps:
            training.step()

    every = 1_000 // recipe.batch_size
    looks = range(every, steps + 1, every)
    return Contender(model, learn, partial(reader.generate, model), recipe.batch_size, looks)


READERS = {"article": article, "ours": ours}

# Learning and reading


def curve(contender, numbers=2_000):
    """Train; at each look the numbers seen, the seconds of training so far and what is read.

    `exact` is in % of validation numbers. `test` is how many of as many test numbers the model read
    when it had reached GOAL for the first time; without it, it never did.
    """
    data = digits.load()
    validation = digits.compose(*digits.split(data)[1], n=numbers, seed=3)
    test = digits.compose(data.x_test, data.y_test, n=numbers, seed=1)
    found = {"numbers": [], "seconds": [], "exact": []}
    steps, trained, start = 0, 0.0, time.process_time()

    def after_step(*_):
        nonlocal steps, trained, start
        steps += 1
        if steps not in contender.looks:
            return
        trained += time.process_time() - start
        exact = 100 * reader.numbers_read(contender.model, *validation) / numbers
        found["numbers"].append(steps * contender.batch_size)
        found["seconds"].append(trained)
        found["exact"].append(exact)
        if exact >= GOAL and "test" not in found:
            found["test"] = reader.numbers_read(contender.model, *test)
        contender.model.train()
        start = time.process_time()

    hook = register_optimizer_step_post_hook(after_step)
    try:
        contender.learn()
    finally:
        hook.remove()
    return found


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def median_seconds(function, repetitions):
    return statistics.median(seconds(function) for _ in range(repetitions))


def reading_speed(contender, repetitions=20):
    """Numbers a second in a batch of 500, and milliseconds for one image alone."""
    _, validation_digits = digits.split(digits.load())
    images, _ = digits.compose(*validation_digits, n=500, seed=3)
    return {
        "read_a_second": 500 / median_seconds(lambda: contender.read(images), repetitions),
        "ms_for_one": 1000 * median_seconds(lambda: contender.read(images[:1]), 10 * repetitions),
    }


def learning(name, seed):
    """A whole training, and how fast the trained model reads."""
    contender = READERS[name](seed)
    return {**curve(contender), **reading_speed(contender)}


# Memory

PROGRAMS = {  # to train, cut short, and to read
    "article": (
        "measure.article({seed}, epochs=1).learn()",
        "measure.read_in_three_steps(reader.Reader(), torch.zeros(500, 28, 84))",
    ),
    "ours": (
        "measure.ours({seed}, steps=50).learn()",
        "reader.generate(reader.StemReader(measure.OURS['layers']), torch.zeros(500, 28, 84))",
    ),
}


def memory(name, seed):
    """Peak MB of a process that imports PyTorch, of one that trains, of one that reads 500."""
    begin = "import torch; torch.set_num_threads(1)"
    to_train, to_read = (program.format(seed=seed) for program in PROGRAMS[name])
    return {
        "import_mb": peak_megabytes(begin),
        "training_mb": peak_megabytes(f"{begin}; import measure; {to_train}"),
        "reading_mb": peak_megabytes(f"{begin}; import measure, reader; {to_read}"),
    }


# Arithmetic

STEPS = 20
BRIEFLY = {
    "article": partial(article, composites=STEPS * 128, epochs=1),
    "ours": partial(ours, steps=STEPS),
}
KINDS = {  # of operations, by their names; the first that fits
    "optimiser": "optimizer",
    "attention": "attention",
    "convolutions": "conv",
    "norms and activations": "norm|gelu",
    "matrix products": "mm|linear|matmul",
}


def kind(event):
    """The kind of a profiled operation, or of the nearest around it that has one, or "rest"."""
    while event is not None:
        for name, pattern in KINDS.items():
            if re.search(pattern, event.name, re.IGNORECASE):
                return name
        event = event.cpu_parent
    return "rest"


def time_shares(learn):
    """Where the time of training goes: {kind: %}. The rest holds Python and drawing numbers."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function("all"):
        learn()
    spent = dict.fromkeys([*KINDS, "rest"], 0)
    for event in profiler.events():
        spent[kind(event)] += event.self_cpu_time_total
    return {name: 100 * part / sum(spent.values()) for name, part in spent.items()}


def operations(learn):
    """Floating-point operations of products and convolutions in a training."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        learn()
    return counter.get_total_flops()


def matrix_rate(size=1024, repetitions=10):
    """Floating-point operations a second in the best of several matrix products."""
    a, b = torch.rand(2, size, size)
    return 2 * size**3 / min(seconds(lambda: a @ b) for _ in range(repetitions))


def arithmetic(name, seed):
    """Operations to train on one number, what share of the matrix rate that gets, and the time."""
    counted, timed, profiled = (BRIEFLY[name](seed) for _ in range(3))
    total = operations(counted.learn)
    achieved = total / seconds(timed.learn)
    rate = matrix_rate()
    return {
        "flop": total / (STEPS * counted.batch_size),
        "matrix_rate": rate,
        "share_of_rate": 100 * achieved / rate,
        "time": time_shares(profiled.learn),
    }


MEASURES = {"learning": learning, "memory": memory, "arithmetic": arithmetic, "writing": writing}
