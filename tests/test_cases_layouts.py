"""Questions that people asked in public on reading layouts, with the values that are right."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from readback import from_svg, from_tikz

import texgen
from texgen.banks import access
from texgen.checks import check
from texgen.errors import TexgenError, UsageError
from texgen.layouts import Layout, tv_table

F16 = "SM80_16x8x16_F32F16F16F32_TN"
dsl = pytest.mark.dsl


@pytest.fixture
def trace():
    """A tracing context of the DSL's, for sm_80; gives a namespace with what the tests build."""
    if importlib.util.find_spec("nvidia_cutlass_dsl") is None:
        pytest.skip("nvidia-cutlass-dsl is not installed")
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.nvgpu import warp, warpgroup

    from texgen.sources.atoms_dsl import set_arch, tracing

    class Live:
        pass

    live = Live()
    live.cutlass, live.cute, live.warp, live.warpgroup, live.arch = cutlass, cute, warp, warpgroup, set_arch
    set_arch("sm_80")
    with tracing():
        yield live


def caption(drawing) -> str:
    return " ".join(line.text for line in drawing.figure.lines)


def cells(operand, thread, count=None):
    rows, columns = operand.coordinates()
    return [list(x) for x in zip(rows[thread, :count].tolist(), columns[thread, :count].tolist(), strict=True)]


def both(drawing):
    return [from_tikz(drawing.tikz()), from_svg(drawing.svg(), drawing.figure.aspect)]


def evaluate(rule: tuple[str, str], thread: int, value: int) -> list[int]:
    return [eval(x, {}, {"T": thread, "V": value}) for x in rule]


def rules(drawing) -> dict[str, tuple[str, str]]:
    """The closed forms as the caption prints them, by operand: row and column in T and V."""
    from texgen.figures.caption import rule_of

    found = {x: rule_of(o) for x, o in drawing.spec.operands().items()}
    for rule in found.values():
        if rule:
            assert f"= {rule[0]}," in caption(drawing) and f"= {rule[1]}" in caption(drawing)
    return {x: rule for x, rule in found.items() if rule}


def test_L01_a_tv_layout_of_32x8_over_16x16():
    """NVIDIA/cutlass#1365."""
    drawing = texgen.figure(F16)
    places = [[1, 2], [1, 3], [9, 2], [9, 3], [1, 10], [1, 11], [9, 10], [9, 11]]
    assert cells(drawing.spec.A, 5) == places
    assert [evaluate(rules(drawing)["A"], 5, v) for v in range(8)] == places
    assert "A (m,k): 32 threads × 8 values = 256 cells" in caption(drawing)


@dsl
def test_L03_memory_order_changes_no_coordinate(trace):
    """NVIDIA/cutlass#2205."""
    trace.arch("sm_90a")
    t, figures = trace, []
    for major in ("K", "MN"):
        a = getattr(t.cute.nvgpu.OperandMajorMode, major)
        op = t.warpgroup.MmaF16BF16Op(
            t.cutlass.Float16, t.cutlass.Float32, (64, 64, 16), t.warpgroup.OperandSource.SMEM, a, a
        )  # fmt: skip
        figures.append(texgen.figure(t.cute.make_tiled_mma(op)))
    first, second = (f.spec for f in figures)
    assert all(np.array_equal(first.operands()[x].tv, second.operands()[x].tv) for x in "ABC")
    assert from_tikz(figures[0].tikz()) == from_tikz(figures[1].tikz())
    assert "A is K-major and B K-major" in caption(figures[0]) and "A is M-major and B N-major" in caption(figures[1])


def test_L03_the_index_rule_is_in_the_caption():
    """NVIDIA/cutlass#2205."""
    assert "index m + 16·k in A, n + 8·k in B, m + 16·n in C, in whatever order" in caption(texgen.figure(F16))


def test_L04_counts_are_computed():
    """NVIDIA/cutlass#1974: 64x16 written as 64x8."""
    drawing = texgen.figure("SM90_64x64x16_F32F16F16_SS")
    assert drawing.spec.A.values == 1024
    assert "64 × 16 = 1,024 elements" in caption(drawing)


def test_L07_the_value_layouts_tile():
    """NVIDIA/cutlass#2016: where the value layout went."""
    new = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16")
    old = texgen.figure(F16, atom_layout="2,2,1", val_layout="1,2,1")
    assert {x: o.values for x, o in new.spec.operands().items()} == {"A": 8, "B": 8, "C": 8}
    assert all(np.array_equal(new.spec.operands()[x].tv, old.spec.operands()[x].tv) for x in "ABC")
    assert "32×32×16" in new.figure.title and caption(new).count("128 threads × 8 values") == 3


def test_L08_values_times_threads_are_the_cells():
    """NVIDIA/cutlass#1338: 256 registers for 64 outputs; a quad pair's 8 threads hold 8 values each."""
    drawing = texgen.figure("SM70_8x8x4_F32F16F16F32_TN")
    assert drawing.spec.C.values == 8
    assert "C (m,n): 32 threads × 8 values = 256 for 64 cells, each cell in 4 threads" in caption(drawing)


def test_L09_lanes_of_a_quad_pair_are_real():
    """NVIDIA/cutlass#1460."""
    lanes = [8, 9, 10, 11, 24, 25, 26, 27]
    drawing = texgen.figure("SM70_8x8x4_F32F16F16F32_TN", operand="C", highlight="T8-T11,T24-T27")
    for panels in both(drawing):
        named = {label[0].split()[0] for label in panels["C"].labels.values()}
        assert named == {f"T{lane}" for lane in lanes}
    assert sorted({int(x) for lane in lanes for x in drawing.spec.C.tv[lane]}) == list(range(64))


def test_L11_a_copy_over_a_larger_tile():
    """NVIDIA/cutlass#1545: 256 threads over 128x32."""
    drawing = texgen.figure("UniversalCopy<uint128_t>", atom_layout="16,16", val_layout="8,1", tile="128,32")
    spec = drawing.spec
    assert (spec.tile, spec.tiler, spec.S.values) == ((128, 32), "(128,16)", 16)
    assert "The tiler is 128×16: 2 repeats along the second mode cover 128×32." in caption(drawing)
    assert cells(spec.S, 0) == [[i, c] for c in (0, 16) for i in range(8)]
    assert cells(spec.S, 17, 8) == [[8 + i, 1] for i in range(8)]
    assert set(spec.S.owner_counts.flat) == {1}
    with pytest.raises(TexgenError, match=r"128×16, which does not divide the tile 128,24"):
        texgen.read("UniversalCopy<uint128_t>", atom_layout="16,16", val_layout="8,1", tile="128,24")
    with pytest.raises(UsageError, match="copy atom alone"):
        texgen.read("SM75_U32x4_LDSM_N", tile="64,64")


@dsl
def test_L11_repeats_are_the_dsls_partition(trace):
    """NVIDIA/cutlass#1545."""
    cute = trace.cute
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), trace.cutlass.Float32)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((2, 1)))
    spec = texgen.read(copy, tile="32,8")
    for thread in (0, 5, 31):
        mine = copy.get_slice(thread).partition_S(cute.make_identity_tensor((32, 8)))
        places = sorted([int(x) for x in mine[i]] for i in range(cute.size(mine)))
        assert sorted(cells(spec.S, thread)) == places


@dsl
def test_L14_which_mode_must_be_contiguous(trace):
    """NVIDIA/cutlass#1858."""
    cute, warp, f16 = trace.cute, trace.warp, trace.cutlass.Float16
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(f16, trace.cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)))
    drawing = texgen.figure(cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), f16), mma))
    assert "the second mode must be contiguous: 8 contiguous n per lane, 16 bytes (n is the k of an A or B tile)" in caption(drawing)
    with pytest.raises(TexgenError, match="8 contiguous k per lane"):
        access(Layout((64, 32), (1, 64)), "ldmatrix", 16)


def test_L15_a_warpgroup_that_starts_in_mid_atom():
    """NVIDIA/cutlass#1988: m64n96k16, two warpgroups along N, 64-wide swizzle atoms."""
    spec = texgen.read("SM90_64x96x16_F32F16F16_SS", atom_layout="1,2,1")
    assert (spec.threads, int(spec.C.tv[128, 0])) == (256, 6144)
    (warning,) = spec.warnings
    assert "Warpgroup 1 starts in mid-atom" in warning and "n=96, 32 columns into a 128-byte swizzle atom of 64 f16" in warning
    assert check(spec) == spec
    for other, atoms in (("SM90_64x128x16_F32F16F16_SS", "1,2,1"), ("SM90_64x96x16_F32F16F16_SS", "2,1,1")):
        assert not texgen.read(other, atom_layout=atoms).warnings


def test_L17_the_order_of_values_is_shown():
    """NVIDIA/cutlass#1313: 2x2 threads of 4x4 values; a row-major store numbers values along n first."""
    row, column = (
        texgen.figure("UniversalCopy<float>", atom_layout="2,2", val_layout=f"(4,4):{stride}") for stride in ("(4,1)", "(1,4)")
    )
    assert "16 values = 64 cells, values along n first" in caption(row)
    assert "16 values = 64 cells, values along m first" in caption(column)
    for panels in both(row):
        assert [panels["D"].labels[0, c] for c in range(4)] == [["T0", f"V{c}"] for c in range(4)]
        assert panels["D"].labels[1, 0] == ["T0", "V4"]


def test_L19_the_closed_form_comes_with_the_figure():
    """NVlabs/cuda-oxide#474."""
    drawing = texgen.figure(F16, operand="C")
    assert evaluate(rules(texgen.figure(F16))["C"], 11, 3) == [10, 7]
    assert "m = T//4 + 8*(V//2),  n = 2*(T%4) + V%2" in caption(drawing)


def test_L20_which_product_was_used():
    """ROCm/FlyDSL#302."""
    drawing = texgen.figure("UniversalCopy<uint128_t>", atom_layout="(32,4):(4,1)", val_layout="1,8", dtype="f16")
    assert "raked product of threads (32,4):(4,1) and values (1,8)" in caption(drawing)
    assert np.array_equal(drawing.spec.D.tv, tv_table(Layout(((4, 32), (8, 1)), ((256, 1), (32, 0)))))
    assert cells(drawing.spec.D, 5) == [[1, 8 + i] for i in range(8)]


def test_2B10_a_permuted_tf32_tile():
    """NVIDIA/cutlass#2127."""
    drawing = texgen.figure("SM80_16x8x8_F32TF32TF32F32_TN", atom_layout="4,1,1", tile="16,(2,16):(1,8),8")
    small, reach = drawing.spec.warnings
    assert "M=16 is smaller than the 4 atoms of 16 laid over it (64)" in small
    assert "size 32 but reaches column 121" in reach and "N=128" in reach
    assert "4 of them coincide" in small and set(drawing.spec.C.owner_counts.flat) == {4}
    row = lambda t: sorted(c for r, c in cells(drawing.spec.C, t) if r == 0)  # noqa: E731
    assert row(0) == [*range(8), *range(32, 40), *range(64, 72), *range(96, 104)]
    assert row(1)[:16] == [*range(8, 16), *range(40, 48)]
    assert sorted(c for t in range(4) for c in row(t)[:8]) == list(range(32))
    assert caption(drawing).count("Warning:") == 2


@dsl
def test_2B14_the_transposing_form_moves_16_bit_units(trace):
    """NVIDIA/cutlass#1953."""
    cute, warp, e4m3 = trace.cute, trace.warp, trace.cutlass.Float8E4M3FN
    if not hasattr(warp, "MmaFP8Op"):
        pytest.skip("this release of nvidia-cutlass-dsl has no 8-bit warp MMA")
    try:
        op = warp.MmaFP8Op(e4m3, trace.cutlass.Float32, (16, 8, 32))
    except Exception as refused:  # built with CUDA 12.9, as 4.5.3 is
        if "CUDA Toolkit" not in str(refused):
            raise
        pytest.skip("this release of nvidia-cutlass-dsl has no 8-bit warp MMA")
    mma = cute.make_tiled_mma(op, cute.make_layout((4, 1, 1)), permutation_mnk=(64, 32, 32))
    drawing = texgen.figure(cute.make_tiled_copy_B(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), e4m3), mma))
    assert drawing.spec.S.layout == "((16,2,4),((2,8),2)):((64,8,0),((32,1),16))"
    assert cells(drawing.spec.S, 0, 16) == [[n, k] for n in range(8) for k in range(2)]
    assert "The transposing form moves 16-bit units, so two neighbouring 8-bit elements travel together" in caption(drawing)


def test_2B14_from_the_catalogue():
    """NVIDIA/cutlass#1953: the destination of narrower elements stays with 32 threads."""
    drawing = texgen.figure("SM75_U16x8_LDSM_T", dtype="s8")
    assert (drawing.spec.D.threads, drawing.spec.D.values) == (32, 16)
    assert drawing.spec.D.layout == "((4,8),(2,2,4)):((32,2),(1,16,128))"
    assert "moves 16-bit units" in caption(drawing)


@dsl
def test_2B15_layouts_come_from_the_installed_release(trace):
    """NVIDIA/cutlass#2901."""
    import cutlass

    copy = trace.cute.make_copy_atom(trace.warp.LdMatrix16x16x8bOp(True, 2), trace.cutlass.Int8)
    drawing = texgen.figure(copy)
    assert drawing.spec.S.layout == "(32,16):(16,1)"
    assert cells(drawing.spec.D, 5, 4) == [[r, 1] for r in range(4, 8)]
    assert f"nvidia-cutlass-dsl {cutlass.__version__}" in caption(drawing)


def test_2B20_any_tv_layout_and_tiler():
    """NVIDIA/cutlass#2483."""
    spec = texgen.read("((8,4),(8,2)):((64,1),(4,32))", tv=True, tile="8,64")
    assert (spec.threads, spec.map.values, spec.map.cells) == (32, 16, 512)
    assert set(spec.map.owner_counts.flat) == {1}
    with pytest.raises(TexgenError, match="cells have no owner"):
        texgen.read("((8,4),(8,2)):((64,1),(4,32))", tv=True, tile="8,128")


@dsl
def test_V08_equivalent_copies_are_equal_figures(trace):
    """NVIDIA/cutlass#1100: one spelling recursed for ever."""
    cute = trace.cute
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), trace.cutlass.Float32)
    first = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((2, 1)))
    second = cute.make_tiled_copy(atom, first.layout_tv_tiled, (16, 4))
    assert from_tikz(texgen.figure(first).tikz()) == from_tikz(texgen.figure(second).tikz())
