"""The faults that the build finds before it writes a page."""

import nbformat
import nbformat.v4 as nbf
import pytest

import render
from captions import join_captions, parse_table
from checks import measured_numbers, page_problems, text_problems

PRINTED = """seed 0
part            value
-----  --------------
image           1,200
       [95.1 to 96.0]
"""


def notebook(*cells):
    return nbf.new_notebook(cells=list(cells))


def caption(number, of="figure", name=None):
    return nbf.new_output(
        "display_data",
        {"text/markdown": f"**{of.capitalize()} {number}.** It grows."},
        metadata={"caption": number, "of": of, "name": name},
    )


def picture():
    return nbf.new_output("display_data", {"image/png": "", "text/plain": ""})


def stream(text):
    return nbf.new_output("stream", name="stdout", text=text)


def cell(*outputs):
    return nbf.new_code_cell("plot()", outputs=list(outputs))


# Captions


def test_a_printed_table_is_read_back_cell_by_cell():
    before, headers, rows = parse_table(PRINTED)
    assert before == "seed 0"
    assert headers == ["part", "value"]
    assert rows == [["image", "1,200"], ["", "[95.1 to 96.0]"]]


def test_of_two_printed_tables_the_caption_is_that_of_the_last():
    before, headers, _ = parse_table("a  b\n-  -\n1  2\n" + PRINTED)
    assert before.startswith("a  b")
    assert headers == ["part", "value"]


def test_a_table_takes_its_caption_and_leaves_what_is_printed_above():
    lesson = notebook(cell(stream(PRINTED), caption(1, "table", "parts")))
    names, problems = join_captions(lesson)
    above, table = lesson.cells[0].outputs
    assert (names, problems) == ({"parts": "Table 1"}, [])
    assert above.text == "seed 0"
    assert table.metadata.id == "parts"
    assert table.metadata.rows[0] == ["image", "1,200"]


FAULTY = {
    "a figure without caption": (
        [picture()],
        "a figure of cell 'plot()' has no caption: use _style.show",
    ),
    "a caption of nothing": ([caption(1)], "the caption of Figure 1 has no figure above it"),
    "a caption of something else": (
        [picture(), caption(1, "table")],
        "the caption of Table 1 has no table above it",
    ),
    "a caption under other words": (
        [stream("no table"), caption(1, "table")],
        "the caption of Table 1 has no table above it",
    ),
    "two figures of one name": (
        [picture(), caption(1, name="twin"), picture(), caption(2, name="twin")],
        "Figure 2 and Figure 1 are both named twin",
    ),
}


@pytest.mark.parametrize(("outputs", "problem"), FAULTY.values(), ids=FAULTY)
def test_a_fault_in_captions_is_told(outputs, problem):
    assert problem in join_captions(notebook(cell(*outputs)))[1]


# Text and outputs


@pytest.mark.parametrize("text", ["about 84 % of them", "it reads 84.2% now", "falls to 0.35"])
def test_a_measured_number_typed_into_text_is_found(text):
    (problem,) = text_problems(notebook(nbf.new_markdown_cell(f"Look: {text}.")))
    assert problem.startswith("cell 1 of 1 (Look: ")
    assert "typed by hand" in problem


@pytest.mark.parametrize(
    "text", ["an interval of 95 %", "[0.35](https://example.org/0.35)", "1e-3"]
)
def test_what_is_cited_or_no_measurement_may_be_typed(text):
    assert measured_numbers(text) == set()


def test_an_empty_cell_is_told_with_its_place():
    assert text_problems(notebook(nbf.new_markdown_cell("Text"), nbf.new_code_cell(""))) == [
        "cell 2 of 2 () is empty"
    ]


def test_an_output_that_is_too_long_is_told_with_its_size():
    (problem,) = text_problems(notebook(cell(stream("x" * 200_001))))
    assert problem == "cell 1 of 1 (plot()) prints 200,001 bytes; 200,000 is the most"


def test_a_large_picture_is_no_fault():
    large = nbf.new_output("display_data", {"image/png": "x" * 300_000})
    assert text_problems(notebook(cell(large))) == []


def test_a_picture_that_style_has_not_drawn_is_told_and_breaks_nothing(build):
    with pytest.raises(ValueError, match=r"a figure of cell 'plot\(\)' has no caption"):
        build(cell(picture()))


# Pages

BROKEN = {
    "an id twice": ('<p id="a"></p><p id="a"></p>', "a.html: 2 elements have the id a"),
    "a picture without alt text": ('<img src="x.png">', "a.html: a picture has no alt text: x.png"),
    "a link to a page that is not there": (
        '<a href="c.html">c</a>',
        "a.html: the link to c.html leads nowhere",
    ),
    "a link to a part that is not there": (
        '<a href="b.html#c">c</a>',
        "a.html: the link to b.html#c leads nowhere",
    ),
    "a link within the page to nothing": (
        '<a href="#c">c</a>',
        "a.html: the link to #c leads nowhere",
    ),
}


@pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_fault_of_a_page_is_told(text, problem):
    assert page_problems({"a.html": text, "b.html": ""}) == [problem]


@pytest.mark.parametrize(
    "target", ["b.html", "b.html#here", "#there", "https://example.org", "x/y.ipynb", "gone.html"]
)
def test_a_link_that_leads_somewhere_is_no_fault(target):
    files = {
        "a.html": f'<a id="there" href="{target}">x</a>',
        "b.html": '<p id="here">',
        "x/y.ipynb": "",
    }
    assert page_problems(files, absent={"gone.html"}) == []


# The build as a whole


def test_all_faults_are_named_at_once_and_nothing_is_written(build, tmp_path):
    with pytest.raises(ValueError, match="The pages have faults") as raised:
        build(nbf.new_markdown_cell("It reads 84.2 % ([Figure 1](#gone))"), nbf.new_code_cell(""))
    for part in ("84.2 %", "#gone", "cell 3 of 5 () is empty"):
        assert part in str(raised.value)
    assert not (tmp_path / "site").exists()


def test_files_of_an_earlier_site_are_removed(build, tmp_path):
    stale = tmp_path / "site" / "fragments" / "00_gone.html"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    assert (build() / "01_a.html").exists()
    assert not stale.exists()


def test_a_notebook_of_format_4_4_renders_as_one_of_4_5(build, tmp_path):
    page = (build(nbf.new_markdown_cell("## A part")) / "01_a.html").read_text()
    old = nbformat.read(tmp_path / "01_a.ipynb", 4)
    old.nbformat_minor = 4
    for each in old.cells:
        del each["id"]
    (tmp_path / "01_a.ipynb").write_text(nbformat.writes(old))
    render.render_site([tmp_path / "01_a.ipynb"])
    assert (tmp_path / "site" / "01_a.html").read_text() == page


def test_what_is_no_notebook_is_refused_by_name(tmp_path):
    (tmp_path / "01_a.ipynb").write_text("no JSON")
    with pytest.raises(ValueError, match=r"01_a\.ipynb cannot be read as a notebook"):
        render.render_site([tmp_path / "01_a.ipynb"])
