"""Files are written aside and renamed: there is never half a file.

Nothing is forced to the disk: that costs tens of milliseconds a figure, and after a loss of power a file is old, new or,
on some file systems, empty. The caches take an empty file for none, and a batch knows its files by their hashes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from texgen.errors import TexgenError


class Unwritable(TexgenError):
    """A file that cannot be written; ``number`` is the system's ``errno``, 0 where it gave none."""

    number = 0


def write(path: Path, data: bytes | str) -> Path:
    """Write a whole file or none. Raises Unwritable where the place cannot be written."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")  # known before it is there: Ctrl-C may come as it opens
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        _drop(temporary)
        reason = getattr(error, "strerror", None) or str(error)
        refused = Unwritable(f"{path} cannot be written ({reason}): give another place with -o.")
        refused.number = getattr(error, "errno", None) or 0
        raise refused from None
    except BaseException:  # Ctrl-C while writing leaves nothing behind
        _drop(temporary)
        raise
    return path


def _drop(temporary: Path | None) -> None:
    if temporary is not None:
        with contextlib.suppress(OSError, ValueError):  # it may never have been there
            temporary.unlink()
