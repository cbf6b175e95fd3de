"""``hgemm_sm90``: C = A·Bᵀ, float16 in and out, float32 sums, with TMA and ``wgmma`` (Hopper).

A: (M, K), B: (N, K), C: (M, N), all float16, each contiguous along one mode, C along N; that mode's extent, the other's
stride and the pointer a multiple of 8 elements (TMA's 16 bytes), or refused. Any M, N, K otherwise: TMA fills what lies
outside with zeros and does not store it. Reference: ``a @ b.T`` in float64.

One warp fetches: TMA writes tiles of A and B into a ring of stages, B's halves by the two blocks of a cluster for both
(multicast), announced by a full barrier and freed through an empty one. Two warpgroups multiply, m64n256k16 each from
shared memory into 128 registers a thread, and hold the next ``wgmma`` ready while this one runs. Blocks stay and take
one tile of C after another; the fetching warp runs ahead into the next tile while C leaves through ``stmatrix`` and TMA.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp, warpgroup

from texgen.errors import TexgenError
from texgen.kernels import common, halves
from texgen.kernels.common import f16, f32
from texgen.kernels.halves import reference

__all__ = ["Config", "compiled", "figures", "prepare", "reference", "run"]


@dataclass(frozen=True)
class Config:
    """The block's tile (64 rows a consumer warpgroup), the ring's depth, blocks a cluster, rows of cluster tiles a band."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 4
    cluster: int = 2
    band: int = 8
    piece: int = 64

    @property
    def consumers(self) -> int:
        return self.bm // 64

    @property
    def threads(self) -> int:
        return 128 * (1 + self.consumers)


DEFAULT = Config()


# What the kernel is built of: the page's figures call the same functions. ----------------------------------------------


def _mode(major: str) -> Any:
    return cute.nvgpu.OperandMajorMode.K if major == "k" else cute.nvgpu.OperandMajorMode.MN


def tiled_mma(majors: tuple[str, str] = ("k", "k"), cfg: Config = DEFAULT) -> cute.TiledMma:
    """wgmma m64n256k16, one atom a consumer warpgroup, both operands read from shared memory."""
    op = warpgroup.MmaF16BF16Op(
        f16, f32, (64, cfg.bn, 16), warpgroup.OperandSource.SMEM, _mode(majors[0]), _mode(majors[1])
    )
    return cute.make_tiled_mma(op, cute.make_layout((cfg.consumers, 1, 1)))


def _smem_ring(rows: int, major: str, cfg: Config) -> cute.ComposedLayout:
    kinds = warpgroup.SmemLayoutAtomKind
    atom = warpgroup.make_smem_layout_atom(kinds.K_SW128 if major == "k" else kinds.MN_SW128, f16)
    return cute.tile_to_shape(atom, (rows, cfg.bk, cfg.stages), (0, 1, 2) if major == "k" else (1, 0, 2))


def smem_a(major: str = "k", cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of A: (M, K, stage), the 128-byte swizzle that TMA and wgmma share; it counts in bytes."""
    return _smem_ring(cfg.bm, major, cfg)


def smem_b(major: str = "k", cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of B: (N, K, stage)."""
    return _smem_ring(cfg.bn, major, cfg)


def smem_atom() -> cute.ComposedLayout:
    """What A's shared memory repeats: 8 rows of 64 halves (128 bytes)."""
    return warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, f16)


def smem_c(cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of C: pieces of 64x64 on their way out, two a consumer warpgroup."""
    return cute.tile_to_shape(smem_atom(), (64, cfg.piece, 2 * cfg.consumers), (0, 1, 2))


def piece_mma(cfg: Config = DEFAULT) -> cute.TiledMma:
    """A warpgroup's accumulators of one 64x64 piece, as a TiledMma: what stmatrix's copy is made from."""
    op = warpgroup.MmaF16BF16Op(f16, f32, (64, cfg.piece, 16), warpgroup.OperandSource.SMEM, _mode("k"), _mode("k"))
    return cute.make_tiled_mma(op)


def stmatrix_c(cfg: Config = DEFAULT) -> cute.TiledCopy:
    """Accumulators, rounded to half, to shared memory."""
    return cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), f16), piece_mma(cfg))


def figures() -> dict[str, Any]:
    """What a page shows of this kernel."""
    return {"tiled mma": tiled_mma(), "smem atom": smem_atom(), "stmatrix C": stmatrix_c()}


# The kernel --------------------------------------------------------------------------------------------------------------


@cute.kernel
def kernel(
    tma_a: cute.CopyAtom,
    a: cute.Tensor,
    tma_b: cute.CopyAtom,
    b: cute.Tensor,
    tma_c: cute.CopyAtom,
    c: cute.Tensor,
    mma: cute.TiledMma,
    majors: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    group = cute.arch.make_warp_uniform(thread // 128)
    lane = cute.arch.lane_idx()
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    depth = cfg.stages

    memory = common.SmemAllocator()
    layout_a, layout_b, layout_c = smem_a(majors[0], cfg), smem_b(majors[1], cfg), smem_c(cfg)
    full = memory.allocate_array(cutlass.Int64, depth)
    empty = memory.allocate_array(cutlass.Int64, depth)
    sa = memory.allocate_tensor(f16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = memory.allocate_tensor(f16, layout_b.outer, 1024, swizzle=layout_b.inner)
    sc = memory.allocate_tensor(f16, layout_c.outer, 1024, swizzle=layout_c.inner)

    if warp_index == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)
        with cute.arch.elect_one():
            for stage in cutlass.range_constexpr(depth):
                cute.arch.mbarrier_init(full + stage, 1)
                # every consumer warp of every block that reads what this block's TMA writes
                cute.arch.mbarrier_init(empty + stage, 4 * cfg.consumers * cfg.cluster)
            cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()

    # A block's tile of A is its own; B's is fetched in shares, one a block of the cluster, each sent to all of them.
    ga = cute.local_tile(a, (cfg.bm, cfg.bk), (None, None))
    gb = cute.local_tile(b, (cfg.bn, cfg.bk), (None, None))
    gc = cute.local_tile(c, (64, cfg.piece), (None, None))
    tsa, tga = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2)
    )
    tsb, tgb = cpasync.tma_partition(
        tma_b, rank, cute.make_layout(cfg.cluster), cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2)
    )
    tsc, tgc = cpasync.tma_partition(
        tma_c, 0, cute.make_layout(1), cute.group_modes(sc, 0, 2), cute.group_modes(gc, 0, 2)
    )
    common.show("hgemm wgmma", sa=sa, sb=sb, tga=tga, tsa=tsa, tgb=tgb, tsb=tsb, tgc=tgc, tsc=tsc)

    steps = cute.size(ga, mode=[3])
    tiles_m = cute.ceil_div(cute.size(c, mode=[0]), cfg.bm * cfg.cluster)
    tiles_n = cute.ceil_div(cute.size(c, mode=[1]), cfg.bn)
    tiles = tiles_m * tiles_n
    first, stride = block // cfg.cluster, blocks // cfg.cluster

    if group == 0:
        cute.arch.setmaxregister_decrease(40)
        if warp_index == 0:
            stage, phase = cutlass.Int32(0), cutlass.Int32(1)
            everyone = cutlass.Int16((1 << cfg.cluster) - 1)
            for tile in cutlass.range(first, tiles, stride, unroll=1):
                cluster_m, block_n = common.raster(tile, tiles_m, tiles_n, cfg.band)
                block_m = cluster_m * cfg.cluster + rank
                for step in cutlass.range(steps, unroll=1):
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, 2 * cfg.bk * (cfg.bm + cfg.bn))
                    cute.copy(tma_a, tga[None, block_m, step], tsa[None, stage], tma_bar_ptr=full + stage)
                    if cutlass.const_expr(cfg.cluster > 1):
                        cute.copy(
                            tma_b,
                            tgb[None, block_n, step],
                            tsb[None, stage],
                            tma_bar_ptr=full + stage,
                            mcast_mask=everyone,
                        )
                    else:
                        cute.copy(tma_b, tgb[None, block_n, step], tsb[None, stage], tma_bar_ptr=full + stage)
                    stage += 1
                    if stage == depth:
                        stage = cutlass.Int32(0)
                        phase ^= 1
    else:
        cute.arch.setmaxregister_increase(232)
        mine = mma.get_slice((group - 1) * 128)
        fa, fb = mma.make_fragment_A(mine.partition_A(sa)), mma.make_fragment_B(mine.partition_B(sb))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((cfg.bm, cfg.bn)), f32)
        halves = cute.make_rmem_tensor_like(sums, f16)
        out = stmatrix_c(cfg)
        mine_out = out.get_slice(thread % 128)
        csc = mine_out.partition_D(sc)
        pieces = cfg.bn // cfg.piece
        share = cute.size(sums) // pieces
        piece_layout = cute.make_layout(piece_mma(cfg).partition_shape_C((64, cfg.piece)))
        common.show("hgemm wgmma, consumer", fa=fa, fb=fb, sums=sums, csc=csc, piece=piece_layout)

        stage, phase = cutlass.Int32(0), cutlass.Int32(0)
        for tile in cutlass.range(first, tiles, stride, unroll=1):
            cluster_m, block_n = common.raster(tile, tiles_m, tiles_n, cfg.band)
            block_m = cluster_m * cfg.cluster + rank
            before = cutlass.Int32(0)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for step in cutlass.range(steps, unroll=1):
                cute.arch.mbarrier_wait(full + stage, phase)
                warpgroup.fence()
                for kk in cutlass.range_constexpr(cfg.bk // 16):
                    cute.gemm(mma, sums, fa[None, None, kk, stage], fb[None, None, kk, stage], sums)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(1)
                # all but the newest are done: the stage before this one is free
                if step > 0 and lane < cfg.cluster:
                    cute.arch.mbarrier_arrive(empty + before, lane)
                before = stage
                stage += 1
                if stage == depth:
                    stage = cutlass.Int32(0)
                    phase ^= 1
            warpgroup.wait_group(0)
            if lane < cfg.cluster:
                cute.arch.mbarrier_arrive(empty + before, lane)

            halves.store(sums.load().to(f16))
            for piece in cutlass.range_constexpr(pieces):
                slot = (group - 1) * 2 + piece % 2
                if warp_index % 4 == 0:
                    cute.arch.cp_async_bulk_wait_group(1, read=True)
                cute.arch.barrier(barrier_id=group, number_of_threads=128)
                mine_piece = cute.make_tensor(halves.iterator + piece * share, piece_layout)
                cute.copy(out, mine_out.retile(mine_piece), csc[None, None, None, slot])
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.barrier(barrier_id=group, number_of_threads=128)
                if warp_index % 4 == 0:
                    place = (None, block_m * cfg.consumers + (group - 1), block_n * pieces + piece)
                    cute.copy(tma_c, tsc[None, slot], tgc[place])
                    cute.arch.cp_async_bulk_commit_group()
        if warp_index % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    # nobody leaves while a neighbour may still arrive at its barriers
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def host(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cutlass.Int32,
    stream: Any,
    majors: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
):
    one_a = cute.slice_(smem_a(majors[0], cfg), (None, None, 0))
    one_b = cute.slice_(smem_b(majors[1], cfg), (None, None, 0))
    one_c = cute.slice_(smem_c(cfg), (None, None, 0))
    load = cpasync.CopyBulkTensorTileG2SOp()
    share = cpasync.CopyBulkTensorTileG2SMulticastOp() if cutlass.const_expr(cfg.cluster > 1) else load
    tma_a, gmem_a = cpasync.make_tiled_tma_atom(load, a, one_a, (cfg.bm, cfg.bk))
    tma_b, gmem_b = cpasync.make_tiled_tma_atom(share, b, one_b, (cfg.bn, cfg.bk), num_multicast=cfg.cluster)
    tma_c, gmem_c = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), c, one_c, (64, cfg.piece))
    tiles = cute.ceil_div(cute.size(c, mode=[0]), cfg.bm * cfg.cluster) * cute.ceil_div(cute.size(c, mode=[1]), cfg.bn)
    clusters = cutlass.min(tiles, blocks // cfg.cluster)
    kernel(tma_a, gmem_a, tma_b, gmem_b, tma_c, gmem_c, tiled_mma(majors, cfg), majors, cfg).launch(
        grid=[clusters * cfg.cluster, 1, 1],
        block=[cfg.threads, 1, 1],
        cluster=[cfg.cluster, 1, 1],
        stream=stream,
        min_blocks_per_mp=1,
    )


# Running -----------------------------------------------------------------------------------------------------------------


@cache
def compiled(
    arch: str = "sm_90a", majors: tuple[str, str] = ("k", "k"), cfg: Config = DEFAULT, options: str = ""
) -> Any:
    """The kernel compiled (for Hopper alone), for operands contiguous along K (``"k"``) or along M or N (``"mn"``)."""
    if arch != "sm_90a":
        raise TexgenError(f"hgemm_sm90 is made of wgmma, which {arch} lacks (sm_90a alone has it): use hgemm_sm80")
    return common.compile_for(arch, host, (*halves.fakes(majors), cutlass.Int32(132)), (majors, cfg), options)


def prepare(a: Any, b: Any, out: Any = None, *, cfg: Config = DEFAULT) -> tuple[Any, Any]:
    """(launch, c): a function of no arguments that runs the kernel on torch's current stream, and where C will be."""
    import torch

    majors, c = halves.operands(a, b, out, "TMA stores")
    if c.numel() == 0:
        return (lambda: None), c
    if a.shape[1] == 0:
        return (lambda: c.zero_()), c
    run = compiled(common.device_arch(), majors, cfg)
    arguments = halves.arguments(a, b, c, majors)
    blocks = cutlass.Int32(torch.cuda.get_device_properties(a.device).multi_processor_count)
    return (lambda: run(*arguments, blocks, common.current_stream())), c


def run(a: Any, b: Any, out: Any = None) -> Any:
    """C = A·Bᵀ on the GPU. a: (M, K), b: (N, K) float16; C is given back (M, N) float16, or written into ``out``."""
    launch, c = prepare(a, b, out)
    launch()
    return c
