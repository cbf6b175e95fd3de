"""C = A B^T on Hopper: TMA loads, wgmma, an epilogue through shared memory. A class with fake tensors; never launched."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor


class HopperGemm:
    def __init__(self, acc_dtype, tile=(128, 128, 64), atom_layout=(2, 1, 1)):
        self.acc_dtype = acc_dtype
        self.tile = tile
        self.atom_layout_mnk = atom_layout
        self.stages, self.epi_stages = 3, 2
        self.cluster = (2, 1, 1)
        self.threads = atom_layout[0] * atom_layout[1] * 128

    def _setup(self):
        self.tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.b_dtype,
            self.a_layout.sm90_mma_major_mode(),
            self.b_layout.sm90_mma_major_mode(),
            self.acc_dtype,
            self.atom_layout_mnk,
            tiler_mn=(64, self.tile[1]),
        )
        self.epi_tile = (64, 32)
        self.a_smem_layout_staged, self.b_smem_layout_staged, self.epi_smem_layout_staged = self._make_smem_layouts()

    def _make_smem_layouts(self):
        a_smem_layout_staged = sm90_utils.make_smem_layout_a(self.a_layout, self.tile, self.a_dtype, self.stages)
        b_smem_layout_staged = sm90_utils.make_smem_layout_b(self.b_layout, self.tile, self.b_dtype, self.stages)
        epi_smem_layout_staged = sm90_utils.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.epi_stages
        )
        return a_smem_layout_staged, b_smem_layout_staged, epi_smem_layout_staged

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        self.a_dtype, self.b_dtype, self.c_dtype = a.element_type, b.element_type, c.element_type
        self.a_layout = utils.LayoutEnum.from_tensor(a)
        self.b_layout = utils.LayoutEnum.from_tensor(b)
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        self._setup()
        tma_atom_a, tma_tensor_a = self._load(a, self.a_smem_layout_staged, (self.tile[0], self.tile[2]))
        tma_atom_b, tma_tensor_b = self._load(b, self.b_smem_layout_staged, (self.tile[1], self.tile[2]))
        epi_smem_layout = cute.slice_(self.epi_smem_layout_staged, (None, None, 0))
        tma_atom_c, tma_tensor_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, epi_smem_layout, self.epi_tile
        )

        @cute.struct
        class SharedStorage:
            mainloop_pipeline_array_ptr: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            sA: cute.struct.Align[
                cute.struct.MemRange[self.a_dtype, cute.cosize(self.a_smem_layout_staged)], 1024
            ]
            sB: cute.struct.Align[
                cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_smem_layout_staged)], 1024
            ]

        self.shared_storage = SharedStorage
        grid = (*cute.ceil_div(c.shape, self.tile[:2]), 1)
        self.kernel(
            tma_atom_a, tma_tensor_a, tma_atom_b, tma_tensor_b, tma_atom_c, tma_tensor_c, self.tiled_mma,
            self.a_smem_layout_staged, self.b_smem_layout_staged, self.epi_smem_layout_staged,
        ).launch(grid=grid, block=[self.threads, 1, 1], cluster=self.cluster)  # fmt: skip

    @staticmethod
    def _load(tensor, smem_layout_staged, smem_tile):
        op = cpasync.CopyBulkTensorTileG2SOp()
        smem_layout = cute.slice_(smem_layout_staged, (None, None, 0))
        tma_atom, tma_tensor = cpasync.make_tiled_tma_atom(op, tensor, smem_layout, smem_tile, num_multicast=1)
        return tma_atom, tma_tensor

    @cute.kernel
    def kernel(
        self,
        tma_atom_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_atom_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_atom_c: cute.CopyAtom,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        a_smem_layout_staged: cute.ComposedLayout,
        b_smem_layout_staged: cute.ComposedLayout,
        epi_smem_layout_staged: cute.ComposedLayout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_atom_a)
            cpasync.prefetch_descriptor(tma_atom_b)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        sA = storage.sA.get_tensor(a_smem_layout_staged.outer, swizzle=a_smem_layout_staged.inner)
        sB = storage.sB.get_tensor(b_smem_layout_staged.outer, swizzle=b_smem_layout_staged.inner)
        sC = cute.make_tensor(
            cute.recast_ptr(sA.iterator, epi_smem_layout_staged.inner, dtype=self.c_dtype), epi_smem_layout_staged.outer
        )
        gA = cute.local_tile(mA, cute.slice_(self.tile, (None, 0, None)), (bidx, None))
        gB = cute.local_tile(mB, cute.slice_(self.tile, (0, None, None)), (bidy, None))
        gC = cute.local_tile(mC, cute.slice_(self.tile, (None, None, 0)), (bidx, bidy))
        tAsA, tAgA = cpasync.tma_partition(
            tma_atom_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_atom_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        mbar = storage.mainloop_pipeline_array_ptr.data_ptr()
        if tidx == 0:
            cute.arch.mbarrier_init(mbar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        thr_mma = tiled_mma.get_slice(tidx)
        tCsA, tCsB = thr_mma.partition_A(sA), thr_mma.partition_B(sB)
        tCrA, tCrB = tiled_mma.make_fragment_A(tCsA), tiled_mma.make_fragment_B(tCsB)
        tCgC = thr_mma.partition_C(gC)
        accumulators = cute.make_rmem_tensor(tCgC.shape[:3], self.acc_dtype)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for k in range(cute.size(gA, mode=[2])):
            if warp_idx == 0:
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(mbar, 32768)
                cute.copy(tma_atom_a, tAgA[None, k], tAsA[None, 0], tma_bar_ptr=mbar)
                cute.copy(tma_atom_b, tBgB[None, k], tBsB[None, 0], tma_bar_ptr=mbar)
            cute.arch.mbarrier_wait(mbar, k % 2)
            warpgroup.fence()
            for kb in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(tiled_mma, accumulators, tCrA[None, None, kb, 0], tCrB[None, None, kb, 0], accumulators)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
        copy_atom_r2s = sm90_utils.sm90_get_smem_store_op(self.c_layout, self.c_dtype, self.acc_dtype)
        copy_atom_C = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4), self.c_dtype)
        tiled_copy_C_Atom = cute.make_tiled_copy_C_atom(copy_atom_C, tiled_mma)
        tiled_copy_r2s = cute.make_tiled_copy_S(copy_atom_r2s, tiled_copy_C_Atom)
        thr_r2s = tiled_copy_r2s.get_slice(tidx)
        tRS_sD = thr_r2s.partition_D(sC)
        tRS_rAcc = tiled_copy_r2s.retile(accumulators)
        tRS_rD = cute.make_rmem_tensor(cute.shape(thr_r2s.partition_S(sC))[:3], self.acc_dtype)
        for v in cutlass.range_constexpr(cute.size(tRS_rD)):
            tRS_rD[v] = tRS_rAcc[v]
        out = cute.make_rmem_tensor(tRS_rD.layout, self.c_dtype)
        out.store(tRS_rD.load().to(self.c_dtype))
        cute.copy(tiled_copy_r2s, out, tRS_sD[None, None, None, 0])
        cute.arch.sync_threads()
        tCgC_epi = cute.zipped_divide(gC, self.epi_tile)
        bSG_sC, bSG_gC = cpasync.tma_partition(
            tma_atom_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), tCgC_epi
        )
        if warp_idx == 0:
            cute.copy(tma_atom_c, bSG_sC[None, 0], bSG_gC[None, 0])


def compile_it():
    f16 = cutlass.Float16
    a = make_fake_compact_tensor(f16, (512, 256), stride_order=(1, 0), assumed_align=16)
    b = make_fake_compact_tensor(f16, (512, 256), stride_order=(1, 0), assumed_align=16)
    c = make_fake_compact_tensor(f16, (512, 512), stride_order=(1, 0), assumed_align=16)
    return cute.compile(HopperGemm(cutlass.Float32), a, b, c)


if __name__ == "__main__":
    compile_it()
