"""Ratios against peers and floors, both sides in one run: TeX, SVG, reading, start-up.

Each line prints the measured seconds of both sides, their ratio and the goal. Times are the best of several runs, taken
in turn, since machines are shared.
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


def line(what: str, ours: float, other: float, ratio: float, goal: str) -> None:
    print(f"{what:<66} {ours:8.3f} s  against {other:8.3f} s  ratio {ratio:7.2f}  (goal {goal})")


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
        print("pdflatex is not on the PATH: its ratios are left out")
        return
    layout, options = tv64()
    ours = texgen.figure(layout, **options).tex()
    floor, mine = best(
        lambda: engine.compile_pdf(EMPTY, "pdflatex"), lambda: engine.compile_pdf(ours, "pdflatex"), rounds=7
    )
    line("pdflatex: our 64x64 TV figure against an empty picture", mine, floor, mine / floor, "<= 1.6")
    theirs = dsl_source(layout)
    if theirs is not None:
        (slow,) = best(lambda: plain_pdflatex(theirs), rounds=1)
        line("pdflatex: print_latex_tv's 64x64 against ours", slow, mine, slow / mine, ">= 15")
    for size in (128, 256):
        source = texgen.figure(F16, atom_layout="4,2,1", tile=f"{size},{size},16", operand="C").tex()
        (seconds,) = best(lambda source=source: engine.compile_pdf(source, "pdflatex"), rounds=2)
        line(
            f"pdflatex: our {size}x{size} figure against an empty picture", seconds, floor, seconds / floor, "compiles"
        )


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
    line("SVG: 128x128 with all labels against a bare loop", template, floor, template / floor, "<= 0.3 s")
    line("SVG: the same with reading and placing", everything, floor, everything / floor, "<= 0.3 s")


def reading() -> None:
    """Three tables of a 128x128 TiledMma: from the catalogue and from the DSL, against the DSL's own evaluation a cell."""
    (named,) = best(lambda: texgen.read(F16, atom_layout="2,2,1", tile="128,128,16"))
    try:
        import cutlass
        import cutlass.cute as cute
        from cutlass._mlir import ir
        from cutlass.cute.nvgpu import warp
    except ImportError:
        print(f"reading: 128x128 from the catalogue {named:.3f} s (goal <= 0.05 s); no DSL here")
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
    line("reading: TiledMma 128x128, three tables, catalogue", named, whole, whole / named, "<= 0.05 s")
    line(
        "reading: the same from the live object (other side: C, a cell a call)", live, whole, whole / live, "<= 0.05 s"
    )


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
    line("process: texgen --help against an empty Python", helped, python, helped / python, "<= 0.3 s")
    line("process: texgen render '(8,8):(8,1)' -o x.svg", rendered, python, rendered / python, "<= 0.6 s")


def main() -> None:
    startup()
    svg()
    reading()
    tex()


if __name__ == "__main__":
    main()
