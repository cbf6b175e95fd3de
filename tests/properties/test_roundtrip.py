"""What is printed is read again as the same thing: layout text in every spelling, C++ types, print-outs, JSON."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import strategies as some
from hypothesis import example, given, reject
from hypothesis import strategies as st

from texgen.errors import TexgenError
from texgen.layouts import ComposedLayout, Layout
from texgen.sources.cpp import CppTiledCopy, CppTiledMma, parse_cpp
from texgen.sources.grammar import mnk
from texgen.sources.json_file import from_bytes
from texgen.sources.printout import read_printout
from texgen.sources.text import parse_atom_layout, parse_layout, parse_swizzle, parse_tile
from texgen.spec_json import all_to_json
from texgen.specs import TVMap, TVSpec, flat
from texgen.tiling import tile_mma

LAYOUTS = some.layouts() | some.far_layouts() | some.coordinate_layouts() | some.composed()


@given(LAYOUTS, st.data())
def test_layout_text(layout: Layout | ComposedLayout, data: st.DataObject) -> None:
    assert parse_layout(str(layout)) == layout
    assert parse_layout(some.layout_text(data.draw, layout)) == layout


@given(some.swizzles(), st.data())
def test_swizzle_text(swizzle, data) -> None:
    assert parse_swizzle(str(swizzle)) == swizzle
    assert parse_swizzle(some.swizzle_text(data.draw, swizzle)) == swizzle


@given(some.tilers(), st.data())
def test_tiler_text(tiler, data) -> None:
    assert parse_tile(some.tiler_text(data.draw, tiler)) == tiler


@given(some.atom_layouts(64), st.data())
def test_atom_layout_text(layout, data) -> None:
    assert parse_atom_layout(some.tuple_pair(data.draw, layout)) == layout
    assert parse_atom_layout(some.tuple_text(data.draw, layout.shape)) == Layout.of(layout.shape)


@given(LAYOUTS, st.data())
def test_cpp_layout(layout, data) -> None:
    written = some.cpp_layout if isinstance(layout, Layout) else some.cpp_composed
    assert parse_cpp(some.cpp_declared(data.draw, written(data.draw, layout))).layout == layout


@given(some.tiled_mmas(8), st.data())
def test_cpp_tiled_mma(made, data) -> None:
    entry, atoms, tile = made
    draw, name = data.draw, entry.name.partition("<")[0]
    op = draw(st.sampled_from([name, f"MMA_Atom<{name}>", f"cute::MMA_Atom< MMA_Traits<{some.cpp_name(draw, name)}> >"]))
    parts = [op, some.cpp_layout(draw, atoms)] + ([some.cpp_tiler(draw, tile)] if tile is not None else [])
    text = some.cpp_declared(draw, some.cpp_list(draw, "TiledMMA", parts))
    found = parse_cpp(text)
    expected = mnk(None, atoms, 0)  # type: ignore[arg-type]
    assert found == CppTiledMma(name, expected, tile)


@given(some.layouts(), some.tilers(2), st.sampled_from(["half_t", "float", "uint8_t"]), st.data())
def test_cpp_tiled_copy(tv, tiler, dtype, data) -> None:
    draw = data.draw
    atom = f"Copy_Atom<{some.cpp_name(draw, 'SM75_U32x4_LDSM_N')},{some.cpp_space(draw)}{dtype}>"
    text = some.cpp_list(draw, "TiledCopy", [atom, some.cpp_layout(draw, tv), some.cpp_tiler(draw, tiler)])
    assert parse_cpp(some.cpp_declared(draw, text)) == CppTiledCopy("SM75_U32x4_LDSM_N", dtype, tv_layout=tv, tiler=tiler)


@given(some.tiled_mmas(4))
def test_printout(made) -> None:
    """What ``print(tiled_mma)`` says of a tiled MMA gives its tables."""
    entry, atoms, tile = made
    atom = entry.atom()
    try:
        spec = tile_mma(atom, atoms, tile)
    except TexgenError:  # what cannot be tiled is another property's
        reject()
    permutation = "(" + ",".join("_" if p is None else str(p) if isinstance(p, Layout) else f"{p}:1" for p in tile or (None,) * 3) + ")"
    shape = ",".join(map(str, atom.shape_mnk))
    text = (
        f"Tiled MMA\n  Thr Layout VMNK: {spec.thr_layout_vmnk}\n  Permutation MNK: {permutation}\nMMA Atom\n  ThrID: {atom.thr_id}\n"
        f"  Shape MNK: ({shape})\n  TV Layout A: {atom.A}\n  TV Layout B: {atom.B}\n  TV Layout C: {atom.C}\n"
    )
    again = read_printout(text)
    assert again.tile_mnk == spec.tile_mnk
    for mine, theirs in zip(again.operands().values(), spec.operands().values(), strict=True):
        assert np.array_equal(mine.tv, theirs.tv)


@example(TVSpec("", TVMap((1, 3), np.array([[2], [1], [0]]))), "")  # was taken for a swizzle that moves 0
@given(some.layout_specs() | some.tv_tables(), some.words)
def test_json_of_tables(spec, name) -> None:
    for written in (spec, {"first": spec, name + "-": {"second": [spec]}}):
        again = from_bytes(all_to_json(written).encode(), "again")
        found = [as_written(spec, x) for _, x in flat(again)]
        assert found == [spec] * len(found) and [k for k, _ in flat(again)] == [k for k, _ in flat(written)]


def as_written(spec, again):
    """A table that is a pure swizzle is read with a note that says so."""
    return again if spec.notes else replace(again, notes=())


@given(some.tiled_mmas(2))
def test_json_of_mmas(made) -> None:
    entry, atoms, tile = made
    try:
        spec = tile_mma(entry.atom(), atoms, tile)
    except TexgenError:
        reject()
    assert from_bytes(all_to_json(spec).encode(), "again") == spec

