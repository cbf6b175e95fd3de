"""Panels of thread-value maps: which fill and which label each cell gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from texgen.errors import TexgenError, UsageError
from texgen.figures.labels import color_key, group_blocks, highlighted, owner_lines
from texgen.figures.model import DIMMED, HOLE, IN_MEMORY, Block, Panel, rectangles
from texgen.figures.options import FigureOptions, crop, parse_highlight
from texgen.figures.palette import palette
from texgen.layouts import MAX_CELLS, IntArray
from texgen.specs import MEMORIES, TVMap

SIDES = {"S": "source", "D": "destination"}
"""What the letters of a copy's operands stand for."""
FULL_LIMIT = 128
"""The longest side, in cells, of a panel that still gets a label in every cell."""
GROUP_LIMIT = 512
"""The longest side of a panel that gets warp or quad labels; above it, colour alone."""
LINED_LIMIT = 64
"""The longest side of a panel of blocks whose cells are still divided by lines."""
MARK_LIMIT = 4096
"""The most cells of a panel whose shared cells are marked one by one."""


@dataclass(frozen=True)
class Style:
    """What the panels of one figure have in common, settled from the options and the size of the whole."""

    color_by: str
    label: str
    options: FigureOptions

    @property
    def grouped(self) -> bool:
        return self.label in ("warp", "quad")


def group_of(operands: list[TVMap]) -> str:
    """What large figures show: warps where there are several, quads within one."""
    return "warp" if any(o.threads > o.warp for o in operands) else "quad"


def settle(operands: list[TVMap], options: FigureOptions, longest: int) -> Style:
    """Labels shrink with the size of the figure: every cell, then warps or quads, then colour alone."""
    label, color_by = options.label, options.color_by
    group = group_of(operands)
    if label == "auto":
        label = "full" if longest <= FULL_LIMIT else group if longest <= GROUP_LIMIT else "none"
    if not color_by:
        color_by = "thread" if label not in ("warp", "quad", "none") else label if label != "none" else group
    return Style(color_by, label, options)


def check_highlight(operands: Mapping[str, TVMap], options: FigureOptions) -> None:
    """Raise UsageError for a highlight that picks nothing in any of the operands."""
    highlight = parse_highlight(options.highlight)
    held = [o for o in operands.values() if not in_memory(o)]
    if highlight is None or any(highlighted(o, highlight).any() for o in held):
        return
    if not held:
        raise UsageError(
            f"--highlight {options.highlight!r} needs threads that hold something, and here all is read from memory."
        )
    threads, values = max(o.threads for o in held), max(o.values for o in held)
    raise UsageError(
        f"--highlight {options.highlight!r} picks nothing: the threads are T0 to T{threads - 1}, the values V0 to V{values - 1}."
    )


def check_size(cells: int, what: str, sub_tile: str) -> None:
    """Raise TexgenError for a picture of more than a million cells, naming the option that draws a part."""
    if cells > MAX_CELLS:
        raise TexgenError(
            f"A picture of {what} has {cells:,} cells, more than the {MAX_CELLS:,} that texgen draws: "
            f"draw a part of it with {sub_tile}."
        )


def owner_panel(
    key: str, title: str, operand: TVMap, axes: tuple[str, str], style: Style, transpose: bool = False,
    rows: str = "", cols: str = "",
) -> Panel:  # fmt: skip
    """A panel of one operand. ``transpose`` draws its columns downwards (B: k down, n across)."""
    height, width = operand.tile[::-1] if transpose else operand.tile
    row_index, column_index = crop(rows, height, "rows"), crop(cols, width, "cols")
    down, across = axes[::-1] if transpose else axes

    def oriented(grid: IntArray) -> IntArray:
        return (grid.T if transpose else grid)[np.ix_(row_index, column_index)]

    def panel(fill: IntArray, **more: object) -> Panel:
        return Panel(key, title, row_index, column_index, down, across, fill, transposed=transpose, **more)  # type: ignore[arg-type]

    if in_memory(operand):
        ctas = oriented_blocks(cta_blocks(operand), transpose, row_index, column_index)
        fill = np.full((len(row_index), len(column_index)), IN_MEMORY)
        return panel(fill, blocks=ctas, note="" if ctas else memory_note(operand))

    highlight = parse_highlight(style.options.highlight)
    colors = len(palette(style.options.palette))
    keys = color_key(operand, style.color_by)
    fill = np.where(keys == HOLE, HOLE, keys % colors)
    if highlight is not None:
        fill = np.where(highlighted(operand, highlight) | (keys == HOLE), fill, DIMMED)
    counts = oriented(operand.owner_counts)
    lines: tuple[list[list[str]], ...] = ()
    blocks: tuple[Block, ...] = ()
    if style.grouped:
        blocks = oriented_blocks(group_blocks(operand, style.label), transpose, row_index, column_index)
    elif style.label != "none":
        all_lines = owner_lines(operand, style.label, highlight)
        lines = tuple(oriented(np.array(line, dtype=object)).tolist() for line in all_lines)
    shared = counts > 1 if not style.grouped and counts.size <= MARK_LIMIT and (counts > 1).any() else None
    lined = not (style.grouped and max(counts.shape) > LINED_LIMIT)
    return panel(oriented(fill), lines=lines, shared=shared, blocks=blocks, lined=lined)


def oriented_blocks(blocks: tuple[Block, ...], transpose: bool, rows: IntArray, columns: IntArray) -> tuple[Block, ...]:
    """Blocks in the coordinates of a cropped and perhaps transposed panel; those cropped away are left out."""
    out = []
    for b in blocks:
        r, c, h, w = (b.column, b.row, b.width, b.height) if transpose else (b.row, b.column, b.height, b.width)
        r0, r1 = np.searchsorted(rows, [r, r + h])
        c0, c1 = np.searchsorted(columns, [c, c + w])
        if r1 > r0 and c1 > c0:
            out.append(Block(int(r0), int(c0), int(r1 - r0), int(c1 - c0), b.name))
    return tuple(out)


def in_memory(operand: TVMap) -> bool:
    """True where no thread holds a part of the operand in its registers."""
    return operand.memory in ("smem", "tmem")


def cta_blocks(operand: TVMap) -> tuple[Block, ...]:
    """The parts of an operand that each CTA of a pair holds, named; none where all hold the same."""
    thread, _ = operand.nth_owner(0)
    if len(np.unique(thread)) == 1:
        return ()
    return tuple(Block(*rectangle, name=f"CTA {t}: {MEMORIES[operand.memory]}") for rectangle, t in rectangles(thread))


def memory_note(operand: TVMap) -> str:
    """What stands across the panel of an operand that is read from memory."""
    if operand.memory == "tmem":
        return f"in tensor memory, {'one CTA' if operand.threads == 1 else f'{operand.threads} CTAs'}"
    who = {1: "the CTA", 2: "the CTA pair", 128: "the whole warpgroup"}.get(
        operand.threads, f"all {operand.threads} threads"
    )
    return f"read from {MEMORIES[operand.memory]} by {who}"


def operand_letters(text: str, allowed: str) -> list[str]:
    """``--operand``: the letters to draw, in the figure's order. Raises UsageError for others."""
    letters = [c for c in text.upper() if c not in ", "]
    if any(c not in allowed for c in letters):
        have = ", ".join(f"{c} ({SIDES[c]})" if c in SIDES else c for c in allowed)
        raise UsageError(f"--operand {text!r} must be made of the letters of this target's operands: {have}.")
    return [c for c in allowed if c in letters] if letters else list(allowed)
