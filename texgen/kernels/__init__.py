"""Kernels in the CuTe DSL, each with its torch reference and the plain functions that build what it partitions with.

The figures call the same functions as the kernels: ``texgen render texgen/kernels/sgemm.py:tiled_mma``. Each module has
``run`` (on torch tensors on the GPU), ``prepare`` (the same in two steps), ``compiled`` (needs no GPU), ``reference`` and
``figures``. They need the DSL; running them needs torch and a GPU (the ``[gpu]`` extra). Nothing is imported until asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """One kernel: its name in results and on pages, its module, the step of a ladder, its dtype, and where it runs."""

    name: str
    module: str
    dtype: str
    architectures: tuple[str, ...]
    step: str = ""

    def load(self) -> Any:
        """The module. Imports the DSL."""
        return import_module(self.module)

    @property
    def sources(self) -> tuple[str, ...]:
        """The modules that decide what this kernel does: what its ``source_hash`` is of."""
        more = ("texgen.kernels.halves",) if self.name.startswith("hgemm") else ()
        return (self.module, *more, "texgen.kernels.common")


_ANY = ("sm_80", "sm_90a")
KERNELS = {
    k.name: k
    for k in (
        Kernel("vector_add", "texgen.kernels.vector_add", "float16", _ANY),
        Kernel("sgemm_naive", "texgen.kernels.sgemm", "float32", _ANY, "naive"),
        Kernel("sgemm_tiled", "texgen.kernels.sgemm", "float32", _ANY, "tiled"),
        Kernel("sgemm_pipelined", "texgen.kernels.sgemm", "float32", _ANY, "pipelined"),
        Kernel("hgemm_sm80", "texgen.kernels.hgemm_sm80", "float16", _ANY),
        Kernel("hgemm_sm90", "texgen.kernels.hgemm_sm90", "float16", ("sm_90a",)),
    )
}
