"""Room for the line that says what a step brings, in a page and in a frame of beamer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from texgen.figures import draw
from texgen.figures.caption import less
from texgen.figures.model import IN_MEMORY, Figure, LegendItem, Panel
from texgen.figures.options import FigureOptions
from texgen.figures.place import LEADING, assemble, label_room, legend_in_rows, legend_width
from texgen.specs import Spec

LINE_SIZE = 1.25
"""Font of a step's line in a page, in those of the caption."""
FRAME_MM = (154.0, 86.0)
"""Width and height that a figure may fill of a 16:9 frame of beamer, where it stands alone."""
TALK_MM = (140.0, 70.0)
"""The same below the title of a frame in somebody's talk, ``\\linewidth`` by ``.8\\textheight``."""
TEXT_MM = 1.75
"""The smallest font of axes, panel titles and legend in a frame, 5 pt; the title and a step's line are 1.25 times as large."""
SMALLEST_LABEL_MM = 4.0 * 25.4 / 72.27
"""Labels under this (4 pt, 9 pixels of 1080 for a letter's height) are hard to read in a frame."""
LABEL_FILL, LARGEST_LABEL = 0.92, 0.65
"""How much of the room in their cells labels take in a frame, up to how many cell heights; in a page they have more air."""
CELLS = (1.0, 1.4, 1.8)
"""Least widths of cells over their height that a frame tries, until labels can be read."""
FEWER_LABELS: dict[str, tuple[dict[str, str], ...]] = {
    "thread": ({"label": "thread"}, {"label": "none", "color_by": "thread"}),
    "value": ({"label": "value"}, {"label": "none", "color_by": "thread"}),
    "warp": ({"label": "warp"},),
    "k": ({"label": "thread"}, {"label": "none"}),
    "offset": ({"label": "none"},),
}
"""What a build-up shows in place of labels that nobody can read in a frame: the last needs no room."""


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


def in_frame(spec: Spec, options: FigureOptions, frame: tuple[float, float]) -> tuple[Placed, str]:
    """The figure as large as a frame of that width and height allows, with text that the last row can read, and a remark.

    Panels stand as in a page, or side by side where that makes them larger (k by k only where labels need it). Labels that
    cannot be read give way to fewer, unless ``options`` ask for them; the remark says so. The figure stands in the middle,
    what is written at the left begins at the frame's edge.
    """
    made, first = None, 0.0
    for figure in _drawn(spec, options):
        made = _largest(figure, frame, as_placed=options.slides == "k")
        size = label_mm(made.figure, frame)
        first = first or size
        if size >= SMALLEST_LABEL_MM and not _grouped(figure, options):
            break
    assert made is not None
    figure = made.figure
    slack = max(0.0, figure.height * frame[0] / frame[1] / figure.aspect - figure.width)
    middle = replace(figure, x0=round(figure.x0 - slack / 2, 3), width=round(figure.width + slack, 3))
    return replace(made, figure=middle), _remark(figure, first, label_mm(figure, frame))


def _grouped(figure: Figure, options: FigureOptions) -> bool:
    """True where a large tile shows warps, of which single threads and values are too small a part."""
    return options.slides in ("thread", "value") and options.label == "auto" and not options.overview and any(p.blocks for p in figure.panels)


def _drawn(spec: Spec, options: FigureOptions) -> Iterator[Figure]:
    """The figure without the lines of facts, then with fewer and fewer labels."""
    options = replace(options, caption=False)
    yield _clear(draw(spec, options), options.slides)
    if options.label == "auto" and not options.overview:
        for fewer in FEWER_LABELS[options.slides]:
            color_by = options.color_by or fewer.get("color_by", "")
            yield _clear(draw(spec, replace(options, label=fewer["label"], color_by=color_by)), options.slides)


def _clear(figure: Figure, by: str) -> Figure:
    """The figure without lines between cells where words stand across them, and without words that would come in piece by piece."""

    def clear(panel: Panel) -> Panel:
        blocks = panel.blocks if by == "warp" or (panel.fill == IN_MEMORY).any() else tuple(replace(b, name="") for b in panel.blocks)
        return replace(panel, blocks=blocks, lined=panel.lined and not panel.note and not any(b.name for b in blocks))

    return replace(figure, panels=tuple(map(clear, figure.panels)))


def _largest(figure: Figure, frame: tuple[float, float], as_placed: bool) -> Placed:
    """The figure with its panels as they stand or side by side, whichever has larger labels and cells; with ``as_placed`` as
    they stand if their labels can be read so. Cells are no wider than labels need, square where nothing helps them.
    """
    square: Placed | None = None
    for narrowest in CELLS:
        stands = _readable(figure, _rows(figure), frame, narrowest)
        if as_placed and label_mm(stands.figure, frame) >= SMALLEST_LABEL_MM:
            return stands
        beside = _readable(figure, [[*sorted(figure.panels, key=_order)]], frame, narrowest)
        made = max(stands, beside, key=lambda x: (label_mm(x.figure, frame), cell_mm(x.figure, frame)))
        if label_mm(made.figure, frame) >= SMALLEST_LABEL_MM:
            return made
        square = square or made
        if label_mm(square.figure, frame) * CELLS[-1] < SMALLEST_LABEL_MM:
            break
    assert square is not None
    return square


def _readable(figure: Figure, rows: list[list[Panel | None]], frame: tuple[float, float], narrowest: float) -> Placed:
    """The figure with its panels in those rows; text grows with the figure, which shrinks the cells in turn."""
    smallest = 0.0
    for _ in range(4):
        made = assemble(
            figure.kind, figure.name, figure.title, rows, figure.palette, [], "", [], figure.alt, figure.warnings, smallest, narrowest
        )  # fmt: skip
        label = max(made.label_size, min(LARGEST_LABEL, made.label_size * LABEL_FILL * label_room(made)))
        made = replace(made, label_size=round(label, 3), theme=figure.theme, print_width=figure.print_width)
        placed = in_page(_with_legend(made, [x for r in figure.legend for x in r], figure.legend_title, frame))
        smallest = round(max(smallest, TEXT_MM / cell_mm(placed.figure, frame)), 3)
    return placed


def _with_legend(figure: Figure, legend: list[LegendItem], title: str, frame: tuple[float, float]) -> Figure:
    """The figure with a legend below its panels that may be as wide as the frame."""
    rows = legend_in_rows(legend, title, 0.95 * frame[0] / TEXT_MM) if legend else ()
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


def cell_mm(figure: Figure, frame: tuple[float, float]) -> float:
    """The height of a cell in a frame that the figure fills."""
    return min(frame[0] / (figure.width * figure.aspect), frame[1] / figure.height)


def label_mm(figure: Figure, frame: tuple[float, float]) -> float:
    """The smallest font of the cells' labels in a frame that the figure fills; infinite without labels."""
    scales = [p.scale for p in figure.panels if p.lines]
    return cell_mm(figure, frame) * figure.label_size * min(scales, default=float("inf"))


def _remark(figure: Figure, first: float, size: float) -> str:
    """What the frame leaves out since it could not be read, or that its labels cannot; otherwise empty."""
    pt = 72.27 / 25.4
    if size < SMALLEST_LABEL_MM:
        return f"labels are {size * pt:.1f} pt in a frame, hard to read: draw {less(figure)}"
    if first < SMALLEST_LABEL_MM:
        left = "fewer labels are drawn" if any(p.lines or any(b.name for b in p.blocks) for p in figure.panels) else "labels are left out"
        part = ("one --operand, " if figure.kind != "layout" and len(figure.panels) > 1 else "") + "fewer --rows and --cols"
        return f"{left}: all would be {first * pt:.1f} pt in a frame, hard to read (draw {part} to have them, or take --label full)"
    return ""


def _order(panel: Panel) -> int:
    return "ABC".index(panel.key) if panel.key in ("A", "B", "C") else 3
