"""What the kernels share: tensors to compile with, checks of what is handed in, and ``VERBOSE``.

A kernel is compiled once for each architecture and each way its operands lie in memory, through fake tensors with
symbolic extents, and then runs on any size. Nothing here needs a GPU until ``launch`` is called.
"""

import os
from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_stream, make_fake_tensor

from texgen.errors import TexgenError

try:
    from cutlass.memory import SmemAllocator as SmemAllocator
except ImportError:  # before 4.8
    from cutlass.utils import SmemAllocator as SmemAllocator

VERBOSE = os.environ.get("TEXGEN_VERBOSE", "") not in ("", "0")
"""Set it (or ``TEXGEN_VERBOSE=1``) before a kernel is compiled: each step prints what it partitions, once, as traced."""

ARCHITECTURES = ("sm_80", "sm_90a")


def show(step: str, **parts: Any) -> None:
    """Print what a step partitions, one part a line; silent unless ``VERBOSE``."""
    if not VERBOSE:
        return
    print(f"[{step}]")
    for name, part in parts.items():
        text = getattr(part, "layout", part)
        print(f"  {name:<10} {' '.join(str(text).split())}")


def set_arch(arch: str) -> None:
    """Make the DSL build for ``arch`` from now on, in this process."""
    from cutlass.cutlass_dsl import CuTeDSL

    CuTeDSL._get_dsl().envar.arch = arch


def device_arch() -> str:
    """The architecture of the current CUDA device, as the DSL names it (``sm_90a`` on a Hopper)."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def fake_matrix(dtype: Any, unit: int | None, *, vector: int = 1) -> Any:
    """A matrix of unknown size to compile with.

    ``unit`` is the mode whose stride is one (None: both strides unknown); ``vector`` is the number of elements that every
    row start, and the pointer, is a multiple of.
    """
    shape = tuple(cute.sym_int32(divisibility=vector if i == unit else 1) for i in range(2))
    stride = tuple(1 if i == unit else cute.sym_int64(divisibility=vector) for i in range(2))
    return make_fake_tensor(dtype, shape, stride, assumed_align=vector * dtype.width // 8)


def fake_vector(dtype: Any, *, vector: int = 1) -> Any:
    """A contiguous vector of unknown length to compile with, its pointer a multiple of ``vector`` elements."""
    return make_fake_tensor(dtype, (cute.sym_int32(),), (1,), assumed_align=vector * dtype.width // 8)


def compile_for(
    arch: str, host: Any, arguments: Sequence[Any], constants: Sequence[Any] = (), options: str = ""
) -> Any:
    """``host`` compiled for ``arch`` with these arguments (fakes), a stream, and compile-time constants. Needs no GPU."""
    set_arch(arch)
    options = f"--gpu-arch {arch} {options}".strip()
    return cute.compile(host, *arguments, make_fake_stream(), *constants, options=options)


def as_argument(tensor: Any, unit: int | None, *, vector: int = 1) -> Any:
    """A torch tensor as a compiled kernel takes it; ``unit`` and ``vector`` as for ``fake_matrix``."""
    from cutlass.cute.runtime import from_dlpack

    width = tensor.element_size()
    if 0 in tensor.stride():  # of an extent of one: any other stride will do, and the DSL would fix this one
        strides = [s or (1 if i == unit else max(tensor.numel(), 2)) for i, s in enumerate(tensor.stride())]
        tensor = tensor.as_strided(tensor.shape, strides)
    wrapped = from_dlpack(tensor.detach(), assumed_align=vector * width)
    return wrapped.mark_layout_dynamic(leading_dim=unit)


def current_stream() -> Any:
    """torch's current stream as the DSL takes it."""
    import cuda.bindings.driver as cuda
    import torch

    return cuda.CUstream(torch.cuda.current_stream().cuda_stream)


def check_tensor(name: str, tensor: Any, dtype: Any, rank: int) -> None:
    """Raise TexgenError, in one sentence, unless ``tensor`` is on the GPU with this torch dtype and rank."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TexgenError(f"{name} is a {type(tensor).__name__}; the kernel takes torch tensors")
    if tensor.dtype != dtype:
        raise TexgenError(f"{name} is {tensor.dtype}; this kernel takes {dtype}: convert it with .to({dtype})")
    if tensor.dim() != rank:
        raise TexgenError(f"{name} has {tensor.dim()} dimensions; this kernel takes {rank}")
    if not tensor.is_cuda:
        raise TexgenError(f"{name} lies on {tensor.device}; this kernel takes tensors on a CUDA device")


def check_product(a: Any, b: Any, out: Any, dtype: Any) -> tuple[int, int, int]:
    """(M, N, K) of ``a`` (M, K) times ``b`` (N, K) into ``out`` (M, N) or None; raises TexgenError where they do not fit."""
    for name, tensor in (("A", a), ("B", b), *((("C", out),) if out is not None else ())):
        check_tensor(name, tensor, dtype, 2)
        if (
            any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            and name != "C"
        ):
            raise TexgenError(f"{name} repeats a row or column (an expanded view, stride 0): pass {name}.contiguous()")
        if tensor.device != a.device:
            raise TexgenError(f"A lies on {a.device} and {name} on {tensor.device}; put them on one device")
    (m, k), (n, k_b) = a.shape, b.shape
    if k != k_b:
        raise TexgenError(
            f"A is (M, K) = {m}x{k} and B is (N, K) = {n}x{k_b}: their K differ (B is given as B^T: pass b.T)"
        )
    if out is not None and tuple(out.shape) != (m, n):
        raise TexgenError(f"C is {out.shape[0]}x{out.shape[1]}, but A and B give {m}x{n}")
    if max(m, n, k) >= 2**31:
        raise TexgenError("an extent of 2^31 or more; the kernels count in 32 bits")
    if out is not None and overlaps(out):
        raise TexgenError(
            "C has several elements at one address (an expanded or overlapping view); give one with its own memory"
        )
    return m, n, k


def overlaps(tensor: Any) -> bool:
    """True where two elements of a tensor may share an address (a stride of 0, or one that the inner modes reach past)."""
    reach = 0
    for size, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda p: abs(p[1])):
        if size > 1:
            if abs(stride) <= reach:
                return True
            reach += (size - 1) * abs(stride)
    return False


def aligned(tensor: Any, unit: int, vector: int) -> bool:
    """True where runs of ``vector`` elements along mode ``unit`` can be moved as one: stride 1, starts and extent right."""
    other = tensor.stride(1 - unit)
    return bool(
        tensor.stride(unit) == 1
        and tensor.shape[unit] % vector == 0
        and (other % vector == 0 or tensor.shape[1 - unit] == 1)
        and tensor.data_ptr() % (vector * tensor.element_size()) == 0
    )


f16, f32 = cutlass.Float16, cutlass.Float32


@cute.jit
def raster(block: cutlass.Int32, tiles_m: cutlass.Int32, tiles_n: cutlass.Int32, group: cutlass.Constexpr):
    """(m, n) of the tile that block number ``block`` takes: down ``group`` rows of tiles, then along, so that blocks at
    work together share rows of A and columns of B in the L2."""
    band = group * tiles_n
    first = block // band * group
    height = cutlass.min(tiles_m - first, group)
    rest = block % band
    return first + rest % height, rest // height


@cute.jit
def inside(places: cute.Tensor, shape: cute.Tensor, limit: cutlass.Int32, limit_k: cutlass.Int32):
    """For each access of a thread's copy: does it begin inside? ``places`` holds coordinates as the copy partitions them."""
    flags = cute.make_rmem_tensor(
        (shape.shape[0][1], cute.size(shape, mode=[1]), cute.size(shape, mode=[2])), cutlass.Boolean
    )
    for v in cutlass.range_constexpr(flags.shape[0]):
        for m in cutlass.range_constexpr(flags.shape[1]):
            for k in cutlass.range_constexpr(flags.shape[2]):
                place = places[(0, v), m, k]
                flags[v, m, k] = cute.elem_less(place[0], limit) and cute.elem_less(place[1], limit_k)
    return flags
