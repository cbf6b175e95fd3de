"""A tiled copy: who reads which element of the source, beside who gets it at the destination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texgen.figures import caption as words
from texgen.figures.model import Figure, Line
from texgen.figures.options import FigureOptions
from texgen.figures.overview import detail_panel, group_style, with_detail
from texgen.figures.palette import palette
from texgen.figures.panels import check_highlight, check_size, operand_letters, owner_panel, settle
from texgen.figures.place import assemble
from texgen.specs import CopySpec, TVMap, dtype_bits
from texgen.words import matrix_side, role

NAMES = {"S": "Source", "D": "Destination"}


def draw_copy(spec: CopySpec, options: FigureOptions) -> Figure:
    """The figure of a TiledCopy or copy atom. Raises TexgenError for more than a million cells."""
    letters = operand_letters(options.operand, "SD")
    operands = {x: _drawn(operand) for x, operand in spec.operands().items()}
    drawn = [operands[x] for x in letters]
    check_highlight({x: operands[x] for x in letters}, options)
    longest = max(spec.tile)
    if not (options.rows or options.cols):
        check_size(len(letters) * drawn[0].cells, spec.name or "this copy", "--operand S --rows 0:64 --cols 0:64")
    style = settle(drawn, options, longest)
    if options.overview:
        style = group_style(style, drawn)
    panels = [
        owner_panel(x, _panel_title(spec, x), operands[x], words.AXES[x], style, rows=options.rows, cols=options.cols)
        for x in letters
    ]
    if options.overview:
        detail = detail_panel(panels[-1], drawn[-1], spec, options)
        panels[-1:] = [with_detail(panels[-1], detail), detail]
    stacked = spec.tile[1] > 2.5 * spec.tile[0] and spec.tile[1] > 16
    legend, legend_title = words.legend(drawn, style)
    m, n = spec.tile
    what = f"{spec.name or 'A tiled copy'}, a tile of {m} by {n} for {words.plural(spec.threads, 'thread')}"
    title = options.title if options.title is not None else f"{spec.name}  {m}×{n}".strip()
    roles = {x: role(spec, x) for x in operands}
    lines: list[Line] = words.key_line(style, {x: operands[x] for x in letters}, roles)
    for x in letters:
        lines += words.operand_lines(x, operands[x])
    if spec.tiler:
        lines.append(Line(f"tiler {spec.tiler}", code=True))
    matrix = _matrix_lines(spec)
    notes = [x for x in words.note_lines(spec) if not (matrix and x.text.startswith("In shared memory ("))]
    lines += matrix + words.origin_line(spec) + notes
    return assemble(
        "copy", spec.name, title, [[p] for p in panels] if stacked else [[*panels]], palette(options.palette), legend,
        legend_title, lines if options.caption else [], words.alternative_text(operands, what, roles), spec.warnings,
    )  # fmt: skip


def _matrix_lines(spec: CopySpec) -> list[Line]:
    """What ldmatrix and stmatrix ask of shared memory: which mode must be contiguous there, by how much."""
    said = " ".join((spec.name, *spec.notes))
    side = matrix_side(spec)
    bits = dtype_bits(spec.D.dtype)
    if not side or not bits:
        return []
    operand = spec.operands()[side]
    count = 128 // bits
    rows, columns = (x[:, :count] for x in operand.coordinates())
    lines = []
    for axis, run, still, mode in (("m", rows, columns, "first"), ("n", columns, rows, "second")):
        if run.shape[1] == count and (run == run[:, :1] + np.arange(count)).all() and (still == still[:, :1]).all():
            lines.append(Line(f"In shared memory ({NAMES[side].lower()}) the {mode} mode must be contiguous: {count} contiguous {axis} "
                              f"per lane, 16 bytes" + (" (n is the k of an A or B tile)" if axis == "n" else "")))  # fmt: skip
    if "SM_T" in said and "U16" in said and bits == 8 and "16-bit units" not in said:
        lines.append(
            Line("The transposing form moves 16-bit units, so two neighbouring 8-bit elements travel together.")
        )
    return lines


def _drawn(operand: TVMap) -> TVMap:
    """The operand as it is drawn: cells get owners where each thread has addresses of its own, also in shared memory.

    Tensor memory that all threads of a warp name alike (stride 0) has no owner to draw.
    """
    by_warp = operand.memory == "tmem" and int(operand.owner_counts.min()) > 1
    return operand if by_warp else replace(operand, memory="rmem")


def _panel_title(spec: CopySpec, letter: str) -> str:
    operand = spec.operands()[letter]
    detail = words.where_text(operand)
    return f"{NAMES[letter]} (M×N)" + (f" {detail}" if detail else "")
