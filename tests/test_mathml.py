"""Mathematics in pages: what is not understood is an error."""

from xml.etree import ElementTree

import pytest

from mathml import to_mathml

UNDERSTOOD = {
    "a fraction": (r"\frac{QK^\top}{\sqrt{d}}", "QK⊤d"),
    "a word": (r"\text{softmax}(x)", "softmax(x)"),
    "a product over elements": (r"z_t \odot h_{t-1}", "zt⊙ht−1"),
    "limits": (r"\sum_{i=1}^{n} p_i", "∑i=1npi"),
}
REFUSED = {
    "an unknown command": (r"\attention x", r"\\attention"),
    "an alignment": (r"\begin{aligned} a &= b \end{aligned}", "not understood"),
    "braces that do not match": (r"\frac{1}{2", "braces"),
    "an argument that is missing": (r"\frac{1}", "argument is missing"),
}


@pytest.mark.parametrize(("latex", "text"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_latex_becomes_mathml_that_shows_the_same(latex, text):
    root = ElementTree.fromstring(to_mathml(latex, "inline"))
    assert "".join(root.itertext()) == text


@pytest.mark.parametrize(("latex", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_refused(latex, message):
    with pytest.raises(ValueError, match=message):
        to_mathml(latex, "block")
