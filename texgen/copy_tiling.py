"""Copy atoms, and how CuTe lays them over a tile: ``TiledCopy`` in plain integers.

The construction is that of cutlass/include/cute/atom/copy_atom.hpp: ``make_tiled_copy`` (a raked product of a thread
and a value layout), ``tile2thrfrg`` (the TV layout divided by the atom, and the atom's reference layout changed for its
source or destination), ``get_layoutS_TV`` and ``get_layoutD_TV``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import MAX_ENTRIES, IntArray, Layout, size, tv_table
from texgen.specs import CopySpec, TVMap
from texgen.tiling import ALGEBRA_ERRORS, _scale, from_tl, reason, to_tl

Tiler: TypeAlias = "Sequence[int | Layout]"


@dataclass(frozen=True)
class CopyAtom:
    """One copy instruction: thread-value layouts of source and destination, in elements of ``bits`` bits.

    ``row`` is the length of a row where the instruction works on a matrix (ldmatrix, stmatrix: 8 elements of 16 bits),
    and 0 where a thread copies a run of elements. ``ref`` names the side that a TV layout describes: the registers.
    """

    name: str
    thr_id: Layout
    src: Layout
    dst: Layout
    bits: int = 16
    row: int = 0
    ref: str = "src"
    arch: str = ""
    origin: str = ""
    memories: tuple[str, str] = ("rmem", "rmem")
    instruction: str = ""
    notes: tuple[str, ...] = ()

    kind = "copy"

    def of_bits(self, bits: int) -> CopyAtom:
        """The same copy for elements of another width (CuTe's ``recast_layout`` of the layouts in bits)."""
        if bits == self.bits:
            return self
        import tensor_layouts as tl

        def recast(layout: Layout) -> Layout:
            # In bits a thread's element is a run of its values; narrower ones must not become threads.
            threads, values = to_tl(layout.mode(0)), to_tl(layout.mode(1))
            t = tl.Layout(threads.shape, _scale(threads.stride, self.bits))
            v = tl.coalesce(tl.Layout((self.bits, values.shape), (1, _scale(values.stride, self.bits))))
            t, v = tl.upcast(t, bits), tl.upcast(v, bits)
            out = from_tl(tl.Layout((t.shape, v.shape), (t.stride, v.stride)))
            if (wide := bits // self.bits) > 1:
                # A wider element must be a whole, aligned run of the narrower ones, which the algebra does not check.
                table = tv_table(layout)
                if table.shape[1] % wide or not np.array_equal(
                    tv_table(out)[:, :, None] * wide + np.arange(wide), table.reshape(len(table), -1, wide)
                ):
                    raise ValueError(f"a thread's elements lie together in runs of {_run(table) * self.bits} bits")
            return out

        try:
            src, dst = recast(self.src), recast(self.dst)
        except ALGEBRA_ERRORS as e:
            raise TexgenError(f"{self.name} does not copy elements of {bits} bits: {reason(e)}.") from None
        return replace(self, src=src, dst=dst, bits=bits, row=self.row * self.bits // bits)


def copy_atom(atom: CopyAtom) -> CopySpec:
    """The atom alone: a matrix instruction over its buffer of rows, anything else over one row of elements.

    ldmatrix and stmatrix atoms index a row-major buffer (``row_length*row + column``); the tables here are
    column-major in the tile (``row + rows*column``), as everywhere in texgen.
    """
    cells = max(int(x.offsets().max()) for x in (atom.src, atom.dst)) + 1
    columns = atom.row or cells
    rows = max(1, cells // columns)

    def side(layout: Layout, memory: str) -> TVMap:
        table = tv_table(layout)
        return TVMap((rows, columns), table // columns + rows * (table % columns), str(layout), _dtype(atom), memory)

    return CopySpec(
        name=atom.name,
        tile=(rows, columns),
        S=side(atom.src, "rmem"),
        D=side(atom.dst, "rmem"),
        arch=atom.arch,
        source=atom.origin,
        tiler=f"({rows},{columns})",
        notes=(*atom.notes, *([f"The layouts' index counts row by row: {columns}·m + n."] if atom.row else [])),
    )


def copy_from_tv(atom: CopyAtom, tv_layout: Layout, tiler: Tiler) -> CopySpec:
    """``make_tiled_copy_tv``-like: a TV layout over a tiler, as ``get_layoutS_TV()`` and ``get_layoutD_TV()`` give it.

    ``tv_layout`` maps (thread, value) to a column-major index in the tiler's shape. A tiler entry may be a layout; its
    places are the tile's true positions. Raises TexgenError where the atom does not divide the TV layout or the TV
    layout leaves the tiler.
    """
    if tv_layout.rank != 2:
        raise TexgenError(f"A TV layout has two modes, (threads, values); {tv_layout} has {tv_layout.rank}.")
    tile, place, text = tiler_places(tiler)
    sides = {}
    for name, layout in (("S", atom.src), ("D", atom.dst)):
        tiled = _tile2thrfrg(atom, tv_layout, layout)
        index = tv_table(tiled)
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= len(place):
            raise TexgenError(
                f"{atom.name}: the TV layout {tv_layout} reaches index {high}, outside the tiler {text} "
                f"of {len(place)} elements: make its values and threads cover the tiler, or give a larger one."
            )
        sides[name] = TVMap(tile, place[index], str(tiled), _dtype(atom))
    return CopySpec(
        atom.name, tile, sides["S"], sides["D"], arch=atom.arch, source=atom.origin, tiler=text, notes=atom.notes
    )


def over_tile(spec: CopySpec, tile: Sequence[Any]) -> CopySpec:
    """A tiled copy repeated over a larger tile, as ``partition_S`` and ``partition_D`` do: values, then repeats.

    Raises TexgenError where the tiler does not divide the tile.
    """
    m, n = spec.tile
    if len(tile) != 2 or any(type(x) is not int or x % own for x, own in zip(tile, (m, n), strict=True)):
        raise TexgenError(
            f"{spec.name}: its tiler is {m}×{n}, which does not divide the tile {','.join(map(str, tile))}: "
            f"give multiples of these, for example {m},{2 * n}."
        )
    rows, columns = tile
    counts = rows // m, columns // n
    if counts == (1, 1):
        return spec
    if spec.threads * max(spec.S.values, spec.D.values) * counts[0] * counts[1] > MAX_ENTRIES:
        raise TexgenError(f"{spec.name} over {rows}×{columns} has more entries than texgen evaluates: give a smaller tile.")

    def repeat(side: TVMap) -> TVMap:
        r, c = side.coordinates()
        tables = [r + m * i + rows * (c + n * j) for j in range(counts[1]) for i in range(counts[0])]
        return replace(side, tile=(rows, columns), tv=np.concatenate(tables, axis=1), layout="")

    said = [
        f"{count} repeats along the {mode} mode" for count, mode in zip(counts, ("first", "second"), strict=True) if count > 1
    ]
    notes = (*spec.notes, f"The tiler is {m}×{n}: {' and '.join(said)} cover {rows}×{columns}.")
    return replace(spec, tile=(rows, columns), S=repeat(spec.S), D=repeat(spec.D), notes=notes)


def copy_from_thr_val(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> CopySpec:
    """``make_tiled_copy(atom, thr_layout, val_layout)``: a raked product, so a thread's values lie together."""
    import tensor_layouts as tl

    _small(thr_layout, val_layout)
    thr, val = _rank2(thr_layout), _rank2(val_layout)
    try:
        mn = tl.raked_product(to_tl(thr), to_tl(val))
        inverse = tl.right_inverse(mn)
        tv = from_tl(tl.compose(inverse, tl.Layout((thr.size, val.size))))
    except ALGEBRA_ERRORS as e:
        raise TexgenError(
            f"{atom.name}: thread layout {thr_layout} and value layout {val_layout} make no tile: {reason(e)}. "
            f"Use compact layouts such as (32,8):(8,1) and (1,4)."
        ) from None
    if tv.rank != 2 or size(tv.shape) != thr.size * val.size:
        raise TexgenError(f"The thread layout {thr_layout} is not one to one: give each mode a stride of its own.")
    tiler = [size(s) for s in mn.shape]
    spec = copy_from_tv(atom, tv, tiler)
    made = f"raked product of threads {thr} and values {val}: TV {tv} over {spec.tiler}"
    return replace(spec, notes=(*spec.notes, made))


def _tile2thrfrg(atom: CopyAtom, tv: Layout, target: Layout) -> Layout:
    """The TV layout of the source or destination ``target`` (CuTe's ``tile2thrfrg``)."""
    import tensor_layouts as tl

    ref = atom.src if atom.ref == "src" else atom.dst
    threads, values = ref.mode(0).size, ref.mode(1).size
    if tv.mode(0).size % threads or tv.mode(1).size % values:
        raise TexgenError(
            f"{atom.name} takes {threads} threads of {values} values of {atom.bits} bits, which do not divide the "
            f"{tv.mode(0).size} threads of {tv.mode(1).size} values of {tv}: give multiples of these."
        )
    try:
        divided = tl.zipped_divide(to_tl(tv), (tl.Layout(threads), tl.Layout(values)))
        change = tl.compose(tl.right_inverse(to_tl(ref)), to_tl(target))
        inner, rest = tl.compose(tl.mode(divided, 0), change), tl.mode(divided, 1)
    except ALGEBRA_ERRORS as e:
        raise TexgenError(f"{atom.name} does not divide the TV layout {tv}: {reason(e)}.") from None

    def zipped(i: int) -> Any:
        a, b = tl.mode(inner, i), tl.mode(rest, i)
        return tl.Layout((a.shape, b.shape), (a.stride, b.stride)) if i or tl.size(b) > 1 else a

    t, v = zipped(0), zipped(1)
    return from_tl(tl.Layout((t.shape, v.shape), (t.stride, v.stride)))


def tiler_places(tiler: Tiler) -> tuple[tuple[int, int], IntArray, str]:
    """(tile, column-major position of each of the tiler's indices, the tiler's text)."""
    modes = [Layout.of(t) if isinstance(t, int) else t for t in tiler]
    text = f"({','.join(str(t) for t in tiler)})"
    if any(m.size < 1 for m in modes):
        raise TexgenError(f"The tiler {text} has an extent under 1.")
    _small(*modes)
    axes = [m for m in modes if m.size > 1]
    if len(modes) > 2 and len(axes) > 2:
        raise TexgenError(f"The tiler {text} has rank {len(modes)} and a picture has two axes: draw one slice of it.")
    if len(modes) == 1:
        axes = [Layout.of(1), modes[0]]
    elif len(modes) == 2:
        axes = modes
    else:
        axes = [*axes, *[Layout.of(1)] * (2 - len(axes))]
    rows, columns = (m.offsets() for m in axes)
    if any(len(np.unique(p)) != len(p) or int(p.min()) < 0 for p in (rows, columns)):
        raise TexgenError(f"The tiler {text} puts several of its elements on one place: give each mode its own stride.")
    tile = int(rows.max()) + 1, int(columns.max()) + 1
    return tile, (rows[None, :] + tile[0] * columns[:, None]).reshape(-1), text


def _run(table: IntArray) -> int:
    """The longest run, a power of two, in which every thread's values are neighbours from a multiple of it on."""
    run = 1
    while table.shape[1] % (2 * run) == 0:
        pieces = table.reshape(len(table), -1, 2 * run)
        if (pieces != pieces[:, :, :1] + np.arange(2 * run)).any() or (pieces[:, :, 0] % (2 * run)).any():
            break
        run *= 2
    return run


def _small(*layouts: Layout) -> None:
    total = 1
    for layout in layouts:
        total *= layout.size
    if total > MAX_ENTRIES:
        raise TexgenError(f"{' times '.join(map(str, layouts))} has {total:,} elements, more than texgen evaluates.")


def _rank2(layout: Layout) -> Layout:
    while layout.rank > 2 and layout.mode(layout.rank - 1).size == 1:  # an atom layout is read with three modes
        layout = Layout(layout.shape[:-1], layout.stride[:-1])  # type: ignore[index]
    if layout.rank > 2:
        raise TexgenError(f"The layout {layout} has rank {layout.rank} and a copy's tile has two modes.")
    if layout.rank == 2:
        return layout
    inner = layout if not isinstance(layout.shape, tuple) else Layout(layout.shape[0], layout.stride[0])  # type: ignore[index]
    return Layout((inner.shape, 1), (inner.stride, 0))


def _dtype(atom: CopyAtom) -> str:
    return f"b{atom.bits}"
