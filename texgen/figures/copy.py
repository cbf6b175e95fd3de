"""A tiled copy: who reads which element of the source, beside who gets it at the destination."""

from __future__ import annotations

from dataclasses import replace

from texgen.figures import caption as words
from texgen.figures.model import Figure, Line, Panel
from texgen.figures.options import FigureOptions
from texgen.figures.overview import detail_panel, group_style
from texgen.figures.palette import palette
from texgen.figures.panels import check_size, operand_letters, owner_panel, settle
from texgen.figures.place import assemble
from texgen.specs import CopySpec

NAMES = {"S": "Source", "D": "Destination"}


def draw_copy(spec: CopySpec, options: FigureOptions) -> Figure:
    """The figure of a TiledCopy or copy atom. Raises TexgenError for more than a million cells."""
    letters = operand_letters(options.operand, "SD")
    # Each thread has addresses of its own, also in shared memory: cells get owners, titles say where they lie.
    operands = {x: replace(operand, memory="rmem") for x, operand in spec.operands().items()}
    drawn = [operands[x] for x in letters]
    longest = max(spec.tile)
    if not (options.rows or options.cols):
        check_size(len(letters) * drawn[0].cells, spec.name or "this copy", "--operand, --rows and --cols")
    style = settle(drawn, options, longest)
    if options.overview:
        style = group_style(style, drawn)
    panels: list[Panel | None] = [
        owner_panel(x, _panel_title(spec, x), operands[x], words.AXES[x], style, rows=options.rows, cols=options.cols)
        for x in letters
    ]
    if options.overview:
        panels.append(detail_panel(letters[-1], drawn[-1], spec, options))
    stacked = spec.tile[1] > 2.5 * spec.tile[0] and spec.tile[1] > 16
    legend, legend_title = words.legend(drawn, style)
    m, n = spec.tile
    what = f"{spec.name or 'A tiled copy'}, a tile of {m} by {n} for {words.plural(spec.threads, 'thread')}"
    title = options.title if options.title is not None else f"{spec.name}  {m}×{n}".strip()
    lines: list[Line] = words.key_line(style)
    for x in letters:
        lines += words.operand_lines(x, operands[x])
    if spec.tiler:
        lines.append(Line(f"tiler {spec.tiler}", code=True))
    lines += words.origin_line(spec) + words.note_lines(spec)
    return assemble(
        "copy", spec.name, title, [[p] for p in panels] if stacked else [panels], palette(options.palette), legend,
        legend_title, lines if options.caption else [], words.alternative_text(operands, what), spec.warnings,
    )  # fmt: skip


def _panel_title(spec: CopySpec, letter: str) -> str:
    operand = spec.operands()[letter]
    detail = words.where_text(operand)
    return f"{NAMES[letter]} (M×N)" + (f" {detail}" if detail else "")
