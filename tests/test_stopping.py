"""Numbers of unequal length: what is asked of their reader, where it looks, how it is trained."""

import numpy as np
import pytest
import torch

import digits
import reader
import stopping
from digits import PAD
from reader import END, START, Reading, Recipe, Training, restore, snapshot, token_loss

pytestmark = pytest.mark.usefixtures("one_thread")

LABELS = torch.tensor([[7, PAD, PAD], [1, 2, PAD], [3, 4, 5]])


@pytest.fixture
def source():
    """Scattered numbers of a few digits: squares of ink, one size for each label."""
    images, labels = np.zeros((10, 28, 28), np.uint8), np.arange(10, dtype=np.uint8)
    for label, image in enumerate(images):
        image[4 : 10 + label, 4 : 10 + label] = 255
    return stopping.ScatteredNumbers(images, labels)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return stopping.build(width=16)


@pytest.fixture
def batch(source):
    return source(8, torch.Generator().manual_seed(0))


def training(source, steps=6):
    torch.manual_seed(0)
    return Training(stopping.build(width=16), source, Recipe(steps, batch_size=4))


# What is given, and what is asked


def test_the_decoder_is_given_start_and_then_the_digits():
    inputs, _ = stopping.teacher_forcing(LABELS)
    assert inputs.tolist() == [[START, 7, END, END], [START, 1, 2, END], [START, 3, 4, 5]]


def test_end_is_asked_after_each_number_s_own_last_digit_and_nothing_after_it():
    _, targets = stopping.teacher_forcing(LABELS)
    assert targets.tolist() == [[7, END, PAD, PAD], [1, 2, END, PAD], [3, 4, 5, END]]


def test_labels_without_padding_are_asked_as_those_of_three_digits_are():
    full = LABELS[2:]
    ours, known = stopping.teacher_forcing(full), reader.teacher_forcing(full)
    assert all(map(torch.equal, ours, known))


def test_what_is_given_where_nothing_is_asked_leaves_the_loss_alone(model, batch):
    images, inputs, targets = batch
    other = inputs.where(targets != PAD, 7)
    assert not torch.equal(other, inputs)
    losses = [token_loss(model, images, given, targets).item() for given in (inputs, other)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_more_padding_leaves_the_loss_alone(model):
    numbers = digits.scatter(*digits.load()[:2], n=8, seed=0, lengths=(1, 2))
    wider = torch.cat([numbers.labels, torch.full((8, 3), PAD)], dim=1)
    losses = [
        token_loss(model, numbers.images, *stopping.teacher_forcing(labels)).item()
        for labels in (numbers.labels, wider)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


# Positions


def tables(model):
    return model.encoder[0].position, model.decoder.position


def test_training_leaves_the_positions_alone(source):
    run = training(source)
    before = [table.clone() for table in tables(run.model)]
    run.step()
    assert all(map(torch.equal, tables(run.model), before))


def test_no_two_positions_are_alike(model):
    for table in tables(model):
        assert torch.pdist(table).min() > 0.1


def test_a_wider_canvas_and_more_tokens_continue_the_positions(model):
    wide = stopping.build(canvas=196, tokens=12, width=16)
    image, tokens = tables(wide)
    assert torch.equal(image.unflatten(0, (2, 13))[:, :9].flatten(0, 1), tables(model)[0])
    assert torch.equal(tokens[:8], tables(model)[1])


# The source of numbers


def test_a_batch_has_the_shapes_that_its_docstring_states(batch):
    assert [tuple(part.shape) for part in batch] == [(8, 28, 140), (8, 6), (8, 6)]


def test_the_generator_s_state_alone_decides_the_batch(source):
    batches = []
    for seed in (1, 2):
        np.random.seed(seed)
        torch.manual_seed(seed)
        batches.append(source(8, torch.Generator().manual_seed(0)))
    assert all(map(torch.equal, *batches))


def test_the_next_batch_is_another(source):
    generator = torch.Generator().manual_seed(0)
    assert not torch.equal(source(8, generator)[0], source(8, generator)[0])


def test_all_lengths_come_up(source):
    _, _, targets = source(100, torch.Generator().manual_seed(0))
    assert set((targets != PAD).sum(dim=1).tolist()) == {2, 3, 4, 5, 6}


def test_a_training_that_was_stopped_ends_where_one_without_a_stop_does(source):
    whole, first, rest = (training(source) for _ in range(3))
    for _ in range(3):
        first.step()
    restore(rest, snapshot(first))
    for _ in range(6):
        whole.step()
    for _ in range(3):
        rest.step()
    assert all(
        map(torch.equal, whole.model.state_dict().values(), rest.model.state_dict().values())
    )


# How a reading is judged


def judged(*written, labels=LABELS, limit=8):
    """`judge` of what was written for these labels, END included where it was said."""
    ended = torch.tensor([END in tokens for tokens in written])
    lengths = torch.tensor([len(tokens) for tokens in written])
    tokens = torch.tensor([[*tokens, *[END] * (limit - len(tokens))] for tokens in written])
    numbers = digits.Numbers(None, labels, (labels != PAD).sum(dim=1), None)
    exact, length = stopping.judge(Reading(tokens, lengths, ended, None, None), numbers)
    return exact.tolist(), length.tolist()


def test_digits_and_end_make_a_reading_exact():
    assert judged([7, END], [1, 2, END], [3, 4, 5, END]) == ([True] * 3, [True] * 3)


def test_a_misread_digit_leaves_the_length_right():
    assert judged([8, END], [1, 3, END], [3, 4, 6, END]) == ([False] * 3, [True] * 3)


def test_a_stop_too_early_or_too_late_is_wrong_in_both():
    assert judged([7, 7, END], [1, END], [END]) == ([False] * 3, [False] * 3)


def test_a_reading_that_never_stops_is_wrong_in_both():
    endless = [7, *[0] * 7]
    exact, length = judged(endless, [1, 2, END], [3, 4, 5, END])
    assert (exact[0], length[0]) == (False, False)


def test_where_the_limit_stops_a_reading_its_length_is_wrong():
    seven = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    assert judged([1, 2, 3, 4, 5, 6, 7, 8], labels=seven) == ([False], [False])
