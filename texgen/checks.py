"""Checks that run before anything is drawn: a wrong table must not become a beautiful figure."""

from __future__ import annotations

import numpy as np

from texgen.errors import TexgenError
from texgen.specs import LayoutSpec, Spec, TVMap

SHOWN = 4


def check(spec: Spec, allow_holes: bool = False) -> Spec:
    """The spec itself, if every operand's table covers its tile evenly.

    Raises TexgenError that names cells: a hole (a cell that nobody owns; passed over with ``allow_holes``), or uneven
    owners (cells held by different numbers of threads).
    """
    if not isinstance(spec, LayoutSpec):
        for name, operand in spec.operands().items():
            check_cover(f"{spec.name or 'the table'}, {name}", operand, allow_holes)
    return spec


def check_cover(name: str, operand: TVMap, allow_holes: bool = False) -> None:
    """Raise TexgenError where ``operand`` has holes or uneven owners (see ``check``)."""
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
