"""What a figure is drawn from: frozen dataclasses of plain integers and names, read and written by ``spec_json``.

Index order is CuTe's: column-major in the operand's tile, ``m + M*k`` for A, ``n + N*k`` for B, ``m + M*n`` for C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from texgen.layouts import IntArray

if TYPE_CHECKING:
    from texgen.chains.spec import ChainSpec
    from texgen.pipeline.spec import TimelineSpec

SCHEMA = 1
WIDTHS = {
    "f64": 64, "c64": 128, "f32": 32, "tf32": 32, "s32": 32, "u32": 32, "s64": 64, "u64": 64, "f16": 16, "bf16": 16, "s16": 16,
    "u16": 16, "e4m3": 8, "e5m2": 8, "e8m0": 8, "s8": 8, "u8": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
"""Widths of the dtypes in bits."""
WARP = 32
_WARPS = {"gfx9": 64, "XeHPC": 8, "XeHPG": 16}
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
    of threads reads it through a descriptor and no thread holds a part of its own. ``warp`` is how many threads a warp has.
    """

    tile: tuple[int, int]
    tv: IntArray
    layout: str = ""
    dtype: str = ""
    memory: str = "rmem"
    warp: int = WARP

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TVMap)
            and (self.tile, self.layout, self.dtype, self.memory, self.warp)
            == (other.tile, other.layout, other.dtype, other.memory, other.warp)
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
    def thread_counts(self) -> IntArray:
        """How many different threads hold each cell, an array of shape ``tile``: fewer than ``owner_counts`` where one holds a
        cell as several of its values."""
        owner = np.arange(self.threads, dtype=np.int64)[:, None]
        pairs = np.unique(self.tv * self.threads + owner)
        counts = np.bincount(pairs // self.threads, minlength=self.cells)
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


def warp_size(arch: str) -> int:
    """Threads that run together: 32 of NVIDIA and of AMD's RDNA, 64 of AMD's CDNA (LLVM's AMDGPU guide, ``wavefrontsize64``), and
    of Intel as many as a DPAS of tensor-layouts has."""
    return next((size for name, size in _WARPS.items() if arch.startswith(name)), WARP)


def _with_warps(spec: MmaSpec | CopySpec) -> None:
    """Give the operands of a new spec the warps of its architecture."""
    size = warp_size(spec.arch)
    for name, operand in spec.operands().items():
        if operand.warp != size:
            object.__setattr__(spec, name, replace(operand, warp=size))


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

    def __post_init__(self) -> None:
        _with_warps(self)

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

    def __post_init__(self) -> None:
        _with_warps(self)

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


def flat(specs: Any, prefix: str = "") -> list[tuple[str, Spec]]:
    """(name, spec) of a spec or a nested dict or list of specs, names joined by ``-``.

    >>> [name for name, _ in flat({"a": [1, 2], "b": 3})]
    ['a-0', 'a-1', 'b']
    """
    if isinstance(specs, Mapping | list | tuple):
        items = specs.items() if isinstance(specs, Mapping) else enumerate(specs)
        return [pair for k, v in items for pair in flat(v, f"{prefix}-{k}" if prefix else str(k))]
    return [(prefix, specs)]
