"""Files that are whole or not there."""

import os
import tempfile
from pathlib import Path


def write_atomically(path, content):
    """Write text or bytes under another name in the same folder, then put it in place.

    Raises OSError that names the file, such as for a full disk.
    """
    try:
        put(Path(path), content)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
