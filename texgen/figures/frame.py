"""Room for the line that says what a step brings, in a page and in a frame of beamer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from texgen.figures.model import Figure, LegendItem, Panel
from texgen.figures.place import LEADING, assemble, legend_in_rows, legend_width

LINE_SIZE = 1.25
"""Font of a step's line in a page, in those of the caption."""
FRAME_MM = (154.0, 86.0)
"""Width and height of a 16:9 frame of beamer that a figure may fill."""
TEXT_MM = 1.75
"""The smallest font of axes, panel titles and legend in a frame, 5 pt; the title and a step's line are 1.25 times as large."""
SMALLEST_LABEL_MM = 4.0 * 25.4 / 72.27
"""Labels under this (4 pt, 9 pixels of 1080 for a letter's height) are hard to read in a frame."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A figure with the base line and the font of its steps' line, in cells."""

    figure: Figure
    line_y: float
    line: float

    @property
    def room(self) -> float:
        """How many ems a step's line has."""
        return self.figure.width * self.figure.aspect / self.line - 1.0


def in_page(figure: Figure) -> Placed:
    """The line right below the panels, the rest as it was."""
    line = LINE_SIZE * figure.text_size
    bottom = max(p.y + p.height * p.scale for p in figure.panels)
    below = figure.caption_y > bottom
    room = LEADING * line + 0.4 * figure.text_size
    made = replace(
        figure, height=round(figure.height + room, 3), caption_y=round(figure.caption_y + room * below, 3)
    )
    return Placed(made, round(bottom + line + 0.5 * figure.text_size, 3), line)


def in_frame(figure: Figure, as_placed: bool) -> Placed:
    """As large as a frame allows, with text that the last row can read.

    Panels stand side by side where that makes them larger, unless ``as_placed``. The figure stands in the middle, what is
    written at the left begins at the frame's edge.
    """
    arrangements = [_rows(figure)]
    if not as_placed:
        arrangements.append([[*sorted(figure.panels, key=_order)]])
    placed = max((_readable(figure, x) for x in arrangements), key=lambda x: cell_mm(x.figure))
    made = placed.figure
    slack = max(0.0, made.height * FRAME_MM[0] / FRAME_MM[1] / made.aspect - made.width)
    return replace(placed, figure=replace(made, x0=round(made.x0 - slack / 2, 3), width=round(made.width + slack, 3)))


def _readable(figure: Figure, rows: list[list[Panel | None]]) -> Placed:
    """The figure with its panels in those rows; text grows with the figure, which shrinks the cells in turn."""
    smallest = 0.0
    for _ in range(4):
        made = assemble(
            figure.kind, figure.name, figure.title, rows, figure.palette, [], "", [], figure.alt, figure.warnings, smallest
        )  # fmt: skip
        made = replace(made, theme=figure.theme, print_width=figure.print_width)
        placed = in_page(_with_legend(made, [x for r in figure.legend for x in r], figure.legend_title))
        smallest = round(max(smallest, TEXT_MM / cell_mm(placed.figure)), 3)
    return placed


def _with_legend(figure: Figure, legend: list[LegendItem], title: str) -> Figure:
    """The figure with a legend below its panels that may be as wide as the frame."""
    rows = legend_in_rows(legend, title, 0.95 * FRAME_MM[0] / TEXT_MM) if legend else ()
    size = figure.text_size
    bottom = max(p.y + p.height * p.scale for p in figure.panels)
    return replace(
        figure,
        legend=rows,
        legend_title=title if legend else "",
        width=max(figure.width, round((legend_width(rows, title) + 1.0) * size / figure.aspect, 3) if legend else 0.0),
        height=round(bottom - figure.y0 + (len(rows) * LEADING + 0.9) * size + 0.1, 3),
        caption_y=round(bottom + 1.35 * size, 3),
    )


def _rows(figure: Figure) -> list[list[Panel | None]]:
    """The panels in the rows and columns in which they stand."""
    ys, xs = sorted({p.y for p in figure.panels}), sorted({p.x for p in figure.panels})
    at = {(p.y, p.x): p for p in figure.panels}
    return [[at.get((y, x)) for x in xs] for y in ys]


def cell_mm(figure: Figure) -> float:
    """The height of a cell in a frame that the figure fills."""
    return min(FRAME_MM[0] / (figure.width * figure.aspect), FRAME_MM[1] / figure.height)


def frame_remark(figure: Figure) -> str:
    """A remark where labels will be too small to read in a frame, otherwise empty."""
    size = cell_mm(figure) * figure.label_size
    if size >= SMALLEST_LABEL_MM or not any(p.lines for p in figure.panels):
        return ""
    less = {"layout": "fewer --rows and --cols"}.get(figure.kind, "one --operand, fewer --rows and --cols, --label thread, or an --overview")
    return f"labels are {size * 72.27 / 25.4:.1f} pt in a frame, hard to read: draw {less}"


def _order(panel: Panel) -> int:
    return "ABC".index(panel.key) if panel.key in ("A", "B", "C") else 3
