"""Atoms that the DSL lacks, from ``tensor-layouts``: Volta, Turing, int8, int4, b1, f64, AMD, Intel.

Each becomes a line of the catalogue. Known mistakes of the library are corrected here, each with its reason.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from texgen.layouts import Layout, flat
from texgen.tiling import from_tl

WARP_INTEGER = r"(SM80_\d+x\d+x\d+)_S32S(8|4)S\2S32_TN$"

INT4_B = (
    "B's lane stride is 64, not the 32 of tensor-layouts 0.3.2, which reaches 160 of the 256 cells "
    "(NVIDIA/cutlass#3140 mended the same mistake in mma_traits_sm80.hpp)"
)
MFMA = (
    "the lane's block is lane // 32 (or // 16) and a value's row is value % 4, as tensor-layouts' own text and AMD's "
    "matrix instruction calculator say, while its layouts take the lane's block as lane % 2 (or % 4) and let the "
    "blocks share one k"
)
WMMA3 = (
    "on RDNA3 lanes 16 to 31 hold A and B again and a value's row in C is 2*value + lane//16 (AMD GPUOpen, "
    "'How to accelerate AI applications on RDNA 3 using WMMA'); tensor-layouts has RDNA4's split instead"
)
WMMA4 = "the k half is lane // 16 and C's column lane % 16, as tensor-layouts' own text says; its layouts take lane % 2"

VENDORS = {
    "CDNA_": "gfx908", "CDNA3_": "gfx942", "CDNA3P_": "gfx950", "RDNA3_": "gfx11", "RDNA4_": "gfx12",
    "XeHPC_": "XeHPC", "XeHPG_": "XeHPG", "AMX_": "AMX",
}  # fmt: skip
SKIPPED = {
    # These write several 32x32 (16x16) blocks, and the library's layouts describe a single one.
    "CDNA_32x32x4_F32F16F16_MFMA", "CDNA_16x16x4_F32F16F16_MFMA", "CDNA_4x4x4_F32F16F16_MFMA",
}  # fmt: skip


def library_atoms() -> Iterator[dict[str, Any]]:
    """The lines of every MMA atom of ``tensor-layouts``, of their twins, and of its copies that the DSL lacks."""
    origin = f"tensor-layouts {version('tensor-layouts')}"
    for module in ("atoms_nv", "atoms_amd", "atoms_xe", "atoms_amx"):
        try:
            library = importlib.import_module(f"tensor_layouts.{module}")
        except ImportError:
            continue
        for name, atom in vars(library).items():
            if type(atom).__name__ == "MMAAtom" and not name.startswith("_") and name not in SKIPPED:
                yield from _lines(name, atom, origin)
        if module == "atoms_nv":
            yield from _wgmma_tf32(library, origin)
            yield from _shuffles(library, origin)


def _lines(name: str, atom: Any, origin: str) -> Iterator[dict[str, Any]]:
    line = _line(name, atom, origin)
    _correct(line)
    yield line
    yield from _twins(line)


def _line(name: str, atom: Any, origin: str) -> dict[str, Any]:
    tv = {x: from_tl(getattr(atom, f"{x.lower()}_layout")) for x in "ABC"}
    thr = from_tl(atom.thr_id) if atom.thr_id is not None else Layout(tv["C"].mode(0).size, 1)
    line: dict[str, Any] = {"name": name, "kind": "mma", "arch": _arch(name), "origin": origin}
    if name.startswith("SM61"):  # C++ has the library's second name
        line |= {"name": atom.name, "aka": [name]}
    line |= {"mnk": list(atom.shape_mnk), "thr": _plain(thr)} | {x: _plain(v) for x, v in tv.items()}
    line["types"] = _types(name)
    if memory := _memories(name):
        line["mem"] = memory
    line["ptx"] = atom.ptx
    if name.startswith(("Xe", "RDNA4")):
        line["notes"] = ["shape and lanes as tensor-layouts has them; not held against the vendor's manual"]
    if name.startswith("Xe"):
        line["notes"].append("K counts 32-bit groups of k")
    return line


def _correct(line: dict[str, Any]) -> None:
    """Right what is known to be wrong in the library."""
    name = line["name"]
    m, n, k = line["mnk"]
    if name == "SM80_16x8x32_S32S4S4S32_TN" and line["B"] == [[[4, 8], 8], [[32, 1], 8]]:
        line["B"] = [[[4, 8], 8], [[64, 1], 8]]
        line["corrected"] = INT4_B
    elif name.endswith("_MFMA"):
        (blocks, lanes), (groups, group) = line["C"][0]
        per_block = k // blocks
        for x, rows in (("A", m), ("B", n)):
            line[x] = [[[lanes, blocks], per_block], [[1, rows * per_block], rows]]
        line["C"] = [[[lanes, blocks], [group, groups]], [[m, group], [1, group * blocks]]]
        line["corrected"] = MFMA
    elif name.startswith("RDNA3_"):
        for x, rows in (("A", m), ("B", n)):
            line[x] = [[[16, 2], k], [[1, 0], rows]]
        line["C"] = [[[16, 2], 8], [[m, 1], 2]]
        line["corrected"] = WMMA3
    elif name.startswith("RDNA4_"):
        for x, rows in (("A", m), ("B", n)):
            line[x] = [[[16, 2], k // 2], [[1, rows * (k // 2)], rows]]
        line["C"] = [[[16, 2], 8], [[m, 8], 1]]
        line["corrected"] = WMMA4


def _twins(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Atoms that CuTe C++ has and the library lacks, with the same fragments (PTX ISA: they depend on width alone)."""
    name = line["name"]
    if match := re.match(WARP_INTEGER, name):
        bits = match[2]
        for a in "SU":
            for b in "SU":
                for tail in ("", "_SATURATE"):
                    twin = f"{match[1]}_S32{a}{bits}{b}{bits}S32_TN{tail}"
                    if twin != name:
                        ptx = line["ptx"].replace(f".s{bits}.s{bits}.", f".{a.lower()}{bits}.{b.lower()}{bits}.")
                        if tail:
                            ptx = ptx.replace(".row.col.", ".row.col.satfinite.")
                        yield _twin(line, twin, ptx)
    elif name.endswith("_XORPOPC"):
        yield _twin(line, name.replace("XORPOPC", "ANDPOPC"), line["ptx"].replace(".xor.", ".and."))
    elif re.match(r"SM120_16x8x(32|64)_F32E4M3E4M3F32_TN$", name):
        k = line["mnk"][2]
        for short in (f"SM120_16x8x{k}_TN", f"SM120_16x8x{k}_TN_VS"):
            yield _twin(line, short, line["ptx"]) | {"types": ["", "", ""]}


def _twin(line: dict[str, Any], name: str, ptx: str) -> dict[str, Any]:
    note = f"the fragments of {line['name']}: they depend on the elements' width alone"
    out = {k: v for k, v in line.items() if k != "aka"} | {"name": name, "ptx": ptx}
    out["types"] = _types(name)
    out["notes"] = [*line.get("notes", []), note]
    return out


def _wgmma_tf32(library: Any, origin: str) -> Iterator[dict[str, Any]]:
    """wgmma with tf32 for every N, which the DSL lacks; A from registers after the PTX ISA's figure for k8."""
    atoms = [library.make_gmma_atom_ss(n, 8, "F32", "TF32") for n in (64, 128)]
    small, large = (_line(a.name, a, origin) for a in atoms)
    assert (small["A"], small["thr"]) == (large["A"], large["thr"])
    head = {"kind": "mma", "arch": "sm_90a", "origin": origin, "n": [8, 256, 8], "mnk": [64, "N", 8], "thr": [128, 1]}
    tail = {
        "B": [[128, ["N", 8]], [0, [1, "N"]]],
        "C": [[[4, 8, 4], [2, 2, "N/8"]], [[128, 1, 16], [64, 8, 512]]],
        "types": ["tf32", "tf32", "f32"],
    }
    ptx = "wgmma.mma_async.sync.aligned.m64n{N}k8.f32.tf32.tf32"
    name = "SM90_64x{N}x8_F32TF32TF32_"
    registers = [[[4, 8, 4], [2, 2]], [[64, 1, 16], [8, 256]]]
    yield {"name": f"{name}SS", **head, "A": small["A"], **tail, "mem": ["smem", "smem", "rmem"], "ptx": ptx}
    note = ["A's registers after the PTX ISA's figure of wgmma's A for k8"]
    memory = ["rmem", "smem", "rmem"]
    yield {"name": f"{name}RS", **head, "A": registers, **tail, "mem": memory, "ptx": ptx, "notes": note}


def _shuffles(library: Any, origin: str) -> Iterator[dict[str, Any]]:
    """The library's copies that the DSL lacks: transposes by warp shuffle, of 32-bit registers."""
    import tensor_layouts as tl

    for name, atom in vars(library).items():
        if type(atom).__name__ == "CopyAtom" and name.startswith("SM50_"):
            src, dst = (_plain(from_tl(tl.upcast(x, 32))) for x in (atom.src_layout_bits, atom.dst_layout_bits))
            yield {
                "name": name, "kind": "copy", "arch": "sm_50", "origin": origin, "thr": _plain(from_tl(atom.thr_id)),
                "S": src, "D": dst, "bits": 32, "ptx": atom.ptx,
            }  # fmt: skip


def _arch(name: str) -> str:
    for prefix, arch in VENDORS.items():
        if name.startswith(prefix):
            return arch
    match = re.match(r"SM(\d+)_", name)
    assert match, name
    wide = match[1] in ("100", "120") or (match[1] == "90" and "_SS" in name)
    return f"sm_{match[1]}{'a' if wide else ''}"


def _memories(name: str) -> list[str]:
    if re.search(r"_SS(_SPARSE)?$", name):
        return ["smem", "smem", "tmem" if name.startswith("SM100") else "rmem"]
    return []


TYPE = re.compile(r"BF16|TF32|XF32|E4M3|E5M2|BF8|F8|F16|F32|F64|C64|S32|I32|S16|S8|U8|I8|S4|U4|I4|U1")


def _types(name: str) -> list[str]:
    """[A, B, C] from the types in a name, which stand as C (D) A B and, mostly, C again."""
    found = TYPE.findall(name.split("_", 2)[2])
    if len(found) < 3:
        return ["", "", ""]
    spelled = {"U1": "b1", "I8": "s8", "I4": "s4", "I32": "s32", "F8": "fp8", "BF8": "bf8"}
    c, a, b = (spelled.get(t, t.lower()) for t in found[:3])
    return [a, b, c]


def _plain(layout: Layout) -> list[Any]:
    assert all(isinstance(d, int) for _, d in flat(layout.shape, layout.stride))
    return [_lists(layout.shape), _lists(layout.stride)]


def _lists(x: Any) -> Any:
    return [_lists(i) for i in x] if isinstance(x, tuple) else x
