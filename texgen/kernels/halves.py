"""What the two hgemms share before they run: f16 operands as they lie in memory, checked, and where C will be."""

from __future__ import annotations

from typing import Any

from texgen.errors import TexgenError
from texgen.kernels import common
from texgen.kernels.common import f16

VECTOR = 8
"""Halves in one 128-bit access."""

Majors = tuple[str, str]
"""Along which mode A and B are contiguous: ``"k"``, or ``"mn"`` for M or N."""


def unit(major: str) -> int:
    """The mode of a (rows, K) operand whose stride is one."""
    return 1 if major == "k" else 0


def fakes(majors: Majors) -> tuple[Any, Any, Any]:
    """A, B and C of unknown size to compile with."""
    a, b = (common.fake_matrix(f16, unit(major), vector=VECTOR) for major in majors)
    return a, b, common.fake_matrix(f16, 1, vector=VECTOR)


def major_of(name: str, tensor: Any, rows: str) -> str:
    """``"k"`` or ``"mn"``: along which mode a (rows, K) torch tensor is contiguous in aligned runs of 8; else TexgenError."""
    for major in ("k", "mn"):
        if common.aligned(tensor, unit(major), VECTOR):
            return major
    shape, stride = tuple(tensor.shape), tensor.stride()
    raise TexgenError(
        f"{name} is {shape} with strides {stride}, {tensor.data_ptr() % 16} bytes past a multiple of 16; this kernel's 128-bit "
        f"copies need one of its modes ({rows} or K) contiguous, that mode's extent and the other's stride multiples of 8, and an "
        f"aligned start: pad with zeros (torch.nn.functional.pad) or pass {name}.contiguous()"
    )


def operands(a: Any, b: Any, out: Any, stores: str) -> tuple[Majors, Any]:
    """(how A and B lie, C) of a product A·Bᵀ; ``stores`` names what writes C. Raises TexgenError where they do not fit."""
    import torch

    m, n, _ = common.check_product(a, b, out, torch.float16)
    majors = (major_of("A", a, "M"), major_of("B", b, "N"))
    c = torch.empty((m, n), dtype=torch.float16, device=a.device) if out is None else out
    if c.numel() and not common.aligned(c, 1, VECTOR):
        raise TexgenError(
            f"C is {m}x{n} with strides {c.stride()}; {stores} need N a multiple of 8 and C contiguous along N: "
            "pad B with zero rows (torch.nn.functional.pad)"
        )
    return majors, c


def arguments(a: Any, b: Any, c: Any, majors: Majors) -> list[Any]:
    """The three torch tensors as a compiled kernel takes them."""
    return [common.as_argument(t, unit(major), vector=VECTOR) for t, major in zip((a, b, c), (*majors, "k"), strict=True)]


def reference(a: Any, b: Any) -> Any:
    """C = A·Bᵀ in float64 by torch."""
    return a.double() @ b.double().T
