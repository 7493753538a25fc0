"""What several test files use."""

import shutil

import pytest

import lessons


@pytest.fixture
def project(tmp_path):
    """The tools and templates of this project, without its lessons and data."""
    root = tmp_path / "a folder"
    for name in ("tools", "blog"):
        shutil.copytree(lessons.ROOT / name, root / name)
    shutil.copy(lessons.ROOT / "constraints.txt", root)
    (root / "notebooks").mkdir()
    return root
