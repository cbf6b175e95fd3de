"""Bank conflicts and swizzles that people asked about in public, with the values that are right."""

from __future__ import annotations

import numpy as np
import pytest
from readback import from_svg, from_tikz

import texgen
from texgen.banks import access, conflicts, contiguous
from texgen.errors import TexgenError, UsageError
from texgen.layouts import ComposedLayout, Layout, Swizzle
from texgen.sources.smem import layout_spec

L = Layout
F32 = L((32, 32), (32, 1))
F16 = L((8, 64), (64, 1))


def swizzled(bits: int, base: int, shift: int, layout: Layout) -> ComposedLayout:
    return ComposedLayout(Swizzle(bits, base, shift), 0, layout)


def cost(layout, lanes, bits, width=0):
    found = access(layout, lanes, bits, width).conflicts
    assert found.excess == found.wavefronts - found.ideal >= 0
    return found.wavefronts, found.ideal


def caption(drawing) -> str:
    return " ".join(line.text for line in drawing.figure.lines)


def legend_texts(drawing) -> list[str]:
    """The legend's texts, whether its items stand in one row or in several."""
    rows = [item if isinstance(item, tuple) else (item,) for item in drawing.figure.legend]
    return [item.text for row in rows for item in row]


def both(drawing):
    return [from_tikz(drawing.tikz()), from_svg(drawing.svg(), drawing.figure.aspect)]


@pytest.mark.parametrize(
    ("layout", "wavefronts"),
    [(F32, 32), (swizzled(5, 0, 5, F32), 1), (swizzled(3, 0, 5, F32), 4), (swizzled(2, 0, 5, F32), 8), (L((32, 32), (33, 1)), 1)],
    ids=["none", "<5,0,5>", "<3,0,5>", "<2,0,5>", "stride 33"],
)
def test_B01_column_of_a_32x32_f32_tile(layout, wavefronts):
    """NVlabs/cuda-oxide#544."""
    assert cost(layout, "column:0", 32) == (wavefronts, 1)
    assert cost(layout, "row:0", 32) == (1, 1)
    drawing = texgen.figure(str(layout), bits=32, banks="column:0", swizzle=False)
    assert f"column 0: 32 lanes × 4 bytes: {wavefronts} wavefront{'s' * (wavefronts > 1)} (ideal 1)" in caption(drawing)


def test_B01_figure_names_banks_and_lanes():
    drawing = texgen.figure("(32,32):(33,1)", dtype="f32", banks="column:3")
    for panels in both(drawing):
        panel = panels["banks"]
        for r in range(32):
            for c in range(32):
                bank = str((33 * r + c) % 32)
                assert panel.labels[r, c] == ([f"T{r}", bank] if c == 3 else [bank])
                assert panel.fills[r, c] == (str((33 * r + c) % 32 // 4) if c == 3 else "Dim")
                assert ((r, c) in panel.dim) == (c != 3)
        assert panel.blocks == [(r, 3, 1, 1) for r in range(32)]
    assert legend_texts(drawing) == [f"{4 * i}–{4 * i + 3}" for i in range(8)]


def test_B03_why_3_4_3():
    """NVIDIA/cutlass#2015: f16 (8,64) row-major under ldmatrix; the figure says which byte bits move."""
    assert cost(F16, "ldmatrix", 16) == (8, 1)
    assert cost(swizzled(3, 3, 3, F16), "ldmatrix", 16) == (1, 1)
    assert cost(swizzled(2, 3, 3, F16), "ldmatrix", 16) == (2, 1)
    drawing = texgen.figure("S<3,4,3> o 0 o (8,64):(64,1)", bits=16, banks="ldmatrix")
    assert "byte address bits 7 to 9 into 4 to 6" in caption(drawing)
    assert [p.title for p in drawing.figure.panels] == [
        "Before the swizzle: 8 wavefronts (ideal 1)", "After the swizzle: 1 wavefront (ideal 1)",
    ]  # fmt: skip
    assert "8 lanes × 16 bytes: 8 wavefronts (ideal 1), excess 7: lanes 0 to 7 want 8 different words of bank 0" in caption(drawing)
    for panels in both(drawing):
        assert [panels["after"].fills[r, 0] for r in range(8)] == [str(r) for r in range(8)]
        assert [panels["before"].fills[r, 0] for r in range(8)] == ["0"] * 8
        assert panels["after"].labels[5, 7] == ["T5", "23"]
        assert panels["after"].blocks == [(r, 0, 1, 8) for r in range(8)]


def test_V07_byte_swizzle_has_no_conflicts():
    """NVIDIA/cutlass#1559 and #1396: read as a swizzle of elements the same atom seems to have two-way conflicts."""
    atom = swizzled(3, 4, 3, F16)
    for column in range(0, 64, 8):
        assert cost(atom, f"ldmatrix:0,{column}", 16) == (1, 1)
    naive = layout_spec(atom, bits=16, unit="elements")
    assert max(cost(naive, f"ldmatrix:0,{c}", 16)[0] for c in range(0, 64, 8)) == 2


B05 = [[[0, 0], [0, 1], [0, 2], [0, 3]], [[1, 0], [1, 1], [1, 2], [1, 3]], [[2, 2], [2, 3], [2, 0], [2, 1]], [[3, 2], [3, 3], [3, 0], [3, 1]]]


def test_B05_swizzled_table_drawn(tmp_path):
    """triton-lang/triton#2102: 4x4, vec 2, perPhase 2, maxPhase 2."""
    made = [[[i, ((j // 2) ^ (i // 2 % 2)) * 2 + j % 2] for j in range(4)] for i in range(4)]
    assert made == B05
    drawing = texgen.figure({"kind": "layout", "name": "triton", "offsets": B05})
    for panels in both(drawing):
        for r in range(4):
            for c in range(4):
                assert panels["offsets"].labels[r, c] == [f"({B05[r][c][0]},{B05[r][c][1]})"]
    assert "S<1,1,2>" in caption(drawing)
    drawing.save(tmp_path / "t.json")
    assert texgen.read(tmp_path / "t.json") == drawing.spec


def test_2B14_longest_run_of_the_proposed_atom():
    """NVIDIA/cutlass#1953."""
    layout = L(((8, 4), (2, 16)), ((2, 256), (1, 16)))
    assert contiguous(layout.table(), 1) == 2
    with pytest.raises(TexgenError, match=r"16 contiguous k per lane.*runs of 2"):
        access(layout, "ldmatrix", 8)


def test_2B21_swizzle_over_32_bit_elements():
    """NVIDIA/cutlass#2634."""
    text = "S<3,4,3> o 0 o (32,8):(1,32)"
    spec = texgen.read(text, bits=32)
    assert spec.offsets[0, 1] == 36
    assert texgen.read(text, swizzle_unit="elements").offsets[0, 1] == 32
    implied = texgen.read(text)  # a row of 32 elements fills the swizzle's 128 bytes
    assert (implied.bits, implied.unit, implied.offsets[0, 1]) == (32, "bytes", 36)
    drawing = texgen.figure(text, bits=32)
    assert "S<3,4,3> acts on byte addresses; on 32-bit elements it is S<3,2,3>." in caption(drawing)


@pytest.mark.parametrize(("pad", "wavefronts"), [(0, 8), (1, 4), (4, 1), (8, 2)])
def test_2B27_padding_of_the_sgemm_tutorial(pad, wavefronts):
    """NVIDIA/cutlass#1443: sA (128,8) f32; 8 lanes along k and 4 along m when A is K-major."""
    shared = L((128, 8), (1, 128 + pad))
    assert cost(shared, [(t // 8, t % 8) for t in range(32)], 32) == (wavefronts, 1)
    assert cost(shared, "(8,4):(128,1)", 32) == (wavefronts, 1)
    assert cost(shared, "column:0", 32) == (1, 1)  # M-major store and the reads
    assert cost(shared, [(t % 16, 0) for t in range(32)], 32) == (1, 1)  # 16 rows, each for two lanes: a broadcast


@pytest.mark.parametrize(("stride", "wavefronts"), [(128, 2), (129, 2), (130, 2), (132, 1), (136, 2)])
def test_2B29_transposed_store_of_A(stride, wavefronts):
    """siboehm/SGEMM_CUDA#8."""
    for i in range(4):
        lanes = [(t // 2, 4 * (t % 2) + i) for t in range(32)]
        assert cost(L((128, 8), (1, stride)), lanes, 32) == (wavefronts, 1)
    drawing = texgen.figure(f"(128,8):(1,{stride})", bits=32, banks="(2,16):(512,1)", rows="0:16")
    assert f"{wavefronts} wavefront" in drawing.figure.panels[0].title


def test_2B30_float4_store_of_32_lanes():
    """xlite-dev/LeetCUDA#399."""
    found = conflicts([16 * lane for lane in range(32)], 16)
    assert (found.wavefronts, found.ideal, found.excess) == (4, 4, 0)
    assert [len(p.lanes) for p in found.phases] == [8, 8, 8, 8]
    drawing = texgen.figure("(1,128):(128,1)", bits=32, banks="row:0@16")
    assert "32 lanes × 16 bytes in 4 phases of 8 lanes: 4 wavefronts (ideal 4)" in caption(drawing)
    assert "excess" not in caption(drawing)


@pytest.mark.parametrize(("halves", "wavefronts"), [(16, 2), (24, 1), (32, 4), (40, 1), (64, 8), (72, 1), (80, 2)])
def test_2B31_pads_of_halves(halves, wavefronts):
    """Bruce-Lee-LY/cuda_hgemm#11."""
    assert cost(L((8, halves), (halves, 1)), "ldmatrix", 16) == (wavefronts, 1)


def test_L14_which_mode_must_be_contiguous():
    """NVIDIA/cutlass#1858: ldmatrix from shared memory whose first mode is contiguous."""
    with pytest.raises(TexgenError, match=r"8 contiguous k per lane.*second mode .j. of \(64,32\):\(1,64\).*ldmatrix.trans"):
        access(L((64, 32), (1, 64)), "ldmatrix", 16)
    assert cost(L((64, 32), (1, 64)), "ldmatrix.trans", 16) == (8, 1)
    assert "In shared memory (source) the second mode must be contiguous: 8 contiguous n per lane, 16 bytes (n is the k of an A or B tile)" in caption(
        texgen.figure("SM75_U32x4_LDSM_N")
    )


def test_model():
    """The phases by width, broadcasts, parts of words."""
    assert [len(conflicts(np.arange(32) * w, w).phases) for w in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]
    assert conflicts([0] * 32, 4).wavefronts == 1
    assert conflicts(np.arange(32) * 2, 2).wavefronts == 1
    assert conflicts(np.arange(32) * 256, 8).wavefronts == 32 and conflicts(np.arange(32) * 256, 8).ideal == 2
    assert str(conflicts([0], 1)) == "1 lane × 1 byte: 1 wavefront (ideal 1)"
    for addresses, width, said in (([2], 4, "misaligned"), ([0], 3, "not 3"), (range(33), 1, "33"), ([-4], 4, "start at 0")):
        with pytest.raises(TexgenError, match=said):
            conflicts(list(addresses), width)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("diagonal", {"bits": 32}, "column:0, row:3, ldmatrix"),
        ("column:99", {"bits": 32}, "columns 0 to 31"),
        ("column:1,2", {"bits": 32}, "one number"),
        ("column:0", {}, "--bits 16"),
        ("column:0@3", {"bits": 8}, "not 3"),
        ("row:0@2", {"bits": 32}, "no whole number"),
        ("column:0", {"bits": 4}, "@4"),
        ("ldmatrix:30,0", {"bits": 16}, "leaves the layout"),
        ("ldmatrix@4", {"bits": 16}, "16 bytes"),
        ("(64,1):(1,0)", {"bits": 32}, "1 to 32 lanes"),
        ("(32,1):(64,0)", {"bits": 32}, "reaches cell 1984"),
        ("column:0@x", {"bits": 32}, "names no access"),
    ],
)
def test_wrong_accesses_are_explained(text, options, said):
    with pytest.raises(TexgenError, match=said):
        texgen.figure("(32,32):(32,1)", banks=text, **options)


def test_banks_are_of_layouts():
    with pytest.raises(TexgenError, match="not contiguous"):
        texgen.figure("(32,32):(33,2)", bits=32, banks="row:0@16")
    with pytest.raises(UsageError, match="coordinates"):
        texgen.figure("(4,8):(1@1,1@0)", bits=32, banks="row:0")
    with pytest.raises(UsageError, match="--banks"):
        texgen.figure("SM75_U32x4_LDSM_N", banks="row:0")


@pytest.mark.pdflatex
def test_a_banks_figure_compiles():
    assert texgen.figure("S<3,4,3> o 0 o (8,64):(64,1)", bits=16, banks="ldmatrix").pdf("pdflatex").startswith(b"%PDF")
