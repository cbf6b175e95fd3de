"""Figure → SVG, straight from its own template."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from markupsafe import escape

from texgen.figures.labels import text_width
from texgen.figures.model import Figure
from texgen.render.context import context, fill_color
from texgen.render.environment import fill, number

CELL_PX = 24.0
FONTS = {
    "text": "Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif",
    "code": "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace",
}
LINE_STEP = 1.15


def svg(figure: Figure, templates: tuple[str, ...] = ()) -> str:
    """The SVG text. Ids and class names begin with ``txg``, ids hold a hash of the figure, so that several can be inlined."""
    text = fill("figure.svg.j2", svg_context(figure), templates)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return text.replace(_ID, f"txg-{digest}")


_ID = "txg-0000000000"


def svg_context(figure: Figure) -> dict[str, Any]:
    """The templates' common names, and lengths in pixels of a cell of 24."""
    out = context(figure)
    cw, ch = CELL_PX * figure.aspect, CELL_PX
    text_px = figure.text_size * ch
    out |= {
        "id": _ID, "fonts": FONTS, "cw": cw, "ch": ch,
        "px_width": figure.width * cw, "px_height": figure.height * ch,
        "text_px": text_px, "label_px": figure.label_size * ch, "left_px": 0.3 * text_px,
        "title_px": (out["figure"]["title_y"] - figure.y0) * ch,
    }  # fmt: skip
    out |= _size(figure, out["px_width"], out["px_height"])
    out["panels"] = [panel_marks(panel, figure, cw, ch) for panel in out["panels"]]
    out["lines"] = [(line, (y - figure.y0) * ch) for line, y in out["lines"]]
    out |= _legend(figure, out, text_px, ch)
    return out


def _size(figure: Figure, width: float, height: float) -> dict[str, str]:
    """The SVG's own width and height: pixels, or the print width where that is an absolute length."""
    match = re.fullmatch(r"([\d.]+)\s*(mm|cm|in|pt|bp)", figure.print_width)
    if not match:
        return {"svg_width": number(width), "svg_height": number(height)}
    unit = "pt" if match[2] == "bp" else match[2]
    return {"svg_width": f"{match[1]}{unit}", "svg_height": f"{number(float(match[1]) * height / width)}{unit}"}


def panel_marks(panel: dict[str, Any], figure: Figure, cw: float, ch: float) -> dict[str, Any]:
    """A panel's context with its positions in pixels."""
    by_name: dict[str, list[str]] = {}
    colors: dict[str, str] = {}
    xs = [number(i * cw) for i in range(panel["width"] + 1)]
    ys = [number(i * ch) for i in range(panel["height"] + 1)]
    for name, runs in panel["fills"]:
        colors[name] = _color(name, figure.palette)
        by_name.setdefault(name, []).extend(f"M{xs[c]} {ys[r]}h{xs[w]}v{ys[h]}h-{xs[w]}z" for r, c, h, w in runs)
    width, height = panel["width"] * cw, panel["height"] * ch
    down = "".join(f"M{x} 0v{ys[-1]}" for x in xs[1:-1])
    side = 0.18 * cw
    return panel | {
        "text_px": panel["text_size"] * ch,
        "px": (panel["x"] - figure.x0) * cw, "py": (panel["y"] - figure.y0) * ch, "pw": width, "ph": height,
        "paths": [(name, colors[name], "".join(parts)) for name, parts in by_name.items()],
        "grid": down + "".join(f"M0 {y}h{xs[-1]}" for y in ys[1:-1]),
        "mark_path": "".join(
            f"M{number((c + 1) * cw)} {number((r + 1) * ch)}h{number(-side)}l{number(side)} {number(-side)}z" for row in panel["marks"] for r, c in row
        ),
        "labels": _labels(panel, figure, cw, ch),
    }  # fmt: skip


def _labels(
    panel: dict[str, Any], figure: Figure, cw: float, ch: float
) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """(y, [(x, escaped text, greyed), …]) of every label line; empty labels are left out."""
    size = figure.label_size
    centres = [number((c + 0.5) * cw) for c in range(panel["width"])]
    safe: dict[str, str] = {}
    out = []
    for r, row in enumerate(panel["label_rows"]):
        for i, line in enumerate(row):
            y = r + 0.5 + (i - (len(row) - 1) / 2) * LINE_STEP * size + 0.36 * size
            cells = []
            for x, (label, dim) in zip(centres, line, strict=True):
                if label:
                    if label not in safe:
                        safe[label] = str(escape(label))
                    cells.append((x, safe[label], dim))
            out.append((number(y * ch), cells))
    return out


def _color(name: str, palette: tuple[str, ...]) -> str:
    from texgen.render.context import FILL_NAMES

    codes = {v: k for k, v in FILL_NAMES.items()}
    return fill_color(codes[name] if name in codes else int(name), palette)


def _legend(figure: Figure, out: dict[str, Any], text_px: float, ch: float) -> dict[str, Any]:
    """Swatches one after another; text widths are estimates, since an SVG cannot measure."""
    start, side = 0.3 * text_px, 0.85 * text_px
    items = []
    for i, (y, row) in enumerate(out["legend"]):
        base = (y - figure.y0) * ch
        top = base - 0.78 * text_px
        x = start + (text_width(figure.legend_title) + 1.0 if figure.legend_title and i == 0 else 0.0) * text_px
        for item in row:
            mark = (
                f"M{number(x + side)} {number(top + side)}h{number(-side / 2)}l{number(side / 2)} {number(-side / 2)}z"
            )
            place = {"x": x, "y": top, "side": side, "base": base, "text_x": x + side + 0.25 * text_px}
            items.append(item | place | {"mark": mark})
            x += side + (1.0 + text_width(item["text"])) * text_px
    base = (figure.caption_y - figure.y0) * ch
    return {"legend": items, "legend_base": base, "legend_start": start}
