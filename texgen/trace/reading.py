"""The text of a DSL object's MLIR type -> Spec, after the trace and without the DSL.

A type's text names every layout of its object, and asking for it adds nothing to the program's IR. The reader of live
objects then sees stand-ins that have those layouts as attributes, so that both give the same spec.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from texgen.errors import TexgenError
from texgen.layouts import AnyLayout, ComposedLayout, Layout
from texgen.sources import dsl
from texgen.sources.smem import layout_spec
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, Spec

MMA_PARTS = (
    "thr_id", "shape_mnk", "layout_a_tv", "layout_b_tv", "layout_c_tv", "layout_a_tv_tiled", "layout_b_tv_tiled",
    "layout_c_tv_tiled", "thr_layout_vmnk", "permutation_mnk",
)  # fmt: skip
COPY_PARTS = (
    "thr_id", "layout_src_tv", "layout_dst_tv", "layout_src_tv_tiled", "layout_dst_tv_tiled", "tiler_mn",
)  # fmt: skip
QUOTED = re.compile(r'[< ]"(.*)">')


def parts_of(kind: Any, names: tuple[str, ...]) -> dict[str, str]:
    """The texts of a type's layouts, shapes and tilers; those that it has."""
    return {name: str(getattr(kind, name)) for name in names if hasattr(kind, name)}


def bare(text: str) -> str:
    """``(8,64):(64,1)`` of ``!cute.layout<"(8,64):(64,1)">``."""
    found = QUOTED.search(text)
    return found[1] if found else text


def last_quoted(text: str) -> str:
    """The layout of a coordinate tensor's type, which has its origin before it; the text where it has none."""
    found: list[str] = re.findall(r'"([^"]*)"', text)
    return found[-1] if found else text


@lru_cache(maxsize=4096)
def layout(text: str) -> AnyLayout:
    """The layout of a type's text. Raises TexgenError for a dynamic one."""
    from texgen.sources.text import parse_layout

    plain = bare(text)
    if "?" in plain:
        raise TexgenError(
            f"The layout has entries that are known only at run time ({plain}), and a figure needs them all."
        )
    return parse_layout(plain)


def _tile(text: str) -> tuple[Layout | None, ...]:
    """``[32:1;(8,2):(1,8);_]`` as layouts, None for a mode that is left alone."""
    plain = bare(text)
    modes = plain[1:-1].split(";") if plain.startswith("[") else [plain]
    out: list[Layout | None] = []
    for mode in modes:
        made = None if mode.strip() == "_" else layout(mode if ":" in mode else f"{mode}:1")
        out.append(made if made is None or isinstance(made, Layout) else None)
    return tuple(out)


def _ints(text: str) -> Any:
    return _nested(re.findall(r"[()]|\d+", bare(text)))


def _nested(tokens: list[str]) -> Any:
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(int(token))
    return stack[0][0] if stack[0] else ()


class NumberType:
    """An element type by its name in the DSL and its width."""

    def __init__(self, name: str, width: int) -> None:
        self.__name__, self.width = name, width


def operation(facts: dict[str, Any]) -> Any:
    """An operation as its names ask for it: a class of the same name, module and bases, with the plain fields."""
    made: type = object
    for name in reversed(facts["classes"]):
        made = type(name, (made,), {"__module__": facts["module"]})
    out = made()
    for key, value in facts["fields"].items():
        setattr(out, key, _field(value))
    return out


def _field(value: Any) -> Any:
    if isinstance(value, dict):
        return NumberType(value["type"], value["width"])
    return tuple(_field(v) for v in value) if isinstance(value, list) else value


class MmaStandIn:
    """An MMA atom as the reader of live objects asks for it."""

    shape_mnk: Any = None

    def __init__(self, op: Any, text: str, parts: dict[str, str]) -> None:
        self.op, self.type = op, text
        self.shape_mnk = _ints(parts["shape_mnk"])
        self.thr_id = layout(parts["thr_id"])
        for x in "abc":
            setattr(self, f"tv_layout_{x.upper()}", layout(parts[f"layout_{x}_tv"]))


class TiledMmaStandIn(MmaStandIn):
    """A tiled MMA."""

    tv_layout_A_tiled: Any = None

    def __init__(self, op: Any, text: str, parts: dict[str, str]) -> None:
        super().__init__(op, text, parts)
        for x in "abc":
            setattr(self, f"tv_layout_{x.upper()}_tiled", layout(parts[f"layout_{x}_tv_tiled"]))
        self.thr_layout_vmnk = layout(parts["thr_layout_vmnk"])
        self.permutation_mnk = (*_tile(parts["permutation_mnk"]), None, None, None)[:3]

    def get_tile_size(self, i: int) -> int:
        mode = self.permutation_mnk[i]
        return mode.size if mode is not None else _size(self.shape_mnk[i]) * self.thr_layout_vmnk.mode(i + 1).size  # type: ignore[union-attr]


class CopyStandIn:
    """A copy atom."""

    layout_src_tv: Any = None

    def __init__(self, op: Any, text: str, parts: dict[str, str], value_type: Any) -> None:
        self.op, self.type, self.value_type = op, text, value_type
        self.layout_src_tv = layout(parts["layout_src_tv"])
        self.layout_dst_tv = layout(parts["layout_dst_tv"])


class TiledCopyStandIn(CopyStandIn):
    """A tiled copy."""

    layout_src_tv_tiled: Any = None

    def __init__(self, op: Any, text: str, parts: dict[str, str], value_type: Any) -> None:
        super().__init__(op, text, parts, value_type)
        self.layout_src_tv_tiled = layout(parts["layout_src_tv_tiled"])
        self.layout_dst_tv_tiled = layout(parts["layout_dst_tv_tiled"])
        self.tiler_mn = _tile(parts["tiler_mn"])


def _size(shape: Any) -> int:
    from texgen.layouts import size

    return size(shape)


def mma_spec(op: dict[str, Any], text: str, parts: dict[str, str], source: str) -> MmaSpec:
    """The spec of an MMA atom or a tiled MMA. Raises TexgenError as ``dsl.read_object``."""
    if "?" in text:
        raise TexgenError(
            f"The MMA has entries that are known only at run time ({text}), and a figure needs them all: build it from "
            f"Python integers (cutlass.Constexpr), not from Int32 values."
        )
    made = (TiledMmaStandIn if "layout_c_tv_tiled" in parts else MmaStandIn)(operation(op), text, parts)
    return replace(dsl._read_mma(made, ""), source=source)


def copy_spec(op: dict[str, Any], text: str, parts: dict[str, str], value_type: Any, source: str) -> CopySpec:
    """The spec of a copy atom or a tiled copy. Raises TexgenError as ``dsl.read_object``."""
    made = (TiledCopyStandIn if "layout_src_tv_tiled" in parts else CopyStandIn)(operation(op), text, parts, _field(value_type))
    return replace(dsl._read_copy(made, ""), source=source)


def smem_spec(text: str, bits: int, source: str, for_mma: bool = False) -> LayoutSpec:
    """The spec of a shared-memory layout: of a staged one its first stage, of one partitioned for an MMA its tile."""
    whole = layout(text)
    drawn, notes = plane(whole, for_mma)
    spec = layout_spec(drawn, bits=bits, source=source)
    return replace(spec, notes=(*notes, *spec.notes)) if notes else spec


def plane(whole: AnyLayout, for_mma: bool = False) -> tuple[AnyLayout, tuple[str, ...]]:
    """(two modes of a layout to draw, notes on what was left out or grouped).

    ``((M,K),restM,restK,stages)``, as the DSL partitions operands for tcgen05, becomes M by K (with no stages only where
    ``for_mma`` says so); modes past the second are stages, of which the first is drawn.
    """
    outer = whole.outer if isinstance(whole, ComposedLayout) else whole
    if outer.rank <= 2:
        return whole, ()
    notes: list[str] = []
    modes = [outer.mode(i) for i in range(outer.rank)]
    if outer.rank in ((3, 4) if for_mma else (4,)) and modes[0].rank == 2:
        mk = modes[0]
        rows, columns = _join(mk.mode(0), modes[1]), _join(mk.mode(1), modes[2])
        stages = modes[3:]
        notes.append(f"Modes of {bare(str(outer))} grouped as rows (0.0, 1) and columns (0.1, 2).")
    else:
        rows, columns, stages = modes[0], modes[1], modes[2:]
    count = 1
    for stage in stages:
        count *= stage.size
    if count > 1:
        step = f", each {stages[0].stride} elements further" if len(stages) == 1 and isinstance(stages[0].stride, int) else ""
        notes.append(f"Stage 0 of {count} is drawn{step}; the whole is {whole}.")
    two = Layout((rows.shape, columns.shape), (rows.stride, columns.stride))
    return (ComposedLayout(whole.inner, whole.offset, two) if isinstance(whole, ComposedLayout) else two), tuple(notes)


def _join(a: Layout, b: Layout) -> Layout:
    if b.size == 1:
        return a
    if a.size == 1:
        return b
    return Layout((a.shape, b.shape), (a.stride, b.stride))


def bytes_of(text: str, bits: int) -> int:
    """Bytes that a layout of elements of ``bits`` reaches over; 0 where that is not known."""
    try:
        whole = layout(text)
    except TexgenError:
        return 0
    outer = whole.outer if isinstance(whole, ComposedLayout) else whole
    from texgen.layouts import flat

    last = sum((n - 1) * d for n, d in flat(outer.shape, outer.stride) if isinstance(d, int) and d > 0)
    return (last + 1) * bits // 8


__all__ = ["Spec", "bare", "bytes_of", "copy_spec", "layout", "mma_spec", "parts_of", "plane", "smem_spec"]
