# mypy: disable-error-code="untyped-decorator"
"""The instructions of ``texgen.kernels.clock``: volatile, so that they keep their order among copies, waits and barriers."""

from typing import Any

from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op


def _asm(text: str, address: Any, stores: Any, loc: Any, ip: Any) -> None:
    values = [address.ir_value(loc=loc, ip=ip), stores.ir_value(loc=loc, ip=ip)]
    # "memory": no load or store may be moved across it
    llvm.inline_asm(
        None, values, text, "l,r,~{memory}", has_side_effects=True, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT, loc=loc, ip=ip
    )  # fmt: skip


CHOSEN = "{ .reg .pred p; .reg .b64 t; setp.ne.s32 p, $1, 0; "


@dsl_user_op
def stamp(address: Any, stores: Any, *, loc: Any = None, ip: Any = None) -> None:
    """The cycle counter to an address, where ``stores`` is not zero."""
    _asm(CHOSEN + "mov.u64 t, %clock64; @p st.global.b64 [$0], t; }", address, stores, loc, ip)


@dsl_user_op
def barrier_stamp(address: Any, stores: Any, *, loc: Any = None, ip: Any = None) -> None:
    """A barrier of the block, and the cycle counter after it to an address.

    ``bar.sync`` compiles to a barrier that blocks later instructions only where they need it (DEFER_BLOCKING), and a read of
    the counter does not: on an H200 it was taken before the last warp had come. Here it needs the barrier's own result.
    """
    text = "setp.eq.s32 q, $1, $1; bar.red.popc.u32 n, 0, q; setp.ne.and.u32 q, n, 0, p; @q mov.u64 t, %clock64; @q st.global.b64 [$0], t; }"
    _asm("{ .reg .pred q; .reg .b32 n; " + CHOSEN.removeprefix("{ ") + text, address, stores, loc, ip)


@dsl_user_op
def head(row: Any, stores: Any, slot: int, *, loc: Any = None, ip: Any = None) -> None:
    """Nanoseconds and cycles, one after the other, to two slots."""
    text = f"mov.u64 t, %globaltimer; @p st.global.b64 [$0+{8 * slot}], t; mov.u64 t, %clock64; @p st.global.b64 [$0+{8 * slot + 8}], t; }}"
    _asm(CHOSEN + text, row, stores, loc, ip)


@dsl_user_op
def smid(row: Any, stores: Any, slot: int, *, loc: Any = None, ip: Any = None) -> None:
    """The multiprocessor's number to a slot."""
    text = f".reg .b32 s; mov.u32 s, %smid; cvt.u64.u32 t, s; @p st.global.b64 [$0+{8 * slot}], t; }}"
    _asm(CHOSEN + text, row, stores, loc, ip)
