"""Layout text in the spellings of print-outs: CuTe C++, the CuTe DSL, tensor-layouts, papers, logs.

The form is CuTe's, ``shape:stride`` with nested tuples, and ``inner o offset o layout`` for a composed layout (CuTe
documentation, "CuTe Layouts"; ``print`` in ``layout.hpp``, ``layout_composed.hpp``, ``swizzle.hpp``, ``pointer.hpp``).
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from parsy import alt, generate, index, regex, seq  # type: ignore[import-untyped]

from texgen.errors import TexgenError
from texgen.layouts import Basis, ComposedLayout, Layout, Swizzle
from texgen.sources.grammar import (
    PADDING,
    Group,
    Leaf,
    ParsedLayout,
    Source,
    Tiler,
    layout_of,
    maybe,
    mnk,
    size_entry,
    token,
    whole,
)

__all__ = [
    "ParsedLayout",
    "parse_atom_layout",
    "parse_dims",
    "parse_layout",
    "parse_layout_text",
    "parse_swizzle",
    "parse_tile",
]

Rule: TypeAlias = Generator[Any, Any, Any]


@dataclass(frozen=True)
class Pair:
    """``shape:stride``; the stride is None where only ``Layout(shape)`` stands."""

    shape: Any
    stride: Any
    at: int


@dataclass(frozen=True)
class SwizzleText:
    numbers: tuple[Leaf, ...]
    at: int


@dataclass(frozen=True)
class Pointer:
    """``smem_ptr[16b](unset)``, or a tensor's ``Sw<3,4,3>_smem_ptr[16b](0x…)``."""

    bits: int
    swizzle: SwizzleText | None
    at: int


# --- The grammar. A rule is a generator function: each yield runs a parser and gets what it read.


comma, maybe_comma = token(",", "','"), maybe(",", "','")
maybe_colon = maybe(":", "':'")
maybe_opening, maybe_closing = maybe(r"\(", "'('"), maybe(r"\)", "')'")
opening, closing = token(r"\(", "'('"), token(r"\)", "')'")
maybe_end = maybe(r"\Z")
maybe_compose = maybe("[o∘◦○⚬]", "'o'")
times = token("[x×X,]", "','")

INTEGER = r"(?:[-−]_?|_[-−]?)?[0-9]+"
number = token(
    rf"{INTEGER}(?:@_?[0-9]+)*"  # 4, _4, 1@0
    rf"|(?:Int|C)\s*<\s*{INTEGER}\s*>(?:\s*\{{\s*\}})?"  # Int<4>{}
    r"|\?(?:\{[^{}]*\})?"  # ?, ?{i32 div=4}
    r"|_(?!\w)|None\b|\*",
    "a whole number",
)
swizzle_name = token(r"(?:Swizzle|Sw|S)\s*[<(]")
swizzle_end = token(r"[>)](?:\s*\{\s*\})?", "'>'")
pointer = token(r"(?:[a-z]+_)?ptr_?\[[0-9]+b\]\([^()]*\)")
swizzled = regex(r"(?:_(?=[a-z]*_?ptr))?")
layout_call = token(r"(?:cute\.)?(?:Layout|make_layout)\s*\(")
stride_word = regex(r"(?:stride\s*=\s*)?")
maybe_mlir = maybe(r'!cute\.\w+<"')
mlir_end = token('">', "'\">'")


def _leaf() -> Rule:
    at = yield index
    word = (yield number).replace("−", "-")
    if word[0] == "?":
        return Leaf(None, word, at)
    if "@" in word:
        value, *modes = (int(x.replace("_", "")) for x in word.split("@"))
        return Leaf(Basis(value, tuple(reversed(modes))), word, at)
    digits = re.search(r"-?_?-?[0-9]+", word)
    return Leaf(int(digits[0].replace("_", "")) if digits else None, word, at)


def _element() -> Rule:
    at = yield index
    if not (yield maybe_opening):
        return (yield simple_element)
    items = []
    while True:
        items.append((yield item))
        if (yield maybe_closing):
            break
        yield comma
        # Python writes a comma behind a lone entry.
        if (yield maybe_closing):
            break
    return Group(tuple(items), at)


def _layout_call() -> Rule:
    at = yield index
    yield layout_call
    first = yield item
    second = None
    if (yield maybe_comma):
        yield stride_word
        second = yield element
    yield closing
    return first if isinstance(first, Pair) and second is None else Pair(first, second, at)


def _swizzle() -> Rule:
    at = yield index
    yield swizzle_name
    numbers = yield leaf.sep_by(comma, min=1, max=3)
    yield swizzle_end
    return SwizzleText(tuple(numbers), at)


def _swizzle_or_tensor() -> Rule:
    swizzle = yield swizzle_text
    if not (yield swizzled):
        return swizzle
    return Pointer(_bits((yield pointer)), swizzle, swizzle.at)


def _item() -> Rule:
    """An element, or a layout: the tuple is read once and the ``:`` looked for behind it, so nothing is read twice."""
    first = yield element
    if isinstance(first, (Leaf, Group)) and (yield maybe_colon):
        return Pair(first, (yield element), first.at)
    return first


def _items() -> Rule:
    items = [(yield item)]
    while (yield maybe_comma):
        if (yield maybe_end) is not None:
            break
        items.append((yield item))
    return items


def _composed() -> Rule:
    wrapped = yield maybe_mlir
    parts = [(yield item)]
    while (yield maybe_compose):
        parts.append((yield item))
    if wrapped:
        yield mlir_end
    return parts


def _bits(word: str) -> int:
    return int(word[word.index("[") + 1 : word.index("b]")])


padding = regex(PADDING)
leaf = generate(_leaf)
swizzle_text = generate(_swizzle)
simple_element = alt(
    leaf,
    generate(_swizzle_or_tensor),
    seq(index, pointer).combine(lambda at, word: Pointer(_bits(word), None, at)),
    generate(_layout_call),
)
element = generate(_element)
item = generate(_item)
items = padding >> generate(_items)
dims = seq(leaf << times, leaf)
composed = padding >> generate(_composed)


# --- What the trees mean.


def parse_layout(text: str) -> Layout | ComposedLayout:
    """A layout or composed layout of its text; raises TexgenError, as ``parse_layout_text``.

    >>> str(parse_layout("Sw<3,4,3> o _0 o ( _8, _64 )"))
    'S<3,4,3> o 0 o (8,64):(1,8)'
    """
    return parse_layout_text(text).layout


def plain_layout(text: str) -> Layout | None:
    """The layout that a text holds; None where it holds none, or a composed one."""
    try:
        layout = parse_layout(text)
    except TexgenError:
        return None
    return layout if isinstance(layout, Layout) else None


def parse_layout_text(text: str) -> ParsedLayout:
    """A layout of its text, and the width of its elements where the text has it.

    Raises TexgenError, with a caret under the place, for text that is no layout, dynamic entries (``?``), sizes below
    1, a stride whose structure is not the shape's, and text beyond the limits (length, depth, digits).
    """
    source = Source.of(text, "a layout")
    parts = [_unwrap(part) for part in source.parse(composed)]
    first, *middle, last = [None, *parts] if len(parts) == 1 else parts
    if isinstance(last, SwizzleText):
        raise source.error(
            "a swizzle alone has no shape; write it before a layout, as in S<3,3,3> o 0 o (8,64):(64,1)", last.at
        )
    if isinstance(last, Pointer):
        raise source.error("a layout belongs behind the pointer, as in smem_ptr[16b](unset) o (8,64):(64,1)", last.at)
    if len(middle) > 1:
        raise source.error("a composed layout has at most three parts, inner o offset o layout", middle[1].at)
    bits, offset = _offset(source, middle[0]) if middle else (0, 0)
    if isinstance(first, Pointer):
        if middle:
            raise source.error("a layout belongs behind the pointer", middle[0].at)
        bits, first = first.bits, first.swizzle
    if first is None:
        return ParsedLayout(_layout(source, last, basis=len(parts) == 1), bits)
    return ParsedLayout(ComposedLayout(_inner(source, first), offset, _layout(source, last)), bits)


def parse_swizzle(text: str) -> Swizzle:
    """A swizzle alone, ``S<3,4,3>``, ``Sw<3,4,3>`` or ``Swizzle<3,4,3>{}``; raises TexgenError for other text."""
    source = Source.of(text, "a swizzle")
    return _inner_swizzle(source, source.parse(padding >> swizzle_text))


def parse_atom_layout(text: str) -> Layout:
    """The layout of atoms over M, N, K: ``2,2,1``, ``(2,2,1)`` or ``(2,2,1):(2,1,0)``; missing modes are 1.

    Raises TexgenError for other text and for more than three modes.
    """
    source = Source.of(text, "an atom layout")
    nodes = source.parse(items)
    whole = _unwrap(nodes[0] if len(nodes) == 1 else Group(tuple(nodes), nodes[0].at))
    return mnk(source, _layout(source, whole), whole.at)


def parse_tile(text: str) -> Tiler:
    """A tiler or permutation, one entry a mode: ``32,32,16``, ``(32,(8,2,2):(1,16,8),_)``.

    Outer parentheses may be left out; ``_``, ``None`` and ``*`` leave a mode alone. A commas' list is always the list
    of modes: a layout is an entry with a ``:``. Raises TexgenError for other text.
    """
    source = Source.of(text, "a tile")
    nodes = source.parse(items)
    if len(nodes) == 1 and isinstance(nodes[0], Group):
        nodes = list(nodes[0].items)
    return tuple(_tile_entry(source, node) for node in nodes)


def parse_dims(text: str) -> tuple[int, int]:
    """Two sizes, ``16,8``, ``16x8`` or ``(16,8)``; raises TexgenError for other text."""
    source = Source.of(text, "two sizes such as 16,8")
    rows, columns = source.parse(padding >> alt(opening >> dims << closing, dims))
    return size_entry(source, rows), size_entry(source, columns)


def _unwrap(node: Any) -> Any:
    """What stands in parentheses of its own, as tensor-layouts writes the parts of a composition."""
    while isinstance(node, Group) and len(node.items) == 1 and not isinstance(node.items[0], (Leaf, Group)):
        node = node.items[0]
    return node


def _layout(source: Source, node: Any, *, basis: bool = False) -> Layout:
    if isinstance(node, Pair):
        return layout_of(source, node.shape, node.stride, basis=basis)
    if isinstance(node, (SwizzleText, Pointer)):
        raise source.error("a plain layout belongs here", node.at)
    return layout_of(source, node, basis=basis)


def _inner(source: Source, node: Any) -> Swizzle | Layout:
    return _inner_swizzle(source, node) if isinstance(node, SwizzleText) else _layout(source, node)


def _inner_swizzle(source: Source, node: SwizzleText) -> Swizzle:
    return source.swizzle([whole(source, x) for x in node.numbers], node.at)


def _offset(source: Source, node: Any) -> tuple[int, int]:
    """(element bits, offset) of the middle of ``inner o middle o layout``."""
    if isinstance(node, Pointer) and node.swizzle is None:
        return node.bits, 0
    return 0, whole(source, node)


def _tile_entry(source: Source, node: Any) -> int | Layout | None:
    if isinstance(node, Leaf):
        return None if node.value is None and node.word[0] != "?" else size_entry(source, node)
    return _layout(source, node)
