"""Layout text: spellings, mistakes with their place, hostile input, round trips."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texgen.errors import TexgenError
from texgen.layouts import Basis, ComposedLayout, Layout, Swizzle
from texgen.sources.grammar import MAX_DEPTH, MAX_TEXT
from texgen.sources.text import (
    parse_atom_layout,
    parse_dims,
    parse_layout,
    parse_layout_text,
    parse_swizzle,
    parse_tile,
)

LAYOUTS = {
    "((4,8),(2,2)):((32,1),(16,8))": "((4,8),(2,2)):((32,1),(16,8))",
    "(_4,_8):(_1,_4)": "(4,8):(1,4)",
    "(((_2,_2),_2),(_2,_1)):(((_1,_64),_256),(_32,_0))": "(((2,2),2),(2,1)):(((1,64),256),(32,0))",
    "(Int<4>{},C<8>):(Int< 1 >{ },C<-4>)": "(4,8):(1,-4)",
    " ( 4 ,\n\t8 )\n:\r\n( 1 , 4 ) \n": "(4,8):(1,4)",
    "(4,\u00a08)\u200b:(1,4)": "(4,8):(1,4)",
    "8:1": "8:1",
    "8": "8:1",
    "(8):(1)": "(8):(1)",
    "(8,8)": "(8,8):(1,8)",
    "((4,8),2)": "((4,8),2):((1,4),32)",
    "(4,):(1,)": "(4):(1)",
    "((4, 8,), 2) : ((1, 4), 32)": "((4,8),2):((1,4),32)",
    "(4,8):(-1,0)": "(4,8):(-1,0)",
    "(4,8):(−1,_-8)": "(4,8):(-1,-8)",
    "((8,8):(8,1))": "(8,8):(8,1)",
    "Layout((4, 8), (1, 4))": "(4,8):(1,4)",
    "Layout((4,8):(8,1))": "(4,8):(8,1)",
    "cute.make_layout((4,8),stride=(8,1))": "(4,8):(8,1)",
    "make_layout((4,8))": "(4,8):(1,4)",
    '!cute.layout<"(4,8):(1,4)">': "(4,8):(1,4)",
    '!cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">': "S<3,4,3> o 0 o (8,64):(64,1)",
    "(256,128):(1@1,1@0)": "(256,128):(1@1,1@0)",
    "((4,2),8):((1@0@0,_2@1@0),1@1)": "((4,2),8):((1@0@0,2@1@0),1@1)",
    "Sw<3,4,3> o 0 o (8,64):(64,1)": "S<3,4,3> o 0 o (8,64):(64,1)",
    "S<3,3,3> o 0 o (8,64)": "S<3,3,3> o 0 o (8,64):(1,8)",
    "Swizzle<3,4,3>{} o _0 o (_8,_64):(_64,_1)": "S<3,4,3> o 0 o (8,64):(64,1)",
    "Swizzle<3,4,3> ∘ 16 ∘ (8,64):(64,1)": "S<3,4,3> o 16 o (8,64):(64,1)",
    "Sw<3,4,-3> ◦ (8,64):(64,1)": "S<3,4,-3> o 0 o (8,64):(64,1)",
    "(Swizzle(3, 0, 3)) o ((8, 8) : (8, 1))": "S<3,0,3> o 0 o (8,8):(8,1)",
    "(4,8):(8,1) o 0 o (2,2):(1,2)": "(4,8):(8,1) o 0 o (2,2):(1,2)",
    "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)": "S<3,4,3> o 0 o (8,64):(64,1)",
}


@pytest.mark.parametrize("text", LAYOUTS)
def test_layout(text: str) -> None:
    assert str(parse_layout(text)) == LAYOUTS[text]


def test_layout_data() -> None:
    assert parse_layout("((4,8),2):((32,1),16)") == Layout(((4, 8), 2), ((32, 1), 16))
    assert parse_layout("(8,4):(2@0@1,0)") == Layout((8, 4), (Basis(2, (1, 0)), 0))
    assert parse_layout("S<2,3,3> o 5 o 8") == ComposedLayout(Swizzle(2, 3, 3), 5, Layout(8, 1))


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("(8,8)", 0),
        ("S<3,3,3> o 0 o (8,8)", 0),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", 16),
        ("Sw<3,4,3>_smem_ptr[8b](0x7f40) o (8,64):(64,1)", 8),
        ("gmem_ptr[32b](0x7f26) o (8,64):(64,_1)", 32),
        ("ptr[4b](0x7f26) o 8:1", 4),
    ],
)
def test_element_width(text: str, bits: int) -> None:
    assert parse_layout_text(text).bits == bits


def test_swizzled_tensor_keeps_its_swizzle() -> None:
    assert str(parse_layout("Sw<3,4,3>_smem_ptr[8b](0x7f40) o (8,64):(64,1)")) == "S<3,4,3> o 0 o (8,64):(64,1)"


# Text, the column (from 0) of the caret in its line, a piece of the message.
MISTAKES = [
    ("", None, "empty"),
    (" \n ", None, "empty"),
    ("foo", 0, "expected a whole number or '(' instead of 'foo'"),
    ("(4,8:(1,4)", 10, "'(' in column 1 is never closed"),
    ("(4,8", 4, "before the end of the text"),
    ("(4,8))", 5, "instead of ')'"),
    ("(4,,8)", 3, "instead of ','"),
    ("()", 1, "expected a whole number"),
    ("(4 8)", 3, "instead of '8'"),
    ("(4,8):", 6, "expected a whole number or '('"),
    ("(4,8):(1,4)x", 11, "instead of 'x'"),
    ("(4,8):(1,4):(2,2)", 11, "expected the end of the text or 'o'"),
    ("(4,8):1", 6, "write a tuple with a stride for each mode"),
    ("(8):1", 4, "is a tuple and its stride here one number"),
    ("(4,8):(1,2,3)", 6, "has 2 modes and its stride here 3 modes"),
    ("(4,8):(1)", 6, "its stride here 1 mode;"),
    ("(4,(2,2)):(1,4)", 13, "the shape (2,2) is a tuple"),
    ("(4,8):(1,(2,3))", 9, "the shape has one number here, 8"),
    ("(0,8)", 1, "a size is at least 1, and here is 0"),
    ("(4,-8):(1,4)", 3, "a size is at least 1, and here is -8"),
    ("(4,8@1)", 3, "8@1 is a stride"),
    ("(?,4):(4,1)", 1, "it has a dynamic entry ?, known at run time only; give static numbers"),
    ("(?{i32},4)", 1, "dynamic entry ?{i32}"),
    ("(4,8):(?{div=4},1)", 7, "dynamic entry ?{div=4}"),
    ("(_,8)", 1, "leaves a mode of a tile alone"),
    ("((4,8):(1,4),2)", 1, "here is a layout"),
    ("S<3,3,3>", 0, "a swizzle alone has no shape"),
    ("S<4,3,3> o 0 o 8", 0, "S<4,3,3> is no swizzle"),
    ("S<3> o 0 o 8", 0, "a swizzle has three numbers"),
    ("S<3,?,3> o 0 o 8", 4, "dynamic entry"),
    ("S<3,3,3 o 0 o 8", 8, "expected '>' instead of 'o'"),
    ("S<3,3,3> o 0 o 0 o 8", 15, "at most three parts"),
    ("S<3,3,3> o (1,2) o 8", 11, "a whole number belongs here"),
    ("S<3,3,3> o 0 o (8,8):(1@0,1@1)", 22, "the stride 1@0 gives coordinates"),
    ("smem_ptr[16b](unset)", 0, "a layout belongs behind the pointer"),
    ("gmem_ptr[16b](0x7) o 0 o 8", 21, "a layout belongs behind the pointer"),
    ("(4,\n 8):(1,\n  x)", 2, "instead of 'x'"),
    ("(4,\n(8:(1,\n  4)", 4, "'(' in line 2, column 1 is never closed"),
    ("\x1b[31m(4,8)", 0, "instead of '·'"),
    ("(4,\t\x00 8)", 4, "instead of '·'"),
    ("(4, 世 8)", 4, "instead of '世'"),
    ("(1111111111111111111,8)", 1, "at most 18 digits"),
    ("(999999999,999999999,999999999)", 0, "size does not fit in 64 bits"),
    ("(9,9):(999999999999999999,1)", 6, "offsets do not fit in 64 bits"),
]


def caret_column(error: TexgenError) -> int:
    line, mark = error.detail.split("\n")
    assert mark.strip() == "^"
    assert line.isprintable()
    return mark.index("^")


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_mistake(text: str, column: int | None, message: str) -> None:
    with pytest.raises(TexgenError) as caught:
        parse_layout(text)
    assert message in caught.value.message
    assert "\n" not in caught.value.message and caught.value.message.isprintable()
    if column is not None:
        assert caret_column(caught.value) == column


def test_a_number_after_the_offset_is_a_layout() -> None:
    # S<3,3,3> o 8 is the swizzle of the layout 8:1, not a swizzle with an offset and nothing behind.
    assert str(parse_layout("S<3,3,3> o 8")) == "S<3,3,3> o 0 o 8:1"


def test_caret_counts_wide_characters_and_trims_long_lines() -> None:
    with pytest.raises(TexgenError) as wide:
        parse_layout("(4,8) 世x")
    assert caret_column(wide.value) == 6
    with pytest.raises(TexgenError) as long:
        parse_layout("(" + "1," * 500 + "x" + ",1" * 500 + ")")
    line, mark = long.value.detail.split("\n")
    assert line[mark.index("^")] == "x"
    assert line.startswith("…") and line.endswith("…") and len(line) <= 102


@pytest.mark.parametrize("text", ["S<3,4,3>", "Sw<3,4,3>", "Swizzle<_3, _4, _3>{}", "Swizzle(3, 4, 3)"])
def test_swizzle(text: str) -> None:
    assert parse_swizzle(text) == Swizzle(3, 4, 3)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("2,2,1", "(2,2,1):(1,2,4)"),
        ("(2,2,1)", "(2,2,1):(1,2,4)"),
        (" ( _2, _2, _1 ) ", "(2,2,1):(1,2,4)"),
        ("2,2", "(2,2,1):(1,2,4)"),
        ("4", "(4,1,1):(1,4,4)"),
        ("(4)", "(4,1,1):(1,4,4)"),
        ("4:2", "(4,1,1):(2,0,0)"),
        ("(2,2,1):(2,1,0)", "(2,2,1):(2,1,0)"),
        ("(_2,_2,_1):(_1,_2,_0)", "(2,2,1):(1,2,0)"),
        ("(2,2):(2,1)", "(2,2,1):(2,1,0)"),
        ("((2,2),2)", "((2,2),2,1):((1,2),4,8)"),
        ("2,2,1,", "(2,2,1):(1,2,4)"),
    ],
)
def test_atom_layout(text: str, layout: str) -> None:
    assert str(parse_atom_layout(text)) == layout


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("2,2,2,2", 0, "4 modes and M, N, K are three"),
        ("(2,2),1:2", 6, "here is a layout"),
        ("2,0", 2, "a size is at least 1"),
        ("2,_", 2, "leaves a mode of a tile alone"),
        ("2;2", 1, "instead of ';'"),
        ("(2,2):2", 6, "write a tuple"),
        ("2:1@0", 2, "gives coordinates"),
        ("S<3,3,3>", 0, "a plain layout belongs here"),
    ],
)
def test_atom_layout_mistake(text: str, column: int, message: str) -> None:
    with pytest.raises(TexgenError, match="is not an atom layout") as caught:
        parse_atom_layout(text)
    assert message in caught.value.message
    assert caret_column(caught.value) == column


PERMUTED = Layout((8, 2, 2), (1, 16, 8))


@pytest.mark.parametrize(
    ("text", "tile"),
    [
        ("32,32,16", (32, 32, 16)),
        ("(32,32,16)", (32, 32, 16)),
        ("(_32,_32,_16)", (32, 32, 16)),
        ("32", (32,)),
        ("(32,(8,2,2):(1,16,8),16)", (32, PERMUTED, 16)),
        ("32,(8,2,2):(1,16,8),16", (32, PERMUTED, 16)),
        ("(8,2,2):(1,16,8),32", (PERMUTED, 32)),
        ("(8,2,2):(1,16,8)", (PERMUTED,)),
        ("((8,2,2):(1,16,8))", (PERMUTED,)),
        ("((4,4,2):(1,8,4),32,4)", (Layout((4, 4, 2), (1, 8, 4)), 32, 4)),
        ("((8,4,2):(1,16,8), (4,2,2):(2,1,8))", (Layout((8, 4, 2), (1, 16, 8)), Layout((4, 2, 2), (2, 1, 8)))),
        ("((4,32):(32,1), 8:1)", (Layout((4, 32), (32, 1)), Layout(8, 1))),
        ("_,None,*", (None, None, None)),
        ("(_,_,16)", (None, None, 16)),
        ("32:1,_", (Layout(32, 1), None)),
        ("(4,4,2),2", (Layout((4, 4, 2), (1, 4, 16)), 2)),
        ("(32,)", (32,)),
    ],
)
def test_tile(text: str, tile: tuple[int | Layout | None, ...]) -> None:
    assert parse_tile(text) == tile


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("32,,16", 3, "instead of ','"),
        ("(32,32,16", 9, "never closed"),
        ("32,32,16)", 8, "instead of ')'"),
        ("32,0", 3, "a size is at least 1"),
        ("?,32", 0, "dynamic entry"),
        ("32,(8,2):(1,2,3)", 9, "has 2 modes"),
        ("32,S<3,3,3>", 3, "a plain layout belongs here"),
        ("32,8:1@0", 5, "gives coordinates"),
    ],
)
def test_tile_mistake(text: str, column: int, message: str) -> None:
    with pytest.raises(TexgenError, match="is not a tile") as caught:
        parse_tile(text)
    assert message in caught.value.message
    assert caret_column(caught.value) == column


@pytest.mark.parametrize("text", ["16,8", "16x8", "(16,8)", " 16 × 8 ", "(_16, _8)", "16X8"])
def test_dims(text: str) -> None:
    assert parse_dims(text) == (16, 8)


@pytest.mark.parametrize(("text", "column"), [("16", 2), ("16,", 3), ("16,8,4", 4), ("0,8", 0), ("(16,8", 5), ("a", 0)])
def test_dims_mistake(text: str, column: int) -> None:
    with pytest.raises(TexgenError) as caught:
        parse_dims(text)
    assert caret_column(caught.value) == column


# Hostile input: any answer is right that is an answer.

DEEP = "(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH
HOSTILE = [
    "(" * MAX_TEXT,
    "(" + DEEP + ")",
    "((((1,1)," * 20,
    "S<" * 9000,
    "?{" * 9000,
    "1" * 19,
    "1" * (MAX_TEXT + 1),
    "1:" * 9000,
    "8 o " * 4900 + "8",
    "(" + " " * 19000 + "x",
    "_" * MAX_TEXT,
    "ptr[1b](" * 2000,
    "1" + "@1" * 9990,
    "1@" * 9990,
    "(" + "999999999999999999," * 1000 + "1)",
    "\x00" * 100,
    "\ud800\udfff",
    "(4,8)\u202e:(1,4)",
    "٤,٨",
    "²",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("parse", [parse_layout, parse_atom_layout, parse_dims, parse_swizzle])
def test_hostile_text_is_an_error(parse, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TexgenError) as caught:
        parse(text)
    str(caught.value).encode()


def test_the_limits_themselves_are_read() -> None:
    assert parse_layout(DEEP).size == 1
    assert parse_layout(f"{DEEP}:{DEEP}").size == 1
    assert parse_layout("(" + "1," * ((MAX_TEXT - 4) // 2) + "1)").size == 1
    assert parse_layout("1" * 18).size == int("1" * 18)
    assert len(parse_tile("1," * (MAX_TEXT // 2))) == MAX_TEXT // 2


def test_not_a_string() -> None:
    with pytest.raises(TexgenError, match="a bytes was given"):
        parse_layout(b"(8,8)")  # type: ignore[arg-type]


# Round trips

shapes = st.recursive(
    st.integers(1, 40), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=8
)


def congruent(shape, leaf):  # type: ignore[no-untyped-def]
    return st.tuples(*(congruent(s, leaf) for s in shape)) if isinstance(shape, tuple) else leaf


def layouts_with(leaf):  # type: ignore[no-untyped-def]
    return shapes.flatmap(lambda shape: congruent(shape, leaf).map(lambda stride: Layout(shape, stride)))


layouts = layouts_with(st.integers(-2048, 2048))
bases = st.builds(Basis, st.integers(-99, 99), st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple))
swizzles = st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 5), st.sampled_from([1, -1])).map(
    lambda x: Swizzle(x[0], x[1], (x[0] + x[2]) * x[3])
)
composed = st.builds(ComposedLayout, swizzles | layouts, st.integers(-64, 4096), layouts)


@settings(max_examples=150, deadline=None)
@given(layouts | layouts_with(bases | st.just(0)) | composed)
def test_round_trip(layout: Layout | ComposedLayout) -> None:
    assert parse_layout(str(layout)) == layout


@settings(max_examples=50, deadline=None)
@given(swizzles)
def test_swizzle_round_trip(swizzle: Swizzle) -> None:
    assert parse_swizzle(str(swizzle)) == swizzle


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 512) | layouts | st.none(), min_size=1, max_size=4).map(tuple))
def test_tile_round_trip(tile: tuple[int | Layout | None, ...]) -> None:
    assert parse_tile(",".join("_" if x is None else str(x) for x in tile)) == tile


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    for parse in (parse_layout, parse_tile, parse_dims):
        try:
            parse(text)
        except TexgenError as error:
            assert "\n" not in error.message


def test_mutated_text() -> None:
    chance = random.Random(20)
    alphabet = "()<>:,@_?o 0189SwxXN{}[]*−∘\n\t\x00"
    for _ in range(2000):
        text = list(chance.choice(list(LAYOUTS)))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text) + 1)
            text[at : at + chance.randint(0, 2)] = chance.choices(alphabet, k=chance.randint(0, 2))
        for parse in (parse_layout_text, parse_atom_layout, parse_tile):
            try:
                parse("".join(text))
            except TexgenError as error:
                str(error)
