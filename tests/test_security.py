"""What a notebook of a stranger, a file or a request may not do to us."""

import ast
import http.client
import os
import re
import socket
import time
from contextlib import closing
from importlib.metadata import distribution

import pytest
import torch
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import checkpoints
import lessons
import policy
from hub_server import HubServer
from serve import serving

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>"
BAD_SVG = f'<svg xmlns="http://www.w3.org/2000/svg"><script>{ATTACK}</script></svg>'

# Notebooks


def shown(**data):
    kinds = {kind.replace("_", "/"): value for kind, value in data.items()}
    return new_output("display_data", kinds)


def printing(*outputs):
    return new_code_cell("plot()", outputs=list(outputs))


def table(headers, cells):
    """What `_style.table` prints and displays."""
    rows = [headers, ["-" * 60, "-" * 60], cells]
    text = "\n".join("  ".join(cell.ljust(60) for cell in row) for row in rows)
    about = {"caption": 1, "of": "table", "name": 'x"><script>alert(1)</script>'}
    caption = new_output("display_data", {"text/markdown": "**Table 1.**"}, metadata=about)
    return printing(new_output("stream", name="stdout", text=text), caption)


def figure(alt):
    about = {"alt": alt, "width": '1"><script>alert(1)</script>', "height": 1}
    data = {"image/png": '"><script>alert(1)</script>'}
    picture = new_output("display_data", data, metadata={"image/png": about})
    caption = {"caption": 1, "of": "figure", "name": "dot"}
    captioned = new_output("display_data", {"text/markdown": "**Figure 1.**"}, metadata=caption)
    return printing(picture, captioned)


TEXTS = {
    "code": new_code_cell(f"x = '{ATTACK}'"),
    "what is printed": printing(new_output("stream", name="stdout", text=ATTACK)),
    "a result": printing(shown(text_plain=ATTACK)),
    "an error": printing(
        new_output("error", ename="Error", evalue=ATTACK, traceback=[ATTACK, ATTACK])
    ),
    "cells of a table": table([ATTACK, "b"], [ATTACK, "2"]),
    "code in text": new_markdown_cell(f"`{ATTACK}`"),
    "code in a block": new_markdown_cell(f"```html\n{ATTACK}\n```"),
    "a block of mermaid": new_markdown_cell(f"```mermaid\n{ATTACK}\n```"),
}


def page_of(site):
    return (site / "01_a.html").read_text("utf-8")


@pytest.mark.parametrize("cell", TEXTS.values(), ids=TEXTS)
def test_what_a_stranger_wrote_is_shown_as_text(build, cell):
    page = page_of(build(cell))
    assert policy.forbidden(page) == []
    assert ATTACK in BeautifulSoup(page, "html.parser").find("main").text


def test_what_a_stranger_says_of_a_figure_stays_within_its_attributes(build):
    page = page_of(build(figure(f'"{ATTACK}')))
    assert policy.forbidden(page) == []
    picture = BeautifulSoup(page, "html.parser").find("main").img
    assert picture["alt"] == f'"{ATTACK}'


def test_a_title_is_text_wherever_it_stands(build):
    site = build(title=f"A `{ATTACK}` lesson")
    for name in ("01_a.html", "index.html"):
        assert policy.forbidden((site / name).read_text("utf-8")) == []
    assert "<script" not in (site / "feed.xml").read_text("utf-8")


REFUSED = {
    "HTML in text": (new_markdown_cell(ATTACK), "<script> is HTML: write Markdown"),
    "an attribute of a fold": (
        new_markdown_cell("<details ontoggle=alert(1) open><summary>x</summary></details>"),
        "<details ontoggle=alert(1) open> is HTML: write Markdown",
    ),
    "HTML in a measured sentence": (
        printing(shown(text_markdown=ATTACK)),
        "<script> is HTML: write Markdown",
    ),
    "HTML in a formula": (
        new_markdown_cell(r"$\text{<s>x</s>}$"),
        r"$\text{<s>x</s>}$ is not understood: <s",
    ),
    "a link that runs": (
        new_markdown_cell("[x](javascript:alert(1))"),
        "the link [x](javascript:alert(1)) could run a script",
    ),
    "a link that runs, in disguise": (
        new_markdown_cell("[x](JaVaScRiPt&#58;alert(1))"),
        "could run a script",
    ),
    "a picture from elsewhere": (
        new_markdown_cell("![x](https://example.org/x.png)"),
        "the picture https://example.org/x.png is not in its cell: attach it",
    ),
    "an attached SVG": (
        new_markdown_cell(
            "![x](attachment:x.svg)", attachments={"x.svg": {"image/svg+xml": "PHN2Zz4="}}
        ),
        "the picture attachment:x.svg is not in its cell: attach it",
    ),
    "an output of HTML": (
        printing(shown(text_html=ATTACK, text_plain="a table")),
        "cell 2 of 4 (plot()) displays text/html, which pages do not show: use print, _style.show",
    ),
    "an output of JavaScript": (
        printing(shown(application_javascript="alert(1)")),
        "displays application/javascript",
    ),
    "an SVG with a script": (
        printing(new_output("display_data", {"image/svg+xml": BAD_SVG})),
        "displays an SVG that could run a script (<script)",
    ),
    "an explorer that is none of ours": (
        printing(
            new_output("display_data", {"text/html": ATTACK}, metadata={"explorer": "my-reader"})
        ),
        "displays text/html",
    ),
    "an explorer without weights": (
        printing(
            new_output("display_data", {"text/html": ATTACK}, metadata={"explorer": "live-reader"})
        ),
        "live-reader has no weights: execute the lesson again",
    ),
}


@pytest.mark.parametrize(("cell", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_could_run_in_a_page_is_refused_with_its_remedy(build, cell, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        build(cell)


def test_an_explorer_runs_our_code_whatever_the_notebook_holds(build):
    element = "<live-reader></live-reader>"
    weights = '<script type="text/plain" data-weights="live-reader">QUJD</script>'
    html = f"{element}\n{weights}\n<script>alert(1)</script>{ATTACK}"
    output = new_output("display_data", {"text/html": html}, metadata={"explorer": "live-reader"})
    page = page_of(build(printing(output, new_output("stream", text="1"))))
    assert "alert(1)" not in page
    assert "customElements.define" in page


def test_an_attribute_of_an_explorer_that_could_run_is_refused(build):
    html = '<live-reader onclick="alert(1)"></live-reader>\n'
    html += '<script type="text/plain" data-weights="live-reader">QUJD</script>'
    output = new_output("display_data", {"text/html": html}, metadata={"explorer": "live-reader"})
    with pytest.raises(ValueError, match=r"01_a\.html: its policy forbids onclick"):
        build(printing(output, new_output("stream", text="1")))


# Pages

POLICED = f'<meta http-equiv="Content-Security-Policy" content="{policy.policy(["f()"], [], 0)}">'


@pytest.mark.parametrize(
    ("html", "what"),
    [
        ("<script>g()</script>", "the script or style 'g()'"),
        ('<script type="module">g()</script>', "the script or style 'g()'"),
        ("<script src=x.js></script>", "the script or style ''"),
        ("<style>p { color: red }</style>", "the script or style 'p { color: red }'"),
        ('<p style="color: red">', "style"),
        ('<p onclick="f()">', "onclick"),
    ],
)
def test_a_page_with_what_its_policy_forbids_is_not_written(html, what):
    assert policy.forbidden(POLICED + html) == [what]


def test_a_page_may_hold_what_its_policy_names():
    assert (
        policy.forbidden(f'{POLICED}<script>f()</script><script type="text/plain">x</script>') == []
    )


# Files


class Evil:
    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickled_checkpoint_is_refused_and_nothing_in_it_is_run(tmp_path):
    evil = Evil()
    evil.folder = str(tmp_path / "made")
    torch.save({"recipe": evil}, tmp_path / "tiny.pt")
    with pytest.raises(ValueError, match=r"tiny\.pt cannot be read: it holds more than tensors"):
        checkpoints.read(tmp_path / "tiny.pt", None)
    assert not (tmp_path / "made").exists()


def sources():
    """{name: code} of all that the project runs, but for tests."""
    folders = (lessons.ROOT, lessons.NOTEBOOKS, lessons.ROOT / "tools")
    modules = {p.name: p.read_text("utf-8") for folder in folders for p in folder.glob("*.py")}
    cells = {
        f"{path.stem} {number}": cell.source
        for path in lessons.lesson_paths()
        for number, cell in enumerate(lessons.code_cells(lessons.read(path)))
    }
    return modules | cells


def test_whatever_loads_arrays_or_weights_says_that_it_takes_no_pickles():
    refuses = {"np.load": "allow_pickle=False", "torch.load": "weights_only=True"}
    found = []
    for name, source in sources().items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and (called := ast.unparse(node.func)) in refuses:
                assert refuses[called] in map(ast.unparse, node.keywords), name
                found.append(called)
    assert {*found} == refuses.keys()


def test_nothing_unpickles_by_other_means():
    unsafe = re.compile(r"\b(pickle|dill|joblib|marshal|shelve)\b|yaml\.load|read_pickle")
    imports = {
        name: ast.unparse(node)
        for name, source in sources().items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
        and unsafe.search(ast.unparse(node).partition("(")[0])
    }
    assert imports == {}


def needed():
    """{name: version} of all that requirements.txt leads to on this machine."""
    found, wanted = {}, []
    for line in (lessons.ROOT / "requirements.txt").read_text("utf-8").splitlines():
        if pin := line.partition("#")[0].strip():
            wanted.append(Requirement(pin))
    while wanted:
        requirement = wanted.pop()
        extras = requirement.extras or {""}
        installed = distribution(requirement.name)
        key = canonicalize_name(requirement.name)
        if (key, *sorted(extras)) in found:
            continue
        found[key, *sorted(extras)] = installed.version.partition("+")[0]
        for line in installed.requires or ():
            further = Requirement(line)
            if not further.marker or any(further.marker.evaluate({"extra": e}) for e in extras):
                wanted.append(further)
    return {key: version for (key, *_), version in found.items()}


def test_every_package_that_is_installed_for_us_is_pinned_at_its_version():
    lines = (lessons.ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = (line.split("==") for line in lines if "==" in line)
    pins = {canonicalize_name(name): version for name, version in pinned}
    unpinned = {name: version for name, version in needed().items() if pins.get(name) != version}
    assert unpinned == {}


# Requests


def with_secret(folder):
    """Put a secret beside a folder, and in it a page and a symbolic link to the secret."""
    (folder.parent / "secret.html").write_text("secret")
    (folder / "index.html").write_text("<p>page")
    (folder / "link.html").symlink_to(folder.parent / "secret.html")
    return folder


@pytest.fixture
def folder_server(tmp_path):
    """A folder, and the port of a server of it."""
    (tmp_path / "site").mkdir()
    with serving(with_secret(tmp_path / "site")) as address:
        yield tmp_path / "site", int(address.rpartition(":")[2])


@pytest.fixture
def preview_server(preview, project, port):
    """The same of `make preview`."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with socket.socket() as tried:
            if not tried.connect_ex(("127.0.0.1", port)):
                return with_secret(project / "_site"), port
        time.sleep(0.2)
    return pytest.fail("the preview does not answer")


@pytest.fixture(params=["folder_server", "preview_server"])
def server(request):
    return request.getfixturevalue(request.param)


def status(port, path, host="127.0.0.1"):
    """The status of the answer to a request for a path, as it is written."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        with connection.getresponse() as answer:
            return answer.status


def test_a_server_serves_its_folder_and_nothing_outside_it_by_no_other_name(server):
    folder, port = server
    secret = f"{folder.parent}/secret.html".replace(" ", "%20")
    outside = [
        "/../secret.html",
        "/%2e%2e/secret.html",
        "/..%2fsecret.html",
        "/%2e%2e%2fsecret.html",
        secret,
        f"/{secret}",
        f"/%2f{secret}",
        "/link.html",
        "/index.html%00",
        "/%00",
    ]
    answers = {path: status(port, path) for path in outside}
    assert all(400 <= answer < 500 for answer in answers.values()), answers
    assert status(port, "/") == status(port, "/index.html") == 200
    assert status(port, "/", host=f"localhost:{port}") == 200
    assert status(port, "/", host=f"evil.example:{port}") == 421


def test_servers_are_reached_from_this_machine_alone(tmp_path):
    hub = HubServer()
    hub.server_close()
    assert hub.server_address[0] == "127.0.0.1"
    with serving(tmp_path) as address:
        assert address.startswith("http://127.0.0.1:")
