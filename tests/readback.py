"""Read the drawn marks back out of TikZ and SVG: fills and labels of every cell, as a reader sees them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Drawn:
    """One panel: fill name and label lines by (row, column)."""

    fills: dict[tuple[int, int], str] = field(default_factory=dict)
    labels: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    shared: set[tuple[int, int]] = field(default_factory=set)
    dim: set[tuple[int, int]] = field(default_factory=set)
    blocks: list[tuple[int, int, int, int]] = field(default_factory=list)


def from_tikz(source: str) -> dict[str, Drawn]:
    panels: dict[str, Drawn] = {}
    for part in re.split(r"(?=\\coordinate \(txg-\w+\) at)", source)[1:]:
        name = re.match(r"\\coordinate \(txg-(\w+)\)", part)[1]
        panel = panels[name] = Drawn()
        for fill, runs in re.findall(r"\\txgFill\{txg(\w+)\}\{((?:\\R(?:\{\d+\}){4})*)\}", part):
            for c, r, w, h in re.findall(r"\\R\{(\d+)\}\{(\d+)\}\{(\d+)\}\{(\d+)\}", runs):
                for row in range(int(r), int(r) + int(h)):
                    for column in range(int(c), int(c) + int(w)):
                        assert (row, column) not in panel.fills, "a cell is filled twice"
                        panel.fills[row, column] = fill
        for r, row in enumerate(re.findall(r"\\txgRow\{((?:\\txgLine\{(?:\\[XY]\{[^{}]*\})*\})+)\}", part)):
            for line in re.findall(r"\\txgLine\{((?:\\[XY]\{[^{}]*\})*)\}", row):
                for c, (kind, text) in enumerate(re.findall(r"\\([XY])\{([^{}]*)\}", line)):
                    if text:
                        panel.labels.setdefault((r, c), []).append(text)
                        if kind == "Y":
                            panel.dim.add((r, c))
        panel.shared = {(int(r), int(c)) for c, r in re.findall(r"\\M\{(\d+)\}\{(\d+)\}", part)}
        panel.blocks = [
            (int(r), int(c), int(h), int(w))
            for c, r, w, h in re.findall(r"\\draw\[txgFrame,line width=\\txgFrameWidth\] \((\d+),(\d+)\) rectangle \+\((\d+),(\d+)\)", part)
        ]
    return panels


def from_svg(source: str, aspect: float, cell: float = 24.0) -> dict[str, Drawn]:
    width = cell * aspect
    panels: dict[str, Drawn] = {}
    for group in ET.fromstring(source).iter(f"{SVG}g"):
        if group.get("class") != "txg-panel":
            continue
        panel = panels[group.get("data-panel")] = Drawn()
        for path in group.iter(f"{SVG}path"):
            name = path.get("class", "")
            if name == "txg-shared":
                for x, y in re.findall(r"M(\S+) (\S+?)h", path.get("d")):
                    panel.shared.add((round(float(y) / cell) - 1, round(float(x) / width) - 1))
                continue
            if name == "txg-grid":
                continue
            for x, y, w, h in re.findall(r"M(\S+) (\S+?)h([\d.]+)v([\d.]+)h", path.get("d")):
                r0, c0 = round(float(y) / cell), round(float(x) / width)
                for row in range(r0, r0 + round(float(h) / cell)):
                    for column in range(c0, c0 + round(float(w) / width)):
                        assert (row, column) not in panel.fills, "a cell is filled twice"
                        panel.fills[row, column] = name.removeprefix("txg-")
        for labels in group.iter(f"{SVG}g"):
            if labels.get("class") != "txg-labels":
                continue
            for text in labels.iter(f"{SVG}text"):
                at = (int(float(text.get("y")) // cell), int(float(text.get("x")) // width))
                panel.labels.setdefault(at, []).append(text.text)
                if text.get("fill"):
                    panel.dim.add(at)
        panel.blocks = [
            (round(float(b.get("y")) / cell), round(float(b.get("x")) / width), round(float(b.get("height")) / cell), round(float(b.get("width")) / width))
            for b in group.iter(f"{SVG}rect") if b.get("class") == "txg-block" and b.get("stroke-width") == "1.2"
        ]  # fmt: skip
    return panels
