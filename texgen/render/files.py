"""Files are written aside and renamed: there is never half a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from texgen.errors import TexgenError


def write(path: Path, data: bytes | str) -> Path:
    """Write a whole file or none. Raises TexgenError where the place cannot be written."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:80]}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or str(error)
        raise TexgenError(f"{path} cannot be written ({reason}): give another place with -o.") from None
    except BaseException:  # Ctrl-C while writing leaves nothing behind
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
