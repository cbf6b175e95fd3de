# mypy: disable-error-code="untyped-decorator"
"""The kernels that ``conflicts`` counts: a warp that executes one access to shared or global memory, and nothing else that
the counter sees. Imports the DSL; running needs torch and a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.nvgpu import CopyUniversalOp, warp
from cutlass.cute.runtime import make_fake_stream

from texgen.errors import TexgenError
from texgen.kernels.common import SmemAllocator, set_arch
from texgen.measure.conflicts import BLOCKS, PAIRS, REQUESTS, Pair, Request
from texgen.measure.emulate import _to_registers
from texgen.measure.executed import ARCH, WORDS, _at, _device, _host, _launch, _pointer, run_at

__all__ = ["PAIRS", "REQUESTS", "compiled", "globally", "plan_of", "shared"]


@dataclass(frozen=True)
class Probe:
    """What is compiled: the operation, words of ``bits`` bits, ``values`` of them a lane, and the words of memory."""

    op: str
    bits: int
    values: int
    words: int
    shape: Any = 32
    stride: Any = 1
    shift: int = 0

    @property
    def received(self) -> int:
        """Words that a lane ends with."""
        return 8 if self.op.startswith("ldmatrix") else self.values


@cute.kernel
def probe_shared(out: cute.Pointer, table: cute.Pointer, plan: cutlass.Constexpr) -> None:
    lane, _, _ = cute.arch.thread_idx()
    word = WORDS[plan.bits]
    memory = SmemAllocator()
    kind = cutlass.Float16 if cutlass.const_expr(plan.op.startswith("ldmatrix")) else word
    staged = memory.allocate_tensor(kind, cute.make_layout(plan.words), 128)
    raw = cute.recast_tensor(staged, word)
    held = cute.make_rmem_tensor(cute.make_layout((plan.received,)), kind)
    held_raw = cute.recast_tensor(held, word)
    universal = cute.make_copy_atom(CopyUniversalOp(), word, num_bits_per_copy=plan.bits * plan.values)
    mine = run_at(staged.iterator, table, lane, plan.values)
    if cutlass.const_expr(plan.op == "st"):
        for v in cutlass.range_constexpr(plan.values):
            held_raw[v] = word(lane * plan.values + v)
        cute.copy_atom_call(universal, held, mine)
        cute.arch.sync_threads()
        cute.copy_atom_call(universal, mine, held)
    else:
        for i in cutlass.range(lane, plan.words, 32):
            raw[i] = word(i)
        cute.arch.sync_threads()
        if cutlass.const_expr(plan.op == "ld"):
            cute.copy_atom_call(universal, mine, held)
        else:
            op = warp.LdMatrix8x8x16bOp(transpose=plan.op.endswith("trans"), num_matrices=4)
            cute.copy_atom_call(cute.make_copy_atom(op, kind), mine, held)
    for v in cutlass.range_constexpr(plan.received):
        (out + (lane * plan.received + v))[0] = held_raw[v]


@cute.kernel
def probe_global(source: cute.Pointer, out: cute.Pointer, plan: cutlass.Constexpr) -> None:
    lane, _, _ = cute.arch.thread_idx()
    word = WORDS[plan.bits]
    at = cute.crd2idx(lane, cute.make_layout(plan.shape, stride=plan.stride)) + plan.shift
    mine = cute.make_tensor(source + cute.assume(cutlass.Int32(at), divby=plan.values), cute.make_layout((plan.values,)))
    held = cute.make_rmem_tensor(cute.make_layout((plan.values,)), word)
    atom = cute.make_copy_atom(CopyUniversalOp(), word, num_bits_per_copy=plan.bits * plan.values)
    cute.copy_atom_call(atom, mine, held)
    for v in cutlass.range_constexpr(plan.values):
        (out + (lane * plan.values + v))[0] = held[v]


@cute.jit
def shared_host(out: cute.Pointer, table: cute.Pointer, stream: Any, plan: cutlass.Constexpr) -> None:
    probe_shared(out, table, plan).launch(grid=[BLOCKS, 1, 1], block=[32, 1, 1], stream=stream)


@cute.jit
def global_host(source: cute.Pointer, out: cute.Pointer, stream: Any, plan: cutlass.Constexpr) -> None:
    probe_global(source, out, plan).launch(grid=[BLOCKS, 1, 1], block=[32, 1, 1], stream=stream)


def plan_of(case: Pair | Request) -> Probe:
    """What is compiled for a case."""
    if isinstance(case, Request):
        layout = case.layout
        return Probe("ld", case.bits, case.width * 8 // case.bits, 0, layout.shape, layout.stride, case.shift)
    bits = 16 if case.op.startswith("ldmatrix") else min(32, case.width * 8)
    words = -(-(int(case.addresses.max()) + case.width) * 8 // bits // 32) * 32
    return Probe(case.op, bits, case.width * 8 // bits, words)


def compiled(case: Pair | Request, arch: str = ARCH) -> Any:
    """The kernel of a case, compiled; needs no GPU."""
    plan = plan_of(case)
    set_arch(arch)
    options = f"--gpu-arch {arch}"
    word = _pointer(WORDS[plan.bits])
    if isinstance(case, Request):
        return cute.compile(global_host, word, word, make_fake_stream(), plan, options=options)
    return cute.compile(shared_host, word, _pointer(cutlass.Int32), make_fake_stream(), plan, options=options)


def shared(pair: Pair) -> None:
    """Launch a pair's kernel and check what the lanes received."""
    plan = plan_of(pair)
    run, word = compiled(pair), f"u{plan.bits // 8}"
    offsets = pair.addresses * 8 // plan.bits
    out = _device(np.zeros(32 * plan.received, dtype=word))
    table = _device(offsets.astype(np.int32))
    _launch(run, _at(out, WORDS[plan.bits]), _at(table, cutlass.Int32))
    got = _host(out, word).astype(np.int64).reshape(32, -1)
    rows = offsets[:, None] + np.arange(plan.values)
    if plan.op == "st":
        expected = np.arange(rows.size).reshape(rows.shape)
    else:
        expected = _to_registers(rows, 4, plan.op.endswith("trans")) if plan.op.startswith("ldmatrix") else rows
    if not np.array_equal(got, expected % (1 << plan.bits)):
        raise TexgenError(f"{pair}: the lanes received other elements than their addresses say.")


def globally(request: Request) -> None:
    """Launch a request's kernel and check what the lanes received."""
    plan = plan_of(request)
    run, word = compiled(request), f"u{plan.bits // 8}"
    offsets = request.addresses * 8 // plan.bits
    source = _device(np.arange(int(offsets.max()) + plan.values).astype(word))
    out = _device(np.zeros(32 * plan.values, dtype=word))
    _launch(run, _at(source, WORDS[plan.bits]), _at(out, WORDS[plan.bits]))
    if not np.array_equal(_host(out, word).astype(np.int64).reshape(32, -1), offsets[:, None] + np.arange(plan.values)):
        raise TexgenError(f"{request}: the lanes received other elements than their addresses say.")
