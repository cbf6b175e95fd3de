"""What the cells of a chain's panels are: who gets what lies in one, who acts on it, and which elements lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from texgen.chains.shared import LINE
from texgen.figures.chain_panels import View, _index, _pitch, _run, places, unit_bits
from texgen.figures.model import Panel
from texgen.layouts import IntArray
from texgen.specs import TVMap

if TYPE_CHECKING:
    from texgen.figures.pointing import Cells

NAMES = {"gmem": "global memory", "smem": "shared memory", "registers": "register"}


def cells_of(view: View, panel: Panel) -> Cells:
    """The cells of a panel of memory or registers, named by the numbers of the picture's axes."""
    from texgen.figures.pointing import Cells

    grid = (panel.height, panel.width)
    own: dict[str, Any] = {"owners": TVMap(grid, places(view, panel)), "of_picture": True}
    if panel.key == "smem":
        own |= {"verb": "gets", "by": _acting(view, panel), "lies": _lying(view, panel)}
        own["whole"] = (view.spec.smem.offsets.shape[0], view.spec.at)
    elif panel.key == "gmem":
        own |= {"verb": "gets", "by": _copying(view, panel)}
    return Cells(NAMES[panel.key], grid, (panel.row_axis, panel.column_axis), **own)


def _acting(view: View, panel: Panel) -> tuple[str, str, TVMap] | None:
    """The lanes that name each address to ldmatrix, or where nobody reads by a copy, the threads that write there."""
    spec, found = view.spec, view.found
    if found.is_matrix:
        return "names the address of", "names its address", _grid(panel, _units(view, panel, np.where(found.gives, found.addresses // spec.bits, -1)))
    if spec.copy is None and spec.write is not None:
        offsets = spec.smem.offsets.reshape(-1, order="F")[spec.write.D.tv]
        return "writes", "writes it", _grid(panel, _units(view, panel, offsets))
    return None


def _copying(view: View, panel: Panel) -> tuple[str, str, TVMap] | None:
    """The threads that copy each cell of global memory to shared memory."""
    write = view.spec.write
    if write is None:
        return None
    row, column = (x[:, :: _run(view.spec)] for x in write.S.coordinates())
    row, column = (x // step * step for x, step in ((row, _pitch(panel.rows)), (column, _pitch(panel.columns))))
    down, over = _index(panel.rows, row), _index(panel.columns, column)
    return "copies", "copies it", _grid(panel, np.where((down >= 0) & (over >= 0), down + panel.height * over, -1))


def _lying(view: View, panel: Panel) -> tuple[IntArray, ...]:
    """The first and the last element in each cell, flat like the picture's table of places."""
    offsets = view.spec.smem.offsets.reshape(-1, order="F")
    at = _units(view, panel, offsets)
    order = np.argsort(offsets, kind="stable")
    order = order[at[order] >= 0]
    first, last = (np.full(panel.height * panel.width, -1) for _ in range(2))
    last[at[order]] = order
    first[at[order[::-1]]] = order[::-1]
    return first, last


def _units(view: View, panel: Panel, offsets: IntArray) -> IntArray:
    """Offsets in shared memory as places in its panel, column-major; -1 for negative ones and where the panel has none."""
    units = offsets // (unit_bits(view) // view.spec.bits)
    across = panel.width
    down = _index(panel.rows, units // across * LINE)
    return np.where((offsets >= 0) & (down >= 0), down + panel.height * (units % across), -1)


def _grid(panel: Panel, table: IntArray) -> TVMap:
    return TVMap((panel.height, panel.width), table)
