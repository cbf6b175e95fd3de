"""Atoms, and how CuTe lays them over a tile: ``TiledMMA`` in plain integers.

The construction is that of CuTe's ``TiledMMA`` (cutlass/include/cute/atom/mma_atom.hpp: ``thrfrg_A/B/C``,
``get_layoutA_TV`` and its sisters), with ``tensor-layouts`` doing the algebra: each mode of the tile is divided by the
permutation, by the atom and by the atoms side by side, the atom's own thread-value layout is composed into its part,
and the thread mode is composed with the right inverse of ``thr_layout_vmnk`` so that rows are real thread numbers.

Where CuTe C++ and the DSL differ, the DSL is followed: its tile is the permutation's size even where that is smaller
than the atoms laid over it. Both alias flat indices of elements outside such a tile; here the tile grows instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import MAX_ENTRIES, IntTuple, Layout, flat, size, text, tv_table
from texgen.specs import MmaSpec, TVMap

Permutation: TypeAlias = "int | Layout | None"

ALGEBRA_ERRORS = (ValueError, TypeError, AssertionError, NotImplementedError, ZeroDivisionError, IndexError)
"""What tensor-layouts raises where an operation is not admissible."""

MODES = "MNK"
WHERE = {"M": "row", "N": "column", "K": "k"}


@dataclass(frozen=True)
class MmaAtom:
    """One matrix instruction: thread-value layouts of A (m + M*k), B (n + N*k) and C (m + M*n), column-major.

    ``thr_id`` maps the atom's logical threads to real lanes. ``dtypes`` and ``memories`` are those of A, B and C
    (``rmem``, ``smem``, ``tmem``). ``origin`` says where the layouts come from.
    """

    name: str
    shape_mnk: tuple[int, int, int]
    thr_id: Layout
    A: Layout
    B: Layout
    C: Layout
    arch: str = ""
    origin: str = ""
    dtypes: tuple[str, str, str] = ("", "", "")
    memories: tuple[str, str, str] = ("rmem", "rmem", "rmem")
    instruction: str = ""
    notes: tuple[str, ...] = ()

    kind = "mma"


def tile_mma(atom: MmaAtom, atom_layout: Layout | None = None, tile: Sequence[Permutation] | None = None) -> MmaSpec:
    """``make_tiled_mma(atom, atom_layout, permutation_mnk=tile)`` as tables.

    ``atom_layout`` has up to three modes, M, N and K (default one atom); an entry of ``tile`` is an extent, a
    permutation layout, or None for the atoms' own extent. Raises TexgenError where the tile cannot be laid out.
    """
    import tensor_layouts as tl

    layout = _atom_layout(atom_layout)
    if size(layout.shape) * atom.thr_id.size > MAX_ENTRIES:
        raise TexgenError(f"{layout} lays {layout.size:,} atoms side by side, more than texgen evaluates.")
    try:
        vmnk = tl.tiled_product(to_tl(atom.thr_id), to_tl(layout))
    except ALGEBRA_ERRORS as e:
        raise TexgenError(
            f"The atom layout {layout} cannot be laid over the atom's threads {atom.thr_id}: {reason(e)}. "
            f"Use a compact one such as (2,2,1) or (2,2,1):(2,1,0)."
        ) from None
    return tile_threads(atom, from_tl(vmnk), tile)


def tile_threads(atom: MmaAtom, thr_layout_vmnk: Layout, tile: Sequence[Permutation] | None = None) -> MmaSpec:
    """As ``tile_mma``, from a ``thr_layout_vmnk`` (V, M, N, K) that was read from a live ``TiledMma``."""
    import tensor_layouts as tl

    if thr_layout_vmnk.rank != 4:
        raise TexgenError(f"thr_layout_vmnk has four modes (V,M,N,K); {thr_layout_vmnk} has {thr_layout_vmnk.rank}.")
    for layout in (atom.A, atom.B, atom.C):
        if layout.rank != 2:
            raise TexgenError(f"A thread-value layout has two modes, (threads, values), and {layout} has {layout.rank}.")
    places = thr_layout_vmnk.offsets()
    if len(np.unique(places)) != len(places):
        raise TexgenError(
            f"{atom.name}: the atom layout puts several atoms on the same threads (thr_layout_vmnk {thr_layout_vmnk}): "
            f"give each mode over 1 a stride of its own, for example (2,2,1):(1,2,0)."
        )
    counts = tuple(thr_layout_vmnk.mode(i + 1).size for i in range(3))
    permutation = _permutation(tile)
    modes = [_divide(atom, m, permutation[m], counts[m]) for m in range(3)]
    _check_size(atom, thr_layout_vmnk, modes)
    extents = modes[0].extent, modes[1].extent, modes[2].extent
    vmnk = to_tl(thr_layout_vmnk)
    operands = {}
    try:
        holes = tl.complement(vmnk)
        lanes = tl.right_inverse(tl.Layout((vmnk.shape, holes.shape), (vmnk.stride, holes.stride)))
        if tl.size(lanes) <= int(places.max()):
            raise TexgenError(
                f"{atom.name}: its lanes {atom.thr_id} and the atom layout leave gaps in the thread numbers that nothing "
                f"fills (thr_layout_vmnk {thr_layout_vmnk}): use powers of two, for example (2,2,1)."
            )
        for i, (name, rows, columns) in enumerate((("A", 0, 2), ("B", 1, 2), ("C", 0, 1))):
            layout = _operand(getattr(atom, name), rows, columns, modes, thr_layout_vmnk, holes.shape, lanes)
            tile_of = extents[rows], extents[columns]
            operands[name] = TVMap(tile_of, tv_table(layout), str(layout), atom.dtypes[i], atom.memories[i])
    except ALGEBRA_ERRORS as e:
        raise TexgenError(
            f"{atom.name}: its thread-value layouts cannot be laid over the tile {text(extents)}: {reason(e)}."
        ) from None
    return MmaSpec(
        name=atom.name,
        tile_mnk=extents,
        **operands,
        arch=atom.arch,
        source=atom.origin,
        atom_mnk=atom.shape_mnk,
        thr_layout_vmnk=str(thr_layout_vmnk),
        permutation_mnk="" if tile is None else text(tuple("_" if p is None else str(p) for p in permutation)),
        notes=atom.notes,
        warnings=tuple(w for m in modes for w in m.warnings),
    )


def val_layout_tile(atom: MmaAtom, atom_layout: Layout | None, val_layout: Layout) -> tuple[int, int, int]:
    """The tile that CUTLASS before 3.4 made from ``ValLayoutMNK``.

    There ``TiledShape_MNK`` was the atom's shape times the atoms times the values in each mode, with the values
    outermost (cutlass 3.3, mma_atom.hpp), which is what an integer permutation of that extent gives today.
    """
    threads, values = _atom_layout(atom_layout), _atom_layout(val_layout, "value")
    return tuple(  # type: ignore[return-value]
        atom.shape_mnk[i] * threads.mode(i).size * values.mode(i).size for i in range(3)
    )


@dataclass(frozen=True)
class _Mode:
    """One mode of the tile: how the atom's, the side-by-side atoms' and the repeats' coordinates become positions."""

    extent: int
    atom: Any
    threads: Any
    rest: Any
    warnings: tuple[str, ...]


def _divide(atom: MmaAtom, m: int, permutation: Permutation, count: int) -> _Mode:
    """Divide mode ``m`` by its permutation, its atom and the ``count`` atoms side by side (CuTe's ``thrfrg``)."""
    import tensor_layouts as tl

    name, unit = MODES[m], atom.shape_mnk[m]
    core = unit * count
    whole, extent, said = tl.Layout(core), core, ""
    if isinstance(permutation, int):
        whole, extent = tl.Layout(permutation), permutation
    elif permutation is not None:
        whole, extent, said = _permuted(name, permutation)
    if extent % unit:
        near = max(1, round(extent / unit)) * unit
        raise TexgenError(
            f"{atom.name}: the tile's {name}={extent} is not a multiple of the atom's {unit}: "
            f"take {near} or another multiple of {unit} for {name}."
        )
    try:
        inner = tl.logical_divide(whole, tl.Layout(unit))
        outer = tl.logical_divide(tl.mode(inner, 1), tl.Layout(count))
        parts = tl.mode(inner, 0), tl.mode(outer, 0), tl.mode(outer, 1)
    except ALGEBRA_ERRORS as e:
        raise TexgenError(
            f"{atom.name}: the tile's {name}={permutation or extent} does not divide into {count} atoms of {unit}: "
            f"{reason(e)}. Take a multiple of {core} for {name}."
        ) from None
    reached = _sums(*(from_tl(p) for p in parts))
    drawn = int(reached.max()) + 1
    distinct = len(np.unique(reached))
    if distinct != drawn or int(reached.min()) < 0:
        raise TexgenError(
            f"{atom.name}: with {name}={permutation or extent} the atoms reach {distinct} of the {drawn} "
            f"positions up to {name.lower()}={drawn - 1}: take a permutation that covers each position once."
        )
    drawn = max(drawn, extent)
    warnings = []
    if said and drawn > extent:
        warnings.append(f"{said}: the tile is drawn with {name}={drawn}.")
    if core > extent:
        tail = (
            f"they reach {WHERE[name]} {drawn - 1}, and the tile is drawn with {name}={drawn}"
            if drawn > extent and not said
            else f"{core // extent} of them coincide, and so do their threads"
        )
        warnings.append(
            f"The tile's {name}={extent} is smaller than the {count} atoms of {unit} laid over it ({core}): {tail}."
        )
    return _Mode(drawn, *parts, tuple(warnings))


def _permuted(name: str, permutation: Layout) -> tuple[Any, int, str]:
    """(the mode divided by a permutation layout, the permutation's size, what to say if it reaches outside it)."""
    import tensor_layouts as tl

    places = permutation.offsets()
    if len(np.unique(places)) != len(places) or int(places.min()) < 0:
        raise TexgenError(
            f"The permutation {permutation} of {name} is not one: it takes {len(places)} positions to "
            f"{len(np.unique(places))}; give each mode its own stride, for example (8,2,2):(1,16,8)."
        )
    try:
        whole = tl.logical_divide(tl.Layout(permutation.size), to_tl(permutation))
    except ALGEBRA_ERRORS as e:
        raise TexgenError(f"The permutation {permutation} of {name} cannot divide the tile: {reason(e)}.") from None
    reach = int(places.max())
    return (
        whole,
        permutation.size,
        f"The permutation {permutation} of {name} has size {permutation.size} but reaches {WHERE[name]} {reach}",
    )


def _operand(
    atom_tv: Layout, rows: int, columns: int, modes: list[_Mode], vmnk: Layout, holes: Any, lanes: Any
) -> Layout:
    """The operand's thread-value layout: (thread, (value, (repeats of rows, repeats of columns)))."""
    import tensor_layouts as tl

    step = {rows: 1, columns: modes[rows].extent}

    def scaled(layout: Any, m: int) -> Any:
        return tl.Layout(layout.shape, _scale(layout.stride, step[m]))

    def joined(*layouts: Any) -> Any:
        return tl.Layout(tuple(x.shape for x in layouts), tuple(x.stride for x in layouts))

    tv = tl.compose(joined(scaled(modes[rows].atom, rows), scaled(modes[columns].atom, columns)), to_tl(atom_tv))
    side = [
        scaled(modes[m].threads, m) if m in step else tl.Layout(vmnk.mode(m + 1).size, 0) for m in range(3)
    ]
    idle = tl.Layout(holes, _scale(holes, 0))
    # The thread mode's domain is (V, M, N, K) and the gaps in the thread numbers, which repeat the others.
    domain = joined(joined(tl.mode(tv, 0), *side), idle)
    threads = tl.compose(domain, lanes)
    rest = joined(scaled(modes[rows].rest, rows), scaled(modes[columns].rest, columns))
    return from_tl(joined(threads, joined(tl.mode(tv, 1), rest)))


def _check_size(atom: MmaAtom, vmnk: Layout, modes: list[_Mode]) -> None:
    """Refuse tables that would not fit in memory, before any is made."""
    threads = int(vmnk.offsets().max()) + 1
    for name, rows, columns, tv in (("A", 0, 2, atom.A), ("B", 1, 2, atom.B), ("C", 0, 1, atom.C)):
        repeats = size(modes[rows].rest.shape) * size(modes[columns].rest.shape)
        if threads * tv.mode(1).size * repeats > MAX_ENTRIES:
            raise TexgenError(
                f"{atom.name}: {name} of {modes[rows].extent}x{modes[columns].extent} for {threads:,} threads has more "
                f"than the {MAX_ENTRIES:,} entries that texgen evaluates: give a smaller tile."
            )


def _atom_layout(layout: Layout | None, what: str = "atom") -> Layout:
    """The layout with exactly three modes, M, N and K."""
    if layout is None:
        return Layout.of((1, 1, 1))
    if layout.rank > 3:
        raise TexgenError(
            f"The {what} layout {layout} has {layout.rank} modes and there are three, M, N and K: "
            f"write for example (2,2,1)."
        )
    if any(n < 1 for n, _ in flat(layout.shape, layout.stride)):
        raise TexgenError(f"The {what} layout {layout} has an extent under 1.")
    if layout.size > MAX_ENTRIES:
        raise TexgenError(f"The {what} layout {layout} has {layout.size:,} entries, more than texgen evaluates.")
    if any(not isinstance(d, int) or not 0 <= d <= MAX_ENTRIES for _, d in _flat(layout)):
        raise TexgenError(f"The {what} layout {layout} needs whole strides of 0 to {MAX_ENTRIES:,}.")
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    pad = 3 - len(shape)
    return Layout((*shape, *(1,) * pad), (*stride, *(0,) * pad))


def _permutation(tile: Sequence[Permutation] | None) -> list[Permutation]:
    """The tile with exactly three entries, sizes checked; a compact layout is its extent, as in the DSL."""
    entries = list(tile or ())
    if len(entries) > 3:
        raise TexgenError(f"A tile has three modes, M, N and K, not {len(entries)}: write for example 32,32,16.")
    for m, p in enumerate(entries):
        extent = p.size if isinstance(p, Layout) else p
        if extent is not None and not 0 < extent <= MAX_ENTRIES:
            raise TexgenError(f"The tile's {MODES[m]}={extent} is out of range: take 1 to {MAX_ENTRIES:,}.")
        if isinstance(p, Layout):
            if any(not isinstance(d, int) or not 0 <= d <= MAX_ENTRIES for _, d in _flat(p)):
                raise TexgenError(f"The permutation {p} of {MODES[m]} needs whole strides of 0 to {MAX_ENTRIES:,}.")
            if _reach(p) >= MAX_ENTRIES:
                raise TexgenError(
                    f"The permutation {p} of {MODES[m]} reaches {_reach(p):,}, further than texgen draws."
                )
            if p.rank == 1 and p.stride in (1, (1,)):
                entries[m] = p.size
    return [*entries, *(None,) * (3 - len(entries))]


def _flat(layout: Layout) -> list[tuple[int, Any]]:
    return list(flat(layout.shape, layout.stride))


def _reach(layout: Layout) -> int:
    return sum((n - 1) * d for n, d in _flat(layout))


def _sums(*layouts: Layout) -> Any:
    """All sums of one offset of each layout."""
    out = np.zeros(1, dtype=np.int64)
    for layout in layouts:
        if len(out) * layout.size > MAX_ENTRIES:
            raise TexgenError(f"The tile has more than the {MAX_ENTRIES:,} positions that texgen evaluates.")
        out = (out[None, :] + layout.offsets()[:, None]).reshape(-1)
    return out


def _scale(stride: Any, by: int) -> Any:
    return tuple(_scale(d, by) for d in stride) if isinstance(stride, tuple) else stride * by


def to_tl(layout: Layout) -> Any:
    """A texgen layout as tensor-layouts'."""
    import tensor_layouts as tl

    return tl.Layout(layout.shape, layout.stride)


def from_tl(x: Any) -> Layout:
    """A tensor-layouts layout as texgen's, one-entry tuples unwrapped as CuTe prints them."""
    return Layout(*_unwrap(x.shape, x.stride))


def _unwrap(shape: IntTuple, stride: Any) -> tuple[IntTuple, Any]:
    if not isinstance(shape, tuple):
        return shape, (0 if shape == 1 else stride)
    if len(shape) == 1:
        return _unwrap(shape[0], stride[0])
    pairs = [_unwrap(s, d) for s, d in zip(shape, stride, strict=True)]
    return tuple(s for s, _ in pairs), tuple(d for _, d in pairs)


def reason(e: Exception) -> str:
    return str(e).strip().rstrip(".").split("\n")[0] or type(e).__name__
