"""The README repeats what the lessons found, and no more."""

from dataclasses import replace

import pytest

import lessons
import update


@pytest.fixture
def readme():
    return update.README.read_text("utf-8")


@pytest.fixture
def summaries():
    return [lessons.summarise(path) for path in lessons.lesson_paths()]


def test_its_numbers_are_those_of_the_stored_outputs(readme, summaries):
    assert update.with_lessons(readme, summaries) == readme, "run `make update`"


def test_its_picture_is_the_figure_of_the_lesson():
    lesson = lessons.read(lessons.NOTEBOOKS / f"{update.PICTURE_IN}.ipynb")
    assert update.PICTURE.read_bytes() == update.picture(lesson), "run `make update`"


def test_another_result_would_change_it(readme, summaries):
    other = replace(summaries[0], headline="**1.0 %**")
    assert update.with_lessons(readme, [other, *summaries[1:]]) != readme


def test_a_missing_mark_is_an_error_that_names_it(readme, summaries):
    with pytest.raises(ValueError, match="written by make update"):
        update.with_lessons(readme.replace(update.BEGIN, ""), summaries)


def test_every_make_target_it_names_exists(readme):
    makefile = (lessons.ROOT / "Makefile").read_text("utf-8")
    authors = "audit preview sweep train bench spread mutants lesson update export"
    for target in f"run render test lab check browser {authors}".split():
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile


def test_a_lesson_has_the_number_of_its_file(readme, summaries):
    for lesson in summaries:
        assert f"| [{lesson.name[:2]}. {lesson.title}](notebooks/{lesson.name}.ipynb) |" in readme
