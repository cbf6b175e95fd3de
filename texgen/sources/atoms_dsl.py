"""The atoms of the installed ``nvidia-cutlass-dsl``: every one that it can build, and one of them live.

This module imports cutlass inside its functions. ``python -m texgen.sources.atoms_dsl GROUP`` prints the atoms of a
group as JSON lines; the catalogue's generator runs it in child processes, as the DSL can end the process.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from texgen.errors import TexgenError
from texgen.layouts import Layout

GROUPS = ("warp", "warpgroup", "tcgen05", "universal", "copy")

TYPES = {
    "Float16": "f16", "BFloat16": "bf16", "TFloat32": "tf32", "Float32": "f32", "Float64": "f64",
    "Float8E4M3FN": "e4m3", "Float8E5M2": "e5m2", "Float6E3M2FN": "e3m2", "Float6E2M3FN": "e2m3",
    "Float4E2M1FN": "e2m1", "Int8": "s8", "Uint8": "u8", "Int32": "s32", "Float8E8M0FNU": "ue8m0",
    "FloatNV8E5M3FNU": "ue5m3",
}  # fmt: skip
"""The DSL's type names and the PTX ISA's."""

INPUTS = (
    "Float16", "BFloat16", "Float8E4M3FN", "Float8E5M2", "Float6E3M2FN", "Float6E2M3FN", "Float4E2M1FN",
    "Int8", "Uint8",
)  # fmt: skip
SCALES = ("Float8E8M0FNU", "Float8E4M3FN", "FloatNV8E5M3FNU")
NS = tuple(range(8, 257, 8))

KINDS = {
    "MmaF16BF16Op": "f16", "MmaF16BF16SparseOp": "f16", "MmaTF32Op": "tf32", "MmaI8Op": "i8", "MmaFP8Op": "f8f6f4",
    "MmaFP8SparseOp": "f8f6f4", "MmaF8F6F4Op": "f8f6f4", "SM107MmaFP8Op": "f8f6f4", "MmaMXF8Op": "mxf8f6f4",
    "MmaMXF8F6F4Op": "mxf8f6f4", "MmaMXF4Op": "mxf4", "MmaMXF4NVF4Op": "mxf4nvf4", "SM103MmaMXF4Op": "mxf4",
    "SM103MmaMXF4NVF4Op": "mxf4nvf4", "SM107MmaMXF4NVF4Op": "mxf4nvf4", "SM107BlockScaledMmaMXF8F6F4Op": "mxf8f6f4",
}  # fmt: skip
"""``.kind::`` of the tcgen05.mma instruction behind each op class."""


def op_arch(path: str) -> str:
    """The architecture that the op class ``module.Class`` is built for."""
    module, name = path.split(".")
    if module == "warp":
        return "sm_120a" if name.startswith("MmaMX") else "sm_89" if name == "MmaFP8Op" else "sm_80"
    if module == "warpgroup":
        return "sm_90a"
    return {"SM103": "sm_103a", "SM107": "sm_107a"}.get(name[:5], "sm_100a")


def set_arch(arch: str) -> None:
    """Make the DSL build for ``arch`` from now on, in this process."""
    from cutlass.cutlass_dsl import CuTeDSL

    CuTeDSL._get_dsl().envar.arch = arch


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """A context in which the DSL builds objects with no ``@cute.jit``; what is built dies with it."""
    from cutlass._mlir import ir

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            yield


def build_op(build: dict[str, Any]) -> Any:
    """The op that a catalogue entry's ``build`` names: ``{"op": "warp.MmaTF32Op", "args": {...}}``."""
    module, name = build["op"].split(".")
    cls = getattr(importlib.import_module(_module(module)), name)
    return cls(**{k: _value(module, k, v) for k, v in build.get("args", {}).items()})


def build_live(build: dict[str, Any], atom_layout: Layout | None = None, tile: Sequence[Any] | None = None) -> Any:
    """The ``TiledMma`` or ``CopyAtom`` of a catalogue entry's ``build``; call it inside an open tracing context.

    ``tile`` entries are ints, texgen layouts or None. The architecture must have been set (``set_arch``) before.
    """
    import cutlass
    import cutlass.cute as cute

    op = build_op(build)
    if "copy" in build:
        settings = dict(build["copy"])
        return cute.make_copy_atom(op, getattr(cutlass, settings.pop("type")), **settings)
    arguments: list[Any] = [op]
    if atom_layout is not None or tile is not None:
        layout = atom_layout or Layout.of((1, 1, 1))
        arguments.append(cute.make_layout(layout.shape, stride=layout.stride))
    if tile is None:
        return cute.make_tiled_mma(*arguments)
    entries = [cute.make_layout(p.shape, stride=p.stride) if isinstance(p, Layout) else p for p in tile]
    return cute.make_tiled_mma(*arguments, permutation_mnk=tuple([*entries, *[None] * (3 - len(entries))]))


def _module(name: str) -> str:
    return "cutlass.cute.nvgpu" if name == "nvgpu" else f"cutlass.cute.nvgpu.{name}"


def _value(module: str, key: str, value: Any) -> Any:
    """A JSON value as the op's constructor wants it: types by name, enums by member, lists as tuples."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, str):
        return value
    import cutlass

    if key.endswith("_dtype") or key == "sf_type":
        return getattr(cutlass, value)
    if key.endswith("_major_mode"):
        return getattr(importlib.import_module("cutlass.cute.nvgpu").OperandMajorMode, value)
    if key == "cache_mode":
        return getattr(importlib.import_module("cutlass.cute.nvgpu").LoadCacheMode, value)
    enum = {"a_src": "OperandSource", "cta_group": "CtaGroup", "sparse_metadata_format": "SparseMetadataFormat"}[key]
    home = importlib.import_module(f"cutlass.cute.nvgpu.{module}.mma")
    return getattr(getattr(home, enum), value)


def mma_candidates(path: str) -> Iterator[dict[str, Any]]:
    """Every combination of arguments that the op class ``module.Class`` could take, N set to 64 and K-major.

    The class itself refuses what is invalid.
    """
    module, name = path.split(".")
    cls = getattr(importlib.import_module(_module(module)), name)
    tensor_core = module in ("warpgroup", "tcgen05")
    choices: dict[str, Sequence[Any]] = {
        "ab_dtype": INPUTS, "a_dtype": INPUTS, "b_dtype": INPUTS, "acc_dtype": ("Float32", "Float16", "Int32"),
        "abacc_dtype": ("Float16", "Float32", "Float64"), "sf_type": SCALES, "sf_dtype": SCALES,
        "sf_vec_size": (16, 32),
        "shape_mnk": tuple([16, 8, k] for k in (4, 8, 16, 32, 64)),
        "instruction_shape": ([64, 64], [128, 64], [256, 64]) if module == "tcgen05" else ([64, 64],),
        "cta_group": ("ONE", "TWO"), "a_src": ("SMEM", "RMEM") if module == "warpgroup" else ("SMEM", "TMEM"),
        "a_major_mode": ("K",), "b_major_mode": ("K",), "sparse_metadata_format": ("TID",),
    }  # fmt: skip
    names = [p for p in inspect.signature(cls).parameters if p in choices]
    if tensor_core and "instruction_shape" in names and name.startswith("SM107MmaFP8"):
        shapes = choices["instruction_shape"]
        choices["instruction_shape"] = [[*s, k] for s in shapes for k in (64, 32)]
    for values in itertools.product(*(choices[n] for n in names)):
        yield dict(zip(names, values, strict=True))


def read_mma(build: dict[str, Any]) -> dict[str, Any] | None:
    """The plain data of the atom that ``build`` names, or None where the DSL refuses it."""
    import cutlass.cute as cute

    try:
        op = build_op(build)
        atom = cute.make_mma_atom(op)
        out: dict[str, Any] = {"mnk": list(atom.shape_mnk), "thr": _plain(atom.thr_id)}
        out |= {x: _plain(getattr(atom, f"tv_layout_{x}")) for x in "ABC"}
    except Exception:  # the DSL's own checks raise many kinds
        return None
    types = [next((t for n in names if (t := getattr(op, n, None))), None) for names in _TYPE_FIELDS]
    names = [TYPES.get(getattr(t, "__name__", ""), "") for t in types]
    return out | {"types": names if any(names) else ["tf32", "tf32", "f32"]}


_TYPE_FIELDS = (
    ("a_dtype", "ab_dtype", "abacc_dtype"), ("b_dtype", "ab_dtype", "abacc_dtype"), ("acc_dtype", "abacc_dtype"),
)  # fmt: skip


def mma_classes(group: str) -> list[str]:
    """``module.Class`` of every MMA op class of a group in the installed DSL."""
    if group == "universal":
        return ["nvgpu.MmaUniversalOp"]
    module = importlib.import_module(_module(group))
    found = []
    for name in sorted(dir(module)):
        cls = getattr(module, name)
        if inspect.isclass(cls) and name.endswith("Op") and "Mma" in name and "_make_trait" in vars(cls):
            found.append(f"{group}.{name}")
    return found


def enumerate_mma(group: str) -> Iterator[dict[str, Any]]:
    """Families of MMA atoms: one record for each set of arguments without N and without majors.

    Each holds ``build`` (with N's place named ``"N"``), ``by_n`` (N to plain data) and ``majors`` (pairs that are valid
    and change no layout).
    """
    for path in mma_classes(group):
        set_arch(op_arch(path))
        for args in mma_candidates(path):
            with tracing():
                family = _family(path, args)
            if family is not None:
                yield family


def _family(path: str, args: dict[str, Any]) -> dict[str, Any] | None:
    shaped = "instruction_shape" in args

    def at(n: int, **more: Any) -> dict[str, Any] | None:
        own = dict(args, **more)
        if shaped:
            own["instruction_shape"] = [own["instruction_shape"][0], n, *own["instruction_shape"][2:]]
        return read_mma({"op": path, "args": own})

    if not shaped:
        data = at(0)
        return data and {"build": {"op": path, "args": args}, "by_n": {data["mnk"][1]: data}}
    by_n = {64: data} if (data := at(64)) is not None else {}
    if not by_n:
        return None
    by_n |= {n: d for n in _likely(lambda n: at(n) is not None) if (d := at(n)) is not None}
    majors = []
    if "a_major_mode" in args:
        sample = max(by_n)
        for a, b in itertools.product(("K", "MN"), repeat=2):
            data = at(sample, a_major_mode=a, b_major_mode=b)
            if data == by_n[sample]:
                majors.append([a, b])
            elif data is not None:
                raise TexgenError(f"{path} {args}: the major modes {a}, {b} change the layouts.")
    shape = args["instruction_shape"]
    build = {"op": path, "args": dict(args, instruction_shape=[shape[0], "N", *shape[2:]])}
    return {"build": build, "by_n": by_n, "majors": majors}


def _likely(valid: Callable[[int], bool]) -> list[int]:
    """The Ns worth trying. A refusal costs the DSL ten milliseconds, so steps of 8, 16 or 32 are told by probes."""
    step = 8 if valid(40) else 16 if valid(48) else 32
    return sorted({*range(step, 257, step), 8, 16, 24})


COPIES: tuple[tuple[str, str, dict[str, Any], str, int], ...] = (
    *((f"SM75_U32x{n}_LDSM_N", "warp.LdMatrix8x8x16bOp", {"transpose": False, "num_matrices": n}, "Float16", 0)
      for n in (1, 2, 4)),
    *((f"SM75_U16x{2 * n}_LDSM_T", "warp.LdMatrix8x8x16bOp", {"transpose": True, "num_matrices": n}, "Float16", 0)
      for n in (1, 2, 4)),
    *((f"SM90_U32x{n}_STSM_N", "warp.StMatrix8x8x16bOp", {"transpose": False, "num_matrices": n}, "Float16", 0)
      for n in (1, 2, 4)),
    *((f"SM90_U16x{2 * n}_STSM_T", "warp.StMatrix8x8x16bOp", {"transpose": True, "num_matrices": n}, "Float16", 0)
      for n in (1, 2, 4)),
    *((f"SM100_U8x{8 * n}_LDSM_T", "warp.LdMatrix16x16x8bOp", {"transpose": True, "num_matrices": n}, "Int8", 0)
      for n in (1, 2)),
    *((f"SM100_SU{u}_DU8x16_x{n}_LDSM_N", "warp.LdMatrix8x16x8bOp",
       {"transpose": False, "num_matrices": n, "unpack_bits": u}, "Int8", 0) for u in (4, 6) for n in (1, 2, 4)),
    *((f"SM100_SU{u}_DU8x16_x{n}_LDSM_T", "warp.LdMatrix16x16x8bOp",
       {"transpose": True, "num_matrices": n, "unpack_bits": u}, "Int8", 0) for u in (4, 6) for n in (1, 2)),
    *((f"SM100_16x8x8b_x{n}_LDSM_T", "warp.LdMatrix16x8x8bOp", {"transpose": True, "num_matrices": n}, "Int8", 0)
      for n in (2, 4)),
    *((f"SM100_U8x{4 * n}_STSM_T", "warp.StMatrix16x8x8bOp", {"transpose": True, "num_matrices": n}, "Int8", 0)
      for n in (1, 2, 4)),
    *((f"SM80_CP_ASYNC_CACHEALWAYS<{t}>", "cpasync.CopyG2SOp", {}, "Float16", b)
      for t, b in (("uint32_t", 32), ("uint64_t", 64), ("uint128_t", 128))),
    ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "cpasync.CopyG2SOp", {"cache_mode": "GLOBAL"}, "Float16", 128),
    *((f"UniversalCopy<uint{b}_t>", "nvgpu.CopyUniversalOp", {}, "Float16" if b > 8 else "Int8", b)
      for b in (8, 16, 32, 64, 128, 256)),
)  # fmt: skip
"""(CuTe C++ name, op class, its arguments, element type, bits a copy) of the copy atoms with a thread-value layout."""


def enumerate_copies() -> Iterator[dict[str, Any]]:
    """The copy atoms of ``COPIES`` as plain data."""
    import cutlass

    set_arch("sm_100a")
    for name, path, args, element, width in COPIES:
        build: dict[str, Any] = {"op": path, "args": args, "copy": {"type": element}}
        if width:
            build["copy"]["num_bits_per_copy"] = width
        with tracing():
            try:
                atom = build_live(build)
                src, dst, thr = (_plain(x) for x in (atom.layout_src_tv, atom.layout_dst_tv, atom.thr_id))
            except Exception as e:
                print(f"{name}: {e}", file=sys.stderr)
                continue
        yield {"name": name, "thr": thr, "S": src, "D": dst, "bits": getattr(cutlass, element).width, "build": build}


def _plain(layout: Any) -> list[Any]:
    """[shape, stride] of a DSL layout, as nested lists of int."""
    return [_lists(layout.shape), _lists(layout.stride)]


def _lists(x: Any) -> Any:
    return [_lists(i) for i in x] if isinstance(x, tuple) else int(x)


def main(groups: Sequence[str]) -> None:
    """Print the atoms of ``groups`` as JSON lines."""
    warnings.simplefilter("ignore")
    for group in groups:
        for record in enumerate_copies() if group == "copy" else enumerate_mma(group):
            print(json.dumps(dict(record, group=group)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
