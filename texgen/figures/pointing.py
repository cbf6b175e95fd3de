"""What the cells of a figure are, so that one can be pointed at: every panel with the tables of its cells.

Panels are general: one has owners (a thread-value map), offsets, or both, and panels of one name show one operand. A kind
of figure joins by a function in ``_KINDS`` that says what its panels' keys stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from texgen.figures.caption import AXES
from texgen.figures.copy import _drawn
from texgen.figures.model import Figure
from texgen.figures.options import FigureOptions
from texgen.figures.panels import cta_blocks, in_memory, memory_note
from texgen.layouts import IntArray, size
from texgen.specs import MEMORIES, LayoutSpec, TVMap
from texgen.words import by_rows, role, verb_of


@dataclass(frozen=True, eq=False)
class Cells:
    """What one panel's cells are.

    ``name`` stands before a coordinate (``C`` in C(3, 5)); ``owners`` says who holds them, ``unit`` what an owner is
    called (T, CTA), ``shape`` the shape of its thread and value modes; ``memory`` is a sentence in place of owners.
    ``offsets`` (an array of the tile's shape) or ``coords`` are where a layout puts them, ``modes`` that layout's shape;
    ``when`` tells two such panels apart (``before the swizzle``). ``bits`` is an element's width where its byte is to be
    named, ``banks`` whether its bank is. ``verb`` says what a thread does with its cells (T5 holds …). ``by`` are other
    threads that act on the cells, with their verb before a cell and after one: the lanes whose addresses ldmatrix reads.
    ``lies`` is the first and the last element in each cell of a picture of memory, column-major indices into a layout of
    ``whole[0]`` rows in which the operand begins at ``whole[1]``; -1 where none lies.
    """

    name: str
    tile: tuple[int, int]
    axes: tuple[str, str] = ("i", "j")
    owners: TVMap | None = None
    unit: str = "T"
    shape: Any = None
    memory: str = ""
    offsets: IntArray | None = None
    coords: tuple[IntArray, ...] = ()
    modes: Any = None
    when: str = ""
    bits: int = 0
    banks: bool = False
    by_rows: bool = False
    """The layout behind the owners counts its tile row by row."""
    verb: str = "holds"
    by: tuple[str, str, TVMap] | None = None
    lies: tuple[IntArray, ...] = ()
    whole: tuple[int, tuple[int, int]] = (0, (0, 0))
    of_picture: bool = False
    """The tile is the picture's own grid, whose cells are named by the numbers of its axes."""


@dataclass(frozen=True)
class Pointing:
    """The cells of every panel by its key.

    ``product`` says that C(m, n) is a sum over k of A(m, k) B(n, k); ``elements`` that all panels have the same threads and
    values, so that a single (thread, value) is followed through them instead of all that a thread holds. ``matrices`` has
    the number of each one's matrix, where a copy moves matrices.
    """

    cells: dict[str, Cells] = field(default_factory=dict)
    product: bool = False
    elements: bool = False
    matrices: IntArray | None = None


def pointing(spec: Any, figure: Figure, options: FigureOptions) -> Pointing:
    """The tables behind a figure's panels. A kind that is not known gives none: its figure stays static."""
    make = _KINDS.get(spec.kind)
    return make(spec, figure, options) if make is not None else Pointing()


def held(name: str, operand: TVMap, axes: tuple[str, str]) -> Cells:
    """The cells of an operand that threads hold, or that lies in memory."""
    cells = Cells(name, operand.tile, axes)
    if not in_memory(operand):
        return replace(cells, owners=operand, shape=tv_shape(operand), by_rows=by_rows(operand))
    if operand.threads > 1 and cta_blocks(operand):
        return replace(cells, owners=operand, unit="CTA", memory=f"in {MEMORIES[operand.memory]}")
    return replace(cells, memory=memory_note(operand))


def tv_shape(operand: TVMap) -> Any:
    """The shape of the thread and value modes as the operand's layout text has it; None where it has no such layout."""
    from texgen.sources.text import plain_layout

    layout = plain_layout(operand.layout) if operand.layout else None
    if layout is None or layout.rank != 2 or not isinstance(layout.shape, tuple):
        return None
    return layout.shape if tuple(map(size, layout.shape)) == operand.tv.shape else None


def _operand_key(key: str) -> str:
    """The operand of a panel: ``Cdetail`` is a part of C."""
    return key.removesuffix("detail")


def _of_operands(operands: dict[str, TVMap], figure: Figure) -> dict[str, Cells]:
    out: dict[str, Cells] = {}
    for panel in figure.panels:
        key = _operand_key(panel.key)
        if key in operands:
            out[panel.key] = held("" if key == "TV" else key, operands[key], AXES[key])
    return out


def _mma(spec: Any, figure: Figure, options: FigureOptions) -> Pointing:
    cells = _of_operands(spec.operands(), figure)
    return Pointing(cells, {"A", "B", "C"} <= set(cells) and spec.A.tile[1] == spec.B.tile[1])


def _copy(spec: Any, figure: Figure, options: FigureOptions) -> Pointing:
    found = _of_operands({x: _drawn(operand) for x, operand in spec.operands().items()}, figure)
    return Pointing({key: replace(cells, verb=verb_of(role(spec, _operand_key(key)))) for key, cells in found.items()})


def _tv(spec: Any, figure: Figure, options: FigureOptions) -> Pointing:
    return Pointing(_of_operands(spec.operands(), figure))


def _layout(spec: LayoutSpec, figure: Figure, options: FigureOptions) -> Pointing:
    rows, columns = spec.offsets.shape
    shape = spec.shape if len(spec.shape) == 2 else (1, *spec.shape)
    modes = shape if tuple(map(size, shape)) == (rows, columns) else None
    plain = Cells(
        "", (rows, columns), modes=modes, bits=spec.bits if spec.bits % 8 == 0 else 0,
        banks=bool(spec.bits and (options.banks or spec.swizzle is not None)),
    )  # fmt: skip
    out = {}
    for panel in figure.panels:
        when = {"before": "before the swizzle", "after": "after the swizzle"}.get(panel.key, "")
        offsets = spec.plain if panel.key == "before" and spec.plain is not None else spec.offsets
        out[panel.key] = replace(plain, offsets=None if spec.coords else offsets, coords=spec.coords, when=when)
    if options.banks:
        from texgen.banks import access
        from texgen.figures.banks import before

        for key, cells in out.items():
            found = access(before(spec) if key == "before" else spec, options.banks)
            tv = np.asarray(found.rows + rows * found.columns, dtype=np.int64)
            out[key] = replace(cells, owners=TVMap((rows, columns), tv), verb="takes")
    return Pointing(out)


def _chain(spec: Any, figure: Figure, options: FigureOptions) -> Pointing:
    from texgen.figures.chain_cells import cells_of
    from texgen.figures.chain_panels import View

    view = View.of(spec, options)
    out = {spec.operand: held(spec.operand, view.found.fragment, AXES[spec.operand])}
    out |= {p.key: cells_of(view, p) for p in figure.panels if p.key not in out}
    return Pointing(out, elements=True, matrices=view.matrices if view.found.is_matrix else None)


_KINDS: dict[str, Callable[[Any, Figure, FigureOptions], Pointing]] = {
    "mma": _mma, "copy": _copy, "tv": _tv, "layout": _layout, "chain": _chain,
}  # fmt: skip
