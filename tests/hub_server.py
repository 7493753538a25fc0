"""A Hugging Face Hub in one page: what hf_hub_download needs, on 127.0.0.1, good or broken."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HubServer(ThreadingHTTPServer):
    """Serves `files`, which maps /datasets/REPO/resolve/REVISION/FILE to bytes.

    It keeps back the last `kept_back` bytes of each file, though it announces them.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.files = {}
        self.kept_back = 0

    def go_down(self):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self._send_head()

    def do_GET(self):
        content = self._send_head()
        self.wfile.write(content[: len(content) - self.server.kept_back])

    def _send_head(self):
        content = self.server.files.get(self.path)
        if content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            content = b""
        else:
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", self.path.split("/resolve/")[1].split("/")[0])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return content

    def log_message(self, *_):
        """Requests are not the tests' output."""


@contextmanager
def running_hub():
    """A HubServer that answers until the block ends."""
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.go_down()
        thread.join()
