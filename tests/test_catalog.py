"""The catalogue: names, what is in it, and its tables against the installed DSL's."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import texgen
from texgen.checks import check
from texgen.copy_tiling import CopyAtom
from texgen.errors import TexgenError, UsageError
from texgen.layouts import Layout
from texgen.sources import catalog
from texgen.tiling import MmaAtom, tile_mma

L = Layout.of
F16 = "SM80_16x8x16_F32F16F16F32_TN"
WGMMA = "SM90_64x64x16_F32F16F16_SS"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (F16, F16),
        (f"cute::{F16}", F16),
        (f" {F16}{{}} ", F16),
        (F16.lower(), F16),
        (WGMMA, WGMMA),
        ("SM90::GMMA::MMA_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>", WGMMA),
        ("cute::SM90::GMMA::MMA_64x64x16_F32F16F16_SS<GMMA::Major::K,GMMA::Major::MN>{}", WGMMA),
        (f"{WGMMA}<GMMA::Major::K, GMMA::Major::K>", WGMMA),
        ("SM90_64x64x32_F32E4M3E5M2_SS_TN", "SM90_64x64x32_F32E4M3E5M2_SS"),
        ("SM90::GMMA::MMA_64x32x32_S32U8S8_RS_TN_SATURATE<>", "SM90_64x32x32_S32U8S8_RS"),
        ("SM90::GMMA::SPARSE::GMMA_64x64x32_F16F16F16_SS<>", "SM90_64x64x32_F16F16F16_SS_SPARSE"),
        ("SM80_16x8x32_S32U8U8S32_TN", "SM80_16x8x32_S32U8U8S32_TN"),
        ("SM80_16x8x64_S32S4U4S32_TN_SATURATE", "SM80_16x8x64_S32S4U4S32_TN_SATURATE"),
        ("SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t,float_e2m1_t,float,float_ue8m0_t,32>",
         "SM120_16x8x64_TN_VS"),
        ("SM120_16x8x32_TN<float_e4m3_t, float_e4m3_t, float>", "SM120_16x8x32_TN"),
        ("UniversalCopy<cute::uint128_t>", "UniversalCopy<uint128_t>"),
        ("UniversalCopy<float>", "UniversalCopy<uint32_t>"),
        ("SM80_CP_ASYNC_CACHEGLOBAL<cute::uint128_t>", "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"),
        ("UniversalFMA<float,float,float,float>", "UniversalFMA_F32"),
        ("SM61_1x1x4_S32S8S8S32", "SM61_DP4A"),
        ("SM100_2SM_256x128x16_F32F16F16_SS", "SM100_2SM_256x128x16_F32F16F16_SS"),
    ],
)  # fmt: skip
def test_spellings(spelling: str, name: str) -> None:
    entry = catalog.find(spelling)
    assert entry.name == name
    assert entry.atom().name == entry.name


@pytest.mark.parametrize(
    ("wrong", "offers"),
    [
        ("SM80_16x8x16_F32F16F16F32", F16),
        ("SM80_16x8x16_F32F16F16F32_NT", F16),
        ("SM90_64x100x16_F32F16F16_SS", "SM90_64x96x16_F32F16F16_SS"),
        ("SM90_64x40x32_S32S8S8_SS", "SM90_64x32x32_S32S8S8_SS"),
        ("SM80_64x8x16_F32F16F16_SS", "SM90_64x8x16_F32F16F16_SS"),
        ("sm80_cp", "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>"),
    ],
)
def test_unknown_names_get_the_nearest(wrong: str, offers: str) -> None:
    with pytest.raises(TexgenError, match=f"texgen atoms {wrong[:5].upper()}") as e:
        catalog.find(wrong)
    assert offers in str(e.value)
    assert len([n for n in str(e.value).split("nearest are")[1].split(".")[0].split(",")]) <= 3


def test_a_name_that_is_like_none_gets_atoms_of_its_architecture() -> None:
    for wrong in ("SM80_nope", "sm75_nope"):
        with pytest.raises(TexgenError) as e:
            catalog.find(wrong)
        offered = re.search(r"nearest are (.*?)\. List", str(e.value))[1].split(", ")
        assert offered and all(n.upper().startswith(wrong[:-4].upper()) for n in offered), wrong
    with pytest.raises(TexgenError, match="texgen atoms PATTERN"):
        catalog.find("SM999_foo")


@pytest.mark.parametrize("odd", ["", "   ", "x" * 5000, "(8,8)", "SM80_16x8x16<", "::::", "\\section{}", "ж"])
def test_odd_names_are_refused(odd: str) -> None:
    with pytest.raises(TexgenError, match="no atom named"):
        catalog.find(odd)


def test_search() -> None:
    assert [e.name for e in catalog.search("sm75_8x8x16")] == ["SM75_8x8x16_S32S8S8S32_TN"]
    assert {e.arch for e in catalog.search("SM70_*_F32*")} == {"sm_70"}
    wgmma = catalog.families("SM90_64x*x16_F32F16F16_SS")
    assert [(name, len(entries)) for name, entries in wgmma] == [("SM90_64xNx16_F32F16F16_SS", 32)]


def test_what_is_named_says_where_it_is_from() -> None:
    for name, entries in catalog.families():
        entry = entries[0]
        assert entry.origin.split()[0] in ("nvidia-cutlass-dsl", "tensor-layouts"), name
        assert entry.kind in ("mma", "copy")
        assert (entry.build is None) == entry.origin.startswith("tensor-layouts"), name
    assert not catalog.find(F16).corrected


def test_wgmma_ns() -> None:
    for types, step in (("F32F16F16", 8), ("F16F16F16", 8), ("F32BF16BF16", 8)):
        for source in ("SS", "RS"):
            for n in range(step, 257, step):
                assert catalog.find(f"SM90_64x{n}x16_{types}_{source}").atom().shape_mnk == (64, n, 16)  # type: ignore[union-attr]
    assert [e.n for e in catalog.search("SM90_64x*x32_S32U8S8_SS")] == [8, 16, 24, *range(32, 257, 16)]
    assert len(catalog.search("SM90_64x*x8_F32TF32TF32_RS")) == 32


def test_every_atom_covers_its_tile() -> None:
    seen = 0
    for _, entries in catalog.families():
        for entry in {entries[0].name: entries[0], entries[-1].name: entries[-1]}.values():
            if entry.arch.startswith("sm_10") and entry.n > 64:
                continue
            atom = entry.atom()
            check(tile_mma(atom) if isinstance(atom, MmaAtom) else catalog.read(entry.name))
            seen += 1
    assert seen > 1000


def test_2b34_the_corrected_atom_says_so() -> None:
    entry = catalog.find("SM80_16x8x32_S32S4S4S32_TN")
    assert "3140" in entry.corrected
    assert str(entry.atom().B) == "((4,8),8):((64,1),8)"  # type: ignore[union-attr]
    spec = catalog.read(entry.name)
    assert any("3140" in note for note in spec.notes)
    assert catalog.find("SM80_16x8x32_S32U4U4S32_TN").corrected


def test_amd_follows_its_own_manual() -> None:
    """v_mfma_f32_16x16x4f32: A row lane%16, k lane//16; C row 4*(lane//16)+i, column lane%16 (AMD lab notes)."""
    spec = catalog.read("CDNA_16x16x4_F32F32F32_MFMA").operands()
    lane, i = np.mgrid[0:64, 0:4]
    assert np.array_equal(spec["C"].tv, 4 * (lane // 16) + i + 16 * (lane % 16))
    assert np.array_equal(spec["A"].tv[:, 0], lane[:, 0] % 16 + 16 * (lane[:, 0] // 16))
    lane, i = np.mgrid[0:32, 0:8]
    wmma = catalog.read("RDNA3_16x16x16_F32F16F16_WMMA").operands()["C"]
    assert np.array_equal(wmma.tv, 2 * i + lane // 16 + 16 * (lane % 16))


def test_reading() -> None:
    by_tile = catalog.read(F16, L((4, 1, 1)), (64, 16, 16))
    by_values = catalog.read(F16, L((4, 1, 1)), None, L((1, 2, 1)))
    assert by_tile.operands() == by_values.operands()
    with pytest.raises(TexgenError, match="not both"):
        catalog.read(F16, None, (16, 8, 16), L((1, 2, 1)))
    with pytest.raises(TexgenError, match="is a copy"):
        catalog.read("SM75_U32x4_LDSM_N", None, (16, 8, 16))
    with pytest.raises(TexgenError, match="needs both"):
        catalog.read("UniversalCopy<float>", L((32, 8)))
    copy = catalog.read("UniversalCopy<uint128_t>", L((32, 4), (4, 1)), None, L((1, 8)))
    assert copy.tiler == "(32,32)"  # type: ignore[union-attr]


def test_of_bits() -> None:
    atom = catalog.find("SM75_U32x4_LDSM_N").atom()
    assert isinstance(atom, CopyAtom)
    assert str(atom.of_bits(32).src) == "(32,4):(4,1)"  # as the DSL prints it for Float32
    assert str(atom.of_bits(8).dst) == "(32,(4,4)):(4,(1,128))"
    with pytest.raises(TexgenError, match="does not copy elements of 64 bits"):
        atom.of_bits(64)


def test_no_heavy_import() -> None:
    code = "import sys; from texgen.sources import catalog; catalog.find('SM80_16x8x16_F32F16F16F32_TN'); " \
           "print([m for m in ('cutlass', 'torch', 'tensor_layouts', 'sphinx') if m in sys.modules])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


# --- against the installed DSL ---------------------------------------------------------------------------------------

TILINGS: list[tuple[Any, Any]] = [
    ((1, 1, 1), (1, 1, 1)), ((2, 2, 1), (1, 1, 1)), ((4, 1, 1), (1, 2, 1)), ((1, 4, 1), (2, 2, 2)),
    ((2, 4, 1), (1, 2, 1)), ((1, 1, 2), (1, 1, 1)), ((1, 2, 2), (2, 1, 2)), ((3, 1, 1), (1, 3, 1)),
]  # fmt: skip
"""(atoms, repeats) of the tilings that are compared; each with a permutation of N too."""


def jobs() -> list[tuple[catalog.Entry, Any, Any]]:
    out: list[tuple[catalog.Entry, Any, Any]] = []
    for _, entries in catalog.families():
        entry = entries[0]
        if entry.build is None or entry.kind != "mma":
            continue
        module = entry.build["op"].split(".")[0]
        if module in ("warp", "nvgpu"):
            out += [(entry, *tiling) for atoms, repeats in TILINGS for tiling in _tilings(entry, atoms, repeats)]
        elif module == "warpgroup":
            picked = [entries[0], entries[len(entries) // 2]]
            out += [(e, *t) for e in picked for a, r in TILINGS[1:3] for t in _tilings(e, a, r)]
        elif _sampled(entry):
            out.append((entries[0], *_tilings(entries[0], (1, 1, 1), (2, 2, 1))[0]))
    return out


def _sampled(entry: catalog.Entry) -> bool:
    """One in twelve of the many tcgen05 families, the same ones every time."""
    return "F16F16" in entry.name or sum(map(ord, entry.name)) % 12 == 0


def _tilings(entry: catalog.Entry, atoms: Any, repeats: Any) -> list[tuple[Any, Any]]:
    m, n, k = (x * a * r for x, a, r in zip(catalog._fill(entry.line["mnk"], entry.n), atoms, repeats, strict=True))
    plain = Layout.of(atoms)
    swapped = Layout(atoms, (atoms[1] * atoms[2], 1, atoms[1]))
    out: list[tuple[Any, Any]] = [(plain, (m, n, k)), (swapped, None)]
    unit = n // (atoms[1] * repeats[1])
    if atoms[1] * repeats[1] == 4 and unit % 8 == 0:
        out.append((plain, (m, Layout((unit, 2, 2), (1, 2 * unit, unit)), None)))
    return out


def _json(layout: Any) -> Any:
    return [layout.shape, layout.stride] if isinstance(layout, Layout) else layout


def _offsets(layout: Any) -> list[Any]:
    """Offsets over threads and over values: the table is their sums, so equal offsets are equal tables."""
    shape, stride = (_tuples(x) for x in layout) if isinstance(layout, list) else (layout.shape, layout.stride)
    whole = Layout(shape, stride)
    return [whole.mode(0).offsets(), whole.mode(1).offsets()]


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _live(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = [sys.executable, str(Path(__file__).with_name("dsl_child.py"))]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


needs_dsl = pytest.mark.skipif(
    importlib.util.find_spec("cutlass") is None, reason="nvidia-cutlass-dsl is not installed"
)


@pytest.mark.dsl
@needs_dsl
def test_the_catalogue_equals_the_live_dsl() -> None:
    work = jobs()
    lines = [
        {
            "build": e.build, "arch": e.arch or "sm_80", "atom_layout": _json(atoms),
            "tile": tile and [_json(t) for t in tile],
        }
        for e, atoms, tile in work
    ]  # fmt: skip
    live = _live(lines)
    assert len(live) == len(work) > 500
    for (entry, atoms, tile), found in zip(work, live, strict=True):
        atom = entry.atom()
        assert isinstance(atom, MmaAtom)
        spec = tile_mma(atom, atoms, tile)
        about = entry.name, str(atoms), [str(t) for t in tile or ()]
        assert list(spec.tile_mnk) == found["tile"], about
        for operand in "ABC":
            threads, values = _offsets(found[operand])
            table = spec.operands()[operand].tv
            assert table.shape == (len(threads), len(values)), (about, operand)
            inside = slice(None)
            if int(threads.max() + values.max()) >= spec.operands()[operand].cells:
                # With atoms split along K the DSL's (and C++'s) C layout runs on past the tile for the further K;
                # what partition_C gives there is the first K's again (test_atoms_split_along_k).
                assert operand == "C" and spec.thr_layout_vmnk.split(":")[0].split(",")[-1] == "2)", about
                inside = threads + values.max() < spec.C.cells
            assert np.array_equal(table[inside, 0], threads[inside]), (about, operand)
            assert np.array_equal(table[0], values), (about, operand)


@pytest.mark.dsl
@needs_dsl
def test_atoms_equal_the_live_dsl() -> None:
    """Every N of every wgmma, and the first and last of some tcgen05 families, on their own."""
    work: list[catalog.Entry] = []
    for _, entries in catalog.families():
        op = (entries[0].build or {"op": ""})["op"]
        if op.startswith("warpgroup"):
            work += entries
        elif op.startswith("tcgen05") and _sampled(entries[0]):
            work += [entries[0], entries[-1]]
    found = _live([{"build": e.build, "arch": e.arch, "atom": True} for e in work])
    assert len(found) == len(work) > 1000
    for entry, live in zip(work, found, strict=True):
        atom = entry.atom()
        assert isinstance(atom, MmaAtom)
        assert (list(atom.shape_mnk), list(atom.dtypes)) == (live["mnk"], live["types"]), entry.name
        for operand in "ABC":
            pairs = zip(_offsets(live[operand]), _offsets(getattr(atom, operand)), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs), (entry.name, operand)


@pytest.mark.dsl
@needs_dsl
def test_atoms_split_along_k() -> None:
    """Which elements a thread holds, by the DSL's own ``partition_C`` of coordinates, where its layout runs over."""
    entry = catalog.find(F16)
    atom = entry.atom()
    assert isinstance(atom, MmaAtom)
    threads = [0, 1, 31, 32, 64, 65, 96, 127]
    for atoms in (Layout.of((1, 2, 2)), Layout((1, 2, 2), (4, 1, 2)), Layout((1, 2, 2), (4, 2, 1))):
        line = {"build": entry.build, "arch": "sm_80", "atom_layout": _json(atoms), "tile": None, "threads": threads}
        (found,) = _live([line])
        spec = tile_mma(atom, atoms)
        assert spec.C.tv[threads].tolist() == found["partition_C"]
        assert set(spec.C.owner_counts.flat) == {2}


@pytest.mark.dsl
@needs_dsl
def test_copies_equal_the_live_dsl() -> None:
    entries = [e for e in catalog.search() if e.kind == "copy" and e.build is not None]
    assert len(entries) > 30
    found = _live([{"build": e.build, "arch": "sm_100a", "atom_layout": None, "tile": None} for e in entries])
    for entry, live in zip(entries, found, strict=True):
        atom = entry.atom()
        assert isinstance(atom, CopyAtom)
        for side, ours in (("S", atom.src), ("D", atom.dst)):
            assert all(np.array_equal(a, b) for a, b in zip(_offsets(live[side]), _offsets(ours), strict=True)), entry


def test_a_warp_is_what_runs_together() -> None:
    """64 threads of CDNA, which an MFMA takes all; the atoms' counts are tensor-layouts'. An AMX tile has no threads of its own."""
    names = [e.name for _, entries in catalog.families() for e in entries if e.arch.startswith(("gfx", "Xe"))]
    assert len(names) > 50
    for name in names:
        spec = catalog.read(name)
        assert {o.warp for o in spec.operands().values()} == {spec.threads}, name
    tiled = texgen.figure("CDNA_32x32x8_F32F16F16_MFMA", atom_layout="2,2,1", tile="128,128,8", label="warp", highlight="W1")
    assert "W1: warp 1, threads 64 to 127" in tiled.text()
    c = tiled.figure.panels[-1]
    lit = {(b.row, b.column) for b in c.blocks if "W1" in b.name and c.fill[b.row, b.column] >= 0}
    rows, columns = tiled.spec.C.coordinates()
    assert lit and {(int(r), int(k)) for r, k in zip(rows[64:128].flat, columns[64:128].flat, strict=True)} >= lit
    with pytest.raises(UsageError, match="--slides warp does not fit"):
        texgen.figure("CDNA_32x32x8_F32F16F16_MFMA", slides="warp")
