"""`make preview`: the stored lessons as pages on this machine, rendered again at each change.

Watches the notebooks and blog/. An open page loads itself again; a fault is told in the terminal
and the last good page stays. A change in tools/ needs a new start.
"""

import logging
import socket
import sys
import traceback

from livereload import Server

from lessons import NOTEBOOKS, lesson_paths
from render import BLOG, SITE, render_site

HOST = "127.0.0.1"


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
    server = Server()
    server.watch(str(NOTEBOOKS / "*.ipynb"), render)
    server.watch(f"{BLOG}/", render)
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    render()
    server.serve(port=port, host=HOST, root=str(SITE))


if __name__ == "__main__":
    preview(int(sys.argv[1]))
