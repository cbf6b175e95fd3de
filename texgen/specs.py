"""What a figure is drawn from: frozen dataclasses of plain integers and names, and their JSON form (schema 1).

Index order is CuTe's: column-major in the operand's tile, ``m + M*k`` for A, ``n + N*k`` for B, ``m + M*n`` for C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from texgen.errors import TexgenError
from texgen.kinds import KINDS, function
from texgen.layouts import MAX_ENTRIES, IntArray, Swizzle
from texgen.visible import ACTING

if TYPE_CHECKING:
    from texgen.chains.spec import ChainSpec
    from texgen.pipeline.spec import TimelineSpec

SCHEMA = 1
WIDTHS = {
    "f64": 64, "c64": 128, "f32": 32, "tf32": 32, "s32": 32, "u32": 32, "s64": 64, "u64": 64, "f16": 16, "bf16": 16, "s16": 16,
    "u16": 16, "e4m3": 8, "e5m2": 8, "e8m0": 8, "s8": 8, "u8": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
"""Widths of the dtypes in bits."""
LONGEST_TEXT = 20_000
"""The longest name, note or layout text that is read, in characters."""
MEMORIES = {"rmem": "registers", "smem": "shared memory", "tmem": "tensor memory", "gmem": "global memory"}


def dtype_bits(dtype: str) -> int:
    """The width of a dtype in bits (``b16``: 16 bits of any type); 0 for one that is not known."""
    return WIDTHS.get(dtype) or (int(dtype[1:]) if dtype[:1] == "b" and dtype[1:].isdigit() else 0)


@dataclass(frozen=True)
class Owner:
    """One (thread, value) that holds a cell."""

    thread: int
    value: int


@dataclass(frozen=True, eq=False)
class TVMap:
    """Which element of a two-dimensional tile each (thread, value) holds.

    ``tv[thread][value]`` is a column-major index in ``tile`` (rows, columns). ``layout`` is the source's own text, empty
    for an explicit table. ``memory`` says where the operand lives: ``rmem``, or ``smem``/``tmem`` when the whole group
    of threads reads it through a descriptor and no thread holds a part of its own.
    """

    tile: tuple[int, int]
    tv: IntArray
    layout: str = ""
    dtype: str = ""
    memory: str = "rmem"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TVMap)
            and (self.tile, self.layout, self.dtype, self.memory)
            == (other.tile, other.layout, other.dtype, other.memory)
            and np.array_equal(self.tv, other.tv)
        )

    def __hash__(self) -> int:
        return hash((self.tile, self.layout, self.dtype, self.memory, self.tv.tobytes()))

    @property
    def threads(self) -> int:
        return int(self.tv.shape[0])

    @property
    def values(self) -> int:
        return int(self.tv.shape[1])

    @property
    def cells(self) -> int:
        return self.tile[0] * self.tile[1]

    @cached_property
    def owner_counts(self) -> IntArray:
        """How many (thread, value) pairs hold each cell, an array of shape ``tile``."""
        counts = np.bincount(self.tv.reshape(-1), minlength=self.cells)
        return counts.reshape(self.tile, order="F")

    @cached_property
    def _by_cell(self) -> tuple[IntArray, IntArray]:
        """(flat positions in ``tv`` sorted by cell, where each cell's run starts)."""
        flat = self.tv.reshape(-1)
        order = np.argsort(flat, kind="stable")
        starts = np.searchsorted(flat[order], np.arange(self.cells + 1))
        return order, starts

    def owners(self, row: int, column: int) -> list[Owner]:
        """Every owner of a cell, by thread and then value."""
        order, starts = self._by_cell
        cell = row + self.tile[0] * column
        return [Owner(*divmod(int(i), self.values)) for i in order[starts[cell] : starts[cell + 1]]]

    def nth_owner(self, n: int) -> tuple[IntArray, IntArray]:
        """Threads and values of every cell's n-th owner, arrays of shape ``tile``, -1 where a cell has fewer."""
        order, starts = self._by_cell
        where = starts[:-1] + n
        has = where < starts[1:]
        picked = order[np.where(has, where, 0)] if len(order) else np.zeros(self.cells, dtype=np.int64)
        thread = np.where(has, picked // self.values, -1).reshape(self.tile, order="F")
        value = np.where(has, picked % self.values, -1).reshape(self.tile, order="F")
        return thread, value

    def coordinates(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of every table entry, arrays of shape (threads, values)."""
        return self.tv % self.tile[0], self.tv // self.tile[0]

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"layout": self.layout, "tile": list(self.tile)}
        if self.dtype:
            out["dtype"] = self.dtype
        if self.memory != "rmem":
            out["memory"] = self.memory
        out["tv"] = self.tv.tolist()
        return out


@dataclass(frozen=True)
class MmaSpec:
    """A tiled MMA: A (M x K), B (N x K) and C (M x N)."""

    name: str
    tile_mnk: tuple[int, int, int]
    A: TVMap
    B: TVMap
    C: TVMap
    arch: str = ""
    source: str = ""
    atom_mnk: tuple[int, int, int] = (0, 0, 0)
    thr_layout_vmnk: str = ""
    permutation_mnk: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "mma"

    @property
    def threads(self) -> int:
        return self.C.threads

    def operands(self) -> dict[str, TVMap]:
        return {"A": self.A, "B": self.B, "C": self.C}

    def to_dict(self) -> dict[str, Any]:
        out = _head(self)
        out["tile_mnk"] = list(self.tile_mnk)
        if any(self.atom_mnk):
            out["atom_mnk"] = list(self.atom_mnk)
        out |= {k: v for k in ("thr_layout_vmnk", "permutation_mnk") if (v := getattr(self, k))}
        return out | _tail(self) | {k: v.to_dict() for k, v in self.operands().items()}


@dataclass(frozen=True)
class CopySpec:
    """A tiled copy, or a copy atom on its own: which element each (thread, value) reads (S) and writes (D)."""

    name: str
    tile: tuple[int, int]
    S: TVMap
    D: TVMap
    arch: str = ""
    source: str = ""
    tiler: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "copy"

    @property
    def threads(self) -> int:
        return max(self.S.threads, self.D.threads)

    def operands(self) -> dict[str, TVMap]:
        return {"S": self.S, "D": self.D}

    def to_dict(self) -> dict[str, Any]:
        return (
            _head(self)
            | {"tiler": self.tiler, "tile": list(self.tile)}
            | _tail(self)
            | {k: v.to_dict() for k, v in self.operands().items()}
        )


@dataclass(frozen=True)
class TVSpec:
    """One thread-value map on its own: a TV layout over a tile, or an explicit table from any compiler."""

    name: str
    map: TVMap
    arch: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "tv"

    @property
    def threads(self) -> int:
        return self.map.threads

    def operands(self) -> dict[str, TVMap]:
        return {"TV": self.map}

    def to_dict(self) -> dict[str, Any]:
        return _head(self) | _tail(self) | self.map.to_dict()


@dataclass(frozen=True, eq=False)
class LayoutSpec:
    """A layout over one or two modes: ``offsets[row][column]``, in elements.

    ``plain`` holds the offsets before the swizzle, where there is one. ``bits`` is the element's width (0: not known) and
    ``unit`` what the swizzle counts in, ``elements`` or ``bytes``; offsets are always those of the true place.
    ``coords`` replaces offsets for a coordinate-valued layout: one array a coordinate.
    """

    name: str
    layout: str
    shape: tuple[Any, ...]
    offsets: IntArray
    plain: IntArray | None = None
    swizzle: tuple[int, int, int] | None = None
    bits: int = 0
    unit: str = ""
    source: str = ""
    coords: tuple[IntArray, ...] = field(default=())
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "layout"
    arch = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutSpec) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.layout, self.offsets.tobytes()))

    def to_dict(self) -> dict[str, Any]:
        out = _head(self) | {"layout": self.layout, "shape": _lists(self.shape)}
        if self.bits:
            out["bits"] = self.bits
        if self.swizzle is not None:
            out |= {"swizzle": list(self.swizzle), "unit": self.unit or "elements"}
        out |= _tail(self)
        if self.coords:
            return out | {"coords": [c.tolist() for c in self.coords]}
        out["offsets"] = self.offsets.tolist()
        if self.plain is not None:
            out["plain"] = self.plain.tolist()
        return out


Spec: TypeAlias = "MmaSpec | CopySpec | TVSpec | LayoutSpec | ChainSpec | TimelineSpec"


def _head(spec: Spec) -> dict[str, Any]:
    out: dict[str, Any] = {"schema": SCHEMA, "kind": spec.kind, "name": spec.name}
    if not isinstance(spec, LayoutSpec):
        out["arch"] = spec.arch
    out["source"] = spec.source
    return out


def _tail(spec: Spec) -> dict[str, Any]:
    return {k: list(v) for k in ("notes", "warnings") if (v := getattr(spec, k))}


def _lists(x: Any) -> Any:
    return [_lists(i) for i in x] if isinstance(x, tuple) else x


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


def flat(specs: Any, prefix: str = "") -> list[tuple[str, Spec]]:
    """(name, spec) of a spec or a nested dict or list of specs, names joined by ``-``.

    >>> [name for name, _ in flat({"a": [1, 2], "b": 3})]
    ['a-0', 'a-1', 'b']
    """
    if isinstance(specs, Mapping | list | tuple):
        items = specs.items() if isinstance(specs, Mapping) else enumerate(specs)
        return [pair for k, v in items for pair in flat(v, f"{prefix}-{k}" if prefix else str(k))]
    return [(prefix, specs)]


def _value(value: Any, indent: int) -> str:
    pad = " " * indent
    if isinstance(value, dict):
        inner = ",\n".join(f"{pad}  {json.dumps(k)}: {_value(v, indent + 2)}" for k, v in value.items())
        return "{\n" + inner + "\n" + pad + "}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + ",\n".join(f"{pad}  {json.dumps(row)}" for row in value) + "\n" + pad + "]"
    return ACTING.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    """A character as JSON escapes it: the file may be shown on a terminal."""
    return json.dumps(found[0])[1:-1]


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
        if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
            raise self.fail(key, "a list of lists of integers, none of them empty")
        widths = {len(row) for row in value}
        if len(widths) > 1:
            raise self.fail(key, f"rectangular; its rows have {min(widths)} to {max(widths)} entries")
        if len(value) * widths.pop() > MAX_ENTRIES:
            raise self.fail(key, f"at most {MAX_ENTRIES:,} entries")
        if set(map(type, chain.from_iterable(value))) != {int}:  # a bool is none here, and JSON has NaN and 1e999
            raise self.fail(key, "a list of lists of integers")
        try:
            table = np.asarray(value, dtype=np.int64)
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
