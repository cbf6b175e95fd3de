"""The panels of a chain: memory as it lies, registers of one warp, the MMA's operand, all in the colours of one key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from texgen.banks import BANK_BYTES
from texgen.chains.delivery import Delivery, delivery, misaligned
from texgen.chains.shared import LINE, cell_at
from texgen.chains.spec import ChainSpec
from texgen.errors import TexgenError, UsageError
from texgen.figures.caption import AXES, where_text
from texgen.figures.labels import grid
from texgen.figures.model import DIMMED, HOLE, BoolArray, Panel
from texgen.figures.options import QUAD, FigureOptions, parse_highlight
from texgen.figures.palette import palette
from texgen.figures.panels import FULL_LIMIT, Style, owner_panel
from texgen.layouts import IntArray
from texgen.specs import WARP

WORD_BITS = 8 * BANK_BYTES
WIDEST_BITS = 128
FEW_FILLS = {"grey": (2, 7, 5, 6)}
"""Fills of four keys and fewer, where a palette's first are too near to those of cells without a key, or dark under labels."""


@dataclass(frozen=True, eq=False)
class View:
    """A chain with what the panels share: the key that colours follow, what is highlighted and what is cropped away."""

    spec: ChainSpec
    options: FigureOptions
    color_by: str
    found: Delivery

    @classmethod
    def of(cls, spec: ChainSpec, options: FigureOptions) -> View:
        """Raises UsageError for colours and highlights that this chain does not have."""
        found = delivery(spec)
        color_by = options.color_by or ("matrix" if found.is_matrix else "thread")
        if color_by == "matrix" and not found.is_matrix:
            raise UsageError("--color-by matrix is of ldmatrix, and this copy has no matrices: take thread, value, warp or quad.")
        view = cls(spec, options, color_by, found)
        if view.picked is not None and not view.picked.any():
            threads, values = found.fragment.threads, found.fragment.values
            more = f", the matrices M0 to M{int(found.matrices.max())}" if found.is_matrix else ""
            raise UsageError(f"--highlight {options.highlight!r} picks nothing: the threads are T0 to T{threads - 1}, the values V0 to V{values - 1}{more}.")
        return view

    @property
    def by_writer(self) -> bool:
        """True where colours are those of the thread that writes shared memory."""
        return self.spec.copy is None and self.spec.write is not None and self.color_by == "thread"

    @cached_property
    def matrices(self) -> IntArray:
        """The matrix of every (thread, MMA value)."""
        out = np.empty_like(self.found.matrices)
        out[:, self.found.order] = self.found.matrices
        return out

    @cached_property
    def keys(self) -> IntArray:
        """What every (thread, MMA value) is coloured by."""
        thread, value = grid(self.found.fragment)
        if self.by_writer:
            return np.where(self.found.arrives >= 0, self.cell_keys[self.found.arrives], HOLE)
        return {"matrix": self.matrices, "thread": thread, "value": value, "warp": thread // WARP, "quad": thread // QUAD}[self.color_by]

    @cached_property
    def picked(self) -> BoolArray | None:
        """The highlighted (thread, MMA value) pairs; None without a highlight."""
        parts = [p for p in re.split(r"[,;\s]+", self.options.highlight.strip()) if p]
        if not parts:
            return None
        thread, value = grid(self.found.fragment)
        mask = np.zeros(thread.shape, dtype=bool)
        for part in parts:
            if match := re.fullmatch(r"[Mm](\d{1,7})(?:-[Mm]?(\d{1,7}))?", part):
                first, last = int(match[1]), int(match[2] or match[1])
                mask |= (self.matrices >= first) & (self.matrices <= last)
            elif (highlight := parse_highlight(part)) is not None:
                mask |= highlight.matches(thread, value)
        return mask

    @cached_property
    def misaligned(self) -> BoolArray:
        """The (thread, MMA value) pairs that come by an access at a misaligned address."""
        found = self.found
        out = np.zeros(found.arrives.shape, dtype=bool)
        if found.addresses.size and (odd := misaligned(self.spec)).any():
            access = np.arange(found.order.size) // (found.order.size // odd.shape[1])
            out[:, found.order] = odd[found.lanes, access]
        return out

    @cached_property
    def bad(self) -> BoolArray:
        """The (thread, MMA value) pairs whose cells are left white: another element arrives, or where all are right, none."""
        return self.found.wrong if self.found.wrong.any() else self.misaligned

    @cached_property
    def shown(self) -> BoolArray:
        """The (thread, MMA value) pairs whose cell the cropped picture of the operand has."""
        panel = self.fragment
        rows, columns = self.found.fragment.coordinates()
        if panel.transposed:
            rows, columns = columns, rows
        return np.isin(rows, panel.rows) & np.isin(columns, panel.columns)

    @cached_property
    def cell_keys(self) -> IntArray:
        """What every cell of shared memory is coloured by; DIMMED where it comes into no register that is shown."""
        out = np.full(self.spec.smem.offsets.size, DIMMED)
        if self.by_writer and self.spec.write is not None:
            table = self.spec.write.D.tv
            out[table[::-1]] = np.broadcast_to(np.arange(len(table)), table.T.shape).T[::-1]
            return out
        wanted = self.shown & (self.found.arrives >= 0)
        if self.picked is not None:
            wanted = wanted & self.picked
        out[self.found.arrives[wanted][::-1]] = self.keys[wanted][::-1]
        return out

    @property
    def cropped(self) -> bool:
        return bool(self.options.rows or self.options.cols)

    def labelled(self, *shape: int) -> bool:
        """True where cells of a panel of that shape get labels."""
        return self.options.label == "full" or (self.options.label != "none" and max(shape) <= FULL_LIMIT)

    @cached_property
    def order_of_fills(self) -> tuple[int, ...]:
        """The palette's index of each key, modulo their number."""
        few = FEW_FILLS.get(self.options.palette, ())
        return few if int(self.keys.max()) < len(few) else tuple(range(len(palette(self.options.palette))))

    def fills(self, keys: IntArray) -> IntArray:
        """Palette indices of keys; HOLE and DIMMED stay."""
        order = np.array(self.order_of_fills)
        return np.where(keys < 0, keys, order[keys % len(order)])

    def coordinate(self, cell: int) -> str:
        """``7,8`` in the operand's coordinates, empty for a cell before it and where there is none."""
        height = self.spec.smem.offsets.shape[0]
        r, c = cell % height - self.spec.at[0], cell // height - self.spec.at[1]
        return f"{r},{c}" if cell >= 0 and r >= 0 and c >= 0 else ""

    @cached_property
    def fragment(self) -> Panel:
        """The MMA's operand in its own colours of threads, to be coloured by ``fragment_panel``."""
        letter, fragment = self.spec.operand, self.found.fragment
        axes = AXES[letter]
        longest = max(fragment.tile)
        label = self.options.label
        if label == "auto":
            label = "full" if longest <= FULL_LIMIT or self.cropped else "none"
        style = Style("thread", label, replace(self.options, highlight=""))
        detail = where_text(fragment)
        title = f"MMA's {letter} ({axes[0].upper()}×{axes[1].upper()})" + (f" {detail}" if detail else "")
        return owner_panel(letter, title, fragment, axes, style, letter == "B", self.options.rows, self.options.cols)


def fragment_panel(view: View) -> Panel:
    """The MMA's operand: threads and values, coloured by the chain's key, white where another element arrives."""
    panel, fragment, found = view.fragment, view.found.fragment, view.found
    keys = np.full(fragment.cells, HOLE)
    wrong, bad = np.zeros(fragment.cells, dtype=bool), np.full(fragment.cells, -1)
    flat, own = fragment.tv.reshape(-1)[::-1], view.keys.reshape(-1)[::-1]
    keys[flat] = own
    if view.picked is not None:
        keep = np.zeros(fragment.cells, dtype=bool)
        keep[fragment.tv[view.picked]] = True
        keys[~keep] = DIMMED
    wrong[fragment.tv[view.bad]] = True
    bad[fragment.tv[view.bad][::-1]] = found.arrives[view.bad][::-1]
    keys[wrong & (keys != DIMMED)] = HOLE

    def drawn(table: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
        square = table.reshape(fragment.tile, order="F")
        return (square.T if panel.transposed else square)[np.ix_(panel.rows, panel.columns)]

    lines = panel.lines
    if lines and wrong.any() and not panel.blocks:
        other = found.wrong.any()
        said = np.array([("≠" + (view.coordinate(int(c)) or "?") if other else "!") if w else "" for c, w in zip(bad, wrong, strict=True)], dtype=object)
        lines = (*lines, drawn(said).tolist())
    return replace(panel, fill=drawn(view.fills(keys)), lines=lines)


def register_panel(view: View, across: bool = False) -> tuple[Panel, int]:
    """What each lane of one warp holds after the copy, a row a lane and a 32-bit register a column, and the warp's number.

    The warp is the first that is highlighted and shown. ``across`` draws lanes from left to right.
    """
    found, spec = view.found, view.spec
    seen = view.shown if view.picked is None else view.shown & view.picked
    threads = np.flatnonzero((seen if seen.any() else view.shown).any(axis=1))
    warp = int(threads[0]) // WARP
    lanes = np.arange(WARP * warp, min(WARP * (warp + 1), found.fragment.threads))
    if view.cropped:
        lanes = lanes[view.shown[lanes].any(axis=1)]
    packed = max(1, WORD_BITS // spec.bits)
    arrives = found.arrives[np.ix_(lanes, found.order)]
    keys, wrong = view.keys[np.ix_(lanes, found.order)], view.bad[np.ix_(lanes, found.order)]
    dim = ~(view.shown if view.picked is None else view.picked)[np.ix_(lanes, found.order)]
    count = -(-arrives.shape[1] // packed)
    registers = np.arange(count)
    if view.cropped:
        kept: BoolArray = np.asarray(view.shown[np.ix_(lanes, found.order)].any(axis=0))
        registers = np.array([r for r in range(count) if kept[r * packed : (r + 1) * packed].any()])
    starts = registers * packed
    fill = view.fills(keys[:, starts])
    for i, start in enumerate(starts.tolist()):
        part = slice(start, start + packed)
        fill[wrong[:, part].any(axis=1), i] = HOLE
        fill[dim[:, part].all(axis=1), i] = DIMMED
    lines: tuple[list[list[str]], ...] = ()
    if view.labelled(len(registers)):
        texts = [[_held(view, row[s : s + packed]) for s in starts.tolist()] for row in arrives.tolist()]
        most = max(len(t) for row in texts for t in row)
        lines = tuple([[t[i] if i < len(t) else "" for t in row] for row in texts] for i in range(most))
    what = f"Registers of warp {warp}" if found.fragment.threads > WARP else "Registers"
    if across:
        turned = tuple([list(row) for row in zip(*line, strict=True)] for line in lines)
        return Panel("registers", what, registers, lanes, "r", "T", fill.T, turned, transposed=True), warp
    return Panel("registers", what, lanes, registers, "T", "r", fill, lines), warp


def _held(view: View, cells: Sequence[int]) -> list[str]:
    """The elements of one register, a line each; of four and more the first and the last."""
    names = [view.coordinate(c) or "?" for c in cells]
    if len(names) <= 2:
        return names
    return [names[0], f"…{names[-1]}"]


def unit_bits(view: View) -> int:
    """The width of a cell of the memory panel: what a lane takes at one address; 4 bytes where colours differ within."""
    spec = view.spec
    if WORD_BITS % spec.bits and spec.bits % WORD_BITS:
        raise TexgenError(f"Elements of {spec.bits} bits do not fill words of {WORD_BITS} bits: texgen draws no chain of them.")
    width = spec.vector * spec.bits
    if spec.copy is None and spec.write is not None:
        width = _run(spec) * spec.bits
    if view.found.is_matrix and view.color_by != "matrix" and view.color_by != "warp":
        width = WORD_BITS
    return int(max(WORD_BITS, spec.bits, min(WIDEST_BITS, width)))


def memory_panel(view: View) -> Panel:
    """Shared memory line by line, 128 bytes or all 32 banks each: who names or takes an address, and what lies there."""
    spec = view.spec
    width = unit_bits(view)
    count = width // spec.bits
    offsets = spec.smem.offsets.reshape(-1, order="F")
    across = 8 * LINE // width
    keys = view.cell_keys
    if view.picked is not None:  # lines must not come and go with a highlight
        used = np.isin(np.arange(keys.size), view.found.arrives[view.shown])
    else:
        used = keys != DIMMED
    units = offsets // count
    lines = np.unique(units[used] // across)
    fill = np.full((len(lines), across), HOLE)
    first = np.full((len(lines), across), -1)
    row_of = np.full(int(units.max()) // across + 1, -1)
    row_of[lines] = np.arange(len(lines))
    order = np.argsort(-offsets, kind="stable")
    order = order[row_of[units[order] // across] >= 0]
    rows, columns = row_of[units[order] // across], units[order] % across
    first[rows, columns] = order
    fill[rows, columns] = DIMMED
    has = keys[order] >= 0
    fill[rows[has], columns[has]] = view.fills(keys[order][has])
    labels: tuple[list[list[str]], ...] = ()
    if view.labelled(len(lines), across):
        who = np.full((len(lines), across), "", dtype=object)
        for unit, cell in _misaligned_units(view, width).items():
            if unit // across < len(row_of) and (r := row_of[unit // across]) >= 0:
                first[r, unit % across] = cell
        for unit, name in _who(view, width).items():
            if unit // across < len(row_of) and (r := row_of[unit // across]) >= 0:
                who[r, unit % across] = name
        what = [[view.coordinate(c) for c in row] for row in first.tolist()]
        labels = (who.tolist(), what)
    step = width // 8 // BANK_BYTES
    return Panel(
        "smem", "Shared memory: address a, bank b", lines * LINE, np.arange(across) * max(1, step), "a", "b", fill, labels,
    )  # fmt: skip


def _who(view: View, width: int) -> dict[int, str]:
    """Unit of memory → who names its address (``T7→``), or takes it (``T7``), or wrote it where nobody reads by a copy."""
    spec, found = view.spec, view.found
    holders: dict[int, list[int]] = {}
    mark = ""
    if spec.copy is None and spec.write is not None:
        count = width // spec.bits
        table = spec.smem.offsets.reshape(-1, order="F")[spec.write.D.tv] // count
        pairs = [(int(u), t) for t, row in enumerate(table) for u in np.unique(row)]
    elif found.is_matrix and width >= spec.vector * spec.bits:
        mark = "→"
        pairs = [(int(a) // width, t) for t, (row, g) in enumerate(zip(found.addresses, found.gives, strict=True)) for a in row[g]]
    else:
        cells = spec.smem.offsets.reshape(-1, order="F") * spec.bits // width
        got = np.where(found.arrives >= 0, cells[found.arrives], -1)
        pairs = [(int(u), t) for t, row in enumerate(got) for u in np.unique(row) if u >= 0]
    for unit, t in pairs:
        holders.setdefault(unit, []).append(t)
    odd = _misaligned_units(view, width) if mark else {}
    return {u: f"T{ts[0]}{f' +{len(set(ts)) - 1}' if len(set(ts)) > 1 else ''}{mark}{'!' * (u in odd)}" for u, ts in holders.items()}


def _misaligned_units(view: View, width: int) -> dict[int, int]:
    """Unit of memory → the cell at the misaligned address within it that the first lane names."""
    spec, found = view.spec, view.found
    if not view.misaligned.any() or not found.is_matrix:
        return {}
    cells = cell_at(spec.smem)
    odd = found.addresses[misaligned(spec) & found.gives][::-1].tolist()
    return {at // width: int(cells[at // spec.bits]) for at in odd}


def _run(spec: ChainSpec) -> int:
    """Elements that one instruction of the write moves, from its name; one where it does not say."""
    if spec.write is None:
        return 1
    named = re.search(r"uint(\d+)_t", spec.write.name)
    run = int(named[1]) // spec.bits if named else 1
    return run if run and spec.write.S.values % run == 0 else 1


def global_panel(view: View) -> Panel | None:
    """Global memory as the write reads it, a cell for each instruction's elements; None without a write."""
    write = view.spec.write
    if write is None:
        return None
    run = _run(view.spec)
    rows, columns = (x[:, ::run] for x in write.S.coordinates())
    turned = run > 1 and bool((write.S.coordinates()[1][:, 0] == write.S.coordinates()[1][:, 1]).all())
    height, width = write.tile
    down, across = np.arange(0, height, run if turned else 1), np.arange(0, width, 1 if turned else run)
    if (rows % (run if turned else 1)).any() or (columns % (1 if turned else run)).any():
        return None  # runs that begin anywhere have no grid of their own
    shape = len(down), len(across)
    at = rows // (run if turned else 1), columns // (1 if turned else run)
    keys = view.cell_keys.reshape(write.tile, order="F")
    fill = np.full(shape, HOLE)
    pieces = keys.reshape(shape[0], run if turned else 1, shape[1], 1 if turned else run).max(axis=(1, 3))
    fill[at] = view.fills(pieces)[at]
    lines: tuple[list[list[str]], ...] = ()
    if view.labelled(*shape):
        who, what = np.full(shape, "", dtype=object), np.full(shape, "", dtype=object)
        for t in reversed(range(write.threads)):
            for i in range(rows.shape[1]):
                who[at[0][t, i], at[1][t, i]] = f"T{t}"
                what[at[0][t, i], at[1][t, i]] = f"V{i * run}"
        lines = who.tolist(), what.tolist()
    moved = f", {run} elements a cell" if run > 1 else ""
    axes = AXES[view.spec.operand]
    return Panel("gmem", f"Global memory{moved}", down, across, axes[0], axes[1], fill, lines)


def places(view: View, panel: Panel) -> IntArray:
    """Where a panel has the element that arrives in each (thread, MMA value): its place in the picture, column-major.

    -1 where the panel lacks it.
    """
    found, spec = view.found, view.spec
    arrives = found.arrives
    inside = arrives >= 0
    if panel.key == "registers":
        packed = max(1, WORD_BITS // spec.bits)
        register = np.empty_like(arrives)
        register[:, found.order] = np.arange(arrives.shape[1]) // packed
        lane = np.broadcast_to(np.arange(len(arrives))[:, None], arrives.shape)
        row, column = (register, lane) if panel.transposed else (lane, register)
    elif panel.key == "smem":
        width = unit_bits(view)
        units = spec.smem.offsets.reshape(-1, order="F")[np.where(inside, arrives, 0)] // (width // spec.bits)
        across = 8 * LINE // width
        row, column = units // across * LINE, units % across * max(1, width // 8 // BANK_BYTES)
    else:
        rows = spec.smem.offsets.shape[0]
        at = np.where(inside, arrives, 0)
        row, column = (x // step * step for x, step in ((at % rows, _pitch(panel.rows)), (at // rows, _pitch(panel.columns))))
    down, over = _index(panel.rows, row), _index(panel.columns, column)
    return np.where(inside & (down >= 0) & (over >= 0), down + panel.height * over, -1)


def _index(axis: IntArray, wanted: IntArray) -> IntArray:
    """Where an axis has each number, -1 where it lacks it."""
    at = np.minimum(np.searchsorted(axis, wanted), len(axis) - 1)
    return np.where(axis[at] == wanted, at, -1)


def _pitch(axis: IntArray) -> int:
    """The step between the numbers of an axis; of a single one, more than any."""
    return int(axis[1] - axis[0]) if len(axis) > 1 else 1 << 30
