"""``hgemm_sm80``: C = A·Bᵀ, float16 in and out, float32 sums, with ``mma.sync`` (Ampere and later).

A: (M, K), B: (N, K), C: (M, N), all float16, each contiguous along one mode, C along N; that mode's extent, the other's
stride and the pointer a multiple of 8 elements (128-bit copies), or refused. Reference: ``a @ b.T`` in float64.

``cp.async`` brings tiles of A and B through a ring of stages into swizzled shared memory, ``ldmatrix`` (transposing,
where an operand is contiguous along M or N) reads the next fragments while ``mma.sync`` m16n8k16 works on these, blocks
walk C in bands that share operands in the L2, and C leaves through swizzled shared memory in 128-bit stores.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

from texgen.kernels import common, halves
from texgen.kernels.common import f16, f32
from texgen.kernels.halves import VECTOR, reference

__all__ = ["Config", "compiled", "figures", "prepare", "reference", "run"]


@dataclass(frozen=True)
class Config:
    """The block's tile, the ring's depth, how warps lie over C, and how many rows of tiles a band has."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    stages: int = 3
    warps: tuple[int, int] = (2, 4)
    blocks_per_sm: int = 1
    band: int = 16

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]


DEFAULT = Config()
SMALL = Config(bm=64, bn=64, warps=(2, 2), blocks_per_sm=2)
"""Where C has too few tiles of the large kind to give every multiprocessor one."""


# What the kernel is built of: the page's figures call the same functions. ----------------------------------------------


def tiled_mma(cfg: Config = DEFAULT) -> cute.TiledMma:
    """m16n8k16 over the warps, two atoms along N a warp so that one ldmatrix.x4 feeds them."""
    wm, wn = cfg.warps
    op = warp.MmaF16BF16Op(f16, f32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout((wm, wn, 1)), permutation_mnk=(16 * wm, 16 * wn, 16))


def _tile_copy(rows: int, major: str, cfg: Config) -> cute.TiledCopy:
    op = cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL)
    atom = cute.make_copy_atom(op, f16, num_bits_per_copy=128)
    if major == "k":
        across = cfg.bk // VECTOR
        threads = cute.make_layout((cfg.threads // across, across), stride=(across, 1))
        return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, VECTOR)))
    across = math.gcd(rows // VECTOR, cfg.threads)
    threads = cute.make_layout((across, cfg.threads // across), stride=(1, across))
    return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((VECTOR, 1)))


def copy_a(major: str = "k", cfg: Config = DEFAULT) -> cute.TiledCopy:
    """``cp.async`` of a tile of A: 128 bits a thread along the contiguous mode."""
    return _tile_copy(cfg.bm, major, cfg)


def copy_b(major: str = "k", cfg: Config = DEFAULT) -> cute.TiledCopy:
    """``cp.async`` of a tile of B."""
    return _tile_copy(cfg.bn, major, cfg)


def _smem(rows: int, columns: int, major: str) -> cute.ComposedLayout:
    """(rows, columns), swizzled so that eight neighbours across the contiguous mode fall into different banks."""
    run = min(columns if major == "k" else rows, 64)
    bits = {64: 3, 32: 2, 16: 1}[run]
    outer = cute.make_layout((8, run), stride=(run, 1)) if major == "k" else cute.make_layout((run, 8), stride=(1, run))
    return cute.make_composed_layout(cute.make_swizzle(bits, 3, 3), 0, outer)


def _smem_ring(rows: int, major: str, cfg: Config) -> cute.ComposedLayout:
    return cute.tile_to_shape(_smem(rows, cfg.bk, major), (rows, cfg.bk, cfg.stages), (0, 1, 2))


def smem_a(major: str = "k", cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of A: (M, K, stage); the swizzle counts in halves."""
    return _smem_ring(cfg.bm, major, cfg)


def smem_b(major: str = "k", cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of B: (N, K, stage)."""
    return _smem_ring(cfg.bn, major, cfg)


def smem_c(cfg: Config = DEFAULT) -> cute.ComposedLayout:
    """Shared memory of C on its way out, over the ring's."""
    return cute.tile_to_shape(_smem(cfg.bm, cfg.bn, "k"), (cfg.bm, cfg.bn), (0, 1))


def smem_atom_k_major() -> cute.ComposedLayout:
    """What A's shared memory repeats: 8 rows of 64 halves, one 128-byte line each."""
    return _smem(DEFAULT.bm, DEFAULT.bk, "k")


def smem_atom_mn_major() -> cute.ComposedLayout:
    """What it repeats where the operand is contiguous along M or N: 64 rows by 8 columns."""
    return _smem(DEFAULT.bm, DEFAULT.bk, "mn")


def _ldmatrix(major: str) -> Any:
    return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(major != "k", 4), f16)


def ldmatrix_a(major: str = "k", cfg: Config = DEFAULT) -> cute.TiledCopy:
    """Shared memory to A's registers."""
    return cute.make_tiled_copy_A(_ldmatrix(major), tiled_mma(cfg))


def ldmatrix_b(major: str = "k", cfg: Config = DEFAULT) -> cute.TiledCopy:
    """Shared memory to B's registers."""
    return cute.make_tiled_copy_B(_ldmatrix(major), tiled_mma(cfg))


def copy_c(cfg: Config = DEFAULT) -> cute.TiledCopy:
    """C from shared memory to global: a warp writes a run of up to 512 bytes."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), f16, num_bits_per_copy=128)
    across = cfg.bn // VECTOR if cfg.threads % (cfg.bn // VECTOR) == 0 else 8
    threads = cute.make_layout((cfg.threads // across, across), stride=(across, 1))
    return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, VECTOR)))


def figures() -> dict[str, Any]:
    """What a page shows of this kernel."""
    return {
        "tiled mma": tiled_mma(),
        "copy A": copy_a(),
        "copy B": copy_b(),
        "smem, K-major": smem_atom_k_major(),
        "smem, MN-major": smem_atom_mn_major(),
        "ldmatrix A": ldmatrix_a(),
        "ldmatrix B": ldmatrix_b(),
        "copy C": copy_c(),
    }


# The kernel --------------------------------------------------------------------------------------------------------------


@cute.kernel
def kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    majors: cutlass.Constexpr,
    whole: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    m, n, k = cute.size(a, mode=[0]), cute.size(b, mode=[0]), cute.size(a, mode=[1])
    depth, bk = cfg.stages, cfg.bk
    block_m, block_n = common.raster(block, cute.ceil_div(m, cfg.bm), cute.ceil_div(n, cfg.bn), cfg.band)

    layout_a, layout_b, layout_c = smem_a(majors[0], cfg), smem_b(majors[1], cfg), smem_c(cfg)
    elements_a, elements_b = cute.cosize(layout_a), cute.cosize(layout_b)
    elements = max(elements_a + elements_b, cute.cosize(layout_c))
    memory = common.SmemAllocator()
    base = memory.allocate_tensor(f16, cute.make_layout(elements), 128).iterator
    sa = cute.make_tensor(base, layout_a)
    sb = cute.make_tensor(base + elements_a, layout_b)
    sc = cute.make_tensor(base, layout_c)

    ga = cute.local_tile(a, (cfg.bm, bk), (block_m, None))
    gb = cute.local_tile(b, (cfg.bn, bk), (block_n, None))
    gc = cute.local_tile(c, (cfg.bm, cfg.bn), (block_m, block_n))
    ia = cute.local_tile(cute.make_identity_tensor(a.shape), (cfg.bm, bk), (block_m, None))
    ib = cute.local_tile(cute.make_identity_tensor(b.shape), (cfg.bn, bk), (block_n, None))
    ic = cute.local_tile(cute.make_identity_tensor(c.shape), (cfg.bm, cfg.bn), (block_m, block_n))

    mma, move_a, move_b, move_c = tiled_mma(cfg), copy_a(majors[0], cfg), copy_b(majors[1], cfg), copy_c(cfg)
    read_a, read_b = ldmatrix_a(majors[0], cfg), ldmatrix_b(majors[1], cfg)
    mine_a, mine_b, mine = move_a.get_slice(thread), move_b.get_slice(thread), mma.get_slice(thread)
    tga, tsa, tia = mine_a.partition_S(ga), mine_a.partition_D(sa), mine_a.partition_S(ia)
    tgb, tsb, tib = mine_b.partition_S(gb), mine_b.partition_D(sb), mine_b.partition_S(ib)
    fa = mma.make_fragment_A(mine.partition_A(sa)[None, None, None, 0])
    fb = mma.make_fragment_B(mine.partition_B(sb)[None, None, None, 0])
    csc = mine.partition_C(sc)
    sums = mma.make_fragment_C(csc)
    lsa, lfa = read_a.get_slice(thread).partition_S(sa), read_a.get_slice(thread).retile(fa)
    lsb, lfb = read_b.get_slice(thread).partition_S(sb), read_b.get_slice(thread).retile(fb)
    common.show(
        "hgemm mma.sync", tga=tga, tsa=tsa, tgb=tgb, tsb=tsb, fa=fa, fb=fb, lsa=lsa, lfa=lfa, lsb=lsb, lfb=lfb, csc=csc
    )

    # where every tile of C is whole no access needs a predicate
    rows_a = None if cutlass.const_expr(whole) else common.inside(tia[None, None, None, 0], tsa, m, k)
    rows_b = None if cutlass.const_expr(whole) else common.inside(tib[None, None, None, 0], tsb, n, k)
    sums.fill(0.0)
    blocks = bk // 16
    whole_tiles = k // bk
    if whole_tiles > 0:
        last = whole_tiles - 1
        for stage in cutlass.range_constexpr(depth - 1):
            # past the last tile the last comes again: no branch, and nobody reads that stage
            tile = cutlass.min(stage, last)
            cute.copy(move_a, tga[None, None, None, tile], tsa[None, None, None, stage], pred=rows_a)
            cute.copy(move_b, tgb[None, None, None, tile], tsb[None, None, None, stage], pred=rows_b)
            cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(depth - 2)
        cute.arch.sync_threads()
        cute.copy(read_a, lsa[None, None, 0, 0], lfa[None, None, 0])
        cute.copy(read_b, lsb[None, None, 0, 0], lfb[None, None, 0])

        read, write = cutlass.Int32(0), cutlass.Int32(depth - 1)
        for tile in cutlass.range(whole_tiles, unroll=1):
            ahead = cutlass.min(tile + (depth - 1), last)
            for step in cutlass.range_constexpr(blocks):
                if cutlass.const_expr(step == blocks - 1):
                    # the next tile has landed for every thread, and every thread is done with this one's stage
                    cute.arch.cp_async_wait_group(depth - 2)
                    cute.arch.sync_threads()
                    read = 0 if read == depth - 1 else read + 1
                following = (step + 1) % blocks
                cute.copy(read_a, lsa[None, None, following, read], lfa[None, None, following])
                cute.copy(read_b, lsb[None, None, following, read], lfb[None, None, following])
                if cutlass.const_expr(step == 0):
                    cute.copy(move_a, tga[None, None, None, ahead], tsa[None, None, None, write], pred=rows_a)
                cute.gemm(mma, sums, fa[None, None, step], fb[None, None, step], sums)
                if cutlass.const_expr(step == 0):
                    cute.copy(move_b, tgb[None, None, None, ahead], tsb[None, None, None, write], pred=rows_b)
                    cute.arch.cp_async_commit_group()
                    write = 0 if write == depth - 1 else write + 1
        cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()

    if whole_tiles * bk < k:
        # the rest of K: zeros first, then what exists over them
        tsa[None, None, None, 0].fill(0.0)
        tsb[None, None, None, 0].fill(0.0)
        cute.arch.sync_threads()
        both_a = common.inside(tia[None, None, None, whole_tiles], tsa, m, k)
        both_b = common.inside(tib[None, None, None, whole_tiles], tsb, n, k)
        cute.copy(move_a, tga[None, None, None, whole_tiles], tsa[None, None, None, 0], pred=both_a)
        cute.copy(move_b, tgb[None, None, None, whole_tiles], tsb[None, None, None, 0], pred=both_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        for step in cutlass.range_constexpr(blocks):
            cute.copy(read_a, lsa[None, None, step, 0], lfa[None, None, step])
            cute.copy(read_b, lsb[None, None, step, 0], lfb[None, None, step])
            cute.gemm(mma, sums, fa[None, None, step], fb[None, None, step], sums)
        cute.arch.sync_threads()

    halves = cute.make_rmem_tensor_like(sums, f16)
    halves.store(sums.load().to(f16))
    cute.autovec_copy(halves, csc)
    cute.arch.sync_threads()
    mine_c = move_c.get_slice(thread)
    tsc, tgc, tic = mine_c.partition_S(sc), mine_c.partition_D(gc), mine_c.partition_D(ic)
    out = cute.make_rmem_tensor_like(tsc)
    cute.autovec_copy(tsc, out)
    cute.copy(move_c, out, tgc, pred=common.inside(tic, tsc, m, n))


@cute.jit
def host(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    stream: Any,
    majors: cutlass.Constexpr,
    whole: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
):
    tiles = cute.ceil_div(cute.size(c, mode=[0]), cfg.bm) * cute.ceil_div(cute.size(c, mode=[1]), cfg.bn)
    kernel(a, b, c, majors, whole, cfg).launch(
        grid=[tiles, 1, 1],
        block=[cfg.threads, 1, 1],
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
        preferred_smem_carveout=100,
    )


# Running -----------------------------------------------------------------------------------------------------------------


@cache
def compiled(
    arch: str, majors: tuple[str, str] = ("k", "k"), whole: bool = False, cfg: Config = DEFAULT, options: str = ""
) -> Any:
    """The kernel compiled for ``arch``, for operands contiguous along K (``"k"``) or along M or N (``"mn"``); ``whole``
    where M and N are multiples of the tile's."""
    return common.compile_for(arch, host, halves.fakes(majors), (majors, whole, cfg), options)


def prepare(a: Any, b: Any, out: Any = None, *, cfg: Config | None = None) -> tuple[Any, Any]:
    """(launch, c): a function of no arguments that runs the kernel on torch's current stream, and where C will be."""
    import torch

    majors, c = halves.operands(a, b, out, "this kernel's 128-bit stores")
    (m, n), k = c.shape, a.shape[1]
    if m == 0 or n == 0:
        return (lambda: None), c
    if k == 0:
        return (lambda: c.zero_()), c
    if cfg is None:
        tiles = -(-m // DEFAULT.bm) * -(-n // DEFAULT.bn)
        cfg = DEFAULT if tiles >= 0.75 * torch.cuda.get_device_properties(a.device).multi_processor_count else SMALL
    whole = m % cfg.bm == 0 and n % cfg.bn == 0
    run = compiled(common.device_arch(), majors, whole, cfg)
    arguments = halves.arguments(a, b, c, majors)
    return (lambda: run(*arguments, common.current_stream())), c


def run(a: Any, b: Any, out: Any = None) -> Any:
    """C = A·Bᵀ on the GPU. a: (M, K), b: (N, K) float16; C is given back (M, N) float16, or written into ``out``."""
    launch, c = prepare(a, b, out)
    launch()
    return c
