"""What is done already: one small file an item beside the outputs, so that folders of several runs merge by file name."""

from __future__ import annotations

import errno
import json
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from texgen.batch.listing import FOLDER, Item
from texgen.errors import TexgenError
from texgen.imports import called, target_files
from texgen.keys import HASH, digest, dsl_version, engine_version, sha, version
from texgen.render.files import Unwritable, write

"""Where the stamps lie, inside the folder of the outputs."""
OF_ALL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS, errno.EIO)
"""Errors of writing one file that no other file would be spared."""


class Stamps:
    """The stamps of one folder. ``folder`` is that of the outputs, ``base`` the one that targets' files are named from."""

    def __init__(self, folder: Path, base: Path, templates: tuple[str, ...]) -> None:
        self.folder, self.base, self.digest = folder, base, digest(templates)

    def key(self, item: Item) -> str:
        """A hash of all that an item's files depend on: target and the files that it names, options, templates, texgen, tools."""
        runs = any(called(text) is not None for text in item.named)
        contents = [(f.name, content) for text in item.named for f in _files(text, self.base) if (content := _content(f))]
        by_tex = any(o.lower().endswith((".pdf", ".png")) for o in item.outputs)
        dsl = (dsl_version(), os.environ.get("CUTE_DSL_ARCH")) if runs or dict(item.reading).get("live") else ()
        parts = (item.target, item.kind, item.parts, item.outputs, item.reading, item.look, item.scale, contents, self.digest, dsl, _tools(item.engine) if by_tex else "")
        return sha(repr(parts).encode())

    def path(self, item: Item) -> Path:
        """Where an item's stamp lies: named by its first output and a hash of that."""
        readable = item.name.replace("/", "_").encode()[-80:].decode(errors="ignore")
        return self.folder / FOLDER / f"{readable}-{sha(item.name.encode())[:HASH]}.json"

    def current(self, item: Item, key: str) -> bool:
        """True if the item's files are there, unchanged and made under that key."""
        try:
            kept = json.loads(self.path(item).read_bytes())
            return bool(kept["key"] == key and kept["files"]) and all(
                sha((self.folder / name).read_bytes()) == digest for name, digest in kept["files"].items()
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def save(self, item: Item, key: str, files: dict[str, bytes]) -> None:
        """Write an item's files and, after them, its stamp; ``key`` was taken before the work began, so that a source that
        has changed meanwhile is seen the next time. Raises Unwritable for a file that cannot be written, TexgenError where
        no file can."""
        self.path(item).unlink(missing_ok=True)
        for name, data in files.items():
            self.write(name, data)
        stamp: dict[str, Any] = {"key": key, "target": item.target, "files": {n: sha(d) for n, d in files.items()}}
        self.write(self.path(item).relative_to(self.folder).as_posix(), json.dumps(stamp, indent=1) + "\n")

    def write(self, name: str, data: bytes | str) -> None:
        """Write a file of the folder. Raises as ``save`` does."""
        try:
            write(self.folder / name, data)
        except Unwritable as error:
            if error.number in OF_ALL:
                raise TexgenError(error.message.replace("with -o", "with --out")) from None
            error.message = error.message.replace(": give another place with -o", ": give it another output")
            raise

    def prepare(self) -> None:
        """Make the folder. Raises TexgenError where it cannot be made or written to."""
        folder = self.folder / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TexgenError(f"The folder {self.folder} cannot be written to ({reason}): give another with --out.") from None


def _content(path: Path) -> str:
    """A hash of what a file has; empty for one that cannot be read, which reading the target says better."""
    try:
        return sha(path.read_bytes())
    except (OSError, ValueError):
        return ""


def _files(target: str, base: Path) -> list[Path]:
    """The files of a target, those named relatively looked for in ``base``."""
    place = called(target)
    if target.endswith(".json"):
        return [base / target]
    if place is not None and place[0].endswith(".py"):
        return target_files(f"{base / Path(place[0]).expanduser()}:{place[1]}")
    return target_files(target) if place is not None else []


@cache
def _tools(engine: str | None) -> str:
    from texgen.render.engine import choose

    try:
        chosen = choose(engine)
    except TexgenError:
        chosen = None
    return engine_version(chosen) if chosen else f"vl-convert {version('vl-convert-python')}"
