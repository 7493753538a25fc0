"""`make render`: turns executed lessons into _site/, a web site of self-contained pages.

    make render
    make render SITE_URL=https://example.org/reading-in-order

Needs neither torch nor a browser. Everything is rendered and checked before anything is written.
"""

import os
import sys
from urllib.parse import quote

import jinja2

from checks import page_names, page_problems
from explorers import STYLE
from files import write_atomically
from glossary import read_terms, without_forms
from lessons import ROOT, lesson_paths
from markup import Markup
from page import BLOG, Lesson
from policy import policy

SITE = ROOT / "_site"

TEXTS = (  # pages written by hand, in Markdown: name, title, description
    ("glossary", "Glossary", "The terms of the series, each in a sentence or two."),
    ("cheat_sheet", "Cheat sheet", "The whole series on one sheet: shapes, equations, checks."),
)


def asset(name):
    return (BLOG / name).read_text("utf-8")


def address_given():
    """The address of the site, from the variable SITE_URL, without a slash at its end, or ""."""
    address = os.environ.get("SITE_URL", "")
    if address and not address.startswith(("https://", "http://")):
        raise ValueError(f"SITE_URL is {address!r}: give all of it, such as https://example.org/x")
    return address.rstrip("/")


class Site:
    """The site of some executed lessons: its files, {path: content}, and a sentence a fault."""

    def __init__(self, paths, address=""):
        terms = read_terms(asset("glossary.md"))
        self.lessons = [Lesson(path, terms) for path in paths]
        self.problems = [
            f"{each.name}: {fault}" for each in self.lessons for fault in each.problems
        ]
        self.templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(BLOG), autoescape=True, undefined=jinja2.StrictUndefined
        )
        self.templates.globals.update(
            address=address,
            lessons=self.lessons,
            shell_style=asset("shell.css"),
            content_style=asset("content.css"),
            theme_script=asset("theme.js"),
            script=asset("page.js"),
            favicon=quote(asset("favicon.svg")),
            policy_of=self.policy_of,
        )
        self.files = {}
        live = next((each for each in self.lessons if "live-reader" in each.explorers), None)
        self.add("index.html", "index.html.j2", live=live)
        for text in TEXTS:
            self.add_text(*text)
        before, after = [None, *self.lessons], [*self.lessons[1:], None]
        for previous, lesson, following in zip(before, self.lessons, after, strict=False):
            self.add_lesson(lesson, previous, following)
        self.add("feed.xml", "feed.xml.j2")
        if address:
            self.add("sitemap.xml", "sitemap.xml.j2", pages=page_names(self.files))
        absent = {f"{path.stem}.html" for path in lesson_paths()} - self.files.keys()
        self.problems += page_problems(self.files, absent)

    def policy_of(self, style, explorers):
        """The policy of a page with this style and the `Scripts` of these explorers."""
        scripts = [asset("theme.js"), asset("page.js"), *(each.code for each in explorers)]
        return policy(scripts, [style, STYLE] if explorers else [style], bool(explorers))

    def add(self, path, template, **variables):
        self.files[path] = self.templates.get_template(template).render(variables)

    def add_text(self, name, title, description):
        markup = Markup()
        about = {"name": name, "title": title, "description": description}
        body = markup.html(without_forms(asset(f"{name}.md")))
        self.add(f"{name}.html", "text.html.j2", **about, body=body)
        self.problems += [f"blog/{name}.md: {fault}" for fault in markup.problems]

    def add_lesson(self, lesson, previous, following):
        neighbours = {"previous": previous, "following": following}
        self.add(f"{lesson.name}.html", "lesson.html.j2", lesson=lesson, **neighbours)
        self.add(f"fragments/{lesson.name}.html", "fragment.html.j2", lesson=lesson)
        self.files[f"notebooks/{lesson.name}.ipynb"] = lesson.notebook
        self.files |= {scripts.file: scripts.filling for scripts in lesson.explorers.values()}
        if lesson.card:
            self.files[f"cards/{lesson.name}.png"] = lesson.card


def render_site(paths, address=""):
    """Write the site of these executed lessons; files of an earlier site are removed.

    Raises ValueError that names all faults of the pages, and writes nothing then.
    """
    site = Site(paths, address)
    if site.problems:
        raise ValueError("\n".join(["The pages have faults:", *site.problems]))
    for name, content in site.files.items():
        write_atomically(SITE / name, content)
    wanted = {SITE / name for name in site.files}
    for stale in {path for path in SITE.rglob("*") if path.is_file()} - wanted:
        stale.unlink()
    print(f"rendered {len(paths)} lessons: {SITE / 'index.html'}")


if __name__ == "__main__":
    try:
        render_site(lesson_paths(), address_given())
    except (ValueError, OSError) as error:
        sys.exit(str(error))
