"""C = A B^T on Blackwell: TMA, tcgen05 with accumulators in tensor memory, an epilogue that loads them: fake tensors."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor

mma_inst_mnk = (128, 128, 16)
mma_tiler_mnk = (128, 128, 64)
stages = 4
threads = 128


@cute.struct
class SharedStorage:
    ab_mbar: cute.struct.MemRange[cutlass.Int64, stages * 2]
    tmem_holding_buf: cutlass.Int32


@cute.kernel
def gemm_kernel(
    tiled_mma: cute.TiledMma,
    tma_atom_a: cute.CopyAtom,
    mA: cute.Tensor,
    tma_atom_b: cute.CopyAtom,
    mB: cute.Tensor,
    mC: cute.Tensor,
    a_smem_layout: cute.ComposedLayout,
    b_smem_layout: cute.ComposedLayout,
):
    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    bidx, bidy, _ = cute.arch.block_idx()
    smem = utils.SmemAllocator()
    storage = smem.allocate(SharedStorage)
    sA = smem.allocate_tensor(
        element_type=cutlass.Float16,
        layout=a_smem_layout.outer,
        byte_alignment=128,
        swizzle=a_smem_layout.inner,
    )
    sB = smem.allocate_tensor(
        element_type=cutlass.Float16, layout=b_smem_layout.outer, byte_alignment=128, swizzle=b_smem_layout.inner
    )
    gA = cute.local_tile(mA, mma_tiler_mnk, (bidx, bidy, None), proj=(1, None, 1))
    gB = cute.local_tile(mB, mma_tiler_mnk, (bidx, bidy, None), proj=(None, 1, 1))
    gC = cute.local_tile(mC, mma_tiler_mnk, (bidx, bidy, None), proj=(1, 1, None))
    thr_mma = tiled_mma.get_slice(0)
    tCgA, tCgB, tCgC = thr_mma.partition_A(gA), thr_mma.partition_B(gB), thr_mma.partition_C(gC)
    tCrA, tCrB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
    acc_shape = tiled_mma.partition_shape_C(mma_tiler_mnk[:2])
    tCtAcc = tiled_mma.make_fragment_C(acc_shape)
    tAsA, tAgA = cpasync.tma_partition(
        tma_atom_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 3), cute.group_modes(tCgA, 0, 3)
    )
    tBsB, tBgB = cpasync.tma_partition(
        tma_atom_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 3), cute.group_modes(tCgB, 0, 3)
    )
    mbar = storage.ab_mbar.data_ptr()
    if tidx == 0:
        cute.arch.mbarrier_init(mbar, 1)
    cute.arch.mbarrier_init_fence()
    if warp_idx == 0:
        cute.arch.alloc_tmem(128, storage.tmem_holding_buf.ptr)
    cute.arch.sync_threads()
    tmem_ptr = cute.arch.retrieve_tmem_ptr(cutlass.Float32, alignment=16, ptr_to_buffer_holding_addr=storage.tmem_holding_buf.ptr)
    tCtAcc = cute.make_tensor(tmem_ptr, tCtAcc.layout)
    for k in range(cute.size(gA, mode=[2])):
        if warp_idx == 0:
            cute.copy(tma_atom_a, tAgA[None, k], tAsA[None, 0], tma_bar_ptr=mbar)
            cute.copy(tma_atom_b, tBgB[None, k], tBsB[None, 0], tma_bar_ptr=mbar)
        cute.arch.mbarrier_wait(mbar, k % 2)
        if warp_idx == 0:
            for kb in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(tiled_mma, tCtAcc, tCrA[None, None, kb, 0], tCrB[None, None, kb, 0], tCtAcc)
                tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
    cute.arch.sync_threads()
    subtiles = 4
    epi_tiler = (
        (cute.size(tCtAcc, mode=[0, 0]), cute.size(tCtAcc, mode=[0, 1]) // subtiles),
    )
    tCtAcc_epi = cute.zipped_divide(tCtAcc, epi_tiler)
    gC_epi = cute.zipped_divide(tCgC, epi_tiler)
    tmem_atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    tmem_tiled_copy = tcgen05.make_tmem_copy(tmem_atom, tCtAcc_epi[None, 0])
    tmem_thr_copy = tmem_tiled_copy.get_slice(tidx)
    tDtC, tDgC = tmem_thr_copy.partition_S(tCtAcc_epi), tmem_thr_copy.partition_D(gC_epi)
    tCrAcc = cute.make_rmem_tensor(tDgC[None, None, 0].shape, cutlass.Float32)
    tCrC = cute.make_rmem_tensor(tDgC[None, None, 0].shape, cutlass.Float16)
    for i in cutlass.range_constexpr(cute.size(tDtC, mode=[2])):
        cute.copy(tmem_tiled_copy, tDtC[None, None, i], tCrAcc)
        tCrC.store(tCrAcc.load().to(cutlass.Float16))
        cute.autovec_copy(tCrC, tDgC[None, None, i])


@cute.jit
def host_function(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = tcgen05.MmaF16BF16Op(
        cutlass.Float16,
        cutlass.Float32,
        mma_inst_mnk,
        tcgen05.CtaGroup.ONE,
        tcgen05.OperandSource.SMEM,
        tcgen05.OperandMajorMode.K,
        tcgen05.OperandMajorMode.K,
    )
    tiled_mma = cute.make_tiled_mma(op)
    a_smem_layout = sm100_utils.make_smem_layout_a(tiled_mma, mma_tiler_mnk, a.element_type, stages)
    b_smem_layout = sm100_utils.make_smem_layout_b(
        tiled_mma,
        mma_tiler_mnk,
        b.element_type,
        stages,
    )
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    a_smem_layout_one_stage = cute.select(a_smem_layout, mode=[0, 1, 2])
    a_tma_atom, a_tma_tensor = cute.nvgpu.make_tiled_tma_atom_A(load, a, a_smem_layout_one_stage, mma_tiler_mnk, tiled_mma)
    b_smem_layout_one_stage = cute.select(b_smem_layout, mode=[0, 1, 2])
    b_tma_atom, b_tma_tensor = cute.nvgpu.make_tiled_tma_atom_B(load, b, b_smem_layout_one_stage, mma_tiler_mnk, tiled_mma)
    grid_shape = cute.ceil_div((*c.layout.shape, 1), mma_tiler_mnk[:2])
    gemm_kernel(tiled_mma, a_tma_atom, a_tma_tensor, b_tma_atom, b_tma_tensor, c, a_smem_layout, b_smem_layout).launch(
        grid=grid_shape,
        block=(threads, 1, 1),
    )


def main():
    f16 = cutlass.Float16
    a = make_fake_compact_tensor(f16, (256, 256), stride_order=(1, 0), assumed_align=32)
    b = make_fake_compact_tensor(f16, (256, 256), stride_order=(1, 0), assumed_align=32)
    c = make_fake_compact_tensor(f16, (256, 256), stride_order=(1, 0), assumed_align=32)
    cute.compile(host_function, a, b, c)


if __name__ == "__main__":
    main()
