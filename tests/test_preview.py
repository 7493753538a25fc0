"""`make preview`, as an author uses it."""

import os
import re
import signal
import socket
import time
import urllib.request
from urllib.error import URLError

PATIENCE = 120  # seconds, on a busy machine


def retitle(previewed, title):
    text = previewed.read_text("utf-8")
    previewed.write_text(re.sub(r'"# [^"]*?(\\n)?"', f'"# {title}\\\\n"', text, count=1), "utf-8")


def comes(address, text):
    """Whether the text is on the page before patience ends."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if text in urllib.request.urlopen(address).read().decode():
                return True
        except URLError:
            pass
        time.sleep(0.2)
    return False


def test_a_page_follows_its_lesson_also_after_a_fault(preview, previewed, port):
    address = f"http://127.0.0.1:{port}/{previewed.stem}.html"
    assert comes(address, "<h1")
    good = previewed.read_text("utf-8")
    previewed.write_text("{ half a notebook", "utf-8")
    time.sleep(3)  # it looks every second
    assert comes(address, "<h1")
    previewed.write_text(good, "utf-8")
    retitle(previewed, "Another title")
    assert comes(address, "Another title")
    os.killpg(preview.pid, signal.SIGINT)
    said = "".join(preview.communicate(timeout=PATIENCE))
    assert f"{previewed.name} cannot be read as a notebook" in said


def test_a_port_that_is_taken_is_an_error_with_a_remedy(preview, port):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        said = "".join(preview.communicate(timeout=PATIENCE))
    assert preview.returncode != 0
    assert f"cannot serve on port {port}" in said
    assert "make preview PORT=" in said
