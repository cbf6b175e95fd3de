"""ldmatrix feeding the A operand of a tiled MMA, and a copy from global to shared memory."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp


def tiled_mma() -> cute.TiledMma:
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))


def copy_a() -> cute.TiledCopy:
    op = warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4)
    atom = cute.make_copy_atom(op, cutlass.Float16)
    return cute.make_tiled_copy_A(atom, tiled_mma())


def global_to_shared() -> cute.TiledCopy:
    op = cpasync.CopyG2SOp()
    atom = cute.make_copy_atom(op, cutlass.Float16, num_bits_per_copy=128)
    return cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
