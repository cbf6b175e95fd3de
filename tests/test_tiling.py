"""Tiling atoms: values from public reports, warnings, refusals, and a brute-force check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texgen.checks import check, check_cover
from texgen.copy_tiling import CopyAtom, copy_from_thr_val, copy_from_tv
from texgen.errors import TexgenError
from texgen.layouts import Layout, tv_table
from texgen.sources import catalog
from texgen.specs import TVMap
from texgen.tiling import MmaAtom, tile_mma, tile_threads

L = Layout.of
F16 = "SM80_16x8x16_F32F16F16F32_TN"
TF32 = "SM80_16x8x8_F32TF32TF32F32_TN"


def atom(name: str = F16) -> MmaAtom:
    found = catalog.find(name).atom()
    assert isinstance(found, MmaAtom)
    return found


def plain(values: int, bits: int = 16) -> CopyAtom:
    return CopyAtom("copy", L(1), L((1, values), (0, 1)), L((1, values), (0, 1)), bits)


def owners(table: TVMap, row: int, column: int) -> list[list[int]]:
    return [[o.thread, o.value] for o in table.owners(row, column)]


def test_v01_every_owner() -> None:
    spec = tile_mma(atom(), L((2, 2, 1)), (32, 32, 16))
    assert owners(spec.A, 0, 0) == [[0, 0], [64, 0]]
    assert owners(spec.A, 16, 0) == [[32, 0], [96, 0]]
    assert owners(spec.B, 0, 0) == [[0, 0], [32, 0]]
    assert owners(spec.C, 0, 0) == [[0, 0]]
    assert [set(t.owner_counts.flat) for t in spec.operands().values()] == [{2}, {2}, {1}]
    assert all(t.threads == 128 for t in spec.operands().values())
    assert spec.thr_layout_vmnk == "(32,2,2,1):(1,32,64,0)"
    assert not spec.warnings


def test_v13_operands_in_shared_memory() -> None:
    spec = catalog.read("SM90_64x64x16_F32F16F16_SS")
    assert [t.memory for t in spec.operands().values()] == ["smem", "smem", "rmem"]
    assert set(spec.operands()["A"].owner_counts.flat) == {128}
    rows, columns = spec.operands()["C"].coordinates()
    seen = np.stack([rows[37], columns[37]], axis=1)[:6].tolist()
    assert seen == [[17, 2], [17, 3], [25, 2], [25, 3], [17, 10], [17, 11]]
    registers = catalog.read("SM90_64x64x16_F32F16F16_RS").operands()["A"]
    assert (registers.memory, registers.values) == ("rmem", 8)


def test_l09_volta_lanes() -> None:
    spec = catalog.read("SM70_8x8x4_F32F16F16F32_TN")
    tv = spec.operands()["C"].tv
    assert tv.shape == (32, 8)
    lanes = [lane for lane in range(32) if (tv[lane] == tv[8]).all() or lane in (8, 9, 10, 11, 24, 25, 26, 27)]
    assert lanes[:1] == [0] and set(spec.operands()["C"].owner_counts.flat) == {4}
    assert np.array_equal(tv[[8, 9, 10, 11, 24, 25, 26, 27]], tv[[0, 1, 2, 3, 16, 17, 18, 19]])


def test_2b10_tile_smaller_than_its_atoms_and_permutation_that_reaches_outside() -> None:
    spec = tile_mma(atom(TF32), L((4, 1, 1)), (16, L((2, 16), (1, 8)), 8))
    assert spec.tile_mnk == (16, 128, 8)
    assert spec.C.tile == (16, 128) and spec.B.tile == (128, 8)
    small, reach = spec.warnings
    assert "M=16" in small and "4 atoms" in small and "64" in small
    assert "size 32" in reach and "column 121" in reach and "N=128" in reach
    assert set(spec.C.owner_counts.flat) == {4}
    row0 = [sorted(int(x) // 16 for x in spec.C.tv[t] if x % 16 == 0) for t in range(2)]
    assert row0[0] == [*range(8), *range(32, 40), *range(64, 72), *range(96, 104)]
    assert row0[1] == [c + 8 for c in row0[0]]
    four = {c for t in range(4) for c in (int(x) // 16 for x in spec.C.tv[t] if x % 16 == 0)}
    assert set(range(32)) <= four
    check(spec)


def test_permutation_that_reaches_outside_in_m() -> None:
    """A's and C's index is m + M*k with the M that is drawn; with the written M=32 it would alias."""
    spec = tile_mma(atom(), None, (L((2, 16), (1, 8)),))
    assert spec.tile_mnk == (128, 8, 16)
    assert spec.A.cells == spec.A.tv.size == 128 * 16
    row, column = spec.A.coordinates()
    assert (int(row[0, 1]), int(column[0, 1])) == (0, 1)
    assert (int(row[4, 0]), int(column[4, 0])) == (1, 0)
    assert (int(row[8, 0]), int(column[8, 0])) == (8, 0)
    check(spec)


def test_more_atoms_than_the_tile_holds_grow_it() -> None:
    spec = tile_mma(atom(), L((4, 1, 1)), (32, 8, 16))
    assert spec.tile_mnk == (64, 8, 16)
    assert "M=32" in spec.warnings[0] and "row 63" in spec.warnings[0]
    check(spec)


@pytest.mark.parametrize(
    ("layout", "tile", "says"),
    [
        (None, (24, 8, 16), "M=24 is not a multiple of the atom's 16: take 32"),
        (None, (16, 20, 16), "N=20 is not a multiple of the atom's 8"),
        (None, (8, 8, 16), "M=8 is not a multiple of the atom's 16: take 16"),
        (None, (16, 8, 0), "K=0 is out of range"),
        (None, (16, 8, -16), "K=-16 is out of range"),
        (None, (2**40,), "M=1099511627776 is out of range"),
        (None, (L((2, 2**30), (1, 2)),), "out of range"),
        (None, (L((2, 8), (1, 2**40)),), "strides"),
        (None, (32, 32, 16, 1), "three modes, M, N and K"),
        (None, (L(16, 0),), "is not one"),
        (None, (L((2, 16), (1, 1)),), "is not one"),
        (None, (L((2, 8), (1, 3)),), "covers each position once"),
        (L((2, 2, 1, 2)), None, "4 modes"),
        (L((1, 2**40)), None, "more than texgen evaluates"),
        (L((2, 1, 1), (0, 0, 0)), None, "several atoms on the same threads"),
        (L((2, 1, 1), (-1, 0, 0)), None, "strides"),
        (L((0, 1, 1)), None, "under 1"),
        (L((64, 64, 1)), (2**16, 2**16, 16), "smaller tile"),
    ],
)
def test_refusals(layout: Layout | None, tile: Any, says: str) -> None:
    with pytest.raises(TexgenError, match=says.replace("(", r"\(")):
        tile_mma(atom(), layout, tile)


def test_atom_layouts_of_fewer_modes_and_from_thr_layout() -> None:
    two = tile_mma(atom(), L((2, 2)), (32, 32, 16))
    three = tile_mma(atom(), L((2, 2, 1)), (32, 32, 16))
    four = tile_threads(atom(), Layout((32, 2, 2, 1), (1, 32, 64, 0)), (32, 32, 16))
    assert two.operands() == three.operands() == four.operands()
    assert tile_mma(atom(), L(4)).tile_mnk == (64, 8, 16)


def test_three_quad_pairs_do_not_fill_a_warp() -> None:
    with pytest.raises(TexgenError, match="use powers of two"):
        tile_mma(atom("SM70_8x8x4_F32F16F16F32_NT"), L((1, 3, 1)))


def test_gaps_in_the_thread_numbers_repeat_their_neighbours() -> None:
    spec = tile_mma(atom(), L((2, 1, 1), (2, 0, 0)))
    assert spec.C.threads == 128
    assert np.array_equal(spec.C.tv[32:64], spec.C.tv[:32]) and np.array_equal(spec.C.tv[96:], spec.C.tv[64:96])
    check(spec)


def test_2b34_a_wrong_atom_is_caught() -> None:
    old = TVMap((8, 32), tv_table(Layout(((4, 8), 8), ((32, 1), 8))))
    assert (len(np.unique(old.tv)), int(old.tv.max())) == (160, 159)
    with pytest.raises(TexgenError, match=r"96 of 256 cells have no owner.*reaches 160 cells .largest index 159"):
        check_cover("B", old)


extents = st.sampled_from([1, 2, 3, 4])


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([F16, TF32, "SM70_8x8x4_F32F16F16F32_NT", "SM80_8x8x4_F64F64F64F64_TN"]),
    atoms=st.tuples(extents, extents, st.sampled_from([1, 2])),
    repeats=st.tuples(extents, extents, extents),
    order=st.permutations([0, 1, 2]),
)
def test_against_brute_force(name: str, atoms: Any, repeats: Any, order: list[int]) -> None:
    """Without permutations a tile is atoms side by side, then repeats: recompute each owner from that alone."""
    one = atom(name)
    if one.thr_id.size < 32:
        atoms = tuple(min(a, 2) for a in atoms)
    stride, step = [0, 0, 0], 1
    for m in order:
        stride[m], step = step, step * atoms[m]
    tile = tuple(one.shape_mnk[m] * atoms[m] * repeats[m] for m in range(3))
    spec = tile_mma(one, Layout(atoms, tuple(stride)), tile)
    lanes = one.thr_id.offsets()
    gap = 32 // one.thr_id.size  # a Volta quad pair leaves room for three more
    for operand, (r, c) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        table = spec.operands()[operand]
        tv = tv_table(getattr(one, operand))
        expected: dict[tuple[int, int], set[int]] = {}
        for at in np.ndindex(*atoms):
            index = sum(at[m] * stride[m] for m in range(3))
            thread = lanes + (index * one.thr_id.size if gap == 1 else 4 * (index % gap) + 32 * (index // gap))
            for rr in range(repeats[r]):
                for cc in range(repeats[c]):
                    row = tv % one.shape_mnk[r] + one.shape_mnk[r] * (at[r] + atoms[r] * rr)
                    column = tv // one.shape_mnk[r] + one.shape_mnk[c] * (at[c] + atoms[c] * cc)
                    for t, lane in enumerate(thread):
                        cells = expected.setdefault((int(lane), 0), set())
                        cells.update((row[t] + tile[r] * column[t]).tolist())
        for (lane, _), cells in expected.items():
            assert set(table.tv[lane].tolist()) == cells, (operand, lane)


def test_l11_and_l20_raked_products() -> None:
    spec = copy_from_thr_val(plain(8), L((16, 16)), L((8, 1)))
    assert (spec.tile, spec.tiler) == ((128, 16), "(128,16)")
    at = [[int(x) % 128, int(x) // 128] for x in spec.S.tv[17]]
    assert at == [[8 + i, 1] for i in range(8)]
    spec = copy_from_thr_val(plain(8), L((32, 4), (4, 1)), L((1, 8)))
    assert [[int(x) % 32, int(x) // 32] for x in spec.D.tv[5]] == [[1, 8 + i] for i in range(8)]
    assert np.array_equal(spec.S.tv, tv_table(Layout(((4, 32), (8, 1)), ((256, 1), (32, 0)))))
    assert any("raked product" in n for n in spec.notes)


def test_2b20_free_tv_layout() -> None:
    spec = copy_from_tv(plain(1), Layout(((8, 4), (8, 2)), ((64, 1), (4, 32))), (8, 64))
    assert (spec.S.threads, spec.S.values, spec.S.cells) == (32, 16, 512)
    assert set(spec.S.owner_counts.flat) == {1}


def test_a_tiler_may_permute() -> None:
    """Positions are those that the tiler's layouts give, not its coordinates."""
    rows, columns = L((8, 4, 2), (1, 16, 8)), L((4, 2, 2), (2, 1, 8))
    spec = copy_from_tv(plain(1), Layout((64, 16), (1, 64)), (rows, columns))
    assert spec.tile == (64, 16)
    assert spec.tiler == "((8,4,2):(1,16,8),(4,2,2):(2,1,8))"
    r, c = spec.S.coordinates()
    assert r[8:10, 0].tolist() == [16, 17] and r[32, 0] == 8
    assert c[0, :6].tolist() == [0, 2, 4, 6, 1, 3]
    check(spec)


@pytest.mark.parametrize(
    ("tv", "tiler", "says"),
    [
        (L((32, 16), (1, 32)), (8, 8), "outside the tiler"),
        (L(32), (8, 4), "two modes"),
        (L((4, 8), (1, 4)), (L((4, 2), (1, 0)), 4), "on one place"),
        (L((4, 8), (1, 4)), (2, 4, 4), "rank 3"),
        (L((4, 8), (1, 4)), (2**20, 2**20), "more than texgen evaluates"),
    ],
)
def test_copy_refusals(tv: Layout, tiler: Any, says: str) -> None:
    with pytest.raises(TexgenError, match=says):
        copy_from_tv(plain(1), tv, tiler)


def test_copy_that_the_atom_does_not_divide() -> None:
    with pytest.raises(TexgenError, match="do not divide the 16 threads"):
        copy_from_tv(catalog.find("SM75_U32x4_LDSM_N").atom(), L((16, 8), (1, 16)), (16, 8))  # type: ignore[arg-type]
    with pytest.raises(TexgenError, match="takes 1 threads of 8 values"):
        copy_from_thr_val(plain(8), L((32, 4)), L((1, 4)))
