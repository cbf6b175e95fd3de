"""Overviews of large tiles: each warp's (or quad's) block outlined and named, one block in full beside it."""

from __future__ import annotations

from dataclasses import replace

from texgen.figures.caption import AXES
from texgen.figures.labels import group_blocks
from texgen.figures.model import Block, Panel
from texgen.figures.options import WARP, FigureOptions
from texgen.figures.panels import Style, owner_panel
from texgen.figures.place import TEXT_SIZE, text_size
from texgen.specs import CopySpec, MmaSpec, TVMap, TVSpec

BLOCK_LIMIT = 32
"""The longest side of the block that is drawn in full."""


def group_style(style: Style, operands: list[TVMap]) -> Style:
    """Warps where there are several, quads within one warp; coloured by the same unless asked otherwise."""
    group = "warp" if max(o.threads for o in operands) > WARP else "quad"
    label = style.label if style.grouped else group
    return replace(style, label=label, color_by=style.options.color_by or label)


def detail_panel(key: str, operand: TVMap, spec: MmaSpec | CopySpec | TVSpec, options: FigureOptions) -> Panel:
    """The first block of the operand with every label: the atom's part of it, or its first warp's rectangle.

    Its cells are as much larger as the text of so large a figure is, so that its labels can be read as well.
    """
    height, width = _block(key, operand, spec)
    transpose = key == "B"
    rows, cols = f"0:{height}", f"0:{width}"
    if transpose:
        rows, cols = cols, rows
    style = Style(options.color_by or "thread", "full", options)
    panel = owner_panel(f"{key}detail", f"{key}, one block in full", operand, AXES[key], style, transpose, rows, cols)
    return replace(panel, scale=round(text_size(operand.tile[1], operand.tile[0]) / TEXT_SIZE, 2))


def with_detail(panel: Panel, detail: Panel) -> Panel:
    """The panel with the block that ``detail`` draws in full outlined in it."""
    height, width = detail.height, detail.width
    return replace(panel, blocks=(*panel.blocks, Block(0, 0, height, width, "", strong=True)))


def _block(key: str, operand: TVMap, spec: MmaSpec | CopySpec | TVSpec) -> tuple[int, int]:
    if isinstance(spec, MmaSpec) and any(spec.atom_mnk):
        m, n, k = spec.atom_mnk
        height, width = {"A": (m, k), "B": (n, k), "C": (m, n)}[key]
    else:
        first = group_blocks(operand, "warp" if operand.threads > WARP else "quad")[0]
        height, width = first.height, first.width
    return min(height, BLOCK_LIMIT, operand.tile[0]), min(width, BLOCK_LIMIT, operand.tile[1])
