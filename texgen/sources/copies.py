"""Copy operations as C++ names them: ``Copy_Atom<UniversalCopy<uint128_t>, half_t>`` → a copy atom of the catalogue."""

from __future__ import annotations

import re
from dataclasses import replace

from texgen.copy_tiling import CopyAtom
from texgen.errors import TexgenError
from texgen.sources import catalog

# Widths of CUTLASS's and CUDA's element types in bits.
CPP_WIDTHS = {
    "double": 64, "float": 32, "tfloat32_t": 32, "half_t": 16, "half": 16, "__half": 16, "bfloat16_t": 16, "__nv_bfloat16": 16,
    "float_e4m3_t": 8, "float_e5m2_t": 8, "float_ue8m0_t": 8, "float_ue4m3_t": 8, "float_e2m1_t": 4, "float_e2m3_t": 6,
    "float_e3m2_t": 6, "char": 8, "bool": 8, "short": 16, "int": 32, "unsigned": 32, "long": 64, "int4b_t": 4, "uint4b_t": 4,
    "int2b_t": 2, "uint1b_t": 1, "bin1_t": 1,
}  # fmt: skip
SAME_WIDTH = ("DefaultCopy", "AutoVectorizingCopy", "AutoVectorizingCopyWithAssumedAlignment", "UniversalCopy")
"""Operations whose width is the element's own (or their argument's) and no part of their name."""


def cpp_width(name: str) -> int:
    """The width of a C++ type in bits, 0 for a type that is not known.

    >>> cpp_width("cute::uint128_t"), cpp_width("half_t")
    (128, 16)
    """
    short = name.strip().rpartition("::")[2].removeprefix("const ").strip()
    match = re.fullmatch(r"u?int(\d{1,4})_t", short)
    return int(match.group(1)) if match else CPP_WIDTHS.get(short, 0)


def cpp_copy(op: str, dtype: str = "", op_args: tuple[str, ...] = ()) -> CopyAtom:
    """The atom of a copy operation for elements of ``dtype`` (a C++ type; empty: the operation's own unit).

    Raises TexgenError for an operation that is not in the catalogue, a type that is not known, and elements that the
    operation does not copy whole.
    """
    bits = cpp_width(dtype) if dtype else 0
    if dtype and not bits:
        raise TexgenError(
            f"The width of the C++ type {dtype} is not known: write a type such as half_t, float or uint8_t."
        )
    if op in SAME_WIDTH:
        moved = cpp_width(op_args[0]) if op_args and op == "UniversalCopy" else bits or 8
        if op_args and not moved:
            raise TexgenError(f"The width of the C++ type {op_args[0]} is not known: write a type such as uint128_t.")
        name = f"UniversalCopy<uint{moved}_t>"
    else:
        name = f"{op}<{', '.join(op_args)}>" if op_args else op
    atom = catalog.find(name).atom()
    if not isinstance(atom, CopyAtom):
        raise TexgenError(f"{name} is an MMA, and a copy is wanted here.")
    return replace(atom.of_bits(bits), name=f"{name}, {dtype}") if bits else atom
