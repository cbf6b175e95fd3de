"""Live objects of NVIDIA's CuTe DSL -> Spec.

Reads at once and keeps nothing of the DSL: its objects live in an MLIR context, and touching one after that context has
closed ends the process. Tables come from NumPy over shapes and strides, since the DSL takes 80 us for one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import AnyLayout, Basis, ComposedLayout, IntArray, Layout, Swizzle, size, tv_table
from texgen.several import several
from texgen.sources import dsl_names as names
from texgen.sources.smem import implied_bits, layout_spec, reach
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, Spec, TVMap, TVSpec

Specs: TypeAlias = "Spec | dict[str, Specs] | list[Specs]"

ACCEPTED = (
    "a TiledMma, TiledCopy, MmaAtom, CopyAtom, Layout, ComposedLayout, Tensor, an MMA or copy Op, "
    "or a dict or list of those"
)
SPECS = (MmaSpec, CopySpec, TVSpec, LayoutSpec)


DEEPEST = 8
"""How deep dicts and lists of objects may be nested."""


def is_dsl_object(obj: Any) -> bool:
    """True for an object of the CuTe DSL, or a non-empty dict, list or tuple of such. Imports nothing."""
    if isinstance(obj, Mapping):
        return bool(obj) and all(is_dsl_object(x) for x in obj.values())
    if isinstance(obj, (list, tuple)) and _is_plain(obj):
        return bool(obj) and all(is_dsl_object(x) for x in obj)
    return not isinstance(obj, type) and _from_dsl(obj)


def _is_plain(obj: Any) -> bool:
    return not _from_dsl(obj)


def _from_dsl(obj: Any) -> bool:
    return any(str(cls.__module__).split(".")[0] == "cutlass" for cls in type(obj).__mro__)


def read_any(obj: Any, *, name: str = "", bits: int = 0, swizzle_unit: str = "", depth: int = 0) -> Specs:
    """The Spec of a DSL object; of a dict a dict whose keys become the names, of a list or tuple a list.

    An entry of a dict that cannot be drawn is left out with a TexgenWarning, unless there is no other.

    Specs in it stay as they are. Raises TexgenError as ``read_object`` does, naming the entry.
    """
    if isinstance(obj, SPECS):
        return obj
    if depth > DEEPEST:
        raise TexgenError(f"These dicts and lists are nested more than {DEEPEST} deep, or hold themselves: give a plain dict of objects.")
    deeper = {"bits": bits, "swizzle_unit": swizzle_unit, "depth": depth + 1}
    if type(obj).__name__ == "TmaInfo" and _from_dsl(obj):
        obj = {"shared memory": obj.smem_layout, "TMA tensor": obj.tma_tensor}
    if isinstance(obj, Mapping):
        for k, v in obj.items():
            if not is_dsl_object(v) and not isinstance(v, (*SPECS, Mapping, list, tuple)):
                _entry(str(k), v)  # nothing of the DSL's: the whole call is wrong
        return several(obj, lambda k, v: _entry(k, v, **deeper))
    if isinstance(obj, (list, tuple)) and _is_plain(obj):
        labels = (f"{name}[{i}]" if name else "" for i in range(len(obj)))
        return [_entry(n, v, **deeper) for n, v in zip(labels, obj, strict=True)]
    return read_object(obj, name=name, bits=bits, swizzle_unit=swizzle_unit)


def _entry(name: str, obj: Any, **options: Any) -> Specs:
    try:
        return read_any(obj, name=name, **options)
    except TexgenError as e:
        raise TexgenError(f"{name}: {e.message}" if name else e.message, e.detail) from None


def read_object(obj: Any, *, name: str = "", bits: int = 0, swizzle_unit: str = "") -> Spec:
    """The Spec of one live DSL object.

    ``name`` replaces the operation's own name. ``bits`` is the element's width and ``swizzle_unit`` what a swizzle
    counts in (see ``smem.layout_spec``); both matter for layouts alone. Works inside a ``@cute.jit`` or
    ``@cute.kernel`` function and in a bare tracing context. Raises TexgenError outside of one, for a dynamic layout,
    and for an object with nothing to draw.
    """
    if isinstance(obj, SPECS):
        return obj
    if not _from_dsl(obj) or isinstance(obj, type):
        raise TexgenError(f"texgen cannot draw {_a(obj)}: give {ACCEPTED}.")
    if type(obj).__name__ == "KernelLauncher":
        raise TexgenError(
            "A @cute.kernel function was called, and its call returns a launcher, not a layout: give the @cute.jit "
            "function, or a plain one that returns the TiledMma or TiledCopy, or call texgen.read inside the kernel."
        )
    _need_context()
    if _has(obj, "_make_trait"):
        obj = _atom_of(obj)
    if _has(obj, "shape_mnk"):
        return _read_mma(obj, name)
    if _has(obj, "layout_src_tv"):
        return _read_copy(obj, name)
    if _has(obj, "element_type") and _has(obj, "iterator"):
        return _read_tensor(obj, name, bits, swizzle_unit)
    if _has(obj, "shape") and (_has(obj, "stride") or _has(obj, "outer") or hasattr(obj, "outer")):
        layout = to_layout(obj)
        spec = layout_spec(layout, name=name, bits=bits, unit=swizzle_unit, source=source())
        return spec if bits or swizzle_unit else implied_bits(spec, layout)
    raise TexgenError(f"texgen cannot draw {_a(obj)}: give {ACCEPTED}.")


def _has(obj: Any, attribute: str) -> bool:
    """Whether the class has it: asking the object would evaluate a property, and with it build IR."""
    return hasattr(type(obj), attribute)


def _a(obj: Any) -> str:
    cls = type(obj)
    module = "" if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}."
    return f"{'an' if cls.__name__[:1].lower() in 'aeiou' and not module else 'a'} {module}{cls.__qualname__}"


def _need_context() -> None:
    from cutlass._mlir import ir

    if ir.Context.current is None:
        raise TexgenError(
            "A live DSL object can be read only while it is traced: call texgen.read inside your @cute.jit function, "
            "or give texgen the name of a function that builds it, module:callable or file.py:callable."
        )


def source() -> str:
    """The DSL's version and the architecture it builds for, ``nvidia-cutlass-dsl 4.8.1, target sm_80``."""
    import cutlass

    version = getattr(cutlass, "__version__", "")
    try:
        from cutlass.cutlass_dsl import CuTeDSL

        target = str(CuTeDSL._get_dsl().envar.arch or "")
    except (ImportError, AttributeError):
        target = ""
    return f"nvidia-cutlass-dsl {version}".strip() + (f", target {target}" if target else "")


def _atom_of(op: Any) -> Any:
    """The atom of a bare operation."""
    import cutlass.cute as cute

    if any(cls.__name__ == "MmaOp" for cls in type(op).__mro__):
        return cute.make_mma_atom(op)
    if names.is_tma(op):
        raise TexgenError(_no_tv(op))
    name = type(op).__name__
    raise TexgenError(
        f"A copy operation has no layout without an element type: give "
        f"cute.make_copy_atom({name}(...), cutlass.Float16, num_bits_per_copy=128) instead of the bare {name}."
    )


def _no_tv(op: Any) -> str:
    return (
        f"The TMA operation {type(op).__name__} has no thread-value layout, since one thread issues the whole box: "
        f"draw the shared-memory layout that it fills, or the TMA tensor that comes beside the atom."
    )


# Layouts as plain data


def to_layout(obj: Any) -> AnyLayout:
    """A DSL Layout or ComposedLayout as plain data.

    Raises TexgenError for a dynamic layout and for one whose inner part is a Python function.
    """
    _need_static(obj)
    if not _has(obj, "outer") and not hasattr(obj, "outer"):
        return Layout(_plain(obj.shape, obj), _plain(obj.stride, obj))
    inner, offset = obj.inner, obj.offset
    outer = to_layout(obj.outer)
    if not isinstance(outer, Layout):
        raise TexgenError(f"The layout {obj} composes more than two parts: draw them one at a time.")
    if type(offset) is not int:
        offset = _plain(offset, obj)
        if type(offset) is not int:
            raise TexgenError(f"The layout {obj} has a coordinate as its offset: draw its outer layout alone.")
    if _has(inner, "num_bits"):
        return ComposedLayout(Swizzle(int(inner.num_bits), int(inner.num_base), int(inner.num_shift)), offset, outer)
    if not _has(inner, "stride"):
        raise TexgenError("The composed layout has a Python function inside, which is no layout: draw its outer part.")
    mapped = to_layout(inner)
    if not isinstance(mapped, Layout):
        raise TexgenError(f"The layout {obj} composes more than two parts: draw them one at a time.")
    return ComposedLayout(mapped, offset, outer)


def _need_static(obj: Any) -> None:
    """Raise TexgenError for a dynamic object, by its type's text: other questions add operations to the user's IR."""
    kind = str(getattr(obj, "type", ""))
    if "?" in kind:
        raise TexgenError(
            f"{_what(obj)} has entries that are known only at run time ({_dynamic_part(kind)}), and a figure needs "
            f"them all: build it from Python integers (cutlass.Constexpr), not from Int32 values."
        )


def _what(obj: Any) -> str:
    return "The layout" if _has(obj, "stride") or hasattr(obj, "outer") else f"The {type(obj).__name__.strip('_')}"


def _dynamic_part(kind: str) -> str:
    parts = [p for p in kind.split('"')[1::2] if "?" in p]
    return parts[0] if parts else kind


def _plain(x: Any, owner: Any) -> Any:
    """Nested tuples of int (and ScaledBasis) as texgen has them."""
    if type(x) is int:
        return x
    if isinstance(x, tuple):
        return tuple(_plain(i, owner) for i in x)
    if _has(x, "mode") and _has(x, "value"):
        value = _plain(x.value, owner)
        mode = x.mode if isinstance(x.mode, (list, tuple)) else [x.mode]
        return Basis(value, tuple(int(m) for m in mode))
    try:
        whole = int(x)
    except Exception:
        raise TexgenError(
            f"{_what(owner)} has an entry that is no static integer ({type(x).__name__}): use Python integers."
        ) from None
    return whole


def _read_tensor(tensor: Any, name: str, bits: int, unit: str) -> LayoutSpec:
    _need_static(tensor)
    layout = to_layout(tensor.layout)
    width = getattr(tensor.element_type, "width", 0)
    bits = bits or (width if isinstance(width, int) else 0)
    swizzle = _pointer_swizzle(tensor)
    if swizzle is not None and isinstance(layout, Layout):
        # The swizzle of a pointer acts on its byte address (CuTe's swizzle_ptr).
        layout, unit = ComposedLayout(swizzle, 0, layout), unit or "bytes"
    return layout_spec(layout, name=name, bits=bits, unit=unit, source=source())


def _pointer_swizzle(tensor: Any) -> Swizzle | None:
    kind = getattr(tensor.iterator, "type", None)
    if not getattr(kind, "is_swizzled", False):
        return None
    numbers = str(kind).rsplit("S<", 1)[-1].split(">")[0].split(",")
    return Swizzle(*(int(x) for x in numbers)) if len(numbers) == 3 else None


# MMA


def _read_mma(mma: Any, name: str) -> MmaSpec:
    _need_static(mma)
    op, tiled = mma.op, _has(mma, "tv_layout_A_tiled")
    atom: tuple[int, int, int] = tuple(size(_plain(x, mma)) for x in mma.shape_mnk)  # type: ignore[assignment]
    own_name = names.mma_name(op, atom)
    notes = names.mma_notes(op)
    if name and name != own_name:
        notes = (f"Atom {own_name}.", *notes)
    warnings: tuple[str, ...] = ()
    threads = permutation = ""
    tile = atom
    if tiled:
        thr_layout = _whole(to_layout(mma.thr_layout_vmnk))
        perms = tuple(None if p is None else _whole(to_layout(p)) for p in mma.permutation_mnk)
        tile = _tile(mma)
        threads, permutation = str(thr_layout), _tuple_text(perms)
    types, memory = names.mma_dtypes(op), names.mma_memory(op)
    maps: dict[str, TVMap] = {}
    if tiled and (_is_odd(atom, thr_layout, perms, tile) or thr_layout.mode(3).size > 1):
        aside = _tile_aside(mma, own_name, atom, thr_layout, perms, types, memory)
        warnings = aside.warnings
        if aside.tile_mnk != tile:
            tile, maps = aside.tile_mnk, aside.operands()
        elif thr_layout.mode(3).size > 1:
            # The DSL's tv_layout_C_tiled, as CuTe C++'s get_layoutC_TV, leaves atoms along K out and runs on into N
            # and beyond the tile; partition_C, which kernels use, gives them the same elements, as our algebra does.
            maps = {"C": aside.C}
            if str(mma.tv_layout_C_tiled) != aside.C.layout:
                notes = (*notes, "C is as partition_C has it; the DSL's tv_layout_C_tiled does not know atoms along K.")
    shapes = (tile[0], tile[2]), (tile[1], tile[2]), (tile[0], tile[1])
    for i, x in enumerate("ABC"):
        if x not in maps:
            layout = getattr(mma, f"tv_layout_{x}{'_tiled' if tiled else ''}")
            maps[x] = _tv_map(layout, shapes[i], types[i], memory[i])
    return MmaSpec(
        name or own_name, tile, **maps, arch=names.mma_arch(op), source=source(), atom_mnk=atom,
        thr_layout_vmnk=threads, permutation_mnk=permutation, notes=notes, warnings=warnings,
    )  # fmt: skip


def _tile(mma: Any) -> tuple[int, int, int]:
    m, n, k = (size(_plain(mma.get_tile_size(i), mma)) for i in range(3))
    return m, n, k


def _tv_map(dsl_layout: Any, tile: tuple[int, int], dtype: str, memory: str) -> TVMap:
    layout = to_layout(dsl_layout)
    table = tv_table(layout)
    rows, columns = tile
    if table.min() < 0 or table.max() >= rows * columns:
        raise TexgenError(
            f"The thread-value layout {layout} reaches index {int(table.max())}, outside its {rows}x{columns} tile: "
            f"choose a tile (permutation_mnk) that the atoms divide."
        )
    return TVMap(tile, table, str(layout), dtype, memory)


def _tuple_text(modes: tuple[Any, ...]) -> str:
    """A tuple of layouts as the DSL prints it: ``(32:1,(8,2,2):(1,16,8),_)``."""
    return f"({','.join('_' if m is None else str(m) for m in modes)})"


def _is_odd(atom: tuple[int, int, int], thr: Layout, perms: tuple[Layout | None, ...], tile: tuple[int, ...]) -> bool:
    """True where the atoms side by side do not divide the tile, or a permutation reaches outside of it."""
    counts = [thr.mode(i + 1).size for i in range(3)]
    return any(n % (m * count) for n, m, count in zip(tile, atom, counts, strict=True)) or any(
        p is not None and reach(p) > p.size for p in perms
    )


def _tile_aside(
    mma: Any, name: str, atom: tuple[int, int, int], thr: Layout, perms: tuple[Layout | None, ...],
    dtypes: tuple[str, str, str], memories: tuple[str, str, str],
) -> MmaSpec:  # fmt: skip
    """The same tiled MMA from texgen's own algebra, over the tile it really reaches, with its warnings.

    In a tile that is too small the DSL's flat indices would wrap round into the next column.
    """
    from texgen.tiling import MmaAtom, tile_threads

    thr_id = _whole(to_layout(mma.thr_id))
    A, B, C = (_whole(to_layout(x)) for x in (mma.tv_layout_A, mma.tv_layout_B, mma.tv_layout_C))
    return tile_threads(MmaAtom(name, atom, thr_id, A, B, C, dtypes=dtypes, memories=memories), thr, perms)


def _whole(layout: AnyLayout) -> Layout:
    if not isinstance(layout, Layout):
        raise TexgenError(f"{layout} is a composed layout where a plain one was expected.")
    return layout


# Copies


def _read_copy(copy: Any, name: str) -> CopySpec:
    _need_static(copy)
    op = copy.op
    if names.is_tma(op):
        raise TexgenError(_no_tv(op))
    dtype = names.dtype_name(copy.value_type)
    width = int(getattr(copy.value_type, "width", 0) or 0)
    atom = to_layout(copy.layout_src_tv), to_layout(copy.layout_dst_tv)
    own_name = names.copy_name(op, dtype, width * atom[1].size // max(1, _threads(atom[1])))
    notes = names.copy_notes(op, width)
    if name and name != own_name:
        notes = (f"Atom {own_name}.", *notes)
    warnings: tuple[str, ...] = ()
    if _has(copy, "layout_src_tv_tiled"):
        layouts = to_layout(copy.layout_src_tv_tiled), to_layout(copy.layout_dst_tv_tiled)
        modes = copy.tiler_mn if isinstance(copy.tiler_mn, tuple) else (copy.tiler_mn,)
        tiler = tuple(Layout.of(m) if type(m) is int else to_layout(m) for m in modes)
        tile, tables, warnings = _through_tiler(tuple(tv_table(x) for x in layouts), tiler)
        text = _tuple_text(tiler)
    else:
        layouts, text = atom, ""
        tile, tables = _atom_tables(op, layouts)
    tmem = names.tmem_sides(op)
    S, D = (
        TVMap(tile, table, str(layout), dtype, "tmem" if there else "rmem")
        for table, layout, there in zip(tables, layouts, tmem, strict=True)
    )
    return CopySpec(
        name or own_name, tile, S, D, arch=names.copy_arch(op), source=source(), tiler=text, notes=notes,
        warnings=warnings,
    )  # fmt: skip


def _threads(layout: AnyLayout) -> int:
    return size(layout.shape[0]) if isinstance(layout.shape, tuple) else 1


def _through_tiler(
    tables: tuple[IntArray, ...], tiler: tuple[AnyLayout, ...]
) -> tuple[tuple[int, int], tuple[IntArray, ...], tuple[str, ...]]:
    """(tile, tables of true column-major positions, warnings).

    A TV value is a column-major index in the tiler's sizes; each mode then goes through its own layout, which may
    permute. Modes past the first lie side by side as columns; a tiler of rank 1 is one row.
    """
    modes = [mode for mode in tiler if isinstance(mode, Layout)]
    if len(modes) != len(tiler):
        raise TexgenError(f"The tiler {_tuple_text(tiler)} has a composed layout in it, which texgen cannot follow.")
    extents = [max(mode.size, reach(mode)) for mode in modes]
    warnings = tuple(
        f"Mode {i} of the tiler, {mode}, has size {mode.size} but reaches {n - 1}: the tile is drawn with {n}, "
        f"and what the copy does not touch stays empty (--allow-holes)."
        for i, (mode, n) in enumerate(zip(modes, extents, strict=True))
        if n > mode.size
    )
    whole = int(np.prod([mode.size for mode in modes]))
    rows = extents[0] if len(modes) > 1 else 1
    out = []
    for table in tables:
        if table.size and (table.min() < 0 or table.max() >= whole):
            where = f"outside its tiler {_tuple_text(tiler)}"
            raise TexgenError(f"The copy's layout reaches index {int(table.max())}, {where}: choose a larger tiler.")
        rest, position, step = table, np.zeros_like(table), 1
        for mode, n in zip(modes, extents, strict=True):
            position = position + step * mode.offsets()[rest % mode.size]
            rest, step = rest // mode.size, step * n
        out.append(position)
    return (rows, int(np.prod(extents)) // rows), tuple(out), warnings


def _atom_tables(op: Any, layouts: tuple[AnyLayout, AnyLayout]) -> tuple[tuple[int, int], tuple[IntArray, ...]]:
    """(tile, column-major tables) of a copy atom on its own.

    Matrix and tensor-memory atoms index a row-major buffer, ``width*row + column``; others move one row of elements.
    """
    tables = tuple(tv_table(x) for x in layouts)
    total = max(int(t.max()) for t in tables) + 1
    width = total
    if names.is_matrix_copy(op):
        # One row is what one address names: the values that one thread has on the shared-memory side.
        width = tables[0 if type(op).__name__.startswith("Ld") else 1].shape[1]
    elif any(names.tmem_sides(op)):
        lanes = 16 if type(op).__name__[2:4] == "16" else 32
        width = total // lanes if total % lanes == 0 else total
    rows = -(-total // width)
    return (rows, width), tuple(t // width + rows * (t % width) for t in tables)
