"""The DSL's classes and functions that are wrapped while a recording runs, and what each wrapper hands to ``sightings.py``."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from texgen.sources import sightings
from texgen.sources.sightings import (
    active,
    current_arch,
    dims,
    guarded,
    inner,
    is_inner,
    layout_text,
    lock,
    saw_allocation,
    saw_atom,
    saw_layout,
    saw_partition,
    saw_tensor,
    state,
    tma_context,
    use_layout,
    user_frames,
    width,
)
from texgen.trace import naming
from texgen.trace.records import Launch, places_at
from texgen.trace.wrapping import MISSING, Patches, wrapped

_traces = 0

def _seeing(seen: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]) -> Callable[[Any], Any]:
    """Wrap so that ``seen(result, args, kwargs)`` runs after the outermost wrapped call."""

    def enter(args: Any, kwargs: Any) -> bool:
        state.inside += 1
        return state.inside == 1

    def leave(outermost: bool, result: Any, args: Any, kwargs: Any) -> None:
        state.inside -= 1
        if outermost and result is not MISSING and active:
            seen(result, args, kwargs)

    return lambda original: wrapped(original, enter, leave)


def _copying(original: Any) -> Any:
    def enter(args: Any, kwargs: Any) -> None:
        state.copying += 1

    def leave(token: Any, result: Any, args: Any, kwargs: Any) -> None:
        state.copying -= 1

    return wrapped(original, enter, leave)


def install(patches: Patches) -> None:
    """Wrap what builds objects in the installed DSL. Names that a version lacks are left out."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute import atom, core, tensor

    folder = os.path.dirname(os.path.abspath(str(cutlass.__file__)))
    sightings.dsl_root = folder + os.sep
    inner.clear()

    def saw_init(token: Any, result: Any, args: Any, kwargs: Any) -> None:
        if result is not MISSING:
            saw_atom(args[0])

    patches.attribute(atom.Atom, "__init__", lambda o: wrapped(o, lambda a, k: None, saw_init))
    for cls in [atom.Atom, *_subclasses(atom.Atom)]:
        for name in ("__new_from_mlir_values__", "with_"):
            patches.attribute(cls, name, _copying)
    for cls, names in (
        (atom.ThrMma, ("partition_A", "partition_B", "partition_C")), (atom.ThrCopy, ("partition_S", "partition_D")),
        (atom.TiledCopy, ("retile",)), (atom.MmaAtom, ("make_fragment_A", "make_fragment_B", "make_fragment_C")),
    ):  # fmt: skip
        for name in names:
            patches.attribute(cls, name, _seeing(functools.partial(_partition, name)))
    for module, name in _functions(cutlass, core, tensor):
        if name in _PARTITIONS:
            patches.function(module, name, _seeing(functools.partial(_partition, name)))
        elif "tma_atom" in name:
            patches.function(module, name, functools.partial(_wrap_tma, name))
        elif name == "make_tensor":
            patches.function(module, name, _seeing(_made_tensor))
        else:
            patches.function(module, name, _seeing(functools.partial(_layout, name)))
    for allocator in _allocators(cutlass):
        patches.attribute(allocator, "allocate_tensor", _seeing(_allocated_tensor))
        patches.attribute(allocator, "allocate_array", _seeing(_allocated_array))
        patches.attribute(allocator, "allocate", _seeing(_allocated))
    ranges = getattr(getattr(cute, "struct", None), "_MemRangeData", None)
    if ranges is not None:
        patches.attribute(ranges, "get_tensor", _seeing(_range_tensor))
    _wrap_traces(patches)
    patches.apply()


def _subclasses(cls: type) -> list[type]:
    out: list[type] = []
    subclasses: list[type] = cls.__subclasses__()
    for sub in subclasses:
        out += [sub, *_subclasses(sub)]
    return out


_PARTITIONS = {"local_tile", "local_partition", "tma_partition", "flat_divide_partition"}
_LAYOUTS = {"tile_to_shape", "make_composed_layout", "tile_to_mma_shape"}


def _functions(cutlass: Any, core: Any, tensor: Any) -> Iterator[tuple[Any, str]]:
    """(module, name) of the DSL's functions that make layouts, TMA atoms and partitions."""
    import importlib

    yield core, "local_tile"
    yield core, "local_partition"
    yield tensor, "make_tensor"
    for name in _LAYOUTS:
        yield core, name
    for path in (
        "cutlass.cute.nvgpu.tcgen05.helpers", "cutlass.cute.nvgpu.cpasync.helpers", "cutlass.cute.nvgpu.helpers",
        "cutlass.utils.hopper_helpers", "cutlass.utils.blackwell_helpers", "cutlass.utils.blockscaled_layout",
        "cutlass.utils.mixed_input_helpers", "cutlass.utils.rubin_helpers", "cutlass.utils.ampere_helpers",
    ):  # fmt: skip
        try:
            module = importlib.import_module(path)
        except Exception:
            continue
        for name, value in list(vars(module).items()):
            if not callable(value) or isinstance(value, type) or not getattr(value, "__module__", "").startswith("cutlass"):
                continue
            is_smem = "smem_layout" in name and "atom" not in name and name.split("_")[0] in _MAKERS
            if is_smem or name in _LAYOUTS or name in _PARTITIONS or re.fullmatch(r"make_\w*tma_atom\w*", name):
                yield module, name


_MAKERS = {"make", "sm90", "sm100", "sm103", "sm107", "sm120"}


def _allocators(cutlass: Any) -> list[Any]:
    found: list[Any] = []
    for path in ("memory", "utils"):
        cls = None
        with contextlib.suppress(Exception):
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cls = getattr(__import__(f"cutlass.{path}", fromlist=["SmemAllocator"]), "SmemAllocator", None)
        for base in getattr(cls, "__mro__", ()):
            if "allocate" in vars(base) and base not in found:
                found.append(base)
    return found


# Each wrapper's eye


def _partition(name: str, result: Any, args: Any, kwargs: Any) -> None:
    saw_partition(name, result, args)


def _layout(name: str, result: Any, args: Any, kwargs: Any) -> None:
    saw_layout(name, result, args, kwargs)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, default: Any = None) -> Any:
    return kwargs[name] if name in kwargs else args[position] if position < len(args) else default


@guarded
def _allocated_tensor(result: Any, args: Any, kwargs: Any) -> None:
    dtype, layout = _argument(args, kwargs, 1, "element_type"), _argument(args, kwargs, 2, "layout")
    saw_tensor(dtype, layout, _argument(args, kwargs, 4, "swizzle"), True)
    text = f"{layout}:1" if isinstance(layout, int) else layout_text(layout)
    saw_allocation(0, dtype, text, [])


@guarded
def _allocated_array(result: Any, args: Any, kwargs: Any) -> None:
    dtype, count = _argument(args, kwargs, 1, "element_type"), _argument(args, kwargs, 2, "num_elems", 1)
    saw_allocation(width(dtype) * int(count) // 8, dtype, "", [])


@guarded
def _allocated(result: Any, args: Any, kwargs: Any) -> None:
    what = _argument(args, kwargs, 1, "size_or_type")
    if isinstance(what, int):
        saw_allocation(what, None, "", [])
    elif isinstance(what, type) and width(what):
        saw_allocation(max(1, width(what) // 8), what, "", [])
    elif hasattr(what, "__sizeof__") and hasattr(what, "_offsets"):
        saw_allocation(int(what.__sizeof__()), None, "", _struct_fields(what))


def _struct_fields(struct: Any) -> list[tuple[str, int, int]]:
    """(name, bytes, offset) of a ``cute.struct``'s members; a member's size is what lies before the next if unknown."""
    offsets = {str(k): int(v) for k, v in struct._offsets.items()}
    out = []
    for name, member in struct._annotations.items():
        member = getattr(member, "dtype", member) if "Align" in type(member).__name__ else member
        size = getattr(member, "size_in_bytes", None)
        if not isinstance(size, int):
            size = max(1, width(member) // 8) if width(member) else int(member.__sizeof__()) if hasattr(member, "_offsets") else 0
        out.append((str(name), int(size), offsets.get(str(name), 0)))
    return out


@guarded
def _range_tensor(result: Any, args: Any, kwargs: Any) -> None:
    dtype = _argument(args, kwargs, 3, "dtype") or getattr(args[0], "_dtype", None)
    saw_tensor(dtype, _argument(args, kwargs, 1, "layout"), _argument(args, kwargs, 2, "swizzle"), True)


@guarded
def _made_tensor(result: Any, args: Any, kwargs: Any) -> None:
    """A tensor over a shared-memory pointer uses its layout; its swizzle may be the pointer's."""
    iterator, layout = _argument(args, kwargs, 0, "iterator"), _argument(args, kwargs, 1, "layout")
    if "smem" not in str(getattr(iterator, "type", "")) or not layout_text(layout):
        return
    use_layout(layout_text(layout), getattr(result, "element_type", None))
    saw_tensor(getattr(result, "element_type", None), layout, None, False)


def _wrap_tma(name: str, original: Any) -> Any:
    """The atom is built inside: what it is built with is known before."""

    def enter(args: Any, kwargs: Any) -> Any:
        state.inside += 1
        before = tma_context.value
        _enter_tma(args, kwargs, name[-2:] in ("_A", "_B"))
        return before

    def leave(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        state.inside -= 1
        tma_context.value = before

    return wrapped(original, enter, leave)


@guarded
def _enter_tma(args: Any, kwargs: Any, for_mma: bool) -> None:
    from texgen.sources.dsl_names import dtype_name

    tensor = _argument(args, kwargs, 1, "gmem_tensor")
    layout = kwargs.get("smem_layout", kwargs.get("smem_layout_", args[2] if len(args) > 2 else None))
    dtype = kwargs.get("internal_type") or getattr(tensor, "element_type", None)
    text = layout_text(layout)
    if text:
        use_layout(text, dtype)
    tma_context.value = {
        "layout": text, "bits": width(dtype), "dtype": dtype_name(dtype), "tensor": str(getattr(tensor, "type", "")), "for_mma": for_mma,
    }  # fmt: skip


def _wrap_traces(patches: Patches) -> None:
    """Number the traces, mark those of the DSL's own helpers, and note each launch."""
    from cutlass.base_dsl import dsl as base
    from cutlass.cutlass_dsl import cutlass as dsl

    def enter(args: Any, kwargs: Any) -> Any:
        global _traces
        from cutlass._mlir import ir

        if ir.Context.current is not None and ir.InsertionPoint.current is not None:
            return None
        before = (state.trace, state.auxiliary, state.launch, state.inside)
        with lock:
            _traces += 1
            state.trace = _traces
        state.launch, state.inside = None, 0
        body = args[1] if len(args) > 1 else None
        if body is not None and is_auxiliary(body):
            state.auxiliary += 1
        return before

    def leave(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        if before is not None:
            state.trace, state.auxiliary, state.launch, state.inside = before

    patches.attribute(base.BaseDSL, "_func", lambda o: wrapped(o, enter, leave))

    def enter_launch(args: Any, kwargs: Any) -> Any:
        before = state.launch
        _enter_launch(args, kwargs)
        return before

    def leave_launch(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        state.launch = before

    if hasattr(dsl, "KernelLauncher"):
        patches.attribute(dsl.KernelLauncher, "launch", lambda o: wrapped(o, enter_launch, leave_launch))


def is_auxiliary(function: Any) -> bool:
    """True for a jit function that lies in the DSL itself (``testing.convert``, the empty kernel of HardwareInfo)."""
    code = getattr(function, "__code__", None)
    return code is not None and is_inner(code.co_filename)


@guarded
def _enter_launch(args: Any, kwargs: Any) -> None:
    launcher = args[0]
    if state.auxiliary:
        return
    frames, _ = user_frames()
    place = places_at(frames[:1])[0] if frames else None
    body = launcher.funcBody
    code = getattr(body, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    found = naming.source_of(file).function(line + 1) or naming.source_of(file).function(line) if file else None
    name = found.name if found is not None and found.name.split(".")[-1] == body.__name__ else body.__name__
    config = launcher.dsl.LaunchConfig
    names = list(getattr(config, "__dataclass_fields__", {}))
    given = dict(zip(names, args[1:], strict=False)) | kwargs
    grid, block = (dims(_three(v), place, n, not isinstance(v, (list, tuple))) for n, v in (("grid", given.get("grid")), ("block", given.get("block"))))
    made = Launch(
        name, file, line,
        grid, block,
        dims(given.get("cluster"), place, "cluster"), given["smem"] if type(given.get("smem")) is int else None,
        place.file if place else "", place.line if place else 0, state.trace, current_arch(),
        takes=_types([*getattr(launcher, "func_args", ()), *getattr(launcher, "func_kwargs", {}).values()]),
    )  # fmt: skip
    for one in list(active):
        made = one.add_launch(made)
    state.launch = made


def _types(values: Sequence[Any]) -> list[str]:
    """The texts of the types of atoms, tiled objects and layouts."""
    out: list[str] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            out += _types(value)
            continue
        trait = getattr(value, "_trait", None)
        text = str(trait.value.type) if trait is not None else layout_text(value)
        if text and text not in out:
            out.append(text)
    return out


def _three(dims: Any) -> Any:
    if dims is None:
        return [1, 1, 1]
    if not isinstance(dims, (list, tuple)):
        dims = [dims]
    return [*dims, *[1] * (3 - len(dims))]
