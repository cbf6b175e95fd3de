"""O = softmax(Q K^T) V for one head, two MMAs a tile, in the style of FlashAttention 2: a class, NumPy, cute.compile."""

import math
import sys

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import numpy as np
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor


class Attention:
    def __init__(self, head_dim=64, m=64, n=64, threads=128):
        self._d, self._m, self._n, self._threads = head_dim, m, n, threads

    @cute.jit
    def __call__(self, mQ: cute.Tensor, mK: cute.Tensor, mV: cute.Tensor, mO: cute.Tensor, scale: cutlass.Float32):
        self._dtype = mQ.element_type
        sQ_layout_atom = cute.make_composed_layout(
            cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, self._d), stride=(self._d, 1))
        )
        sQ_layout = cute.tile_to_shape(sQ_layout_atom, (self._m, self._d), (0, 1))
        sKV_layout = cute.tile_to_shape(sQ_layout_atom, (self._n, self._d), (0, 1))
        sO_layout = sQ_layout

        @cute.struct
        class SharedStorage:
            sQ: cute.struct.Align[cute.struct.MemRange[self._dtype, cute.cosize(sQ_layout)], 1024]
            sK: cute.struct.Align[cute.struct.MemRange[self._dtype, cute.cosize(sKV_layout)], 1024]
            sV: cute.struct.Align[cute.struct.MemRange[self._dtype, cute.cosize(sKV_layout)], 1024]

        bits = 128
        async_elems = bits // self._dtype.width
        atom_async_copy = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), self._dtype, num_bits_per_copy=bits
        )
        atom_universal_copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self._dtype, num_bits_per_copy=bits)
        across = self._d // async_elems
        tQKV_layout = cute.make_layout((self._threads // across, across), stride=(across, 1))
        v_layout = cute.make_layout((1, async_elems))
        gmem_tiled_copy_QKV = cute.make_tiled_copy_tv(atom_async_copy, tQKV_layout, v_layout)
        gmem_tiled_copy_O = cute.make_tiled_copy_tv(atom_universal_copy, tQKV_layout, v_layout)
        tiled_mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self._dtype, cutlass.Float32, (16, 8, 16)),
            (self._threads // 32, 1, 1),
            permutation_mnk=(self._threads // 32 * 16, 16, 16),
        )
        self.kernel(
            mQ, mK, mV, mO, scale, sQ_layout, sKV_layout, sO_layout, gmem_tiled_copy_QKV, gmem_tiled_copy_O, tiled_mma,
            SharedStorage,
        ).launch(grid=(cute.ceil_div(mQ.shape[0], self._m), 1, 1), block=[self._threads, 1, 1])  # fmt: skip

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        scale: cutlass.Float32,
        sQ_layout: cute.ComposedLayout,
        sKV_layout: cute.ComposedLayout,
        sO_layout: cute.ComposedLayout,
        gmem_tiled_copy_QKV: cute.TiledCopy,
        gmem_tiled_copy_O: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
        SharedStorage: cutlass.Constexpr,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        m_block, _, _ = cute.arch.block_idx()
        gQ = cute.local_tile(mQ, (self._m, self._d), (m_block, 0))
        gK = cute.local_tile(mK, (self._n, self._d), (None, 0))
        gV = cute.local_tile(mV, (self._n, self._d), (None, 0))
        smem = utils.SmemAllocator()
        storage = smem.allocate(SharedStorage)
        sQ = storage.sQ.get_tensor(sQ_layout)
        sK = storage.sK.get_tensor(sKV_layout)
        sV = storage.sV.get_tensor(sKV_layout)
        sVt = cute.composition(sV, cute.make_layout((self._d, self._n), stride=(self._n, 1)))
        gmem_thr_copy = gmem_tiled_copy_QKV.get_slice(tidx)
        tQgQ, tQsQ = gmem_thr_copy.partition_S(gQ), gmem_thr_copy.partition_D(sQ)
        tKgK, tKsK = gmem_thr_copy.partition_S(gK), gmem_thr_copy.partition_D(sK)
        tVgV, tVsV = gmem_thr_copy.partition_S(gV), gmem_thr_copy.partition_D(sV)
        thr_mma = tiled_mma.get_slice(tidx)
        tSrQ = thr_mma.make_fragment_A(thr_mma.partition_A(sQ))
        tSrK = thr_mma.make_fragment_B(thr_mma.partition_B(sK))
        tOrVt = thr_mma.make_fragment_B(thr_mma.partition_B(sVt))
        acc_O = cute.make_rmem_tensor(thr_mma.partition_shape_C((self._m, self._d)), cutlass.Float32)
        acc_O.fill(0.0)
        smem_copy_atom_Q = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4), self._dtype)
        smem_copy_atom_K = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4), self._dtype)
        smem_copy_atom_V = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=True, num_matrices=4), self._dtype)
        smem_tiled_copy_Q = cute.make_tiled_copy_A(smem_copy_atom_Q, tiled_mma)
        smem_tiled_copy_K = cute.make_tiled_copy_B(smem_copy_atom_K, tiled_mma)
        smem_tiled_copy_V = cute.make_tiled_copy_B(smem_copy_atom_V, tiled_mma)
        thr_Q, thr_K = smem_tiled_copy_Q.get_slice(tidx), smem_tiled_copy_K.get_slice(tidx)
        thr_V = smem_tiled_copy_V.get_slice(tidx)
        tSsQ, tSrQ_view = thr_Q.partition_S(sQ), thr_Q.retile(tSrQ)
        tSsK, tSrK_view = thr_K.partition_S(sK), thr_K.retile(tSrK)
        tOsVt, tOrVt_view = thr_V.partition_S(sVt), thr_V.retile(tOrVt)
        cute.copy(gmem_tiled_copy_QKV, tQgQ, tQsQ)
        cute.arch.cp_async_commit_group()
        for n in range(cute.size(gK, mode=[2])):
            cute.copy(gmem_tiled_copy_QKV, tKgK[None, None, None, n], tKsK)
            cute.copy(gmem_tiled_copy_QKV, tVgV[None, None, None, n], tVsV)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            acc_S = cute.make_rmem_tensor(thr_mma.partition_shape_C((self._m, self._n)), cutlass.Float32)
            acc_S.fill(0.0)
            cute.copy(smem_tiled_copy_Q, tSsQ, tSrQ_view)
            cute.copy(smem_tiled_copy_K, tSsK, tSrK_view)
            cute.gemm(tiled_mma, acc_S, tSrQ, tSrK, acc_S)
            rP = cute.make_fragment_like(acc_S, self._dtype)
            rP.store((cute.math.exp2(acc_S.load() * scale)).to(self._dtype))
            split = cute.logical_divide(rP.layout, (None, None, 2))
            rP_as_A = cute.make_layout(
                ((split.shape[0], split.shape[2][0]), split.shape[1], split.shape[2][1]),
                stride=((split.stride[0], split.stride[2][0]), split.stride[1], split.stride[2][1]),
            )
            tOrS = cute.make_tensor(rP.iterator, rP_as_A)
            cute.copy(smem_tiled_copy_V, tOsVt, tOrVt_view)
            cute.gemm(tiled_mma, acc_O, tOrS, tOrVt, acc_O)
            cute.arch.sync_threads()
        rO = cute.make_fragment_like(acc_O, self._dtype)
        rO.store(acc_O.load().to(self._dtype))
        sO = cute.make_tensor(sQ.iterator, sO_layout)
        smem_copy_atom_O = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self._dtype)
        smem_tiled_copy_O = cute.make_tiled_copy_C(smem_copy_atom_O, tiled_mma)
        smem_thr_copy_O = smem_tiled_copy_O.get_slice(tidx)
        cute.copy(smem_copy_atom_O, smem_thr_copy_O.retile(rO), smem_thr_copy_O.partition_D(sO))
        cute.arch.sync_threads()
        gO = cute.local_tile(mO, (self._m, self._d), (m_block, 0))
        gmem_thr_copy_O = gmem_tiled_copy_O.get_slice(tidx)
        tOsO, tOgO = gmem_thr_copy_O.partition_S(sO), gmem_thr_copy_O.partition_D(gO)
        tOrO = cute.make_fragment_like(tOgO, self._dtype)
        cute.copy(gmem_tiled_copy_O, tOsO, tOrO)
        cute.copy(gmem_tiled_copy_O, tOrO, tOgO)


def compile_fakes(length=256, head_dim=64):
    fake = make_fake_compact_tensor(cutlass.Float16, (length, head_dim), stride_order=(1, 0), assumed_align=16)
    return cute.compile(Attention(head_dim), fake, fake, fake, fake, 0.125)


def run(length=256, head_dim=64):
    q, k, v = (np.random.default_rng(i).standard_normal((length, head_dim)).astype(np.float16) for i in range(3))
    o = np.zeros_like(q)
    tensors = [from_dlpack(x, assumed_align=16) for x in (q, k, v, o)]
    scale = math.log2(math.e) / math.sqrt(head_dim)
    compiled = cute.compile(Attention(head_dim), *tensors, scale)
    compiled(*tensors, scale)
    return o


if __name__ == "__main__":
    compile_fakes() if "--fake" in sys.argv else run()
