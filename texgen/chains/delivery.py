"""What arrives: each register's element when the copy's instructions are executed on shared memory as it lies.

An instruction reads ``vector`` elements at the address that a lane gives, whatever lies there. So the tables here are
not the copy's own claim: an address is the place of the first element that the lane is meant to read, and the others are
those that follow it in memory. ldmatrix then deals the 16 bytes of a row out, two (four of 8 bits, …) elements a lane
(PTX ISA, "Matrix fragments for ldmatrix"); which is in the copy's destination table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from texgen.banks import WIDTHS, Conflicts, conflicts
from texgen.chains.retile import repeated, value_order
from texgen.chains.shared import cell_at
from texgen.chains.spec import ChainSpec
from texgen.errors import TexgenError
from texgen.layouts import IntArray
from texgen.specs import WARP, CopySpec, TVMap, dtype_bits

MATRIX_BYTES = 16
NOTHING = -1
"""In place of a cell: no element of the layout lies there."""


@dataclass(frozen=True, eq=False)
class Delivery:
    """The tables of one chain. Cells are column-major indices: of the shared-memory layout, or of the tile.

    ``fragment``: the MMA's operand over the tile. ``arrives[thread][value]``: the cell of shared memory that comes into
    the MMA's value (NOTHING: none of the layout's). ``wrong``: where that is another than the fragment asks for.
    ``order[v]``: the MMA's value that the copy's value v is. ``lanes[thread][v]``: the thread whose address brings the
    copy's value v, ``matrices`` the number of its 8×8 matrix within the warp (-1 for copies without matrices).
    ``addresses[thread][i]``: the bit at which the thread's i-th access begins, ``gives`` whether ldmatrix uses it.
    """

    fragment: TVMap
    arrives: IntArray
    wrong: np.ndarray[Any, np.dtype[np.bool_]]
    order: IntArray
    lanes: IntArray
    matrices: IntArray
    addresses: IntArray
    gives: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def is_matrix(self) -> bool:
        return bool((self.matrices >= 0).any())


@lru_cache(maxsize=8)
def delivery(spec: ChainSpec) -> Delivery:
    """The tables of a chain. Raises TexgenError where copy and operand have no common threads and values."""
    fragment = repeated(spec.mma.operands()[spec.operand], spec.tile)
    at = tile_cells(spec)
    if spec.copy is None:
        own = np.broadcast_to(np.arange(fragment.threads)[:, None], fragment.tv.shape)
        none = np.zeros((fragment.threads, 0), dtype=np.int64)
        return Delivery(
            fragment, at[fragment.tv], np.zeros(fragment.tv.shape, dtype=bool), np.arange(fragment.values), own,
            np.full(fragment.tv.shape, -1), none, none.astype(bool),
        )  # fmt: skip
    S, D = spec.copy.S, spec.copy.D
    if (D.threads, D.values) != (fragment.threads, fragment.values):
        raise TexgenError(
            f"{spec.copy.name} gives {D.threads} threads {D.values} values each of {D.tile[0]}×{D.tile[1]}, and {spec.operand} of {spec.mma.name} "
            f"has {fragment.threads} threads with {fragment.values}: make the copy with make_tiled_copy_{spec.operand} of this MMA."
        )
    order = value_order(D.tv, fragment.tv)
    order = np.arange(D.values) if order is None else order
    lanes, column, issue = _sources(spec.copy, spec.vector)
    offsets = spec.smem.offsets.reshape(-1, order="F")
    starts = offsets[at[S.tv[:, :: spec.vector]]]
    found = starts[lanes, issue] + column
    cells = cell_at(spec.smem)
    inside = found < len(cells)
    got = np.where(inside, cells[np.where(inside, found, 0)], NOTHING)
    arrives = np.empty_like(got)
    arrives[:, order] = got
    gives = np.zeros(starts.shape, dtype=bool)
    gives[lanes, issue] = True
    matrices = np.full(D.tv.shape, -1)
    if is_matrix_copy(spec.copy):
        per_issue = D.values // (S.values // spec.vector) * spec.bits // 32
        rows = matrix_rows(spec.copy)
        matrices = issue * max(1, per_issue * 8 // rows) + lanes % WARP // rows
    return Delivery(fragment, arrives, arrives != at[fragment.tv], order, lanes, matrices, starts * spec.bits, gives)


def is_matrix_copy(copy: CopySpec) -> bool:
    """True for ldmatrix: what one thread reads, other threads get."""
    return "LDSM" in " ".join((copy.name, *copy.notes)) or not np.array_equal(copy.S.tv, copy.D.tv)


def matrix_rows(copy: CopySpec) -> int:
    """Rows of one matrix of ldmatrix: 8, and 16 for Blackwell's 16×8 and 16×16 matrices of 8-bit elements."""
    return 16 if re.search(r"SM100_(U8x|16x)", " ".join((copy.name, *copy.notes))) else 8


def tile_cells(spec: ChainSpec) -> IntArray:
    """The shared-memory cell of every cell of the tile, which begins at ``spec.at``."""
    (rows, columns), (r0, c0) = spec.tile, spec.at
    height, width = spec.smem.offsets.shape
    if r0 + rows > height or c0 + columns > width:
        raise TexgenError(
            f"The tile of {rows}×{columns} from ({r0},{c0}) on leaves the shared-memory layout of {height}×{width}: give a larger --smem or another --at."
        )
    cell: IntArray = np.arange(rows * columns, dtype=np.int64)
    out: IntArray = r0 + cell % rows + height * (c0 + cell // rows)
    return out


def _sources(copy: CopySpec, vector: int) -> tuple[IntArray, IntArray, IntArray]:
    """(thread that gives the address, element from there, which access) of every destination (thread, value).

    ldmatrix reads by warps and instructions: the thread is sought among the 32 of the same warp. Raises TexgenError
    where an element comes from no lane of its warp.
    """
    S, D = copy.S, copy.D
    if S.values % vector or D.values % (S.values // vector):
        raise TexgenError(f"{copy.name} reads {S.values} values a thread, which its accesses of {vector} elements do not divide.")
    issues = S.values // vector
    per_issue = D.values // issues
    lane, column = np.full(D.tv.shape, -1), np.zeros(D.tv.shape, dtype=np.int64)
    issue = np.broadcast_to(np.arange(D.values) // per_issue, D.tv.shape)
    place = np.full(S.cells, -1, dtype=np.int64)
    same = np.array_equal(S.tv, D.tv)
    if same:
        lane[:], column[:] = np.arange(S.threads)[:, None], np.arange(S.values) % vector
        return lane, column, issue
    if S.threads != D.threads:
        raise TexgenError(f"{copy.name} reads with {S.threads} threads and fills {D.threads}: texgen cannot follow it.")
    for first in range(0, S.threads, WARP):
        for i in range(issues):
            block = S.tv[first : first + WARP, i * vector : (i + 1) * vector]
            flat = block.reshape(-1)
            place[flat[::-1]] = np.arange(flat.size)[::-1]  # lanes that repeat an address do not count
            into = slice(first, first + WARP), slice(i * per_issue, (i + 1) * per_issue)
            taken = place[D.tv[into]]
            if (taken < 0).any():
                t, v = np.argwhere(taken < 0)[0]
                raise TexgenError(
                    f"{copy.name}: T{first + t} gets an element as its value {i * per_issue + v} that no lane of its warp reads: "
                    f"source and destination are not those of one ldmatrix."
                )
            lane[into], column[into] = first + taken // vector, taken % vector
            place[flat] = -1
    return lane, column, issue


def misaligned(spec: ChainSpec) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """[thread][access]: True where an access begins at an address that its width does not divide, which faults."""
    odd: np.ndarray[Any, np.dtype[np.bool_]] = delivery(spec).addresses % (spec.vector * spec.bits) != 0
    return odd


def wavefronts(spec: ChainSpec) -> list[list[Conflicts]]:
    """What reading costs: for each warp the cost of each of its accesses, by the model of ``texgen.banks``.

    Empty for a chain without a copy, for copies whose lanes take a width that no instruction has, and for addresses
    that are misaligned.
    """
    found = delivery(spec)
    width = spec.vector * spec.bits // 8
    if spec.copy is None or width not in WIDTHS or spec.vector * spec.bits % 8 or (found.addresses % (8 * width)).any():
        return []
    out = []
    for first in range(0, found.fragment.threads, WARP):
        warp = slice(first, first + WARP)
        out.append([
            conflicts(found.addresses[warp, i][found.gives[warp, i]] // 8, width) for i in range(found.addresses.shape[1])
        ])  # fmt: skip
    return out


def cell_name(spec: ChainSpec, cell: int) -> str:
    """``A(1,4)``, in the operand's own coordinates where it lies in the tile; of shared memory's otherwise."""
    if cell == NOTHING:
        return "no element"
    height = spec.smem.offsets.shape[0]
    r, c = cell % height - spec.at[0], cell // height - spec.at[1]
    if 0 <= r < spec.tile[0] and 0 <= c < spec.tile[1]:
        return f"{spec.operand}({r},{c})"
    return f"shared memory's ({cell % height},{cell // height})"


def first_wrong(spec: ChainSpec) -> tuple[int, int, str, str] | None:
    """(thread, MMA value, what it gets, what the MMA wants) of the first wrong value by thread; None where all is right."""
    found = delivery(spec)
    where = np.argwhere(found.wrong)
    if not len(where):
        return None
    t, v = (int(x) for x in where[0])
    r, c = (int(x[t, v]) for x in found.fragment.coordinates())
    return t, v, cell_name(spec, int(found.arrives[t, v])), f"{spec.operand}({r},{c})"


def derived(spec: ChainSpec) -> dict[str, Any]:
    """What follows from the spec, for its JSON: whether the copy feeds the MMA, the byte addresses and their cost."""
    found = delivery(spec)
    out: dict[str, Any] = {"feeds": not (found.wrong.any() or misaligned(spec).any()), "wrong": int(found.wrong.sum())}
    if spec.copy is not None:
        out["value_order"] = found.order.tolist()
        out["addresses" if not (found.addresses % 8).any() else "address_bits"] = (
            found.addresses // 8 if not (found.addresses % 8).any() else found.addresses
        ).tolist()
        if cost := wavefronts(spec):
            out["wavefronts"] = [[c.wavefronts for c in warp] for warp in cost]
            out["ideal"] = [[c.ideal for c in warp] for warp in cost]
    height = spec.smem.offsets.shape[0]
    out["arrives"] = [
        ["" if c < 0 else f"{c % height - spec.at[0]},{c // height - spec.at[1]}" for c in row] for row in found.arrives.tolist()
    ]
    return out


def element_bits(operand: TVMap, copy: CopySpec | None) -> int:
    """The width of the operand's elements, from its dtype or else the copy's; 0 where neither is known."""
    return dtype_bits(operand.dtype) or (dtype_bits(copy.D.dtype) if copy is not None else 0)
