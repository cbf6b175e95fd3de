"""Figure → plain text, and the same with colours for a terminal."""

from __future__ import annotations

from typing import Any

from texgen.figures.model import Figure, Panel
from texgen.render.context import context, fill_color
from texgen.render.environment import fill


def text(figure: Figure, templates: tuple[str, ...] = ()) -> str:
    """The figure as lines of text, one row of cells a line."""
    out = context(figure)
    for made, panel in zip(out["panels"], figure.panels, strict=True):
        made["text_rows"] = ["".join(s for s, _ in row) for row in cell_rows(panel)]
    return fill("figure.txt.j2", out, templates)


def cell_rows(panel: Panel) -> list[list[tuple[str, int | None]]]:
    """Rows of (text, fill or None), padded to columns; the first row and the first entry are the axes."""
    heading = list(panel.row_names) or [str(r) for r in panel.rows.tolist()]
    side = max(map(len, heading))
    if panel.bars:
        by_row = [[b.detail for b in panel.bars if b.row == r] for r in range(panel.height)]
        return [[(f"{head.rjust(side)} {'; '.join(parts)}", None)] for head, parts in zip(heading, by_row, strict=True)]
    names = [["" for _ in panel.columns] for _ in panel.rows]
    if panel.lines:
        names = [
            ["".join(_glued(line[r][c] for line in panel.lines)) for c in range(panel.width)]
            for r in range(panel.height)
        ]
    elif panel.blocks:
        for b in panel.blocks:
            for r in range(b.row, b.row + b.height):
                names[r][b.column : b.column + b.width] = [b.name.replace(" ", "/")] * b.width
    elif not panel.note:
        names = [[str(k) if k >= 0 else "." for k in row] for row in panel.fill.tolist()]
    if panel.note:
        return []
    heads = [str(c) for c in panel.columns.tolist()]
    width = max((len(s) for row in [*names, heads] for s in row), default=1)
    rows: list[list[tuple[str, int | None]]] = [[(" " * side, None), *((" " + h.rjust(width), None) for h in heads)]]
    for head, row, fills in zip(heading, names, panel.fill.tolist(), strict=True):
        rows.append(
            [(head.rjust(side), None), *((" " + s.rjust(width), f) for s, f in zip(row, fills, strict=True))]
        )
    return rows


def _glued(parts: Any) -> list[str]:
    """``T0 T64`` and ``V0`` as one word: ``T0/T64.V0``; a number after another word stands apart, ``T5.12``, and owners as
    ``T1V0/T1V1``."""
    words = [p.replace(" +", "+").replace(" ", "/") for p in parts if p]
    if not words:
        return [""]
    first = words[0]
    mixed = "/" in first or "+" in first
    return [first] + ["/" + w if w[0] == "T" else "." + w if mixed or (first[-1].isdigit() and w[0].isdigit()) else w for w in words[1:]]


def print_colored(figure: Figure) -> None:
    """The figure on the screen, with its fills where the terminal has colours."""
    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(figure.title or figure.name, style="bold"))
    for panel in figure.panels:
        console.print(Text(f"\n{panel.title}   rows {panel.row_axis}, columns {panel.column_axis}", style="bold"))
        for row in cell_rows(panel):
            line = Text()
            for s, f in row:
                line.append(
                    s, Style(color="#000000", bgcolor=f"#{fill_color(f, figure.palette)}") if f is not None else None
                )
            console.print(line)
        if panel.note:
            console.print(panel.note)
    console.print()
    for caption in figure.lines:
        console.print(Text(caption.text))
