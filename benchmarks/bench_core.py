"""Ratios against peers and floors, both sides in one run: TeX, SVG, reading, start-up.

Times are the best of several runs, taken in turn, since machines are shared.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import texgen
from benchmarks.rows import left_out, row
from texgen.render import engine

EMPTY = "\\documentclass[border=3pt]{standalone}\n\\usepackage{tikz}\n\\begin{document}\n\\begin{tikzpicture}\\end{tikzpicture}\n\\end{document}\n"
F16 = "SM80_16x8x16_F32F16F16F32_TN"


def best(*actions: Callable[[], object], rounds: int = 5) -> list[float]:
    """The least time of each action over ``rounds`` rounds, taken in turn."""
    least = [float("inf")] * len(actions)
    for _ in range(rounds):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def tv64() -> tuple[str, dict[str, object]]:
    """The C operand of a 64x64 tile: a TV layout of 128 threads and 32 values."""
    spec = texgen.read(F16, atom_layout="2,2,1", tile="64,64,16")
    return spec.C.layout, {"tv": True, "tile": "64,64"}


def dsl_source(layout: str) -> str | None:
    """What the DSL's own ``print_latex_tv`` prints for the same layout; None where there is no DSL."""
    try:
        import cutlass.cute as cute
        from cutlass._mlir import ir
    except ImportError:
        return None
    from texgen.sources.text import parse_layout

    parsed = parse_layout(layout)
    out = io.StringIO()
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body), contextlib.redirect_stdout(out):
            cute.viz.print_latex_tv(cute.make_layout(parsed.shape, stride=parsed.stride), (64, 64))
    return out.getvalue()


def tex() -> None:
    if "pdflatex" not in engine.available():
        left_out("TeX", "pdflatex is not on the PATH")
        return
    layout, options = tv64()
    ours = texgen.figure(layout, **options).tex()
    floor, mine = best(
        lambda: engine.compile_pdf(EMPTY, "pdflatex"), lambda: engine.compile_pdf(ours, "pdflatex"), rounds=7
    )
    row("TeX", "pdflatex of a 64×64 TV figure", mine, floor, "an empty picture", goal=1.6, shown=True)
    theirs = dsl_source(layout)
    if theirs is not None:
        (slow,) = best(lambda: plain_pdflatex(theirs), rounds=1)
        row("TeX", "the same figure by the DSL's print_latex_tv", mine, slow, "print_latex_tv", inverse=True, goal=15, shown=True)
    for size in (128, 256):
        source = texgen.figure(F16, atom_layout="4,2,1", tile=f"{size},{size},16", operand="C").tex()
        (seconds,) = best(lambda source=source: engine.compile_pdf(source, "pdflatex"), rounds=2)
        row("TeX", f"pdflatex of a {size}×{size} figure", seconds, floor, "an empty picture")


def plain_pdflatex(source: str) -> None:
    """pdflatex as a user would run it on another tool's output."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x.tex").write_text(source)
        subprocess.run(["pdflatex", "-interaction=batchmode", "x.tex"], cwd=folder, capture_output=True, check=False)


def svg() -> None:
    """A 128x128 SVG with every label, in the process, against writing its bytes by a bare loop."""
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="128,128,16", operand="C", label="full")

    def bare() -> str:
        return "".join(
            f'<text x="{c}" y="{r}">T{r}</text><text x="{c}" y="{r}">V{c}</text>'
            for r in range(128)
            for c in range(128)
        )

    def whole() -> str:
        return texgen.figure(F16, atom_layout="2,2,1", tile="128,128,16", operand="C", label="full").svg()

    template, everything, floor = best(drawing.svg, whole, bare)
    row("SVG", "SVG of 128×128 with every label", template, floor, "its labels by a bare loop", shown=True)
    row("SVG", "the same with reading and placing", everything, floor, "its labels by a bare loop")


def reading() -> None:
    """Three tables of a 128x128 TiledMma: from the catalogue and from the DSL, against the DSL's own evaluation a cell."""
    (named,) = best(lambda: texgen.read(F16, atom_layout="2,2,1", tile="128,128,16"))
    try:
        import cutlass
        import cutlass.cute as cute
        from cutlass._mlir import ir
        from cutlass.cute.nvgpu import warp
    except ImportError:
        left_out("reading", "the DSL is not installed")
        return
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
            mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(128, 128, 16))
            layout = mma.tv_layout_C_tiled
            threads = [(t, 0) for t in range(128)]

            def cells() -> None:
                for t, v in threads:
                    layout((t, v))

            live, some = best(lambda: texgen.read(mma), cells)
    whole = some * 128  # 128 values a thread
    what = "three tables of a 128×128 TiledMma"
    row("reading", f"{what}, by name", named, whole, "C alone by the DSL, a cell a call", inverse=True, shown=True)
    row("reading", f"{what}, from the live object", live, whole, "C alone by the DSL, a cell a call", inverse=True)


def startup() -> None:
    """Whole processes, against Python's own start."""
    with tempfile.TemporaryDirectory() as folder:

        def call(*arguments: str) -> Callable[[], object]:
            return lambda: subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=True)

        python, helped, rendered = best(
            call("-c", "pass"),
            call("-m", "texgen", "--help"),
            call("-m", "texgen", "render", "(8,8):(8,1)", "-o", "x.svg"),
            rounds=7,
        )
    row("process", "texgen --help", helped, python, "an empty Python", shown=True)
    row("process", "texgen render '(8,8):(8,1)' -o x.svg", rendered, python, "an empty Python", shown=True)


def main() -> None:
    startup()
    svg()
    reading()
    tex()


if __name__ == "__main__":
    main()
