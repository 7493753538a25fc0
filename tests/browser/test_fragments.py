"""A lesson put into a page of somebody else's."""

import pytest
from bs4 import BeautifulSoup

from in_browser import complaints, fail_with, measure

FOREIGN = """<!DOCTYPE html><html lang="en"><head><title>Foreign</title><style>
body { font: 19px/1.9 serif; color: #400; background: #ffe; margin: 3em; }
h1 { font-size: 41px; color: purple; } p { text-indent: 2em; color: #040; } a { color: red; }
pre { background: #eee; border: 2px dotted; } code { color: navy; }
table { border-collapse: collapse; } td, th { border: 1px solid green; padding: 7px; }
figure { float: right; } details { margin: 9px; } button { border-radius: 9px; }
</style></head><body>BEFORE{fragment}AFTER</body></html>"""
CONTENT = """<div class="foreign NAME"><h1>Title</h1>
<p>Text, <a href="#">link</a>, <code>code</code>.</p><pre class="printed">code</pre>
<table><tr><th>a</th><td>1</td></tr></table><ul><li>item</li></ul>
<figure class="picture"><figcaption>Caption</figcaption></figure>
<section class="text"><p>Text</p></section><button class="copy">Go</button>
<details class="fold"><summary>More</summary><p>Text</p></details></div>"""


def foreign_page(fragment):
    before, after = (CONTENT.replace("NAME", name) for name in ("before", "after"))
    page = FOREIGN.replace("BEFORE", before).replace("AFTER", after)
    return page.replace("{fragment}", fragment)


@pytest.fixture(scope="module")
def fragments(site):
    """{name: HTML}"""
    found = {path.name: path.read_text("utf-8") for path in (site / "fragments").glob("*.html")}
    assert found
    return found


def test_a_fragment_changes_no_style_outside_itself(new_page, fragments):
    page = new_page(theme="dark")  # where it has the most to change

    def styles(fragment):
        page.set_content(foreign_page(fragment))
        return measure(page, "stylesOutside()")

    def changed(fragment):
        pairs = zip(untouched, styles(fragment), strict=True)
        return [
            f"{what}: {name} {before[name]} -> {after[name]}"
            for (what, before), (_, after) in pairs
            for name in before
            if before[name] != after[name]
        ][:5]

    untouched = styles("")
    fail_with({name: changed(fragment) for name, fragment in fragments.items()})


def test_a_fragment_works_without_its_site(new_page, fragments):
    def wrong(fragment):
        page = new_page()
        said, requests = complaints(page), []
        page.on("request", lambda request: requests.append(request.url))
        page.set_content(foreign_page(fragment))
        page.wait_for_load_state()
        return said + [url for url in requests if not url.startswith("data:")]

    fail_with({name: wrong(fragment) for name, fragment in fragments.items()})


def test_links_within_a_fragment_stay_in_it(fragments):
    def astray(fragment):
        soup = BeautifulSoup(fragment, "html.parser")
        ids = {tag["id"] for tag in soup.find_all(id=True)}
        return {a["href"] for a in soup.select("a[href^='#']") if a["href"][1:] not in ids}

    fail_with({name: astray(fragment) for name, fragment in fragments.items()})


def test_a_fragment_links_to_nothing_that_only_its_site_has(fragments):
    def relative(fragment):
        soup = BeautifulSoup(fragment, "html.parser")
        hrefs = [tag.get("href") or tag.get("src") for tag in soup.select("[href], [src]")]
        return [href for href in hrefs if not href.startswith(("#", "https://", "data:"))][:5]

    fail_with({name: relative(fragment) for name, fragment in fragments.items()})


def test_two_lessons_on_one_page_share_no_id(fragments):
    ids = [
        tag["id"]
        for fragment in fragments.values()
        for tag in BeautifulSoup(fragment, "html.parser").find_all(id=True)
    ]
    assert len(ids) == len(set(ids)) > 100
