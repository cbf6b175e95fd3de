"""Specs as JSON (schema 1): written with a line a thread, read with every key checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from texgen.errors import TexgenError
from texgen.kinds import KINDS, function
from texgen.layouts import MAX_ENTRIES, IntArray, Swizzle
from texgen.specs import MEMORIES, SCHEMA, CopySpec, LayoutSpec, MmaSpec, Spec, TVMap, TVSpec
from texgen.visible import json_text

LONGEST_TEXT = 20_000
"""The longest name, note or layout text that is read, in characters."""


def to_json(spec: Spec) -> str:
    """The JSON form, one line a thread, the same bytes every time."""
    rows = []
    for key, value in spec.to_dict().items():
        rows.append(f"  {json.dumps(key)}: {_value(value, 2)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def all_to_json(specs: Any) -> str:
    """As ``to_json``, for a spec or a dict or list of specs."""
    if isinstance(specs, Mapping):
        inner = ",\n".join(f"{json.dumps(str(k))}: {all_to_json(v).rstrip()}" for k, v in specs.items())
        return "{\n" + inner + "\n}\n"
    if isinstance(specs, list | tuple):
        return "[\n" + ",\n".join(all_to_json(v).rstrip() for v in specs) + "\n]\n"
    return to_json(specs)


def _value(value: Any, indent: int) -> str:
    pad = " " * indent
    if isinstance(value, dict):
        inner = ",\n".join(f"{pad}  {json.dumps(k)}: {_value(v, indent + 2)}" for k, v in value.items())
        return "{\n" + inner + "\n" + pad + "}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + ",\n".join(f"{pad}  {json.dumps(row)}" for row in value) + "\n" + pad + "]"
    return json_text(value)


# --- JSON in ---------------------------------------------------------------------------------------------------------


def from_dict(data: Any, where: str = "the JSON") -> Spec:
    """A spec from its JSON form, or from an explicit table ``{"tile": [M, N], "tv": [[...], ...]}``.

    Raises TexgenError that names the key at fault.
    """
    if not isinstance(data, dict):
        raise TexgenError(f'{where} is no spec: it must be an object with a "kind", or with "tile" and "tv".')
    if data.get("schema", SCHEMA) != SCHEMA:
        raise TexgenError(f"{where} has schema {_quoted(data.get('schema'))} and this texgen reads schema {SCHEMA}.")
    r = _Reader(data, where)
    kind = data.get("kind", "tv" if "tv" in data else "layout" if "offsets" in data else None)
    common: dict[str, Any] = {k: r.strings(k) for k in ("notes", "warnings")} | {
        k: r.string(k) for k in ("name", "source")
    }
    if not isinstance(kind, str) or kind not in KINDS:
        raise TexgenError(f"{where} has kind {_quoted(kind)}: it must be one of {', '.join(KINDS)}.")
    made: Spec = function(KINDS[kind].read)(data, where, common)
    return made


def mma_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> MmaSpec:
    """The spec of a JSON object of kind ``mma``; ``common`` has its name, source, notes and warnings. Raises TexgenError."""
    r = _Reader(data, where)
    m, n, k = r.ints("tile_mnk", 3)
    return MmaSpec(
        tile_mnk=(m, n, k),
        A=r.tv("A", (m, k)),
        B=r.tv("B", (n, k)),
        C=r.tv("C", (m, n)),
        arch=r.string("arch"),
        atom_mnk=r.ints("atom_mnk", 3) if "atom_mnk" in data else (0, 0, 0),
        thr_layout_vmnk=r.string("thr_layout_vmnk"),
        permutation_mnk=r.string("permutation_mnk"),
        **common,
    )


def copy_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> CopySpec:
    """As ``mma_from_dict``, of kind ``copy``."""
    r = _Reader(data, where)
    tile = r.ints("tile", 2)
    return CopySpec(
        tile=tile, S=r.tv("S", tile), D=r.tv("D", tile), arch=r.string("arch"), tiler=r.string("tiler"), **common
    )


def tv_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> TVSpec:
    """As ``mma_from_dict``, of kind ``tv``: also an explicit table."""
    r = _Reader(data, where)
    return TVSpec(map=r.tv(None, None), arch=r.string("arch"), **common)


def layout_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> LayoutSpec:
    """As ``mma_from_dict``, of kind ``layout``."""
    return _Reader(data, where).layout_spec(common)


@dataclass(frozen=True)
class _Reader:
    """Checked access to one JSON object."""

    data: Mapping[str, Any]
    where: str

    def fail(self, key: str, what: str) -> TexgenError:
        return TexgenError(f"{self.where}: {key!r} must be {what}.")

    def string(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str) or not _is_text(value):
            raise self.fail(key, f"a string of Unicode text of at most {LONGEST_TEXT:,} characters")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(x, str) and _is_text(x) for x in value):
            raise self.fail(key, f"a list of strings of at most {LONGEST_TEXT:,} characters")
        return tuple(value)

    def ints(self, key: str, n: int) -> Any:
        value = self.data.get(key)
        if not isinstance(value, list) or len(value) != n or not all(type(x) is int and 0 < x < 1 << 31 for x in value):
            raise self.fail(key, f"a list of {n} positive integers")
        return tuple(value)

    def array(self, key: str, value: Any) -> IntArray:
        """A rectangular array of integers, two levels deep."""
        if not isinstance(value, list) or set(map(type, value)) != {list} or not all(value):
            raise self.fail(key, "a list of lists of integers, none of them empty")
        widths = set(map(len, value))
        if len(widths) > 1:
            raise self.fail(key, f"rectangular; its rows have {min(widths)} to {max(widths)} entries")
        if len(value) * widths.pop() > MAX_ENTRIES:
            raise self.fail(key, f"at most {MAX_ENTRIES:,} entries")
        if set(map(type, chain.from_iterable(value))) != {int}:  # a bool is none here, and JSON has NaN and 1e999
            raise self.fail(key, "a list of lists of integers")
        try:
            table = np.fromiter(chain.from_iterable(value), np.int64).reshape(len(value), -1)
        except OverflowError:
            table = np.full((1, 1), 1 << 62)
        if ((table >= 1 << 62) | (table <= -(1 << 62))).any():
            raise self.fail(key, "a list of lists of integers of less than 63 bits")
        return table

    def tv(self, key: str | None, tile: tuple[int, int] | None) -> TVMap:
        """A TVMap under ``key`` (the object itself if None). Entries are indices or ``[row, column]`` pairs."""
        data = self.data if key is None else self.data.get(key)
        name = key or "tv"
        if not isinstance(data, Mapping):
            raise self.fail(name, 'an object with "tile" and "tv"')
        own = _Reader(data, self.where if key is None else f"{self.where}, operand {key}")
        rows, cols = own.ints("tile", 2) if tile is None or "tile" in data else tile
        if tile is not None and (rows, cols) != tuple(tile):
            raise own.fail("tile", f"{list(tile)}, the operand's part of the MMA's or copy's tile")
        if rows * cols > MAX_ENTRIES:
            raise own.fail("tile", f"of at most {MAX_ENTRIES:,} cells")
        raw = data.get("tv")
        if _pairs(raw):
            table = own.array("tv", [[x for p in row for x in p] for row in raw])  # type: ignore[union-attr]
            r, c = table[:, 0::2], table[:, 1::2]
            if (r < 0).any() or (r >= rows).any() or (c < 0).any() or (c >= cols).any():
                raise own.fail("tv", f"coordinates inside the tile {rows}x{cols}")
            table = r + rows * c
        else:
            table = own.array("tv", raw)
        bad = np.argwhere((table < 0) | (table >= rows * cols))
        if len(bad):
            t, v = bad[0]
            raise own.fail(
                "tv", f"inside the tile {rows}x{cols} (0 to {rows * cols - 1}), and T{t} V{v} is {table[t, v]}"
            )
        memory = own.string("memory") or "rmem"
        if memory not in MEMORIES:
            raise own.fail("memory", f"one of {', '.join(MEMORIES)}")
        return TVMap((rows, cols), table, own.string("layout"), own.string("dtype"), memory)

    def layout_spec(self, common: Mapping[str, Any]) -> LayoutSpec:
        bits = self.data.get("bits", 0)
        if type(bits) is not int or not 0 <= bits <= 1024:
            raise self.fail("bits", "the element's width in bits")
        swizzle, unit = self.swizzle(bits), self.string("unit")
        coords = self.data.get("coords", [])
        raw: Any = self.data.get("offsets")
        if _pairs(raw):  # an entry a cell: [row, column]
            coords = [[[p[i] for p in row] for row in raw] for i in range(2)]
        if not isinstance(coords, list):
            raise self.fail("coords", "a list of tables")
        arrays = tuple(self.array("coords", c) for c in coords)
        offsets = arrays[0] if arrays else self.array("offsets", self.data.get("offsets"))
        plain = self.array("plain", self.data["plain"]) if "plain" in self.data else None
        if any(a.shape != offsets.shape for a in arrays) or (plain is not None and plain.shape != offsets.shape):
            raise self.fail("plain" if plain is not None else "coords", "of the same shape as the first table")
        shape = _tuples(self.data.get("shape", list(offsets.shape)))
        if shape is None:
            raise self.fail("shape", "a (nested) list of integers")
        shape = shape if isinstance(shape, tuple) else (shape,)
        if _size_within(shape, offsets.size) != offsets.size:
            raise self.fail("shape", f"of {offsets.size} cells, as the table is")
        return LayoutSpec(
            layout=self.string("layout"), shape=shape, offsets=offsets, plain=plain, swizzle=swizzle, bits=bits,
            unit=unit, coords=arrays, **common,
        )  # fmt: skip

    def swizzle(self, bits: int) -> tuple[int, int, int] | None:
        """The numbers of a swizzle that acts on elements of ``bits`` bits, or as ``unit`` says on their bytes."""
        value, unit = self.data.get("swizzle"), self.string("unit")
        if unit not in ("", "elements", "bytes"):
            raise self.fail("unit", "elements or bytes")
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 3 or not all(type(x) is int and abs(x) <= 60 for x in value):
            raise self.fail("swizzle", "a list of three integers")
        swizzle = Swizzle(*value)
        if unit == "bytes":
            if not bits:
                raise self.fail("bits", "given where a swizzle counts in bytes")
            swizzle.recast(8, bits)
        return value[0], value[1], value[2]


def _quoted(value: Any) -> str:
    """A value as a message quotes it."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    said = repr(value)
    return said if len(said) <= 40 else said[:39] + "…"


def _size_within(shape: Any, most: int) -> int:
    """The size of a shape, given up above ``most``: the product of a hundred thousand large numbers takes its time."""
    if not isinstance(shape, tuple):
        return int(shape)
    total = 1
    for mode in shape:
        total *= _size_within(mode, most)
        if total > most:
            break
    return total


def _is_text(value: str) -> bool:
    """False for lone surrogates, which no file can hold, and for what no picture can."""
    return len(value) <= LONGEST_TEXT and not any(0xD800 <= ord(c) <= 0xDFFF for c in value)


def _pairs(raw: Any) -> bool:
    return (
        isinstance(raw, list) and bool(raw)
        and all(isinstance(row, list) and row and all(isinstance(p, list) and len(p) == 2 for p in row) for row in raw)
    )  # fmt: skip


def _tuples(x: Any, depth: int = 0) -> Any:
    if type(x) is int and 0 < x < 1 << 62:
        return x
    if isinstance(x, Sequence) and not isinstance(x, str) and depth < 60:
        inner = tuple(_tuples(i, depth + 1) for i in x)
        return None if None in inner else inner
    return None
