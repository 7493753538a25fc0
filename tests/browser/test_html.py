"""The pages as HTML: the checker of the W3C, and every link of the site."""

import shutil
import subprocess
from urllib.parse import unquote, urldefrag

import pytest
from bs4 import BeautifulSoup

import lessons
from in_browser import fail_with

CHECKER = lessons.ROOT / ".venv/node_modules/vnu-jar/build/dist/vnu.jar"


@pytest.fixture
def checker():
    if not shutil.which("java"):
        pytest.skip(
            "no Java on PATH: install it for the HTML checker (Debian: default-jre-headless)"
        )
    if not CHECKER.exists():
        pytest.skip("the HTML checker is not installed: `make test` does it where npm is reached")
    return ["java", "-jar", str(CHECKER), "--errors-only"]


def test_every_page_is_valid_html(checker, site, pages):
    result = subprocess.run([*checker, *pages], cwd=site, capture_output=True, text=True)
    lines = [line.replace(site.as_uri(), "") for line in result.stderr.splitlines()]
    assert result.returncode == 0, "\n".join(lines[:30])


def test_every_link_leads_to_a_page_and_an_element_that_exist(site, pages):
    soups = {name: BeautifulSoup((site / name).read_text("utf-8"), "html.parser") for name in pages}
    ids = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in soups.items()}

    def broken(name, href):
        path, fragment = urldefrag(href)
        path = unquote(path) or name
        known = (site / path).exists()
        return not known or (fragment and unquote(fragment) not in ids.get(path, set()))

    def broken_links(name, soup):
        links = [a["href"] for a in soup.find_all("a", href=True)]
        inside = {href for href in links if not href.startswith(("https://", "http://", "mailto:"))}
        return sorted(href for href in inside if broken(name, href))

    fail_with({name: broken_links(name, soup) for name, soup in soups.items()})
