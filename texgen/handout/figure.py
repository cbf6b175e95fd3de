"""The figure of a sheet: a part of the target that prints large enough, with some of its cells blank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from texgen.figures import Figure, FigureOptions, draw
from texgen.figures.model import HOLE, Block, Panel
from texgen.figures.panels import in_memory, operand_letters
from texgen.handout.ask_tv import LISTED
from texgen.handout.dice import Dice
from texgen.handout.questions import Askable, Cell, Question, View, decoy_counts
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, TVMap, TVSpec

PAPERS = {"a4": (210.0, 297.0), "letter": (215.9, 279.4)}
"""Width and height in millimetres."""
MARGIN = 16.0
SMALLEST_PT, LARGEST_PT = 5.0, 8.5
"""Sizes of a label in print, in points."""
TALLEST = 0.7
"""The most of a page's height that a figure takes, so that questions follow it."""
SIDES = (64, 32, 24, 16, 12, 8, 4, 2)
"""Sides to which a figure is cropped."""
MOST_BLANK = 0.5
"""The most of a figure's cells that may be blank."""
PT_MM = 25.4 / 72.27
NOBODY = "–"
"""The label of a cell without an owner."""


@dataclass(frozen=True)
class Shown:
    """A figure, and the width in millimetres that it prints at."""

    figure: Figure
    width: float

    @property
    def label_pt(self) -> float:
        """The height of a label's font in print."""
        return self.width / (self.figure.width * self.figure.aspect) * self.figure.label_size / PT_MM


def operands(spec: Askable) -> dict[str, TVMap]:
    """The operands that threads hold a part of, as the figure draws them."""
    if isinstance(spec, LayoutSpec):
        return {}
    if isinstance(spec, CopySpec):
        return {x: m for x, m in spec.operands().items() if m.memory != "tmem" or int(m.owner_counts.min()) <= 1}
    return {x: m for x, m in spec.operands().items() if not in_memory(m)}


def show(spec: Askable, paper: str, dice: Dice, wanted: str = "") -> Shown | None:
    """The largest part of a target's figure whose labels print in at least SMALLEST_PT; ``wanted``: its operands.

    None where no thread holds a part of any operand. Raises UsageError for operands that the target has not.
    """
    held = operands(spec)
    if not isinstance(spec, LayoutSpec):
        if wanted and not isinstance(spec, TVSpec):
            letters = operand_letters(wanted, "".join(spec.operands()))
            held = {x: m for x, m in held.items() if x in letters}
        if not held:
            return None
    best: Shown | None = None
    for options in _choices(spec, dice, list(held)):
        made = _fitted(_with_holes(draw(spec, options)), paper)
        if made.label_pt >= SMALLEST_PT:
            return made
        best = made
    assert best is not None
    return best


def _choices(spec: Askable, dice: Dice, letters: Sequence[str]) -> Iterable[FigureOptions]:
    """Options from the whole figure to a small part of one operand, first those that show more."""
    plain = FigureOptions(title="", caption=False, legend=False, label="full")
    if isinstance(spec, LayoutSpec):
        plain = replace(plain, label="auto")
        tile = spec.offsets.shape
    else:
        tile = next(iter(spec.operands().values())).tile
    rows, columns = tile
    if isinstance(spec, MmaSpec | CopySpec):
        if isinstance(spec, CopySpec) and len(letters) == 2 and np.array_equal(spec.S.tv, spec.D.tv):
            letters = letters[:1]  # the one would tell the other's blanks
        plain = replace(plain, operand="".join(letters))
    if isinstance(spec, MmaSpec):
        if max(max(x.tile) for x in spec.operands().values()) <= SIDES[0]:
            yield plain
        if len(letters) > 1 and spec.tile_mnk[2] <= 2 * SIDES[3]:
            for side in (16, 8):
                if side < max(spec.tile_mnk[:2]):
                    yield replace(plain, rows=f"0:{side}", cols=f"0:{side}")
        letter = dice.pick(letters)
        rows, columns = spec.operands()[letter].tile[:: -1 if letter == "B" else 1]
        plain = replace(plain, operand=letter)
    if max(rows, columns) <= SIDES[0]:
        yield plain
    for side in SIDES:  # rows stay longer than columns, which are wider
        if side < max(rows, columns):
            yield replace(plain, rows=f"0:{min(rows, max(side, 16))}", cols=f"0:{min(columns, side)}")


def _fitted(figure: Figure, paper: str) -> Shown:
    width, height = (x - 2 * MARGIN for x in PAPERS[paper])
    across = figure.width * figure.aspect
    cell = min(LARGEST_PT * PT_MM / figure.label_size, width / across, TALLEST * height / figure.height)
    return Shown(figure, round(cell * across, 2))


def _with_holes(figure: Figure) -> Figure:
    """The figure with a dash in cells that nobody owns, since on a sheet an empty cell is one to fill in."""
    panels = []
    for panel in figure.panels:
        holes = np.argwhere(panel.fill == HOLE) if panel.lines else ()
        lines = [[list(row) for row in line] for line in panel.lines]
        for r, c in holes:
            lines[0][r][c] = NOBODY
        panels.append(replace(panel, lines=tuple(lines)) if len(holes) else panel)
    return replace(figure, panels=tuple(panels))


def panels_of(figure: Figure) -> dict[str, Panel]:
    return {p.key: p for p in figure.panels if p.lines}


# --- blanks


@dataclass(frozen=True)
class Blank:
    """A cell to fill in, with its letter and, in a panel of threads, its owners."""

    letter: str
    cell: Cell
    label: tuple[str, ...]
    """The lines that the figure has there."""


def letters(count: int) -> list[str]:
    """``a`` to ``z``, ``aa``, ``ab``, …"""
    out = []
    for i in range(count):
        text, i = "", i + 1
        while i:
            i, digit = divmod(i - 1, 26)
            text = chr(ord("a") + digit) + text
        out.append(text)
    return out


def decoys(view: View, questions: Sequence[Question]) -> frozenset[Cell]:
    """Cells to leave empty beside those that are themselves an answer, so that these do not stand out."""
    taken = frozenset(c for q in questions for c in q.cells)
    out: set[Cell] = set()
    for key, count in decoy_counts(view, questions).items():
        out |= set(view.dice.shuffled(c for c in _cells(view, key) if c not in taken and _owners(view, c))[:count])
    return frozenset(out)


def room(view: View) -> int:
    """How many cells of a figure may be blank."""
    return int(MOST_BLANK * sum(p.fill.size for p in view.panels.values()))


def choose_blanks(view: View, count: int, taken: frozenset[Cell]) -> list[Blank]:
    """``count`` cells to fill in, spread over the panels, none of those that are taken; fewer where too few are left."""
    keys = list(view.panels)
    waiting = {}
    for key in keys:
        free = [c for c in _cells(view, key) if c not in taken and c[1:] != (0, 0) and _askable(view, c)]
        waiting[key] = view.dice.shuffled(free)
    count = min(count, room(view) - len(taken))
    chosen: list[Cell] = []
    while len(chosen) < count and any(waiting.values()):
        for key in keys:
            if waiting[key] and len(chosen) < count:
                chosen.append(waiting[key].pop())
    order = {key: i for i, key in enumerate(keys)}
    chosen.sort(key=lambda c: (order[c[0]], c[1], c[2]))
    return [
        Blank(letter, cell, tuple(line[r][c] for line in view.panels[cell[0]].lines))
        for letter, cell in zip(letters(len(chosen)), chosen, strict=True)
        for r, c in [position(view.panels[cell[0]], cell)]
    ]


def _cells(view: View, key: str) -> list[Cell]:
    return [(key, r, c) for r, c in view.cells(key)]


def _askable(view: View, cell: Cell) -> bool:
    """Whether a cell's owners, all of which are to be written, are few enough for that."""
    return 1 <= _owners(view, cell) <= LISTED


def _owners(view: View, cell: Cell) -> int:
    """How many owners a cell has; of an offset one, its value."""
    operand = view.maps.get(cell[0])
    return 1 if operand is None else int(operand.owner_counts[cell[1], cell[2]])


def position(panel: Panel, cell: Cell) -> tuple[int, int]:
    """Where a cell stands in a panel, (row, column) of the picture."""
    row, column = (cell[2], cell[1]) if panel.transposed else (cell[1], cell[2])
    return int(np.searchsorted(panel.rows, row)), int(np.searchsorted(panel.columns, column))


def with_blanks(figure: Figure, blanks: Mapping[Cell, str], empty: bool) -> Figure:
    """The figure with frames around the cells of ``blanks``; ``empty`` leaves only their letters in them."""
    return replace(figure, panels=tuple(_with_blanks(p, blanks, empty) for p in figure.panels))


def _with_blanks(panel: Panel, blanks: Mapping[Cell, str], empty: bool) -> Panel:
    places = [(*position(panel, cell), letter) for cell, letter in sorted(blanks.items()) if cell[0] == panel.key]
    frames = tuple(Block(r, c, 1, 1, "", strong=not empty) for r, c, _ in places)
    if not empty:
        return replace(panel, blocks=panel.blocks + frames)
    fill = panel.fill.copy()
    lines = [[list(row) for row in line] for line in panel.lines]
    shared = None if panel.shared is None else panel.shared.copy()
    for r, c, letter in places:
        fill[r, c] = HOLE
        for i, line in enumerate(lines):
            line[r][c] = letter if i == 0 else ""
        if shared is not None:
            shared[r, c] = False
    return replace(panel, fill=fill, lines=tuple(lines), shared=shared, blocks=panel.blocks + frames)
