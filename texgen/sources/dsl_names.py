"""Names, element types and architectures of the DSL's MMA and copy operations, as CuTe C++ would write them.

Works on an operation's class name, module and fields alone, so it imports nothing of the DSL.
"""

from __future__ import annotations

import re
from typing import Any

DTYPES = {
    "Float16": "f16", "BFloat16": "bf16", "TFloat32": "tf32", "Float32": "f32", "Float64": "f64", "Boolean": "b1",
    "Float8E4M3": "e4m3", "Float8E4M3FN": "e4m3", "Float8E4M3B11FNUZ": "e4m3b11", "Float8E5M2": "e5m2",
    "Float8E8M0FNU": "ue8m0", "FloatNV8E5M3FNU": "ue5m3", "Float6E2M3FN": "e2m3", "Float6E3M2FN": "e3m2",
    "Float4E2M1FN": "e2m1",
}  # fmt: skip


def dtype_name(dtype: Any) -> str:
    """``f16``, ``bf16``, ``e4m3``, ``s8`` and so on for a DSL number class; empty for None."""
    name = getattr(dtype, "__name__", "") if dtype is not None else ""
    if whole := re.fullmatch(r"(Ui|I)nt(\d+)", name):
        return ("u" if whole[1] == "Ui" else "s") + whole[2]
    return DTYPES.get(name, name)


def family(op: Any) -> str:
    """``warp``, ``warpgroup``, ``tcgen05``, ``cpasync`` or ``universal``: the part of the DSL an operation is from."""
    parts = type(op).__module__.split(".")
    for known in ("warpgroup", "warp", "tcgen05", "cpasync"):
        if known in parts:
            return known
    return "universal"


def mma_dtypes(op: Any) -> tuple[str, str, str]:
    """(A, B, C) element types of an MMA operation, empty where it does not say."""
    both = getattr(op, "ab_dtype", None) or getattr(op, "abacc_dtype", None)
    a, b = getattr(op, "a_dtype", None) or both, getattr(op, "b_dtype", None) or both
    c = getattr(op, "acc_dtype", None) or getattr(op, "abacc_dtype", None)
    if "TF32" in type(op).__name__:
        return dtype_name(a) or "tf32", dtype_name(b) or "tf32", dtype_name(c) or "f32"
    return dtype_name(a), dtype_name(b), dtype_name(c)


def _member(op: Any, field: str) -> str:
    """The name of an enum field: ``SMEM`` for ``OperandSource.SMEM``."""
    return str(getattr(op, field, "")).rsplit(".", 1)[-1]


def mma_memory(op: Any) -> tuple[str, str, str]:
    """Where A, B and C live: ``rmem``, ``smem`` or ``tmem``."""
    kind, source = family(op), _member(op, "a_src")
    if kind == "warpgroup":
        return ("rmem" if source == "RMEM" else "smem"), "smem", "rmem"
    if kind == "tcgen05":
        return ("tmem" if source == "TMEM" else "smem"), "smem", "tmem"
    return "rmem", "rmem", "rmem"


def scale_dtype(op: Any) -> str:
    """The element type of a block-scaled operation's scale factors, empty for others."""
    return dtype_name(getattr(op, "sf_type", None) or getattr(op, "sf_dtype", None))


def mma_name(op: Any, mnk: tuple[int, int, int]) -> str:
    """The operation's name in the manner of CuTe C++ and of texgen's catalogue: ``SM80_16x8x16_F32F16F16F32_TN``."""
    a, b, c = (x.upper() for x in mma_dtypes(op))
    shape, kind, cls = "x".join(map(str, mnk)), family(op), type(op).__name__
    if kind == "universal":
        return f"UniversalFMA_{c}" if cls == "MmaUniversalOp" else cls
    memory = mma_memory(op)
    sources = {"rmem": "R", "tmem": "T"}.get(memory[0], "S") + "S"
    sm = "SM" + mma_arch(op).removeprefix("sm_").rstrip("af")
    if kind == "tcgen05" and _member(op, "cta_group") == "TWO":
        sm += "_2SM"
    sparse = "_SPARSE" if "Sparse" in cls else ""
    scale = scale_dtype(op).upper().replace("E4M3", "UE4M3")
    scaled = f"_{scale}_VS{getattr(op, 'sf_vec_size', '')}" if scale else ""
    if kind == "warp":
        return f"{sm}_{shape}_{c}{a}{b}{c}{scaled}_TN{sparse}"
    return f"{sm}_{shape}_{c}{a}{b}{scaled}_{sources}{sparse}"


def mma_arch(op: Any) -> str:
    """The least architecture with the operation's instruction; empty for one that every architecture has."""
    kind, cls = family(op), type(op).__name__
    if version := re.match(r"SM(\d+)", cls):
        return f"sm_{version[1]}a"
    if kind == "warp":
        return "sm_120a" if scale_dtype(op) else "sm_89" if "FP8" in cls else "sm_80"
    return {"warpgroup": "sm_90a", "tcgen05": "sm_100a"}.get(kind, "")


def mma_notes(op: Any) -> tuple[str, ...]:
    """What a figure of the operation should say beside its tables."""
    notes = []
    majors = _member(op, "a_major_mode"), _member(op, "b_major_mode")
    if all(majors):
        named = [{"MN": "M" if x == "A" else "N"}.get(m, m) for x, m in zip("AB", majors, strict=True)]
        notes.append(f"A is {named[0]}-major and B {named[1]}-major in memory; the maps do not depend on it.")
    if family(op) == "tcgen05":
        notes.append("The threads of these maps are CTAs: one of them issues the instruction.")
    if "Sparse" in type(op).__name__:
        notes.append("A is sparse: its k counts logical elements, half of which are stored.")
    if scale_dtype(op):
        notes.append("The scale factors (SFA, SFB) are not part of these maps.")
    return tuple(notes)


def is_matrix_copy(op: Any) -> bool:
    """True for ldmatrix and stmatrix."""
    return type(op).__name__.startswith(("LdMatrix", "StMatrix"))


def is_tma(op: Any) -> bool:
    """True for TMA operations, which one thread issues for a whole box."""
    return any(cls.__name__ == "TmaCopyOp" for cls in type(op).__mro__) or "BulkTensor" in type(op).__name__


def tmem_sides(op: Any) -> tuple[bool, bool]:
    """(source, destination) lies in tensor memory."""
    cls = type(op).__name__
    if family(op) != "tcgen05":
        return False, False
    return cls.startswith("Ld"), cls.startswith(("St", "Cp"))


def copy_name(op: Any, dtype: str, bits: int) -> str:
    """The operation's name in the manner of CuTe C++: ``SM75_U32x4_LDSM_N``; ``bits`` is the width of one copy."""
    cls, n = type(op).__name__, getattr(op, "num_matrices", 0)
    if cls == "LdMatrix8x8x16bOp":
        return f"SM75_U16x{2 * n}_LDSM_T" if op.transpose else f"SM75_U32x{n}_LDSM_N"
    if cls == "StMatrix8x8x16bOp":
        return f"SM90_U16x{2 * n}_STSM_T" if op.transpose else f"SM90_U32x{n}_STSM_N"
    if cls == "StMatrix16x8x8bOp":
        return f"SM100_U8x{4 * n}_STSM_T"
    if is_matrix_copy(op):
        turned = "T" if op.transpose else "N"
        if packed := getattr(op, "unpack_bits", None):
            return f"SM100_SU{packed}_DU8x16_x{n}_LDSM_{turned}"
        if cls == "LdMatrix16x16x8bOp":
            return f"SM100_U8x{8 * n}_LDSM_T"
        return f"SM75_U32x{n}_LDSM_N" if cls == "LdMatrix8x16x8bOp" else f"SM100_{cls[8:-2]}_x{n}_LDSM_{turned}"
    if tmem := re.fullmatch(r"(Ld|St)(16|32)x(\d+)b(x2)?Op", cls):
        verb = "LOAD" if tmem[1] == "Ld" else "STORE"
        repeat = _member(op, "repeat").lstrip("x")
        packed = "_16b" if "16b" in _member(op, "pack").lower() + _member(op, "unpack").lower() else ""
        return f"SM100_TMEM_{verb}_{tmem[2]}dp{tmem[3]}b{repeat}x{packed}"
    width = f"uint{bits}_t" if bits else dtype
    if cls == "CopyUniversalOp":
        return f"UniversalCopy<{width}>"
    if cls == "CopyG2SOp":
        mode = "GLOBAL" if "GLOBAL" in str(getattr(op, "cache_mode", "")) else "ALWAYS"
        return f"SM80_CP_ASYNC_CACHE{mode}<{width}>"
    return cls.removesuffix("Op")


def copy_arch(op: Any) -> str:
    """The least architecture with the operation's instruction; empty for one that every architecture has."""
    cls = type(op).__name__
    if is_matrix_copy(op):
        if "x8x16b" in cls:
            return "sm_90" if cls.startswith("St") else "sm_75"
        return "sm_75" if cls == "LdMatrix8x16x8bOp" and not getattr(op, "unpack_bits", None) else "sm_100a"
    if family(op) == "tcgen05":
        return "sm_100a"
    return {"CopyG2SOp": "sm_80"}.get(cls, "sm_90" if cls.startswith("CopyBulk") else "")


def copy_notes(op: Any, bits: int) -> tuple[str, ...]:
    """What a figure of the operation should say beside its tables; ``bits`` is the element's width."""
    if not is_matrix_copy(op):
        return ()
    cls = type(op).__name__
    where = "source" if cls.startswith("Ld") else "destination"
    notes = []
    if bits:
        notes.append(
            f"In shared memory ({where}) each lane's address holds 16 contiguous bytes, {128 // bits} elements: "
            f"they must be contiguous along the mode that one thread's values run along."
        )
    if "x8x16b" in cls and op.transpose and bits == 8:
        notes.append("The transposing form moves 16-bit units, so two neighbouring 8-bit elements travel together.")
    return tuple(notes)
