"""CuTe C++ as people paste it: types (``TiledMMA<…>``), ``make_*`` expressions, declarations, compiler diagnostics.

A text is parsed once to terms, ``name<arguments>(arguments)``, whatever the names; the names are given their meaning
afterwards (CUTLASS, ``include/cute``: ``atom/mma_atom.hpp``, ``atom/copy_atom.hpp``, ``layout.hpp``,
``layout_composed.hpp``, ``numeric/integral_constant.hpp``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from parsy import generate, index, regex  # type: ignore[import-untyped]

from texgen.errors import TexgenError
from texgen.layouts import Basis, ComposedLayout, IntTuple, Layout, Stride, Swizzle, size
from texgen.sources.grammar import (
    MAX_DIGITS,
    PADDING,
    Group,
    Leaf,
    ParsedLayout,
    Source,
    Tiler,
    check_reach,
    entry,
    layout_of,
    maybe,
    mnk,
    shorten,
    size_entry,
    token,
    whole,
)

Rule: TypeAlias = Generator[Any, Any, Any]


@dataclass(frozen=True)
class CppMmaAtom:
    """An MMA operation by name; ``op_args`` are its template arguments as written (``GMMA::Major::K``)."""

    atom: str
    op_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class CppTiledMma:
    """``TiledMMA``: ``tile`` is the permutation, ``val_layout`` what CUTLASS before 3.4 had; None where not given."""

    atom: str
    atom_layout: Layout
    tile: Tiler | None = None
    val_layout: Layout | None = None
    op_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class CppCopyAtom:
    """A copy operation by name and the type of its elements, empty for an operation alone."""

    op: str
    dtype: str = ""
    op_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class CppTiledCopy:
    """``make_tiled_copy``'s thread and value layouts, or a ``TiledCopy`` type's TV layout and tiler."""

    op: str
    dtype: str = ""
    thr_layout: Layout | None = None
    val_layout: Layout | None = None
    tv_layout: Layout | None = None
    tiler: Tiler | None = None
    op_args: tuple[str, ...] = ()


CppObject: TypeAlias = CppTiledMma | CppMmaAtom | CppTiledCopy | CppCopyAtom | ParsedLayout


@dataclass(frozen=True)
class Term:
    """``cute::Layout<…>{…}``: ``name`` is the last part of ``path``; None where there are no such brackets."""

    path: tuple[str, ...]
    args: tuple[Any, ...] | None
    call: tuple[Any, ...] | None
    at: int
    end: int

    @property
    def name(self) -> str:
        return self.path[-1]


@dataclass(frozen=True)
class Literal:
    value: int
    at: int
    end: int


# --- The grammar. A rule is a generator function: each yield runs a parser and gets what it read.


comma = token(",", "','")
maybe_open_angle, maybe_open_paren, maybe_open_brace = maybe("<"), maybe(r"\("), maybe(r"\{")
close_paren = token(r"\)", "')'")

QUALIFIER = r"(?:(?:typename|const|constexpr|static|inline|struct|class|template|volatile)\s+)*"
WORDS = r"(?:(?:unsigned|signed|long|short)\s+)*(?:int|long|short|char|unsigned)\b"  # unsigned long long
PATH = r"(?:::\s*)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*"
name = token(f"{QUALIFIER}(?:{WORDS}|{PATH})", "a name")
maybe_literal = maybe(r"[-+]?(?:0[xX][0-9a-fA-F]{1,15}|[0-9](?:'?[0-9])*)(?:[uUlLzZ]+|_c)?(?!\w)", "a number")
# What may follow a term without changing which one it is. These always succeed, on nothing if need be.
suffix = regex(rf"(?:(?:const\b|[&*]+(?=\s*(?:[,>);]|const\b|$))|::\s*type\b|\{{\s*\}}|\(\s*\)){PADDING})*")
declared_as = regex(rf"{PADDING}[‘'\"`]*(?:[\w\s:&*]*=(?!=)\s*|(?:typedef|return)\s+)?")
declared_name = regex(
    rf"(?:const\b)?{PADDING}[&*]*{PADDING}(?:[A-Za-z_]\w*\s*(?:\{{\s*\}}|\(\s*\))?)?{PADDING}(?:[;’'\"`]{PADDING})*"
)


def _arguments(closing: str) -> Any:
    maybe_closing = maybe(re.escape(closing), f"'{closing}'")

    def rule() -> Rule:
        items: list[Any] = []
        if (yield maybe_closing):
            return items
        while True:
            items.append((yield node))
            if (yield maybe_closing):
                return items
            yield comma

    return generate(rule)


def _node() -> Rule:
    """A term, a literal, or either in parentheses: one rule, so that nesting takes few Python frames."""
    at = yield index
    if (yield maybe_open_paren):
        inner = yield node
        yield close_paren
        # A compiler prints an enumerator as its type and number, (cute::UMMA::Major)0.
        number = yield maybe_literal
        return inner if number is None else Literal(_integer(number), at, (yield index))
    number = yield maybe_literal
    if number is not None:
        return Literal(_integer(number), at, (yield index))
    path = re.sub(rf"^{QUALIFIER}", "", (yield name))
    args = call = None
    if (yield maybe_open_angle):
        args = tuple((yield template_arguments))
    if (yield maybe_open_paren):
        call = tuple((yield call_arguments))
    elif (yield maybe_open_brace):
        call = tuple((yield brace_arguments))
    yield suffix
    parts = tuple(re.sub(r"\s+", " ", part.strip()) for part in path.split("::") if part.strip())
    return Term(parts, args, call, at, (yield index))


def _integer(word: str) -> int:
    """A C++ literal: ``0x`` is hexadecimal, a leading 0 octal."""
    word = word.removesuffix("_c").rstrip("uUlLzZ").replace("'", "")
    sign, digits = (-1 if word[0] == "-" else 1), word.lstrip("+-")
    octal = re.fullmatch("0[0-7]+", digits)
    return sign * int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if octal else 10)


def _statement() -> Rule:
    yield declared_as
    what = yield node
    yield declared_name
    return what


node = generate(_node)
template_arguments, call_arguments, brace_arguments = (_arguments(c) for c in ">)}")
statement = generate(_statement)


def _blank_comments(code: str) -> str:
    """Spaces for comments, so that positions stay; an unclosed comment runs to the end."""
    return re.sub(r"//[^\n]*|/\*.*?(?:\*/|\Z)", lambda found: re.sub(r"[^\n]", " ", found[0]), code, flags=re.DOTALL)


# --- What the names mean.

WRAPPERS = {
    *("decltype", "declval", "decay", "decay_t", "remove_cv", "remove_cv_t", "remove_cvref", "remove_cvref_t"),
    *("remove_const", "remove_const_t", "remove_reference", "remove_reference_t", "type_identity", "type_identity_t"),
}
INTEGERS = {"Int", "C"}
TYPED_INTEGERS = {"constant", "integral_constant"}
LEFT_ALONE = {"_", "Underscore", "X"}
TUPLES = {
    *("Shape", "Stride", "Coord", "Step", "Tile", "tuple", "array"),
    *("make_shape", "make_stride", "make_coord", "make_step", "make_tile", "make_tuple"),
}
COLUMN_MAJOR = {"LayoutLeft", "GenColMajor"}
ROW_MAJOR = {"LayoutRight", "GenRowMajor"}
PLAIN_LAYOUTS = {"Layout", "make_layout"}
COMPOSED_LAYOUTS = {"ComposedLayout", "composition", "make_composed_layout"}
LAYOUTS = PLAIN_LAYOUTS | COMPOSED_LAYOUTS
TILED_MMAS = {"TiledMMA", "make_tiled_mma"}
TILED_COPIES = {"TiledCopy", "make_tiled_copy", "make_tiled_copy_impl"}
CARRIERS = {"MMA_Atom", "MMA_Traits", "Copy_Atom", "Copy_Traits"}
KNOWN = (
    *(WRAPPERS | INTEGERS | TYPED_INTEGERS | LEFT_ALONE | TUPLES | COLUMN_MAJOR | ROW_MAJOR | LAYOUTS),
    *(TILED_MMAS | TILED_COPIES | CARRIERS | {"Swizzle"}),
)

# Operations that stand alone: m x n x k in the name, or a family's word (arch/mma_*.hpp, arch/copy_*.hpp).
MMA_OP = re.compile(r"\d+x\d+x\d+|UniversalFMA|_MMA_|DPAS|MFMA|WMMA|DP[24]A")
COPY_OP = re.compile(r"LDSM|STSM|CP_ASYNC|TMA_|BULK|TMEM|UTCCP|Shuffle|2D_|UniversalCopy|VectorizingCopy|DefaultCopy")


def parse_cpp(text: str) -> CppObject:
    """What a C++ type or expression of CuTe describes.

    Reads ``TiledMMA``, ``MMA_Atom``, ``TiledCopy``, ``Copy_Atom``, ``Layout``, ``ComposedLayout``, their ``make_*``
    functions and operations alone, within declarations or not. Raises TexgenError, with a caret under the place, for
    anything else, for numbers not known at compile time, and for text beyond the limits (length, depth, digits).
    """
    code = _blank_comments(text) if isinstance(text, str) else text
    source = Source.of(text, "a CuTe object texgen can draw", code)
    return _Reader(source).object(source.parse(statement))


@dataclass(frozen=True)
class _Reader:
    """Gives a text's terms their meaning; every method raises TexgenError at the term that is wrong."""

    source: Source

    def object(self, node: Any) -> CppObject:
        term = self._unwrap(node)
        if isinstance(term, Term):
            for names, read in self._kinds():
                if term.name in names:
                    return read(term)
            if term.name not in KNOWN and MMA_OP.search(term.name):
                return self._mma_atom(term)
            if term.name not in KNOWN and COPY_OP.search(term.name):
                return self._copy_atom(term)
        raise self._unknown(term, "a TiledMMA, MMA_Atom, TiledCopy, Copy_Atom, Layout or ComposedLayout")

    def _kinds(self) -> tuple[tuple[set[str], Callable[[Term], CppObject]], ...]:
        return (
            (TILED_MMAS, self._tiled_mma),
            ({"MMA_Atom", "MMA_Traits"}, self._mma_atom),
            (TILED_COPIES, self._tiled_copy),
            ({"Copy_Atom", "Copy_Traits"}, self._copy_atom),
            (LAYOUTS, self.layout),
        )

    # Layouts

    def layout(self, node: Any) -> ParsedLayout:
        term = self._unwrap(node)
        if isinstance(term, Term) and term.name in PLAIN_LAYOUTS:
            return ParsedLayout(self._plain(term))
        if isinstance(term, Term) and term.name in COMPOSED_LAYOUTS:
            return self._composed(term)
        raise self._unknown(term, "a Layout, such as Layout<Shape<_8,_8>,Stride<_8,_1>>")

    def plain_layout(self, node: Any) -> Layout:
        layout = self.layout(node).layout
        if not isinstance(layout, Layout):
            raise self.source.error("a plain Layout belongs here, not a composed one", self._unwrap(node).at)
        return layout

    def _plain(self, term: Term) -> Layout:
        parts = self._parts(term, 1, None if term.name == "make_layout" else 2)
        if self._named(parts[0], LAYOUTS):
            # make_layout of layouts: one mode each.
            modes = [self.plain_layout(part) for part in parts]
            return check_reach(
                self.source, Layout(tuple(m.shape for m in modes), tuple(m.stride for m in modes)), term.at
            )
        if len(parts) > 2:
            raise self.source.error("a layout has a shape and a stride, and here is a third part", parts[2].at)
        shape = self._int_tuple(parts[0])
        if len(parts) == 1 or self._named(parts[1], COLUMN_MAJOR):
            return layout_of(self.source, shape)
        if self._named(parts[1], ROW_MAJOR):
            sizes = layout_of(self.source, shape).shape
            return Layout(sizes, _row_major(sizes))
        return layout_of(self.source, shape, self._int_tuple(parts[1]), basis=True)

    def _composed(self, term: Term) -> ParsedLayout:
        inner, *offset, outer = self._parts(term, 2, 3)
        bits, start = self._offset(offset[0]) if offset else (0, 0)
        return ParsedLayout(ComposedLayout(self._inner(inner), start, self.plain_layout(outer)), bits)

    def _inner(self, node: Any) -> Swizzle | Layout:
        term = self._unwrap(node)
        if not self._named(term, {"Swizzle"}):
            return self.plain_layout(term)
        numbers = [whole(self.source, self._number(part)) for part in self._parts(term, 2, 3)]
        return self.source.swizzle(numbers, term.at)

    def _offset(self, node: Any) -> tuple[int, int]:
        """(element bits, offset): CuTe writes a shared-memory pointer's width in the offset's place."""
        term = self._unwrap(node)
        if self._named(term, {"smem_ptr_flag"}):
            return 1, 0
        if self._named(term, {"smem_ptr_flag_bits"}):
            return size_entry(self.source, self._number(self._parts(term, 1, 1)[0])), 0
        return 0, whole(self.source, self._number(term))

    def _int_tuple(self, node: Any) -> Leaf | Group:
        term = self._unwrap(node)
        if self._named(term, TUPLES):
            return Group(tuple(self._int_tuple(part) for part in self._parts(term, 1)), term.at)
        return self._number(term)

    def _number(self, node: Any) -> Leaf:
        term = self._unwrap(node)
        if isinstance(term, Literal):
            if abs(term.value) >= 10**MAX_DIGITS:
                raise self.source.error(f"a number may have at most {MAX_DIGITS} digits", term.at)
            return Leaf(term.value, str(term.value), term.at)
        static = re.fullmatch(r"_(m?)([0-9]+)", term.name)
        if static:
            value = int(static[2]) * (-1 if static[1] else 1)
            return Leaf(value, term.name, term.at)
        if term.name in INTEGERS | TYPED_INTEGERS and term.args is not None:
            inner = self._parts(term, *((1, 1) if term.name in INTEGERS else (2, 2)))[-1]
            return Leaf(entry(self.source, self._number(inner)), term.name, term.at)
        if term.name in LEFT_ALONE:
            return Leaf(None, term.name, term.at)
        if term.name in ("E", "ScaledBasis") and term.args is not None:
            return Leaf(self._basis(term), term.name, term.at)
        if term.args is None and term.name not in KNOWN:
            raise self.source.error(
                f"`{self._quote(term)}` is not a number known at compile time; write the number itself, such as _8",
                term.at,
            )
        raise self._unknown(term, "a number, such as _8 or Int<8>")

    def _basis(self, term: Term) -> Basis:
        """``E<0,1>`` is a unit step in mode 1 of mode 0, ``ScaledBasis<_2,0,1>`` twice that."""
        numbers = [whole(self.source, self._number(part)) for part in self._parts(term, 1)]
        value, modes = (1, numbers) if term.name == "E" else (numbers[0], numbers[1:])
        if not modes or min(modes) < 0:
            raise self.source.error("a basis element needs its modes, as in E<0>", term.at)
        return Basis(value, tuple(modes))

    # Tilers

    def _tile(self, node: Any) -> Tiler:
        term = self._unwrap(node)
        if self._named(term, TUPLES):
            return tuple(self._tile_entry(part) for part in self._parts(term, 1))
        if isinstance(term, Literal) or term.name not in KNOWN or term.name in INTEGERS | TYPED_INTEGERS:
            return (self._tile_entry(term),)
        raise self._unknown(term, "a Tile, such as Tile<_32,_32,_16>")

    def _tile_entry(self, node: Any) -> int | Layout | None:
        term = self._unwrap(node)
        if self._named(term, LEFT_ALONE):
            return None
        if self._named(term, LAYOUTS):
            return self.plain_layout(term)
        if self._named(term, TUPLES):
            return layout_of(self.source, self._int_tuple(term))
        return size_entry(self.source, self._number(term))

    # MMA

    def _tiled_mma(self, term: Term) -> CppTiledMma:
        atom, *rest = self._parts(term, 1, 4)
        mma = self._mma_atom(atom)
        atom_layout = self._mnk(rest.pop(0)) if rest else Layout.of((1, 1, 1))
        # CUTLASS before 3.4: MMA_Atom, AtomLayoutMNK, ValLayoutMNK, PermutationsMNK. Since then no ValLayoutMNK.
        val_layout = self._mnk(rest.pop(0)) if rest and self._named(rest[0], LAYOUTS) else None
        tile = self._permutation(rest.pop(0)) if rest else None
        if rest:
            raise self.source.error(
                f"`{self._quote(rest[0])}` comes after the Tile, which is the last part", rest[0].at
            )
        return CppTiledMma(mma.atom, atom_layout, tile, val_layout, mma.op_args)

    def _mnk(self, node: Any) -> Layout:
        return mnk(self.source, self.plain_layout(node), node.at)

    def _permutation(self, node: Any) -> Tiler:
        tile = self._tile(node)
        if len(tile) > 3:
            raise self.source.error(f"the tile has {len(tile)} modes and M, N, K are three", node.at)
        return tile + (None,) * (3 - len(tile))

    def _mma_atom(self, node: Any) -> CppMmaAtom:
        op = self._operation(node, {"MMA_Atom", "MMA_Traits"}, "an MMA_Atom or an operation's name")
        return CppMmaAtom(_atom_name(op.path), self._texts(op.args))

    # Copy

    def _tiled_copy(self, term: Term) -> CppTiledCopy:
        atom, *rest = self._parts(term, 2, 3)
        copy = self._copy_atom(atom)
        if term.name == "make_tiled_copy":
            thr, val = self.plain_layout(rest[0]), self.plain_layout(rest[1]) if len(rest) > 1 else Layout.of(1)
            return CppTiledCopy(copy.op, copy.dtype, thr_layout=thr, val_layout=val, op_args=copy.op_args)
        if len(rest) < 2:
            raise self.source.error(f"{term.name} has three parts: the Copy_Atom, the TV layout and the tiler", term.at)
        tv, tiler = self.plain_layout(rest[0]), self._tile(rest[1])
        return CppTiledCopy(copy.op, copy.dtype, tv_layout=tv, tiler=tiler, op_args=copy.op_args)

    def _copy_atom(self, node: Any) -> CppCopyAtom:
        term = self._unwrap(node)
        op = self._operation(term, {"Copy_Atom", "Copy_Traits"}, "a Copy_Atom or an operation's name")
        has_dtype = self._named(term, {"Copy_Atom"}) and len(term.args or ()) > 1
        return CppCopyAtom(op.name, self._text(term.args[1]) if has_dtype else "", self._texts(op.args))

    # Terms

    def _operation(self, node: Any, carriers: set[str], wanted: str) -> Term:
        """The operation that ``MMA_Atom<MMA_Traits<Op>>`` or ``Copy_Atom<Op, T>`` carry."""
        term = self._unwrap(node)
        while isinstance(term, Term) and term.name in carriers and term.args:
            term = self._unwrap(term.args[0])
        if not isinstance(term, Term) or term.name in KNOWN:
            raise self._unknown(term, wanted)
        return term

    def _unwrap(self, node: Any) -> Any:
        """What ``decltype(…)`` and the like stand for."""
        while isinstance(node, Term) and node.name in WRAPPERS and (node.args or node.call):
            node = (node.args or node.call or ())[0]
        return node

    def _named(self, node: Any, names: set[str]) -> bool:
        term = self._unwrap(node)
        return isinstance(term, Term) and term.name in names

    def _parts(self, term: Term, least: int, most: int | None = None) -> tuple[Any, ...]:
        """A type's template arguments or a function's arguments, counted."""
        parts = (term.args if term.args is not None else term.call) or ()
        if len(parts) < least or (most is not None and len(parts) > most):
            counts = str(least) if most == least else f"at least {least}" if most is None else f"{least} to {most}"
            raise self.source.error(f"{term.name} takes {counts} arguments and here are {len(parts)}", term.at)
        return parts

    def _unknown(self, node: Any, wanted: str) -> TexgenError:
        return self.source.error(f"`{self._quote(node)}` is not something texgen reads here; give {wanted}", node.at)

    def _quote(self, node: Any) -> str:
        return shorten(self.source.code[node.at : node.end], 40)

    def _texts(self, nodes: tuple[Any, ...] | None) -> tuple[str, ...]:
        return tuple(self._text(node) for node in nodes or ())

    def _text(self, node: Any) -> str:
        """A term as it was written, without CuTe's own namespaces."""
        written = " ".join(self.source.code[node.at : node.end].split())
        return re.sub(r"\b(?:cute|cutlass)\s*::\s*", "", written).removeprefix("::").strip()


def _atom_name(path: tuple[str, ...]) -> str:
    """The one name that all CUTLASS versions' spellings of an operation share.

    ``SM90::GMMA::MMA_64x64x16_F32F16F16_SS`` (since 3.6) is ``SM90_64x64x16_F32F16F16_SS``, and
    ``SM90::GMMA::SPARSE::GMMA_64x64x32_F32F16F16_SS`` has ``_SPARSE`` behind it.
    """
    warpgroup = re.fullmatch(r"G?MMA_(\d+x\d+x\d+_\w+)", path[-1])
    if not warpgroup:
        return path[-1]
    sparse = path[-1].startswith("GMMA_") or "SPARSE" in path
    return f"SM90_{warpgroup[1]}{'_SPARSE' if sparse else ''}"


def _row_major(shape: IntTuple, start: int = 1) -> Stride:
    """Compact strides with the last mode fastest, as ``LayoutRight`` gives them."""
    if not isinstance(shape, tuple):
        return start
    strides: list[Stride] = []
    for s in reversed(shape):
        strides.append(_row_major(s, start))
        start *= size(s)
    return tuple(reversed(strides))
