"""Random layouts, swizzles, tilers, their spellings as text and as C++, tiled MMAs, tables and figure options."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from texgen.copy_tiling import CopyAtom
from texgen.figures import FigureOptions
from texgen.layouts import Basis, ComposedLayout, Layout, Swizzle, compact, size
from texgen.sources import catalog
from texgen.specs import LayoutSpec, TVMap, TVSpec

# --- Layouts


def shapes(most: int = 64, leaf: Any = None) -> st.SearchStrategy[Any]:
    """Nested shapes of at most ``most`` cells, modes of size 1 among them."""
    sizes = st.sampled_from([1, 1, 2, 2, 3, 4, 5, 8, 16]) if leaf is None else leaf
    nested = st.recursive(sizes, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=6)
    return nested.filter(lambda s: size(s) <= most)


def strides_of(shape: Any, leaf: Any) -> st.SearchStrategy[Any]:
    return st.tuples(*(strides_of(s, leaf) for s in shape)) if isinstance(shape, tuple) else leaf


STRIDES = st.sampled_from([0, 0, 1, 1, 2, 3, 4, 8, 16, 32, 64]) | st.integers(0, 5000)


@st.composite
def layouts(draw: Any, most: int = 64, strides: Any = STRIDES) -> Layout:
    """Compact ones, permuted compact ones, and any strides at all."""
    shape = draw(shapes(most))
    if draw(st.integers(0, 3)) == 0:
        return Layout.of(shape)
    return Layout(shape, draw(strides_of(shape, strides)))


def far_layouts() -> st.SearchStrategy[Layout]:
    """Layouts that are written, not evaluated: large sizes, negative and huge strides."""
    large = st.integers(1, 10**6)
    reach = st.integers(-(10**9), 10**9)
    return shapes(10**15, large).flatmap(lambda s: strides_of(s, reach).map(lambda d: Layout(s, d)))


bases = st.builds(Basis, st.integers(-99, 99), st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple))


def coordinate_layouts(most: int = 64) -> st.SearchStrategy[Layout]:
    return shapes(most).flatmap(lambda s: strides_of(s, bases | st.just(0)).map(lambda d: Layout(s, d)))


@st.composite
def swizzles(draw: Any, most: int = 5, negative: bool = True) -> Swizzle:
    bits = draw(st.integers(0, most))
    shift = bits + draw(st.integers(0, 4))
    return Swizzle(bits, draw(st.integers(0, 6)), -shift if negative and draw(st.booleans()) else shift)


def composed(most: int = 64) -> st.SearchStrategy[ComposedLayout]:
    return st.builds(ComposedLayout, swizzles(), st.integers(0, 300), layouts(most))


def tilers(modes: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.integers(1, 512) | layouts() | st.none(), min_size=1, max_size=modes).map(tuple)


# --- Text: every spelling of a thing


def space(draw: Any) -> str:
    return draw(st.sampled_from(["", "", "", " ", "  ", "\n", "\t", " \n "]))


def number_text(draw: Any, n: Any) -> str:
    """``8``, ``_8``, ``Int<8>{}``, ``C<8>``; a basis ``2@0@1``."""
    if isinstance(n, Basis):
        return draw(st.sampled_from([str(n), f"{'-' if n.value < 0 else ''}_{abs(n.value)}@" + str(n).split("@", 1)[1]]))
    minus, n = ("-" if n < 0 else ""), abs(n)
    spellings = [f"{minus}{n}", f"{minus}_{n}", f"_{minus}{n}", f"Int<{minus}{n}>{{}}", f"C<{minus}{n}>", f"Int< {minus}{n} >{{ }}"]
    return draw(st.sampled_from([spellings[0], *spellings]))


def tuple_text(draw: Any, x: Any) -> str:
    if not isinstance(x, tuple):
        return number_text(draw, x)
    inner = ",".join(space(draw) + tuple_text(draw, i) + space(draw) for i in x)
    return f"({inner}{draw(st.sampled_from(['', '', ','])) if len(x) > 1 else ''})"


def plain_text(draw: Any, layout: Layout) -> str:
    """``shape:stride``, ``Layout(shape, stride)``, and for a compact one the shape alone."""
    shape, stride = tuple_text(draw, layout.shape), tuple_text(draw, layout.stride)
    forms = [f"{shape}{space(draw)}:{space(draw)}{stride}", f"Layout({shape}, {stride})", f"cute.make_layout({shape},stride={stride})"]
    if layout.stride == compact(layout.shape):
        forms += [shape, f"make_layout({shape})"]
    return draw(st.sampled_from(forms))


def swizzle_text(draw: Any, swizzle: Swizzle) -> str:
    b, m, s = (number_text(draw, n) for n in (swizzle.bits, swizzle.base, swizzle.shift))
    name = draw(st.sampled_from(["S", "Sw", "Swizzle"]))
    gap = space(draw)
    return draw(st.sampled_from([f"{name}<{b},{gap}{m},{s}>", f"{name}<{b},{m},{s}>{{}}", f"{name}({b}, {m},{gap}{s})"]))


def layout_text(draw: Any, layout: Any) -> str:
    """Any spelling of a layout or composed layout."""
    if isinstance(layout, Layout):
        return plain_text(draw, layout)
    inner = swizzle_text(draw, layout.inner) if isinstance(layout.inner, Swizzle) else tuple_pair(draw, layout.inner)
    ring = draw(st.sampled_from([" o ", " ∘ ", " ◦ ", "\n o  "]))
    outer = tuple_pair(draw, layout.outer)
    if layout.offset == 0 and draw(st.booleans()):
        return f"{inner}{ring}{outer}"
    return f"{inner}{ring}{number_text(draw, layout.offset)}{ring}{outer}"


def tuple_pair(draw: Any, layout: Layout) -> str:
    return f"{tuple_text(draw, layout.shape)}:{space(draw)}{tuple_text(draw, layout.stride)}"


def tiler_text(draw: Any, tiler: tuple[Any, ...]) -> str:
    """One entry a mode; a layout with a ``:``, a mode left alone as ``_``, ``None`` or ``*``."""
    parts = [
        draw(st.sampled_from(["_", "None", "*"])) if x is None else tuple_pair(draw, x) if isinstance(x, Layout) else number_text(draw, x)
        for x in tiler
    ]
    inner = ",".join(space(draw) + p + space(draw) for p in parts)
    return draw(st.sampled_from([inner, f"({inner})"])) if len(tiler) > 1 else inner


# --- C++


def cpp_space(draw: Any) -> str:
    return draw(st.sampled_from(["", "", "", " ", "\n  ", " /* > ( */ ", " // ,\n"]))


def cpp_name(draw: Any, name: str) -> str:
    return draw(st.sampled_from(["", "", "cute::", "::cute::", "cute :: "])) + name


def cpp_list(draw: Any, name: str, parts: list[str]) -> str:
    gap = cpp_space(draw)
    return f"{cpp_name(draw, name)}<{gap}{f',{gap}'.join(parts)}{cpp_space(draw)}>"


def cpp_number(draw: Any, n: Any) -> str:
    if isinstance(n, Basis):
        return f"ScaledBasis<Int<{n.value}>,{','.join(map(str, n.modes))}>"
    static = f"_{n}" if n >= 0 else f"_m{-n}"
    return draw(st.sampled_from([static, f"Int<{n}>", f"C<{n}>", cpp_name(draw, static), f"cute::integral_constant<int, {n}>", f"cute::constant<int,{n}>"]))


def cpp_tuple(draw: Any, x: Any, name: str) -> str:
    if not isinstance(x, tuple):
        return cpp_number(draw, x)
    return cpp_list(draw, draw(st.sampled_from([name, name, "tuple"])), [cpp_tuple(draw, i, name) for i in x])


def cpp_layout(draw: Any, layout: Layout) -> str:
    parts = [cpp_tuple(draw, layout.shape, "Shape"), cpp_tuple(draw, layout.stride, "Stride")]
    if layout.stride == compact(layout.shape) and draw(st.booleans()):
        parts = parts[:1] if draw(st.booleans()) else [parts[0], cpp_name(draw, "LayoutLeft")]
    return cpp_list(draw, "Layout", parts)


def cpp_composed(draw: Any, layout: ComposedLayout) -> str:
    s = layout.inner
    return cpp_list(
        draw, "ComposedLayout",
        [cpp_list(draw, "Swizzle", [str(s.bits), str(s.base), str(s.shift)]), cpp_number(draw, layout.offset), cpp_layout(draw, layout.outer)],
    )  # fmt: skip


def cpp_tiler(draw: Any, tiler: tuple[Any, ...]) -> str:
    parts = [
        draw(st.sampled_from(["_", "X", "Underscore"])) if x is None else cpp_layout(draw, x) if isinstance(x, Layout) else cpp_number(draw, x)
        for x in tiler
    ]
    return cpp_list(draw, draw(st.sampled_from(["Tile", "Shape", "tuple"])), parts)


def cpp_declared(draw: Any, what: str) -> str:
    """A type alone or in a declaration."""
    return draw(st.sampled_from([
        what, f"using T = {what};", f"typedef {what} T;", f"decltype({what}{{}})", f"const {what}& x", f"{what}{{}}", f"‘{what}’", f"  {what} x;",
    ]))  # fmt: skip


# --- Tiled MMAs and copies


@cache
def mma_entries() -> list[Any]:
    """Atoms of every kind whose tables are small enough to be drawn: each family's smallest."""
    out = []
    for line in catalog._lines():
        if line["kind"] == "mma":
            n = catalog.ns(line)[0]
            entry = catalog.Entry(str(line["name"]).replace("{N}", str(n)), n, line)
            if math.prod(entry.atom().shape_mnk) <= 16 * 8 * 64:
                out.append(entry)
    return out


@cache
def copy_atoms() -> list[CopyAtom]:
    entries = (catalog.Entry(str(x["name"]), 0, x) for x in catalog._lines() if x["kind"] == "copy" and "n" not in x)
    return [e.atom() for e in entries]  # type: ignore[misc]


@st.composite
def atom_layouts(draw: Any, most: int = 8) -> Layout:
    """One to ``most`` atoms over M, N, K, their threads in any order of the modes."""
    counts = draw(st.tuples(*[st.sampled_from([1, 1, 2, 2, 4, 3])] * 3).filter(lambda c: math.prod(c) <= most))
    stride, step = [0, 0, 0], 1
    for m in draw(st.permutations([0, 1, 2])):
        if counts[m] > 1:
            stride[m], step = step, step * counts[m]
    return Layout(counts, tuple(stride))


@st.composite
def permutations_of(draw: Any, extent: int, unit: int) -> Any:
    """A permutation of a mode of ``extent``: its size, or a layout that swaps the parts behind the first ``unit``."""
    if draw(st.booleans()) or extent % unit or extent == unit:
        return extent
    rest = extent // unit
    split = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
    order = draw(st.permutations([(unit, 0), (split, 1), (rest // split, 2)]))
    strides, step = {}, 1
    for n, which in order:
        strides[which], step = step, step * n
    return Layout((unit, split, rest // split), (strides[0], strides[1], strides[2]))


@st.composite
def tiled_mmas(draw: Any, most: int = 4, repeats: int = 2, live: bool = False) -> tuple[Any, Layout, tuple[Any, ...] | None]:
    """(catalogue entry, atom layout, tile); ``live``: of the atoms that the DSL builds."""
    entry = draw(st.sampled_from([e for e in mma_entries() if e.build or not live]))
    atoms = draw(atom_layouts(most))
    if draw(st.integers(0, 3)) == 0:
        return entry, atoms, None
    tile = []
    for m, unit in enumerate(entry.atom().shape_mnk):
        extent = unit * atoms.shape[m] * draw(st.integers(1, repeats))  # type: ignore[index]
        tile.append(draw(st.none() | permutations_of(extent, unit)) if draw(st.booleans()) else extent)
    return entry, atoms, tuple(tile)


# --- Tables, specs, options


@st.composite
def tv_tables(draw: Any, side: int = 6) -> TVSpec:
    """A table that covers its tile, each cell in the same number of threads, in any order."""
    tile = draw(st.tuples(st.integers(1, side), st.integers(1, side)))
    cells = tile[0] * tile[1]
    values = draw(st.sampled_from([d for d in range(1, cells + 1) if cells % d == 0]))
    copies = draw(st.sampled_from([1, 1, 1, 2, 3]))
    table = np.concatenate([np.array(draw(st.permutations(range(cells)))).reshape(-1, values) for _ in range(copies)])
    if copies > 1 and draw(st.booleans()):  # the same values in another thread, as in a tiled MMA
        table = np.concatenate([table[: cells // values]] * copies)
    return TVSpec(draw(words), TVMap(tile, table.astype(np.int64), "", draw(st.sampled_from(["", "f16", "b16"]))))


@st.composite
def layout_specs(draw: Any, side: int = 6) -> LayoutSpec:
    """Offsets or coordinates in a table, from no layout at all."""
    shape = draw(st.tuples(st.integers(1, side), st.integers(1, side)))
    table = st.lists(st.integers(0, 4000), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    offsets = np.array(draw(table), dtype=np.int64).reshape(shape)
    more: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        more = {"coords": (offsets, np.array(draw(table), dtype=np.int64).reshape(shape))}
    elif draw(st.booleans()):
        swizzle = draw(swizzles(3))
        more = {"plain": offsets, "swizzle": (swizzle.bits, swizzle.base, swizzle.shift), "unit": "elements"}
        offsets = swizzle(offsets)
    return LayoutSpec(
        draw(words), draw(st.sampled_from(["", "(2,2):(1,2)"])), shape, offsets, bits=draw(st.sampled_from([0, 4, 8, 16, 32])),
        notes=draw(texts), warnings=draw(texts), source=draw(words), **more,
    )  # fmt: skip


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Any text that a file can hold."""
texts = st.lists(words, max_size=2).map(tuple)


@st.composite
def figure_options(draw: Any, threads: int, values: int) -> FigureOptions:
    """What changes fills and labels, for a map of that many threads and values."""
    t, v = st.integers(0, threads - 1), st.integers(0, values - 1)
    pick = st.one_of(
        t.map(lambda i: f"T{i}"), v.map(lambda i: f"V{i}"), st.builds(lambda i, j: f"T{i}V{j}", t, v),
        st.builds(lambda i, j: f"T{min(i, j)}-T{max(i, j)}", t, t),
    )  # fmt: skip
    return FigureOptions(
        highlight=draw(st.just("") | st.lists(pick, min_size=1, max_size=3).map(",".join)),
        color_by=draw(st.sampled_from(["", "thread", "value", "warp", "quad"])),
        palette=draw(st.sampled_from(["default", "cute", "grey", "okabe-ito", "white"])),
        title=draw(st.none() | words), caption=draw(st.booleans()), legend=draw(st.booleans()), theme=draw(st.sampled_from(["light", "dark", "auto"])),
    )  # fmt: skip
