# mypy: disable-error-code="untyped-decorator"
"""A spec's tables put to work on a GPU: DSL kernels in which every load and store goes through the figure's tables.

An MMA: each thread loads the registers of A and B that its tables say, runs ``cute.gemm`` once, and stores its sums
through the table of C. What wgmma reads through a descriptor is laid into shared memory in the DSL's own K-major 128-byte
swizzle. A copy: the source holds its own indices; a thread gives the instruction the address of its table's cell on a
side that lies in memory, and holds its table's values on a side that is registers.

The tables are arguments, so a mutated one runs through the very same compiled kernel. This module imports the DSL;
compiling needs no GPU, running needs torch and one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.nvgpu import warpgroup
from cutlass.cute.runtime import make_fake_stream, make_ptr

from texgen.errors import TexgenError
from texgen.kernels.common import SmemAllocator, set_arch
from texgen.layouts import IntArray
from texgen.measure.emulate import POISON, CopyPlan, Tables, agreed, by_owner
from texgen.specs import CopySpec, MmaSpec, dtype_bits

ARCH = "sm_90a"
WORDS = {8: cutlass.Uint8, 16: cutlass.Uint16, 32: cutlass.Uint32, 64: cutlass.Uint64}
TYPES = {
    "f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "f32": cutlass.Float32, "f64": cutlass.Float64,
    "e4m3": cutlass.Float8E4M3FN, "e5m2": cutlass.Float8E5M2, "s8": cutlass.Int8, "u8": cutlass.Uint8, "s32": cutlass.Int32,
}  # fmt: skip
SWIZZLED_BYTES = 128
Build = Callable[[], Any]
"""Makes the live ``TiledMma``, ``TiledCopy`` or copy atom, inside a trace."""


@dataclass(frozen=True)
class MmaPlan:
    """What is compiled for an MMA: everything but the tables and the numbers."""

    build: Build
    mnk: tuple[int, int, int]
    types: tuple[Any, Any, Any]
    memories: tuple[str, str]
    threads: int

    @property
    def warpgroup(self) -> bool:
        return "smem" in self.memories


# MMA -----------------------------------------------------------------------------------------------------------------------


@cute.jit
def gather(registers: cute.Tensor, source: cute.Pointer, table: cute.Pointer, thread: cutlass.Int32) -> None:
    """registers[v] = source[table[thread][v]]"""
    raw = cute.recast_tensor(registers, WORDS[registers.element_type.width])
    values = cute.size(registers)
    for v in cutlass.range_constexpr(values):
        raw[v] = (source + (table + (thread * values + v))[0])[0]


@cute.jit
def scatter(registers: cute.Tensor, target: cute.Pointer, table: cute.Pointer, thread: cutlass.Int32) -> None:
    """target[table[thread][v]] = registers[v]"""
    raw = cute.recast_tensor(registers, WORDS[registers.element_type.width])
    values = cute.size(registers)
    for v in cutlass.range_constexpr(values):
        (target + (table + (thread * values + v))[0])[0] = raw[v]


@cute.kernel
def mma_kernel(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, ta: cute.Pointer, tb: cute.Pointer, tc: cute.Pointer, plan: cutlass.Constexpr
) -> None:  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    mma = plan.build()
    m, n, k = plan.mnk
    ra = cute.make_rmem_tensor(mma.partition_shape_A((m, k)), plan.types[0])
    rb = cute.make_rmem_tensor(mma.partition_shape_B((n, k)), plan.types[1])
    rc = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), plan.types[2])
    gather(ra, a, ta, thread)
    gather(rb, b, tb, thread)
    cute.recast_tensor(rc, WORDS[plan.types[2].width]).fill(0)
    cute.gemm(mma, rc, ra, rb, rc)
    scatter(rc, c, tc, thread)


@cute.jit
def swizzled(memory: Any, source: cute.Pointer, rows: cutlass.Constexpr, columns: cutlass.Constexpr, kind: cutlass.Constexpr, threads: cutlass.Constexpr) -> cute.Tensor:  # fmt: skip
    """An operand laid into shared memory as a wgmma descriptor wants it, K-major; columns past its K are not read."""
    thread, _, _ = cute.arch.thread_idx()
    wide = SWIZZLED_BYTES * 8 // kind.width
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, kind)
    layout = cute.tile_to_shape(atom, (rows, wide), (0, 1))
    tensor = memory.allocate_tensor(kind, layout.outer, 1024, swizzle=layout.inner)
    # recast_tensor would drop the pointer's swizzle
    words = cute.recast_ptr(tensor.iterator, layout.inner, dtype=WORDS[kind.width])
    raw = cute.make_tensor(words, layout.outer)
    for i in cutlass.range(thread, rows * columns, threads):
        raw[(i % rows, i // rows)] = (source + i)[0]
    return tensor


@cute.kernel
def warpgroup_kernel(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, ta: cute.Pointer, tb: cute.Pointer, tc: cute.Pointer, plan: cutlass.Constexpr
) -> None:  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    group = cute.arch.make_warp_uniform(thread // 128)
    mma = plan.build()
    m, n, k = plan.mnk
    memory = SmemAllocator()
    sb = swizzled(memory, b, n, k, plan.types[1], plan.threads)
    mine = mma.get_slice(group * 128)
    fb = mma.make_fragment_B(mine.partition_B(sb))
    rc = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), plan.types[2])
    cute.recast_tensor(rc, WORDS[plan.types[2].width]).fill(0)
    if cutlass.const_expr(plan.memories[0] == "smem"):
        sa = swizzled(memory, a, m, k, plan.types[0], plan.threads)
        fa = mma.make_fragment_A(mine.partition_A(sa))
    else:
        fa = mma.make_fragment_A(mma.partition_shape_A((m, k)))
        gather(fa, a, ta, thread)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    warpgroup.fence()
    mma.set(warpgroup.Field.ACCUMULATE, False)
    cute.gemm(mma, rc, fa[None, None, 0], fb[None, None, 0], rc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    scatter(rc, c, tc, thread)


@cute.jit
def mma_host(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, ta: cute.Pointer, tb: cute.Pointer, tc: cute.Pointer,
    stream: Any, plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    if cutlass.const_expr(plan.warpgroup):
        warpgroup_kernel(a, b, c, ta, tb, tc, plan).launch(grid=[1, 1, 1], block=[plan.threads, 1, 1], stream=stream)
    else:
        mma_kernel(a, b, c, ta, tb, tc, plan).launch(grid=[1, 1, 1], block=[plan.threads, 1, 1], stream=stream)


# Copies --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CopyKernel:
    """What is compiled for a copy. ``runs`` are instructions a thread; ``source`` and ``target`` values of one."""

    build: Build
    kind: str
    dtype: Any
    threads: int
    runs: int
    source: int
    target: int
    cells: int


@cute.jit
def run_at(base: cute.Pointer, table: cute.Pointer, index: cutlass.Int32, values: cutlass.Constexpr) -> cute.Tensor:
    """The values that lie at the address in a table, aligned to their size."""
    return cute.make_tensor(base + cute.assume((table + index)[0], divby=values), cute.make_layout((values,)))


@cute.kernel
def copy_kernel(
    pool: cute.Pointer, out: cute.Pointer, ts: cute.Pointer, td: cute.Pointer, plan: cutlass.Constexpr
) -> None:
    thread, _, _ = cute.arch.thread_idx()
    atom = plan.build()
    word = WORDS[plan.dtype.width]
    memory = SmemAllocator()
    staged = memory.allocate_tensor(plan.dtype, cute.make_layout(plan.cells), 128)
    raw = cute.recast_tensor(staged, word)
    typed = cute.recast_ptr(pool, dtype=plan.dtype)
    count = plan.runs * (plan.target if plan.kind in ("ldmatrix", "universal") else plan.source)
    held = cute.make_rmem_tensor(cute.make_layout((count // plan.runs, plan.runs)), plan.dtype)
    # shared memory holds the source of ldmatrix, and elsewhere a poison that no cell's number is
    for i in cutlass.range(thread, plan.cells, plan.threads):
        if cutlass.const_expr(plan.kind == "ldmatrix"):
            raw[i] = (pool + i)[0]
        else:
            raw[i] = word((1 << word.width) - 1)
    cute.arch.sync_threads()
    if cutlass.const_expr(plan.kind == "stmatrix"):
        gather(held, pool, ts, thread)
    for r in cutlass.range_constexpr(plan.runs):
        at = thread * plan.runs + r
        mine = cute.make_tensor(held.iterator + r * (count // plan.runs), cute.make_layout((count // plan.runs,)))
        if cutlass.const_expr(plan.kind == "ldmatrix"):
            cute.copy_atom_call(atom, run_at(staged.iterator, ts, at, plan.source), mine)
        elif cutlass.const_expr(plan.kind == "universal"):
            cute.copy_atom_call(atom, run_at(typed, ts, at, plan.source), mine)
        elif cutlass.const_expr(plan.kind == "stmatrix"):
            cute.copy_atom_call(atom, mine, run_at(staged.iterator, td, at, plan.target))
        else:
            cute.copy_atom_call(atom, run_at(typed, ts, at, plan.source), run_at(staged.iterator, td, at, plan.target))
    if cutlass.const_expr(plan.kind == "cp.async"):
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    if cutlass.const_expr(plan.kind in ("ldmatrix", "universal")):
        mine_raw = cute.recast_tensor(held, word)
        for v in cutlass.range_constexpr(count):
            (out + (thread * count + v))[0] = mine_raw[v]
    else:
        for i in cutlass.range(thread, plan.cells, plan.threads):
            (out + i)[0] = raw[i]


@cute.jit
def copy_host(
    pool: cute.Pointer, out: cute.Pointer, ts: cute.Pointer, td: cute.Pointer, stream: Any, plan: cutlass.Constexpr
) -> None:
    copy_kernel(pool, out, ts, td, plan).launch(grid=[1, 1, 1], block=[plan.threads, 1, 1], stream=stream)


# Compiling -----------------------------------------------------------------------------------------------------------------


def compile_mma(spec: MmaSpec, build: Build, arch: str = ARCH) -> Any:
    """The kernel of a spec, compiled; needs no GPU. TexgenError for what these kernels cannot express."""
    for x in spec.operands().values():
        if x.dtype not in TYPES:
            raise TexgenError(f"Elements of type {x.dtype or 'unknown'} are not loaded one at a time.")
        if x.memory == "tmem":
            raise TexgenError("Tensor memory: tcgen05, which this GPU lacks.")
    types = tuple(TYPES[x.dtype] for x in spec.operands().values())
    plan = MmaPlan(build, spec.tile_mnk, types, (spec.A.memory, spec.B.memory), spec.threads)
    set_arch(arch)
    words = [_pointer(WORDS[t.width]) for t in types]
    tables = [_pointer(cutlass.Int32)] * 3
    return cute.compile(mma_host, *words, *tables, make_fake_stream(), plan, options=f"--gpu-arch {arch}")


def compile_copy(spec: CopySpec, build: Build, arch: str = ARCH) -> Any:
    """As ``compile_mma``."""
    plan = CopyPlan.of(spec)
    source, target = plan.run("S"), plan.run("D")
    kernel = CopyKernel(
        build, plan.kind, {8: cutlass.Int8, 16: cutlass.Float16, 32: cutlass.Float32, 64: cutlass.Float64}[plan.bits],
        spec.threads, spec.S.values // source, source, target, spec.tile[0] * spec.tile[1],
    )  # fmt: skip
    set_arch(arch)
    words = [_pointer(WORDS[plan.bits], 32)] * 2
    tables = [_pointer(cutlass.Int32)] * 2
    return cute.compile(copy_host, *words, *tables, make_fake_stream(), kernel, options=f"--gpu-arch {arch}")


def _pointer(kind: Any, align: int = 16, address: int = 0) -> Any:
    return make_ptr(kind, address or align, cute.AddressSpace.gmem, assumed_align=align)


# Numbers as bits -----------------------------------------------------------------------------------------------------------


def encode(numbers: IntArray, dtype: str) -> np.ndarray[Any, Any]:
    """Small integers as the bits of a dtype, unsigned words."""
    if dtype in ("f32", "tf32"):
        return numbers.astype(np.float32).view(np.uint32)
    if dtype == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype == "f16":
        return numbers.astype(np.float16).view(np.uint16)
    if dtype == "f64":
        return numbers.astype(np.float64).view(np.uint64)
    if dtype == "e5m2":
        return (numbers.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    if dtype == "e4m3":
        half = numbers.astype(np.float16).view(np.uint16).astype(np.int64)
        sign, exponent, mantissa = half >> 15, (half >> 10) & 31, (half >> 7) & 7
        return np.where(half & 0x7FFF, sign << 7 | (exponent - 8) << 3 | mantissa, 0).astype(np.uint8)
    if dtype in ("s4", "u4", "b1"):
        return (numbers & (1 << dtype_bits(dtype)) - 1).astype(np.uint8)
    return numbers.astype({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[dtype]).view(f"u{dtype_bits(dtype) // 8}")


def decode(words: np.ndarray[Any, Any], dtype: str) -> IntArray:
    """The bits of an accumulator as integers; POISON where it is none (the NaN that nothing stored over)."""
    kinds: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "s32": np.int32}
    numbers = words.view(kinds[dtype])
    if dtype == "s32":
        return np.where(numbers == -1 << 31 >> 1, POISON, numbers.astype(np.int64))
    whole = np.isfinite(numbers) & (numbers == np.round(np.where(np.isfinite(numbers), numbers, 0)))
    return np.where(whole, np.where(whole, numbers, 0).astype(np.int64), POISON)


# Running -------------------------------------------------------------------------------------------------------------------


class Gpu:
    """The backend on the current CUDA device, for one spec: ``build`` makes its live object."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.compiled: Any = None

    def mma(self, spec: MmaSpec, a: IntArray, b: IntArray, tables: Tables) -> IntArray:
        self.compiled = self.compiled or compile_mma(spec, self.build)
        m, n, _ = spec.tile_mnk
        table, copies = by_owner(tables["C"], m * n)
        kinds = [x.dtype for x in spec.operands().values()]
        left, right = (_device(encode(x.reshape(-1, order="F"), t)) for x, t in zip((a, b), kinds, strict=False))
        word = f"u{dtype_bits(kinds[2]) // 8}"
        poison = {"s32": 0xC0000000}.get(kinds[2], (1 << dtype_bits(kinds[2])) - 1)
        out = _device(np.full(m * n * copies, poison, dtype=word))
        placed = [_device(t.astype(np.int32)) for t in (tables["A"], tables["B"], table)]
        pointers = [_at(x, WORDS[dtype_bits(t)]) for x, t in zip((left, right, out), kinds, strict=True)]
        _launch(self.compiled, *pointers, *(_at(t, cutlass.Int32) for t in placed))
        return agreed(decode(_host(out, word), kinds[2]), (m, n))

    def copy(self, spec: CopySpec, tables: Tables) -> IntArray:
        self.compiled = self.compiled or compile_copy(spec, self.build)
        plan = CopyPlan.of(spec)
        cells = spec.tile[0] * spec.tile[1]
        place = plan.place(np.arange(cells))
        source = plan.addresses("S", tables["S"]) if plan.source_memory else plan.place(tables["S"])
        target = plan.addresses("D", tables["D"]) if plan.target_memory else np.zeros((1, 1), dtype=np.int64)
        ts, td = (_device(x.astype(np.int32)) for x in (source, target))
        word = f"u{plan.bits // 8}"
        found = np.zeros(cells if plan.target_memory else spec.D.tv.size, dtype=np.int64)
        for shift in range(0, max(1, (cells - 1).bit_length()), plan.bits):  # elements too narrow for their index come in parts
            pool = np.empty(cells, dtype=word)
            pool[place] = (np.arange(cells) >> shift & (1 << plan.bits) - 1).astype(word)
            given, out = _device(pool), _device(np.full(len(found), (1 << plan.bits) - 1, dtype=word))
            _launch(self.compiled, *(_at(x, WORDS[plan.bits], 32) for x in (given, out)), *(_at(x, cutlass.Int32) for x in (ts, td)))
            found |= _host(out, word).astype(np.int64) << shift
        return found[place][spec.D.tv] if plan.target_memory else found.reshape(spec.D.tv.shape)


def _launch(compiled: Any, *arguments: Any) -> None:
    import cuda.bindings.driver as cuda
    import torch

    compiled(*arguments, cuda.CUstream(torch.cuda.current_stream().cuda_stream))
    torch.cuda.synchronize()


def _device(words: np.ndarray[Any, Any]) -> Any:
    import torch

    signed = np.ascontiguousarray(words).reshape(-1).view(f"i{words.dtype.itemsize}")
    return torch.from_numpy(signed.copy()).cuda()


def _host(tensor: Any, word: str) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.cpu().numpy()).view(word)


def _at(tensor: Any, kind: Any, align: int = 16) -> Any:
    return _pointer(kind, align, tensor.data_ptr())
