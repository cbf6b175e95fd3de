"""CuTe layouts as plain data, and their tables of offsets through NumPy.

A layout is a function from coordinates to offsets, written ``shape:stride`` with nested tuples (CuTe documentation,
"CuTe Layouts"). This module holds the data and evaluates it; the algebra on layouts is ``tensor-layouts``'.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from texgen.errors import TexgenError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
IntArray: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

MAX_CELLS = 1_000_000
"""The most cells one picture may have."""

MAX_ENTRIES = 1 << 24
"""The most table entries (threads x values) that are evaluated: 128 MB of int64."""


@dataclass(frozen=True)
class Basis:
    """A scaled basis element ``value@mode`` (CuTe's ``ScaledBasis``), the stride of a coordinate-valued layout."""

    value: int
    modes: tuple[int, ...]

    def __str__(self) -> str:
        return "@".join(str(x) for x in (self.value, *reversed(self.modes)))


Stride: TypeAlias = "int | Basis | tuple[Stride, ...]"


def text(x: Any) -> str:
    """A nested tuple as CuTe prints it: ``((4,8),2)``, no spaces, no trailing comma."""
    return f"({','.join(map(text, x))})" if isinstance(x, tuple) else str(x)


def size(shape: IntTuple) -> int:
    """The product of all entries of a shape."""
    return math.prod(size(s) for s in shape) if isinstance(shape, tuple) else shape


def flat(shape: IntTuple, stride: Stride) -> Iterator[tuple[int, int | Basis]]:
    """(size, stride) of every leaf mode, fastest first (colexicographic order)."""
    if isinstance(shape, tuple):
        for s, d in zip(shape, stride, strict=True):  # type: ignore[arg-type]
            yield from flat(s, d)
    else:
        yield shape, stride  # type: ignore[misc]


def compact(shape: IntTuple, start: int = 1) -> Stride:
    """Column-major (generalised) strides of a shape, as ``make_layout(shape)`` gives them.

    >>> text(compact(((4, 8), 2)))
    '((1,4),32)'
    """
    if not isinstance(shape, tuple):
        return start
    strides: list[Stride] = []
    for s in shape:
        strides.append(compact(s, start))
        start *= size(s)
    return tuple(strides)


@dataclass(frozen=True)
class Swizzle:
    """``S<B,M,S>``: XOR of B bits, taken S bits higher, onto the bits from M up (CuTe's ``swizzle.hpp``)."""

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if (
            self.bits < 0
            or self.base < 0
            or abs(self.shift) < self.bits
            or self.bits + self.base + abs(self.shift) > 60
        ):
            raise TexgenError(
                f"{self} is no swizzle: it takes B >= 0 bits, a base M >= 0 and a shift of at least B (S >= B)."
            )

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    def __call__(self, offset: IntArray) -> IntArray:
        mask = (1 << self.bits) - 1
        if self.shift >= 0:
            return offset ^ (((offset >> (self.base + self.shift)) & mask) << self.base)
        return offset ^ (((offset >> self.base) & mask) << (self.base - self.shift))

    def recast(self, from_bits: int, to_bits: int) -> Swizzle:
        """The same swizzle of addresses for elements of another width (CuTe's ``recast_layout``).

        ``S<3,4,3>`` on bytes is ``S<3,3,3>`` on 16-bit and ``S<3,2,3>`` on 32-bit elements.
        """
        step = to_bits.bit_length() - from_bits.bit_length()
        if 1 << (to_bits.bit_length() - 1) != to_bits or 1 << (from_bits.bit_length() - 1) != from_bits:
            raise TexgenError(
                f"{self} cannot be recast from {from_bits} to {to_bits} bits: give widths that are powers of two."
            )
        if self.base - step < 0:
            raise TexgenError(
                f"{self} on {from_bits}-bit units splits elements of {to_bits} bits: give the true element width."
            )
        return Swizzle(self.bits, self.base - step, self.shift)


@dataclass(frozen=True)
class Layout:
    """``shape:stride``, both nested tuples of equal structure."""

    shape: IntTuple
    stride: Stride

    @classmethod
    def of(cls, shape: IntTuple, stride: Stride | None = None) -> Layout:
        """A layout; without a stride the compact column-major one."""
        return cls(shape, compact(shape) if stride is None else stride)

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    @property
    def rank(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def size(self) -> int:
        return size(self.shape)

    @property
    def is_coordinate(self) -> bool:
        """True where strides are basis elements, so that the layout gives coordinates instead of offsets."""
        return any(isinstance(d, Basis) for _, d in flat(self.shape, self.stride))

    def mode(self, i: int) -> Layout:
        """Mode ``i`` as a layout of its own."""
        if not isinstance(self.shape, tuple):
            if i:
                raise IndexError(i)
            return self
        return Layout(self.shape[i], self.stride[i])  # type: ignore[index]

    def offsets(self) -> IntArray:
        """The offsets of all coordinates in colexicographic order, a vector of length ``size``."""
        if self.size > MAX_ENTRIES:
            raise TexgenError(
                f"The layout {self} has {self.size:,} entries, more than the {MAX_ENTRIES:,} that texgen evaluates."
            )
        out = np.zeros(1, dtype=np.int64)
        for n, d in flat(self.shape, self.stride):
            if isinstance(d, Basis):
                raise TexgenError(f"The layout {self} gives coordinates, not offsets.")
            if n != 1:
                out = (out[None, :] + d * np.arange(n, dtype=np.int64)[:, None]).reshape(-1)
        return out

    def table(self) -> IntArray:
        """Offsets over the first mode (rows) and the second (columns); a rank-1 layout is one row.

        Raises TexgenError for a rank over 2.
        """
        if self.rank > 2:
            raise TexgenError(
                f"The layout {self} has rank {self.rank} and a picture has two axes: group its modes, "
                f"for example ((…),(…)), or draw one slice."
            )
        if self.rank == 1:
            return self.offsets()[None, :]
        return self.mode(0).offsets()[:, None] + self.mode(1).offsets()[None, :]

    def __call__(self, index: IntArray) -> IntArray:
        """Offsets of 1-D (colexicographic) indices; past the end the last mode goes on, as in CuTe."""
        modes = list(flat(self.shape, self.stride))
        out = np.zeros_like(index)
        for i, (n, d) in enumerate(modes):
            if isinstance(d, Basis):
                raise TexgenError(f"The layout {self} gives coordinates, not offsets.")
            last = i == len(modes) - 1
            out = out + (index if last else index % n) * d
            index = index // n
        return out


@dataclass(frozen=True)
class ComposedLayout:
    """``inner o offset o outer``: coordinates go through ``outer``, the offset is added, ``inner`` maps the sum."""

    inner: Swizzle | Layout
    offset: int
    outer: Layout

    def __str__(self) -> str:
        return f"{self.inner} o {self.offset} o {self.outer}"

    @property
    def shape(self) -> IntTuple:
        return self.outer.shape

    @property
    def rank(self) -> int:
        return self.outer.rank

    @property
    def size(self) -> int:
        return self.outer.size

    def table(self) -> IntArray:
        """As ``Layout.table``."""
        return self.inner(self.outer.table() + self.offset)


AnyLayout: TypeAlias = Layout | ComposedLayout


def tv_table(layout: AnyLayout) -> IntArray:
    """A thread-value layout as a table of shape (threads, values).

    Raises TexgenError where the layout has not exactly two modes.
    """
    if layout.rank != 2:
        raise TexgenError(f"A thread-value layout has two modes, (threads, values), and {layout} has {layout.rank}.")
    return layout.table()
