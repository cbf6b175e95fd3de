"""Tiled objects for the page beside it."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warp
from neighbour import ATOMS


def mma():
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout(ATOMS))


def two():
    return {"first": cute.make_layout((4, 8)), "second": cute.make_layout((8, 4))}
