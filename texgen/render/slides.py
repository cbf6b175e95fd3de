"""Slides → beamer frames and an animated SVG, out of the templates of the figure itself."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

from texgen.figures.model import BoolArray, Panel, Rectangle, rectangles
from texgen.figures.steps import Slides
from texgen.render.context import RUNS_A_PATH, context
from texgen.render.environment import fill, number
from texgen.render.svg import panel_marks, svg_context

SECONDS = (0.4, 1.0)
"""The shortest and the longest time of a step; at most two and a half new outlines a second, which is no flashing."""
BUILD = 16.0
"""Seconds that a build-up takes, as far as its steps may."""
REST = 3.0
"""Seconds that the finished figure is shown between two build-ups."""
ROUNDS = 3
"""How often the figure is built up, until it stays finished."""
PAD = 2
"""Cells around the figure that its boxes have, for text that is wider than its estimate."""
_ID = "txg-0000000000"


def tikz(slides: Slides, templates: tuple[str, ...] = ()) -> str:
    """The picture for ``\\input`` in a frame of beamer, one overlay a step; needs only ``\\usepackage{tikz}``."""
    return _identified(fill("slides.tikz.j2", tikz_context(slides), templates))


def document(slides: Slides, templates: tuple[str, ...] = ()) -> str:
    """A whole beamer document, 16:9, one page a step."""
    names = tikz_context(slides) | {"raw_unicode": False}
    text = fill("slides.tex.j2", names, templates)
    if "\\txgU{" in text:
        text = fill("slides.tex.j2", names | {"raw_unicode": True}, templates)
    return _identified(text)


def svg(slides: Slides, templates: tuple[str, ...] = ()) -> str:
    """The animated SVG: finished for those who print it or prefer reduced motion, and in converters."""
    text = fill("slides.svg.j2", animated_context(slides), templates)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return text.replace(_ID, f"txg-{digest}")


def _identified(text: str) -> str:
    text = re.sub(r"\n{2,}", "\n", text)
    return text.replace(_ID, f"txg-{hashlib.sha256(text.encode()).hexdigest()[:10]}")


def _common(slides: Slides) -> dict[str, Any]:
    return {
        "by": slides.by, "count": len(slides.steps), "done": slides.done, "fading": list(slides.fading),
        "line_y": slides.placed.line_y, "line_size": slides.placed.line / slides.figure.text_size,
    }  # fmt: skip


# --- TikZ ------------------------------------------------------------------------------------------------------------


def tikz_context(slides: Slides) -> dict[str, Any]:
    """The names of a figure's template, and ``slides``: steps with their new cells, and what veils them until then."""
    figure = slides.figure
    out = context(figure)
    veils = []
    for i in range(1, len(slides.steps)):
        parts = [(p.key, _paths(slides.when[p.key] == i)) for p in figure.panels if p.key not in slides.fading]
        veils.append((i + 1, [(key, paths) for key, paths in parts if paths]))
    bare = {"fills": [], "marks": [], "label_rows": [], "down": [], "across": [], "title": ""}
    mesh = [  # it goes over all: where words stand across cells there are no lines to strike them through
        p | bare | {"blocks": [b | {"size": 0} for b in p["blocks"]], "lined": p["lined"] and not any(b["size"] for b in p["blocks"]) and not p["note_lines"]}
        for p in out["panels"]
    ]
    steps = []
    for i, step in enumerate(slides.steps):
        now = [(p.key, _corners(step.now[p.key])) for p in figure.panels if p.key in step.now and _marked(slides, p)]
        steps.append({"number": i + 1, "text": step.text, "now": [(key, cells) for key, cells in now if cells]})
    box = (figure.x0, figure.y0, figure.x0 + figure.width, figure.y0 + figure.height)
    out["slides"] = _common(slides) | {"id": _ID, "steps": steps, "veils": veils, "box": box, "pad": PAD}
    out |= {"mesh": mesh, "bare": out["figure"] | {"title": ""}}
    return out


def _marked(slides: Slides, panel: Panel) -> bool:
    """Whether a panel's new cells get an outline: not where all of them are met in every step."""
    return panel.key not in slides.fading


def _paths(mask: BoolArray) -> list[list[Rectangle]]:
    runs = _runs(mask)
    return [runs[i : i + RUNS_A_PATH] for i in range(0, len(runs), RUNS_A_PATH)]


def _runs(mask: BoolArray) -> list[Rectangle]:
    """The masked cells as few rectangles (row, column, height, width)."""
    return [r for r, inside in rectangles(mask.astype(np.int64)) if inside]


def _corners(mask: BoolArray) -> list[Rectangle]:
    """The same as (column, row, column after, row after)."""
    return [(c, r, c + w, r + h) for r, c, h, w in _runs(mask)]


# --- SVG -------------------------------------------------------------------------------------------------------------


def animated_context(slides: Slides) -> dict[str, Any]:
    """The names of ``figure.svg.j2``; a panel also has ``parts`` by their step, ``now`` (step, path), ``fading``."""
    figure, count = slides.figure, len(slides.steps)
    out = svg_context(figure)
    cw, ch = out["cw"], out["ch"]
    each = min(SECONDS[1], max(SECONDS[0], BUILD / count))
    whole = count * each + REST
    for made, panel in zip(out["panels"], figure.panels, strict=True):
        made["fading"] = panel.key in slides.fading
        when = slides.when[panel.key]
        steps = [] if made["fading"] else sorted(set(when[when > 0].ravel().tolist()))
        first = made if not steps else panel_marks(_part(made, panel, when <= 0), figure, cw, ch)
        made["parts"] = [(0, first), *((i, panel_marks(_part(made, panel, when == i), figure, cw, ch)) for i in steps)]
        made["now"] = [
            (i, "".join(
                f"M{number(c * cw)} {number(r * ch)}h{number(w * cw)}v{number(h * ch)}h-{number(w * cw)}z"
                for r, c, h, w in _runs(step.now[panel.key])
            ))
            for i, step in enumerate(slides.steps)
            if panel.key in step.now and step.now[panel.key].any() and _marked(slides, panel)
        ]  # fmt: skip
    out["slides"] = _common(slides) | {
        "steps": [(i, step.text) for i, step in enumerate(slides.steps)],
        "at": [round(100 * i * each / whole, 3) for i in range(count + 1)],
        "each": each, "whole": whole, "rounds": ROUNDS,
        "line_px": slides.placed.line * ch, "line_y_px": (slides.placed.line_y - figure.y0) * ch,
    }  # fmt: skip
    return out


def _part(made: dict[str, Any], panel: Panel, mask: BoolArray) -> dict[str, Any]:
    """A panel's context with the masked cells alone."""
    from texgen.render.context import fill_name

    out_of_it = int(panel.fill.min()) - 1
    by_fill: dict[int, list[Rectangle]] = {}
    for rectangle, index in rectangles(np.where(mask, panel.fill, out_of_it)):
        if index != out_of_it:
            by_fill.setdefault(index, []).append(rectangle)
    rows: list[list[list[tuple[str, bool]]]] = []
    for row, kept in zip(made["label_rows"], mask.tolist(), strict=False):
        rows.append([[cell if k else ("", False) for cell, k in zip(line, kept, strict=True)] for line in row] if any(kept) else [])
    return made | {
        "fills": [(fill_name(i), by_fill[i]) for i in sorted(by_fill)],
        "marks": [[(r, c) for r, c in row if mask[r, c]] for row in made["marks"]],
        "label_rows": rows,
    }

