"""JSON → Spec: ``texgen table``'s own form, explicit tables from any compiler, and dicts or lists of these."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.sources.grammar import printable, shorten
from texgen.spec_json import from_dict
from texgen.specs import LayoutSpec, Spec, TVSpec

MOST_BYTES = 64 << 20
"""The largest file that is read."""
MOST_MEMORY = 240 << 20
"""What a file's text and its Python objects may take, by an estimate that is on the safe side."""
MOST_SETS = 8
"""How deep dicts and lists of specs may be nested."""
SPEC_KEYS = {"kind", "tv", "offsets", "coords", "schema"}


def read_json(path: Path) -> Any:
    """A spec or explicit table from a file, or a dict or list of them; a pure swizzle is recognised and noted."""
    where = printable(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TexgenError(f"{where} cannot be read: {reason}.") from None
    return from_bytes(data, where)


def from_bytes(data: bytes, where: str) -> Any:
    """As ``read_json``, from a file's bytes; ``where`` names the file in messages."""
    if len(data) > MOST_BYTES or needed(data) > MOST_MEMORY:
        raise TexgenError(
            f"{where} has too many entries for texgen to read: give one figure a file, and the table of one tile of it."
        )
    try:
        text = data.decode("utf-8-sig")
        del data
        made = json.loads(text, object_pairs_hook=once)
    except UnicodeDecodeError:
        raise TexgenError(f"{where} is no JSON: it is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise TexgenError(f"{where} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except Twice as error:
        raise TexgenError(f"{where} has the key '{shorten(error.args[0])}' twice in one object: leave one out.") from None
    except (RecursionError, ValueError):
        raise TexgenError(f"{where} is no spec: it is nested too deeply or holds a number with too many digits.") from None
    return _specs(made, where, 0)


def needed(data: bytes) -> int:
    """An upper estimate of the bytes that a JSON text and the objects that it makes take in CPython.

    A list's entry takes 8 bytes and a number 32, an empty list 64 and a small dict 232; text takes one, two or four bytes a
    character, whatever its widest character asks.
    """
    widest = 1 if data.isascii() else 4 if re.search(rb"[\xf0-\xff]", data) else 2
    return len(data) * (1 + widest) + 40 * data.count(b",") + 64 * data.count(b"[") + 232 * data.count(b"{")


class Twice(ValueError):
    """A key stands twice in one object."""

    def __str__(self) -> str:
        return f"the key '{shorten(self.args[0])}' stands twice in one object"


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The ``object_pairs_hook`` of ``json.loads`` that raises Twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Twice(key)
            seen.add(key)
    return made


def _specs(data: Any, where: str, depth: int) -> Any:
    several_of = isinstance(data, dict) and data and not SPEC_KEYS & set(data)
    if depth < MOST_SETS and several_of and all(isinstance(v, dict | list) for v in data.values()):
        return {k: _specs(v, f"{where}, {shorten(k)}", depth + 1) for k, v in data.items()}
    if depth < MOST_SETS and isinstance(data, list) and data and all(isinstance(v, dict | list) for v in data):
        return [_specs(v, f"{where}, entry {i}", depth + 1) for i, v in enumerate(data)]
    return noted(from_dict(data, where))


def noted(spec: Spec) -> Spec:
    """The spec of an explicit table, with a note where it is nothing but a swizzle of 0, 1, 2, …"""
    if spec.notes or not isinstance(spec, LayoutSpec | TVSpec):
        return spec
    from texgen.sources.smem import recognise_swizzle

    if isinstance(spec, TVSpec):
        if spec.map.layout or spec.map.tv.size != spec.map.cells:
            return spec
        by_value = f"thread + {spec.map.threads} value"
        for index, table in ((by_value, spec.map.tv.T), (f"value + {spec.map.values} thread", spec.map.tv)):
            if (swizzle := recognise_swizzle(table.reshape(-1))) is not None:
                return replace(spec, notes=(f"This table is {swizzle} of {index}, 0 to {table.size - 1}.",))
        return spec
    if spec.layout or len(spec.coords) not in (0, 2):
        return spec
    what, places = "offsets", spec.offsets
    if spec.coords:
        what, places = "coordinates, row by row,", spec.coords[0] * spec.offsets.shape[1] + spec.coords[1]
    swizzle = recognise_swizzle(places.reshape(-1))
    if swizzle is None:
        return spec
    return replace(spec, notes=(f"These {what} are {swizzle} of the row-major index 0 to {spec.offsets.size - 1}.",))
