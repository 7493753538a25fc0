"""What several test files use."""

import shutil

import pytest
import torch

import lessons


@pytest.fixture(params=lessons.lesson_paths(), ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return lessons.read(path)


@pytest.fixture
def code(notebook):
    return lessons.code_cells(notebook)


@pytest.fixture
def project(tmp_path):
    """The tools and templates of this project, without its lessons and data."""
    root = tmp_path / "a folder"
    for name in ("tools", "blog"):
        shutil.copytree(lessons.ROOT / name, root / name)
    shutil.copy(lessons.ROOT / "constraints.txt", root)
    (root / "notebooks").mkdir()
    return root


@pytest.fixture(scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
