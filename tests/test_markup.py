"""Markdown of a lesson as HTML."""

import pytest
from bs4 import BeautifulSoup

from glossary import Linker, read_terms, without_forms
from markup import Markup, slug

GLOSSARY = """# Glossary

## Causal mask
Also: causal masks, masked self-attention

Hides what comes later.

## Mask

Hides something.
"""


@pytest.fixture
def markup():
    return Markup({"where-it-looks": "Figure 2"})


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("What END buys", "what-end-buys"),
        ("Does <em>it</em> stop?", "does-it-stop"),
        ("A & B", "a-b"),
    ],
)
def test_a_heading_has_an_address_one_can_read(heading, expected):
    assert slug(heading) == expected


def test_headings_of_the_same_text_have_addresses_of_their_own(markup):
    markup.html("## Twice\n\n## Twice\n\n## Where it looks")
    assert [id for _, id, _ in markup.contents] == ["twice", "twice-2", "where-it-looks-2"]


def test_links_between_lessons_lead_to_pages(markup):
    html = markup.html("[Next](02_b.ipynb), [a part](02_b.ipynb#end)")
    assert 'href="02_b.html"' in html
    assert 'href="02_b.html#end"' in html


def test_a_reference_leads_to_its_figure(markup):
    assert '<a class="reference" href="#where-it-looks">Figure 2</a>' in markup.html(
        "[Figure 2](#where-it-looks)"
    )
    assert markup.problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[Figure 3](#where-it-looks)", "[Figure 3](#where-it-looks) refers to Figure 2"),
        ("[Figure 1](#gone)", "[Figure 1](#gone) refers to nothing"),
        ("![](plot.png)", "the picture plot.png has no alt text"),
        (r"$\attention$", r"$\attention$ is not understood"),
        (
            "\\begin{align}x\\end{align}",
            "the environment align is not understood",
        ),
    ],
)
def test_a_fault_in_the_text_is_told(markup, text, problem):
    markup.html(text)
    assert any(found.startswith(problem) for found in markup.problems)


def test_an_attached_picture_is_a_part_of_the_page(markup):
    html = markup.html("![a dot](attachment:dot.png)", {"dot.png": {"image/png": "QUJD"}})
    assert 'src="data:image/png;base64,QUJD"' in html


# The glossary


@pytest.fixture
def linked():
    return Linker(read_terms(GLOSSARY))


def test_the_first_use_of_a_term_becomes_a_link(linked):
    html = linked("<p>A causal mask, and the causal mask again.</p>")
    assert html.count("<a ") == 1
    assert html.startswith(
        '<p>A <a class="term" href="glossary.html#causal-mask">causal mask</a>, and'
    )


def test_a_term_is_found_in_its_other_forms_whatever_their_case(linked):
    assert 'href="glossary.html#causal-mask">Masked self-attention</a>' in linked(
        "<p>Masked self-attention</p>"
    )


def test_the_longer_of_two_terms_is_meant(linked):
    assert "#mask" not in linked("<p>A causal mask.</p>")


@pytest.mark.parametrize(
    "html", ["<h2>Mask</h2>", "<code>mask</code>", '<a href="x">mask</a>', "<p>unmasked</p>"]
)
def test_headings_code_links_and_parts_of_words_are_left_alone(linked, html):
    assert BeautifulSoup(linked(html), "html.parser").find("a", class_="term") is None


def test_a_term_defined_twice_is_refused():
    with pytest.raises(ValueError, match="'mask' twice"):
        read_terms(GLOSSARY + "\n## Padding\nAlso: mask\n\nFills up.\n")


def test_the_glossary_is_shown_without_the_list_of_forms():
    shown = without_forms(GLOSSARY)
    assert "Also:" not in shown
    assert "Hides what comes later." in shown
