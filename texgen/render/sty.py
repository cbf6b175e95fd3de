"""The LaTeX package ``texgen.sty``."""

from __future__ import annotations

from itertools import cycle, islice

from texgen.figures.palette import PALETTES
from texgen.render.environment import fill

DATE = "2026-01-01"
"""Of ``\\ProvidesPackage``: the date of the last change to the keys, so that the file is the same every time."""
FILLS = max(map(len, PALETTES.values()))
MEMORY_GREY = "EDEDED"
"""The tinted fill of an operand in memory (``palette.MEMORY``), as lightness alone."""


def sty(templates: tuple[str, ...] = ()) -> str:
    """The text of ``texgen.sty``: keys, presets and every palette of texgen by its name.

    A palette of fewer fills than the longest begins again, for a figure's fills are numbered by the palette it was made with.
    """
    from texgen import __version__

    fills = [(name, list(islice(cycle(colors), FILLS))) for name, colors in PALETTES.items()]
    names = {"version": __version__, "date": DATE, "palettes": list(PALETTES), "fills": fills, "memory_grey": MEMORY_GREY}
    return fill("texgen.sty.j2", names, templates)
