"""Our tables against ones from elsewhere: CuTe C++, the original mma_tile_tex, the PTX ISA's closed forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from texgen.copy_tiling import CopyAtom, copy_from_thr_val, copy_from_tv
from texgen.layouts import Layout, tv_table
from texgen.sources import catalog
from texgen.specs import MmaSpec
from texgen.tiling import tile_mma

ORACLE = Path(__file__).parent / "oracle"
CPP = [json.loads(line) for line in (ORACLE / "cute_cpp.jsonl").read_text().splitlines()]
ORIGINAL = json.loads((ORACLE / "mma_tile_tex.json").read_text())
FORMS = json.loads((ORACLE / "ptx_isa.json").read_text())["forms"]

L = Layout.of
CONFIGS: dict[str, tuple[Layout | None, Any]] = {
    "atom_layout=(1,1,1)": (L((1, 1, 1)), None),
    "atom_layout=(4,1,1)": (L((4, 1, 1)), None),
    "atom_layout=(2,2,1),tile=(32,32,16)": (L((2, 2, 1)), (32, 32, 16)),
    "atom_layout=(2,2,1),tile=(64,32,16)": (L((2, 2, 1)), (64, 32, 16)),
    "atom_layout=(2,4,1),tile=(32,64,8)": (L((2, 4, 1)), (32, 64, 8)),
    "atom_layout=(2,2,1),tile=(32,(8,2,2):(1,16,8),16)": (L((2, 2, 1)), (32, L((8, 2, 2), (1, 16, 8)), 16)),
    "atom_layout=(2,2,1):(2,1,0),tile=((4,4,2):(1,8,4),32,4)": (
        L((2, 2, 1), (2, 1, 0)), (L((4, 4, 2), (1, 8, 4)), 32, 4)
    ),
}  # fmt: skip


def mma(name: str, *args: Any) -> MmaSpec:
    spec = catalog.read(name, *args)
    assert isinstance(spec, MmaSpec)
    return spec


@pytest.mark.parametrize("case", [c for c in CPP if c["kind"] == "mma"], ids=lambda c: f"{c['name']} {c['config']}")
def test_cute_cpp_mma(case: dict[str, Any]) -> None:
    spec = mma(case["name"], *CONFIGS[case["config"]])
    assert list(spec.tile_mnk) == case["tile_mnk"]
    for operand in "ABC":
        assert spec.operands()[operand].tv.tolist() == case[operand]["tv"], operand
    assert spec.C.layout == case["C"]["layout"].replace("_", "")


@pytest.mark.parametrize("case", [c for c in CPP if c["kind"] == "copy"], ids=lambda c: str(c["name"]))
def test_cute_cpp_copy(case: dict[str, Any]) -> None:
    tiled = tile_mma(catalog.find("SM80_16x8x16_F32F16F16F32_TN").atom(), L((2, 2, 1)), (32, 32, 16))  # type: ignore[arg-type]
    if case["name"].startswith("make_tiled_copy<"):
        atom = catalog.find("UniversalCopy<uint128_t>").atom()
        assert isinstance(atom, CopyAtom)
        spec = copy_from_thr_val(atom.of_bits(32), L((32, 8)), L((4, 1)))
    else:
        operand = tiled.operands()[case["name"][len("make_tiled_copy_")]]
        atom = catalog.find(case["name"].split("<")[1].rstrip(">")).atom()
        assert isinstance(atom, CopyAtom)
        spec = copy_from_tv(atom, _parsed(operand.layout), operand.tile)
    assert spec.tiler == case["tiler"].replace("_", "")
    assert spec.S.tv.tolist() == case["S"]["tv"]
    assert spec.D.tv.tolist() == case["D"]["tv"]


def _parsed(text: str) -> Layout:
    shape, stride = text.split(":")
    read = (json.loads(x.replace("(", "[").replace(")", "]")) for x in (shape, stride))
    return Layout(*map(_tuples, read))


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def test_every_cpp_table_is_used() -> None:
    assert len(CPP) == 18
    assert {c["config"] for c in CPP if c["kind"] == "mma"} == set(CONFIGS)


@pytest.mark.parametrize("case", ORIGINAL, ids=lambda c: f"{c['AtomLayoutMNK']} {c['ValLayoutMNK']}")
def test_original_program(case: dict[str, Any]) -> None:
    """The original names one owner of a cell and numbers A's and B's threads from their own warps: it is among ours."""
    layouts = [_parsed(case[k].replace("_", "")) for k in ("AtomLayoutMNK", "ValLayoutMNK")]
    spec = mma(case["name"], layouts[0], None, layouts[1])
    assert spec.tile_mnk == (case["M"], case["N"], case["K"])
    for operand in "ABC":
        table = spec.operands()[operand]
        cells = np.asarray(case[operand])
        assert cells.shape == (*table.tile, 2)
        for row, column in np.ndindex(*table.tile):
            owners = {(o.thread, o.value) for o in table.owners(row, column)}
            assert tuple(cells[row, column]) in owners, (operand, row, column)


ATOMS = {
    "mma.m16n8k8 f16/bf16": ["SM80_16x8x8_F32F16F16F32_TN", "SM80_16x8x8_F32BF16BF16F32_TN"],
    "mma.m16n8k16 f16/bf16": ["SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x16_F32BF16BF16F32_TN"],
    "mma.m16n8k4 tf32": ["SM80_16x8x4_F32TF32TF32F32_TN"],
    "mma.m16n8k8 tf32": ["SM80_16x8x8_F32TF32TF32F32_TN"],
    "mma.m16n8k16 s8/u8": ["SM80_16x8x16_S32S8S8S32_TN", "SM80_16x8x16_S32U8S8S32_TN"],
    "mma.m16n8k32 s8/u8": ["SM80_16x8x32_S32S8S8S32_TN", "SM80_16x8x32_S32U8U8S32_TN_SATURATE"],
    "mma.m8n8k4 f64": ["SM80_8x8x4_F64F64F64F64_TN"],
    "wgmma.m64n8k16 f16/bf16": ["SM90_64x8x16_F32F16F16_SS", "SM90_64x8x16_F32BF16BF16_RS"],
    "wgmma.m64n64k16 f16/bf16": ["SM90_64x64x16_F32F16F16_SS"],
    "wgmma.m64n128k16 f16/bf16": ["SM90_64x128x16_F16F16F16_SS"],
    "wgmma.m64n256k16 f16/bf16": ["SM90_64x256x16_F32BF16BF16_SS"],
    "wgmma.m64nNk16 f16/bf16 A from registers": ["SM90_64x40x16_F32F16F16_RS", "SM90_64x256x16_F32F16F16_RS"],
}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: str(f["id"]))
def test_ptx_closed_forms(form: dict[str, Any]) -> None:
    for name in _names(form["instr"]):
        operand = form["operand"].split()[0]
        ours = {"D": "C", "src": "S", "dst": "D"}.get(operand, operand)
        table = catalog.read(name).operands()[ours]
        i, lane = np.meshgrid(np.arange(form["values"]), np.arange(form["lanes"]))
        scope = {"l": lane, "i": i}
        row, column = (np.broadcast_to(eval(form[x], {}, scope), lane.shape) for x in ("row", "col"))
        rows, columns = table.tile[::-1] if operand == "B" else table.tile
        assert [rows, columns] == form["tile"]
        got = table.coordinates()
        if operand == "B":
            got = got[1], got[0]
        assert np.array_equal(got[0][: form["lanes"]], row), name
        assert np.array_equal(got[1][: form["lanes"]], column), name


def _names(instruction: str) -> list[str]:
    if instruction in ATOMS:
        return ATOMS[instruction]
    kind = instruction.split(".")[0]
    number = int(instruction.split(".x")[1][0])
    prefix, tail = ("SM75", "LDSM") if kind == "ldmatrix" else ("SM90", "STSM")
    if ".trans" in instruction:
        return [f"{prefix}_U16x{2 * number}_{tail}_T"]
    return [f"{prefix}_U32x{number}_{tail}_N"]


def test_all_closed_forms_are_there() -> None:
    assert len(FORMS) == 41


def test_ldmatrix_lanes_over_the_matrices_repeat() -> None:
    for number in (1, 2):
        spec = catalog.read(f"SM75_U32x{number}_LDSM_N")
        table = spec.operands()["S"].tv
        used = 8 * number
        assert np.array_equal(table, np.tile(table[:used], (32 // used, 1)))


def test_tv_table_of_wgmma_a() -> None:
    """wgmma's tf32 A from registers, after the PTX ISA: row (l%32)/4 + 16*(l/32) + 8*(i%2), column l%4 + 4*(i/2)."""
    lane, i = np.mgrid[0:128, 0:4]
    row, column = 16 * (lane // 32) + lane % 32 // 4 + 8 * (i % 2), lane % 4 + 4 * (i // 2)
    atom = catalog.find("SM90_64x64x8_F32TF32TF32_RS").atom()
    assert np.array_equal(tv_table(atom.A), row + 64 * column)  # type: ignore[union-attr]
