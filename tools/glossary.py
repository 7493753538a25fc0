"""The glossary, blog/glossary.md, and the links of lessons to it."""

import re

from bs4 import BeautifulSoup

from markup import slug

ENTRY = re.compile(r"^## (.+)\n+(?:Also: (.+)\n)?", re.MULTILINE)
UNTOUCHED = ["a", "code", "pre", "math", "summary", "h1", "h2", "h3", "h4"]


def read_terms(glossary):
    """The Markdown of the glossary -> {form in lower case: id of its entry}."""
    terms = {}
    for term, others in ENTRY.findall(glossary):
        for form in (term, *filter(None, others.split(", "))):
            if form.lower() in terms:
                raise ValueError(f"the glossary defines {form!r} twice")
            terms[form.lower()] = slug(term)
    return terms


def without_forms(glossary):
    """The glossary as it is shown: the other forms of a term are for links alone."""
    return re.sub(r"^Also: .+\n", "", glossary, flags=re.MULTILINE)


class Linker:
    """Links the first use of each term on a page to its definition."""

    def __init__(self, terms):
        self.terms = terms
        self.linked = set()
        forms = "|".join(re.escape(form) for form in sorted(terms, key=len, reverse=True))
        self.pattern = (
            re.compile(rf"(?<![\w-])({forms})(?![\w-])", re.IGNORECASE) if terms else None
        )

    def __call__(self, html):
        if not self.pattern or not self.pattern.search(html):
            return html
        soup = BeautifulSoup(html, "html.parser")
        for text in soup.find_all(string=self.pattern):
            if not text.find_parent(UNTOUCHED):
                text.replace_with(
                    BeautifulSoup(self.pattern.sub(self.link, text.output_ready()), "html.parser")
                )
        return str(soup)

    def link(self, match):
        target = self.terms[match[0].lower()]
        if target in self.linked:
            return match[0]
        self.linked.add(target)
        return f'<a class="term" href="glossary.html#{target}">{match[0]}</a>'
