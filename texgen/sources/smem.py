"""Where the elements of a layout lie: swizzles in bytes or in elements, coordinate-valued layouts. No DSL needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import (
    MAX_ENTRIES,
    AnyLayout,
    Basis,
    ComposedLayout,
    IntArray,
    Layout,
    Stride,
    Swizzle,
    flat,
)
from texgen.specs import LayoutSpec

UNITS = ("elements", "bytes")

IMPLIED_WIDTHS = (4, 8, 16, 32, 64)
BYTE_BASE = 4
"""Swizzles of byte addresses keep the low 4 bits (16-byte chunks); in elements only 8-bit ones look alike."""


def layout_spec(layout: AnyLayout, *, name: str = "", bits: int = 0, unit: str = "", source: str = "") -> LayoutSpec:
    """The true places, in elements, of a plain, swizzled or coordinate-valued layout over one or two modes.

    ``bits`` is the element's width (0: not known). ``unit`` is what a swizzle counts in, ``elements`` or ``bytes``;
    empty picks bytes where the width is known and the swizzle looks like one of byte addresses (base M >= 4), as the
    DSL's ``make_smem_layout_atom`` makes them for every element type. Rank 1 becomes one row.

    Raises TexgenError for a rank over 2, a layout that is too large, an unknown unit, and bytes without a width.
    """
    if layout.size > MAX_ENTRIES:
        raise TexgenError(
            f"The layout {layout} has {layout.size:,} cells, more than the {MAX_ENTRIES:,} that texgen evaluates: "
            f"give the layout of one tile of it."
        )
    if unit not in ("", *UNITS):
        raise TexgenError(f"A swizzle counts in elements or in bytes, not in {unit!r}: give one of {', '.join(UNITS)}.")
    if bits < 0:
        raise TexgenError(f"An element cannot be {bits} bits wide: give its true width, for example 16.")
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    if isinstance(layout, Layout):
        if layout.is_coordinate:
            coords = coordinates(layout)
            return LayoutSpec(name, str(layout), shape, coords[0], bits=bits, source=source, coords=coords)
        return LayoutSpec(name, str(layout), shape, layout.table(), bits=bits, source=source)
    swizzle = layout.inner
    if not isinstance(swizzle, Swizzle) or swizzle.bits == 0:
        return LayoutSpec(name, str(layout), shape, layout.table(), bits=bits, source=source)
    unit = unit or default_unit(swizzle, bits)
    placed, notes, warnings = in_elements(swizzle, bits, unit)
    plain = layout.outer.table() + layout.offset
    return LayoutSpec(
        name, str(layout), shape, placed(plain), plain=plain, swizzle=(swizzle.bits, swizzle.base, swizzle.shift),
        bits=bits, unit=unit, source=source, notes=notes, warnings=warnings,
    )  # fmt: skip


def default_unit(swizzle: Swizzle, bits: int) -> str:
    """``bytes`` for a swizzle that looks like one of byte addresses over elements of known width, else ``elements``."""
    return "bytes" if bits and bits != 8 and swizzle.base >= BYTE_BASE else "elements"


def implied_bits(spec: LayoutSpec, layout: AnyLayout) -> LayoutSpec:
    """The spec of a layout as the DSL makes or prints it, its swizzle taken as one of byte addresses where that fits.

    The DSL's shared-memory atoms are ``S<B,4,3>`` on bytes for every element type, and their contiguous mode is as long
    as the swizzle's row of 2^(B+4) bytes: the width of an element follows. Where it does not follow the spec comes
    back as it is, with its warning.
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return spec
    swizzle = layout.inner
    if swizzle.base != BYTE_BASE or swizzle.shift != 3 or not swizzle.bits or spec.bits:
        return spec
    row = max((n for n, d in flat(layout.outer.shape, layout.outer.stride) if d == 1), default=0)
    row_bits = 8 << (swizzle.bits + BYTE_BASE)
    if not row or row_bits % row or row_bits // row not in IMPLIED_WIDTHS:
        return spec
    bits = row_bits // row
    note = (
        f"Elements of {bits} bits: a row of {row} fills the swizzle's {row_bits // 8} bytes "
        f"(--bits or --swizzle-unit elements say otherwise)."
    )
    placed = layout_spec(layout, name=spec.name, bits=bits, unit="bytes", source=spec.source)
    return replace(placed, notes=(*placed.notes, note))


def in_elements(swizzle: Swizzle, bits: int, unit: str) -> tuple[Swizzle, tuple[str, ...], tuple[str, ...]]:
    """(the swizzle of element indices, notes, warnings).

    Raises TexgenError where ``unit`` is bytes and the width is not known, or no power of two.
    """
    if unit == "bytes":
        if not bits:
            raise TexgenError(f"{swizzle} counts in bytes, so it needs the width of an element: give --bits 16.")
        placed = swizzle.recast(8, bits)
        return placed, (f"{swizzle} acts on byte addresses; on {bits}-bit elements it is {placed}.",), ()
    width = f" ({bits} bits)" if bits else ""
    notes = (f"{swizzle} acts on element indices{width}.",)
    if bits or swizzle.base < BYTE_BASE:
        return swizzle, notes, ()
    return swizzle, notes, (
        f"{swizzle} was taken to act on element indices, but the DSL prints swizzles of byte addresses like this: "
        f"give the element's width (--bits 16, or the dtype) for the true places.",
    )  # fmt: skip


def element_swizzle(spec: LayoutSpec) -> Swizzle | None:
    """The swizzle of element indices, None where there is none."""
    if spec.swizzle is None:
        return None
    swizzle = Swizzle(*spec.swizzle)
    return swizzle.recast(8, spec.bits) if spec.unit == "bytes" else swizzle


def coordinates(layout: Layout) -> tuple[IntArray, ...]:
    """One table for each coordinate of a coordinate-valued layout such as ``(4,8):(1@1,1@0)``, by its mode."""
    paths = sorted({d.modes for _, d in flat(layout.shape, layout.stride) if isinstance(d, Basis)})
    return tuple(Layout(layout.shape, _along(layout.stride, path)).table() for path in paths)


def _along(stride: Stride, path: tuple[int, ...]) -> Stride:
    if isinstance(stride, tuple):
        return tuple(_along(d, path) for d in stride)
    return stride.value if isinstance(stride, Basis) and stride.modes == path else 0


def recognise_swizzle(offsets: Sequence[int] | IntArray) -> Swizzle | None:
    """The swizzle that maps 0, 1, 2, ... to ``offsets``, or None where they are no pure swizzle.

    >>> print(recognise_swizzle([0, 1, 3, 2, 4, 5, 7, 6]))
    S<1,0,1>
    """
    got = np.asarray(offsets, dtype=np.int64).reshape(-1)
    index = np.arange(len(got), dtype=np.int64)
    moved = np.flatnonzero((got != index) & (index & (index - 1) == 0))  # powers of two whose image differs
    if not len(moved) or moved[0] == 0:  # every swizzle leaves 0 where it is
        return None
    source = int(moved[0]).bit_length() - 1
    target = int(got[moved[0]] ^ moved[0])
    if target <= 0 or target & (target - 1):
        return None
    shift = source - (target.bit_length() - 1)
    if shift == 0 or abs(shift) < len(moved):
        return None
    found = Swizzle(len(moved), min(source, source - shift), shift)
    return found if np.array_equal(found(index), got) else None


def reach(layout: Layout) -> int:
    """The largest offset of a layout with non-negative strides, plus one (CuTe's ``cosize``)."""
    last = 0
    for n, d in flat(layout.shape, layout.stride):
        if isinstance(d, Basis):
            raise TexgenError(f"The layout {layout} gives coordinates, not offsets.")
        last += (n - 1) * d
    return last + 1


__all__ = ["coordinates", "default_unit", "element_swizzle", "in_elements", "layout_spec", "reach", "recognise_swizzle"]
