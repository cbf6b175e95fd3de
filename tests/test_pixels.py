"""Pictures held: figures of every kind as pixels, against committed references, from TeX and from SVG, and the two against each other.

A picture is compared by the means of squares of ``BLOCK`` pixels, which forgets how a font is hinted and keeps what is drawn
where. ``python tests/test_pixels.py`` makes the references in ``tests/pixels`` anew: look at them before committing.
"""

from __future__ import annotations

import io
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

PIL = pytest.importorskip("PIL.Image")

import texgen  # noqa: E402
from texgen.api import Drawing  # noqa: E402
from texgen.render import engine, raster  # noqa: E402
from texgen.render.svg import CELL_PX  # noqa: E402
from texgen.render.tex import wrap_document  # noqa: E402

FOLDER = Path(__file__).with_name("pixels")
LONGEST = 640
"""Pixels of a picture's longer side."""
BLOCK = 8
FAR = 60
"""Levels of 255 by which two squares differ that do not show the same."""
FEW_TEX, FEW_SVG, FEW_BOTH = 0.002, 0.002, 0.02
"""The share of such squares that passes: beside the references, and TeX's fonts beside the SVG's."""
F16 = "SM80_16x8x16_F32F16F16F32_TN"

CASES: dict[str, tuple[str, dict[str, object]]] = {
    "mma": (F16, {"atom_layout": "2,1,1"}),
    "mma-highlight": (F16, {"highlight": "T5,T22", "operand": "AC"}),
    "mma-smem": ("SM90_64x32x16_F32F16F16_SS", {"rows": "0:16"}),
    "mma-overview": (F16, {"atom_layout": "4,2,1", "tile": "128,64,16", "overview": True}),
    "mma-grey": (F16, {"operand": "C", "palette": "grey", "color_by": "quad", "caption": False}),
    "copy": ("SM75_U32x4_LDSM_N", {}),
    "copy-tiled": ("UniversalCopy<uint128_t>", {"dtype": "f16", "atom_layout": "8,4", "val_layout": "1,8"}),
    "layout": ("((2,4),(3,2)):((1,6),(2,24))", {}),
    "layout-large": ("(64,48):(48,1)", {"label": "none"}),
    "swizzle": ("S<3,4,3> o 0 o (8,64):(64,1)", {"dtype": "f16"}),
    "swizzle-plain": ("S<2,3,3> o 0 o (8,32):(32,1)", {"swizzle": False, "bits": 16}),
    "banks": ("S<3,4,3> o 0 o (8,64):(64,1)", {"dtype": "f16", "banks": "ldmatrix"}),
    "banks-column": ("(32,32):(32,1)", {"dtype": "f32", "banks": "column:0", "cols": "0:12"}),
    "tv": ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8"}),
    "tv-value": ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8", "color_by": "value", "label": "value"}),
}


@cache
def drawing(name: str) -> Drawing:
    target, options = CASES[name]
    made = texgen.figure(target, **options)
    assert isinstance(made, Drawing)
    return made


def scale(made: Drawing) -> float:
    figure = made.figure
    return LONGEST / (max(figure.width * figure.aspect, figure.height) * CELL_PX)


@cache
def from_svg(name: str) -> np.ndarray:
    """(height, width, 3) levels of the SVG's picture."""
    made = drawing(name)
    return pixels(raster.svg_to_png(made.svg(), scale(made)))


@cache
def from_tex(name: str) -> np.ndarray:
    """The same of TeX's, cut to the extent that the figure says it has, as the SVG is."""
    made = drawing(name)
    figure = made.figure
    box = rf"\pgfresetboundingbox\path[use as bounding box] ({figure.x0},{figure.y0}) rectangle +({figure.width},{figure.height});"
    source = rf"\newcommand*\txgOverlay{{{box}}}" + "%\n" + made.tikz()
    pdf = engine.compile_pdf(wrap_document(source).replace("border=3pt", "border=0pt"), "pdflatex")
    from texgen.render.context import context

    dpi = scale(made) * CELL_PX / context(figure)["figure"]["cell_mm"] * 25.4
    image = raster.pdf_to_png(pdf, dpi)
    assert image is not None
    return pixels(image)


def pixels(png: bytes) -> np.ndarray:
    with PIL.open(io.BytesIO(png)) as image:
        flat = PIL.new("RGBA", image.size, "white")
        flat.alpha_composite(image.convert("RGBA"))
        return np.asarray(flat.convert("RGB"))


def squares(picture: np.ndarray) -> np.ndarray:
    """Means of squares of BLOCK pixels; what is left over at the right and below is cut off."""
    height, width = (n // BLOCK for n in picture.shape[:2])
    cut = picture[: height * BLOCK, : width * BLOCK].astype(float)
    return cut.reshape(height, BLOCK, width, BLOCK, 3).mean(axis=(1, 3))


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """The share of squares in which two pictures differ; 1 where their sizes do."""
    if max(abs(x - y) for x, y in zip(a.shape, b.shape, strict=True)) > 2:
        return 1.0
    height, width = (min(x, y) for x, y in zip(a.shape[:2], b.shape[:2], strict=True))
    difference = np.abs(squares(a[:height, :width]) - squares(b[:height, :width])).max(axis=2)
    return float((difference > FAR).mean())


def reference(name: str, way: str) -> np.ndarray:
    return pixels((FOLDER / f"{name}.{way}.png").read_bytes())


@pytest.mark.parametrize("name", CASES)
def test_the_svg_is_the_reference(name: str) -> None:
    assert apart(from_svg(name), reference(name, "svg")) <= FEW_SVG


@pytest.mark.pdflatex
@pytest.mark.pdftocairo
@pytest.mark.parametrize("name", CASES)
def test_tex_is_the_reference(name: str) -> None:
    assert apart(from_tex(name), reference(name, "tex")) <= FEW_TEX


@pytest.mark.pdflatex
@pytest.mark.pdftocairo
@pytest.mark.parametrize("name", CASES)
def test_tex_and_svg_show_the_same(name: str) -> None:
    assert apart(from_tex(name), from_svg(name)) <= FEW_BOTH


def test_a_changed_cell_is_noticed() -> None:
    """One panel a row too low, or everything one cell to the side, are more than what passes."""
    picture, made = from_svg("mma"), drawing("mma")
    cell = round(CELL_PX * scale(made))
    panel = made.figure.panels[-1]
    x, y = (round(v * CELL_PX * scale(made)) for v in ((panel.x - made.figure.x0) * made.figure.aspect, panel.y - made.figure.y0))
    changed = picture.copy()
    changed[y:, x:] = np.roll(changed[y:, x:], cell, axis=0)
    assert apart(picture, changed) > FEW_SVG
    assert apart(picture, np.roll(picture, cell, axis=1)) > FEW_BOTH


def make() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in CASES:
        for way, picture in (("svg", from_svg(name)), ("tex", from_tex(name))):
            PIL.fromarray(picture).quantize(64).save(FOLDER / f"{name}.{way}.png", optimize=True)
        print(f"{name}: TeX and SVG differ in {apart(from_tex(name), from_svg(name)):.4f}", flush=True)
    size = subprocess.run(["du", "-sh", str(FOLDER)], capture_output=True, text=True, check=True).stdout.split()[0]
    print(f"{size} in {FOLDER}")


if __name__ == "__main__":
    sys.exit(make())
