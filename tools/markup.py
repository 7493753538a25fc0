"""Markdown to HTML for one page: anchored headings, references, mathematics as MathML."""

import re

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from mathml import to_mathml


def slug(text):
    """A heading as it stands in an address: `What <em>END</em> buys` -> what-end-buys."""
    words = re.sub(r"<[^>]*>|&\w+;", "", text).lower()
    return re.sub(r"[^\w]+", "-", words).strip("-")


class Markup(IPythonRenderer):
    """Turns the Markdown of a page into HTML and remembers what it has met.

    names: {name: "Figure 2" or "Table 1"} of what text may refer to. Afterwards `contents` holds
    (level, id, HTML) of the headings, and `problems` a sentence for each fault.
    """

    def __init__(self, names=()):
        super().__init__(escape=False)
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

    def link(self, text, url, title=None):
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
        return super().image(text, url, title)

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
