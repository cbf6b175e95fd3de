"""``recording()`` and ``texgen trace`` on programs in the style of real ones (``trace_programs/``)."""

import json
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from texgen.trace.report import write_report
from texgen.trace.run import guess_arch, trace

pytestmark = pytest.mark.dsl
PROGRAMS = Path(__file__).parent / "trace_programs"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, request):
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@cache
def traced(name, *arguments):
    return trace(str(PROGRAMS / f"{name}.py"), list(arguments))


def found(made, *kinds):
    return [(o.name, o.kind, o.line) for o in made.recording.objects if not kinds or o.kind in kinds]


def lines(name, texts):
    """(name, kind, line) from ``name kind = text in the line``."""
    source = (PROGRAMS / f"{name}.py").read_text().splitlines()
    out = []
    for label, kind, text in texts:
        at = [i for i, line in enumerate(source, 1) if text in line]
        assert len(at) == 1, (text, at)
        out.append((label, kind, at[0]))
    return out


EXPECTED = {
    "elementwise": [
        ("atom_load", "copy_atom", "atom_load ="), ("atom_store", "copy_atom", "atom_store ="),
        ("copy_A", "tiled_copy", "copy_A ="), ("copy_B", "tiled_copy", "copy_B ="), ("copy_C", "tiled_copy", "copy_C ="),
    ],
    "mma_gemm": [
        ("sA_layout", "smem_layout", "return cute.tile_to_shape"), ("sB_layout", "smem_layout", "return cute.tile_to_shape"),
        ("layout", "smem_layout", "layout = cute.tile_to_shape"), ("atom_async", "copy_atom", "atom_async = "),
        ("tiled_copy_A", "tiled_copy", "return cute.make_tiled_copy_tv"),
        ("tiled_copy_B", "tiled_copy", "return cute.make_tiled_copy_tv"), ("atom_sync", "copy_atom", "atom_sync = "),
        ("tiled_copy_C", "tiled_copy", "return cute.make_tiled_copy_tv"),
        ("self.tiled_mma", "tiled_mma", "self.tiled_mma: cute.TiledMma ="),
        ("atom_copy_s2r_A", "copy_atom", "atom_copy_s2r_A ="), ("atom_copy_s2r_B", "copy_atom", "atom_copy_s2r_B ="),
        ("tiled_copy_s2r_A", "tiled_copy", "tiled_copy_s2r_A ="), ("tiled_copy_s2r_B", "tiled_copy", "tiled_copy_s2r_B ="),
    ],
    "hopper_gemm": [
        ("self.tiled_mma", "tiled_mma", "self.tiled_mma ="),
        ("a_smem_layout_staged", "smem_layout", "a_smem_layout_staged = sm90"),
        ("b_smem_layout_staged", "smem_layout", "b_smem_layout_staged = sm90"),
        ("epi_smem_layout_staged", "smem_layout", "epi_smem_layout_staged = sm90"),
        ("tma_atom_a", "tma_atom", "tma_atom, tma_tensor ="), ("tma_atom_b", "tma_atom", "tma_atom, tma_tensor ="),
        ("tma_atom_c", "tma_atom", "tma_atom_c, tma_tensor_c = "), ("copy_atom_r2s", "copy_atom", "copy_atom_r2s ="),
        ("copy_atom_C", "copy_atom", "copy_atom_C ="), ("tiled_copy_C_Atom", "tiled_copy", "tiled_copy_C_Atom ="),
        ("tiled_copy_r2s", "tiled_copy", "tiled_copy_r2s ="),
    ],
    "blackwell_gemm": [
        ("tiled_mma", "tiled_mma", "tiled_mma = cute.make"), ("a_smem_layout", "smem_layout", "a_smem_layout = sm100"),
        ("b_smem_layout", "smem_layout", "b_smem_layout = sm100"), ("a_tma_atom", "tma_atom", "a_tma_atom, a_tma_tensor ="),
        ("b_tma_atom", "tma_atom", "b_tma_atom, b_tma_tensor ="), ("tmem_atom", "copy_atom", "tmem_atom ="),
        ("tmem_tiled_copy", "tiled_copy", "tmem_tiled_copy ="),
    ],
    "attention": [
        ("sQ_layout", "smem_layout", "sQ_layout = cute.tile"), ("sKV_layout", "smem_layout", "sKV_layout = cute.tile"),
        ("atom_async_copy", "copy_atom", "atom_async_copy ="), ("atom_universal_copy", "copy_atom", "atom_universal_copy ="),
        ("gmem_tiled_copy_QKV", "tiled_copy", "gmem_tiled_copy_QKV ="), ("gmem_tiled_copy_O", "tiled_copy", "gmem_tiled_copy_O ="),
        ("tiled_mma", "tiled_mma", "tiled_mma = cute"), ("smem_copy_atom_Q", "copy_atom", "smem_copy_atom_Q ="),
        ("smem_copy_atom_K", "copy_atom", "smem_copy_atom_K ="), ("smem_copy_atom_V", "copy_atom", "smem_copy_atom_V ="),
        ("smem_tiled_copy_Q", "tiled_copy", "smem_tiled_copy_Q ="), ("smem_tiled_copy_K", "tiled_copy", "smem_tiled_copy_K ="),
        ("smem_tiled_copy_V", "tiled_copy", "smem_tiled_copy_V ="), ("smem_copy_atom_O", "copy_atom", "smem_copy_atom_O ="),
        ("smem_tiled_copy_O", "tiled_copy", "smem_tiled_copy_O ="),
    ],
}  # fmt: skip
SGEMM = [
    ("atom_async_copy_A", "copy_atom", "atom_async_copy_A ="), ("atom_async_copy_B", "copy_atom", "atom_async_copy_B ="),
    ("tiled_copy_A", "tiled_copy", "tiled_copy_A ="), ("tiled_copy_B", "tiled_copy", "tiled_copy_B ="),
    ("tiled_mma", "tiled_mma", "tiled_mma = cute"), ("sA", "smem_layout", "sA = smem"), ("sB", "smem_layout", "sB = smem"),
    ("atom", "copy_atom", "atom = cute"),
]  # fmt: skip
ARCHS = {"hopper_gemm": "sm_90a", "blackwell_gemm": "sm_100a"}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_object_with_name_and_line(name):
    made = traced(name)
    assert made.status == 0 and not made.error and not made.notes
    assert found(made) == lines(name, EXPECTED[name])
    assert all(o.sightings == 1 for o in made.recording.objects)
    assert [(o.name, o.error) for o in made.recording.objects if o.error] == []
    assert made.arch == ARCHS.get(name, "sm_80") == guess_arch(str(PROGRAMS / f"{name}.py"))
    assert made.ended == ("launch" if name in ("elementwise", "attention") else "end")


def test_two_kernels_and_names_that_are_hard_to_find():
    made = traced("several")
    assert (made.ended, made.error, made.recording.launches[0].sightings) == ("end", "", 1)
    kernel, tail = made.recording.launches
    assert (kernel.kernel, kernel.grid, kernel.block) == ("Several.kernel", ["grid[0]", 2, 1], [256, 1, 1])
    assert (tail.kernel, tail.grid, tail.block) == ("tail", ["grid[0]", 2, 1], [32, 1, 1])
    assert [(o.name, o.kind, o.sightings, o.launch is kernel) for o in made.recording.objects] == [
        ("layouts['a']", "smem_layout", 1, True), ("layouts['b']", "smem_layout", 1, True),
        ("self.copy_a, self.copy_b", "copy_atom", 1, True), ("made[name]", "tiled_copy", 1, True),
        ("made[name]", "tiled_copy", 1, True), ("mmas", "tiled_mma", 1, True), ("mmas", "tiled_mma", 1, True),
        ("p.mma", "tiled_mma", 1, False), ("bias", "smem_layout", 1, True), ("load", "copy_atom", 2, True),
        ("feed", "tiled_copy", 2, True), ("padded", "smem_layout", 1, False), ("out", "copy_atom", 1, False),
        ("out", "tiled_copy", 1, False),
    ]  # fmt: skip


def test_sizes_of_a_launch():
    from texgen.sources.sightings import unpacked
    from texgen.trace.report import dims

    assert unpacked(["*grid", "1"], 3) == ["grid[0]", "grid[1]", "1"] and unpacked(["a", "b"], 3) == ["a", "b"]
    assert dims([4, "n", 1]) == "4 × n × 1" and dims(["grid"]) == "grid (known at run time)"


def test_architecture_of_a_neighbour(tmp_path):
    write(tmp_path, "from cutlass.cute.nvgpu import tcgen05\n", "kernels.py")
    assert guess_arch(str(write(tmp_path, "import kernels\n"))) == "sm_100a"


TORCH = """
import torch, numpy as np, cutlass, cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack
device = torch.device("cuda", 0)
torch.cuda.set_device(device)
a = torch.randint(-3, 3, (128, 8), device=device, generator=torch.Generator(device=device).manual_seed(3)).to(torch.float16)
b = torch.rand(4, 8, device=f"cuda:{torch.cuda.current_device()}").half()
with torch.device("cuda"):
    c = torch.empty_strided((4, 4), (4, 1), dtype=torch.float16)
assert device.type == a.device.type == b.device.type == c.device.type == "cuda" and a.is_cuda and b.get_device() == 0
linear = torch.nn.Linear(8, 8).to(device).half()
@cute.kernel
def kernel(x: cute.Tensor): pass
@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=x.shape[0], block=32)
x = from_dlpack(a, assumed_align=16).mark_layout_dynamic(leading_dim=1).mark_compact_shape_dynamic(mode=1, divisibility=8)
host(x)
assert torch.isclose(a, a + 1).all() and np.isclose(1, 2) and np.array_equal([1], [2])
assert (a - 100).max() > 0, "a check by hand"
"""


@pytest.mark.torch
def test_devices_of_torch_and_checks_of_what_was_not_computed(tmp_path, capfd):
    made = trace(str(write(tmp_path, TORCH)), launches=0)
    assert (made.ended, made.status, made.launches) == ("error", 1, 1), made.error
    assert made.error == "AssertionError: a check by hand" and made.place[1] == 22
    assert made.notes == ["The error came after a launch that was not run: a check of results that were never computed fails."]
    assert made.recording.launches[0].grid == ["x.shape[0]", 1, 1]


@pytest.mark.torch
def test_sgemm_with_torch(capfd):
    made = trace(str(PROGRAMS / "simt_sgemm.py"), ["--mnk", "128,128,64"])
    assert found(made) == lines("simt_sgemm", SGEMM)
    out = capfd.readouterr().out
    assert "compiled for (8, 0)" in out and "PASS" not in out
    assert (made.ended, made.status) == ("launch", 0)
    assert {"torch.cuda.is_available", "torch.Tensor.cuda", "torch.cuda.current_stream"} <= set(made.replaced)


def test_launch_and_function():
    (launch,) = traced("hopper_gemm").recording.launches
    assert (launch.grid, launch.block, launch.cluster) == ([4, 4, 1], [256, 1, 1], [2, 1, 1])
    assert (launch.kernel, launch.arch) == ("HopperGemm.kernel", "sm_90a")
    by_name = {o.name: o for o in traced("hopper_gemm").recording.objects}
    assert by_name["tma_atom_a"].function == "HopperGemm.__call__"  # built in a helper of it
    assert by_name["tiled_copy_r2s"].function == "HopperGemm.kernel"
    assert all(o.launch is launch for o in by_name.values())
    assert by_name["self.tiled_mma"].code.startswith("self.tiled_mma = sm90_utils.make_trivial_tiled_mma(\n")


def test_shared_memory():
    r = traced("attention").recording
    (struct,) = r.allocations
    assert (struct.name, struct.size) == ("storage", 3 * 8192)
    assert struct.fields == [("sQ", 8192, 0), ("sK", 8192, 8192), ("sV", 8192, 16384)]
    assert {o.name: o.tensors for o in r.objects if o.kind == "smem_layout"} == {"sQ_layout": ["sQ", "sO"], "sKV_layout": ["sK", "sV"]}
    a, _, c = (o.spec for o in traced("hopper_gemm").recording.objects if o.kind == "smem_layout")
    assert (a.bits, a.unit, a.swizzle, a.offsets.shape) == (16, "bytes", (3, 4, 3), (128, 64))
    assert "Stage 0 of 3" in a.notes[0] and c.offsets.shape == (64, 32)
    a = next(o.spec for o in traced("blackwell_gemm").recording.objects if o.name == "a_smem_layout")
    assert a.offsets.shape == (128, 64) and sorted(a.offsets.reshape(-1).tolist()) == list(range(128 * 64))


def test_partitions():
    parts = {p.name: p for p in traced("attention").recording.partitions if p.name}
    assert parts["tQgQ"].call == "partition_S" and "gmem" in parts["tQgQ"].type
    assert parts["tQsQ"].call == "partition_D" and parts["gK"].call == "local_tile"
    assert parts["gK"].layout == "(64,64,4):(64,1,4096)"
    assert parts["tSrQ_view"].call == "retile"
    assert {"tAsA", "tAgA"} <= {p.name for p in traced("hopper_gemm").recording.partitions if p.call == "tma_partition"}


FUNCTIONS = '''
import cutlass, cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, tcgen05, warp, warpgroup
import cutlass.utils.hopper_helpers as sm90
K = cute.nvgpu.OperandMajorMode.K
F16, F32 = cutlass.Float16, cutlass.Float32
def mma():
    return cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
def permuted():
    return cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)), cute.make_layout((2, 2, 1)),
        permutation_mnk=(None, cute.make_layout((8, 2, 2), stride=(1, 16, 8)), 16))
def bare():
    return cute.make_tiled_mma(warp.MmaTF32Op((16, 8, 8)))
def wgmma():
    op = warpgroup.MmaF16BF16Op(F16, F32, (64, 64, 16), warpgroup.OperandSource.RMEM, K, K)
    return cute.make_tiled_mma(op, cute.make_layout((2, 1, 1)))
def umma():
    op = tcgen05.MmaF16BF16Op(F16, F32, (256, 64, 16), tcgen05.CtaGroup.TWO, tcgen05.OperandSource.SMEM, K, K)
    return cute.make_tiled_mma(op)
def simt():
    return cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(F32), cute.make_layout((16, 16, 1)))
def copy_tv():
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), F16, num_bits_per_copy=128)
    return cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
def copy_a():
    return cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), F16), mma())
def copy_c():
    return cute.make_tiled_copy_C_atom(cute.make_copy_atom(warp.StMatrix8x8x16bOp(True, 2), F16), mma())
def atom():
    return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 2), F16)
def mma_atom():
    return cute.make_mma_atom(warp.MmaF16BF16Op(F16, F32, (16, 8, 8)))
def tmem():
    return cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x8), F32)
'''  # fmt: skip


def test_specs_equal_texgen_table(tmp_path):
    from texgen.sources.child import read_callable

    file = tmp_path / "layouts.py"
    file.write_text(FUNCTIONS)
    names = re.findall(r"def (\w+)\(", FUNCTIONS)
    asked = {n: read_callable(f"{file}:{n}") for n in names}
    script = tmp_path / "record.py"
    script.write_text(
        "import json, sys, layouts, texgen\n"
        "from texgen.sources.atoms_dsl import set_arch, tracing\n"
        "out = {}\n"
        "for name, arch in json.loads(sys.argv[1]).items():\n"
        "    set_arch(arch)\n"
        "    with tracing(), texgen.recording() as r:\n"
        "        made = getattr(layouts, name)()\n"
        "    out[name] = [o.to_dict() for o in r.objects if o.spec][-1]['spec']\n"
        "print(json.dumps(out))\n"
    )
    archs = {n: s.source.rsplit(" ", 1)[-1] for n, s in asked.items()}
    done = subprocess.run([sys.executable, str(script), json.dumps(archs)], capture_output=True, text=True, check=True)
    recorded = json.loads(done.stdout.splitlines()[-1])
    for name, spec in asked.items():
        assert recorded[name] == json.loads(json.dumps(spec.to_dict())), name


RECORDING = '''
import sys, threading
sys.path.insert(0, {programs!r})
import cutlass.cute as cute, texgen
from cutlass.cute.atom import Atom, TiledMma
import attention
from texgen.sources import sightings
def state():
    return [dict(vars(c)) for c in (Atom, TiledMma, cute.struct._MemRangeData)], [vars(m).copy() for n, m in sorted(sys.modules.items()) if n.startswith("cutlass")]
before = state()
with texgen.recording() as outer:
    attention.compile_fakes()
    with texgen.recording() as inner:
        t = threading.Thread(target=attention.compile_fakes); t.start(); t.join()
    attention.compile_fakes()
assert len(inner.objects) == 15 and len(outer.objects) == 15, (len(inner.objects), len(outer.objects))
assert {{o.sightings for o in inner.objects}} == {{1}} and {{o.sightings for o in outer.objects}} == {{3}}
try:
    with texgen.recording() as r:
        attention.compile_fakes(); raise ValueError
except ValueError:
    assert len(r.objects) == 15
after = state()
left = [k for x, y in zip(before, after) for a, b in zip(x, y) for k in a if callable(a[k]) and a[k] is not b[k]]
assert not left, left
attention.compile_fakes()
assert len(r.objects) == 15 and not sightings.faults, sightings.faults
from texgen.sources.atoms_dsl import set_arch, tracing
from cutlass.cute.nvgpu import warp
import cutlass
set_arch("sm_80")
def op(): return warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
with tracing(), texgen.recording() as r:
    for n in (1, 2, 1):
        looped = cute.make_tiled_mma(op(), (n, 1, 1))
    a, b = cute.make_tiled_mma(op()), cute.make_tiled_mma(op())
    both = [cute.make_mma_atom(op()) for _ in range(2)]
got = [(o.name, o.kind, o.sightings) for o in r.objects]
want = [("looped", "tiled_mma", 2), ("looped", "tiled_mma", 1), ("a", "tiled_mma", 1), ("b", "tiled_mma", 1), ("both", "mma_atom", 2)]
assert got == want, got
print("fine")
'''  # fmt: skip


def test_recording_nests_follows_threads_and_restores(tmp_path):
    script = tmp_path / "record.py"
    script.write_text(RECORDING.format(programs=str(PROGRAMS)))
    done = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, timeout=100)
    assert done.stdout.endswith("fine\n"), done.stderr


# Programs that do other things


def write(tmp_path, source, name="program.py"):
    file = tmp_path / name
    file.write_text(f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\n" + source)
    return file


def test_a_program_that_raises_keeps_what_was_recorded(tmp_path, capfd):
    file = write(tmp_path, "import attention\nattention.compile_fakes()\nprint('out')\nraise ValueError('on purpose')\n")
    made = trace(str(file))
    out, err = capfd.readouterr()
    assert (made.ended, made.status, len(made.recording.objects)) == ("error", 1, 15)
    assert made.error == "ValueError: on purpose" and out == "out\n"
    assert f'File "{file}", line 6' in err and "texgen" not in err


def test_a_program_that_exits_prints_and_changes_folder(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "def hello():\n    return 'hi'\n", "neighbour.py")
    file = write(tmp_path, "import os, neighbour\nprint(sys.argv, __name__, neighbour.hello())\nos.chdir('/')\nsys.exit(3)\n")
    made = trace("program.py", ["--x", "1"])
    assert (made.ended, made.status, made.recording.objects, made.replaced) == ("end", 3, [], [])
    assert capfd.readouterr().out == "['program.py', '--x', '1'] __main__ hi\n"
    paths = write_report(made, tmp_path / "report")
    assert "built no tiled object" in paths[2].read_text() and file.exists()


def test_a_program_that_dies_keeps_what_was_recorded(tmp_path):
    made = trace(str(write(tmp_path, "import attention, os\nattention.compile_fakes()\nos.abort()\n")))
    assert (made.ended, made.status, len(made.recording.objects)) == ("error", 134, 15)
    assert "SIGABRT at line 5 of" in made.error


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_multiprocessing(tmp_path, how):
    source = (
        "import multiprocessing as mp\ndef work():\n    import elementwise\n    from cutlass.cute.runtime import from_dlpack\n"
        "    import numpy as np\n    x = np.ones((256, 512), dtype=np.float32)\n"
        "    elementwise.run(*(from_dlpack(a, assumed_align=16) for a in (x, x, x)))\n"
        "if __name__ == '__main__':\n    mp.set_start_method(sys.argv[1])\n    p = mp.Process(target=work)\n    p.start()\n"
        "    p.join()\n    sys.exit(p.exitcode)\n"
    )
    made = trace(str(write(tmp_path, source)), [how])
    assert made.status == 0 and [o.name for o in made.recording.objects] == ["atom_load", "atom_store", "copy_A", "copy_B", "copy_C"]


def test_launches_goes_on(tmp_path, capfd):
    made = trace(str(PROGRAMS / "elementwise.py"), launches=0)
    assert (made.ended, made.status, made.launches) == ("end", 0, 1)  # and assert_allclose is no comparison
    assert "after the launch" in capfd.readouterr().out
    assert any("numpy.testing.assert_allclose" in name for name in made.replaced)


def test_an_operation_that_wants_another_architecture(tmp_path):
    source = (
        "import cutlass, cutlass.cute as cute, importlib\nw = importlib.import_module('cutlass.cute.nvgpu.' + 'warp' + 'group')\n"
        "@cute.kernel\ndef k(): pass\n@cute.jit\ndef f():\n"
        "    op = w.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 64, 16), w.OperandSource.SMEM, cute.nvgpu.OperandMajorMode.K, cute.nvgpu.OperandMajorMode.K)\n"
        "    mma = cute.make_tiled_mma(op)\n    k().launch(grid=[1, 1, 1], block=[128, 1, 1])\nf()\n"
    )
    made = trace(str(write(tmp_path, source)))
    assert (made.arch, made.ended, [o.name for o in made.recording.objects]) == ("sm_90a", "launch", ["mma"])
    assert made.notes == ["An operation refused sm_80, so the program ran again for sm_90a."]


def test_driver_calls_and_hardware_info(tmp_path, capfd):
    source = (
        "from cuda.bindings import driver, runtime\nimport cutlass.utils as utils\n"
        "print(driver.cuInit(0)[0].value, int(driver.cuDeviceGet(0)[1]), runtime.cudaGetDeviceCount()[1])\n"
        "err, stream = driver.cuStreamCreate(0)\nprint(type(stream).__name__)\n"
        "print(utils.HardwareInfo().get_max_active_clusters(2))\n"
    )
    made = trace(str(write(tmp_path, source)), arch="sm_90a")
    assert capfd.readouterr().out == "0 0 1\nCUstream\n66\n" and made.status == 0
    assert "cuda.bindings.driver.cuInit" in made.replaced


@pytest.mark.gpu
@pytest.mark.torch
def test_on_a_gpu_a_traced_run_equals_an_untraced_one(tmp_path):
    program = str(PROGRAMS / "simt_sgemm.py")
    results = [tmp_path / "plain.pt", tmp_path / "traced.pt"]
    plain = subprocess.run([sys.executable, program, "--save", str(results[0])], capture_output=True, text=True)
    assert plain.returncode == 0 and "PASS" in plain.stdout, plain.stderr
    made = trace(program, ["--save", str(results[1])])
    assert (made.ended, made.status, made.replaced, made.launches) == ("end", 0, [], 1)
    assert results[0].read_bytes() == results[1].read_bytes()
    assert found(made) == lines("simt_sgemm", SGEMM)


# The command and the report


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.outside = [], [], []

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            elif key == "href" and value.startswith("#"):
                self.links.append(value[1:])
            elif key in ("src", "href", "srcset", "action", "data"):
                self.outside.append(value)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    program = str(PROGRAMS / "attention.py")
    command = [sys.executable, "-W", "ignore", "-m", "texgen", "trace", program, "-o", str(folder), "--partitions", "--", "--fake"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "15 objects" in done.stderr, done.stderr
    return folder


def test_trace_json(report):
    data = json.loads((report / "trace.json").read_text())
    assert list(data) == ["schema", "program", "replaced", "ended", "objects"]
    assert (data["schema"], data["ended"], data["replaced"]) == (1, "end", [])
    assert all(list(o) == ["name", "kind", "file", "line", "code", "function", "sightings", "spec"] for o in data["objects"])
    from texgen.spec_json import from_dict

    assert all(from_dict(o["spec"]).kind in ("mma", "copy", "layout") for o in data["objects"])


def test_page_is_whole(report):
    text = (report / "index.html").read_text()
    page = Page()
    page.feed(text)
    assert not page.outside and "<script" not in text and "@import" not in text and "url(" not in text
    assert len(page.ids) == len(set(page.ids)) and set(page.links) <= set(page.ids)
    assert {f"object-{i}" for i in range(1, 16)} <= set(page.ids)
    assert "prefers-color-scheme:dark" in text and "Nothing was replaced." in text
    assert text.count('class="texgen"') >= 10 and 'class="chain"' in text
    assert "24,576 bytes" in text and "tSrQ_view" in text


@pytest.mark.pdflatex
def test_report_compiles(report):
    from texgen.render.engine import compile_pdf

    assert compile_pdf((report / "report.tex").read_text(), "pdflatex").startswith(b"%PDF")


def test_a_program_that_builds_nothing_is_told_what_to_do(tmp_path):
    (tmp_path / "idle.py").write_text("def tiled_mma(): ...\n")
    done = subprocess.run([sys.executable, "-m", "texgen", "trace", "idle.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "0 objects" in done.stderr and "texgen render file.py:function" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["nowhere.py"], 1, "There is no file nowhere.py"),
        (["nowhere:run"], 1, "There is no module 'nowhere'"),
        ([str(PROGRAMS)], 1, "is a folder"),
        ([str(PROGRAMS / "attention.py") + ":nothing"], 1, "There is no 'nothing'"),
        ([str(PROGRAMS / "attention.py"), "--arch", "volta"], 2, "is no architecture"),
        ([str(PROGRAMS / "attention.py"), "--fake"], 2, "No such option"),
    ],
)
def test_wrong_use(arguments, status, says, tmp_path):
    done = subprocess.run([sys.executable, "-m", "texgen", "trace", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status and says in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


