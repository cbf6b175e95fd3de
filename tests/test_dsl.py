"""Live DSL objects against the DSL's own partitions, CuTe C++'s tables and worked examples."""

import json
from pathlib import Path

import numpy as np
import pytest

cutlass = pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
cute = pytest.importorskip("cutlass.cute", reason="needs nvidia-cutlass-dsl")

from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warp, warpgroup  # noqa: E402

from texgen.checks import check  # noqa: E402
from texgen.errors import TexgenError  # noqa: E402
from texgen.sources.atoms_dsl import set_arch, tracing  # noqa: E402
from texgen.sources.dsl import is_dsl_object, read_any, read_object  # noqa: E402
from texgen.spec_json import from_dict, to_json  # noqa: E402
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, TVSpec  # noqa: E402

pytestmark = pytest.mark.dsl
F16, F32, S8 = cutlass.Float16, cutlass.Float32, cutlass.Int8
K = OperandMajorMode.K
ORACLE = Path(__file__).parent / "oracle"


@pytest.fixture
def trace():
    set_arch("sm_80")
    with tracing():
        yield


def f16(atoms=(2, 2, 1), tile=(32, 32, 16)):
    op = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout(atoms), permutation_mnk=tile)


def tf32(atoms, tile):
    if not hasattr(warp, "MmaTF32Op"):
        pytest.skip("this release of nvidia-cutlass-dsl has no warp-level TF32 operation")
    return cute.make_tiled_mma(warp.MmaTF32Op((16, 8, 8)), cute.make_layout(atoms), permutation_mnk=tile)


def wgmma(source="SMEM", n=64, atoms=(1, 1, 1)):
    set_arch("sm_90a")
    op = warpgroup.MmaF16BF16Op(F16, F32, (64, n, 16), getattr(warpgroup.OperandSource, source), K, K)
    return cute.make_tiled_mma(op, cute.make_layout(atoms))


def umma(group="ONE", source="SMEM"):
    set_arch("sm_100a")
    op = tcgen05.MmaF16BF16Op(
        F16, F32, (128 if group == "ONE" else 256, 64, 16), getattr(tcgen05.CtaGroup, group),
        getattr(tcgen05.OperandSource, source), K, K,
    )  # fmt: skip
    return cute.make_tiled_mma(op)


def cells(operand, thread):
    rows, columns = operand.coordinates()
    return [list(x) for x in zip(rows[thread].tolist(), columns[thread].tolist(), strict=True)]


def owners(operand, row, column):
    return [[o.thread, o.value] for o in operand.owners(row, column)]


# The DSL's own partitions of an identity tensor are the oracle.


def partitioned(part, shape):
    mine = part(cute.make_identity_tensor(shape))
    return [[int(x) for x in mine[i]] for i in range(cute.size(mine))]


MMAS = {
    "V01": lambda: f16(),
    "4x1x1": lambda: f16((4, 1, 1), (64, 16, 16)),
    "permuted N": lambda: f16((2, 2, 1), (32, cute.make_layout((8, 2, 2), stride=(1, 16, 8)), 16)),
    "two in K": lambda: f16((1, 2, 2), (16, 16, 64)),
    "two in N and K": lambda: f16((2, 2, 2), (32, 32, 32)),
    "tf32": lambda: tf32((2, 4, 1), (32, 64, 8)),
    "2-B10": lambda: tf32((4, 1, 1), (16, cute.make_layout((2, 16), stride=(1, 8)), 8)),
    "permuted M with gaps": lambda: f16((1, 1, 1), (cute.make_layout((2, 8), stride=(1, 4)), 8, 16)),
    "M too small": lambda: f16((4, 1, 1), (32, 8, 16)),
    "wgmma RS": lambda: wgmma("RMEM", 16),
}


@pytest.mark.parametrize("name", MMAS)
def test_tables_are_the_dsls_partitions(trace, name):
    mma = MMAS[name]()
    spec = read_object(mma)
    check(spec)
    smem = {x for x, operand in spec.operands().items() if operand.memory != "rmem"}
    for thread in (0, 1, 5, 31, spec.threads - 1):
        piece = mma.get_slice(thread)
        for x in {"A", "B", "C"} - smem:
            operand = spec.operands()[x]
            if x == "B" and name == "2-B10" and thread:
                continue  # one thread says it, and a partition costs a second
            assert cells(operand, thread) == partitioned(getattr(piece, f"partition_{x}"), operand.tile), (x, thread)


def copies():
    mma = f16()
    ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), F16)
    stsm = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), F16)
    plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F32)
    return {
        "A": cute.make_tiled_copy_A(ldsm, mma),
        "B": cute.make_tiled_copy_B(ldsm, mma),
        "C": cute.make_tiled_copy_C(stsm, mma),
        "C atom": cute.make_tiled_copy_C_atom(stsm, mma),
        "tv": cute.make_tiled_copy_tv(plain, cute.make_layout((32, 8)), cute.make_layout((4, 1))),
        "free": cute.make_tiled_copy(
            plain, cute.make_layout(((8, 4), (8, 2)), stride=((64, 1), (4, 32))), (8, 64)
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["A", "B", "C", "C atom", "tv", "free"])
def test_copies_are_the_dsls_partitions(trace, name):
    copy = copies()[name]
    spec = read_object(copy)
    check(spec)
    for thread in (0, 1, 5, 31):
        piece = copy.get_slice(thread)
        assert cells(spec.S, thread) == partitioned(piece.partition_S, spec.tile)
        assert cells(spec.D, thread) == partitioned(piece.partition_D, spec.tile)


def test_copies_equal_cute_cpp(trace):
    lines = [json.loads(x) for x in (ORACLE / "cute_cpp.jsonl").read_text().splitlines()]
    lines = [x for x in lines if x["kind"] == "copy"]
    ours = {"make_tiled_copy_B": "B", "make_tiled_copy_C": "C", "make_tiled_copy": "tv"}
    live = copies()
    assert len(lines) == 3
    for line in lines:
        spec = read_object(live[ours[line["name"].split("<")[0]]])
        assert spec.S.tv.tolist() == line["S"]["tv"]
        assert spec.D.tv.tolist() == line["D"]["tv"]
        assert list(spec.tile) == [int(x) for x in line["tiler"].replace("_", "").strip("()").split(",")]


# Worked examples


def test_every_owner(trace):  # V01
    spec = read_object(f16())
    assert spec.name == "SM80_16x8x16_F32F16F16F32_TN"
    assert (spec.arch, spec.tile_mnk, spec.atom_mnk) == ("sm_80", (32, 32, 16), (16, 8, 16))
    assert spec.thr_layout_vmnk == "(32,2,2,1):(1,32,64,0)"
    assert spec.permutation_mnk == "(32:1,32:1,16:1)"
    assert spec.A.layout == "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))"
    assert owners(spec.A, 0, 0) == [[0, 0], [64, 0]]
    assert owners(spec.A, 16, 0) == [[32, 0], [96, 0]]
    assert owners(spec.B, 0, 0) == [[0, 0], [32, 0]]
    assert owners(spec.C, 0, 0) == [[0, 0]]
    assert {x: int(o.owner_counts.max()) for x, o in spec.operands().items()} == {"A": 2, "B": 2, "C": 1}
    assert [o.dtype for o in spec.operands().values()] == ["f16", "f16", "f32"]
    assert [o.values for o in spec.operands().values()] == [8, 8, 8]  # L07
    assert "target sm_80" in spec.source


def test_atom_and_op(trace):  # L01
    op = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
    spec = read_object(op)
    assert spec == read_object(cute.make_mma_atom(op))
    assert cells(spec.A, 5) == [[1, 2], [1, 3], [9, 2], [9, 3], [1, 10], [1, 11], [9, 10], [9, 11]]


def test_permutation_that_reaches_outside(trace):  # 2-B10
    mma = tf32((4, 1, 1), (16, cute.make_layout((2, 16), stride=(1, 8)), 8))
    assert [mma.get_tile_size(i) for i in range(3)] == [16, 32, 8]
    spec = read_object(mma)
    assert spec.tile_mnk == (16, 128, 8)
    row0 = lambda t: sorted(c for r, c in cells(spec.C, t) if r == 0)  # noqa: E731
    assert row0(0) == [*range(8), *range(32, 40), *range(64, 72), *range(96, 104)]
    assert row0(1)[:16] == [*range(8, 16), *range(40, 48)]
    assert sorted(row0(0)[:8] + row0(1)[:8] + row0(2)[:8] + row0(3)[:8]) == list(range(32))
    assert {int(x) for o in spec.operands().values() for x in np.unique(o.owner_counts)} == {4}
    first, second = spec.warnings
    assert "M=16" in first and "64" in first and "4" in first
    assert "32" in second and "121" in second and "128" in second


def test_warpgroup_operands(trace):  # V13
    spec = read_object(wgmma())
    assert (spec.name, spec.arch) == ("SM90_64x64x16_F32F16F16_SS", "sm_90a")
    assert [o.memory for o in spec.operands().values()] == ["smem", "smem", "rmem"]
    assert spec.A.layout == "(128,((64,16),(1,1))):(0,((1,64),(0,0)))"
    assert spec.A.owner_counts.min() == spec.A.owner_counts.max() == 128
    assert cells(spec.C, 37)[:6] == [[17, 2], [17, 3], [25, 2], [25, 3], [17, 10], [17, 11]]
    registers = read_object(wgmma("RMEM"))
    assert registers.A.memory == "rmem"
    assert registers.A.layout == "((4,8,4),((2,2,2),(1,1))):((128,1,16),((64,8,512),(0,0)))"
    assert registers.A.values == 8


def test_tcgen05(trace):
    one, two, tmem = (read_object(umma(*x)) for x in (("ONE",), ("TWO",), ("ONE", "TMEM")))
    assert (one.threads, two.threads) == (1, 2)
    assert [o.memory for o in one.operands().values()] == ["smem", "smem", "tmem"]
    assert tmem.A.memory == "tmem"
    assert two.name == "SM100_2SM_256x64x16_F32F16F16_SS"
    assert any("CTA" in note for note in one.notes)


def test_universal_mma_counts_threads(trace):  # 2-E02
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(F32), cute.make_layout((16, 16, 1), stride=(16, 1, 0)))
    spec = read_object(mma)
    assert (spec.threads, spec.tile_mnk, spec.name) == (256, (16, 16, 1), "UniversalFMA_F32")


def test_ldmatrix_of_8_bit_elements(trace):  # 2-B14, 2-B15
    copy = cute.make_copy_atom(warp.LdMatrix16x16x8bOp(True, 2), S8)
    spec = read_object(copy)
    assert spec.S.layout == "(32,16):(16,1)"
    assert spec.tile == (32, 16)
    assert cells(spec.D, 5)[:4] == [[4, 1], [5, 1], [6, 1], [7, 1]]
    assert cells(spec.S, 5) == [[5, i] for i in range(16)]
    pairs = read_object(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), S8))
    assert pairs.tile == (32, 16)
    assert any("16-bit units" in note for note in pairs.notes)
    assert any("16 contiguous bytes" in note for note in pairs.notes)  # L14


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_matrix_copies_cover_their_buffer(trace, n, transpose):
    load = read_object(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, n), F16))
    store = read_object(cute.make_copy_atom(warp.StMatrix8x8x16bOp(transpose, n), F16))
    assert load.tile == store.tile == (8 * n, 8)
    assert np.array_equal(load.S.tv, store.D.tv) and np.array_equal(load.D.tv, store.S.tv)
    check(load)
    # ldmatrix: lane l gets row l/4, columns 2(l%4) and the next; .trans swaps row and column.
    place = [[5 // 4, 2 * (5 % 4)], [5 // 4, 2 * (5 % 4) + 1]]
    assert cells(load.D, 5)[:2] == ([p[::-1] for p in place] if transpose else place)


def test_free_tv_layout_and_tiler(trace):  # 2-B20, L11
    live = copies()
    free = read_object(live["free"])
    assert (free.threads, free.S.values, free.tile) == (32, 16, (8, 64))
    assert free.S.owner_counts.min() == free.S.owner_counts.max() == 1
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F32)
    thin = read_object(cute.make_tiled_copy_tv(atom, cute.make_layout((16, 16)), cute.make_layout((8, 1))))
    assert (thin.tile, thin.tiler) == ((128, 16), "(128:1,16:1)")
    assert cells(thin.S, 0) == [[i, 0] for i in range(8)]
    assert cells(thin.S, 17) == [[8 + i, 1] for i in range(8)]


def test_tilers_of_other_ranks(trace):
    atom, tv = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F32), cute.make_layout((32, 4), stride=(4, 1))
    assert read_object(cute.make_tiled_copy(atom, tv, (128,))).tile == (1, 128)
    assert read_object(cute.make_tiled_copy(atom, tv, (8, 4, 4))).tile == (8, 16)
    gaps = cute.make_tiled_copy(
        atom, cute.make_layout((8, 4), stride=(1, 8)), (cute.make_layout((2, 4), stride=(1, 4)), 4)
    )  # fmt: skip
    spec = read_object(gaps)
    assert spec.tile == (14, 4)
    assert "size 8" in spec.warnings[0] and "13" in spec.warnings[0]
    with pytest.raises(TexgenError, match="24 of 56"):
        check(spec)


def test_equivalent_spellings_are_equal(trace):  # V08
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F32)
    one = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 8)), cute.make_layout((4, 1)))
    two = cute.make_tiled_copy(atom, cute.make_layout((256, 4), stride=(4, 1)), (128, 8))
    assert read_object(one) == read_object(two) == read_object(one.get_slice(3))
    assert read_object(f16().get_slice(3)) == read_object(f16())


def test_tmem_copy(trace):
    mma = umma()
    acc = mma.make_fragment_C(mma.partition_shape_C((128, 64)))
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), F32)
    spec = read_object(tcgen05.make_tmem_copy(atom, acc[(None, None), 0, 0]))
    check(spec)
    assert (spec.tile, spec.S.memory, spec.D.memory) == ((128, 32), "tmem", "rmem")
    assert spec.name == "SM100_TMEM_LOAD_32dp32b32x"
    assert cells(spec.D, 37)[:3] == [[37, 0], [37, 1], [37, 2]]


def test_smem_atom_of_the_dsl(trace):  # V07
    set_arch("sm_90a")
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, F16)
    spec = read_object(atom, bits=16)
    assert spec.layout == "S<3,4,3> o 0 o (8,64):(64,1)"
    assert (spec.offsets[1, 0], spec.offsets[3, 9]) == (72, 209)
    implied = read_object(atom)  # a row of 64 elements fills the swizzle's 128 bytes
    assert (implied.bits, implied.unit, implied.offsets[1, 0]) == (16, "bytes", 72)
    assert "16 bits" in implied.notes[-1]
    assert read_object(atom, swizzle_unit="elements").offsets[1, 0] == 64
    tiled = read_object(cute.tile_to_shape(atom, (128, 64), (0, 1)), bits=16)
    assert tiled.offsets[9, 0] == 512 + 72


def test_tensors_know_their_width_and_swizzle(trace):
    pointer = cute.make_ptr(F16, 0, cute.AddressSpace.smem, assumed_align=1024)
    layout = cute.make_layout((8, 64), stride=(64, 1))
    apart = read_object(cute.make_tensor(cute.recast_ptr(pointer, cute.make_swizzle(3, 4, 3)), layout))
    whole = read_object(cute.make_tensor(pointer, cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, layout)))
    for spec in (apart, whole):
        assert (spec.bits, spec.unit, spec.offsets[1, 0]) == (16, "bytes", 72)


def test_plain_and_coordinate_layouts(trace):
    spec = read_object(cute.make_layout((4, 8), stride=(8, 1)), name="mine")
    assert (spec.name, spec.layout, spec.offsets[1, 2]) == ("mine", "(4,8):(8,1)", 10)
    identity = read_object(cute.make_identity_layout(((4, 2), 8)))
    assert identity.layout == "((4,2),8):((1@0@0,1@1@0),1@1)"
    assert len(identity.coords) == 3
    assert len(read_object(cute.make_identity_tensor((4, 8))).coords) == 2


def test_containers(trace):
    specs = read_any({"mma": f16(), "list": [cute.make_layout((4, 8)), copies()["A"]]})
    assert specs["mma"].name == "mma"
    assert "SM80_16x8x16_F32F16F16F32_TN" in specs["mma"].notes[0]
    assert [type(x) for x in specs["list"]] == [LayoutSpec, CopySpec]
    with pytest.raises(TexgenError, match=r"^bad: .*an int"):
        read_any({"bad": 3})


def test_tma(trace):
    set_arch("sm_90a")
    smem = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((64, 64), stride=(64, 1)))
    pointer = cute.make_ptr(F16, 0, cute.AddressSpace.gmem, assumed_align=16)
    tensor = cute.make_tensor(pointer, cute.make_layout((256, 128), stride=(128, 1)))
    made = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, smem, (64, 64))
    atom, tma_tensor = made
    with pytest.raises(TexgenError, match="one thread issues"):
        read_any(atom)
    coordinates = read_any(tma_tensor).coords
    assert [int(c[3, 5]) for c in coordinates] == [5, 3]
    if not isinstance(made, tuple):
        specs = read_any(made, bits=16)
        assert list(specs) == ["shared memory", "TMA tensor"]
        assert specs["shared memory"].offsets[1, 0] == 72


def test_is_dsl_object(trace):
    assert is_dsl_object(f16()) and is_dsl_object([cute.make_layout(3)]) and is_dsl_object({"a": f16()})
    assert not any(is_dsl_object(x) for x in (3, None, [], {}, "x", [1], np.zeros(2), cute.Layout))


def test_specs_survive_json(trace):
    for obj in (f16(), copies()["C atom"], wgmma()):
        spec = read_object(obj)
        again = from_dict(json.loads(to_json(spec)), "test")
        assert type(again) in (MmaSpec, CopySpec, TVSpec)
        assert again.operands() == spec.operands()


# Guards


def test_outside_of_a_trace():
    with tracing():
        op = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
    with pytest.raises(TexgenError, match=r"inside your @cute.jit function.*module:callable"):
        read_object(op)


def test_what_has_no_layout(trace):
    with pytest.raises(TexgenError, match="TiledMma, TiledCopy"):
        read_object(cute.make_swizzle(3, 3, 3))
    with pytest.raises(TexgenError, match="element type"):
        read_object(cpasync.CopyG2SOp())
    set_arch("sm_90a")
    with pytest.raises(TexgenError, match="one thread issues"):
        read_object(cpasync.CopyBulkTensorTileG2SOp())
    with pytest.raises(TexgenError, match="rank 3"):
        read_object(cute.make_layout((2, 2, 2)))


@cute.jit
def dynamic(results: cutlass.Constexpr, n: cutlass.Int32):
    for make in (
        lambda: cute.make_layout((n, 4)),
        lambda: cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), cute.make_layout((n, 2, 1))),
    ):
        try:
            read_object(make())
        except TexgenError as e:
            results.append(str(e))
    results.append(read_object(f16()))


def test_inside_a_jit_function():
    set_arch("sm_80")
    results = []
    cute.compile(dynamic, results, 3)
    layout, mma, spec = results[-3:]
    assert "(?,4):(1,?)" in layout and "Python integers" in layout
    assert "TiledMma" in mma and "(?,2,1)" in mma
    with tracing():
        assert spec == read_object(f16())
