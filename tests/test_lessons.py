"""What every lesson keeps to, whatever it teaches."""

import ast
import re

import pytest

import lessons
from checks import LINK, measured_numbers
from code_hash import mentioned

SECTIONS = [
    "In one screen",
    "Questions people ask",
    "Check yourself",
    "Exercises",
    "Further reading",
]
LONGEST_CELL = 36
TRAINING = {"train", "trained", "Training", "FreshNumbers", "ScatteredNumbers", "ShortNumbers"}


@pytest.fixture
def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_opens_with_a_title_a_question_and_the_time_it_takes(path, prose):
    summary = lessons.summarise(path)
    assert summary.title
    assert summary.question.endswith("?")
    assert "You will be able to" in prose[0]
    assert "\nTime: " in prose[0]


def test_ends_with_the_same_sections_in_the_same_order(prose):
    headings = re.findall(r"^## (.*)$", "\n".join(prose), re.MULTILINE)
    assert headings[-len(SECTIONS) :] == SECTIONS


def test_begins_on_one_thread_and_ends_with_the_footer(code):
    assert any("torch.set_num_threads(1)" in cell.source for cell in code[:3])
    assert code[-1].source == "_style.footer()"
    assert lessons.tags(code[-1]) == ["volatile"]


def test_cells_are_short_enough_to_read(code):
    too_long = [c.source.splitlines()[0] for c in code if c.source.count("\n") >= LONGEST_CELL]
    assert too_long == []


def captions(code):
    return [o.metadata for cell in code for o in cell.outputs if "caption" in o.get("metadata", {})]


@pytest.mark.parametrize("kind", ["figure", "table"])
def test_figures_and_tables_are_numbered_in_order(code, kind):
    numbers = [each.caption for each in captions(code) if each.of == kind]
    assert numbers == list(range(1, len(numbers) + 1))


def test_one_figure_stands_for_the_lesson(code):
    cards = [o for cell in code for o in cell.outputs if o.get("metadata", {}).get("card")]
    assert len(cards) == 1


def test_static_text_holds_no_measured_number(prose):
    assert measured_numbers("\n".join(prose)) == set()


def test_sentences_with_measured_numbers_are_in_prose_cells(code):
    for cell in code:
        speaks = "_style.prose(" in cell.source or "_style.headline(" in cell.source
        assert speaks == ("prose" in lessons.tags(cell)), cell.source


def test_a_verdict_rests_on_an_assertion_in_its_own_cell(code):
    unfounded = [
        cell.source
        for cell in code
        if "prose" in lessons.tags(cell) and "assert " not in cell.source
    ]
    assert unfounded == []


def test_every_exercise_has_an_executed_solution(notebook, prose):
    exercises = re.findall(r"^(?:# )?\*\*(\d)\. ", "\n".join(prose), re.MULTILINE)
    solutions = [cell for cell in notebook.cells if "solution" in lessons.tags(cell)]
    assert len(exercises) == len(solutions) >= 2
    assert all(cell.outputs for cell in solutions)


def test_every_answer_to_check_yourself_folds_out(prose):
    text = "\n".join(prose)
    questions = text.count("<details><summary>")
    assert questions == text.count("</details>") >= 3


def test_links_between_lessons_lead_somewhere(prose):
    for target in LINK.findall("\n".join(prose)):
        inside = not target.startswith(("https://", "#"))
        assert not inside or (lessons.NOTEBOOKS / target).exists(), target


def test_trains_on_nothing_that_is_made_of_test_digits(code):
    tainted = {"x_test", "y_test"}
    for node in (node for cell in code for node in ast.walk(ast.parse(cell.source))):
        if isinstance(node, ast.Assign) and mentioned(node.value) & tainted:
            tainted |= set().union(*map(mentioned, node.targets))
        if isinstance(node, ast.Call) and mentioned(node.func) & TRAINING:
            assert not mentioned(node) & tainted, ast.unparse(node)


def test_needs_no_network(code):
    assert not any('source="hub"' in cell.source for cell in code)


def test_is_stored_without_traces_of_the_machine_that_executed_it(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
