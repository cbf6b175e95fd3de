"""C = A B^T with mma.sync, ldmatrix and swizzled shared memory: helper methods make the layouts; fake tensors."""

import math

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import make_fake_compact_tensor


class TensorOpGemm:
    def __init__(self, ab_dtype, c_dtype, acc_dtype, atom_layout_mnk):
        self.ab_dtype, self.c_dtype, self.acc_dtype = ab_dtype, c_dtype, acc_dtype
        self.tiler = (64, 64, 32)
        self.stages = 3
        self.atom_layout = atom_layout_mnk
        self.threads = math.prod(atom_layout_mnk) * 32

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        bits = 128
        sA_layout = self._make_smem_layout_AB(mA.element_type, bits, (self.tiler[0], self.tiler[2], self.stages))
        sB_layout = self._make_smem_layout_AB(mB.element_type, bits, (self.tiler[1], self.tiler[2], self.stages))
        sC_layout = self._make_smem_layout_C(mC.element_type, bits, (self.tiler[0], self.tiler[1]))
        atom_async = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), mA.element_type, num_bits_per_copy=bits
        )
        tiled_copy_A, tiled_copy_B = (
            self._make_gmem_tiled_copy(atom_async, mA.element_type, bits, self.tiler[2]),
            self._make_gmem_tiled_copy(atom_async, mB.element_type, bits, self.tiler[2]),
        )
        atom_sync = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type, num_bits_per_copy=bits)
        tiled_copy_C = self._make_gmem_tiled_copy(atom_sync, mC.element_type, bits, self.tiler[1])
        op = warp.MmaF16BF16Op(self.ab_dtype, self.acc_dtype, (16, 8, 16))
        permutation = (self.atom_layout[0] * 16, self.atom_layout[1] * 16, self.atom_layout[2] * 16)
        tC = cute.make_layout(self.atom_layout)
        self.tiled_mma: cute.TiledMma = cute.make_tiled_mma(op, tC, permutation_mnk=permutation)
        self.kernel(
            mA, mB, mC, sA_layout, sB_layout, sC_layout, tiled_copy_A, tiled_copy_B, tiled_copy_C, self.tiled_mma
        ).launch(grid=cute.ceil_div((*mC.shape, 1), (*self.tiler[:2], 1)), block=[self.threads, 1, 1])

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        sA_layout: cute.ComposedLayout,
        sB_layout: cute.ComposedLayout,
        sC_layout: cute.ComposedLayout,
        tiled_copy_A: cute.TiledCopy,
        tiled_copy_B: cute.TiledCopy,
        tiled_copy_C: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        coord = (bidx, bidy, None)
        gA = cute.local_tile(mA, self.tiler, coord, proj=(1, None, 1))
        gB = cute.local_tile(mB, self.tiler, coord, proj=(None, 1, 1))
        gC = cute.local_tile(mC, self.tiler, coord, proj=(1, 1, None))
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, sA_layout, 16)
        sB = smem.allocate_tensor(mB.element_type, sB_layout, 16)
        sC = cute.make_tensor(cute.recast_ptr(sA.iterator, sC_layout.inner, dtype=self.c_dtype), sC_layout.outer)
        thr_copy_A, thr_copy_B = tiled_copy_A.get_slice(tidx), tiled_copy_B.get_slice(tidx)
        thr_copy_C = tiled_copy_C.get_slice(tidx)
        tAgA, tAsA = thr_copy_A.partition_S(gA), thr_copy_A.partition_D(sA)
        tBgB, tBsB = thr_copy_B.partition_S(gB), thr_copy_B.partition_D(sB)
        thr_mma = tiled_mma.get_slice(tidx)
        tCsA, tCsB = thr_mma.partition_A(sA), thr_mma.partition_B(sB)
        tCsC, tCgC = thr_mma.partition_C(sC), thr_mma.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(tCsA[None, None, None, 0])
        tCrB = tiled_mma.make_fragment_B(tCsB[None, None, None, 0])
        tCrC = tiled_mma.make_fragment_C(tCgC)
        tCrC.fill(0.0)
        atom_copy_s2r_A = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), mA.element_type)
        atom_copy_s2r_B = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), mB.element_type)
        tiled_copy_s2r_A = cute.make_tiled_copy_A(atom_copy_s2r_A, tiled_mma)
        tiled_copy_s2r_B = cute.make_tiled_copy_B(atom_copy_s2r_B, tiled_mma)
        thr_s2r_A, thr_s2r_B = tiled_copy_s2r_A.get_slice(tidx), tiled_copy_s2r_B.get_slice(tidx)
        tCsA_view, tCrA_view = thr_s2r_A.partition_S(sA), thr_s2r_A.retile(tCrA)
        tCsB_view, tCrB_view = thr_s2r_B.partition_S(sB), thr_s2r_B.retile(tCrB)
        k_tiles = cute.size(tAgA, mode=[3])
        for k in range(k_tiles):
            cute.copy(tiled_copy_A, tAgA[None, None, None, k], tAsA[None, None, None, 0])
            cute.copy(tiled_copy_B, tBgB[None, None, None, k], tBsB[None, None, None, 0])
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            cute.copy(tiled_copy_s2r_A, tCsA_view[None, None, None, 0], tCrA_view)
            cute.copy(tiled_copy_s2r_B, tCsB_view[None, None, None, 0], tCrB_view)
            cute.gemm(tiled_mma, tCrC, tCrA, tCrB, tCrC)
            cute.arch.sync_threads()
        tCrD = cute.make_fragment_like(tCrC, self.c_dtype)
        tCrD.store(tCrC.load().to(self.c_dtype))
        cute.autovec_copy(tCrD, tCsC)
        cute.arch.sync_threads()
        tCsC_out, tCgC_out = thr_copy_C.partition_S(sC), thr_copy_C.partition_D(gC)
        tCrC_out = cute.make_fragment_like(tCsC_out)
        cute.autovec_copy(tCsC_out, tCrC_out)
        cute.copy(tiled_copy_C, tCrC_out, tCgC_out)

    def _make_smem_layout_AB(self, dtype, bits, shape):
        major = min(shape[1], 64)
        swizzle = min(int(math.log2(major * dtype.width // bits)), 3)
        atom = cute.make_composed_layout(
            cute.make_swizzle(swizzle, 3, 3), 0, cute.make_layout((8, major), stride=(major, 1))
        )
        return cute.tile_to_shape(atom, shape, (0, 1, 2))

    def _make_smem_layout_C(self, dtype, bits, shape):
        atom = cute.make_composed_layout(cute.make_swizzle(3, 3, 4), 0, cute.make_layout((8, 64), stride=(64, 1)))
        layout = cute.tile_to_shape(atom, shape, (0, 1))
        return layout

    def _make_gmem_tiled_copy(self, atom, dtype, bits, columns):
        elements = bits // dtype.width
        across = columns // elements
        threads = cute.make_layout((self.threads // across, across), stride=(across, 1))
        return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, elements)))


def main():
    f16 = cutlass.Float16
    a = make_fake_compact_tensor(f16, (256, 128), stride_order=(1, 0), assumed_align=16)
    b = make_fake_compact_tensor(f16, (256, 128), stride_order=(1, 0), assumed_align=16)
    c = make_fake_compact_tensor(f16, (256, 256), stride_order=(1, 0), assumed_align=16)
    cute.compile(TensorOpGemm(f16, f16, cutlass.Float32, (2, 2, 1)), a, b, c)


if __name__ == "__main__":
    main()
