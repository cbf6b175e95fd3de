# mypy: disable-error-code="untyped-decorator"
"""Warp-level atoms that the DSL has no op for, executed: their PTX instruction inside a DSL kernel.

As in ``executed`` every thread loads its registers of A and B and stores its sums through the figure's tables. Here an
element in memory is a word of its own, and the kernel packs a thread's values into registers, the lowest bits first, as
the PTX ISA numbers them. Imports the DSL; running needs torch and a GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass._mlir.dialects import llvm
from cutlass.cute.runtime import make_fake_stream
from cutlass.cutlass_dsl import dsl_user_op

from texgen.errors import TexgenError
from texgen.kernels.common import set_arch
from texgen.layouts import IntArray
from texgen.measure.emulate import Tables, agreed, by_owner
from texgen.measure.executed import ARCH, WORDS, _at, _device, _host, _launch, _pointer, decode, encode
from texgen.specs import MmaSpec, dtype_bits


@dataclass(frozen=True)
class PtxPlan:
    """What is compiled: the instruction, and for A, B and C the values a thread holds and their bits."""

    instruction: str
    values: tuple[int, int, int]
    bits: tuple[int, int, int]

    @property
    def word(self) -> int:
        """Bits of a register, and of an element in memory."""
        return max(32, *self.bits)

    def registers(self, i: int) -> int:
        return -(-self.values[i] * self.bits[i] // self.word)

    @property
    def text(self) -> str:
        """``mma.sync… {$0,$1}, {$2}, {$3}, {$4,$5};``"""
        counts = [self.registers(2), self.registers(0), self.registers(1), self.registers(2)]
        groups, n = [], 0
        for count in counts:
            groups.append("{" + ",".join(f"${n + i}" for i in range(count)) + "}")
            n += count
        return f"{self.instruction} {', '.join(groups)};"

    @property
    def constraints(self) -> str:
        kind = "l" if self.word == 64 else "r"
        d = self.registers(2)
        return ",".join([f"={kind}"] * d + [kind] * (self.registers(0) + self.registers(1) + d))


def plan_of(spec: MmaSpec) -> PtxPlan:
    """Raises TexgenError for an instruction that is not one warp's ``mma.sync``."""
    from texgen.sources import catalog

    entry = catalog.find(spec.name)
    instruction = str(entry.line.get("ptx", ""))
    if not re.fullmatch(r"mma\.sync\.aligned\.m\d+n\d+k\d+\.[\w.]+", instruction):
        raise TexgenError(f"the CuTe DSL has no op for it, and it is no warp's dense mma.sync ({instruction or 'no instruction known'})")
    if spec.threads != 32:
        raise TexgenError("an atom that the DSL lacks is executed alone, not tiled")
    operands = spec.operands().values()
    return PtxPlan(instruction, tuple(x.values for x in operands), tuple(dtype_bits(x.dtype) for x in operands))  # type: ignore[arg-type]


@dsl_user_op
def issue(inputs: Any, plan: Any, *, loc: Any = None, ip: Any = None) -> list[Any]:
    """The instruction on registers A, B, C: the registers of D."""
    word = WORDS[plan.word]
    count = plan.registers(2)
    kind = word.mlir_type if count == 1 else llvm.StructType.get_literal([word.mlir_type] * count)
    made = llvm.inline_asm(
        kind, [word(x).ir_value(loc=loc, ip=ip) for x in inputs], plan.text, plan.constraints,
        has_side_effects=True, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT, loc=loc, ip=ip,
    )  # fmt: skip
    if count == 1:
        return [word(made)]
    return [word(llvm.extractvalue(word.mlir_type, made, [i], loc=loc, ip=ip)) for i in range(count)]


@cute.kernel
def ptx_kernel(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, ta: cute.Pointer, tb: cute.Pointer, tc: cute.Pointer, plan: cutlass.Constexpr
) -> None:  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    word = WORDS[plan.word]
    inputs = []
    for i in cutlass.range_constexpr(2):
        source, table = (a, ta) if cutlass.const_expr(i == 0) else (b, tb)
        per = plan.word // plan.bits[i]
        for r in cutlass.range_constexpr(plan.registers(i)):
            packed = word(0)
            for v in cutlass.range_constexpr(min(per, plan.values[i] - r * per)):
                element = (source + (table + (thread * plan.values[i] + r * per + v))[0])[0]
                packed = packed | (element << word(v * plan.bits[i]))
            inputs.append(packed)
    for _r in cutlass.range_constexpr(plan.registers(2)):
        inputs.append(word(0))
    sums = issue(inputs, plan)
    per = plan.word // plan.bits[2]
    for v in cutlass.range_constexpr(plan.values[2]):
        value = sums[v // per] >> word(v % per * plan.bits[2])
        if cutlass.const_expr(plan.bits[2] < plan.word):
            value = value & word((1 << plan.bits[2]) - 1)
        (c + (tc + (thread * plan.values[2] + v))[0])[0] = value


@cute.jit
def ptx_host(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, ta: cute.Pointer, tb: cute.Pointer, tc: cute.Pointer,
    stream: Any, plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    ptx_kernel(a, b, c, ta, tb, tc, plan).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)


def compile_ptx(spec: MmaSpec, arch: str = ARCH) -> Any:
    """The kernel of a spec, compiled; needs no GPU."""
    plan = plan_of(spec)
    set_arch(arch)
    words = [_pointer(WORDS[plan.word])] * 3
    tables = [_pointer(cutlass.Int32)] * 3
    return cute.compile(ptx_host, *words, *tables, make_fake_stream(), plan, options=f"--gpu-arch {arch}")


class PtxGpu:
    """The backend for one spec of an atom that the DSL lacks."""

    def __init__(self) -> None:
        self.compiled: Any = None

    def mma(self, spec: MmaSpec, a: IntArray, b: IntArray, tables: Tables) -> IntArray:
        plan = plan_of(spec)
        self.compiled = self.compiled or compile_ptx(spec)
        m, n, _ = spec.tile_mnk
        table, copies = by_owner(tables["C"], m * n)
        word, kinds = f"u{plan.word // 8}", [x.dtype for x in spec.operands().values()]
        given = [
            _device((encode(x.reshape(-1, order="F"), t).astype(word) & np.array((1 << w) - 1, dtype=word)).astype(word))
            for x, t, w in zip((a, b), kinds, plan.bits, strict=False)
        ]
        poison = {"s32": 0xC0000000}.get(kinds[2], (1 << plan.bits[2]) - 1)
        out = _device(np.full(m * n * copies, poison, dtype=word))
        placed = [_device(t.astype(np.int32)) for t in (tables["A"], tables["B"], table)]
        _launch(self.compiled, *(_at(x, WORDS[plan.word]) for x in (*given, out)), *(_at(t, cutlass.Int32) for t in placed))
        found = _host(out, word).astype(f"u{plan.bits[2] // 8}")
        return agreed(decode(found, kinds[2]), (m, n))

    def copy(self, spec: Any, tables: Tables) -> IntArray:
        raise TexgenError("the CuTe DSL has no op for this copy")
