"""``vector_add``: z = a·x + b·y + c in half precision.

x, y, z: (N,) float16, contiguous, 16-byte aligned; a, b, c: Python floats, rounded to half. Any N; eight elements a
thread through a local tile of 2048, one 128-bit load of x and one of y, four packed fused multiply-adds twice
(b·y + c, then a·x + that), one 128-bit store. The last thread's tail goes element by element.
Reference: the same in torch's float32, rounded once.
"""

from functools import cache
from typing import Any

import cutlass
import cutlass.cute as cute

from texgen.errors import TexgenError
from texgen.kernels import common

THREADS, VALUES = 256, 8
TILE = THREADS * VALUES


def tiled_copy() -> cute.TiledCopy:
    """256 threads, eight neighbouring halves each: one 128-bit access a thread."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), common.f16, num_bits_per_copy=128)
    return cute.make_tiled_copy_tv(atom, cute.make_layout((THREADS,)), cute.make_layout((VALUES,)))


def figures() -> dict[str, Any]:
    """What a page shows of this kernel."""
    return {"tiled copy": tiled_copy()}


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, a: cutlass.Float32, b: cutlass.Float32, c: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    copy = tiled_copy()
    mine = copy.get_slice(thread)
    tx = mine.partition_S(cute.local_tile(x, (TILE,), (block,)))
    ty = mine.partition_S(cute.local_tile(y, (TILE,), (block,)))
    tz = mine.partition_D(cute.local_tile(z, (TILE,), (block,)))
    rx, ry, rz = cute.make_rmem_tensor_like(tx), cute.make_rmem_tensor_like(ty), cute.make_rmem_tensor_like(tz)
    common.show("vector_add", tx=tx, ty=ty, tz=tz, rx=rx)

    scalars = cute.make_rmem_tensor((2, 3), common.f16)
    for i in cutlass.range_constexpr(2):
        scalars[i, 0], scalars[i, 1], scalars[i, 2] = a.to(common.f16), b.to(common.f16), c.to(common.f16)
    packed = cute.recast_tensor(scalars, cutlass.Int32)
    a2, b2, c2 = packed[0], packed[1], packed[2]

    start = block * TILE + thread * VALUES
    n = cute.size(x)
    if start + VALUES <= n:
        cute.copy(copy, tx, rx)
        cute.copy(copy, ty, ry)
        px, py, pz = (cute.recast_tensor(r, cutlass.Int32) for r in (rx, ry, rz))
        for i in cutlass.range_constexpr(VALUES // 2):
            inner = cute.arch.fma_packed_f16x2(b2, py[i], c2)
            pz[i] = cute.arch.fma_packed_f16x2(a2, px[i], inner)
        cute.copy(copy, rz, tz)
    elif start < n:
        for i in range(n - start):
            inner = cute.arch.fma_f16(scalars[0, 1], y[start + i], scalars[0, 2])
            z[start + i] = cute.arch.fma_f16(scalars[0, 0], x[start + i], inner)


@cute.jit
def host(
    x: cute.Tensor,
    y: cute.Tensor,
    z: cute.Tensor,
    a: cutlass.Float32,
    b: cutlass.Float32,
    c: cutlass.Float32,
    stream: Any,
):
    kernel(x, y, z, a, b, c).launch(
        grid=[cute.ceil_div(cute.size(x), TILE), 1, 1], block=[THREADS, 1, 1], stream=stream
    )


@cache
def compiled(arch: str, options: str = "") -> Any:
    """The kernel compiled for ``arch``; needs no GPU."""
    fakes = [common.fake_vector(common.f16, vector=VALUES) for _ in range(3)]
    scalars = [cutlass.Float32(0.0)] * 3
    return common.compile_for(arch, host, [*fakes, *scalars], options=options)


def prepare(x: Any, y: Any, a: float, b: float, c: float, out: Any = None) -> tuple[Any, Any]:
    """(launch, z): a function of no arguments that runs the kernel on torch's current stream, and where z will be."""
    import torch

    z = torch.empty_like(x) if out is None else out
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        common.check_tensor(name, tensor, torch.float16, 1)
        if tensor.shape != x.shape:
            raise TexgenError(f"x has {x.shape[0]} elements and {name} {tensor.shape[0]}; give vectors of one length")
        if tensor.shape[0] > 1 and tensor.stride(0) != 1:
            raise TexgenError(
                f"{name} has stride {tensor.stride(0)}; vector_add takes contiguous vectors: pass {name}.contiguous()"
            )
        if tensor.data_ptr() % 16:
            raise TexgenError(
                f"{name} starts {tensor.data_ptr() % 16} bytes past a multiple of 16; 128-bit loads need an aligned start: "
                f"pass {name}.clone()"
            )
    n = x.shape[0]
    if n >= 2**31 - TILE:
        raise TexgenError(f"{n} elements; vector_add counts in 32 bits: split the vectors")
    if n == 0:
        return (lambda: None), z
    run = compiled(common.device_arch())
    arguments = [common.as_argument(t, 0, vector=VALUES) for t in (x, y, z)]
    scalars = [cutlass.Float32(s) for s in (a, b, c)]
    return (lambda: run(*arguments, *scalars, common.current_stream())), z


def run(x: Any, y: Any, a: float, b: float, c: float, out: Any = None) -> Any:
    """z = a·x + b·y + c of two float16 vectors on the GPU."""
    launch, z = prepare(x, y, a, b, c, out)
    launch()
    return z


def reference(x: Any, y: Any, a: float, b: float, c: float) -> Any:
    """The same in float32 by torch, the scalars rounded to half as the kernel has them, the result not rounded."""
    import torch

    a, b, c = (float(torch.tensor(s, dtype=torch.float16)) for s in (a, b, c))
    return a * x.float() + b * y.float() + c
