"""What the policy of a page keeps from running, in a browser: whatever is not ours."""

import re
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from in_browser import complaints

INJECTED = """
<script>window.ran = ["script"]; window.note = (what) => ran.push(what)</script>
<button id="button" onclick="(window.ran ??= []).push('attribute')">Go</button>
<a id="link" href="javascript:void (window.ran ??= []).push('link')">Go</a>
<img src="data:," alt="" onerror="(window.ran ??= []).push('handler')">
<iframe srcdoc="<script>(parent.ran ??= []).push('frame')</script>"></iframe>
"""
WAYS = {"script", "attribute", "link", "handler", "frame"}
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@pytest.fixture(params=["index.html", "glossary.html", "longest"])
def injected(request, site, longest):
    """The text of a page into which somebody has put scripts."""
    name = longest if request.param == "longest" else request.param
    return (site / name).read_text("utf-8").replace("</main>", f"{INJECTED}</main>")


@pytest.fixture
def what_ran(new_page, tmp_path):
    """Open a page from disk, press what was put into it, and say what has run."""

    def what_ran(html):
        (tmp_path / "page.html").write_text(html, "utf-8")
        page = new_page()
        page.goto((tmp_path / "page.html").as_uri())
        for target in ("button", "link"):
            page.evaluate(f"document.getElementById('{target}').click()")
        page.wait_for_timeout(200)
        return set(page.evaluate("window.ran ?? []"))

    return what_ran


def test_nothing_that_was_put_into_a_page_runs(injected, what_ran):
    assert what_ran(injected) == set()


def test_without_its_policy_all_of_it_would_run(injected, what_ran):
    assert what_ran(POLICY.sub("", injected)) == WAYS


def test_a_page_sends_nothing_anywhere(open_page, address):
    page = open_page("index.html")
    sent = "fetch(location.href).then(() => 'sent', () => 'refused')"
    assert page.evaluate(sent) == "refused"
    form = "document.body.append(Object.assign(document.createElement('form'), {id: 'form'}))"
    page.evaluate(f"{form}; document.getElementById('form').submit()")
    page.wait_for_timeout(200)
    assert page.url == f"{address}/index.html"


def wait_for(address):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            return urlopen(address).read()
        except URLError:
            time.sleep(0.2)
    return pytest.fail(f"nothing answers at {address}")


def test_in_a_preview_a_page_loads_itself_again_and_reports_nothing(
    new_page, preview, previewed, port
):
    address = f"http://127.0.0.1:{port}/{previewed.stem}.html"
    wait_for(address)
    page = new_page()
    said = complaints(page)
    with page.expect_websocket():
        page.goto(address)
    page.wait_for_timeout(1500)  # it has said hello by then
    with page.expect_event("load", timeout=60_000):
        previewed.write_text(previewed.read_text("utf-8") + "\n", "utf-8")
    assert said == []
