"""The rule of a thread-value layout in a sentence: "Lane l holds rows m = ⌊l/4⌋ and ⌊l/4⌋ + 8, …"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from texgen.closed_form import Term, rule
from texgen.layouts import IntArray, Layout, flat, tv_table
from texgen.specs import Spec, TVMap

LANES = 32
LISTED = 4
"""Positions up to which a sentence lists them one by one."""
COUNTERS = "ijpqrs"
HOLDS, READS, GETS, ADDRESSES = "holds", "reads", "gets", "addresses"
"""What a thread does with the elements of an operand: the words of ``role``."""


def matrix_side(spec: Spec) -> str:
    """The side of ldmatrix or stmatrix in shared memory, ``S`` or ``D``; empty for every other target.

    There a lane names but the address of one row of 16 bytes, which the warp's instruction moves for all.
    """
    if spec.kind != "copy":
        return ""
    said = " ".join((spec.name, *spec.notes))
    return "S" if "LDSM" in said else "D" if "STSM" in said else ""


def role(spec: Spec, key: str) -> str:
    """What a thread does with its elements of operand ``key``: holds (an MMA), reads (a copy's source) or gets them, or addresses their row."""
    if spec.kind != "copy":
        return HOLDS
    return ADDRESSES if key == matrix_side(spec) else READS if key == "S" else GETS


def verb_of(does: str) -> str:
    """A role as it stands before an element: ``thread 5 reads S(5,2)``."""
    return "names the address of" if does == ADDRESSES else does


def layout_of(operand: TVMap) -> Layout | None:
    """The thread-value layout that the operand's text says, where its index gives this very table (see ``by_rows``)."""
    from texgen.sources.text import plain_layout

    layout = plain_layout(operand.layout) if operand.layout else None
    if layout is None or layout.rank != 2 or layout.is_coordinate:
        return None
    table = tv_table(layout)
    return layout if any(np.array_equal(table, t) for t in (operand.tv, _rows_first(operand))) else None


def by_rows(operand: TVMap) -> bool:
    """Whether the operand's layout text counts its tile row by row, ``columns*row + column``.

    CuTe's layouts of bare ldmatrix, stmatrix and tensor-memory atoms index such a buffer; all others count down the
    columns, ``row + rows*column``, as every table here does.
    """
    layout = layout_of(operand)
    return layout is not None and not np.array_equal(tv_table(layout), operand.tv)


def index_table(operand: TVMap) -> IntArray:
    """The table ``tv`` in the index of the operand's own layout text: what ``index_formula`` gives of row and column."""
    return _rows_first(operand) if by_rows(operand) else operand.tv


def index_formula(operand: TVMap, axes: tuple[str, str]) -> str:
    """The index of the operand's layout text in row and column: ``m + 16·n``, ``8·m + n`` where it counts row by row."""
    down, across = axes
    rows, columns = operand.tile
    return f"{columns}·{down} + {across}" if by_rows(operand) else f"{down} + {rows}·{across}"


def _rows_first(operand: TVMap) -> IntArray:
    rows, columns = operand.coordinates()
    return rows * operand.tile[1] + columns


def in_words(operand: TVMap, axes: tuple[str, str] = ("row", "column"), does: str = HOLDS) -> str:
    """Which rows and columns a thread holds, from the operand's own layout; empty where it follows no such rule.

    ``axes`` names rows and columns: ``("n", "k")`` gives "n = …"; ``does`` is what ``role`` says of the operand.
    """
    found = terms_of(operand)
    if found is None:
        return ""
    letter = "l" if operand.threads == LANES else "t"
    counters = iter(COUNTERS)
    parts = [_axis(terms, operand, axis, letter, counters) for terms, axis in zip(found, axes, strict=True)]
    who = "The one thread" if operand.threads == 1 else "Lane l" if letter == "l" else "Thread t"
    return f"{who} {verb_of(does)} {parts[0]}{',' if ' and ' in parts[0] else ' and'} {parts[1]}."


def terms_of(operand: TVMap) -> tuple[list[Term], list[Term]] | None:
    """The terms of the operand's layout, whose offsets may run down the columns (MMAs) or along the rows (copies)."""
    from texgen.sources.text import plain_layout

    layout = plain_layout(operand.layout) if operand.layout else None
    if layout is None:
        return None
    return rule(layout, operand) or rule(_by_columns(layout, operand.tile), operand)


def carried_terms_of(operand: TVMap) -> tuple[list[Term], list[Term]] | None:
    """As ``terms_of``, also where a mode runs past the end of a column into the next: ``256:1`` in a tile of 16 rows."""
    layout = layout_of(operand)
    if (found := terms_of(operand)) is not None or layout is None:
        return found
    modes = [[x for n, d in flat(m.shape, m.stride) for x in _split(n, int(d), operand.tile[0])] for m in (layout.mode(0), layout.mode(1))]  # type: ignore[arg-type]
    shape, stride = (tuple(tuple(leaf[i] for leaf in mode) for mode in modes) for i in (0, 1))
    return rule(Layout(shape, stride), operand)


def _by_columns(layout: Layout, tile: tuple[int, int]) -> Layout:
    """The layout with offsets along the rows turned into ones down the columns, digit by digit."""
    rows, columns = tile
    modes = []
    for mode in (layout.mode(i) for i in range(layout.rank)):
        leaves = [x for n, d in flat(mode.shape, mode.stride) if isinstance(d, int) for x in _split(n, d, columns)]
        modes.append(Layout(tuple(n for n, _ in leaves), tuple(d // columns + d % columns * rows for _, d in leaves)))
    return Layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes))


def _split(n: int, d: int, columns: int) -> list[tuple[int, int]]:
    """A mode that runs past the end of a row as two: along the row, and down the rows."""
    if 0 < d < columns < n * d and columns % d == 0 and n * d % columns == 0:
        return [(columns // d, d), (n * d // columns, columns)]
    return [(n, d)]


def _axis(terms: list[Term], operand: TVMap, axis: str, letter: str, counters: Iterator[str]) -> str:
    """``rows ⌊l/4⌋ and ⌊l/4⌋ + 8``, ``k = 2(l mod 4)``."""
    base = [_digit(t, letter) for t in terms if t.x == "T"]
    offsets, ranges = _offsets([t for t in terms if t.x == "V"], operand, counters)
    names = []
    for offset in offsets:
        parts = [*base, *ranges_text(ranges), *([str(offset)] if offset or not (base or ranges) else [])]
        names.append(parts[0].removeprefix("(").removesuffix(")") if len(parts) == 1 and parts[0][0] == "(" else " + ".join(parts))
    if axis in ("row", "column"):
        text = f"{axis}{'s' if len(names) > 1 or ranges else ''} {listed(names)}"
    else:
        text = f"{axis} = {listed(names)}"
    if ranges:
        text += " for " + listed([f"{name} = 0 … {count - 1}" for name, _, count in ranges])
    return text


def ranges_text(ranges: list[tuple[str, int, int]]) -> list[str]:
    """``["8i"]``."""
    return [name if step == 1 else f"{step}{name}" for name, step, _ in ranges]


def _digit(term: Term, letter: str) -> str:
    """``⌊l/4⌋``, ``2(l mod 4)``."""
    digit = letter if term.divisor == 1 else f"⌊{letter}/{term.divisor}⌋"
    if term.modulus:
        digit = f"({digit} mod {term.modulus})"
    return digit if term.coefficient == 1 else f"{term.coefficient}{digit}"


def _offsets(terms: list[Term], operand: TVMap, counters: Iterator[str]) -> tuple[list[int], list[tuple[str, int, int]]]:
    """(offsets to list, [(counter, step, count), …]): the longest runs become counters until few offsets are left."""
    digits = sorted((t.coefficient, t.modulus or operand.values // t.divisor) for t in terms)
    ranges: list[tuple[str, int, int]] = []
    while digits and _product(digits) > LISTED:
        step, count = max(digits, key=lambda d: d[1])
        digits.remove((step, count))
        ranges.append((next(counters), step, count))
    offsets = sorted(sum(x) for x in itertools.product(*(range(0, step * count, step) for step, count in digits)))
    return offsets, ranges


def _product(digits: list[tuple[int, int]]) -> int:
    out = 1
    for _, count in digits:
        out *= count
    return out


def listed(items: list[str]) -> str:
    """``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
