"""A reader whose decoder gets one vector of the whole image, and the numbers that it reads."""

import pytest
import torch

import digits
import pixels
from pixels import SMALL_READER, LastStateReader, MeanReader, ShortNumbers, read_by_length
from reader import END, START, Reader

pytestmark = pytest.mark.usefixtures("one_thread")

ONE_VECTOR = [MeanReader, LastStateReader]
IMAGES = torch.rand(3, 14, 70, generator=torch.Generator().manual_seed(0))
TOKENS = torch.tensor([[START, 1, 2]] * 3)


@pytest.fixture(scope="module")
def drawn():
    return digits.split(digits.load())[1]


def built(kind):
    torch.manual_seed(0)
    return kind(**SMALL_READER)


@pytest.mark.parametrize("kind", ONE_VECTOR)
def test_the_memory_is_one_vector(kind):
    assert built(kind).encoder(IMAGES).shape == (3, 1, 64)


def test_the_complete_reader_has_one_for_each_patch():
    assert built(Reader).encoder(IMAGES).shape == (3, 20, 64)


def test_the_mean_is_that_of_the_complete_readers_memory():
    mean = built(Reader).encoder(IMAGES).mean(dim=1, keepdim=True)
    assert torch.allclose(built(MeanReader).encoder(IMAGES), mean)


def test_the_last_state_has_seen_every_column_in_order():
    reader = built(LastStateReader)
    patches, last = reader.encoder
    memory = patches(IMAGES)
    columns = memory.view(3, 2, 10, 64).transpose(1, 2).reshape(3, 10, 128)
    expected = last.rnn(columns)[0][:, -1:]
    assert torch.allclose(last(memory), expected, atol=1e-6)


@pytest.mark.parametrize("kind", [Reader, *ONE_VECTOR])
def test_another_image_is_answered_otherwise(kind):
    reader = built(kind)
    assert not torch.allclose(reader(IMAGES, TOKENS), reader(IMAGES.roll(1, 0), TOKENS), atol=1e-4)


def test_numbers_stand_at_the_left_edge_and_end_with_end(drawn):
    numbers = ShortNumbers(*drawn)
    images, labels = numbers.draw(torch.tensor([1, 3, 5]), torch.Generator().manual_seed(0))
    assert images.shape == (3, 14, 70)
    for image, label, length in zip(images, labels, (1, 3, 5), strict=True):
        cells = image.unflatten(1, (5, 14)).transpose(0, 1)
        assert [bool(cell.any()) for cell in cells] == [i < length for i in range(5)]
        assert [token.item() == END for token in label] == [i >= length for i in range(5)]


def test_a_digit_is_the_one_that_its_label_says(drawn):
    images, labels = drawn
    numbers = ShortNumbers(images, labels)
    shown, asked = numbers.draw(torch.tensor([2]), torch.Generator().manual_seed(0))
    cell = shown[0, :, 14:28]
    found = (numbers.images == cell).all(dim=(1, 2)).nonzero()[0]
    assert labels[found.item()] == asked[0, 1]


def test_batches_have_all_lengths_and_come_again_with_the_seed(drawn):
    numbers = ShortNumbers(*drawn)
    images, inputs, targets = numbers(200, torch.Generator().manual_seed(0))
    assert images.shape == (200, 14, 70)
    assert inputs.shape == targets.shape == (200, 6)
    assert set((targets != END).sum(dim=1).tolist()) == {1, 2, 3, 4, 5}
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(images, numbers(200, torch.Generator().manual_seed(0))[0])


def test_training_gives_a_model_and_ten_losses_that_fall(monkeypatch):
    monkeypatch.setattr(pixels, "PIXEL_STEPS", 30)
    model, losses = pixels.trained(MeanReader, seed=0)
    assert isinstance(model, MeanReader)
    assert len(losses) == 10
    assert losses[-1] < losses[0]


def test_an_untrained_reader_reads_next_to_nothing(drawn):
    shares = read_by_length(built(Reader), *drawn, count=20)
    assert len(shares) == 5
    assert max(shares) < 30
