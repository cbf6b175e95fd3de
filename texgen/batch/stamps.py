"""What is done already: one small file an item beside the outputs, so that folders of several runs merge by file name."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from texgen.batch.listing import Item
from texgen.errors import TexgenError
from texgen.imports import called, target_files
from texgen.keys import HASH, digest, dsl_version, engine_version, sha, version
from texgen.render.files import write

FOLDER = ".texgen"
"""Where the stamps lie, inside the folder of the outputs."""


class Stamps:
    """The stamps of one folder. ``folder`` is that of the outputs, ``base`` the one that targets' files are named from."""

    def __init__(self, folder: Path, base: Path, templates: tuple[str, ...]) -> None:
        self.folder, self.base, self.digest = folder, base, digest(templates)

    def key(self, item: Item) -> str:
        """A hash of all that an item's files depend on: target and the files that it names, options, templates, texgen, tools."""
        runs = called(item.target) is not None
        contents = [(f.name, sha(f.read_bytes())) for f in _files(item.target, self.base) if f.is_file()]
        by_tex = any(o.lower().endswith((".pdf", ".png")) for o in item.outputs)
        dsl = (dsl_version(), os.environ.get("CUTE_DSL_ARCH")) if runs or dict(item.reading).get("live") else ()
        parts = (item.target, item.outputs, item.reading, item.look, item.scale, contents, self.digest, dsl, _tools(item.engine) if by_tex else "")
        return sha(repr(parts).encode())

    def path(self, item: Item) -> Path:
        """Where an item's stamp lies: named by its first output and a hash of that."""
        readable = item.name.replace("/", "_")[-80:]
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
        has changed meanwhile is seen the next time. Raises TexgenError where the place cannot be written."""
        self.path(item).unlink(missing_ok=True)
        for name, data in files.items():
            try:
                write(self.folder / name, data)
            except TexgenError as error:
                raise TexgenError(error.message.replace("with -o", "with --out"), error.detail) from None
        stamp: dict[str, Any] = {"key": key, "target": item.target, "files": {n: sha(d) for n, d in files.items()}}
        write(self.path(item), json.dumps(stamp, indent=1) + "\n")


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
