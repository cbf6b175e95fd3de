"""Bar charts of results: Vega-Lite (through vl-convert) draws them for HTML, pgfplots in LaTeX; elsewhere the table is all.

A chart is one number a bar, in groups with a label above them. Its text stays text and takes the page's colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docutils import nodes

from texgen.sphinxext.steps import domain_of

COLOURS = ("#2f7dbd", "#c4701a", "#5f8f2f", "#a35fb8", "#8a7f6a")
"""Of the series; each has contrast against a light page and a dark one."""
WIDTH, BAR, LABEL, GAP = 400, 15, 17, 9
ROOM = 0.16
"""Part of the width that is left for the number at the end of the longest bar."""
PGFPLOTS = "pgfplots"


@dataclass(frozen=True)
class Bar:
    """One bar: the label of its group, what it is compared with, and the number."""

    label: str
    series: str
    value: float


class chart(nodes.General, nodes.Element):
    """A chart. ``bars``: a tuple of Bar; ``axis``: what the numbers are; ``mark``: where a line stands, or None; ``alt``."""


def specification(bars: Sequence[Bar], axis: str, mark: float | None) -> dict[str, Any]:
    """The chart in Vega-Lite."""
    series = list(dict.fromkeys(b.series for b in bars))
    colours = dict(zip(series, COLOURS, strict=False))
    y, rows, labels, marks = 0, [], [], []
    for label in dict.fromkeys(b.label for b in bars):
        labels.append({"zero": 0, "label": label, "y": y + LABEL - 5})
        y += LABEL
        for bar in (b for b in bars if b.label == label):
            rows.append({"zero": 0, "series": bar.series, "value": bar.value, "y": y, "y2": y + BAR - 2, "middle": y + BAR / 2})
            y += BAR
        marks.append({"at": mark, "y": rows[-1]["y2"], "y2": y - BAR * sum(b.label == label for b in bars)})
        y += GAP
    end = max(b.value for b in bars) * (1 + ROOM)
    vertical = {"scale": {"domain": [0, y], "reverse": True, "nice": False}, "axis": None, "type": "quantitative"}
    across = {"type": "quantitative", "scale": {"domain": [0, end], "nice": False}, "title": axis}
    colour = {
        "field": "series", "type": "nominal", "scale": {"domain": series, "range": [colours.get(s, COLOURS[-1]) for s in series]},
        "legend": {"title": None, "orient": "top", "direction": "vertical" if len(series) > 2 else "horizontal", "labelLimit": WIDTH},
    }  # fmt: skip
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": rows}, "mark": {"type": "rect"},
            "encoding": {
                "x": {"field": "zero", **across}, "x2": {"field": "value"}, "y": {"field": "y", **vertical}, "y2": {"field": "y2"},
                "color": colour,
            },
        },
        {
            "data": {"values": rows}, "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 4, "fill": "currentColor"},
            "encoding": {"x": {"field": "value", **across}, "y": {"field": "middle", **vertical}, "text": {"field": "value", "format": ".2f"}},
        },
        {
            "data": {"values": labels}, "mark": {"type": "text", "align": "left", "baseline": "alphabetic", "fill": "currentColor"},
            "encoding": {"x": {"field": "zero", **across}, "y": {"field": "y", **vertical}, "text": {"field": "label"}},
        },
    ]  # fmt: skip
    if mark is not None and mark < end:
        layers.insert(1, {
            "mark": {"type": "rule", "stroke": "currentColor", "strokeDash": [3, 3], "opacity": 0.7},
            "data": {"values": marks},
            "encoding": {"x": {"field": "at", **across}, "y": {"field": "y", **vertical}, "y2": {"field": "y2"}},
        })  # fmt: skip
    ink = {f"{part}Color": "currentColor" for part in ("label", "title", "domain", "tick", "grid")}
    return {
        "width": WIDTH, "height": y, "background": None, "padding": 2,
        "layer": layers,
        "config": {
            "font": "sans-serif", "text": {"fontSize": 12}, "view": {"stroke": None},
            "axis": {**ink, "tickCount": 6, "gridOpacity": 0.15, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelColor": "currentColor", "labelFontSize": 12, "symbolType": "square"},
        },
    }  # fmt: skip


def svg(bars: Sequence[Bar], axis: str, mark: float | None) -> str:
    """The chart as an SVG whose text and lines are ``currentColor``."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(specification(bars, axis, mark)))


def html_chart(self: Any, node: chart) -> None:
    """The SVG inside the page; an EPUB has the table alone."""
    if self.builder.name != "epub" and node["bars"]:
        studio = domain_of(self.builder.env).open_studio
        picture = svg(node["bars"], node["axis"], node["mark"])
        self.body.append(studio.page_text("sphinx_chart.html.j2", {"svg": picture, "alt": node["alt"]}))
    raise nodes.SkipNode


def latex_chart(self: Any, node: chart) -> None:
    """pgfplots, in the document's fonts."""
    bars: tuple[Bar, ...] = node["bars"]
    if bars:
        series = list(dict.fromkeys(b.series for b in bars))
        y, ticks, rows = 0.0, [], []
        for label in dict.fromkeys(b.label for b in bars):
            mine = [b for b in bars if b.label == label]
            ticks.append((y + (len(mine) - 1) / 2, label))
            for bar in mine:
                rows.append((bar.series, y, bar.value))
                y += 1
            y += 0.6
        names = {
            "series": [(s, c.lstrip("#"), [(at, v) for n, at, v in rows if n == s]) for s, c in zip(series, COLOURS, strict=False)],
            "ticks": ticks, "end": max(b.value for b in bars) * (1 + ROOM), "mark": node["mark"], "axis": node["axis"], "height": y,
        }  # fmt: skip
        self.body.append(domain_of(self.builder.env).open_studio.page_text("sphinx_chart.tex.j2", names))
    raise nodes.SkipNode


def skip(self: Any, node: nodes.Element) -> None:
    """The table says it."""
    raise nodes.SkipNode


def _depart(self: Any, node: nodes.Element) -> None:
    pass


CHART: dict[str, Any] = {
    "html": (html_chart, _depart), "latex": (latex_chart, _depart),
    **{form: (skip, _depart) for form in ("text", "man", "texinfo")},
}  # fmt: skip
