"""The same picture by others: ``tensor-layouts`` (SVG and PNG), and the C++ original as it was seen once.

The original no longer compiles; its two figures are cited: 6 s of C++ compilation and 40 s of pdflatex for eight figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import texgen
from benchmarks.bench_core import F16, best
from benchmarks.rows import left_out, row

ORIGINAL_SECONDS = 6.0 + 40.0
EIGHT = Path(__file__).parents[1] / "docs" / "reference_figures.py"


def tensor_layouts() -> None:
    """The accumulator of an atom tiled to 64x64, a cell a thread and a value, to a file."""
    try:
        import matplotlib  # noqa: F401
        from tensor_layouts import Layout
        from tensor_layouts.viz import draw_tv_layout
    except ImportError:
        left_out("peers", "matplotlib, with which tensor-layouts draws, is not installed")
        return
    from texgen.sources.text import parse_layout

    spec = texgen.read(F16, atom_layout="2,2,1", tile="64,64,16")
    layout = parse_layout(spec.C.layout)
    theirs = Layout(layout.shape, layout.stride)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("svg", "png"):
            out = Path(folder, f"x.{suffix}")

            def ours(out: Path = out) -> None:
                texgen.figure(spec.C.layout, tv=True, tile="64,64").save(out)

            def other(out: Path = out) -> None:
                draw_tv_layout(theirs, out, colorize=True, grid_shape=(64, 64))

            mine, peer = best(ours, other, rounds=2)
            row("peers", f"{suffix.upper()} file of a 64×64 TV figure", mine, peer, "tensor-layouts", inverse=True, shown=True)


def original() -> None:
    """The eight reference figures as PDF through pdflatex."""
    import subprocess
    import sys

    from texgen.render import engine

    if "pdflatex" not in engine.available():
        left_out("peers", "pdflatex is not on the PATH")
        return
    with tempfile.TemporaryDirectory() as folder:
        command: Callable[[], object] = lambda: subprocess.run([sys.executable, str(EIGHT), folder], check=True, capture_output=True)  # noqa: E731
        (seconds,) = best(command, rounds=1)
    row("peers", "the eight reference figures as PDF", seconds, ORIGINAL_SECONDS, "mma_tile_tex in C++", inverse=True, cited=True, shown=True)


def main() -> None:
    tensor_layouts()
    original()


if __name__ == "__main__":
    main()
