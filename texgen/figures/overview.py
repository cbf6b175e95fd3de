"""Overviews of large tiles: each warp's (or quad's) block outlined and named, one block in full beside it."""

from __future__ import annotations

from dataclasses import replace

from texgen.figures.caption import AXES
from texgen.figures.labels import group_blocks
from texgen.figures.model import Block, Panel
from texgen.figures.options import FigureOptions
from texgen.figures.panels import Style, group_of, owner_panel
from texgen.figures.place import TEXT_SIZE, text_size
from texgen.specs import CopySpec, MmaSpec, TVMap, TVSpec

BLOCK_LIMIT = 32
"""The longest side of the block that is drawn in full."""


def group_style(style: Style, operands: list[TVMap]) -> Style:
    """Warps where there are several, quads within one warp; coloured by the same unless asked otherwise."""
    label = style.label if style.grouped else group_of(operands)
    return replace(style, label=label, color_by=style.options.color_by or label)


def detail_panel(panel: Panel, operand: TVMap, spec: MmaSpec | CopySpec | TVSpec, options: FigureOptions) -> Panel:
    """The panel's first block with every label: the atom's part of it, or its first warp's rectangle.

    Its cells are as much larger as the text of so large a figure is, so that its labels can be read as well.
    """
    key = panel.key
    height, width = _block(key, operand, spec)
    if panel.transposed:
        height, width = width, height
    rows, cols = (",".join(map(str, x.tolist())) for x in (panel.rows[:height], panel.columns[:width]))
    style = Style(options.color_by or "thread", "full", options)
    detail = owner_panel(f"{key}detail", f"{key}, one block in full", operand, AXES[key], style, panel.transposed, rows, cols)
    return replace(detail, scale=round(text_size(operand.tile[1], operand.tile[0]) / TEXT_SIZE, 2))


def with_detail(panel: Panel, detail: Panel) -> Panel:
    """The panel with the block that ``detail`` draws in full outlined in it; names keep clear of that outline."""
    height, width = detail.height, detail.width
    blocks = [_named_inside(b, height, width) for b in panel.blocks]
    return replace(panel, blocks=(*blocks, Block(0, 0, height, width, "", strong=True)))


def _named_inside(block: Block, height: int, width: int) -> Block:
    """The block, named in its part inside of the panel's first ``height`` × ``width`` cells where their outline crosses it."""
    rows, columns = min(block.height, height - block.row), min(block.width, width - block.column)
    crossed = rows > 0 and columns > 0 and (rows, columns) != (block.height, block.width)
    return replace(block, named=(block.row, block.column, rows, columns)) if crossed else block


def _block(key: str, operand: TVMap, spec: MmaSpec | CopySpec | TVSpec) -> tuple[int, int]:
    height, width = operand.tile
    atom = spec.atom_mnk if isinstance(spec, MmaSpec) and any(spec.atom_mnk) else None
    if atom:
        m, n, k = atom
        height, width = {"A": (m, k), "B": (n, k), "C": (m, n)}[key]
    if not atom or (max(height, width) > BLOCK_LIMIT and operand.threads > operand.warp):  # an atom of several warps is cut between them
        first = group_blocks(operand, group_of([operand]))[0]
        height, width = min(height, first.height), min(width, first.width)
    return min(height, BLOCK_LIMIT, operand.tile[0]), min(width, BLOCK_LIMIT, operand.tile[1])
