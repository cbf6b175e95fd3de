"""What the two small grammars, layout text and C++, share: limits, errors with a caret, tuples into layouts.

A parser (``parsy``) makes a small tree with positions first; what the tree means is settled afterwards, so that every
mistake can be shown at its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from parsy import ParseError, Parser, Result, regex  # type: ignore[import-untyped]

from texgen.errors import TexgenError
from texgen.layouts import Basis, ComposedLayout, IntTuple, Layout, Stride, Swizzle, compact, flat, text

MAX_TEXT = 20_000
MAX_DEPTH = 64
MAX_DIGITS = 18
MAX_REACH = 1 << 62
"""The largest size and offset of a layout: tables are of int64."""

SHOWN_COLUMNS = 100
PADDING = r"[\s\u200b\ufeff]*"
"""White space, and what web pages put between characters without showing it."""

Tiler: TypeAlias = tuple[int | Layout | None, ...]
"""One entry a mode: a size, a layout (a permutation), or None where the mode is left alone."""


@dataclass(frozen=True)
class ParsedLayout:
    """A layout as it was written; ``bits`` is the element's width where the text has it (``smem_ptr[16b]``), else 0.

    A swizzle that stands over a width acts on byte addresses, not on elements (CuTe's ``swizzle_layout.hpp``).
    """

    layout: Layout | ComposedLayout
    bits: int = 0


@dataclass(frozen=True)
class Leaf:
    """A number, or None for a word that holds a number's place (``_``, ``?``)."""

    value: int | Basis | None
    word: str
    at: int


@dataclass(frozen=True)
class Group:
    """A tuple, which may hold leaves and tuples, and in a tiler layouts."""

    items: tuple[Any, ...]
    at: int


@dataclass(frozen=True)
class Source:
    """A text that is being read: ``what`` it should be, for messages, and ``code``, the text as the parser sees it.

    ``code`` may differ from ``text`` only in characters that do not matter (comments blanked), never in length.
    """

    text: str
    what: str
    code: str

    @classmethod
    def of(cls, given: str, what: str, code: str | None = None) -> Source:
        """A text within the limits; raises TexgenError for one that is empty, too long or deep, or has huge numbers."""
        if not isinstance(given, str):
            raise TexgenError(f"A text was expected for {what}, and a {type(given).__name__} was given.")
        if len(given) > MAX_TEXT:
            raise TexgenError(
                f"The text is {len(given):,} characters long, and at most {MAX_TEXT:,} can be read as {what}."
            )
        source = cls(given.rstrip(), what, (given if code is None else code).rstrip())
        if not source.code.strip():
            raise TexgenError(f"The text is empty: give {what}.")
        huge = re.search(rf"[0-9](?:'?[0-9]){{{MAX_DIGITS},}}", source.code)
        if huge:
            raise source.error(f"a number may have at most {MAX_DIGITS} digits", huge.start())
        source._check_depth()
        return source

    def _check_depth(self) -> None:
        depth = 0
        for bracket in re.finditer(r"[(\[{<>}\])]", self.code):
            depth = depth + 1 if bracket[0] in "([{<" else max(0, depth - 1)
            if depth > MAX_DEPTH:
                raise self.error(f"brackets may be nested at most {MAX_DEPTH} deep", bracket.start())

    def parse(self, parser: Any) -> Any:
        """The parser's tree; raises TexgenError with a caret where the text stops making sense."""
        try:
            return parser.parse(self.code)
        except ParseError as failure:
            raise self._syntax_error(failure.index, failure.expected) from None
        except RecursionError:  # The caller's own stack was nearly full.
            raise self.error("brackets are nested too deep; write it flatter", 0) from None

    def error(self, problem: str, at: int) -> TexgenError:
        """The error for a mistake at position ``at``."""
        return TexgenError(f"'{shorten(self.text)}' is not {self.what}: {problem}.", caret(self.text, at))

    def swizzle(self, numbers: list[int], at: int) -> Swizzle:
        """The swizzle of three numbers, or of two where S is B (C++'s default); raises TexgenError where it is none."""
        if not 2 <= len(numbers) <= 3:
            raise self.error("a swizzle has three numbers, S<B,M,S>", at)
        bits, base, shift = (*numbers, numbers[0])[:3]
        try:
            return Swizzle(bits, base, shift)
        except TexgenError as problem:
            raise self.error(problem.message.rstrip("."), at) from None

    def _syntax_error(self, at: int, expected: frozenset[str]) -> TexgenError:
        # Rare spellings have no name in the grammars and would only make the list long.
        names = {"the end of the text" if e == "EOF" else e for e in expected if e}
        *others, last = sorted(names, key=lambda e: (e[0] == "'", e)) or ["something else"]
        problem = f"expected {', '.join(others)}{' or ' if others else ''}{last}"
        if at < len(self.code):
            found = re.compile(r"\w+|.", re.DOTALL).match(self.code, at)
            return self.error(f"{problem} instead of '{shorten(found[0] if found else '', 20)}'", at)
        opened = self._unclosed()
        problem += " before the end of the text"
        if opened is not None:
            problem += f"; the '{self.code[opened]}' in {_position(self.text, opened)} is never closed"
        return self.error(problem, at)

    def _unclosed(self) -> int | None:
        opened: list[int] = []
        for bracket in re.finditer(r"[(\[{<>}\])]", self.code):
            if bracket[0] in "([{<":
                opened.append(bracket.start())
            elif opened:
                opened.pop()
        return opened[-1] if opened else None


def token(pattern: str, name: str = "") -> Any:
    """A parser of one word and the space behind it; ``name`` is what an error says was expected, if it shall."""
    return regex(f"({pattern}){PADDING}", group=1).desc(name)


def maybe(pattern: str, name: str = "") -> Any:
    """As ``token``, and None where the word is missing.

    One step in place of the five of ``token(…).optional()``, which a long text would feel.
    """
    word = re.compile(f"({pattern}){PADDING}")
    expected = frozenset([name])

    def read(stream: str, at: int) -> Any:
        found = word.match(stream, at)
        return Result.success(found.end(), found[1]) if found else Result(True, at, None, at, expected)

    return Parser(read)


def printable(line: str) -> str:
    """The line with one visible character, or a space, for each that would move the cursor or show nothing."""
    return "".join(c if c.isprintable() and not unicodedata.combining(c) else " " if c.isspace() else "·" for c in line)


def shorten(line: str, most: int = 48) -> str:
    """A piece of text as messages quote it: one line, printable, at most ``most`` characters."""
    line = " ".join(printable(line[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def caret(whole: str, at: int) -> str:
    """The line around position ``at``, at most about 100 columns of it, and a ``^`` below the place."""
    start, line = _line(whole, at)
    column = at - start
    first = max(0, min(column - 2 * SHOWN_COLUMNS // 3, len(line) - SHOWN_COLUMNS))
    last = min(len(line), first + SHOWN_COLUMNS)
    head = ("…" if first else "") + printable(line[first:column])
    tail = printable(line[column:last]) + ("…" if last < len(line) else "")
    return f"{head}{tail}\n{' ' * _columns(head)}^"


def _line(whole: str, at: int) -> tuple[int, str]:
    start = max(whole.rfind("\n", 0, at), whole.rfind("\r", 0, at)) + 1
    end = re.compile(r"[^\r\n]*").match(whole, at)
    return start, whole[start : end.end() if end else at]


def _position(whole: str, at: int) -> str:
    start, _ = _line(whole, at)
    line = len(re.findall(r"\r\n?|\n", whole[:start]))
    return f"line {line + 1}, column {at - start + 1}" if "\n" in whole or "\r" in whole else f"column {at + 1}"


def _columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def layout_of(source: Source, shape: Any, stride: Any = None, *, basis: bool = False) -> Layout:
    """A layout of a shape's tree and a stride's; without a stride the compact column-major one.

    Raises TexgenError at the place of an entry that is not a static whole number, a size below 1, a stride whose
    structure is not the shape's, a scaled basis (``1@0``) unless ``basis``, and for layouts beyond 64-bit offsets.
    """
    sizes = _shape(source, shape)
    _check_size(source, sizes, shape.at)
    if stride is None:
        return Layout.of(sizes)
    return check_reach(source, Layout(sizes, _stride(source, sizes, stride, basis)), stride.at)


def check_reach(source: Source, layout: Layout, at: int) -> Layout:
    """The layout itself; raises TexgenError where its size or its offsets do not fit in 64 bits."""
    _check_size(source, layout.shape, at)
    reach = sum((n - 1) * abs(d.value if isinstance(d, Basis) else d) for n, d in flat(layout.shape, layout.stride))
    if reach >= MAX_REACH:
        raise source.error("its offsets do not fit in 64 bits", at)
    return layout


def entry(source: Source, node: Any) -> int | Basis:
    """The number of a leaf; raises TexgenError for anything else."""
    if not isinstance(node, Leaf):
        raise source.error("a whole number belongs here", node.at)
    if node.value is None and node.word.startswith("?"):
        raise source.error(f"it has a dynamic entry {node.word}, known at run time only; give static numbers", node.at)
    if node.value is None:
        raise source.error(f"{node.word} leaves a mode of a tile alone and is no number; give a whole number", node.at)
    return node.value


def whole(source: Source, node: Any) -> int:
    """The whole number of a leaf; raises TexgenError for anything else."""
    value = entry(source, node)
    if isinstance(value, Basis):
        raise source.error(f"{value} is a stride, and a whole number belongs here", node.at)
    return value


def size_entry(source: Source, node: Any) -> int:
    """The number of a leaf that is a size; raises TexgenError for anything else."""
    value = whole(source, node)
    if value < 1:
        raise source.error(f"a size is at least 1, and here is {value}", node.at)
    return value


def _shape(source: Source, node: Any) -> IntTuple:
    if isinstance(node, Group):
        return tuple(_shape(source, x) for x in node.items)
    if isinstance(node, Leaf):
        return size_entry(source, node)
    raise source.error("a shape is made of whole numbers and tuples, and here is a layout", node.at)


def _check_size(source: Source, shape: IntTuple, at: int) -> None:
    # Stops early: the product of thousands of large sizes would take its time.
    total = 1
    for n in _leaves(shape):
        total *= n
        if total > MAX_REACH:
            raise source.error("its size does not fit in 64 bits", at)


def _leaves(shape: IntTuple) -> Iterator[int]:
    if isinstance(shape, tuple):
        for s in shape:
            yield from _leaves(s)
    else:
        yield shape


def _stride(source: Source, shape: IntTuple, node: Any, basis: bool) -> Stride:
    """The stride, structured as ``shape`` is (CuTe: the two are congruent)."""
    if isinstance(node, Group):
        if not isinstance(shape, tuple):
            raise source.error(
                f"the shape has one number here, {shape}, and the stride a tuple; write one number", node.at
            )
        if len(shape) != len(node.items):
            raise source.error(
                f"the shape {shorten(text(shape))} has {_modes(len(shape))} and its stride here "
                f"{_modes(len(node.items))}; write a stride for each mode",
                node.at,
            )
        return tuple(_stride(source, s, x, basis) for s, x in zip(shape, node.items, strict=True))
    value = entry(source, node)
    if isinstance(shape, tuple):
        raise source.error(
            f"the shape {shorten(text(shape))} is a tuple and its stride here one number, {value}; "
            "write a tuple with a stride for each mode",
            node.at,
        )
    if isinstance(value, Basis) and not basis:
        raise source.error(f"the stride {value} gives coordinates, and offsets are needed here", node.at)
    return value


def _modes(n: int) -> str:
    return "1 mode" if n == 1 else f"{n} modes"


def mnk(source: Source, layout: Layout, at: int) -> Layout:
    """The layout with three modes, M, N and K, missing ones of size 1, as ``make_tiled_mma`` appends them.

    Raises TexgenError for more than three.
    """
    if layout.rank > 3:
        raise source.error(f"it has {layout.rank} modes and M, N, K are three", at)
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    missing = 3 - layout.rank
    if layout.stride == compact(layout.shape):
        return Layout.of(shape + (1,) * missing)
    return Layout(shape + (1,) * missing, stride + (0,) * missing)
