"""Keys of what is kept: hashes of all that a figure depends on (its spec, texgen itself, templates, versions of tools)."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from texgen.render.environment import home

HASH = 16
"""Hexadecimal digits of a key in a file's name."""


def digest(folders: Sequence[str]) -> str:
    """A hash of texgen's own code and data and of the templates that draw figures."""
    from texgen import __version__

    hasher = hashlib.sha256(f"{__version__} {_code()}".encode())
    for path in sorted(p for p in home().glob("*.j2") if not p.name.startswith("sphinx_")):
        hasher.update(path.name.encode() + path.read_bytes())
    for folder in folders:
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            hasher.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return hasher.hexdigest()


@cache
def _code() -> str:
    package = Path(__file__).resolve().parent
    stamp = package / "measure" / "stamp.py"  # its hashes are kept with the figures
    files = sorted([stamp, *package.glob("*.py"), *(f for d in ("chains", "figures", "pipeline", "render", "sources", "trace") for f in (package / d).glob("*.*"))])
    return sha(b"".join(f.read_bytes() for f in files))


def dsl_version() -> str:
    """The version of the installed DSL, ``none`` where there is none."""
    return version("nvidia-cutlass-dsl") or "none"


def version(distribution: str) -> str:
    """The version of an installed distribution, empty where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


@cache
def engine_version(engine: str) -> str:
    """The first line of what an engine says of itself."""
    try:
        made = subprocess.run([engine, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return made.stdout.decode("utf-8", "replace").partition("\n")[0]


def spec_digest(spec: Any) -> str:
    """A hash of a spec with its arrays."""
    hasher = hashlib.sha256()
    _feed(hasher.update, spec)
    return hasher.hexdigest()


def _feed(update: Callable[[bytes], None], value: Any) -> None:
    import numpy as np

    if isinstance(value, np.ndarray):
        update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        update(type(value).__name__.encode())
        for field in dataclasses.fields(value):
            update(field.name.encode())
            _feed(update, getattr(value, field.name))
    elif isinstance(value, tuple):
        update(f"({len(value)}".encode())
        for item in value:
            _feed(update, item)
    else:
        update(repr(value).encode() + b"\0")


def sha(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data).hexdigest()
