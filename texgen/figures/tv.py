"""One thread-value map over its tile."""

from __future__ import annotations

from texgen.figures import caption as words
from texgen.figures.model import Figure
from texgen.figures.options import FigureOptions
from texgen.figures.overview import detail_panel, group_style, with_detail
from texgen.figures.palette import palette
from texgen.figures.panels import check_highlight, check_size, owner_panel, settle
from texgen.figures.place import assemble
from texgen.specs import TVSpec


def draw_tv(spec: TVSpec, options: FigureOptions) -> Figure:
    """The figure of a TV layout or an explicit table. Raises TexgenError for more than a million cells."""
    operand = spec.map
    if not (options.rows or options.cols):
        check_size(operand.cells, spec.name or "this TV layout", "--rows 0:64 --cols 0:64")
    check_highlight({"TV": operand}, options)
    style = settle([operand], options, max(operand.tile))
    if options.overview:
        style = group_style(style, [operand])
    m, n = operand.tile
    title = f"{m}×{n}" + (f" {operand.dtype}" if operand.dtype else "")
    panels = [owner_panel("TV", title, operand, words.AXES["TV"], style, rows=options.rows, cols=options.cols)]
    if options.overview:
        detail = detail_panel(panels[0], operand, spec, options)
        panels = [with_detail(panels[0], detail), detail]
    legend, legend_title = words.legend([operand], style)
    alt = (
        f"{spec.name or 'A thread-value map'} over a tile of {m} by {n} for {words.plural(operand.threads, 'thread')}. "
        f"Thread 0 holds {words.held_cells('', operand, 0)}."
    )
    lines = (
        words.key_line(style, {"TV": operand})
        + words.operand_lines("TV", operand)
        + words.origin_line(spec)
        + words.note_lines(spec)
    )
    return assemble(
        "tv", spec.name, options.title if options.title is not None else (spec.name or operand.layout), [[*panels]],
        palette(options.palette), legend, legend_title, lines if options.caption else [], alt, spec.warnings,
    )  # fmt: skip
