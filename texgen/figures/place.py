"""Where everything stands: panels, title, caption and legend, in cells."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from texgen.figures.labels import text_width
from texgen.figures.model import Figure, LegendItem, Line, Panel
from texgen.visible import one_line

LABEL_SIZE = {0: 0.36, 1: 0.42, 2: 0.36, 3: 0.28}
"""Largest label font by the number of label lines, in cell heights."""
WIDEST_CELL = 1.55
NARROWEST_LABEL = 0.2
WORDS_APART = 0.35
"""Ems more between two cells whose labels have spaces, which are 0.28 ems."""
TEXT_SIZE = 0.42
TICK_SIZE = 0.85
"""Of numbers and names along panels, as a share of the text's."""
LARGEST_ROW_NAME = 0.9
"""Of a row's height."""
LEADING = 1.45
SWATCH = 2.2
"""What a swatch and its gaps cost in a row of the legend, in ems."""
NARROWEST_LEGEND = 20.0


def cell_shape(panels: Sequence[Panel], narrowest: float = 1.0) -> tuple[float, float]:
    """(aspect of a cell, label font in cell heights): a cell widens for long labels, then the font shrinks to fit."""
    count = max((len(p.lines) for p in panels), default=0)
    size = LABEL_SIZE[min(count, 3)]
    longest = max((label_width(s) for p in panels for line in p.lines for s in _distinct(line)), default=0.0)
    aspect = min(max(narrowest, longest * size + 0.16), max(narrowest, WIDEST_CELL))
    if longest:
        size = max(min(size, (aspect - 0.12) / longest), NARROWEST_LABEL)
    return round(aspect, 2), round(size, 3)


def label_width(label: str) -> float:
    """The room of a cell's label in ems: one of several words stands further from its neighbours than its words do."""
    return text_width(label) + (WORDS_APART if " " in label else 0.0)


def label_room(figure: Figure) -> float:
    """How many times larger labels may be and still fit their cells: lines of 0.88 font sizes, 0.08 cell heights beside them."""
    lines = max((len(p.lines) for p in figure.panels), default=0)
    if not lines:
        return 1.0
    labels = {label for p in figure.panels for line in p.lines for row in line for label in row}
    longest = max(label_width(label) for label in labels) or 1.0
    return max(1.0, min(0.9 / (0.88 * lines), (figure.aspect - 0.08) / longest) / figure.label_size)


def _distinct(line: list[list[str]]) -> set[str]:
    return {s for row in line for s in row}


def margins(text_size: float, aspect: float, panels: Sequence[Panel] = ()) -> tuple[float, float]:
    """(left, top) of a panel that its axis and title need, in cells."""
    names = [text_width(name) for p in panels for name in p.row_names]
    return max(3.5, TICK_SIZE * max(names, default=0.0) + 0.6) * text_size / aspect, 2.9 * text_size


def title_width(title: str) -> float:
    """The width of a bold title in ems."""
    return 1.1 * text_width(title)


def text_size(width: float, height: float) -> float:
    """The font of titles and axes in cell heights: it grows with the picture, so that it can be read when that is shrunk."""
    return round(TEXT_SIZE * max(1.0, max(width, height) / 48), 3)


def _fitting(size: float, panels: Sequence[Panel]) -> float:
    """The font, where rows have names no larger than that each name fits its row."""
    return min([size, *(LARGEST_ROW_NAME * p.scale for p in panels if p.row_names)])


def grid(placed: list[list[Panel | None]], smallest: float = 0.0, narrowest: float = 1.0) -> tuple[list[Panel], float, float]:
    """Panels placed in rows and columns (None: left empty): (panels with positions, aspect, label size)."""
    present = [p for row in placed for p in row if p is not None]
    aspect, label = cell_shape(present, narrowest)
    columns = list(zip(*placed, strict=True))
    widths = [max((p.width * p.scale for p in column if p), default=0.0) for column in columns]
    heights = [max((p.height * p.scale for p in row if p), default=0.0) for row in placed]
    size = max(_fitting(text_size(sum(widths), sum(heights)), present), smallest)
    left, top = margins(size, aspect, present)
    for at, column in enumerate(columns):  # a title may be wider than its panel
        titles = [title_width(p.title) * size / aspect for p in column if p]
        widths[at] = max([widths[at], *titles])
    out: list[Panel] = []
    y = 0.0
    for row, height in zip(placed, heights, strict=True):
        x = 0.0
        for panel, width in zip(row, widths, strict=True):
            if panel is not None:
                out.append(replace(panel, x=round(x, 3), y=round(y, 3)))
            x += width + left + 0.5
        y += height + top + 0.5
    return out, aspect, label


def assemble(
    kind: str, name: str, title: str, placed: list[list[Panel | None]], palette: tuple[str, ...],
    legend: Sequence[LegendItem], legend_title: str, lines: Sequence[Line], alt: str, warnings: Sequence[str] = (),
    smallest: float = 0.0, narrowest: float = 1.0,
) -> Figure:  # fmt: skip
    """A Figure with its extent: panels from (0, 0), title above, legend and caption below.

    ``smallest`` is the font that titles and axes have at least, in cells, ``narrowest`` the least width of a cell over its height.

    What was typed in comes with its acting characters written out (``texgen.visible``), so that their room is counted.
    """
    name, title, alt = one_line(name), one_line(title), one_line(alt)
    lines = [replace(line, text=one_line(line.text)) for line in lines]
    placed = [[p and replace(p, title=one_line(p.title)) for p in row] for row in placed]
    panels, aspect, label = grid(placed, smallest, narrowest)
    right = max(p.x + p.width * p.scale for p in panels)
    bottom = max(p.y + p.height * p.scale for p in panels)
    size = text_size(sum(max((p.width * p.scale for p in c if p), default=0.0) for c in zip(*placed, strict=True)),
                     sum(max((p.height * p.scale for p in row if p), default=0.0) for row in placed))  # fmt: skip
    size = max(_fitting(size, panels), smallest)
    left, top = margins(size, aspect, panels)
    corner = placed[0][0] is None
    room = max((right + left) * aspect / size, 46.0)
    wide, high = 0.0, 0.0
    if corner:  # the empty place above A and left of B
        wide, high = (panels[0].x - 1.5 * size / aspect) * aspect / size, panels[0].height / size
    wrapped = [piece for line in lines for piece in wrap(line, wide or room)]
    legend_rows = legend_in_rows(legend, legend_title, max((right + left) * aspect / size, NARROWEST_LEGEND))
    legend_em = legend_width(legend_rows, legend_title)
    rows = len(wrapped) + len(legend_rows)
    corner = (
        corner and rows * LEADING <= high and max([legend_em, *(text_width(x.text, x.code) for x in wrapped)]) <= wide
    )
    if not corner:
        wrapped = [piece for line in lines for piece in wrap(line, room)]
        rows = len(wrapped) + len(legend_rows)
    below = 0.0 if corner else max([legend_em, *(text_width(x.text, x.code) for x in wrapped)])
    above = [title_width(title) * 1.25, *(title_width(p.title) + p.x * aspect / size for p in panels)]
    width = max(right + left, below * size / aspect, max(above) * size / aspect + left) + 0.4 / aspect
    y0 = -(top + (2.0 * size if title else 0.2))
    height = bottom - y0 + (0.3 if corner else (rows * LEADING + 0.9) * size + 0.1)
    return Figure(
        kind=kind, name=name, title=title, panels=tuple(panels), palette=palette, legend=legend_rows,
        legend_title=legend_title, lines=tuple(wrapped), alt=alt, aspect=aspect, label_size=label, text_size=size,
        x0=round(-left, 3), y0=round(y0, 3), width=round(width, 3), height=round(height, 3),
        caption_y=round(0.9 * size if corner else bottom + 1.35 * size, 3), warnings=tuple(warnings),
    )  # fmt: skip


def legend_in_rows(legend: Sequence[LegendItem], title: str, room: float) -> tuple[tuple[LegendItem, ...], ...]:
    """The legend's swatches in rows of at most ``room`` ems; the title opens the first row."""
    rows: list[list[LegendItem]] = []
    used = room + 1.0 if not title else text_width(title) + 1.0
    if title:
        rows.append([])
    for item in legend:
        width = SWATCH + text_width(item.text)
        if used + width > room and (not rows or rows[-1]):
            rows.append([])
            used = 0.0
        rows[-1].append(item)
        used += width
    return tuple(tuple(row) for row in rows)


def legend_width(rows: Sequence[Sequence[LegendItem]], title: str) -> float:
    """The width of the widest row in ems."""
    widths = [sum(SWATCH + text_width(item.text) for item in row) for row in rows]
    if widths and title:
        widths[0] += text_width(title) + 1.0
    return max(widths, default=0.0)


def wrap(line: Line, room: float) -> list[Line]:
    """A caption line broken to ``room`` ems; layout strings stay whole, since a broken one cannot be copied."""
    if line.code or text_width(line.text) <= room:
        return [line]
    return [Line(piece) for piece in textwrap.wrap(line.text, max(20, int(room / 0.5)), break_long_words=False)]
