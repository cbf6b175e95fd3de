"""A tiled MMA: A left of C, B above C with k down and n across, as the reference figure has it."""

from __future__ import annotations

from texgen.figures import caption as words
from texgen.figures.model import Figure, Line, Panel
from texgen.figures.options import FigureOptions
from texgen.figures.overview import detail_panel, group_style, with_detail
from texgen.figures.palette import palette
from texgen.figures.panels import Style, check_highlight, check_size, operand_letters, owner_panel, settle
from texgen.figures.place import assemble
from texgen.specs import MmaSpec


def draw_mma(spec: MmaSpec, options: FigureOptions) -> Figure:
    """The figure of a TiledMma or MMA atom. Raises TexgenError for more than a million cells."""
    letters = operand_letters(options.operand, "ABC")
    operands = spec.operands()
    drawn = [operands[x] for x in letters]
    alone = len(letters) == 1
    if not (options.rows or options.cols):  # before any panel is made, which takes seconds for the largest
        _check_size(spec, sum(o.cells for o in drawn))
    check_highlight({x: operands[x] for x in letters}, options)
    panels: dict[str, Panel] = {}
    style = settle(drawn, options, 1)
    for _ in range(2):  # the labels depend on the size that cropping leaves
        panels = {x: _panel(spec, x, style, alone) for x in letters}
        longest = max(max(p.height, p.width) for p in panels.values())
        settled = (
            group_style(settle(drawn, options, longest), drawn) if options.overview else settle(drawn, options, longest)
        )
        if settled == style:
            break
        style = settled
    _check_size(spec, sum(p.height * p.width for p in panels.values()))
    placed = _placed(panels)
    if options.overview:
        placed = [[*row, None] for row in placed]
        last = letters[-1]
        detail = detail_panel(panels[last], operands[last], spec, options)
        placed = [[with_detail(p, detail) if p is panels[last] else p for p in row] for row in placed]
        placed[-1][-1] = detail
    legend, legend_title = words.legend(drawn, style)
    m, n, k = spec.tile_mnk
    what = f"{spec.name or 'A tiled MMA'}, a tile of {m} by {n} by {k} for {words.plural(spec.threads, 'thread')}"
    return assemble(
        "mma", spec.name, _title(spec, options), placed, palette(options.palette), legend, legend_title,
        _caption(spec, letters, style) if options.caption else [], words.alternative_text(operands, what), spec.warnings,
    )  # fmt: skip


def _check_size(spec: MmaSpec, cells: int) -> None:
    check_size(cells, spec.name or "this MMA", "--operand C --rows 0:64 --cols 0:64")


def _placed(panels: dict[str, Panel]) -> list[list[Panel | None]]:
    """A left of C, B above C; without C side by side."""
    a, b, c = (panels.get(x) for x in "ABC")
    if c is None or b is None:
        return [[p for p in (a, b, c) if p is not None]]
    return [[None, b], [a, c]] if a is not None else [[b], [c]]


def _panel(spec: MmaSpec, letter: str, style: Style, alone: bool) -> Panel:
    operand = spec.operands()[letter]
    rows, cols = style.options.rows, style.options.cols
    if not alone:
        rows, cols = (rows if letter in "AC" else ""), (cols if letter in "BC" else "")
    axes = words.AXES[letter]
    dims = "×".join(axis.upper() for axis in axes)
    detail = words.where_text(operand)
    title = f"{letter} ({dims})" + (f" {detail}" if detail else "")
    return owner_panel(letter, title, operand, axes, style, transpose=letter == "B", rows=rows, cols=cols)


def _title(spec: MmaSpec, options: FigureOptions) -> str:
    if options.title is not None:
        return options.title
    m, n, k = spec.tile_mnk
    return f"{spec.name}  {m}×{n}×{k}".strip()


def _caption(spec: MmaSpec, letters: list[str], style: Style) -> list[Line]:
    lines: list[Line] = words.key_line(style, {x: spec.operands()[x] for x in letters})
    for letter in letters:
        lines += words.operand_lines(letter, spec.operands()[letter])
    m, n, _ = spec.tile_mnk
    index = {"A": f"m + {m}·k in A", "B": f"n + {n}·k in B", "C": f"m + {m}·n in C"}
    lines.append(Line(f"index {', '.join(index[x] for x in letters)}, in whatever order they lie in memory (TN, NT)"))
    if any(spec.atom_mnk):
        m, n, k = spec.atom_mnk
        parts = [f"atom {m}×{n}×{k}"]
        if spec.thr_layout_vmnk:
            parts.append(f"threads (v,m,n,k) {spec.thr_layout_vmnk}")
        if spec.permutation_mnk:
            parts.append(f"permutation {spec.permutation_mnk}")
        lines.append(Line(", ".join(parts)))
    return lines + words.origin_line(spec) + words.note_lines(spec)
