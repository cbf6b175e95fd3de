"""Figure → HTML that can be pointed at: the SVG, its tables as JSON, and one script. Without scripts it is the SVG."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from texgen import __version__
from texgen.errors import TexgenError
from texgen.figures.model import Figure
from texgen.figures.pointing import Cells, Pointing
from texgen.render.environment import fill
from texgen.render.packed import packed
from texgen.render.svg import FONTS, svg, svg_context
from texgen.specs import WARP

VERSION = 1
"""Of the data; the script takes no other."""
MOST_ENTRIES = 1 << 24
"""The most table entries that a page is to unfold: 64 MB."""
MANY_LABELS = 3000
"""More than these take a browser seconds: the script has it lay out those that can be seen."""


def page(figure: Figure, pointing: Pointing, templates: tuple[str, ...] = ()) -> str:
    """A whole HTML document that asks for nothing else. Raises TexgenError for tables too large for a page."""
    names = _names(figure, pointing, "", templates)
    title = figure.title or figure.name or figure.kind
    more = {"title": title, "theme": figure.theme, "still": not pointing.cells, "fonts": FONTS["text"], "version": __version__}
    return fill("figure.html.j2", names | more, templates)


def element(figure: Figure, pointing: Pointing, templates: tuple[str, ...] = ()) -> str:
    """One element, with style and script, for a page of one's own. Raises TexgenError for tables too large for a page."""
    return fill("interactive.html.j2", _names(figure, pointing, None, templates), templates)


def _names(figure: Figure, pointing: Pointing, key: str | None, templates: tuple[str, ...]) -> dict[str, Any]:
    """``id`` is what the page's address calls the figure: its SVG's hash, or nothing where it is alone."""
    drawn = svg(figure, templates)
    start = drawn.find('id="txg-') + len('id="')
    own = drawn[start : drawn.index('-t"', start)] if start >= len('id="') and '-t"' in drawn[start:] else "txg"
    return {"id": own if key is None else key, "svg": Markup(drawn), "data": data(figure, pointing), "many": many(figure)}


def many(figure: Figure) -> bool:
    """Whether a figure has more labels than a browser lays out at once."""
    return sum(p.height * p.width * len(p.lines) for p in figure.panels) > MANY_LABELS


def data(figure: Figure, pointing: Pointing) -> Markup:
    """The JSON of a figure's panels and tables, safe inside ``<script>``."""
    return htmlsafe_json_dumps(content(figure, pointing), dumps=json.dumps, separators=(",", ":"))


def content(figure: Figure, pointing: Pointing) -> dict[str, Any]:
    """Size and panels in the SVG's pixels, and the tables, each once however many panels show it."""
    names = svg_context(figure)
    tables: list[dict[str, Any]] = []
    known: dict[tuple[Any, ...], int] = {}
    panels = []
    entries = 0
    for panel, drawn in zip(figure.panels, names["panels"], strict=True):
        cells = pointing.cells.get(panel.key)
        if cells is None:
            continue
        arrays = (cells.owners.tv if cells.owners else None, cells.offsets, *cells.coords, cells.by[-1].tv if cells.by else None, *cells.lies)
        identity = (cells.name, cells.when, *map(id, arrays)) if any(a is not None for a in arrays) else (panel.key,)
        if identity not in known:
            entries += sum(a.size for a in arrays if a is not None)
            if entries > MOST_ENTRIES:
                raise TexgenError(
                    f"An interactive figure carries its tables, and these have more than {MOST_ENTRIES:,} entries: draw one "
                    "--operand, or write an SVG."
                )
            known[identity] = len(tables)
            tables.append(_table(cells))
        scale = panel.scale
        panels.append({
            "key": panel.key, "title": panel.title, "table": known[identity],
            "box": [round(x, 3) for x in (drawn["px"], drawn["py"], drawn["pw"] * scale, drawn["ph"] * scale)],
            "rows": spans(range(panel.height) if cells.of_picture else panel.rows.tolist()),
            "cols": spans(range(panel.width) if cells.of_picture else panel.columns.tolist()),
            "flip": int(panel.transposed and not cells.of_picture),
        })  # fmt: skip
        if cells.of_picture:
            tables[known[identity]]["numbers"] = [spans(panel.rows.tolist()), spans(panel.columns.tolist())]
    more = {} if pointing.matrices is None else {"matrices": packed(pointing.matrices)}
    return more | {
        "texgen": VERSION, "size": [round(names["px_width"], 3), round(names["px_height"], 3)],
        "panels": panels, "tables": tables, "product": int(pointing.product), "elements": int(pointing.elements),
        "many": int(many(figure)),
        "warp": next((c.owners.warp for c in pointing.cells.values() if c.owners is not None), WARP),
    }  # fmt: skip


def _table(cells: Cells) -> dict[str, Any]:
    out: dict[str, Any] = {"name": cells.name, "axes": list(cells.axes), "tile": list(cells.tile)}
    if cells.owners is not None:
        out |= {"unit": cells.unit, "threads": cells.owners.threads, "values": cells.owners.values, "tv": packed(cells.owners.tv)}
    if cells.offsets is not None:
        out["offsets"] = packed(cells.offsets)
    if cells.coords:
        out["coords"] = [packed(c) for c in cells.coords]
    if cells.by is not None:
        verb, here, acting = cells.by
        out["by"] = {"verb": verb, "here": here, "values": acting.values, "threads": acting.threads, "tv": packed(acting.tv)}
    if cells.lies:
        out |= {"lies": [packed(x) for x in cells.lies], "whole": {"height": cells.whole[0], "at": list(cells.whole[1])}}
    optional = {"by_rows": int(cells.by_rows), "verb": cells.verb if cells.verb != "holds" else "", "shape": cells.shape, "memory": cells.memory, "modes": cells.modes, "when": cells.when, "bits": cells.bits, "banks": int(cells.banks)}
    return out | {k: v for k, v in optional.items() if v}


def spans(indices: Iterable[int]) -> list[int]:
    """Indices as first, end, first, end, ... of their runs.

    >>> spans([0, 1, 2, 8, 9])
    [0, 3, 8, 10]
    """
    out: list[int] = []
    for i in indices:
        if out and out[-1] == i:
            out[-1] = i + 1
        else:
            out += [i, i + 1]
    return out
