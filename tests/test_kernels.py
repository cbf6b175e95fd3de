"""The kernels: without a GPU they compile for every architecture they are made for, their figures can be read and their
refusals are sentences; with one they run, on odd sizes, strides and starts."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from texgen import TexgenError
from texgen.kernels import KERNELS

FOLDER = Path(__file__).resolve().parents[1] / "texgen" / "kernels"
ODD = (1, 7, 127, 129, 1000)

FIGURES = {
    "vector_add": ("tiled_copy",),
    "sgemm": ("threads_naive", "tiled_mma", "tiled_mma_tiled", "copy_a", "copy_b", "copy_a_tiled", "copy_b_tiled", "smem_a",
              "smem_b", "smem_a_padded"),
    "hgemm_sm80": ("tiled_mma", "copy_a", "copy_b", "copy_c", "smem_atom_k_major", "smem_atom_mn_major", "ldmatrix_a",
                   "ldmatrix_b"),
    "hgemm_sm90": ("tiled_mma", "smem_atom", "piece_mma", "stmatrix_c"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def arch_is_put_back():
    """The DSL's architecture is one setting for the process."""
    if not (name := _arch()):
        yield
        return
    yield
    from texgen.kernels import common

    common.set_arch(name)


def _arch() -> str:
    try:
        from cutlass.cutlass_dsl import CuTeDSL
    except Exception:
        return ""
    return CuTeDSL._get_dsl().envar.arch


# Without a GPU -----------------------------------------------------------------------------------------------------------

CP_ASYNC = r"cp\.async\.cg\.shared\.global.* 16"
MEANT = {
    "vector_add": (r"ld\.global\.v4\.b32", r"fma\.rn\.f16x2", r"st\.global\.v4\.b32"),
    "sgemm_naive": (r"fma\.rn\.f32",),
    "sgemm_tiled": (r"st\.shared\.v4", r"ld\.shared\.v4", r"fma\.rn\.f32"),
    "sgemm_pipelined": (CP_ASYNC, r"cp\.async\.wait_group\s+1", r"ld\.shared\.v4", r"fma\.rn\.f32", r"st\.global\.v4"),
    "hgemm_sm80": (CP_ASYNC, r"mma\.sync\.aligned\.m16n8k16", r"ldmatrix\.sync\.aligned\.m8n8\.x4", r"st\.global\.v4"),
    "hgemm_sm90": (r"wgmma\.mma_async.*m64n256k16\.f32\.f16\.f16", r"multicast::cluster", r"stmatrix", r"setmaxnreg\.dec",
                   r"cp\.async\.bulk\.tensor\.2d\.global\.shared"),
}  # fmt: skip


def compile_one(name: str, arch: str, **options: object) -> object:
    kernel = KERNELS[name]
    module = kernel.load()
    return module.compiled(kernel.step, arch, **options) if kernel.step else module.compiled(arch, **options)


@pytest.mark.dsl
@pytest.mark.parametrize(("name", "arch"), [(k.name, a) for k in KERNELS.values() for a in k.architectures])
def test_compiles_without_a_gpu_to_the_instructions_meant(name, arch, tmp_path):
    ptx = compile_one(name, arch, options=f"--keep-ptx --dump-dir {tmp_path}").__ptx__
    assert f".target {arch}" in ptx
    assert [p for p in MEANT[name] if not re.search(p, ptx)] == []


@pytest.mark.dsl
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sgemm_pipelined", {"ways": ("k1", "mn1?"), "out": "?", "small": True}),
        ("sgemm_tiled", {"ways": ("k1?", "mn1"), "out": "m"}),
        ("hgemm_sm80", {"majors": ("mn", "k"), "small": True}),
        ("hgemm_sm90", {"majors": ("k", "mn")}),
    ],
)
def test_other_ways_that_operands_lie_compile_too(name, options):
    options = dict(options)
    if options.pop("small", False):
        options["cfg"] = KERNELS[name].load().SMALL
    assert compile_one(name, "sm_90a", **options) is not None


@pytest.mark.dsl
def test_a_hopper_kernel_says_that_it_needs_hopper():
    with pytest.raises(TexgenError, match="wgmma, which sm_80 lacks"):
        compile_one("hgemm_sm90", "sm_80")


@pytest.mark.dsl
def test_verbose_prints_what_is_partitioned():
    code = "from texgen.kernels import vector_add; vector_add.compiled('sm_80')"
    for verbose, lines in (("1", 5), ("", 0)):
        env = dict(os.environ, TEXGEN_VERBOSE=verbose, PYTHONPATH=str(FOLDER.parents[1]))
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        assert len(out.splitlines()) == lines
        assert not lines or re.search(r"^  tx +\(\(8,1\),\(1\)\)", out, re.M)


@pytest.mark.dsl
@pytest.mark.parametrize(("file", "function"), [(f, fn) for f, fns in FIGURES.items() for fn in fns])
def test_figures_call_what_the_kernel_calls(file, function):
    """``texgen render texgen/kernels/sgemm.py:tiled_mma`` reads the function that the kernel calls."""
    import texgen

    spec = texgen.read(f"{FOLDER / file}.py:{function}")
    assert spec is not None
    text = (FOLDER / f"{file}.py").read_text()
    assert len(re.findall(rf"\b{function}\(", text)) >= 2 or function in (
        "smem_a_padded",
        "smem_atom_k_major",
        "smem_atom_mn_major",
    )


@pytest.mark.dsl
def test_threads_are_counted_from_the_object():
    """2-E02: 128 rows in 4 steps of 32 rows by 8 are 256 threads; and so in every tiled object of one kernel."""
    from texgen.kernels import sgemm
    from texgen.sources.atoms_dsl import tracing

    with tracing():
        import cutlass.cute as cute

        atoms = cute.make_layout((16, 16, 1), stride=(16, 1, 0))
        assert cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(sgemm.f32), atoms).size == 256
        tiled = [
            sgemm.tiled_mma(),
            sgemm.copy_a(),
            sgemm.copy_b("k1"),
            sgemm.tiled_mma_tiled(),
            sgemm.copy_a_tiled("mn1"),
        ]
        assert {t.size for t in tiled} == {sgemm.PIPELINED.threads} == {256}


@pytest.mark.torch
@pytest.mark.dsl
def test_how_operands_lie_decides_the_copy():
    import torch

    from texgen.kernels import common, halves, sgemm

    wide = torch.empty(8, 64)
    assert sgemm.way_of(wide) == "k1"
    assert sgemm.way_of(wide.T) == "mn"
    assert sgemm.way_of(wide.T[1:]) == "mn1"  # starts 4 bytes past a multiple of 16
    assert sgemm.way_of(wide[:, ::2]) == "k1?"
    assert sgemm.way_of(wide.T[::2]) == "mn1?"
    assert sgemm.out_of(wide) == "n4"
    assert sgemm.out_of(wide[:, 1:]) == "n"
    half = torch.empty(16, 64, dtype=torch.float16)
    assert halves.major_of("A", half, "M") == "k"
    assert halves.major_of("A", half.T, "M") == "mn"
    for bad in (half[:, 1:], half[:, :7], half[:, ::2]):
        with pytest.raises(TexgenError, match=r"multiples of 8.*pad with zeros"):
            halves.major_of("A", bad, "M")
    assert common.overlaps(torch.empty(1, 4).expand(3, 4))
    assert common.overlaps(torch.empty(9).as_strided((3, 3), (2, 1)))
    assert not common.overlaps(wide.T)


@pytest.mark.torch
@pytest.mark.dsl
def test_what_a_kernel_does_not_take_is_refused_in_a_sentence():
    import torch

    from texgen.kernels import hgemm_sm80, sgemm, vector_add

    a, h = torch.empty(4, 8), torch.empty(4, 8, dtype=torch.float16)
    with pytest.raises(TexgenError, match=r"A is torch.float16; this kernel takes torch.float32"):  # R02
        sgemm.run(h, a)
    with pytest.raises(TexgenError, match=r"A is torch.float64"):
        hgemm_sm80.run(a.double(), h)
    with pytest.raises(TexgenError, match="lies on cpu"):
        sgemm.run(a, a)
    with pytest.raises(TexgenError, match="3 dimensions"):
        sgemm.run(a[None], a)
    with pytest.raises(TexgenError, match="takes torch tensors"):
        vector_add.run([1.0], [1.0], 1, 1, 1, [0.0])


# With a GPU --------------------------------------------------------------------------------------------------------------


BOUND = {"float32": 2.0**-22, "float16": 2.0**-11 + 2.0**-22}
"""Of the error over |A|·|B|ᵀ: float32 sums, and a rounding of the result."""


def error(out, a, b) -> float:
    """‖out − A·Bᵀ‖ over ‖|A|·|B|ᵀ‖, which no cancellation makes small."""
    from texgen.measure.bench import relative_error

    a, b = a.double(), b.double()
    scale = float((a.abs() @ b.abs().T).norm() / (a @ b.T).norm())
    return relative_error(out, a @ b.T)[0] / scale


def operand(rows, k, major, dtype):
    from texgen.measure.bench import operand as make

    return make(rows, k, major, dtype)


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 127, 129, 1000, 2047, 2048, 2049, 1_000_003])
def test_vector_add_of_any_length(n):
    import torch

    from texgen.kernels import vector_add

    x, y = (torch.randn(n, device="cuda").half() for _ in range(2))
    z = torch.full_like(x, math.nan)
    vector_add.run(x, y, 1.5, -0.75, 0.125, z)
    inner = (-0.75 * y.double() + 0.125).abs()
    exact = vector_add.reference(x, y, 1.5, -0.75, 0.125).double()
    assert bool(((z.double() - exact).abs() <= 2.0**-11 * (inner + exact.abs()) + 2.0**-23).all())


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
def test_vector_add_refuses_what_it_cannot_load():
    import torch

    from texgen.kernels import vector_add

    x = torch.zeros(64, device="cuda", dtype=torch.float16)
    with pytest.raises(TexgenError, match=r"2 bytes past a multiple of 16.*x\.clone\(\)"):
        vector_add.run(x[1:], x[:-1], 1, 1, 1)
    with pytest.raises(TexgenError, match=r"stride 2.*contiguous"):
        vector_add.run(x[::2], x[::2], 1, 1, 1, x[:32])
    with pytest.raises(TexgenError, match="one length"):
        vector_add.run(x, x[:8], 1, 1, 1)


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
@pytest.mark.parametrize("majors", [("k", "k"), ("k", "mn"), ("mn", "mn")])
@pytest.mark.parametrize("step", ["naive", "tiled", "pipelined"])
def test_sgemm_of_odd_sizes(step, majors):
    import torch

    from texgen.kernels import sgemm

    wrong = []
    for m in ODD:
        for n in ODD:
            for k in ODD:
                a, b = operand(m, k, majors[0], torch.float32), operand(n, k, majors[1], torch.float32)
                c = torch.full((m, n), math.nan, device="cuda")
                sgemm.run(a, b, c, step=step)
                found = error(c, a, b)
                if not found <= BOUND["float32"]:
                    wrong.append((m, n, k, found))
    assert wrong == []


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
@pytest.mark.parametrize("step", ["naive", "tiled", "pipelined"])
def test_sgemm_of_large_odd_sizes_and_any_strides(step):
    import torch

    from texgen.kernels import sgemm

    base = torch.randn(1201, 1301, device="cuda")
    for a, b in (
        (base[:1153, :515], base[48:1201, 700:1215]),  # misaligned rows
        (base[1:1200:2, 3:1200:3], base[::3, 1:400]),  # no stride of one
        (base.T[:1280, :600], base[:1025, 1:601]),
        (base.T[:1000, 5:6], base[:77, 7:8]),
    ):
        out = torch.full((b.shape[0], a.shape[0]), math.nan, device="cuda").T
        for c in (sgemm.run(a, b, step=step), sgemm.run(a, b, out, step=step)):
            assert error(c, a, b) <= BOUND["float32"]


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
@pytest.mark.parametrize("name", ["hgemm_sm80", "hgemm_sm90"])
def test_hgemm_of_odd_sizes_is_right_or_refused(name):
    import torch

    from texgen.kernels import common

    if name == "hgemm_sm90" and common.device_arch() != "sm_90a":
        pytest.skip("made for sm_90a")
    module, wrong, ran = KERNELS[name].load(), [], 0
    sizes = [(m, n, k) for m in ODD for n in ODD for k in ODD]
    sizes += [(m, n, k) for m in (1, 8, 136, 1000, 2048) for n in (8, 136, 1000, 2304) for k in (8, 64, 72, 1000)]
    for m, n, k in sizes:
        for majors in (("k", "k"), ("k", "mn"), ("mn", "mn"), ("mn", "k")):
            a, b = operand(m, k, majors[0], torch.float16), operand(n, k, majors[1], torch.float16)
            c = torch.full((m, n), math.nan, device="cuda", dtype=torch.float16)
            try:
                module.run(a, b, c)
            except TexgenError as refusal:
                assert "multiple" in str(refusal) and "pad" in str(refusal)
                continue
            ran += 1
            found = error(c, a, b)
            if not found <= BOUND["float16"]:
                wrong.append((m, n, k, majors, found))
    assert wrong == []
    assert ran > 200


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
def test_degenerate_products():
    import torch

    from texgen.kernels import sgemm

    a = torch.randn(4, 0, device="cuda")
    assert sgemm.run(a, a).abs().max() == 0
    assert sgemm.run(torch.randn(0, 5, device="cuda"), torch.randn(3, 5, device="cuda")).shape == (0, 3)
    with pytest.raises(TexgenError, match=r"their K differ.*pass b\.T"):
        sgemm.run(torch.randn(4, 5, device="cuda"), torch.randn(5, 4, device="cuda"))
    b = torch.randn(4, 8, device="cuda")
    with pytest.raises(TexgenError, match=r"repeats a row or column.*pass A\.contiguous"):
        sgemm.run(b[:1].expand(4, 8), b)
    with pytest.raises(TexgenError, match="several elements at one address"):
        sgemm.run(b, b, torch.zeros(1, 4, device="cuda").expand(4, 4))
