"""LaTeX to MathML, strictly: what the converter has not understood is an error, not a blank."""

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert

# How many children an element has by the specification (MathML Core, 2025).
CHILDREN = {
    "mfrac": 2,
    "mroot": 2,
    "msub": 2,
    "msup": 2,
    "msubsup": 3,
    "munder": 2,
    "mover": 2,
    "munderover": 3,
}
OTHER_TAG = re.compile(r"<(?!/?m[a-z]+[ />])[^>]*")


def to_mathml(latex, display):
    """A <math> element. display is "inline" or "block".

    Raises ValueError for a command that the converter does not know, an alignment, which it takes
    for a letter, braces that do not match, an argument that is missing, and HTML.
    """
    if latex.count("{") != latex.count("}"):
        raise ValueError(f"the braces of ${latex}$ do not match")
    try:
        html = convert(latex, display=display)
        root = ElementTree.fromstring(html.replace(">&<", ">&amp;<"))
    except Exception as error:  # its own errors have no common class
        raise ValueError(f"${latex}$ is not understood: {error!r}") from error
    if other := OTHER_TAG.search(html):
        raise ValueError(f"${latex}$ is not understood: {other[0]}")
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        text = element.text or ""
        if "\\" in text or text == "&":
            raise ValueError(f"${latex}$ is not understood: {text}")
        if len(element) != CHILDREN.get(name, len(element)):
            raise ValueError(f"${latex}$ is not understood: an argument is missing in {name}")
    return html
