"""Named palettes: fills for cells, chosen so that black labels can be read on every one.

The default was found by a search over OKLCH: eight fills a constant step of CIE L* apart (96 to 55, so that they differ
in grey), with the largest least distance under normal vision, protanopia, deuteranopia and tritanopia (Machado et al.
2009). ``tests/test_palette.py`` holds all palettes to those bounds.
"""

from __future__ import annotations

import difflib

from texgen.errors import UsageError

# Interleaved in lightness, so that neighbouring threads contrast.
PALETTES: dict[str, tuple[str, ...]] = {
    "default": ("E3F7FD", "61C2B6", "F1E593", "96AA67", "A7D8FC", "D07A84", "EBBB56", "9175C5"),
    # The eight pastels of CuTe's print_latex, for figures that should look like CuTe's own.
    "cute": ("AFAFFF", "AFFFAF", "FFFFAF", "FFAFAF", "D2D2FF", "D2FFD2", "FFFFD2", "FFD2D2"),
    # Eight greys, light and dark in turn (the levels of print_latex's black and white output, lightened for labels).
    "grey": ("FFFFFF", "A8A8A8", "D6D6D6", "8C8C8C", "EBEBEB", "B8B8B8", "C7C7C7", "9A9A9A"),
    # Okabe and Ito's colours (2008), mixed with white so that labels can be read.
    "okabe-ito": ("F7D794", "ABDAF4", "80CEB9", "F8F1A0", "80B8D8", "EAAE80", "E5BCD3", "C8C8C8"),
    "white": ("FFFFFF",),
}

DIM = "F4F4F4"
"""The fill of cells that a highlight greys out."""

MEMORY = "E9EDF2"
"""The fill of an operand that no thread holds a part of (read from shared or tensor memory)."""

INK = "000000"
DIM_INK = "767676"
"""Labels of greyed-out cells: still 4.5 : 1 on white."""


def palette(name: str) -> tuple[str, ...]:
    """The fills of a palette, RRGGBB. Raises UsageError for an unknown name."""
    try:
        return PALETTES[name]
    except KeyError:
        near = difflib.get_close_matches(name, PALETTES, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"There is no palette {name!r}{hint}: take one of {', '.join(PALETTES)}.") from None
