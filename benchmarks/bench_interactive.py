"""Interactive figures in Chromium: their size against the SVG's, how long one takes to open, and a hover to be painted.

Opening is from navigation to the first frame in which the figure answers; a hover from the pointer's event to the frame
that shows it. The floor beside them is the same figure without its script.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import texgen
from benchmarks.rows import left_out, row
from texgen.api import Drawing, FigureOptions
from texgen.specs import TVMap, TVSpec

GROUP = "pages"
OPENS, PAINTS = 2.0, 100.0
"""Bounds: seconds until a figure answers, milliseconds until a hover is painted."""
F16 = "SM80_16x8x16_F32F16F16F32_TN"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PAINTED = """(point) => new Promise((done) => {
  const target = document.querySelectorAll('.txg-target')[point[2]], box = target.getBoundingClientRect(), start = performance.now();
  target.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, pointerType: 'mouse', clientX: box.left + point[0] * box.width, clientY: box.top + point[1] * box.height }));
  requestAnimationFrame(() => { const channel = new MessageChannel(); channel.port1.onmessage = () => done(performance.now() - start); channel.port2.postMessage(0); });
})"""
SHOWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def figures() -> dict[str, Drawing]:
    random = TVSpec("random", TVMap((256, 256), np.random.default_rng(1).permutation(65536).reshape(256, 256)))
    return {
        "atom 16×8×16": texgen.figure(F16),
        "tiled 64×64×16": texgen.figure(F16, atom_layout="2,2,1", tile="64,64,16"),
        "tiled 256×256×16": texgen.figure(F16, atom_layout="4,2,1", tile="256,256,16"),
        "tiled 256×256×64": texgen.figure(F16, atom_layout="4,2,1", tile="256,256,64"),
        "layout 256×256": texgen.figure("S<3,4,3> o 0 o (256,256):(256,1)", bits=16),
        "random table 256×256": Drawing(random, FigureOptions(label="none")),
    }


def opened(browser: Any, address: str, ready: str, rounds: int = 3) -> tuple[float, Any]:
    """The least seconds until a page is ready and painted, and the last page."""
    least, page = float("inf"), None
    for _ in range(rounds):
        if page is not None:
            page.close()
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        start = time.perf_counter()
        page.goto(address)
        page.wait_for_selector(ready)
        page.evaluate(SHOWN)
        least = min(least, time.perf_counter() - start)
    return least, page


def main() -> None:
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        left_out(GROUP, "chromium or playwright is missing")
        return
    with sync_playwright() as p, tempfile.TemporaryDirectory() as folder:
        browser = p.chromium.launch(executable_path=program, args=ARGUMENTS)
        for name, drawing in figures().items():
            static, live = drawing.save(Path(folder, "figure.svg")), drawing.save(Path(folder, "figure.html"))
            sizes = [path.stat().st_size / 1000 for path in (static, live)]
            floor, page = opened(browser, static.as_uri(), "svg")
            page.close()
            seconds, page = opened(browser, live.as_uri(), ".txg-live")
            panels = len(drawing.figure.panels)
            dice = np.random.default_rng(2)
            hovers = [page.evaluate(PAINTED, [*dice.random(2).tolist(), i % panels]) for i in range(40)]
            page.close()
            large = "256×256" in name
            row(GROUP, f"opening {name}", seconds, floor, "its static SVG", shown=name == "tiled 256×256×16")
            row(GROUP, f"size of {name}", sizes[1], 3 * sizes[0] + 60, "3 × its SVG + 60 kB", unit="kB", goal=1.0)
            row(GROUP, f"a hover over {name}, the median of 40", median(hovers), PAINTS, "the bound", unit="ms", goal=1.0)
            row(GROUP, f"a hover over {name}, the slowest of 40", max(hovers), PAINTS, "the bound", unit="ms")
            if large:
                row(GROUP, f"opening {name}, held to a bound", seconds, OPENS, "the bound", goal=1.0)
        browser.close()
