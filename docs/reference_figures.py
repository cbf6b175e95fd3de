"""Draw the eight reference figures of the original ``mma_tile_tex`` into a folder: ``python docs/reference_figures.py OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

import texgen
from texgen.render.engine import available

# (atom, atom layout, value layout): what mma_tile_tex's main() draws. The value layout is CUTLASS 3.3's ValLayoutMNK.
FIGURES = [
    ("SM80_16x8x16_F32F16F16F32_TN", "4,1,1", "1,2,1"),
    ("SM80_16x8x16_F32F16F16F32_TN", "1,1,1", "1,2,1"),
    ("SM80_16x8x16_F32F16F16F32_TN", "2,1,1", "1,2,1"),
    ("SM80_16x8x16_F32F16F16F32_TN", "4,1,1", "1,1,1"),
    ("SM80_16x8x16_F32F16F16F32_TN", "1,1,1", "1,1,1"),
    ("SM75_16x8x8_F32F16F16F32_TN", "1,1,1", "1,1,1"),
    ("SM75_16x8x8_F32F16F16F32_TN", "1,1,1", "1,2,1"),
    ("SM75_16x8x8_F32F16F16F32_TN", "4,1,1", "1,2,2"),
]


def file_name(atom: str, atom_layout: str, val_layout: str) -> str:
    """``SM80_16x8x16_F32F16F16F32_TN-411-121``."""
    return "-".join([atom, atom_layout.replace(",", ""), val_layout.replace(",", "")])


def main(folder: Path) -> None:
    """Write .tex and .svg of each, and .pdf where a TeX engine is on the PATH."""
    suffixes = [".tex", ".svg", *([".pdf"] if available() else [])]
    for atom, atom_layout, val_layout in FIGURES:
        drawing = texgen.figure(atom, atom_layout=atom_layout, val_layout=val_layout)
        for suffix in suffixes:
            print(drawing.save(folder / (file_name(atom, atom_layout, val_layout) + suffix)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/figures"))
