"""PDF and PNG without TeX, and PNG from a PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError

PNG_SCALE = 2.0
"""Pixels of a PNG for one of the SVG."""
POINTS = 72 / 96
"""Points of a CSS pixel."""
MOST_PIXELS = 16_000
"""The longest side of a PNG."""


def svg_to_pdf(svg: str) -> bytes:
    """A PDF of an SVG at its own size, text kept as text. vl-convert prints a pixel as a point, so its size is said in points."""
    size = re.compile(r'(?<=\s)(width|height)="([\d.]+)(\w*)"')
    root, rest = svg.split(">", 1)
    return bytes(_converter().svg_to_pdf(size.sub(lambda m: f'{m[1]}="{float(m[2]) * POINTS:.4f}{m[3]}"', root) + ">" + rest))


def svg_to_png(svg: str, scale: float = PNG_SCALE) -> bytes:
    """A PNG of an SVG (vl-convert)."""
    return bytes(_converter().svg_to_png(svg, scale=scale))


def pdf_to_png(pdf: bytes, dpi: float) -> bytes | None:
    """A PNG of a PDF's first page through poppler's pdftocairo, None where that is missing.

    ImageMagick is not used: its policy file often forbids PDF.
    """
    program = shutil.which("pdftocairo")
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="texgen-") as folder:
        path = Path(folder)
        (path / "figure.pdf").write_bytes(pdf)
        result = subprocess.run(
            [program, "-png", "-singlefile", "-r", f"{dpi:.3f}", "figure.pdf", "figure"],
            cwd=path, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
        )  # fmt: skip
        image = path / "figure.png"
        if result.returncode or not image.exists():
            raise TexgenError("pdftocairo failed on the PDF.", result.stderr.decode("utf-8", "replace").strip()[:400])
        return image.read_bytes()


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise TexgenError(
            "PDF and PNG without TeX need vl-convert-python: run pip install vl-convert-python, or install a TeX engine."
        ) from None
    return vl_convert
