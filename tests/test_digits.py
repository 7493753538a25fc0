"""The digits: the file in the repository, the hub, the numbers composed, and the build tool."""

import hashlib
import io
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import build_mnist
import digits
from digits import PAD, DataError, Digits, compose, load, scatter
from hub_server import running_hub

ROOT = Path(digits.__file__).parent.parent
SMALL = "mnist/mnist-small.npz"


@pytest.fixture(scope="module")
def full():
    return load()


def some_digits(seed=0, **changed):
    """A few random digits, right in form, except for the arrays in `changed`."""
    rng = np.random.default_rng(seed)
    arrays = {
        "x_train": rng.integers(0, 256, (30, 28, 28), np.uint8),
        "y_train": rng.integers(0, 10, 30, np.uint8),
        "x_test": rng.integers(0, 256, (20, 28, 28), np.uint8),
        "y_test": rng.integers(0, 10, 20, np.uint8),
    }
    return Digits(**(arrays | changed))


def as_npz(arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def assert_same(some, other):
    for name in Digits._fields:
        np.testing.assert_array_equal(getattr(some, name), getattr(other, name))


# The file in the repository


def test_mnist_has_60000_training_and_10000_test_digits(full):
    shapes = {name: array.shape for name, array in full._asdict().items()}
    assert shapes == {
        "x_train": (60_000, 28, 28),
        "y_train": (60_000,),
        "x_test": (10_000, 28, 28),
        "y_test": (10_000,),
    }


def test_every_array_is_uint8(full):
    assert {array.dtype for array in full} == {np.dtype("uint8")}


def test_each_digit_comes_as_often_as_mnist_has_it(full):
    # The published counts of MNIST, digits 0 to 9.
    assert np.bincount(full.y_train).tolist() == [
        *(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    ]
    assert np.bincount(full.y_test).tolist() == [
        *(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    ]


def test_small_is_the_first_6000_and_2000_digits(full):
    first = Digits(
        full.x_train[:6_000], full.y_train[:6_000], full.x_test[:2_000], full.y_test[:2_000]
    )
    assert_same(load("small"), first)


def test_the_file_is_found_from_any_folder(tmp_path, monkeypatch, full):
    monkeypatch.chdir(tmp_path)
    assert_same(load(), full)


def test_the_readme_lists_the_checksum_of_every_file():
    readme = (ROOT / "data" / "README.md").read_text()
    for name, sha256 in [*build_mnist.ORIGINALS.values(), ("mnist.npz", digits.FILE_SHA256)]:
        assert f"{sha256}  {name}\n" in readme


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A copy of data/mnist.npz that a test may damage, read in its place."""
    copy = tmp_path / "mnist.npz"
    shutil.copy(digits.FILE, copy)
    monkeypatch.setattr(digits, "FILE", copy)
    return copy


def refusal_of_the_file():
    with pytest.raises(DataError) as refusal:
        load()
    return str(refusal.value)


def test_a_missing_file_is_named_with_the_way_to_restore_it(own_file):
    own_file.unlink()
    message = refusal_of_the_file()
    assert f"{own_file} cannot be read: No such file" in message
    assert "`git checkout data/mnist.npz`, or rebuild it as data/README.md says" in message


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_file_is_named_with_the_way_to_restore_it(own_file, damage):
    content = bytearray(own_file.read_bytes())
    content[-100:] = b"" if damage == "truncated" else bytes(100)
    own_file.write_bytes(content)
    message = refusal_of_the_file()
    assert f"{own_file} is truncated or altered" in message
    assert "`git checkout data/mnist.npz`, or rebuild it as data/README.md says" in message


def test_an_unknown_size_is_refused():
    with pytest.raises(ValueError, match='size is "full" or "small", not \'tiny\''):
        load(size="tiny")


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match='source is "file" or "hub", not \'web\''):
        load(source="web")


# The hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub of the test's own behind HF_ENDPOINT, and an empty cache; no waiting for retries."""
    from huggingface_hub import constants

    with running_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        yield server


def publish(hub, content, size="small"):
    """Let the hub serve `content` where the article's file of this size is."""
    revision, filename = {
        "small": ("f705fed08827ff6c36e3b5329495c943a5e544e8", "mnist/mnist-small.npz"),
        "full": ("6bbb59474efaf5edfb62408686909305dbd45335", "mnist/mnist-full.npz"),
    }[size]
    repo = "/datasets/roshbeed/ai-residency-blog-data"
    hub.files[f"{repo}/resolve/{revision}/{filename}"] = content


def refusal_of_the_hub():
    with pytest.raises(DataError) as refusal:
        load("small", source="hub")
    return str(refusal.value)


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]


@pytest.mark.parametrize("size", ["small", "full"])
def test_the_hub_gives_the_article_s_file_of_that_size(hub, size):
    published = some_digits()
    publish(hub, as_npz(published._asdict()), size)
    assert_same(load(size, source="hub"), published)


def test_a_fresh_process_uses_the_hub_and_the_cache_of_its_environment(hub, tmp_path):
    publish(hub, as_npz(some_digits()._asdict()))
    environment = os.environ | {
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": str(ROOT / "notebooks"),
    }
    environment.pop("HF_HUB_CACHE", None)
    code = "import digits; print(len(digits.load('small', source='hub').x_train))"
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert output == "30\n"
    assert list((tmp_path / "home").rglob("mnist-small.npz"))


def test_an_endpoint_may_end_in_a_slash(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/")
    publish(hub, as_npz(some_digits()._asdict()))
    assert_same(load("small", source="hub"), some_digits())


def test_an_unreachable_hub_is_named_with_the_way_round_it(hub):
    hub.go_down()
    message = refusal_of_the_hub()
    assert f"The hub at {hub.url} cannot be reached. " in message
    assert 'load(source="file")' in message


def test_a_file_the_hub_lacks_is_named_with_the_way_round_it(hub):
    message = refusal_of_the_hub()
    assert f"The download of {SMALL} from {hub.url} failed. " in message
    assert "404" in message
    assert 'load(source="file")' in message


def test_a_download_that_breaks_off_is_named_with_the_way_round_it(hub):
    publish(hub, as_npz(some_digits()._asdict()))
    hub.kept_back = 1_000
    message = refusal_of_the_hub()
    assert f"The download of {SMALL} from {hub.url} failed. " in message
    assert 'load(source="file")' in message


def test_a_download_that_breaks_off_leaves_no_digits_in_the_cache(hub, tmp_path):
    publish(hub, as_npz(some_digits()._asdict()))
    hub.kept_back = 1_000
    refusal_of_the_hub()
    repository = tmp_path / "hub" / "datasets--roshbeed--ai-residency-blog-data"
    assert files_in(repository) == []


def test_after_a_download_that_broke_off_the_next_call_succeeds(hub):
    publish(hub, as_npz(some_digits()._asdict()))
    hub.kept_back = 1_000
    refusal_of_the_hub()
    hub.kept_back = 0
    assert_same(load("small", source="hub"), some_digits())


WRONG = {
    "a web page": (b"<html>Log in</html>", "it is not an intact npz of plain arrays"),
    "an empty file": (b"", "it is not an intact npz of plain arrays"),
    "half an npz": (
        as_npz(some_digits()._asdict())[:20_000],
        "it is not an intact npz of plain arrays",
    ),
    "no test labels": (
        as_npz({key: array for key, array in some_digits()._asdict().items() if key != "y_test"}),
        "an array is missing, y_test is not a file in the archive",
    ),
    "pickled labels": (
        as_npz(some_digits(y_train=np.array([{}] * 30))._asdict()),
        "it is not an intact npz of plain arrays, free of pickles",
    ),
    "float images": (
        as_npz(some_digits(x_train=np.zeros((30, 28, 28)))._asdict()),
        "in the train split, images is float64: give a uint8 NumPy array",
    ),
    "flat images": (
        as_npz(some_digits(x_test=np.zeros((20, 784), np.uint8))._asdict()),
        r"in the test split, images has shape (20, 784): give (N, 28, 28)",
    ),
    "a label too many": (
        as_npz(some_digits(y_train=np.zeros(31, np.uint8))._asdict()),
        "in the train split, labels has shape (31,): give one label an image, (30,)",
    ),
    "a label of ten": (
        as_npz(some_digits(y_test=np.full(20, 10, np.uint8))._asdict()),
        "in the test split, labels go up to 10: give digits, 0 to 9",
    ),
}


@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_from_the_hub_is_refused_with_the_reason(hub, content, reason):
    publish(hub, content)
    message = refusal_of_the_hub()
    assert f"{SMALL} from the hub is not the digits" in message
    assert reason in message
    assert 'load(source="file")' in message


def test_after_a_wrong_file_the_next_call_downloads_again(hub):
    publish(hub, b"rubbish")
    refusal_of_the_hub()
    publish(hub, as_npz(some_digits()._asdict()))
    assert_same(load("small", source="hub"), some_digits())


def test_a_file_damaged_in_the_cache_is_downloaded_again_by_the_next_call(hub, tmp_path):
    publish(hub, as_npz(some_digits()._asdict()))
    load("small", source="hub")
    next(tmp_path.rglob("mnist-small.npz")).write_bytes(b"rubbish")
    refusal_of_the_hub()
    assert_same(load("small", source="hub"), some_digits())


def test_a_good_file_in_the_cache_outlives_a_hub_that_serves_rubbish(hub):
    publish(hub, as_npz(some_digits()._asdict()))
    load("small", source="hub")
    publish(hub, b"rubbish")
    assert_same(load("small", source="hub"), some_digits())


def test_a_good_file_in_the_cache_outlives_a_hub_that_is_down(hub):
    publish(hub, as_npz(some_digits()._asdict()))
    load("small", source="hub")
    hub.go_down()
    assert_same(load("small", source="hub"), some_digits())


# Numbers of three digits


def test_a_composite_is_its_three_picks_side_by_side(full):
    images, labels = compose(full.x_test, full.y_test, n=50, seed=1)
    picks = np.random.default_rng(1).integers(0, 10_000, size=(50, 3))
    for image, label, (left, middle, right) in zip(images, labels, picks, strict=True):
        strip = np.hstack([full.x_test[left], full.x_test[middle], full.x_test[right]])
        np.testing.assert_array_equal(image, strip.astype(np.float32) / 255)
        assert label.tolist() == [full.y_test[left], full.y_test[middle], full.y_test[right]]


def test_composites_are_float32_strips_of_28_by_84_pixels(full):
    images, _ = compose(full.x_test, full.y_test, n=7, seed=0)
    assert (images.shape, images.dtype) == ((7, 28, 84), torch.float32)


def test_composites_have_three_int64_labels(full):
    _, labels = compose(full.x_test, full.y_test, n=7, seed=0)
    assert (labels.shape, labels.dtype) == ((7, 3), torch.int64)


def test_pixels_run_from_0_to_1(full):
    images, _ = compose(full.x_test, full.y_test, n=50, seed=0)
    assert (images.min(), images.max()) == (0, 1)


def test_the_same_seed_gives_the_same_composites(full):
    first = compose(full.x_test, full.y_test, n=20, seed=5)
    second = compose(full.x_test, full.y_test, n=20, seed=5)
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_another_seed_gives_other_composites(full):
    _, first = compose(full.x_test, full.y_test, n=20, seed=5)
    _, second = compose(full.x_test, full.y_test, n=20, seed=6)
    assert not torch.equal(first, second)


def test_composites_use_the_given_images_and_no_others(full):
    given = full.x_test[:50]
    images, _ = compose(given, full.y_test[:50], n=200, seed=0)
    thirds = (images * 255).round().to(torch.uint8).unfold(2, 28, 28).transpose(1, 2)
    used = {third.numpy().tobytes() for third in thirds.reshape(-1, 28, 28)}
    assert used <= {image.tobytes() for image in given}


def test_composing_leaves_the_digits_as_they_were():
    before = some_digits()
    after = some_digits()
    images, _ = compose(after.x_train, after.y_train, n=5, seed=0)
    images.zero_()
    assert_same(after, before)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
def test_a_number_of_composites_that_is_not_an_int_above_0_is_refused(n):
    some = some_digits()
    with pytest.raises(ValueError, match=f"n is how many .* at least 1, not {n!r}"):
        compose(some.x_train, some.y_train, n=n, seed=0)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([[0]], "images is list: give a uint8 NumPy array"),
        (np.zeros((30, 28, 28), np.float32), "images is float32: give a uint8 NumPy array"),
        (np.zeros((30, 28, 27), np.uint8), r"images has shape \(30, 28, 27\): give \(N, 28, 28\)"),
        (np.zeros((28, 28), np.uint8), r"images has shape \(28, 28\): give \(N, 28, 28\)"),
        (np.zeros((0, 28, 28), np.uint8), r"images has shape \(0, 28, 28\): .* N at least 1"),
    ],
)
def test_images_of_another_kind_are_refused(images, message):
    with pytest.raises(ValueError, match=message):
        compose(images, some_digits().y_train, n=1, seed=0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(30), "labels is float64: give a uint8 NumPy array"),
        (np.zeros(29, np.uint8), r"labels has shape \(29,\): give one label an image, \(30,\)"),
        (np.full(30, 10, np.uint8), "labels go up to 10: give digits, 0 to 9"),
    ],
)
def test_labels_of_another_kind_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        compose(some_digits().x_train, labels, n=1, seed=0)


# Numbers of some digits, scattered


@pytest.fixture(scope="module")
def numbers(full):
    return scatter(full.x_test, full.y_test, n=3_000, seed=0)


@pytest.fixture
def one_of_each():
    """The digits 0 to 9, each a block of its own width and height, and of a grey of its own."""
    images = np.zeros((10, 28, 28), np.uint8)
    for label in range(10):
        images[label, 6 : 26 - label, 8 : 13 + label] = 25 * (label + 1)
    return images, np.arange(10, dtype=np.uint8)


def ink_of(image, box):
    left, top, right, bottom = box.tolist()
    return image[top:bottom, left:right]


def test_scattered_numbers_have_padded_labels_a_length_and_boxes(full):
    images, labels, lengths, boxes = scatter(full.x_test, full.y_test, n=7, seed=0)
    assert (images.shape, images.dtype) == ((7, 28, 140), torch.float32)
    assert (labels.shape, labels.dtype) == ((7, 5), torch.int64)
    assert (lengths.shape, lengths.dtype) == ((7,), torch.int64)
    assert (boxes.shape, boxes.dtype) == ((7, 5, 4), torch.int64)


def test_labels_and_boxes_end_with_the_number(numbers):
    after = torch.arange(5) >= numbers.lengths[:, None]
    assert torch.equal(numbers.labels == PAD, after)
    assert torch.equal((numbers.boxes == 0).all(dim=2), after)
    assert numbers.labels[~after].unique().tolist() == list(range(10))


def test_every_length_comes_equally_often(numbers):
    counts = numbers.lengths.bincount(minlength=6).tolist()
    assert counts[0] == 0
    assert all(abs(count - 600) < 3 * 600**0.5 for count in counts[1:])


@pytest.mark.parametrize("lengths", [(6,), (2, 7)])
def test_numbers_are_as_long_as_asked(full, lengths):
    asked = scatter(full.x_test, full.y_test, n=50, seed=0, lengths=lengths, width=196)
    assert set(asked.lengths.tolist()) == set(lengths)
    assert asked.images.shape == (50, 28, 196)
    assert asked.labels.shape == (50, max(lengths))


def test_the_boxes_hold_all_the_ink(numbers):
    images = numbers.images.clone()
    for image, boxes in zip(images, numbers.boxes, strict=True):
        for box in boxes:
            ink_of(image, box).zero_()
    assert not images.any()


def test_ink_touches_every_side_of_a_box(numbers):
    for image, boxes, length in zip(*numbers[:1], numbers.boxes, numbers.lengths, strict=True):
        for box in boxes[:length]:
            ink = ink_of(image, box)
            assert all(side.any() for side in (ink[0], ink[-1], ink[:, 0], ink[:, -1]))


def test_digits_stand_in_reading_order_with_an_empty_column_between(numbers):
    left, right = numbers.boxes[:, 1:, 0], numbers.boxes[:, :-1, 2]
    both = torch.arange(1, 5) < numbers.lengths[:, None]
    assert (left > right)[both].all()


def test_a_box_holds_the_digit_that_its_label_names(one_of_each):
    # The blocks' greys survive where a block covers a pixel wholly.
    images, labels, lengths, boxes = scatter(*one_of_each, n=300, seed=0)
    for image, label, box, length in zip(images, labels, boxes, lengths, strict=True):
        greys = [255 * ink_of(image, b).max().item() for b in box[:length]]
        assert greys == pytest.approx(25 * (label[:length] + 1).numpy())


def test_a_number_has_one_size(one_of_each):
    images, labels = one_of_each
    sevens = scatter(images[7:8], labels[7:8], n=200, seed=0)
    heights = sevens.boxes[..., 3] - sevens.boxes[..., 1]
    for row, length in zip(heights, sevens.lengths, strict=True):
        assert row[:length].max() - row[:length].min() == 0
    assert len(heights[:, 0].unique()) > 3


def test_digits_of_28_pixels_are_the_originals(full, monkeypatch):
    monkeypatch.setattr(digits, "SIZES", range(28, 29))
    image, _, _, boxes = (part[0] for part in scatter(full.x_test[:1], full.y_test[:1], 1, 0))
    rows, columns = full.x_test[0].nonzero()
    ink = full.x_test[0][rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    np.testing.assert_array_equal(ink_of(image, boxes[0]), ink / np.float32(255))


@pytest.mark.parametrize("size", digits.SIZES)
def test_a_resized_image_keeps_its_mean_and_its_ink(full, size):
    before, after = full.x_test[:200], digits._resized(full.x_test[:200], size)
    means = before.mean(axis=(1, 2)), after.mean(axis=(1, 2))
    np.testing.assert_allclose(*means, atol=1)  # each pixel is rounded up
    one_pixel = np.zeros((1, 28, 28), np.uint8)
    one_pixel[0, 13, 5] = 1
    assert digits._resized(one_pixel, size).any()


def test_the_length_does_not_follow_from_where_ink_begins_or_how_far_it_reaches(numbers):
    span = numbers.boxes[..., 2].amax(dim=1) - numbers.boxes[:, 0, 0]
    for length in (2, 3, 4, 5):
        rows = numbers.lengths == length
        assert span[rows].min() < 70
        assert span[rows].max() > 135
        assert numbers.boxes[rows, 0, 0].max() > 60
    assert (numbers.boxes[:, 0, 0] == 0).any()
    assert (numbers.boxes[..., 2] == 140).any()


def test_the_same_seed_scatters_the_same_numbers_and_another_others(full):
    first, again, other = (scatter(full.x_test, full.y_test, n=20, seed=s) for s in (5, 5, 6))
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not any(torch.equal(*pair) for pair in zip(first, other, strict=True))


def test_scattering_leaves_the_digits_as_they_were(one_of_each):
    images, labels = one_of_each
    before = images.copy(), labels.copy()
    scatter(images, labels, n=5, seed=0).images.zero_()
    np.testing.assert_array_equal(images, before[0])
    np.testing.assert_array_equal(labels, before[1])


@pytest.mark.parametrize("corner", [0, 8])
def test_the_largest_digits_fit_side_by_side_at_the_least_width(corner):
    images, labels = np.zeros((1, 28, 28), np.uint8), np.zeros(1, np.uint8)
    images[0, corner : corner + 20, corner : corner + 20] = 255
    numbers = scatter(images, labels, n=200, seed=0, lengths=(5,), width=139)
    assert numbers.boxes[..., 2].max() <= 139
    assert numbers.boxes[..., 3].max() <= 28
    with pytest.raises(ValueError, match="numbers of 5 digits can need 139 pixels: give a width"):
        scatter(images, labels, n=1, seed=0, lengths=(5,), width=138)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_number_of_scattered_numbers_that_is_not_an_int_above_0_is_refused(n):
    some = some_digits()
    with pytest.raises(ValueError, match=f"n is how many .* at least 1, not {n!r}"):
        scatter(some.x_train, some.y_train, n=n, seed=0)


@pytest.mark.parametrize("lengths", [(), (0,), (1, -2), (1.5,)])
def test_lengths_that_are_not_ints_above_0_are_refused(lengths):
    some = some_digits()
    with pytest.raises(ValueError, match=r"lengths are .*: give ints of at least 1, not "):
        scatter(some.x_train, some.y_train, n=1, seed=0, lengths=lengths)


@pytest.mark.parametrize(("ink", "rows", "columns"), [(0, 0, 0), (21, 21, 5), (22, 20, 22)])
def test_an_image_without_ink_or_with_too_much_is_refused(one_of_each, ink, rows, columns):
    images, labels = one_of_each
    images[3] = 0
    images[3, :rows, :columns] = 1
    with pytest.raises(ValueError, match=f"image 3 has ink over {ink} pixels: give digits of 1 to"):
        scatter(images, labels, n=1, seed=0)


def test_images_and_labels_are_checked_before_they_are_scattered():
    some = some_digits()
    with pytest.raises(ValueError, match="images is float32: give a uint8 NumPy array"):
        scatter(some.x_train.astype(np.float32), some.y_train, n=1, seed=0)
    with pytest.raises(ValueError, match=r"labels has shape \(3,\)"):
        scatter(some.x_train, some.y_train[:3], n=1, seed=0)


# The tool that built the file


def as_idx(array):
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def table(folder):
    """The tool's table, for the files that are in `folder` now."""
    return {
        key: (name, hashlib.sha256((folder / name).read_bytes()).hexdigest())
        for key, (name, _) in build_mnist.ORIGINALS.items()
    }


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """A folder of small originals that the tool knows, and an earlier mnist.npz to replace."""
    folder = tmp_path / "originals"
    folder.mkdir()
    for key, (name, _) in build_mnist.ORIGINALS.items():
        (folder / name).write_bytes(as_idx(getattr(some_digits(), key)))
    target = tmp_path / "data" / "mnist.npz"
    target.parent.mkdir()
    target.write_bytes(b"earlier")
    monkeypatch.setattr(build_mnist, "ORIGINALS", table(folder))
    monkeypatch.setattr(build_mnist, "TARGET", target)
    return folder


def refusal_of_the_tool(folder):
    with pytest.raises(SystemExit) as refusal:
        build_mnist.main([str(folder)])
    return refusal.value.code


def test_the_tool_writes_what_the_originals_hold(originals):
    build_mnist.main([str(originals)])
    with np.load(build_mnist.TARGET) as archive:
        assert_same(Digits(**archive), some_digits())


def test_the_tool_writes_the_same_bytes_every_time(originals):
    build_mnist.main([str(originals)])
    first = build_mnist.TARGET.read_bytes()
    build_mnist.main([str(originals)])
    assert build_mnist.TARGET.read_bytes() == first


def test_the_tool_prints_the_checksum_of_what_it_wrote(originals, capsys):
    build_mnist.main([str(originals)])
    sha256 = hashlib.sha256(build_mnist.TARGET.read_bytes()).hexdigest()
    assert capsys.readouterr().out == f"{sha256}  mnist.npz\n"


DAMAGES = {
    "missing": (lambda path: path.unlink(), "cannot be read (No such file or directory)"),
    "altered": (lambda path: path.write_bytes(bytes(30)), "is not the original"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is not the original"),
}


@pytest.mark.parametrize(("damage", "problem"), DAMAGES.values(), ids=DAMAGES)
def test_the_tool_names_a_damaged_original_and_the_way_out(originals, damage, problem):
    path = originals / "t10k-labels-idx1-ubyte"
    damage(path)
    message = refusal_of_the_tool(originals)
    assert f"{path}: {problem}" in message
    assert "Unpack the originals again (data/README.md says how)" in message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "does not start with the idx header"),
        (as_idx(np.zeros(20, np.uint8))[:6], "does not start with the idx header"),
        (b"\0\0\x0d\1" + bytes(24), "does not start with the idx header"),
        (as_idx(np.zeros(20, np.uint8))[:-1], "does not hold the (20,) bytes"),
    ],
    ids=["empty", "cut header", "floats", "cut"],
)
def test_the_tool_refuses_an_original_that_is_not_idx(originals, monkeypatch, content, problem):
    path = originals / "t10k-labels-idx1-ubyte"
    path.write_bytes(content)
    monkeypatch.setattr(build_mnist, "ORIGINALS", table(originals))
    assert f"{path}: {problem}" in refusal_of_the_tool(originals)


def test_a_damaged_original_leaves_the_earlier_file_untouched(originals):
    (originals / "t10k-labels-idx1-ubyte").unlink()
    refusal_of_the_tool(originals)
    assert build_mnist.TARGET.read_bytes() == b"earlier"


def test_a_build_that_is_interrupted_leaves_the_earlier_file_and_nothing_else(
    originals, monkeypatch
):
    def interrupted(file, **arrays):
        file.write(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_mnist.main([str(originals)])
    assert build_mnist.TARGET.read_bytes() == b"earlier"
    assert files_in(build_mnist.TARGET.parent) == [build_mnist.TARGET]


def test_the_command_ends_with_status_1_and_one_line(tmp_path):
    tool = [sys.executable, build_mnist.__file__, str(tmp_path)]
    ended = subprocess.run(tool, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{tmp_path / 'train-images-idx3-ubyte'}: cannot be read")
    assert len(ended.stderr.splitlines()) == 1
