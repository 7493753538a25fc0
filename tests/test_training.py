"""What lesson 04 adds to the reader: fresh numbers, the stem, and the loop with switches."""

import pytest
import torch

import digits
from digits import PAD
from reader import (
    END,
    START,
    ConvStem,
    FreshNumbers,
    Reader,
    Recipe,
    StemReader,
    Training,
    distort,
    learning_rate_factor,
    numbers_read,
    optimisers,
    own_rows,
    token_loss,
)

pytestmark = pytest.mark.usefixtures("one_thread")

STILL = {"rotation": 0, "scale": 0, "slant": 0, "shift": 0}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def some_digits():
    data = digits.load()
    return data.x_train[:20], data.y_train[:20]


@pytest.fixture
def draw(some_digits):
    return FreshNumbers(*some_digits)


@pytest.fixture
def reader():
    torch.manual_seed(0)
    return StemReader(((4, 5, 2), (8, 3, 2), (8, 3, 2)), width=16, heads=2)


# Fresh numbers


def test_fresh_numbers_are_whole_digits_with_their_labels(draw, some_digits):
    images, _, targets = draw(5, generator())
    known = {image.tobytes(): label for image, label in zip(*some_digits, strict=True)}
    shown = (255 * images).round().to(torch.uint8).numpy()
    for strip, answer in zip(shown, targets.tolist(), strict=True):
        thirds = [strip[:, x : x + 28].tobytes() for x in (0, 28, 56)]
        assert [known[third] for third in thirds] == answer[:3]


def test_fresh_numbers_are_asked_for_with_start_and_answered_with_end(draw):
    _, inputs, targets = draw(5, generator())
    assert inputs[:, 0].tolist() == [START] * 5
    assert targets[:, 3].tolist() == [END] * 5
    assert torch.equal(inputs[:, 1:], targets[:, :3])


def test_the_next_batch_is_another_and_the_same_generator_gives_the_same(draw):
    first = generator()
    one, next_one, again = draw(5, first), draw(5, first), draw(5, generator())
    assert not torch.equal(one[0], next_one[0])
    assert torch.equal(one[0], again[0])


def test_distorted_numbers_have_the_labels_of_the_digits_they_were(draw, some_digits):
    distorted = FreshNumbers(*some_digits, distort)(5, generator())
    plain = draw(5, generator())
    assert torch.equal(distorted[2], plain[2])
    assert not torch.equal(distorted[0], plain[0])


# Distortion


@pytest.fixture
def images(some_digits):
    return torch.from_numpy(some_digits[0]).float() / 255


def test_a_distortion_by_nothing_changes_nothing(images):
    assert torch.allclose(distort(images, generator(), **STILL), images, atol=1e-5)


def test_a_shift_moves_the_ink_by_no_more_than_it_says(images):
    moved = distort(images, generator(), **STILL | {"shift": 2})
    columns = torch.arange(28.0)

    def middle(pictures, axis):
        ink = pictures.sum(dim=axis)
        return (ink * columns).sum(dim=1) / ink.sum(dim=1)

    for axis in (1, 2):
        by = (middle(moved, axis) - middle(images, axis)).abs()
        assert 0.5 < by.max() <= 2.01


def test_a_rotation_keeps_the_middle_where_it_is():
    cross = torch.zeros(1, 28, 28)
    cross[:, 13:15, 13:15] = 1
    turned = distort(cross, generator(), **STILL | {"rotation": 90})
    assert turned[0, 12:16, 12:16].sum() == pytest.approx(4, abs=0.2)


# The stem and its reader


def test_what_the_stem_makes_of_an_image_does_not_depend_on_its_batch(reader, draw):
    images, _, _ = draw(4, generator())
    stem = reader.encoder[0].train()
    assert torch.allclose(stem(images)[:1], stem(images[:1]), atol=1e-6)


def test_an_image_of_another_size_is_an_error_that_names_both():
    stem = ConvStem((28, 84), ((4, 5, 2),), width=8, position_std=0.5)
    with pytest.raises(ValueError, match=r"\(2, 28, 56\): this reader takes \(28, 84\) each"):
        stem(torch.zeros(2, 28, 56))


def test_twelve_vectors_and_fewer_parameters_than_the_articles_reader():
    ours, article = StemReader(), Reader()
    assert ours.encoder(torch.zeros(1, 28, 84)).shape == (1, 12, 96)
    count = [sum(p.numel() for p in model.parameters()) for model in (ours, article)]
    assert count == [493_804, 534_348]


def test_a_later_token_leaves_the_logits_before_it_alone(reader, draw):
    images, inputs, _ = draw(2, generator())
    other = inputs.clone()
    other[:, 2] = (other[:, 2] + 1) % 10
    with torch.no_grad():
        moved = (reader(images, other) - reader(images, inputs)).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.tolist() == [False, False, True, True]


def test_another_image_changes_the_logits(reader, draw):
    images, inputs, _ = draw(2, generator())
    with torch.no_grad():
        assert not torch.allclose(reader(images.flip(0), inputs), reader(images, inputs))


class Writes(torch.nn.Module):
    """A decoder that writes the same tokens whatever it sees."""

    def __init__(self, tokens):
        super().__init__()
        self.tokens, self.position = tokens, torch.nn.Parameter(torch.zeros(4, 1))

    def forward(self, tokens, memory, need_weights=False):
        step = tokens.shape[1]
        logits = torch.nn.functional.one_hot(torch.tensor(self.tokens[:step]), 12).float()
        return logits.expand(len(tokens), -1, -1), torch.zeros(len(tokens), step, memory.shape[1])


@pytest.mark.parametrize(
    ("written", "right"),
    [([1, 2, 3, END], 1), ([1, 2, 3, 4], 0), ([1, 2, END, END], 0)],
    ids=["with END", "without END", "too short"],
)
def test_a_number_is_read_when_all_its_digits_and_end_are_right(reader, written, right):
    reader.decoder = Writes(written)
    labels = torch.tensor([[1, 2, 3], [1, 2, 4]])
    assert numbers_read(reader, torch.zeros(2, 28, 84), labels, batch_size=1) == right


class Peeks(Writes):
    """A decoder that answers with the next token it is given, and with END at the last."""

    def forward(self, tokens, memory, need_weights=False):
        answers = torch.nn.functional.pad(tokens[:, 1:], (0, 1), value=END)
        logits = torch.nn.functional.one_hot(answers, 12).float()
        return logits, torch.zeros(*tokens.shape, memory.shape[1])


def test_a_reader_that_knows_what_a_teacher_tells_it_alone_reads_nothing(reader):
    reader.decoder = Peeks([])
    assert numbers_read(reader, torch.zeros(2, 28, 84), torch.tensor([[1, 2, 3], [1, 2, 4]])) == 0


# The loop


def test_padding_stays_out_of_the_loss(reader, draw):
    images, inputs, targets = draw(2, generator())
    padded = targets.clone()
    padded[:, 2:] = PAD
    with torch.no_grad():
        logits = reader(images, inputs)[:, :2].flatten(0, 1)
        expected = torch.nn.functional.cross_entropy(logits, targets[:, :2].flatten())
        assert token_loss(reader, images, inputs, padded) == pytest.approx(expected.item())


def test_the_rate_rises_for_a_twentieth_of_the_steps_and_falls_to_nothing():
    factors = [learning_rate_factor(Recipe(steps=200), step) for step in range(200)]
    assert factors[:10] == sorted(factors[:10])
    assert factors[0] == pytest.approx(0.1)
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[-1] < 0.001


def test_without_cosine_the_rate_stays():
    recipe = Recipe(steps=200, cosine=False)
    assert {learning_rate_factor(recipe, step) for step in range(200)} == {1.0}


def of(optimiser):
    return [p for group in optimiser.param_groups for p in group["params"]]


def test_muon_gets_the_matrices_of_the_blocks_and_adamw_the_rest(reader):
    adamw, muon = optimisers(reader, Recipe(steps=1, muon=True))
    matrices = {
        name
        for name, p in reader.named_parameters()
        if p.ndim == 2 and (name.startswith("encoder.1.") or ".blocks." in name)
    }
    names = {p: name for name, p in reader.named_parameters()}
    assert {names[p] for p in of(muon)} == matrices
    assert {names[p] for p in of(adamw)} == set(names.values()) - matrices


def test_without_muon_adamw_gets_all(reader):
    (adamw,) = optimisers(reader, Recipe(steps=1))
    assert len(of(adamw)) == len(list(reader.parameters()))


def test_the_rows_of_all_processes_are_the_batch(draw):
    batch = draw(8, generator())
    parts = [own_rows(batch, rank, 4)[0] for rank in range(4)]
    together = torch.stack([images for images, _, _ in parts], dim=1).flatten(0, 1)
    assert torch.equal(together, batch[0])


def test_a_process_weighs_as_much_as_it_has_targets(draw):
    images, inputs, targets = draw(4, generator())
    targets[1::2, 1:] = PAD  # four targets in the rows of the first process, one in the second's
    weights = [own_rows((images, inputs, targets), rank, 2)[1] for rank in range(2)]
    assert weights == pytest.approx([8 / 5, 2 / 5])


def test_training_lowers_the_loss(reader, draw):
    training = Training(reader, draw, Recipe(steps=30, batch_size=8))
    losses = [training.step() for _ in range(30)]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_the_seed_of_a_recipe_draws_its_batches(reader, draw):
    def first_images(seed):
        drawn = []

        def noted(n, generator):
            drawn.append(draw(n, generator))
            return drawn[-1]

        Training(reader, noted, Recipe(steps=1, batch_size=4, seed=seed)).step()
        return drawn[0][0]

    assert torch.equal(first_images(1), first_images(1))
    assert not torch.equal(first_images(1), first_images(2))


def test_the_average_moves_by_the_decay(reader, draw):
    training = Training(reader, draw, Recipe(steps=2, batch_size=4, decay=0.75))
    training.step()
    before = training.average.module.decoder.head.weight.detach().clone()
    training.step()
    expected = 0.75 * before + 0.25 * reader.decoder.head.weight
    assert torch.allclose(training.average.module.decoder.head.weight, expected)
