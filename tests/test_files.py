"""A file that the tools write is the new one, whole, or still the old one."""

import errno
import io
from pathlib import Path

import pytest

import files
from files import write_atomically


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("earlier")
    return path


@pytest.mark.parametrize(
    ("content", "stored"),
    [("Lektion – 1\n", "Lektion – 1\n".encode()), (b"\x89PNG\r\n", b"\x89PNG\r\n")],
    ids=["text", "bytes"],
)
def test_the_content_replaces_the_earlier_one(page, content, stored):
    write_atomically(page, content)
    assert page.read_bytes() == stored


def test_nothing_else_is_left_beside_the_file(page):
    write_atomically(page, "now")
    assert list(page.parent.iterdir()) == [page]


def test_the_folder_is_made_where_it_lacks(tmp_path):
    write_atomically(tmp_path / "_site" / "pages" / "page.html", "now")
    assert (tmp_path / "_site" / "pages" / "page.html").read_text() == "now"


def test_a_path_may_be_text(tmp_path):
    write_atomically(str(tmp_path / "page.html"), "now")
    assert (tmp_path / "page.html").read_text() == "now"


def test_everyone_may_read_the_file(page):
    write_atomically(page, "now")
    assert page.stat().st_mode & 0o777 == 0o644


class FullDisk(io.FileIO):
    def write(self, data):
        super().write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(*_):
    raise KeyboardInterrupt


def the_disk_fills(monkeypatch):
    monkeypatch.setattr(files.os, "fdopen", FullDisk)
    return OSError


def ctrl_c_before_it_is_in_place(monkeypatch):
    monkeypatch.setattr(Path, "replace", interrupted)
    return KeyboardInterrupt


both_failures = pytest.mark.parametrize("fails", [the_disk_fills, ctrl_c_before_it_is_in_place])


@both_failures
def test_a_write_that_fails_leaves_the_earlier_content_and_nothing_else(page, monkeypatch, fails):
    with pytest.raises(fails(monkeypatch)):
        write_atomically(page, "now, and much longer than it was")
    assert page.read_text() == "earlier"
    assert list(page.parent.iterdir()) == [page]


@both_failures
def test_a_first_write_that_fails_leaves_no_file(tmp_path, monkeypatch, fails):
    with pytest.raises(fails(monkeypatch)):
        write_atomically(tmp_path / "page.html", "now")
    assert list(tmp_path.iterdir()) == []
