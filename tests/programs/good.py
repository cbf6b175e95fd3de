"""Small DSL programs that the tests read by name."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, warp, warpgroup
from helper import ATOMS

K = OperandMajorMode.K


def ampere():
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout(ATOMS), permutation_mnk=(32, 32, 16))


@cute.jit
def jitted():
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))


@cute.kernel
def kernel():
    return None


def launches():
    return kernel()


def hopper():
    op = warpgroup.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, K, K)
    return cute.make_tiled_mma(op)


def blackwell():
    from cutlass.cute.nvgpu import tcgen05

    op = tcgen05.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (128, 64, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, K, K
    )
    return cute.make_tiled_mma(op)


def block_scaled():
    return warp.MmaMXF4Op(cutlass.Float4E2M1FN, cutlass.Float32, cutlass.Float8E8M0FNU)


def both():
    return [hopper(), blackwell()]


def smem():
    return warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cutlass.Float16)


def several():
    copy = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
    mma = ampere()
    return {"mma": mma, "copies": [cute.make_tiled_copy_A(copy, mma), copy], "layout": cute.make_layout((4, 8))}


def loud():
    import sys

    print("printed by the program")
    print("and on stderr", file=sys.stderr)
    return ampere()


LAYOUT_MAKER = ampere


class Kernel:
    @staticmethod
    def tiled_mma():
        return ampere()
