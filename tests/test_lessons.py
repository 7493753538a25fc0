"""What every lesson keeps to, whatever it teaches."""

import re

import pytest

import lessons

SECTIONS = [
    "In one screen",
    "Questions people ask",
    "Check yourself",
    "Exercises",
    "Further reading",
]
# Not measured here: MNIST's licence, the level of our intervals, what the articles say.
CITED = {"3.0", "0.02", "95 %", "87.3 %", "0.96", "0.68"}
MEASURED = re.compile(r"\d+\.\d+(?: ?%)?|\d+ ?%")
LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)")
LONGEST_CELL = 36


@pytest.fixture
def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def measured_numbers(text):
    """Percentages and decimals in static text, those of links and citations left out."""
    return set(MEASURED.findall(LINK.sub("", text))) - CITED


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


def test_figures_are_numbered_in_order(code):
    numbers = [
        output.metadata.caption
        for cell in code
        for output in cell.outputs
        if "caption" in output.get("metadata", {})
    ]
    assert numbers == list(range(1, len(numbers) + 1))


def test_static_text_holds_no_measured_number(prose):
    assert measured_numbers("\n".join(prose)) == set()


@pytest.mark.parametrize("text", ["about 84 % of them", "it reads 84.2% now", "falls to 0.35"])
def test_a_measured_number_typed_into_text_would_be_found(text):
    assert measured_numbers(text)


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
        assert target.startswith("https://") or (lessons.NOTEBOOKS / target).exists(), target


def test_needs_no_network(code):
    assert not any('source="hub"' in cell.source for cell in code)


def test_is_stored_without_traces_of_the_machine_that_executed_it(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
