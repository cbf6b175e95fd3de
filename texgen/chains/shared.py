"""Where an operand's elements lie in shared memory: the layout, repeated where it is smaller than what is asked of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from texgen.errors import TexgenError, UsageError
from texgen.layouts import MAX_ENTRIES, IntArray, Layout
from texgen.sources.smem import element_swizzle, layout_spec
from texgen.specs import LayoutSpec

LINE = 128
"""Bytes of a row of all 32 banks."""
FURTHEST = 1 << 22
"""Elements of shared memory that are followed; no GPU has as many."""


def default_smem(tile: tuple[int, int], first_mode: bool, bits: int) -> LayoutSpec:
    """The tile without padding or swizzle; ``first_mode`` is contiguous (M- or N-major), otherwise the second (K-major)."""
    rows, columns = tile
    return layout_spec(Layout((rows, columns), (1, rows) if first_mode else (columns, 1)), bits=bits)


def read_smem(target: Any, bits: int, **options: Any) -> LayoutSpec:
    """The layout that ``--smem`` names, its elements ``bits`` wide. Raises TexgenError where it is none of two modes."""
    from texgen.sources import read

    none = UsageError(f"--smem {str(target)[:80]!r} is no layout of shared memory: give layout text such as 'S<3,4,3> o 0 o (16,64):(64,1)'.")
    try:
        spec = read(target, bits=bits, **options)
    except TexgenError:
        if isinstance(target, str) and re.fullmatch(r"\s*[\w<>.-]*\s*", target) and not target.endswith((".py", ".json")):
            raise none from None  # a word alone, which was taken for the name of an atom
        raise
    if not isinstance(spec, LayoutSpec) or spec.coords:
        raise none
    if spec.bits and bits and spec.bits != bits:
        raise UsageError(f"--smem {spec.layout} has elements of {spec.bits} bits and the operand's have {bits}: give a layout of {bits}-bit elements.")
    if int(spec.offsets.min()) < 0:
        raise UsageError(f"--smem {spec.layout} has a negative offset ({int(spec.offsets.min())}): offsets in shared memory start at 0.")
    if len(np.unique(spec.offsets)) != spec.offsets.size:
        raise UsageError(f"--smem {spec.layout} puts several elements at one offset: give each mode a stride of its own.")
    return replace(spec, bits=spec.bits or bits)


def covering(spec: LayoutSpec, rows: int, columns: int) -> LayoutSpec:
    """The layout, repeated down the rows and then along the columns until it holds ``rows`` × ``columns`` elements.

    That is CuTe's ``tile_to_shape`` with its usual order: each repeat begins where the one before ends, and a swizzle
    acts on the whole. The spec comes back as it is where it is large enough.
    """
    r, c = spec.offsets.shape
    down, across = -(-max(rows, r) // r), -(-max(columns, c) // c)
    if (down, across) == (1, 1):
        return spec
    if spec.offsets.size * down * across > MAX_ENTRIES:
        raise TexgenError(f"{spec.layout} repeated over {rows}×{columns} has more cells than texgen evaluates.")
    plain = spec.offsets if spec.plain is None else spec.plain
    step = int(plain.max()) + 1
    places = np.block([[plain + step * (i + down * j) for j in range(across)] for i in range(down)])
    offsets, swizzle = places, element_swizzle(spec)
    if swizzle is not None:
        offsets = swizzle(places)
    note = f"{spec.layout} is repeated {down} × {across} times to cover {rows} × {columns}, as tile_to_shape does."
    return replace(
        spec, shape=(r * down, c * across), offsets=offsets, plain=None if swizzle is None else places,
        notes=(*spec.notes, note),
    )  # fmt: skip


def cell_at(spec: LayoutSpec) -> IntArray:
    """The column-major cell that lies at each offset, -1 where none does.

    Raises TexgenError for offsets that no shared memory has.
    """
    flat = spec.offsets.reshape(-1, order="F")
    if int(flat.max()) >= FURTHEST:
        raise TexgenError(f"Shared memory would reach element {int(flat.max()):,}: give the layout of one tile, of at most {FURTHEST:,} elements.")
    cells = np.full(int(flat.max()) + 1, -1, dtype=np.int64)
    cells[flat] = np.arange(flat.size)
    return cells
