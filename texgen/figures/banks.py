"""A layout in shared memory by its banks, and what one access of a warp costs there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texgen.banks import BANK_BYTES, BANKS, Access, access, bank
from texgen.figures import caption as words
from texgen.figures.model import DIMMED, Block, LegendItem, Line, Panel
from texgen.figures.options import FigureOptions, crop
from texgen.figures.palette import palette
from texgen.figures.panels import FULL_LIMIT
from texgen.layouts import IntArray
from texgen.specs import LayoutSpec

GROUP = 16 // BANK_BYTES
"""Banks of one colour: those of 16 bytes, so that a row of 128 bytes has eight colours."""


def before(spec: LayoutSpec) -> LayoutSpec:
    """The layout without its swizzle."""
    return spec if spec.plain is None else replace(spec, offsets=spec.plain, plain=None, swizzle=None)


def bank_panel(key: str, what: str, spec: LayoutSpec, options: FigureOptions) -> tuple[Panel, Access]:
    """A panel whose labels are banks and the lanes of an access, and the access. Raises TexgenError as ``access`` does."""
    found = access(spec, options.banks)
    rows, columns = crop(options.rows, spec.offsets.shape[0], "rows"), crop(options.cols, spec.offsets.shape[1], "cols")
    here = np.ix_(rows, columns)
    banks = bank(spec.offsets * spec.bits // 8)
    lanes = _lanes(found, spec.offsets.shape)
    taken = np.zeros(spec.offsets.shape, dtype=bool)
    taken[found.rows, found.columns] = True
    fill = np.where(taken, banks // GROUP % len(palette(options.palette)), DIMMED)[here]
    lines: tuple[list[list[str]], ...] = ()
    if options.label != "none" and (options.label != "auto" or max(fill.shape) <= FULL_LIMIT):
        names = np.array([str(b) for b in range(BANKS)], dtype=object)
        lines = (lanes[here].tolist(), names[banks][here].tolist())
    cost = found.conflicts
    title = f"{what}: {words.plural(cost.wavefronts, 'wavefront')} (ideal {cost.ideal})"
    return Panel(key, title, rows, columns, "i", "j", fill, lines, blocks=_outlines(found, rows, columns)), found


def _lanes(found: Access, shape: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
    """``T5`` in the cells that lane 5 takes, ``T0 +31`` where it is not alone."""
    names = np.full(shape, "", dtype=object)
    count = np.zeros(shape, dtype=np.int64)
    np.add.at(count, (found.rows, found.columns), 1)
    for lane in reversed(range(len(found.rows))):
        names[found.rows[lane], found.columns[lane]] = f"T{lane}"
    more = count > 1
    names[more] += np.array([f" +{n - 1}" for n in count[more]], dtype=object)
    return names


def _outlines(found: Access, rows: IntArray, columns: IntArray) -> tuple[Block, ...]:
    """A frame around the cells of each lane."""
    out = {}
    for r, c in zip(found.rows, found.columns, strict=True):
        r0, r1 = np.searchsorted(rows, [r[0], r[-1] + 1])
        c0, c1 = np.searchsorted(columns, [c[0], c[-1] + 1])
        if r1 > r0 and c1 > c0:
            out[int(r0), int(c0)] = Block(int(r0), int(c0), int(r1 - r0), int(c1 - c0), "")
    return tuple(out.values())


def legend(options: FigureOptions) -> tuple[list[LegendItem], str]:
    """Colours by groups of four banks."""
    colors = len(palette(options.palette))
    if colors == 1:
        return [], ""
    shown = min(colors, BANKS // GROUP)
    again = f", modulo {GROUP * colors}" if colors < BANKS // GROUP else ""
    return [
        LegendItem(g, f"{GROUP * g}–{GROUP * g + GROUP - 1}") for g in range(shown)
    ], f"Colour: banks ({GROUP * BANK_BYTES} bytes){again}"


def lines_of(found: Access, panel: str = "") -> list[Line]:
    """What the access costs, and where it is not the ideal, why."""
    cost = found.conflicts
    text = f"{panel + ', ' if panel else ''}{found}"
    if cost.excess:
        worst = max(cost.phases, key=lambda p: p.wavefronts)
        text += (
            f", excess {cost.excess}: lanes {worst.lanes[0]} to {worst.lanes[-1]} want {worst.wavefronts} different words "
            f"of bank {worst.bank}"
        )
    return [Line(text)]


def key_line(found: Access) -> Line:
    """How to read a label, by one that is there."""
    lane = min(5, len(found.rows) - 1)
    where = int(bank(found.offsets[lane, 0] * found.bits // 8))
    cell = f"({int(found.rows[lane, 0])},{int(found.columns[lane, 0])})"
    return Line(
        f"T{lane} above {where}: lane {lane} takes the element at {cell}, which lies in bank {where} of {BANKS}; the rest is greyed out"
    )


def alternative_text(found: Access, figure: str) -> str:
    cost = found.conflicts
    return (
        f"{figure} Each cell has its bank; {found.name} takes {cost.wavefronts} wavefronts where {cost.ideal} would do."
    )
