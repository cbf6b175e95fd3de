"""What a recording sees: where the source stands, what an object is made of, and the events kept of it.

Each ``saw_…`` is called by a wrapper of ``hooks.py`` and keeps texts alone; our own fault there is never the program's.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

from texgen.trace import naming, reading
from texgen.trace.naming import Place
from texgen.trace.records import Event, Frames, Launch, Recording, identity, same_layout
from texgen.trace.wrapping import WRAPPERS

_CLASSES = {"TiledMma": "tiled_mma", "TiledCopy": "tiled_copy", "MmaAtom": "mma_atom", "CopyAtom": "copy_atom"}
OURS = {os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py") for name in ("sightings", "hooks", "recorder")}
"""The files of the recorder itself."""

active: list[Recording] = []
lock = threading.RLock()


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


state = _State()


def record(kind: str, text: str, payload: dict[str, Any]) -> None:
    frames, callee = user_frames()
    if not frames or state.auxiliary:
        return
    for one in list(active):
        one.add(Event(
            kind, frames, text, dict(payload), state.trace, state.launch, callee, one._count, call=identity(frames)
        ))  # fmt: skip


dsl_root = ""
inner: dict[str, bool] = {}


def is_inner(file: str) -> bool:
    """True for files of the DSL and for these."""
    known = inner.get(file)
    if known is None:
        path = os.path.abspath(file)
        known = inner[file] = path.startswith(dsl_root) or path in OURS or file == WRAPPERS
    return known


def user_frames() -> tuple[Frames, str]:
    """(frames outside the DSL, innermost first, with the instruction they stand at; the DSL function they called)."""
    out: list[tuple[CodeType, int, int]] = []
    callee = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not is_inner(code.co_filename):
            out.append((code, frame.f_lasti, frame.f_lineno))
            if len(out) >= 24:
                break
        elif not out and code.co_filename != WRAPPERS and code.co_name != "wrapper" and code.co_filename not in OURS:
            callee = code.co_name
        frame = frame.f_back
    return tuple(out), callee


def guarded(function: Callable[..., None]) -> Callable[..., None]:
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
def source_text(arch: str) -> str:
    import cutlass

    version = getattr(cutlass, "__version__", "")
    return f"nvidia-cutlass-dsl {version}".strip() + (f", target {arch}" if arch else "")


def current_arch() -> str:
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
        return {"type": value.__name__, "width": width(value)}
    if isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, tuple | list):
        return [_fact(v) for v in value]
    if hasattr(value, "name") and "_mlir" not in type(value).__module__:
        return f"{type(value).__name__}.{value.name}"
    return str(value) if type(value).__module__.split(".")[0] == "cutlass" and hasattr(type(value), "__members__") else None


@guarded
def saw_atom(atom: Any) -> None:
    kind = _CLASSES.get(type(atom).__name__)
    if kind is None or state.copying or not active:
        return
    from texgen.sources import dsl_names

    op, value_type = atom.op, None
    arch = current_arch()
    payload: dict[str, Any] = {"arch": arch, "source": source_text(arch), "op": _facts(op)}
    mlir_type = atom._trait.value.type
    if kind.endswith("copy") or kind == "copy_atom":
        if dsl_names.is_tma(op) or type(op).__name__.startswith("CopyBulk"):
            kind = "tma_atom"
            payload |= {"op_name": type(op).__name__, "tma": str(mlir_type)}
            payload |= tma_context.get()
        else:
            value_type = _fact(getattr(atom, "value_type", None))
            payload |= {"parts": reading.parts_of(mlir_type, reading.COPY_PARTS), "value_type": value_type}
    else:
        payload["parts"] = reading.parts_of(mlir_type, reading.MMA_PARTS)
    record(kind, str(mlir_type), payload)


class _TmaContext(threading.local):
    value: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        return self.value or {}


tma_context = _TmaContext()


def layout_text(layout: Any) -> str:
    """The text of a DSL layout's type, empty for what is no layout."""
    try:
        return str(layout.type)
    except Exception:
        return ""


def width(dtype: Any) -> int:
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


@guarded
def saw_layout(function: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A shared-memory layout helper's result counts at once, tile_to_shape's when a tensor is made with it."""
    from texgen.sources.dsl_names import dtype_name

    text = layout_text(result)
    if not text:
        return
    arch = current_arch()
    payload: dict[str, Any] = {"layout": text, "arch": arch, "source": source_text(arch)}
    if "smem_layout" in function:
        payload["used"] = True
        dtype = _dtype_in(args, kwargs)
        payload |= {"bits": width(dtype), "dtype": dtype_name(dtype)}
    record("smem_layout", text, payload)


def use_layout(text: str, dtype: Any) -> None:
    """A shared-memory tensor or a TMA atom is made with this layout: those recorded with it are used, and of its type."""
    from texgen.sources.dsl_names import dtype_name

    wanted = reading.bare(text)
    for one in list(active):
        for e in one._of("smem_layout"):
            if e.trace == state.trace and same_layout(e.text, wanted):
                e.payload["used"] = True
                if not e.payload.get("bits") and width(dtype):
                    e.payload |= {"bits": width(dtype), "dtype": dtype_name(dtype)}
                with one._lock:
                    one._count += 1
                    one._note(e)


@guarded
def saw_tensor(dtype: Any, layout: Any, swizzle: Any, own: bool) -> None:
    from texgen.sources.dsl_names import dtype_name

    if isinstance(layout, int):
        text = f"{layout}:1"
    else:
        text = layout_text(layout)
    if not text:
        return
    use_layout(text, dtype)
    arch = current_arch()
    whole = text
    if swizzle is not None and " o " not in text:
        found = re.search(r"S<[^>]*>", str(swizzle)) or re.search(r"S<[^>]*>", str(getattr(swizzle, "type", "")))
        whole = f"{found[0]} o 0 o {reading.bare(text)}" if found else text
        use_layout(whole, dtype)
    record("tensor", whole, {
        "layout": whole, "bits": width(dtype), "dtype": dtype_name(dtype), "own": own, "arch": arch,
        "source": source_text(arch),
    })  # fmt: skip


@guarded
def saw_allocation(size: int, dtype: Any, layout: str, fields: list[tuple[str, int, int]]) -> None:
    from texgen.sources.dsl_names import dtype_name

    payload = {"size": size, "bits": width(dtype), "dtype": dtype_name(dtype), "layout": reading.bare(layout), "fields": fields}
    record("allocation", f"{size} {layout}", payload)


@guarded
def saw_partition(function: str, result: Any, args: tuple[Any, ...]) -> None:
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
        record("partition", text, {
            "layout": reading.bare(str(layout)) if layout is not None else reading.last_quoted(text), "call": function,
            "owner": owner, "of": whole, "index": index if many else None,
        })  # fmt: skip


def dims(values: Sequence[Any] | None, place: Place | None, name: str, scalar: bool = False) -> list[int | str]:
    """Launch sizes: ints where they are static, otherwise the source's text."""
    out: list[int | str] = []
    for value in values or ():
        if type(value) is int:
            out.append(value)
        elif value is not None:
            inner = getattr(value, "value", None)
            out.append(inner if type(inner) is int else "?")
    if "?" in out and place is not None:
        texts = unpacked(naming.argument(place, name), len(out))
        if len(texts) == 1 and len(out) > 1 and not scalar:
            return list(texts) if all(x == "?" for x in out) else [f"{texts[0]}[{i}]" if x == "?" else x for i, x in enumerate(out)]
        return [t if x == "?" and t else x for x, t in zip(out, [*texts, *[""] * len(out)], strict=False)]
    return out


def unpacked(texts: list[str], count: int) -> list[str]:
    """``*grid, 1`` of three sizes is ``grid[0]``, ``grid[1]``, ``1``."""
    starred = [i for i, text in enumerate(texts) if text.startswith("*")]
    if len(starred) != 1:
        return texts
    at, missing = starred[0], count - len(texts) + 1
    return [*texts[:at], *(f"{texts[at][1:]}[{i}]" for i in range(missing)), *texts[at + 1 :]]
