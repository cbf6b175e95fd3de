"""c = a + b over tiles: free functions, NumPy arrays, a direct call."""

import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor, cC: cute.Tensor, tv: cute.Layout, tiler: cute.Shape):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    here = ((None, None), bidx)
    blkA, blkB, blkC = gA[here], gB[here], gC[here]
    atom_load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gA.element_type)
    atom_store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gC.element_type)
    copy_A = cute.make_tiled_copy(atom_load, tv, tiler)
    copy_B = cute.make_tiled_copy(atom_load, tv, tiler)
    copy_C = cute.make_tiled_copy(atom_store, tv, tiler)
    thr_A, thr_B, thr_C = copy_A.get_slice(tidx), copy_B.get_slice(tidx), copy_C.get_slice(tidx)
    tA, tB, tC = thr_A.partition_S(blkA), thr_B.partition_S(blkB), thr_C.partition_D(blkC)
    rA, rB, rC = cute.make_fragment_like(tA), cute.make_fragment_like(tB), cute.make_fragment_like(tC)
    cute.copy(copy_A, tA, rA)
    cute.copy(copy_B, tB, rB)
    rC.store(rA.load() + rB.load())
    cute.copy(copy_C, rC, tC)


@cute.jit
def run(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    thr = cute.make_layout((4, 32), stride=(32, 1))
    val = cute.make_layout((4, 4), stride=(4, 1))
    tiler, tv = cute.make_layout_tv(thr, val)
    gA, gB, gC = (cute.zipped_divide(x, tiler) for x in (mA, mB, mC))
    cC = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tiler)
    add(gA, gB, gC, cC, tv, tiler).launch(grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv, mode=[0]), 1, 1])


if __name__ == "__main__":
    a = np.ones((256, 512), dtype=np.float32)
    b, c = np.ones_like(a), np.zeros_like(a)
    run(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    print("after the launch")
    np.testing.assert_allclose(c, a + b)
