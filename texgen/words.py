"""The rule of a thread-value layout in a sentence: "Lane l holds rows m = ⌊l/4⌋ and ⌊l/4⌋ + 8, …"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from texgen.closed_form import Term, rule
from texgen.layouts import Layout, flat
from texgen.specs import TVMap

LANES = 32
LISTED = 4
"""Positions up to which a sentence lists them one by one."""
COUNTERS = "ijpqrs"


def in_words(operand: TVMap, axes: tuple[str, str] = ("row", "column")) -> str:
    """Which rows and columns a thread holds, from the operand's own layout; empty where it follows no such rule.

    ``axes`` names rows and columns: ``("n", "k")`` gives "n = …".
    """
    found = terms_of(operand)
    if found is None:
        return ""
    letter = "l" if operand.threads == LANES else "t"
    counters = iter(COUNTERS)
    parts = [_axis(terms, operand, axis, letter, counters) for terms, axis in zip(found, axes, strict=True)]
    who = "The one thread" if operand.threads == 1 else "Lane l" if letter == "l" else "Thread t"
    return f"{who} holds {parts[0]}{',' if ' and ' in parts[0] else ' and'} {parts[1]}."


def terms_of(operand: TVMap) -> tuple[list[Term], list[Term]] | None:
    """The terms of the operand's layout, whose offsets may run down the columns (MMAs) or along the rows (copies)."""
    from texgen.sources.text import plain_layout

    layout = plain_layout(operand.layout) if operand.layout else None
    if layout is None:
        return None
    return rule(layout, operand) or rule(_by_columns(layout, operand.tile), operand)


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
