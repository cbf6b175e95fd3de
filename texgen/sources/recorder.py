"""Recording what DSL code builds, while it builds it: ``with texgen.recording() as r: ...``.

The DSL's classes and functions are wrapped for the time of the recording and put back after it. A wrapper keeps the
texts of the object's types and where the source's frames stand, which costs a fraction of a millisecond; names come
from the syntax tree and specs from the texts when they are asked for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from texgen.errors import TexgenError
from texgen.trace import naming, reading
from texgen.trace.naming import Place
from texgen.trace.records import Event, Frames, Launch, Recording, identity, places_at, same_layout
from texgen.trace.wrapping import MISSING, WRAPPERS, Patches, wrapped

_CLASSES = {"TiledMma": "tiled_mma", "TiledCopy": "tiled_copy", "MmaAtom": "mma_atom", "CopyAtom": "copy_atom"}
_OURS = os.path.abspath(__file__)

# What runs while the program is traced


_active: list[Recording] = []
_lock = threading.RLock()
_patches: Patches | None = None
_traces = 0


class _State(threading.local):
    """What a thread is in the middle of."""

    copying = 0
    """Depth of calls that copy objects (launches, loops, ``with_``) instead of building them."""
    inside = 0
    """Depth of wrapped DSL functions: the outermost is what the source called."""
    auxiliary = 0
    """Depth of traces that the DSL's own host helpers start."""
    trace = 0
    launch: Launch | None = None


_state = _State()


@contextlib.contextmanager
def recording(into: Recording | None = None) -> Iterator[Recording]:
    """``with texgen.recording() as r:`` records every tiled object, shared-memory layout, TMA atom, launch and partition built inside.

    Works on any thread and nests (an outer recording sees what an inner one does). Nothing stays patched afterwards.
    Raises TexgenError where the DSL is not installed.
    """
    global _patches
    made = Recording() if into is None else into
    with _lock:
        if _patches is None:
            _patches = Patches()
            try:
                _install(_patches)
            except ModuleNotFoundError as e:
                _patches = None
                from texgen.doctor import explain_import

                raise TexgenError(explain_import(e)) from None
            except BaseException:
                _patches.undo()
                _patches = None
                raise
        _active.append(made)
    try:
        yield made
    finally:
        with _lock:
            _active.remove(made)
            if not _active and _patches is not None:
                _patches.undo()
                _patches = None


def _record(kind: str, text: str, payload: dict[str, Any]) -> None:
    frames, callee = _user_frames()
    if not frames or _state.auxiliary:
        return
    for one in list(_active):
        one.add(Event(
            kind, frames, text, dict(payload), _state.trace, _state.launch, callee, one._count, call=identity(frames)
        ))  # fmt: skip


_dsl_root = ""
_inner: dict[str, bool] = {}


def _is_inner(file: str) -> bool:
    """True for files of the DSL and for this one."""
    known = _inner.get(file)
    if known is None:
        path = os.path.abspath(file)
        known = _inner[file] = path.startswith(_dsl_root) or path == _OURS or file == WRAPPERS
    return known


def _user_frames() -> tuple[Frames, str]:
    """(frames outside the DSL, innermost first, with the instruction they stand at; the DSL function they called)."""
    out: list[tuple[CodeType, int, int]] = []
    callee = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not _is_inner(code.co_filename):
            out.append((code, frame.f_lasti, frame.f_lineno))
            if len(out) >= 24:
                break
        elif not out and code.co_filename != WRAPPERS and code.co_name != "wrapper" and code.co_filename != _OURS:
            callee = code.co_name
        frame = frame.f_back
    return tuple(out), callee


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    """Our own fault must not be the program's."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Exception as e:
            if os.environ.get("TEXGEN_DEBUG"):
                raise
            faults.append(f"{function.__name__}: {type(e).__name__}: {e}")

    return run


faults: list[str] = []
"""What went wrong in the recorder itself, for the report."""


@functools.lru_cache(maxsize=64)
def _source_text(arch: str) -> str:
    import cutlass

    version = getattr(cutlass, "__version__", "")
    return f"nvidia-cutlass-dsl {version}".strip() + (f", target {arch}" if arch else "")


def _arch() -> str:
    from cutlass.cutlass_dsl import CuTeDSL

    return str(CuTeDSL._get_dsl().envar.arch or "")


def _facts(op: Any) -> dict[str, Any]:
    """What is plain in an operation, as JSON values: its class and its fields (types, numbers, enum members)."""
    cls = type(op)
    return {
        "module": cls.__module__, "classes": [c.__name__ for c in cls.__mro__ if c is not object],
        "fields": {k: f for k, v in vars(op).items() if (f := _fact(v)) is not None},
    }  # fmt: skip


def _fact(value: Any) -> Any:
    if isinstance(value, type):
        return {"type": value.__name__, "width": _width(value)}
    if isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, tuple | list):
        return [_fact(v) for v in value]
    if hasattr(value, "name") and "_mlir" not in type(value).__module__:
        return f"{type(value).__name__}.{value.name}"
    return str(value) if type(value).__module__.split(".")[0] == "cutlass" and hasattr(type(value), "__members__") else None


@_guarded
def _saw_atom(atom: Any) -> None:
    kind = _CLASSES.get(type(atom).__name__)
    if kind is None or _state.copying or not _active:
        return
    from texgen.sources import dsl_names

    op, value_type = atom.op, None
    arch = _arch()
    payload: dict[str, Any] = {"arch": arch, "source": _source_text(arch), "op": _facts(op)}
    mlir_type = atom._trait.value.type
    if kind.endswith("copy") or kind == "copy_atom":
        if dsl_names.is_tma(op) or type(op).__name__.startswith("CopyBulk"):
            kind = "tma_atom"
            payload |= {"op_name": type(op).__name__, "tma": str(mlir_type)}
            payload |= _tma_context.get()
        else:
            value_type = _fact(getattr(atom, "value_type", None))
            payload |= {"parts": reading.parts_of(mlir_type, reading.COPY_PARTS), "value_type": value_type}
    else:
        payload["parts"] = reading.parts_of(mlir_type, reading.MMA_PARTS)
    _record(kind, str(mlir_type), payload)


class _TmaContext(threading.local):
    value: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        return self.value or {}


_tma_context = _TmaContext()


def _layout_text(layout: Any) -> str:
    """The text of a DSL layout's type, empty for what is no layout."""
    try:
        return str(layout.type)
    except Exception:
        return ""


def _width(dtype: Any) -> int:
    width = getattr(dtype, "width", 0)
    if not isinstance(width, int):
        return 0
    return 8 if getattr(dtype, "__name__", "") == "Boolean" else width


def _dtype_in(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The element type among a helper's arguments."""
    for value in [*args, *kwargs.values()]:
        if isinstance(value, type) and isinstance(getattr(value, "width", None), int):
            return value
    return None


@_guarded
def _saw_layout(function: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A shared-memory layout helper's result counts at once, tile_to_shape's when a tensor is made with it."""
    from texgen.sources.dsl_names import dtype_name

    text = _layout_text(result)
    if not text:
        return
    arch = _arch()
    payload: dict[str, Any] = {"layout": text, "arch": arch, "source": _source_text(arch)}
    if "smem_layout" in function:
        payload["used"] = True
        dtype = _dtype_in(args, kwargs)
        payload |= {"bits": _width(dtype), "dtype": dtype_name(dtype)}
    _record("smem_layout", text, payload)


def _use_layout(text: str, dtype: Any) -> None:
    """A shared-memory tensor or a TMA atom is made with this layout: those recorded with it are used, and of its type."""
    from texgen.sources.dsl_names import dtype_name

    wanted = reading.bare(text)
    for one in list(_active):
        for e in one._of("smem_layout"):
            if e.trace == _state.trace and same_layout(e.text, wanted):
                e.payload["used"] = True
                if not e.payload.get("bits") and _width(dtype):
                    e.payload |= {"bits": _width(dtype), "dtype": dtype_name(dtype)}
                with one._lock:
                    one._count += 1
                    one._note(e)


@_guarded
def _saw_tensor(dtype: Any, layout: Any, swizzle: Any, own: bool) -> None:
    from texgen.sources.dsl_names import dtype_name

    if isinstance(layout, int):
        text = f"{layout}:1"
    else:
        text = _layout_text(layout)
    if not text:
        return
    _use_layout(text, dtype)
    arch = _arch()
    whole = text
    if swizzle is not None and " o " not in text:
        found = re.search(r"S<[^>]*>", str(swizzle)) or re.search(r"S<[^>]*>", str(getattr(swizzle, "type", "")))
        whole = f"{found[0]} o 0 o {reading.bare(text)}" if found else text
        _use_layout(whole, dtype)
    _record("tensor", whole, {
        "layout": whole, "bits": _width(dtype), "dtype": dtype_name(dtype), "own": own, "arch": arch,
        "source": _source_text(arch),
    })  # fmt: skip


@_guarded
def _saw_allocation(size: int, dtype: Any, layout: str, fields: list[tuple[str, int, int]]) -> None:
    from texgen.sources.dsl_names import dtype_name

    payload = {"size": size, "bits": _width(dtype), "dtype": dtype_name(dtype), "layout": reading.bare(layout), "fields": fields}
    _record("allocation", f"{size} {layout}", payload)


@_guarded
def _saw_partition(function: str, result: Any, args: tuple[Any, ...]) -> None:
    trait = getattr(args[0], "_trait", None) if args else None
    owner = str(trait.value.type) if trait is not None else ""
    whole = str(getattr(args[1], "type", "")) if trait is not None and len(args) > 1 else ""
    many = getattr(result, "type", None) is None and hasattr(result, "__len__")
    for index, one in enumerate(result if many else (result,)):
        kind = getattr(one, "type", None)
        if kind is None:
            continue
        text = str(kind)
        layout = getattr(kind, "layout", None)
        _record("partition", text, {
            "layout": reading.bare(str(layout)) if layout is not None else reading.last_quoted(text), "call": function,
            "owner": owner, "of": whole, "index": index if many else None,
        })  # fmt: skip


def _dims(values: Sequence[Any] | None, place: Place | None, name: str, scalar: bool = False) -> list[int | str]:
    """Launch sizes: ints where they are static, otherwise the source's text."""
    out: list[int | str] = []
    for value in values or ():
        if type(value) is int:
            out.append(value)
        elif value is not None:
            inner = getattr(value, "value", None)
            out.append(inner if type(inner) is int else "?")
    if "?" in out and place is not None:
        texts = _unpacked(naming.argument(place, name), len(out))
        if len(texts) == 1 and len(out) > 1 and not scalar:
            return list(texts) if all(x == "?" for x in out) else [f"{texts[0]}[{i}]" if x == "?" else x for i, x in enumerate(out)]
        return [t if x == "?" and t else x for x, t in zip(out, [*texts, *[""] * len(out)], strict=False)]
    return out


def _unpacked(texts: list[str], count: int) -> list[str]:
    """``*grid, 1`` of three sizes is ``grid[0]``, ``grid[1]``, ``1``."""
    starred = [i for i, text in enumerate(texts) if text.startswith("*")]
    if len(starred) != 1:
        return texts
    at, missing = starred[0], count - len(texts) + 1
    return [*texts[:at], *(f"{texts[at][1:]}[{i}]" for i in range(missing)), *texts[at + 1 :]]


# Wrapping


def _seeing(seen: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]) -> Callable[[Any], Any]:
    """Wrap so that ``seen(result, args, kwargs)`` runs after the outermost wrapped call."""

    def enter(args: Any, kwargs: Any) -> bool:
        _state.inside += 1
        return _state.inside == 1

    def leave(outermost: bool, result: Any, args: Any, kwargs: Any) -> None:
        _state.inside -= 1
        if outermost and result is not MISSING and _active:
            seen(result, args, kwargs)

    return lambda original: wrapped(original, enter, leave)


def _copying(original: Any) -> Any:
    def enter(args: Any, kwargs: Any) -> None:
        _state.copying += 1

    def leave(token: Any, result: Any, args: Any, kwargs: Any) -> None:
        _state.copying -= 1

    return wrapped(original, enter, leave)


def _install(patches: Patches) -> None:
    """Wrap what builds objects in the installed DSL. Names that a version lacks are left out."""
    global _dsl_root
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute import atom, core, tensor

    folder = os.path.dirname(os.path.abspath(str(cutlass.__file__)))
    _dsl_root = folder + os.sep
    _inner.clear()

    def saw_init(token: Any, result: Any, args: Any, kwargs: Any) -> None:
        if result is not MISSING:
            _saw_atom(args[0])

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
    _saw_partition(name, result, args)


def _layout(name: str, result: Any, args: Any, kwargs: Any) -> None:
    _saw_layout(name, result, args, kwargs)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, default: Any = None) -> Any:
    return kwargs[name] if name in kwargs else args[position] if position < len(args) else default


@_guarded
def _allocated_tensor(result: Any, args: Any, kwargs: Any) -> None:
    dtype, layout = _argument(args, kwargs, 1, "element_type"), _argument(args, kwargs, 2, "layout")
    _saw_tensor(dtype, layout, _argument(args, kwargs, 4, "swizzle"), True)
    text = f"{layout}:1" if isinstance(layout, int) else _layout_text(layout)
    _saw_allocation(0, dtype, text, [])


@_guarded
def _allocated_array(result: Any, args: Any, kwargs: Any) -> None:
    dtype, count = _argument(args, kwargs, 1, "element_type"), _argument(args, kwargs, 2, "num_elems", 1)
    _saw_allocation(_width(dtype) * int(count) // 8, dtype, "", [])


@_guarded
def _allocated(result: Any, args: Any, kwargs: Any) -> None:
    what = _argument(args, kwargs, 1, "size_or_type")
    if isinstance(what, int):
        _saw_allocation(what, None, "", [])
    elif isinstance(what, type) and _width(what):
        _saw_allocation(max(1, _width(what) // 8), what, "", [])
    elif hasattr(what, "__sizeof__") and hasattr(what, "_offsets"):
        _saw_allocation(int(what.__sizeof__()), None, "", _struct_fields(what))


def _struct_fields(struct: Any) -> list[tuple[str, int, int]]:
    """(name, bytes, offset) of a ``cute.struct``'s members; a member's size is what lies before the next if unknown."""
    offsets = {str(k): int(v) for k, v in struct._offsets.items()}
    out = []
    for name, member in struct._annotations.items():
        member = getattr(member, "dtype", member) if "Align" in type(member).__name__ else member
        size = getattr(member, "size_in_bytes", None)
        if not isinstance(size, int):
            size = max(1, _width(member) // 8) if _width(member) else int(member.__sizeof__()) if hasattr(member, "_offsets") else 0
        out.append((str(name), int(size), offsets.get(str(name), 0)))
    return out


@_guarded
def _range_tensor(result: Any, args: Any, kwargs: Any) -> None:
    dtype = _argument(args, kwargs, 3, "dtype") or getattr(args[0], "_dtype", None)
    _saw_tensor(dtype, _argument(args, kwargs, 1, "layout"), _argument(args, kwargs, 2, "swizzle"), True)


@_guarded
def _made_tensor(result: Any, args: Any, kwargs: Any) -> None:
    """A tensor over a shared-memory pointer uses its layout; its swizzle may be the pointer's."""
    iterator, layout = _argument(args, kwargs, 0, "iterator"), _argument(args, kwargs, 1, "layout")
    if "smem" not in str(getattr(iterator, "type", "")) or not _layout_text(layout):
        return
    _use_layout(_layout_text(layout), getattr(result, "element_type", None))
    _saw_tensor(getattr(result, "element_type", None), layout, None, False)


def _wrap_tma(name: str, original: Any) -> Any:
    """The atom is built inside: what it is built with is known before."""

    def enter(args: Any, kwargs: Any) -> Any:
        _state.inside += 1
        before = _tma_context.value
        _enter_tma(args, kwargs, name[-2:] in ("_A", "_B"))
        return before

    def leave(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        _state.inside -= 1
        _tma_context.value = before

    return wrapped(original, enter, leave)


@_guarded
def _enter_tma(args: Any, kwargs: Any, for_mma: bool) -> None:
    from texgen.sources.dsl_names import dtype_name

    tensor = _argument(args, kwargs, 1, "gmem_tensor")
    layout = kwargs.get("smem_layout", kwargs.get("smem_layout_", args[2] if len(args) > 2 else None))
    dtype = kwargs.get("internal_type") or getattr(tensor, "element_type", None)
    text = _layout_text(layout)
    if text:
        _use_layout(text, dtype)
    _tma_context.value = {
        "layout": text, "bits": _width(dtype), "dtype": dtype_name(dtype), "tensor": str(getattr(tensor, "type", "")), "for_mma": for_mma,
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
        before = (_state.trace, _state.auxiliary, _state.launch, _state.inside)
        with _lock:
            _traces += 1
            _state.trace = _traces
        _state.launch, _state.inside = None, 0
        body = args[1] if len(args) > 1 else None
        if body is not None and is_auxiliary(body):
            _state.auxiliary += 1
        return before

    def leave(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        if before is not None:
            _state.trace, _state.auxiliary, _state.launch, _state.inside = before

    patches.attribute(base.BaseDSL, "_func", lambda o: wrapped(o, enter, leave))

    def enter_launch(args: Any, kwargs: Any) -> Any:
        before = _state.launch
        _enter_launch(args, kwargs)
        return before

    def leave_launch(before: Any, result: Any, args: Any, kwargs: Any) -> None:
        _state.launch = before

    if hasattr(dsl, "KernelLauncher"):
        patches.attribute(dsl.KernelLauncher, "launch", lambda o: wrapped(o, enter_launch, leave_launch))


def is_auxiliary(function: Any) -> bool:
    """True for a jit function that lies in the DSL itself (``testing.convert``, the empty kernel of HardwareInfo)."""
    code = getattr(function, "__code__", None)
    return code is not None and _is_inner(code.co_filename)


@_guarded
def _enter_launch(args: Any, kwargs: Any) -> None:
    launcher = args[0]
    if _state.auxiliary:
        return
    frames, _ = _user_frames()
    place = places_at(frames[:1])[0] if frames else None
    body = launcher.funcBody
    code = getattr(body, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    found = naming.source_of(file).function(line + 1) or naming.source_of(file).function(line) if file else None
    name = found.name if found is not None and found.name.split(".")[-1] == body.__name__ else body.__name__
    config = launcher.dsl.LaunchConfig
    names = list(getattr(config, "__dataclass_fields__", {}))
    given = dict(zip(names, args[1:], strict=False)) | kwargs
    grid, block = (_dims(_three(v), place, n, not isinstance(v, (list, tuple))) for n, v in (("grid", given.get("grid")), ("block", given.get("block"))))
    made = Launch(
        name, file, line,
        grid, block,
        _dims(given.get("cluster"), place, "cluster"), given["smem"] if type(given.get("smem")) is int else None,
        place.file if place else "", place.line if place else 0, _state.trace, _arch(),
        takes=_types([*getattr(launcher, "func_args", ()), *getattr(launcher, "func_kwargs", {}).values()]),
    )  # fmt: skip
    for one in list(_active):
        made = one.add_launch(made)
    _state.launch = made


def _types(values: Sequence[Any]) -> list[str]:
    """The texts of the types of atoms, tiled objects and layouts."""
    out: list[str] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            out += _types(value)
            continue
        trait = getattr(value, "_trait", None)
        text = str(trait.value.type) if trait is not None else _layout_text(value)
        if text and text not in out:
            out.append(text)
    return out


def _three(dims: Any) -> Any:
    if dims is None:
        return [1, 1, 1]
    if not isinstance(dims, (list, tuple)):
        dims = [dims]
    return [*dims, *[1] * (3 - len(dims))]
