"""Which browser is found, and what is said where there is none."""

import pytest

import chromium


@pytest.fixture(autouse=True)
def _no_browser(monkeypatch, tmp_path):
    """A machine without browser, and without what could install one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROME_PATH", raising=False)
    monkeypatch.setattr(chromium, "MAC", tmp_path / "none")


def put(folder, name):
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", chromium.NAMES)
def test_a_browser_on_path_is_found(tmp_path, name):
    assert chromium.find_chromium() is None
    browser = put(tmp_path, name)
    assert chromium.find_chromium() == browser


def test_the_one_that_chrome_path_names_comes_first(tmp_path, monkeypatch):
    put(tmp_path, "chromium")
    monkeypatch.setenv("CHROME_PATH", "/opt/my chrome")
    assert chromium.find_chromium() == "/opt/my chrome"


def test_without_apt_the_remedy_is_named():
    with pytest.raises(SystemExit, match=r"install one.*or set CHROME_PATH"):
        chromium.install()


def test_without_root_and_sudo_the_remedy_is_named(tmp_path, monkeypatch):
    put(tmp_path, "apt-get")
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="CHROME_PATH"):
        chromium.install()
