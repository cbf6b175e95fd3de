"""A figure as data: panels of cells, legend, caption and alternative text. Templates turn it into TikZ, SVG or text.

Positions are in cells (x in cell widths, y in cell heights, downwards); sizes of text are in cell heights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from texgen.layouts import IntArray

BoolArray: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

HOLE, DIMMED, IN_MEMORY = -1, -2, -3
"""Fills that are no palette index: nobody owns the cell, greyed out by a highlight, held by no thread."""

Rectangle: TypeAlias = tuple[int, int, int, int]
"""(row, column, height, width) in cells of a panel."""


@dataclass(frozen=True)
class Block:
    """An outlined part of a panel with a name at its centre, or at that of ``named``, a part of it."""

    row: int
    column: int
    height: int
    width: int
    name: str
    strong: bool = False
    named: Rectangle | None = None


@dataclass(frozen=True)
class Bar:
    """A part of a row in colour, with a name at its middle where that fits; ``x`` and ``width`` in cells. ``detail``: in words."""

    row: int
    x: float
    width: float
    fill: int
    name: str = ""
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """One grid of cells.

    ``fill`` has one palette index a cell (or HOLE, DIMMED, IN_MEMORY); ``lines`` the label lines from top to bottom, each
    a list of rows of strings; ``shared`` marks cells with several owners; ``rows`` and ``columns`` are the indices that
    the panel's cells have in the tile, as its axes print them; ``transposed`` says that the operand's first index runs
    across.
    """

    key: str
    title: str
    rows: IntArray
    columns: IntArray
    row_axis: str
    column_axis: str
    fill: IntArray
    lines: tuple[list[list[str]], ...] = ()
    shared: BoolArray | None = None
    blocks: tuple[Block, ...] = ()
    note: str = ""
    transposed: bool = False
    scale: float = 1.0
    """How much larger its cells are than those of the other panels."""
    lined: bool = True
    """Whether lines divide its cells; in a large panel of blocks they would be a grey mesh."""
    row_names: tuple[str, ...] = ()
    """Words in place of the rows' numbers, and in place of the columns' (empty: none there)."""
    column_names: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    """Bars over its rows, for what begins and ends between two columns."""
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class LegendItem:
    """A swatch (palette index, or None for the mark of a shared cell) and its meaning."""

    fill: int | None
    text: str


@dataclass(frozen=True)
class Line:
    """A line of text below the panels; ``code`` lines are layout strings, set in a typewriter face."""

    text: str
    code: bool = False


@dataclass(frozen=True, eq=False)
class Figure:
    """Everything that a template needs. ``width`` and ``height`` are the extent in cells, text included."""

    kind: str
    name: str
    title: str
    panels: tuple[Panel, ...]
    palette: tuple[str, ...]
    legend: tuple[tuple[LegendItem, ...], ...] = ()
    """Rows of swatches; ``legend_title`` stands before the first."""
    legend_title: str = ""
    lines: tuple[Line, ...] = ()
    alt: str = ""
    aspect: float = 1.0
    """Width of a cell over its height."""
    label_size: float = 0.36
    """Height of a label's font, in cell heights."""
    text_size: float = 0.42
    """Height of the font of titles, axes and caption, in cell heights."""
    x0: float = 0.0
    y0: float = 0.0
    width: float = 0.0
    height: float = 0.0
    theme: str = "light"
    print_width: str = ""
    """The length that the TikZ figure is scaled to, empty for its natural size."""
    caption_y: float = 0.0
    """Base line of the legend, or of the first line where there is no legend."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def cells(self) -> int:
        return sum(p.height * p.width for p in self.panels)


def rectangles(key: IntArray) -> list[tuple[Rectangle, int]]:
    """A partition of a grid into rectangles of equal key: runs along rows, then equal runs joined downwards.

    Fills drawn so are several times fewer than cells, which is what makes TeX and converters quick.
    """
    height, width = key.shape
    change = np.ones((height, width), dtype=bool)
    change[:, 1:] = key[:, 1:] != key[:, :-1]
    done: list[tuple[Rectangle, int]] = []
    open_runs: dict[tuple[int, int, int], int] = {}
    rows, starts = np.nonzero(change)
    bounds = np.searchsorted(rows, np.arange(height + 1))
    for r in range(height):
        begin = starts[bounds[r] : bounds[r + 1]]
        ends = np.append(begin[1:], width)
        runs = zip(begin.tolist(), ends.tolist(), key[r, begin].tolist(), strict=True)
        still: dict[tuple[int, int, int], int] = {run: open_runs.pop(run, r) for run in runs}
        done += [((top, c0, r - top, c1 - c0), k) for (c0, c1, k), top in open_runs.items()]
        open_runs = still
    done += [((top, c0, height - top, c1 - c0), k) for (c0, c1, k), top in open_runs.items()]
    done.sort()
    return done


def ticks(indices: IntArray, step: int) -> list[tuple[int, str]]:
    """(position, text) of an axis' numbers: every ``step``-th index, and the first after a gap that a crop left.

    Indices may rise by more than one a cell, as bytes and banks do.
    """
    shown = []
    last = None
    rise = max(1, int(np.diff(indices).min())) if len(indices) > 2 else 1
    for position, index in enumerate(indices.tolist()):
        if index % (rise * step) == 0 or (last is not None and index != last + rise):
            shown.append((position, str(index)))
        last = index
    return shown
