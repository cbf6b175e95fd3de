"""CuTe C++'s tcgen05 atoms, whose types are templates, as the catalogue's names.

``SM100_MMA_F16BF16_SS<half_t, half_t, float, 128, 256, UMMA::Major::K, UMMA::Major::K>`` is
``SM100_128x256x16_F32F16F16_SS`` (cute/arch/mma_sm100_umma.hpp: a, b and c types, M, N).
"""

from __future__ import annotations

import re

from texgen.errors import TexgenError

NAME = re.compile(r"SM100_MMA_(F16BF16|TF32|F8F6F4|S8|I8)_(2x1SM_)?(SS|TS)(_SPARSE)?")
TYPES = {
    "half_t": "F16", "bfloat16_t": "BF16", "tfloat32_t": "TF32", "float": "F32", "int8_t": "S8", "uint8_t": "U8",
    "int32_t": "S32", "int": "S32", "float_e4m3_t": "E4M3", "float_e5m2_t": "E5M2", "float_e2m3_t": "E2M3",
    "float_e3m2_t": "E3M2", "float_e2m1_t": "E2M1",
}  # fmt: skip
K_BYTES = 32
"""The K extent of every dense tcgen05 MMA: 32 bytes of one row (PTX ISA, tcgen05.mma shapes)."""
WIDTH = {"F16": 2, "BF16": 2, "TF32": 4}


def catalogue_name(op: str, arguments: tuple[str, ...]) -> str:
    """The catalogue's name of a templated tcgen05 atom; other names come back as they are.

    Raises TexgenError where the template's arguments are missing or not understood.
    """
    match = NAME.fullmatch(op)
    if not match:
        return op
    _, pair, kind, sparse = match.groups()
    short = [a.strip().rpartition("::")[2] for a in arguments]
    try:
        a, b, c = (TYPES[t] for t in short[:3])
        m, n = (int(re.sub(r"^(?:C<|Int<|_)?(\d+)>?$", r"\1", x)) for x in short[3:5])
    except (KeyError, ValueError):
        raise TexgenError(
            f"{op} names no atom without its types and shape: write {op}<half_t, half_t, float, 128, 256, "
            f"UMMA::Major::K, UMMA::Major::K>, or the catalogue's name, SM100_128x256x16_F32F16F16_SS."
        ) from None
    k = K_BYTES // WIDTH.get(a, 1) * (2 if sparse else 1)
    return f"SM100_{'2SM_' if pair else ''}{m}x{n}x{k}_{c}{a}{b}_{kind}{sparse or ''}"
