"""Serve a folder on this machine alone, and nothing outside the folder."""

import gzip
import threading
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "127.0.0.1"


def is_name_of_host(name):
    """Whether a request's Host, without its port, is this machine.

    It is not where a page of somebody else's has its own name lead here, to read ours.
    """
    return name in (HOST, "localhost")


def leads_into(folder, path):
    """Whether a path is in a folder, symbolic links followed."""
    try:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    except ValueError:  # which a null byte raises
        return False


class Quiet(SimpleHTTPRequestHandler):
    def parse_request(self):
        if not super().parse_request():
            return False
        if not is_name_of_host(self.headers.get("Host", "").partition(":")[0]):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return False
        if not leads_into(self.directory, self.translate_path(self.path)):
            self.send_error(HTTPStatus.NOT_FOUND)
            return False
        return True

    def do_GET(self):
        """Pages come compressed, as from any host."""
        path = Path(self.translate_path(self.path))
        if path.suffix != ".html" or not path.is_file():
            return super().do_GET()
        page = gzip.compress(path.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        """Print no line for a request."""


@contextmanager
def serving(folder):
    """Address of a server of the folder, such as http://127.0.0.1:40123, while in the block."""
    with ThreadingHTTPServer((HOST, 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()
