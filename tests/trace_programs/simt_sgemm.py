"""C = A B^T on CUDA cores with a cp.async pipeline, in the style of a SIMT sgemm: a class, torch tensors, cute.compile."""

import argparse

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import torch
from cutlass.cute.runtime import from_dlpack


class SGemm:
    def __init__(self, cta_tiler=(64, 64, 8), stages=3, threads=256):
        self._tiler = cta_tiler
        self._stages = stages
        self._threads = threads

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, stream: cuda.CUstream):
        bM, bN, bK = self._tiler
        padding = 4
        sA_layout = cute.make_layout((bM, bK, self._stages), stride=(1, bM + padding, bK * (bM + padding)))
        sB_layout = cute.make_layout((bN, bK, self._stages), stride=(1, bN + padding, bK * (bN + padding)))
        tA = cute.make_layout((self._threads // bK, bK), stride=(bK, 1))
        tB = cute.make_layout((self._threads // bK, bK), stride=(bK, 1))
        vA = cute.make_layout((1, 1))
        vB = cute.make_layout((1, 1))
        atom_async_copy_A = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(),
            mA.element_type,
            num_bits_per_copy=mA.element_type.width,
        )
        atom_async_copy_B = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(), mB.element_type, num_bits_per_copy=mB.element_type.width
        )
        tiled_copy_A = cute.make_tiled_copy_tv(atom_async_copy_A, tA, vA)
        tiled_copy_B = cute.make_tiled_copy_tv(atom_async_copy_B, tB, vB)
        atoms_layout = cute.make_layout((self._threads // 16, 16, 1), stride=(16, 1, 0))
        op = cute.nvgpu.MmaUniversalOp(cutlass.Float32)
        permutation_M = cute.make_layout((atoms_layout.shape[0], 4), stride=(4, 1))
        permutation_N = cute.make_layout((atoms_layout.shape[1], 4), stride=(4, 1))
        tiled_mma = cute.make_tiled_mma(
            op,
            atoms_layout,
            permutation_mnk=(permutation_M, permutation_N, None),
        )
        grid_dim = *cute.ceil_div(mC.shape, (bM, bN)), 1
        self.kernel(mA, mB, mC, sA_layout, sB_layout, tiled_copy_A, tiled_copy_B, tiled_mma).launch(
            grid=grid_dim,
            block=[cute.size(atoms_layout), 1, 1],
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        sA_layout: cute.Layout,
        sB_layout: cute.Layout,
        tiled_copy_A: cute.TiledCopy,
        tiled_copy_B: cute.TiledCopy,
        tiled_mma: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, _ = cute.arch.block_idx()
        coord = (bidx, bidy, None)
        gA = cute.local_tile(mA, tiler=self._tiler, coord=coord, proj=(1, None, 1))
        gB = cute.local_tile(mB, tiler=self._tiler, coord=coord, proj=(None, 1, 1))
        gC = cute.local_tile(mC, tiler=self._tiler, coord=coord, proj=(1, 1, None))
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(mA.element_type, sA_layout, 16)
        sB = smem.allocate_tensor(mB.element_type, sB_layout, 16)
        thr_copy_A = tiled_copy_A.get_slice(tidx)
        thr_copy_B = tiled_copy_B.get_slice(tidx)
        tAgA, tAsA = thr_copy_A.partition_S(gA), thr_copy_A.partition_D(sA)
        tBgB, tBsB = thr_copy_B.partition_S(gB), thr_copy_B.partition_D(sB)
        k_tiles = cute.size(tAgA, mode=[3])
        for stage in cutlass.range_constexpr(self._stages - 1):
            cute.copy(tiled_copy_A, tAgA[None, None, None, stage], tAsA[None, None, None, stage])
            cute.copy(tiled_copy_B, tBgB[None, None, None, stage], tBsB[None, None, None, stage])
            cute.arch.cp_async_commit_group()
        thr_mma = tiled_mma.get_slice(tidx)
        tCsA = thr_mma.partition_A(sA)
        tCsB = thr_mma.partition_B(sB)
        tCgC = thr_mma.partition_C(gC)
        tCrA = tiled_mma.make_fragment_A(tCsA[None, None, None, 0])
        tCrB = tiled_mma.make_fragment_B(tCsB[None, None, None, 0])
        tCrC = tiled_mma.make_fragment_C(tCgC)
        tCrC.fill(0.0)
        read, write = cutlass.Int32(0), cutlass.Int32(self._stages - 1)
        for k in range(k_tiles):
            cute.arch.cp_async_wait_group(self._stages - 2)
            cute.arch.sync_threads()
            following = k + self._stages - 1
            if following < k_tiles:
                cute.copy(tiled_copy_A, tAgA[None, None, None, following], tAsA[None, None, None, write])
                cute.copy(tiled_copy_B, tBgB[None, None, None, following], tBsB[None, None, None, write])
            cute.arch.cp_async_commit_group()
            cute.autovec_copy(tCsA[None, None, None, read], tCrA)
            cute.autovec_copy(tCsB[None, None, None, read], tCrB)
            cute.gemm(tiled_mma, tCrC, tCrA, tCrB, tCrC)
            read = (read + 1) % self._stages
            write = (write + 1) % self._stages
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mC.element_type)
        cute.copy(atom, tCrC, tCgC)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", type=lambda t: tuple(int(x) for x in t.split(",")), default=(128, 128, 64))
    parser.add_argument("--skip_ref_check", action="store_true")
    parser.add_argument("--save", help="a file for the bytes of C")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise RuntimeError("Ampere GPU is required to run this example!")
    m, n, k = args.mnk
    torch.manual_seed(1024)
    a = torch.empty(m, k, dtype=torch.int32).random_(-5, 5).to(dtype=torch.float32, device="cuda")
    b = torch.randint(-5, 5, (n, k), device="cuda").float()
    c = torch.zeros(m, n, dtype=torch.float32).cuda()
    a_tensor = from_dlpack(a, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    b_tensor = from_dlpack(b, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    c_tensor = from_dlpack(c, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    gemm = cute.compile(SGemm(), a_tensor, b_tensor, c_tensor, stream)
    print("compiled for", torch.cuda.get_device_capability())
    gemm(a_tensor, b_tensor, c_tensor, stream)
    torch.cuda.synchronize()
    if not args.skip_ref_check:
        torch.testing.assert_close(c.cpu(), (a @ b.T).cpu())
        print("PASS")
    if args.save:
        with open(args.save, "wb") as file:
            file.write(c.cpu().numpy().tobytes())


if __name__ == "__main__":
    main()
