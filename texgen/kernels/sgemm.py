"""``sgemm``: C = A·Bᵀ in float32, a ladder of three kernels.

A: (M, K), B: (N, K), C: (M, N), all float32, any M, N, K and any strides; every product and sum is a float32 fused
multiply-add (no TF32). Reference: ``a @ b.T`` in float64.

- ``naive``: a thread an element of C, no shared memory.
- ``tiled``: a block's tile of A and B goes through registers into shared memory, a ``TiledMma`` of ``MmaUniversalOp``
  multiplies it, and only then is the next tile fetched.
- ``pipelined``: the tiles come by ``cp.async`` into a ring of three stages; while one is multiplied two are on their
  way, and the fragments of the next k are read while this k is multiplied.

How an operand lies in memory decides its copy (its ``way``): ``"mn"`` runs of four along M (or N), 128 bits at a time;
``"mn1"`` one by one, lanes along M (or N); ``"k1"`` one by one, lanes along K, with a padded tile so that the
transposing store meets no bank twice; ``"mn1?"`` and ``"k1?"`` where no stride is one. C is stored by runs of four along
N (``"n4"``), or one by one (``"n"``, ``"m"``, ``"?"``: which of its strides is one).
"""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync

from texgen.kernels import common
from texgen.kernels.clock import Slots, barrier, begin, end, mark
from texgen.kernels.common import f32


@dataclass(frozen=True)
class Config:
    """The shape of one kernel: the block's tile, the ring's depth, and how 32 lanes and the warps lie over C."""

    bm: int = 128
    bn: int = 256
    bk: int = 16
    stages: int = 3
    lanes: tuple[int, int] = (8, 4)
    warps: tuple[int, int] = (2, 4)
    blocks_per_sm: int = 1

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]


NAIVE = (8, 32)
TILED = Config(bn=128, bk=8, stages=1, blocks_per_sm=2)
PIPELINED = Config()
SMALL = Config(bm=64, bn=64, warps=(2, 2), blocks_per_sm=2)
"""The third step where C has too few tiles of the large kind to give every multiprocessor one."""

UNITS = {"mn": 0, "mn1": 0, "k1": 1, "mn1?": None, "k1?": None, "n4": 1, "n": 1, "m": 0, "?": None}
"""Which mode's stride is one, for each way an operand or C can lie."""


# What the kernels are built of: the pages' figures call the same functions. --------------------------------------------


def tiled_mma(cfg: Config = PIPELINED) -> cute.TiledMma:
    """One fused multiply-add a thread, threads laid over C, each with runs of four along M and N (one 128-bit read)."""
    (lm, ln), (wm, wn) = cfg.lanes, cfg.warps
    # two lanes along M, then all along N, then the rest along M: a quarter of a warp reads few different addresses
    rows = ((2, lm // 2, wm), (1, 2 * ln, 32))
    columns = ((ln, wn), (2, 32 * wm))
    atoms = cute.make_layout((rows[0], columns[0], 1), stride=(rows[1], columns[1], 0))
    tile_m = cute.make_layout((lm * wm, 4), stride=(4, 1))
    tile_n = cute.make_layout((ln * wn, 4), stride=(4, 1))
    return cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(f32), atoms, permutation_mnk=(tile_m, tile_n, None))


def tiled_mma_tiled() -> cute.TiledMma:
    """The ``TiledMma`` of the second step."""
    return tiled_mma(TILED)


def _copy(op: Any, rows: int, way: str, cfg: Config) -> cute.TiledCopy:
    run = 4 if way == "mn" else 1
    atom = cute.make_copy_atom(op, f32, num_bits_per_copy=32 * run)
    if way.startswith("k1"):
        threads = cute.make_layout((cfg.threads // 8, 8), stride=(8, 1))
    else:
        across = min(rows // run, cfg.threads)
        threads = cute.make_layout((across, cfg.threads // across), stride=(1, across))
    return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((run, 1)))


def copy_a(way: str = "mn", cfg: Config = PIPELINED) -> cute.TiledCopy:
    """``cp.async`` of a tile of A into shared memory."""
    return _copy(_cp_async(way), cfg.bm, way, cfg)


def copy_b(way: str = "mn", cfg: Config = PIPELINED) -> cute.TiledCopy:
    """``cp.async`` of a tile of B into shared memory."""
    return _copy(_cp_async(way), cfg.bn, way, cfg)


def _cp_async(way: str) -> Any:
    cache = cute.nvgpu.LoadCacheMode.GLOBAL if way == "mn" else cute.nvgpu.LoadCacheMode.ALWAYS
    return cpasync.CopyG2SOp(cache_mode=cache)


def copy_a_tiled(way: str = "mn") -> cute.TiledCopy:
    """The second step's copy of a tile of A: from global memory into registers, and from there into shared memory."""
    return _copy(cute.nvgpu.CopyUniversalOp(), TILED.bm, way, TILED)


def copy_b_tiled(way: str = "mn") -> cute.TiledCopy:
    """The same of B."""
    return _copy(cute.nvgpu.CopyUniversalOp(), TILED.bn, way, TILED)


def _smem(rows: int, way: str, cfg: Config) -> cute.Layout:
    return cute.make_layout((rows, cfg.bk), stride=(1, rows + (4 if way.startswith("k1") else 0)))


def smem_a(way: str = "mn", cfg: Config = PIPELINED) -> cute.Layout:
    """A stage of A's shared memory: (M, K), M contiguous; columns padded by four where the copy transposes."""
    return _smem(cfg.bm, way, cfg)


def smem_b(way: str = "mn", cfg: Config = PIPELINED) -> cute.Layout:
    """A stage of B's shared memory: (N, K)."""
    return _smem(cfg.bn, way, cfg)


def smem_a_padded() -> cute.Layout:
    """A's shared memory in the second step where A is contiguous along K."""
    return smem_a("k1", TILED)


def ring(stage: cute.Layout, stages: int) -> cute.Layout:
    """(rows, K, stage): stages one after another."""
    return cute.make_layout((*stage.shape, stages), stride=(*stage.stride, stage.stride[1] * stage.shape[1]))


def threads_naive() -> cute.Layout:
    """The first step: thread (m, n) of a block's 8x32 elements of C."""
    return cute.make_layout(NAIVE, stride=(NAIVE[1], 1))


def figures() -> dict[str, dict[str, Any]]:
    """What a page shows of each step."""
    return {
        "naive": {"threads": threads_naive()},
        "tiled": {
            "tiled mma": tiled_mma_tiled(),
            "copy A": copy_a_tiled(),
            "copy B": copy_b_tiled(),
            "smem A": smem_a_padded(),
        },
        "pipelined": {
            "tiled mma": tiled_mma(),
            "copy A": copy_a(),
            "copy B": copy_b(),
            "smem A": smem_a(),
            "smem B": smem_b(),
        },
    }


# Step 1 ------------------------------------------------------------------------------------------------------------------


@cute.kernel
def kernel_naive(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block_n, block_m, _ = cute.arch.block_idx()
    m = block_m * NAIVE[0] + thread // NAIVE[1]
    n = block_n * NAIVE[1] + thread % NAIVE[1]
    if m < cute.size(c, mode=[0]) and n < cute.size(c, mode=[1]):
        row, column = a[m, None], b[n, None]
        common.show("sgemm naive", row=row, column=column)
        total = f32(0.0)
        for k in cutlass.range(cute.size(a, mode=[1]), unroll=8):
            total = total + row[k] * column[k]
        c[m, n] = total


@cute.jit
def host_naive(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: Any):
    grid = [cute.ceil_div(cute.size(c, mode=[1]), NAIVE[1]), cute.ceil_div(cute.size(c, mode=[0]), NAIVE[0]), 1]
    kernel_naive(a, b, c).launch(grid=grid, block=[NAIVE[0] * NAIVE[1], 1, 1], stream=stream)


# What steps 2 and 3 share --------------------------------------------------------------------------------------------------


@cute.jit
def inside_rows(places: cute.Tensor, shape: cute.Tensor, limit: cutlass.Int32):
    """For each access of a thread's copy: does its row (M or N) exist? Constant along K."""
    spread = cute.make_layout(
        (shape.shape[0][1], cute.size(shape, mode=[1]), cute.size(shape, mode=[2])),
        stride=(cute.size(shape, mode=[1]), 1, 0),
    )
    inside = cute.make_rmem_tensor(spread, cutlass.Boolean)
    for v in cutlass.range_constexpr(spread.shape[0]):
        for m in cutlass.range_constexpr(spread.shape[1]):
            inside[v, m, 0] = cute.elem_less(places[(0, v), m, 0][0], limit)
    return inside


@cute.jit
def store(
    sums: cute.Tensor,
    tc: cute.Tensor,
    places: cute.Tensor,
    c: cute.Tensor,
    whole: cutlass.Boolean,
    vector: cutlass.Constexpr,
):
    """The accumulators to C: 128-bit stores along N where the tile is whole and C allows, else element by element."""
    rows, runs = cute.size(sums, mode=[1]), cute.size(sums, mode=[2]) // 4
    if cutlass.const_expr(vector):
        if whole:
            four = cute.make_rmem_tensor((4,), f32)
            for i in cutlass.range_constexpr(rows):
                for j in cutlass.range_constexpr(runs):
                    for t in cutlass.range_constexpr(4):
                        four[t] = sums[0, i, 4 * j + t]
                    cute.autovec_copy(four, tc[0, i, (None, j)])
        else:
            store_each(sums, tc, places, c)
    else:
        store_each(sums, tc, places, c)


@cute.jit
def store_each(sums: cute.Tensor, tc: cute.Tensor, places: cute.Tensor, c: cute.Tensor):
    inside = cute.make_rmem_tensor((1, cute.size(sums, mode=[1]), cute.size(sums, mode=[2])), cutlass.Boolean)
    rows = [cute.elem_less(places[0, i, 0][0], c.shape[0]) for i in range(cute.size(sums, mode=[1]))]
    columns = [cute.elem_less(places[0, 0, j][1], c.shape[1]) for j in range(cute.size(sums, mode=[2]))]
    for i in cutlass.range_constexpr(cute.size(sums, mode=[1])):
        for j in cutlass.range_constexpr(cute.size(sums, mode=[2])):
            inside[0, i, j] = rows[i] & columns[j]
    cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), f32, num_bits_per_copy=32), sums, tc, pred=inside)


# Step 2 ------------------------------------------------------------------------------------------------------------------


@cute.kernel
def kernel_tiled(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, ways: cutlass.Constexpr, vector: cutlass.Constexpr):
    cfg = TILED
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    m, n, k = cute.size(a, mode=[0]), cute.size(b, mode=[0]), cute.size(a, mode=[1])
    mma, move_a, move_b = tiled_mma_tiled(), copy_a_tiled(ways[0]), copy_b_tiled(ways[1])

    memory = common.SmemAllocator()
    sa = memory.allocate_tensor(f32, smem_a(ways[0], cfg), 16)
    sb = memory.allocate_tensor(f32, smem_b(ways[1], cfg), 16)
    ga = cute.local_tile(a, (cfg.bm, cfg.bk), (block_m, None))
    gb = cute.local_tile(b, (cfg.bn, cfg.bk), (block_n, None))
    gc = cute.local_tile(c, (cfg.bm, cfg.bn), (block_m, block_n))
    ia = cute.local_tile(cute.make_identity_tensor(a.shape), (cfg.bm, cfg.bk), (block_m, None))
    ib = cute.local_tile(cute.make_identity_tensor(b.shape), (cfg.bn, cfg.bk), (block_n, None))
    ic = cute.local_tile(cute.make_identity_tensor(c.shape), (cfg.bm, cfg.bn), (block_m, block_n))

    mine_a, mine_b, mine = move_a.get_slice(thread), move_b.get_slice(thread), mma.get_slice(thread)
    tga, tsa, tia = mine_a.partition_S(ga), mine_a.partition_D(sa), mine_a.partition_S(ia)
    tgb, tsb, tib = mine_b.partition_S(gb), mine_b.partition_D(sb), mine_b.partition_S(ib)
    ra, rb = cute.make_rmem_tensor_like(tsa), cute.make_rmem_tensor_like(tsb)
    csa, csb, tc, tic = mine.partition_A(sa), mine.partition_B(sb), mine.partition_C(gc), mine.partition_C(ic)
    fa, fb, sums = mma.make_fragment_A(csa), mma.make_fragment_B(csb), mma.make_fragment_C(tc)
    common.show("sgemm tiled", tga=tga, tsa=tsa, ra=ra, tgb=tgb, tsb=tsb, csa=csa, csb=csb, fa=fa, fb=fb, sums=sums)

    sums.fill(0.0)
    for tile in range(cute.size(tga, mode=[3])):
        ra.fill(0.0)
        rb.fill(0.0)
        cute.copy(move_a, tga[None, None, None, tile], ra, pred=common.inside(tia[None, None, None, tile], tsa, m, k))
        cute.copy(move_b, tgb[None, None, None, tile], rb, pred=common.inside(tib[None, None, None, tile], tsb, n, k))
        cute.copy(move_a, ra, tsa)
        cute.copy(move_b, rb, tsb)
        cute.arch.sync_threads()
        for block in cutlass.range_constexpr(cfg.bk):
            cute.autovec_copy(csa[None, None, block], fa[None, None, block])
            cute.autovec_copy(csb[None, None, block], fb[None, None, block])
            cute.gemm(mma, sums, fa[None, None, block], fb[None, None, block], sums)
        cute.arch.sync_threads()
    whole = (block_m + 1) * cfg.bm <= m and (block_n + 1) * cfg.bn <= n
    store(sums, tc, tic, c, whole, vector)


@cute.jit
def host_tiled(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: Any, ways: cutlass.Constexpr, vector: cutlass.Constexpr
):
    grid = [cute.ceil_div(cute.size(c, mode=[0]), TILED.bm), cute.ceil_div(cute.size(c, mode=[1]), TILED.bn), 1]
    kernel_tiled(a, b, c, ways, vector).launch(grid=grid, block=[TILED.threads, 1, 1], stream=stream)


# Step 3 ------------------------------------------------------------------------------------------------------------------


@cute.kernel
def kernel_pipelined(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    ways: cutlass.Constexpr,
    vector: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
    stamps: Any = None,
    chosen: cutlass.Constexpr = (0, 0),
    k_tiles: cutlass.Constexpr = 0,
):
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    m, n, k = cute.size(a, mode=[0]), cute.size(b, mode=[0]), cute.size(a, mode=[1])
    mma, move_a, move_b = tiled_mma(cfg), copy_a(ways[0], cfg), copy_b(ways[1], cfg)
    depth, bk = cfg.stages, cfg.bk
    # stamps of the cycle counter, for a measured timeline: nothing at all without their buffer
    slots = Slots(depth, k_tiles, bk)
    clock = begin(stamps, (block_m, block_n), chosen, thread, slots)

    memory = common.SmemAllocator()
    sa = memory.allocate_tensor(f32, ring(smem_a(ways[0], cfg), depth), 16)
    sb = memory.allocate_tensor(f32, ring(smem_b(ways[1], cfg), depth), 16)
    ga = cute.local_tile(a, (cfg.bm, bk), (block_m, None))
    gb = cute.local_tile(b, (cfg.bn, bk), (block_n, None))
    gc = cute.local_tile(c, (cfg.bm, cfg.bn), (block_m, block_n))
    ia = cute.local_tile(cute.make_identity_tensor(a.shape), (cfg.bm, bk), (block_m, None))
    ib = cute.local_tile(cute.make_identity_tensor(b.shape), (cfg.bn, bk), (block_n, None))
    ic = cute.local_tile(cute.make_identity_tensor(c.shape), (cfg.bm, cfg.bn), (block_m, block_n))

    mine_a, mine_b, mine = move_a.get_slice(thread), move_b.get_slice(thread), mma.get_slice(thread)
    tga, tsa, tia = mine_a.partition_S(ga), mine_a.partition_D(sa), mine_a.partition_S(ia)
    tgb, tsb, tib = mine_b.partition_S(gb), mine_b.partition_D(sb), mine_b.partition_S(ib)
    csa, csb, tc, tic = mine.partition_A(sa), mine.partition_B(sb), mine.partition_C(gc), mine.partition_C(ic)
    fa, fb = mma.make_fragment_A(csa[None, None, None, 0]), mma.make_fragment_B(csb[None, None, None, 0])
    sums = mma.make_fragment_C(tc)
    common.show("sgemm pipelined", tga=tga, tsa=tsa, tgb=tgb, tsb=tsb, csa=csa, csb=csb, fa=fa, fb=fb, sums=sums)
    rows_a = inside_rows(tia[None, None, None, 0], tsa, m)
    rows_b = inside_rows(tib[None, None, None, 0], tsb, n)
    sums.fill(0.0)

    whole_tiles = k // bk
    if whole_tiles > 0:
        last = whole_tiles - 1
        for stage in cutlass.range_constexpr(depth - 1):
            # past the last tile the last comes again: no branch, and nobody reads that stage
            tile = cutlass.min(stage, last)
            mark(clock, slots.copy(stage))
            cute.copy(move_a, tga[None, None, None, tile], tsa[None, None, None, stage], pred=rows_a)
            cute.copy(move_b, tgb[None, None, None, tile], tsb[None, None, None, stage], pred=rows_b)
            cute.arch.cp_async_commit_group()
            mark(clock, slots.commit(stage))
        mark(clock, slots.wait(0))
        cute.arch.cp_async_wait_group(depth - 2)
        mark(clock, slots.landed(0))
        barrier(clock, slots.passed(0))
        cute.autovec_copy(csa[None, None, 0, 0], fa[None, None, 0])
        cute.autovec_copy(csb[None, None, 0, 0], fb[None, None, 0])

        read, write = cutlass.Int32(0), cutlass.Int32(depth - 1)
        for tile in cutlass.range(whole_tiles, unroll=1):
            ahead = cutlass.min(tile + (depth - 1), last)
            for block in cutlass.range_constexpr(bk):
                if cutlass.const_expr(block == bk - 1):
                    # the next tile has landed for every thread, and every thread is done with this one's stage
                    mark(clock, slots.wait(tile + 1))
                    cute.arch.cp_async_wait_group(depth - 2)
                    mark(clock, slots.landed(tile + 1))
                    barrier(clock, slots.passed(tile + 1))
                    read = 0 if read == depth - 1 else read + 1
                following = (block + 1) % bk
                cute.autovec_copy(csa[None, None, following, read], fa[None, None, following])
                cute.autovec_copy(csb[None, None, following, read], fb[None, None, following])
                if cutlass.const_expr(block == 0):
                    mark(clock, slots.copy(tile + depth - 1))
                    cute.copy(move_a, tga[None, None, None, ahead], tsa[None, None, None, write], pred=rows_a)
                mark(clock, slots.block(tile, block))
                cute.gemm(mma, sums, fa[None, None, block], fb[None, None, block], sums)
                if cutlass.const_expr(block == 0):
                    cute.copy(move_b, tgb[None, None, None, ahead], tsb[None, None, None, write], pred=rows_b)
                    cute.arch.cp_async_commit_group()
                    mark(clock, slots.commit(tile + depth - 1))
                    write = 0 if write == depth - 1 else write + 1
        mark(clock, slots.wait(whole_tiles + 1))
        cute.arch.cp_async_wait_group(0)
        mark(clock, slots.landed(whole_tiles + 1))
        barrier(clock, slots.passed(whole_tiles + 1))
        end(clock)

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
        for block in cutlass.range(k - whole_tiles * bk, unroll=1):
            cute.autovec_copy(csa[None, None, block, 0], fa[None, None, 0])
            cute.autovec_copy(csb[None, None, block, 0], fb[None, None, 0])
            cute.gemm(mma, sums, fa[None, None, 0], fb[None, None, 0], sums)

    whole = (block_m + 1) * cfg.bm <= m and (block_n + 1) * cfg.bn <= n
    store(sums, tc, tic, c, whole, vector)


@cute.jit
def host_pipelined(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    stream: Any,
    ways: cutlass.Constexpr,
    vector: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
):
    grid = [cute.ceil_div(cute.size(c, mode=[0]), cfg.bm), cute.ceil_div(cute.size(c, mode=[1]), cfg.bn), 1]
    kernel_pipelined(a, b, c, ways, vector, cfg).launch(
        grid=grid,
        block=[cfg.threads, 1, 1],
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
        preferred_smem_carveout=100,
    )


@cute.jit
def host_stamped(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    stamps: cute.Tensor,
    stream: Any,
    vector: cutlass.Constexpr,
    cfg: cutlass.Constexpr,
    chosen: cutlass.Constexpr,
    k_tiles: cutlass.Constexpr,
):
    """The same kernel with its clock on: block ``chosen`` stamps, for a K of exactly ``k_tiles`` tiles."""
    grid = [cute.ceil_div(cute.size(c, mode=[0]), cfg.bm), cute.ceil_div(cute.size(c, mode=[1]), cfg.bn), 1]
    kernel_pipelined(a, b, c, ("mn", "mn"), vector, cfg, stamps, chosen, k_tiles).launch(
        grid=grid,
        block=[cfg.threads, 1, 1],
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
        preferred_smem_carveout=100,
    )


# Running -----------------------------------------------------------------------------------------------------------------


def _vector(way: str) -> int:
    return 4 if way in ("mn", "n4") else 1


@cache
def compiled(
    step: str,
    arch: str,
    ways: tuple[str, str] = ("mn", "mn"),
    out: str = "n4",
    cfg: Config = PIPELINED,
    options: str = "",
) -> Any:
    """One step compiled for ``arch``, for operands that lie as ``ways`` says and a C that lies as ``out`` says."""
    a, b, c = (common.fake_matrix(f32, UNITS[w], vector=_vector(w)) for w in (*ways, out))
    hosts = {
        "naive": (host_naive, ()),
        "tiled": (host_tiled, (ways, out == "n4")),
        "pipelined": (host_pipelined, (ways, out == "n4", cfg)),
    }
    host, more = hosts[step]
    return common.compile_for(arch, host, (a, b, c), more, options)


def way_of(tensor: Any) -> str:
    """How a (rows, K) torch tensor can be copied: see the module."""
    if common.aligned(tensor, 0, 4):
        return "mn"
    if 1 in tensor.stride():
        return "k1" if tensor.stride(1) == 1 else "mn1"
    return "k1?" if tensor.stride(1) <= tensor.stride(0) else "mn1?"


def out_of(tensor: Any) -> str:
    """How a (M, N) torch tensor can be stored to: see the module."""
    if common.aligned(tensor, 1, 4):
        return "n4"
    return "n" if tensor.stride(1) == 1 else "m" if tensor.stride(0) == 1 else "?"


def prepare(a: Any, b: Any, out: Any = None, *, step: str = "pipelined", cfg: Config | None = None) -> tuple[Any, Any]:
    """(launch, c): a function of no arguments that runs one step on torch's current stream, and where C will be."""
    import torch

    m, n, k = common.check_product(a, b, out, torch.float32)
    c = torch.empty((m, n), dtype=torch.float32, device=a.device) if out is None else out
    if m == 0 or n == 0:
        return (lambda: None), c
    if k == 0:
        return (lambda: c.zero_()), c
    if cfg is None:
        tiles = -(-m // PIPELINED.bm) * -(-n // PIPELINED.bn)
        cfg = PIPELINED if tiles >= 0.75 * torch.cuda.get_device_properties(a.device).multi_processor_count else SMALL
    ways = (way_of(a), way_of(b), out_of(c))
    run = compiled(step, common.device_arch(), ways[:2], ways[2], *((cfg,) if step == "pipelined" else ()))
    arguments = [common.as_argument(t, UNITS[w], vector=_vector(w)) for t, w in zip((a, b, c), ways, strict=True)]
    return (lambda: run(*arguments, common.current_stream())), c


def run(a: Any, b: Any, out: Any = None, *, step: str = "pipelined") -> Any:
    """C = A·Bᵀ on the GPU. a: (M, K), b: (N, K) float32; C is given back (M, N), or written into ``out``."""
    launch, c = prepare(a, b, out, step=step)
    launch()
    return c


naive = partial(run, step="naive")
tiled = partial(run, step="tiled")
pipelined = partial(run, step="pipelined")


def reference(a: Any, b: Any) -> Any:
    """The same in float64 by torch."""
    return a.double() @ b.double().T
