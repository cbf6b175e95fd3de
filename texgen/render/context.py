"""What the templates get: the figure and, a panel, its rectangles, label rows, ticks and positions.

Everything a template prints is settled here, in cells; the templates only write it down. ``docs/`` lists the names that
an author who overrides a template may rely on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from texgen.figures.caption import less
from texgen.figures.labels import text_width
from texgen.figures.model import DIMMED, HOLE, IN_MEMORY, Figure, LegendItem, Panel, rectangles, ticks
from texgen.figures.palette import DIM, DIM_INK, INK, MEMORY
from texgen.figures.place import LEADING, TICK_SIZE, label_room, legend_width, title_width

FILL_NAMES = {HOLE: "Hole", DIMMED: "Dim", IN_MEMORY: "Memory"}
FILL_COLORS = {HOLE: "FFFFFF", DIMMED: DIM, IN_MEMORY: MEMORY}
RUNS_A_PATH = 20
"""Rectangles in one TeX path: the DVI driver's time is quadratic in it."""
NAMED_BLOCKS = 1500
LARGEST_BLOCK_NAME = 2.2
HIGHEST_TICK = 1.5
"""How many times larger numbers across a panel may be before they meet its title."""
BAR_AIR, SMALLEST_BAR_NAME = 0.1, 0.5
LONGEST_BOX_PT = 14_000.0
"""TeX's lengths end at 16,383 pt, and texgen.sty makes these cells larger."""
CELL_MM = 5.0
WIDEST_MM = 5000.0
"""TeX ends at 5758 mm, Acrobat refuses pages over 5080 mm."""


def context(figure: Figure) -> dict[str, Any]:
    """The names that every template may use: ``figure``, ``panels``, ``legend``, ``lines``, ``version``."""
    from texgen import __version__

    size = figure.text_size
    legend_y = figure.caption_y
    first = legend_y + LEADING * size * len(figure.legend)
    head = {name: getattr(figure, name) for name in (
        "kind", "name", "title", "alt", "aspect", "label_size", "text_size", "palette", "theme", "print_width", "legend_title", "x0", "y0", "width", "height"
    )}  # fmt: skip
    cells = max(figure.width * figure.aspect, figure.height)
    head |= {
        "cell_mm": min(CELL_MM, WIDEST_MM / cells),
        "width_cells": figure.width * figure.aspect,
        "left": figure.x0,
        "title_y": figure.y0 + 1.35 * size,
        "legend_y": legend_y,
        "extents": extents(figure),
        "label_room": label_room(figure),
        "title_room": title_room(figure),
        "tick_room": tick_room(figure),
        "name_room": name_room(figure),
        "tick_width": tick_width(figure),
        "less": less(figure),
        "legend_height": LEADING * size * len(figure.legend),
        "ink": INK, "dim": DIM, "dim_ink": DIM_INK, "memory": MEMORY,
    }  # fmt: skip
    return {
        "figure": head,
        "panels": [panel_context(p, figure) for p in figure.panels],
        "legend": [
            (legend_y + i * LEADING * size, [_swatch(item, figure.palette) for item in row])
            for i, row in enumerate(figure.legend)
        ],
        "lines": [(line, first + i * LEADING * size) for i, line in enumerate(figure.lines)],
        "version": __version__,
    }


def extents(figure: Figure) -> list[tuple[float, float]]:
    """(width, height) of panels, title, legend and caption, in heights of a cell.

    Heights are what each adds to the figure; a legend and a caption in the empty place above A add nothing.
    """
    size, aspect = figure.text_size, figure.aspect
    left = -figure.x0 * aspect
    titles = [title_width(p.title) * size + p.x * aspect for p in figure.panels]
    right = max([(p.x + p.width * p.scale) * aspect for p in figure.panels] + titles)
    bottom = max(p.y + p.height * p.scale for p in figure.panels)
    below = figure.caption_y > bottom
    title = 2.0 * size if figure.title else 0.0
    above = -figure.y0 - title  # of the panels' own titles and numbers
    texts = [
        (title_width(figure.title) * 1.25 * size, title),
        (legend_width(figure.legend, figure.legend_title) * size, LEADING * size * len(figure.legend) * below),
        (max((text_width(x.text, x.code) for x in figure.lines), default=0.0) * size, LEADING * size * len(figure.lines) * below),
    ]  # fmt: skip
    return [(left + right + 0.4, above + bottom + 0.9 * size), *texts]


def title_room(figure: Figure) -> float:
    """How many times larger the panels' titles may be and still end before the next panel or the figure's edge."""
    edge = max(p.x + max(p.width * p.scale, title_width(p.title) * figure.text_size / figure.aspect) for p in figure.panels)
    rooms = [
        (min((q.x for q in figure.panels if q.x > p.x), default=edge) - p.x) * figure.aspect / (title_width(p.title) * figure.text_size)
        for p in figure.panels if p.title
    ]  # fmt: skip
    return max(1.0, min(rooms, default=1.0))


def tick_room(figure: Figure) -> float:
    """How many times larger the numbers and names along panels may be and still stand apart, below the panel's title."""
    rooms = [HIGHEST_TICK]
    for panel in figure.panels:
        size = TICK_SIZE * figure.text_size / panel.scale
        across, down = _ticks(panel, figure)
        apart = min((b - a for (a, _), (b, _) in pairwise(across)), default=panel.width)
        rooms.append(apart * figure.aspect / (size * (max((text_width(t) for _, t in across), default=0.0) + 0.25)))
        rooms.append(min((b - a for (a, _), (b, _) in pairwise(down)), default=panel.height) / (0.95 * size))
    return max(1.25, min(rooms))


def name_room(figure: Figure) -> float:
    """The same of rows' names alone, where the numbers across are left out; 0 where rows have numbers."""
    return min(0.95 * p.scale / (TICK_SIZE * figure.text_size) if p.row_names else 0.0 for p in figure.panels)


def tick_width(figure: Figure) -> tuple[float, float]:
    """(width of the longest number or name left of the panels with its gap, what the picture has for it), in heights of a cell."""
    names = [text_width(t) for p in figure.panels if p.x == 0 for _, t in _ticks(p, figure)[1]]
    return TICK_SIZE * figure.text_size * (max(names, default=0.0) + 0.3), -figure.x0 * figure.aspect + 0.38


def _ticks(panel: Panel, figure: Figure) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """(position, text) of what stands across a panel, and down it."""
    size = figure.text_size / panel.scale
    wide_step = _step(size * TICK_SIZE * (text_width(str(int(panel.columns[-1]))) + 0.5) / figure.aspect)
    return (
        _named(panel.column_names) or ticks(panel.columns, wide_step),
        _named(panel.row_names) or ticks(panel.rows, _step(size * 0.95)),
    )


def panel_context(panel: Panel, figure: Figure) -> dict[str, Any]:
    """One panel's numbers; see ``context``."""
    size = figure.text_size / panel.scale
    (left, wide), (top, high) = _numbered(panel.columns), _numbered(panel.rows)
    down, across = (left, top + high), (left + wide, top)
    across_ticks, down_ticks = _ticks(panel, figure)
    return {
        "key": panel.key, "title": panel.title, "x": panel.x, "y": panel.y, "scale": panel.scale, "text_size": size, "lined": panel.lined,
        "width": panel.width, "height": panel.height, "row_axis": panel.row_axis, "column_axis": panel.column_axis,
        "origin": (left, top),
        "row_step": across if panel.transposed else down,
        "column_step": down if panel.transposed else across,
        "fills": list(_fills(panel)),
        "marks": _marks(panel),
        "label_rows": _label_rows(panel),
        "label_run": (_run(figure.label_size), _run(figure.label_size / figure.aspect)),
        "bars": _bars(panel, figure, size),
        "blocks": _blocks(panel, figure.aspect, size),
        "note_size": (note_size := _note_size(panel, figure.aspect, size)),
        "note_lines": _note(panel, figure.aspect, note_size * size),
        "across_ticks": across_ticks,
        "down_ticks": down_ticks,
        "across": _spread(across_ticks, panel.width),
        "down": _spread(down_ticks, panel.height),
        "tick_run": (_run(TICK_SIZE * figure.text_size), _run(TICK_SIZE * figure.text_size / figure.aspect)),
        "corner": (-0.3 * size / figure.aspect, -0.42 * size),
        "title_y": -1.65 * size,
    }  # fmt: skip


def _numbered(numbers: np.ndarray) -> tuple[float, float]:
    """Where the cell of number 0 would begin, and how far it is from a number to the next, in cells, so that the middle of the
    cell of number i is half a step behind i steps. Numbers of an axis may count elements or bytes, several a cell.
    """
    apart = set(np.diff(numbers).tolist())
    step = 1.0 / apart.pop() if len(apart) == 1 else 1.0
    return 0.5 - step * (float(numbers[0]) + 0.5), step


def _fills(panel: Panel) -> Iterator[tuple[str, list[tuple[int, int, int, int]]]]:
    """(name, rectangles) with at most RUNS_A_PATH rectangles each, one name after another."""
    by_fill: dict[int, list[tuple[int, int, int, int]]] = {}
    for rectangle, fill in rectangles(panel.fill):
        by_fill.setdefault(fill, []).append(rectangle)
    for fill in sorted(by_fill):
        runs = by_fill[fill]
        for i in range(0, len(runs), RUNS_A_PATH):
            yield fill_name(fill), runs[i : i + RUNS_A_PATH]


def _swatch(item: LegendItem, palette: tuple[str, ...]) -> dict[str, Any]:
    """``fill`` is the fill's name and ``color`` its RRGGBB, both None for the mark of a shared cell."""
    if item.fill is None:
        return {"fill": None, "color": None, "text": item.text}
    return {"fill": fill_name(item.fill), "color": fill_color(item.fill, palette), "text": item.text}


def fill_name(fill: int) -> str:
    """``3`` for a palette index, ``Dim``, ``Hole`` or ``Memory`` for the others."""
    return FILL_NAMES.get(fill, str(fill))


def fill_color(fill: int, palette: tuple[str, ...]) -> str:
    return FILL_COLORS[fill] if fill in FILL_COLORS else palette[fill]


def _marks(panel: Panel) -> list[list[tuple[int, int]]]:
    if panel.shared is None:
        return []
    rows = [[(r, c) for c, marked in enumerate(row) if marked] for r, row in enumerate(panel.shared.tolist())]
    return [row for row in rows if row]


def _label_rows(panel: Panel) -> list[list[list[tuple[str, bool]]]]:
    """Row → line → cell → (text, greyed); lines that are empty in the whole row are left out."""
    if not panel.lines:
        return []
    dim = (panel.fill == DIMMED).tolist()
    out = []
    for r, dims in enumerate(dim):
        out.append([list(zip(line[r], dims, strict=True)) for line in panel.lines])
    return out


def _run(size: float) -> int:
    """How many cells with text of ``size`` cells TeX can set in one box: it measures them at 10 pt."""
    return max(1, int(LONGEST_BOX_PT / 10 * size))


def _blocks(panel: Panel, aspect: float, size: float) -> list[dict[str, Any]]:
    named = len(panel.blocks) <= NAMED_BLOCKS
    out = []
    for b in panel.blocks:
        row, column, height, width = b.named or (b.row, b.column, b.height, b.width)
        fit = min(0.6 * height, 0.85 * width * aspect / max(text_width(b.name), 0.5)) / size
        name_size = min(fit, LARGEST_BLOCK_NAME)
        out.append({
            "row": b.row, "column": b.column, "height": b.height, "width": b.width, "name": b.name, "strong": b.strong,
            "x": column + width / 2, "y": row + height / 2,
            "size": name_size if named and b.name else 0.0, "room": fit / name_size,
        })  # fmt: skip
    return out


def _bars(panel: Panel, figure: Figure, size: float) -> list[dict[str, Any]]:
    """Bars with a little air above and below; a name is left out where it would be too small."""
    out = []
    for b in panel.bars:
        fit = min(0.6, 0.85 * b.width * figure.aspect / max(text_width(b.name), 0.5)) / size
        out.append({
            "x": b.x, "y": b.row + BAR_AIR, "width": b.width, "height": 1 - 2 * BAR_AIR, "name": b.name, "detail": b.detail,
            "fill": fill_name(b.fill), "color": fill_color(b.fill, figure.palette),
            "middle": b.x + b.width / 2, "size": min(fit, 0.85) if b.name and fit >= SMALLEST_BAR_NAME else 0.0,
        })  # fmt: skip
    return out


def _named(names: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(i, name) for i, name in enumerate(names) if name]


def _note_size(panel: Panel, aspect: float, size: float) -> float:
    """How large a note is beside the panel's other text, so that its longest word fits the panel's width."""
    longest = max(map(text_width, panel.note.split()), default=0.0)
    return min(1.0, panel.width * aspect / (size * (longest + 1.0)))


def _note(panel: Panel, aspect: float, size: float) -> list[tuple[str, float]]:
    """A note's lines, broken to the panel's width, with their base lines from the middle of the panel."""
    if not panel.note:
        return []
    room = panel.width * aspect / size - 1.0
    lines, line = [], ""
    for word in panel.note.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer) > room:
            lines.append(line)
            longer = word
        line = longer
    lines.append(line)
    top = panel.height / 2 - (len(lines) - 1) * 0.6 * size + 0.35 * size
    return [(text, top + i * 1.2 * size) for i, text in enumerate(lines)]


def _step(needed: float) -> int:
    """The smallest of 1, 2, 4, 8, … cells that holds a number of that size."""
    step = 1
    while step < needed:
        step *= 2
    return step


def _spread(marked: list[tuple[int, str]], length: int) -> list[str]:
    out = [""] * length
    for position, text in marked:
        out[position] = text
    return out
