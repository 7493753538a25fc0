"""Markdown to HTML for one page: anchored headings, references, mathematics as MathML."""

import re
from html import escape, unescape
from urllib.parse import unquote

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from mathml import to_mathml

FOLD = re.compile(r"</?(?:details|summary)>")  # the HTML that text may hold
PICTURES = ("image/png", "image/jpeg", "image/gif")  # which hold no scripts
TAG = re.compile(r"<[a-zA-Z/!?][^>]*>?")


def slug(text):
    """A heading as it stands in an address: `What <em>END</em> buys` -> what-end-buys."""
    words = re.sub(r"<[^>]*>|&\w+;", "", text).lower()
    return re.sub(r"[^\w]+", "-", words).strip("-")


class Markup(IPythonRenderer):
    """Turns the Markdown of a page into HTML and remembers what it has met.

    HTML in it is shown as text, but for the tags of a fold.

    names: {name: "Figure 2" or "Table 1"} of what text may refer to. Afterwards `contents` holds
    (level, id, HTML) of the headings, and `problems` a sentence for each fault.
    """

    def __init__(self, names=()):
        super().__init__(escape=False, allow_harmful_protocols=False)  # see `inline_html`
        self.names = dict(names)
        self.ids = set(self.names)
        self.contents = []
        self.problems = []

    def html(self, source, attachments=None):
        self.attachments = attachments or {}
        return MarkdownWithMath(renderer=self).render(source)

    def heading(self, text, level, **_):
        wanted = slug(text)
        found, times = wanted, 1
        while found in self.ids:
            times += 1
            found = f"{wanted}-{times}"
        self.ids.add(found)
        self.contents.append((level, found, text))
        anchor = f'<a class="anchor" href="#{found}" aria-label="Link to this section">#</a>'
        return f'<h{level} id="{found}">{text}{anchor if level > 1 else ""}</h{level}>\n'

    def inline_html(self, html):
        for tag in TAG.findall(FOLD.sub("", html)):
            self.problems.append(f"{tag[:60]} is HTML: write Markdown, or in backquotes what it is")
        parts = re.split(f"({FOLD.pattern})", html)
        return "".join(part if FOLD.fullmatch(part) else escape(unescape(part)) for part in parts)

    block_html = inline_html

    def link(self, text, url, title=None):
        if self.sanitize_url(url) != url:
            self.problems.append(f"the link [{text}]({url[:60]}) could run a script")
        if url.startswith("#"):
            return self.reference(text, url[1:])
        return super().link(text, re.sub(r"\.ipynb(?=#|$)", ".html", url), title)

    def reference(self, text, name):
        if self.names.get(name) != text:
            found = self.names.get(name, "nothing")
            self.problems.append(f"[{text}](#{name}) refers to {found}")
        return f'<a class="reference" href="#{name}">{text}</a>'

    def image(self, text, url, title=None):
        if not text:
            self.problems.append(f"the picture {url[:40]} has no alt text")
        attached = self.attachments.get(unquote(url).removeprefix("attachment:"), {})
        kind = next((kind for kind in PICTURES if kind in attached), None)
        if not kind:
            self.problems.append(f"the picture {url[:40]} is not in its cell: attach it there")
            return ""
        return super().image(text, f"data:{kind};base64,{attached[kind]}", title)

    def block_mermaidjs(self, code):
        return self.block_code(code)

    def block_code(self, code, info=None):
        # What scrolls sideways must be reached by the keyboard.
        return super().block_code(code, info).replace("<pre>", '<pre tabindex="0">')

    def inline_math(self, body):
        return self.mathematics(body, "inline")

    def block_math(self, body):
        # Within a paragraph, where a <div> must not stand.
        return f'<span class="formula" tabindex="0">{self.mathematics(body, "block")}</span>'

    def mathematics(self, latex, display):
        try:
            return to_mathml(latex.strip(), display)
        except ValueError as error:
            self.problems.append(str(error))
            return ""

    def latex_environment(self, name, body):
        self.problems.append(
            f"the environment {name} is not understood: write {body} between $$ and $$"
        )
        return ""
