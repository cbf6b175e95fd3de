"""Checks that run before anything is drawn: a wrong table must not become a beautiful figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texgen.errors import TexgenError
from texgen.specs import LayoutSpec, MmaSpec, Spec, TVMap, dtype_bits

SHOWN = 4
WARPGROUP = 128
SWIZZLE_BYTES = 128


def check(spec: Spec, allow_holes: bool = False) -> Spec:
    """The spec, if every operand's table covers its tile evenly, with a warning where a warpgroup starts in mid-atom.

    Raises TexgenError for a table that leaves its tile, and one that names cells: a hole (a cell that nobody owns; passed over with ``allow_holes``), or uneven
    owners (cells held by different numbers of threads).
    """
    if isinstance(spec, MmaSpec) and (warning := mid_atom(spec)):
        spec = replace(spec, warnings=(*(w for w in spec.warnings if w != warning), warning))
    if not isinstance(spec, LayoutSpec):
        for name, operand in spec.operands().items():
            check_cover(f"{spec.name or 'the table'}, {name}", operand, allow_holes)
    return spec


def mid_atom(spec: MmaSpec) -> str:
    """What to say where a later warpgroup's columns start inside a 128-byte swizzle atom of 16-bit elements, else empty."""
    bits = dtype_bits(spec.B.dtype)
    if spec.B.memory != "smem" or bits != 16 or not any(spec.atom_mnk) or spec.threads <= WARPGROUP:
        return ""
    columns = SWIZZLE_BYTES * 8 // bits
    starts = spec.C.tv[::WARPGROUP, 0] // spec.C.tile[0]
    late = np.flatnonzero(starts % columns)
    if not len(late):
        return ""
    group, start = int(late[0]), int(starts[late[0]])
    return (
        f"Warpgroup {group} starts in mid-atom: its columns begin at n={start}, {start % columns} columns into a "
        f"128-byte swizzle atom of {columns} {spec.B.dtype}. Where n is contiguous in shared memory (N-major B, or a "
        f"tile of C), take an N that is a multiple of {columns} for each warpgroup."
    )


def check_cover(name: str, operand: TVMap, allow_holes: bool = False) -> None:
    """Raise TexgenError where ``operand`` has holes or uneven owners (see ``check``)."""
    low, high = int(operand.tv.min()), int(operand.tv.max())
    if low < 0 or high >= operand.cells:
        raise TexgenError(
            f"{name}: the table reaches index {low if low < 0 else high}, outside its tile of {operand.tile[0]}x{operand.tile[1]} "
            f"(0 to {operand.cells - 1}): check the strides of its layout."
        )
    counts = operand.owner_counts
    holes = np.argwhere(counts == 0)
    if len(holes) and not allow_holes:
        raise TexgenError(
            f"{name}: {len(holes)} of {operand.cells} cells have no owner, for example {_cells(holes)}; "
            f"the table reaches {operand.cells - len(holes)} cells (largest index {int(operand.tv.max())}): "
            f"check its strides, or draw it as it is with --allow-holes."
        )
    owned = counts[counts > 0]
    if len(owned) and owned.min() != owned.max():
        usual = int(np.bincount(owned).argmax())
        odd = np.argwhere((counts != usual) & (counts > 0))
        row, column = odd[0]
        owners = " ".join(f"T{o.thread}V{o.value}" for o in operand.owners(int(row), int(column))[:SHOWN])
        if not allow_holes:
            raise TexgenError(
                f"{name}: most cells have {usual} owner{'s' if usual > 1 else ''} and {len(odd)} cells have another number, "
                f"for example {_cells(odd)}: ({row},{column}) has {counts[row, column]} ({owners}); "
                f"check its strides, or draw it as it is with --allow-holes."
            )


def _cells(where: np.ndarray) -> str:  # type: ignore[type-arg]
    shown = ", ".join(f"({r},{c})" for r, c in where[:SHOWN])
    return shown + (", …" if len(where) > SHOWN else "")
