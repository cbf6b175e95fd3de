"""``make_tiled_copy_A`` and ``make_tiled_copy_B`` in tables: a copy atom laid over an operand of an MMA.

CuTe divides the operand's thread-value layout by the atom's threads and values and changes the atom's reference layout,
its registers, for its source (cutlass/include/cute/atom/copy_atom.hpp, ``tile2thrfrg``). On tables that is a look-up:
the source's entry of a buffer place is the operand's entry of the (thread, value) that gets this place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import MAX_ENTRIES, IntArray
from texgen.specs import CopySpec, TVMap


def tiled_copy(atom: CopySpec, operand: TVMap, what: str) -> CopySpec:
    """The tiled copy whose destination is ``operand`` of an MMA (``what`` names it for errors).

    Raises TexgenError where the atom's threads or values do not divide the operand's.
    """
    threads, values = atom.D.tv.shape
    if operand.threads % threads or operand.values % values:
        noun, own, whole = ("threads", threads, operand.threads) if operand.threads % threads else ("values a thread", values, operand.values)
        narrower = "narrower copy" if threads == 1 else "copy of fewer matrices"
        raise TexgenError(
            f"{atom.name} does not divide {what}: it fills {own} {noun} at a time and the operand has {whole}: "
            f"take a {narrower}, or a larger --tile of the MMA."
        )
    place = np.full(atom.D.cells, -1, dtype=np.int64)
    flat = atom.D.tv.reshape(-1)
    place[flat[::-1]] = np.arange(flat.size)[::-1]
    taken = place[atom.S.tv]
    if (taken < 0).any():
        raise TexgenError(f"{atom.name} reads elements that no thread gets: it is no copy of shared memory into registers.")
    groups, repeats = operand.threads // threads, operand.values // values
    tv = operand.tv.reshape(groups, threads, repeats, values).transpose(0, 2, 1, 3)
    source = tv[:, :, taken // values, taken % values].transpose(0, 2, 1, 3).reshape(operand.threads, -1)
    memory = replace(operand, tv=source, layout="", dtype=operand.dtype or atom.S.dtype, memory="rmem")
    return CopySpec(
        atom.name, operand.tile, memory, replace(operand, dtype=operand.dtype or atom.D.dtype, memory="rmem"),
        arch=atom.arch, source=atom.source, tiler=f"({operand.tile[0]},{operand.tile[1]})",
    )  # fmt: skip


def repeated(operand: TVMap, tile: tuple[int, int]) -> TVMap:
    """An MMA's operand over a tile of several of them, as ``partition_A`` has it: values, then repeats, rows first.

    Raises TexgenError where the operand's tile does not divide ``tile``.
    """
    (m, k), (rows, columns) = operand.tile, tile
    if operand.tile == tile:
        return operand
    if rows % m or columns % k:
        raise TexgenError(f"A tile of {rows}×{columns} is no whole number of the MMA's {m}×{k}.")
    if operand.tv.size * (rows // m) * (columns // k) > MAX_ENTRIES:
        raise TexgenError(f"A tile of {rows}×{columns} has more entries than texgen evaluates: give a smaller one.")
    r, c = operand.coordinates()
    parts = [r + m * i + rows * (c + k * j) for j in range(columns // k) for i in range(rows // m)]
    return replace(operand, tile=tile, tv=np.concatenate(parts, axis=1), layout="")


def value_order(got: IntArray, wanted: IntArray) -> IntArray | None:
    """``order[v]``: the MMA's value that the copy's value ``v`` is, the same for every thread; None where there is no such.

    ``got`` and ``wanted`` are tables of equal shape (threads, values) over one tile.
    """
    if got.shape != wanted.shape:
        return None
    if np.array_equal(got, wanted):
        return np.arange(got.shape[1])
    by_got, by_wanted = np.argsort(got[0], kind="stable"), np.argsort(wanted[0], kind="stable")
    order = np.empty(got.shape[1], dtype=np.int64)
    order[by_got] = by_wanted
    return order if np.array_equal(got, wanted[:, order]) else None
