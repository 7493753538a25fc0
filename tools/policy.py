"""What a browser may run and load on our pages: their Content-Security-Policy."""

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser


def digest(text):
    """The name that a policy has for an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def policy(scripts, styles, loads_weights):
    """A policy that lets these scripts and styles be, texts, and pictures that are in the page.

    loads_weights: whether files beside the page, which hold weights of explorers, may run too.
    """
    files = ["'self'"] if loads_weights else []
    allowed = {
        "default-src": ["'none'"],
        "img-src": ["data:"],
        "style-src": map(digest, styles),
        "script-src": [*map(digest, scripts), *files],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(" ".join([what, *sources]) for what, sources in allowed.items())


class Inline(HTMLParser):
    """The policy of a page, and its scripts, styles and attributes, which that may forbid."""

    def __init__(self, html):
        super().__init__()
        self.policy, self.texts, self.attributes = "", [], []
        self.within = False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        self.attributes += [name for name in found if name == "style" or name.startswith("on")]
        self.within = tag in ("script", "style") and found.get("type") != "text/plain"
        if self.within:
            self.texts.append("")

    def handle_data(self, text):
        if self.within:
            self.texts[-1] += text

    def handle_endtag(self, tag):
        self.within = False


def forbidden(html):
    """What a page has that its policy keeps from having an effect, a few words each."""
    page = Inline(html)
    unknown = [text for text in page.texts if digest(text) not in page.policy]
    return [*(f"the script or style {text[:40]!r}" for text in unknown), *page.attributes]
