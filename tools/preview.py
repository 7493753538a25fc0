"""`make preview`: the stored lessons as pages on this machine, rendered again at each change.

Watches the notebooks and blog/. An open page loads itself again; a fault is told in the terminal
and the last good page stays. A change in tools/ needs a new start.
"""

import logging
import socket
import sys
import traceback

from livereload import Server
from livereload.handlers import StaticFileHandler
from tornado.web import HTTPError

from lessons import NOTEBOOKS, lesson_paths
from policy import digest
from render import BLOG, SITE, render_site
from serve import HOST, is_name_of_host, leads_into


class Files(StaticFileHandler):
    """The files of the site. As they are served, pages let the script run that reloads them."""

    reloader = ""  # its text

    def prepare(self):
        if not is_name_of_host(self.request.host_name):
            raise HTTPError(421)

    def validate_absolute_path(self, root, absolute_path):
        if not leads_into(root, absolute_path):
            raise HTTPError(404)
        return super().validate_absolute_path(root, absolute_path)

    @classmethod
    def get_content(cls, abspath, start=None, end=None):
        content = b"".join(super().get_content(abspath, start, end))
        if not abspath.endswith(".html"):
            return content
        more = f"connect-src 'self'; script-src 'self' {digest(cls.reloader)} "
        return content.replace(b"script-src ", more.encode(), 1)

    def get_content_size(self):
        return len(self.get_content(self.absolute_path))


class Preview(Server):
    def get_web_handlers(self, script):
        Files.reloader = script.decode().partition(">")[2].removesuffix("</script>")
        self.SFH = Files
        return super().get_web_handlers(script)


def render():
    """Render all pages; print what is wrong, whatever it is: the next change may mend it."""
    try:
        render_site(lesson_paths())
    except ValueError as error:  # which names the faults of a lesson
        print(error, file=sys.stderr)
    except Exception:
        traceback.print_exc()


def preview(port):
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        sys.exit(f"cannot serve on port {port} ({error.strerror}): make preview PORT=8001")
    server = Preview()
    server.watch(str(NOTEBOOKS / "*.ipynb"), render)
    server.watch(f"{BLOG}/", render)
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    render()
    server.serve(port=port, host=HOST, root=str(SITE))


if __name__ == "__main__":
    preview(int(sys.argv[1]))
