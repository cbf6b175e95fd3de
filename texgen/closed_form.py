"""The rule of a thread-value layout in closed form: row and column as integer expressions of T and V."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texgen.layouts import Layout, flat
from texgen.specs import TVMap


@dataclass(frozen=True)
class Term:
    """``coefficient * ((x // divisor) % modulus)``; modulus 0: the digit is the last, no remainder is taken."""

    x: str
    divisor: int
    modulus: int
    coefficient: int

    def __str__(self) -> str:
        digit = self.x if self.divisor == 1 else f"{self.x}//{self.divisor}"
        if self.modulus:
            digit = f"({digit})%{self.modulus}" if self.divisor != 1 else f"{digit}%{self.modulus}"
        return (
            digit
            if self.coefficient == 1
            else f"{self.coefficient}*({digit})"
            if digit != self.x
            else f"{self.coefficient}*{digit}"
        )


def rule(layout: Layout, operand: TVMap) -> tuple[list[Term], list[Term]] | None:
    """The terms whose sums are row and column of (thread T, value V).

    None where the layout is no such sum in this tile (a row that carries into the next column); the terms are checked
    against the whole table before they are given.
    """
    rows = operand.tile[0]
    if layout.rank != 2 or layout.is_coordinate:
        return None
    digits = [*_digits(layout.mode(0), "T"), *_digits(layout.mode(1), "V")]
    down = _merge([(x, d, s, c, c % rows) for x, d, s, c in digits], operand)
    across = _merge([(x, d, s, c, c // rows) for x, d, s, c in digits], operand)
    if down is None or across is None:
        return None
    t, v = np.indices(operand.tv.shape)
    value = {"T": t, "V": v}
    true_rows, true_columns = operand.coordinates()
    for terms, truth in ((down, true_rows), (across, true_columns)):
        total = np.zeros(operand.tv.shape, dtype=np.int64)
        for term in terms:
            digit = value[term.x] // term.divisor
            total += term.coefficient * (digit % term.modulus if term.modulus else digit)
        if not np.array_equal(total, truth):
            return None
    return down, across


def _digits(layout: Layout, x: str) -> list[tuple[str, int, int, int]]:
    """(variable, divisor, size, stride) of each leaf mode."""
    out, divisor = [], 1
    for n, d in flat(layout.shape, layout.stride):
        if not isinstance(d, int) or d < 0:
            return [(x, 1, n, -1)]
        if n > 1:
            out.append((x, divisor, n, d))
        divisor *= n
    return out


def _merge(digits: list[tuple[str, int, int, int, int]], operand: TVMap) -> list[Term] | None:
    """Terms with a coefficient, neighbouring digits joined where together they are one number."""
    terms: list[Term] = []
    sizes: list[int] = []
    for x, divisor, n, stride, coefficient in digits:
        if stride < 0:
            return None
        if not coefficient:
            continue
        last = terms[-1] if terms else None
        if last and last.x == x and last.divisor * sizes[-1] == divisor and last.coefficient * sizes[-1] == coefficient:
            terms[-1] = Term(x, last.divisor, sizes[-1] * n, last.coefficient)
            sizes[-1] *= n
        else:
            terms.append(Term(x, divisor, n, coefficient))
            sizes.append(n)
    total = {"T": operand.threads, "V": operand.values}
    return [
        Term(t.x, t.divisor, 0 if t.divisor * n == total[t.x] else n, t.coefficient)
        for t, n in zip(terms, sizes, strict=True)
    ]


def sum_of(terms: list[Term]) -> str:
    return " + ".join(map(str, terms)) or "0"
