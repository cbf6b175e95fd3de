"""C++ types and expressions: spellings, mistakes with their place, hostile input."""

from __future__ import annotations

import random

import pytest

from texgen.errors import TexgenError
from texgen.layouts import Layout
from texgen.sources.cpp import CppCopyAtom, CppMmaAtom, CppTiledCopy, CppTiledMma, parse_cpp
from texgen.sources.grammar import MAX_DEPTH, MAX_TEXT, ParsedLayout
from texgen.sources.text import parse_atom_layout, parse_layout

SM80 = "SM80_16x8x16_F32F16F16F32_TN"
SM75 = "SM75_16x8x8_F32F16F16F32_TN"
WGMMA = "SM90_64x128x16_F32F16F16_SS"
K_MAJOR = ("GMMA::Major::K", "GMMA::Major::K")
M221 = parse_atom_layout("2,2,1")
EIGHT = Layout((8, 2, 2), (1, 16, 8))
TILED = CppTiledMma(SM80, M221, (32, 32, 16))

MMAS = {
    f"TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>>": TILED,
    f"cute::TiledMMA<cute::MMA_Atom<cute::{SM80}>, cute::Layout<cute::Shape<cute::_2,cute::_2,cute::_1>>, "
    f"cute::Tile<cute::_32,cute::_32,cute::_16>>": TILED,
    f"using TiledMma = TiledMMA<MMA_Atom<{SM80}>,\n  Layout<Shape<_2, _2, _1>>,  // 2x2 warps\n"
    f"  /* permutation, > ( */ Tile<_32, _32, _16>>;": TILED,
    f"using X = decltype(make_tiled_mma({SM80}{{}}, Layout<Shape<_2,_2,_1>>{{}}, Tile<_32,_32,_16>{{}}));": TILED,
    f"constexpr auto m = cute::make_tiled_mma({SM80}{{}}, Layout<Shape<_2,_2>>(), Tile<_32,_32,_16>{{}});": TILED,
    f"TiledMMA<MMA_Atom<MMA_Traits<{SM80}>>, Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>> tiled_mma;": TILED,
    f"TiledMMA<MMA_Atom<{SM80}, half_t, half_t, float>, Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>> const& mma": TILED,
    f"typedef TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Shape<_32,_32,_16>> Mma;": TILED,
    f"remove_cvref_t<const TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>> &>{{}}": TILED,
    f"‘cute::TiledMMA<cute::MMA_Atom<cute::{SM80}>, cute::Layout<cute::tuple<cute::C<2>, cute::C<2>, cute::C<1> >, "
    f"cute::tuple<cute::C<1>, cute::C<2>, cute::C<0> > >, cute::tuple<cute::C<32>, cute::C<32>, cute::C<16> > >’": (
        CppTiledMma(SM80, Layout((2, 2, 1), (1, 2, 0)), (32, 32, 16))
    ),
    f"TiledMMA<MMA_Atom<{SM80}>>": CppTiledMma(SM80, parse_atom_layout("1")),
    f"make_tiled_mma({SM80}{{}})": CppTiledMma(SM80, parse_atom_layout("1")),
    f"auto mma = make_tiled_mma({SM75}{{}}, Layout<Shape<_4,_1,_1>>{{}}, Layout<Shape<_1,_2,_2>>{{}});": (
        CppTiledMma(SM75, parse_atom_layout("4,1,1"), None, parse_atom_layout("1,2,2"))
    ),
    f"TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Layout<Shape<_1,_2,_1>>, Tile<Underscore,X,_>>": (
        CppTiledMma(SM80, M221, (None, None, None), parse_atom_layout("1,2,1"))
    ),
    f"TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Tile<X, _32, _16>>": CppTiledMma(SM80, M221, (None, 32, 16)),
    f"TiledMMA<MMA_Atom<{SM80}>, Layout<Shape<_2,_2,_1>>, Tile<_32>>": CppTiledMma(SM80, M221, (32, None, None)),
    f"make_tiled_mma(MMA_Atom<{SM80}>{{}}, make_layout(make_shape(_2{{}}, _2{{}}, _1{{}})), make_tile(_32{{}}, "
    "make_layout(make_shape(_8{},_2{},_2{}), make_stride(_1{},_16{},_8{})), _16{}))": CppTiledMma(
        SM80, M221, (32, EIGHT, 16)
    ),
    "TiledMMA<MMA_Atom<SM70_8x8x4_F32F16F16F32_NT>, Layout<Shape <_4,_4,_1>, Stride<_4,_1,_0>>, "
    "Tile<Layout<Shape<_4,_4,_2>,Stride<_1,_8,_4>>,_32,_4>>": CppTiledMma(
        "SM70_8x8x4_F32F16F16F32_NT", Layout((4, 4, 1), (4, 1, 0)), (Layout((4, 4, 2), (1, 8, 4)), 32, 4)
    ),
    "make_tiled_mma(UniversalFMA<float,float,float>{}, Layout<Shape<_16,_16,_1>>{})": CppTiledMma(
        "UniversalFMA", parse_atom_layout("16,16,1"), op_args=("float", "float", "float")
    ),
    f"make_tiled_mma({WGMMA}<GMMA::Major::K, GMMA::Major::K>{{}}, Layout<Shape<_2,_1,_1>>{{}})": CppTiledMma(
        WGMMA, parse_atom_layout("2"), op_args=K_MAJOR
    ),
    SM80: CppMmaAtom(SM80),
    f"{SM80}{{}}": CppMmaAtom(SM80),
    f"cute::{SM80}": CppMmaAtom(SM80),
    f"MMA_Atom<{SM80}>{{}};": CppMmaAtom(SM80),
    f"MMA_Traits<{SM80}>": CppMmaAtom(SM80),
    "MMA_Atom<SM90::GMMA::MMA_64x128x16_F32F16F16_SS<SM90::GMMA::Major::K, (cute::SM90::GMMA::Major)0>>": CppMmaAtom(
        WGMMA, ("SM90::GMMA::Major::K", "(SM90::GMMA::Major)0")
    ),
    "SM90::GMMA::SPARSE::GMMA_64x64x32_F16F16F16_SS<GMMA::Major::K, GMMA::Major::K>": CppMmaAtom(
        "SM90_64x64x32_F16F16F16_SS_SPARSE", K_MAJOR
    ),
    "UniversalFMA<cutlass::half_t, unsigned  int>": CppMmaAtom("UniversalFMA", ("half_t", "unsigned int")),
    "SM100_MMA_F16BF16_SS<half_t, half_t, float, 128, 256, UMMA::Major::K, UMMA::Major::K>": CppMmaAtom(
        "SM100_MMA_F16BF16_SS", ("half_t", "half_t", "float", "128", "256", "UMMA::Major::K", "UMMA::Major::K")
    ),
}

TV = Layout((256, 4), (4, 1))
COPIES = {
    "Copy_Atom<UniversalCopy<uint128_t>, float>": CppCopyAtom("UniversalCopy", "float", ("uint128_t",)),
    "Copy_Atom<DefaultCopy, cutlass::half_t>{}": CppCopyAtom("DefaultCopy", "half_t"),
    "Copy_Atom<Copy_Traits<SM80_CP_ASYNC_CACHEGLOBAL<cute::uint128_t>>, unsigned int>": CppCopyAtom(
        "SM80_CP_ASYNC_CACHEGLOBAL", "unsigned int", ("uint128_t",)
    ),
    "SM75_U32x4_LDSM_N{}": CppCopyAtom("SM75_U32x4_LDSM_N"),
    "make_tiled_copy(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, Layout<Shape<_32,_8>>{}, Layout<Shape<_4,_1>>{})": (
        CppTiledCopy("SM75_U32x4_LDSM_N", "half_t", Layout((32, 8), (1, 32)), Layout((4, 1), (1, 4)))
    ),
    "auto copy = make_tiled_copy(Copy_Atom<DefaultCopy, float>{}, Layout<Shape<_32,_8>, Stride<_8,_1>>{});": (
        CppTiledCopy("DefaultCopy", "float", Layout((32, 8), (8, 1)), Layout(1, 1))
    ),
    "TiledCopy<Copy_Atom<DefaultCopy, float>, Layout<Shape<_256,_4>, Stride<_4,_1>>, Tile<_32,_32>>": (
        CppTiledCopy("DefaultCopy", "float", tv_layout=TV, tiler=(32, 32))
    ),
    "TiledCopy<Copy_Atom<DefaultCopy, float>, Layout<Shape<_256,_4>, Stride<_4,_1>>, Shape<Layout<_8,_1>,_32>>": (
        CppTiledCopy("DefaultCopy", "float", tv_layout=TV, tiler=(Layout(8, 1), 32))
    ),
    "TiledCopy<Copy_Atom<DefaultCopy, float>, Layout<Shape<_256,_4>, Stride<_4,_1>>, cute::C<1024>>": (
        CppTiledCopy("DefaultCopy", "float", tv_layout=TV, tiler=(1024,))
    ),
}

SWIZZLED = "S<3,3,3> o 0 o (8,64):(64,1)"
LAYOUTS = {
    "Layout<Shape<_8,_8>,Stride<_8,_1>>": "(8,8):(8,1)",
    "Layout<Shape<_8,_8>>{}": "(8,8):(1,8)",
    "Layout<_8>": "8:1",
    "Layout<_8,_2>": "8:2",
    "Layout<Shape<Shape<_4,_8>,Shape<_2,_2>>,Stride<Stride<_32,_1>,Stride<_16,_8>>>": "((4,8),(2,2)):((32,1),(16,8))",
    "Layout<cute::tuple<cute::C<4>, cute::tuple<C<2>,C<3> > >, std::tuple<_6,tuple<_3,_1>>>": "(4,(2,3)):(6,(3,1))",
    "Layout<Shape<Int<4>,C<4u>,constant<int,4>,cute::integral_constant<int, 4>,_4,4,0x4,04,4u>>": (
        "(4,4,4,4,4,4,4,4,4):(1,4,16,64,256,1024,4096,16384,65536)"
    ),
    "Layout<_8,_m1>": "8:-1",
    "Layout<_8,Int<-2>>": "8:-2",
    "make_layout(make_shape(Int<4>{}, 8), LayoutRight{})": "(4,8):(8,1)",
    "make_layout(make_shape(Int<4>{}, make_shape(8_c, 1'0)), GenRowMajor{})": "(4,(8,10)):(80,(10,1))",
    "make_layout(Shape<_4,_8>{}, GenColMajor{})": "(4,8):(1,4)",
    "make_layout(make_shape(4, 8), cute::LayoutLeft{})": "(4,8):(1,4)",
    "make_layout(Layout<_4>{}, Layout<Shape<_8>,Stride<_4>>{})": "(4,(8)):(1,(4))",
    "Layout<Shape<_256,_128>,Stride<E<1>,ScaledBasis<_2,0,1>>>": "(256,128):(1@1,2@1@0)",
    "static constexpr auto smem = Layout<_8>{};": "8:1",
    "typename std::remove_cvref<const Layout<_8> &>::type": "8:1",
    "decltype(std::declval<Layout<_8>>())": "8:1",
    "ComposedLayout<Swizzle<3,3,3>, _0, Layout<Shape<_8,_64>,Stride<_64,_1>>>": SWIZZLED,
    "ComposedLayout<Swizzle<3,3>, Int<0>, Layout<Shape<_8,_64>,Stride<_64,_1>>>": SWIZZLED,
    "composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})": SWIZZLED,
    "composition(Swizzle<3,3,3>{}, Int<0>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})": SWIZZLED,
    "make_composed_layout(Swizzle<3,3,3>{}, 0, make_layout(make_shape(_8{},_64{}), GenRowMajor{}));": SWIZZLED,
    "ComposedLayout<Layout<Shape<_4,_8>,Stride<_8,_1>>, _16, Layout<_8>>": "(4,8):(8,1) o 16 o 8:1",
}


@pytest.mark.parametrize("text", MMAS)
def test_mma(text: str) -> None:
    assert parse_cpp(text) == MMAS[text]


@pytest.mark.parametrize("text", COPIES)
def test_copy(text: str) -> None:
    assert parse_cpp(text) == COPIES[text]


@pytest.mark.parametrize("text", LAYOUTS)
def test_layout(text: str) -> None:
    assert parse_cpp(text) == ParsedLayout(parse_layout(LAYOUTS[text]))


@pytest.mark.parametrize(("flag", "bits"), [("smem_ptr_flag_bits<16>", 16), ("cute::smem_ptr_flag", 1), ("_0", 0)])
def test_element_width(flag: str, bits: int) -> None:
    parsed = parse_cpp(f"ComposedLayout<Swizzle<3,4,3>, {flag}, Layout<Shape<_8,_64>,Stride<_64,_1>>>")
    assert parsed == ParsedLayout(parse_layout("S<3,4,3> o 0 o (8,64):(64,1)"), bits)


# The caret is under the first character after ``§``.
MISTAKES = [
    ("§Foo<Bar>", "`Foo<Bar>` is not something texgen reads here; give a TiledMMA"),
    ("§Shape<_8,_8>", "is not something texgen reads here"),
    ("§Int<4>", "is not something texgen reads here"),
    ("§4", "`4` is not something texgen reads here"),
    ("Layout<§Foo<_4>>", "give a number, such as _8 or Int<8>"),
    ("Layout<Shape<§int,_4>>", "`int` is not a number known at compile time; write the number itself, such as _8"),
    ("Layout<Shape<§unsigned long,_4>>", "`unsigned long` is not a number known at compile time"),
    ("Layout<Shape<_4,§BM>>", "`BM` is not a number known"),
    ("Layout<Shape<_4,Int<§kTileM>>>", "`kTileM` is not a number known"),
    ("make_layout(make_shape(_4{}, §M))", "`M` is not a number known"),
    (f"TiledMMA<{SM80}, Layout<Shape<_2,_2,_1>>, Tile<_32,§bN,_16>>", "`bN` is not a number known"),
    (f"TiledMMA<{SM80}, §Shape<_2,_2,_1>>", "give a Layout, such as"),
    (f"TiledMMA<{SM80}, Layout<Shape<_2,_2,_1>>, §Swizzle<3,3,3>>", "give a Tile, such as Tile<_32,_32,_16>"),
    (f"TiledMMA<{SM80}, §Layout<Shape<_2,_2,_1,_2>>>", "4 modes and M, N, K are three"),
    (f"TiledMMA<{SM80}, Layout<_2>, §Tile<_2,_2,_1,_2>>", "4 modes and M, N, K are three"),
    (f"TiledMMA<{SM80}, Layout<_2>, Tile<_2>, §Tile<_2>>", "comes after the Tile"),
    ("TiledMMA<MMA_Atom<§Layout<_8>>>", "give an MMA_Atom or an operation's name"),
    ("§TiledMMA<>", "TiledMMA takes 1 to 4 arguments and here are 0"),
    ("§TiledMMA", "TiledMMA takes 1 to 4 arguments"),
    ("Layout<§Shape<>>", "Shape takes at least 1 arguments"),
    ("§Layout<_1,_2,_3>", "Layout takes 1 to 2 arguments and here are 3"),
    ("make_layout(_1{},_2{},§_3{})", "a shape and a stride, and here is a third part"),
    ("Layout<Shape<_8,_8>,§Stride<_8>>", "the shape (8,8) has 2 modes and its stride here 1 mode"),
    ("Layout<Shape<_8,_8>,§_8>", "is a tuple and its stride here one number"),
    ("Layout<Shape<_8,_8>,Stride<_8,§Stride<_1>>>", "the shape has one number here, 8"),
    ("Layout<Shape<§_0,_8>>", "a size is at least 1, and here is 0"),
    ("Layout<Shape<§_,_8>>", "leaves a mode of a tile alone"),
    ("Layout<Shape<_8,_8>§", "expected ',' or '>' before the end of the text; the '<' in column 7 is never closed"),
    ("Layout<Shape<_8,_8>>§>", "instead of '>'"),
    ("Layout<Shape<_8§ _8>>", "expected ',' or '>' instead of '_8'"),
    ("Layout<Shape<_8,§>>", "expected a name or a number"),
    ("Layout<Shape<Int<4§*2>>>", "instead of '*'"),
    ("Layout<Shape<Int<BM§/2>>>", "instead of '/'"),
    ("Layout<Shape<_8,_8§)>", "instead of ')'"),
    ("make_layout(make_shape(_8{}, _8{§)}", "instead of ')'"),
    ("Layout<_8>§, Layout<_8>", "expected the end of the text"),
    ("Layout<_8§ // and so on", "never closed"),
    ("Layout<\n  Shape<_8,\n    §bK>>", "`bK` is not a number"),
    ("ComposedLayout<§Swizzle<4,3,3>, _0, Layout<_8>>", "S<4,3,3> is no swizzle"),
    ("ComposedLayout<Swizzle<3,3,§S>, _0, Layout<_8>>", "`S` is not a number known"),
    (
        "ComposedLayout<Swizzle<3,3,3>, _0, §ComposedLayout<Swizzle<3,3,3>, _0, Layout<_8>>>",
        "a plain Layout belongs here",
    ),
    ("§ComposedLayout<Swizzle<3,3,3>>", "takes 2 to 3 arguments"),
    ("make_tiled_copy(Copy_Atom<DefaultCopy, float>{}, §thr)", "give a Layout"),
    ("§make_tiled_copy(Copy_Atom<DefaultCopy, float>{})", "takes 2 to 3 arguments and here are 1"),
    (
        "§TiledCopy<Copy_Atom<DefaultCopy, float>, Layout<_8>>",
        "three parts: the Copy_Atom, the TV layout",
    ),
    ("Layout<Shape<§_1111111111111111111>>", "at most 18 digits"),
    ("Layout<§Shape<_999999999,_999999999,_999999999>>", "size does not fit in 64 bits"),
    ("Layout<Shape<_9,_9>,§Stride<_999999999999999999,_1>>", "offsets do not fit in 64 bits"),
    ("§#include <cute/tensor.hpp>", "instead of '#'"),
]


@pytest.mark.parametrize(("marked", "message"), MISTAKES)
def test_mistake(marked: str, message: str) -> None:
    place, text = marked.index("§"), marked.replace("§", "")
    if "at most 18 digits" in message:
        place += 1  # the digits, not the underscore before them
    if text[place : place + 1].isspace() and "//" not in text:
        place += 1  # the word behind the space
    with pytest.raises(TexgenError) as caught:
        parse_cpp(text)
    assert message in caught.value.message
    assert "\n" not in caught.value.message and caught.value.message.isprintable()
    mark = caught.value.detail.split("\n")[1]
    assert mark == " " * (place - text.rfind("\n", 0, place) - 1) + "^"


def nest(name: str, depth: int) -> str:
    return f"Layout<{f'{name}<' * (depth - 1)}_1{'>' * depth}"


HOSTILE = [
    "",
    "   // nothing\n",
    nest("Shape", MAX_DEPTH + 1),
    "Layout<" * 2800,
    "(" * MAX_TEXT,
    "(" * MAX_DEPTH + "_1" + ")" * MAX_DEPTH,
    "a::" * 6000,
    "a" * MAX_TEXT,
    "a" * (MAX_TEXT + 1),
    "const " * 3300,
    "unsigned " * 2200,
    "a " * 9999,
    "a" + "&" * 19990,
    "a<b" + "& " * 9990,
    "a" + "{}" * 9990,
    "a<b>" + "::type" * 3000,
    "1'" * 9990,
    "/*" * 9999,
    "f(" + "1," * 9990 + "1)",
    '"' * 19999,
    "a" + "; " * 9990,
    "= " * 9990,
    "Layout<Shape<" + "_999999999999999999," * 900 + "_1>>",
    "Layout<Shape<0x" + "f" * 5000 + ">>",
    "\x00\x1b[31m\ud800",
    "Layout<Shape<_٤>>",
    nest("decltype", MAX_DEPTH + 1),
    "decltype()",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_an_error(text: str) -> None:
    with pytest.raises(TexgenError) as caught:
        parse_cpp(text)
    str(caught.value).encode()


def test_the_limits_themselves_are_read() -> None:
    for text in (nest("Shape", MAX_DEPTH), nest("Int", MAX_DEPTH), nest("decltype", MAX_DEPTH)):
        parsed = parse_cpp(text)
        assert isinstance(parsed, ParsedLayout) and parsed.layout.size == 1
    assert isinstance(parse_cpp("Layout<Shape<" + "_1," * 6600 + "_1>>"), ParsedLayout)


def test_not_a_string() -> None:
    with pytest.raises(TexgenError, match="a NoneType was given"):
        parse_cpp(None)  # type: ignore[arg-type]


def test_mutated_text() -> None:
    chance = random.Random(20)
    good = [*MMAS, *COPIES, *LAYOUTS]
    words = [
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        ",",
        "::",
        "_",
        "4",
        "Int",
        "Layout",
        "Shape",
        "Tile",
        "*",
        "/*",
        "//",
        " ",
        "=",
    ]
    for _ in range(2000):
        text = chance.choice(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(["", *words]) + text[at + chance.randint(0, 6) :]
        try:
            parse_cpp(text)
        except TexgenError as error:
            str(error)
