"""Bank conflicts of shared-memory accesses, by the usual model.

Shared memory has 32 banks of 4 bytes. A warp's access is served in phases: 32 lanes at a time where a lane takes 1, 2 or
4 bytes, 16 lanes for 8 bytes, 8 lanes for 16 bytes or one 8x8 matrix of ldmatrix. In a phase lanes that want the same
word share it (a broadcast), and a bank gives one word a wavefront: a phase takes as many wavefronts as its busiest bank
has different words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from texgen.errors import TexgenError, UsageError
from texgen.layouts import AnyLayout, IntArray, Layout
from texgen.specs import WARP, LayoutSpec

BANKS = 32
BANK_BYTES = 4
WIDTHS = (1, 2, 4, 8, 16)
"""Bytes that a lane may take at once."""
AXES = ("i", "j")
GRAMMAR = (
    "write column:0, row:3, ldmatrix, ldmatrix.trans:8,0 or a layout from lane to column-major cell such as "
    "(2,16):(512,1), each with @16 behind it for 16 bytes a lane"
)


@dataclass(frozen=True)
class Phase:
    """The lanes that are served together: ``words`` has the different words that they want, in each of the banks."""

    lanes: range
    words: tuple[int, ...]

    @property
    def wavefronts(self) -> int:
        """How often shared memory must be read or written: the different words in the busiest bank."""
        return max(self.words)

    @property
    def ideal(self) -> int:
        """The fewest wavefronts for that many words, 32 of them each."""
        return -(-sum(self.words) // BANKS)

    @property
    def bank(self) -> int:
        """The busiest bank."""
        return self.words.index(max(self.words))


@dataclass(frozen=True)
class Conflicts:
    """What one access of a warp costs. ``width`` is in bytes a lane."""

    lanes: int
    width: int
    phases: tuple[Phase, ...]

    @property
    def wavefronts(self) -> int:
        return sum(p.wavefronts for p in self.phases)

    @property
    def ideal(self) -> int:
        return sum(p.ideal for p in self.phases)

    @property
    def excess(self) -> int:
        """Wavefronts above the ideal: 0 is an access without conflicts."""
        return self.wavefronts - self.ideal

    def __str__(self) -> str:
        """``8 lanes × 16 bytes: 1 wavefront (ideal 1)``."""
        phases = f" in {len(self.phases)} phases of {len(self.phases[0].lanes)} lanes" if len(self.phases) > 1 else ""
        return (
            f"{_count(self.lanes, 'lane')} × {_count(self.width, 'byte')}{phases}: "
            f"{_count(self.wavefronts, 'wavefront')} (ideal {self.ideal})"
        )


def bank(address: IntArray) -> IntArray:
    """The bank of byte addresses."""
    return address // BANK_BYTES % BANKS


def lanes_per_phase(width: int) -> int:
    """How many lanes are served together when each takes ``width`` bytes. Raises TexgenError for an odd width."""
    if width not in WIDTHS:
        raise TexgenError(f"A lane takes {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]} bytes at once, not {width}.")
    return WARP * BANK_BYTES // max(width, BANK_BYTES)


def conflicts(addresses: Sequence[int] | IntArray, width: int) -> Conflicts:
    """The cost of one access: lane ``l`` takes ``width`` bytes at byte ``addresses[l]``.

    Raises TexgenError for a width that no instruction has, more lanes than a warp, and addresses that ``width`` does not
    divide.

    >>> print(conflicts([128 * lane for lane in range(32)], 4))
    32 lanes × 4 bytes: 32 wavefronts (ideal 1)
    """
    at = np.asarray(addresses, dtype=np.int64).reshape(-1)
    step = lanes_per_phase(width)
    if not 0 < len(at) <= WARP:
        raise TexgenError(f"One access is a warp's, 1 to {WARP} lanes, not {len(at)}.")
    if at.min() < 0:
        raise TexgenError(f"Lane {int(at.argmin())} would take byte {int(at.min())}: addresses start at 0.")
    if len(odd := np.flatnonzero(at % width)):
        raise TexgenError(f"Lane {odd[0]} takes {width} bytes at byte {at[odd[0]]}, which {width} does not divide: it is misaligned.")
    phases = []
    for first in range(0, len(at), step):
        lanes = range(first, min(first + step, len(at)))
        words = at[first : lanes.stop, None] // BANK_BYTES + np.arange(max(1, width // BANK_BYTES))
        phases.append(Phase(lanes, tuple(np.bincount(np.unique(words) % BANKS, minlength=BANKS).tolist())))
    return Conflicts(len(at), width, tuple(phases))


@dataclass(frozen=True, eq=False)
class Access:
    """One access of a warp to a layout's cells: ``rows`` and ``columns`` have a row for each lane, an entry an element."""

    name: str
    rows: IntArray
    columns: IntArray
    offsets: IntArray
    bits: int

    @property
    def width(self) -> int:
        """Bytes a lane."""
        return int(self.offsets.shape[1]) * self.bits // 8

    @cached_property
    def conflicts(self) -> Conflicts:
        return conflicts(self.offsets[:, 0] * self.bits // 8, self.width)

    def __str__(self) -> str:
        return f"{self.name}: {self.conflicts}"


def access(layout: LayoutSpec | AnyLayout, lanes: str | Sequence[tuple[int, int]], bits: int = 0, width: int = 0) -> Access:
    """An access to the cells of a layout.

    ``lanes`` names it: ``column:0`` (lanes down a column), ``row:3``, ``ldmatrix:8,0`` (one 8x8 matrix of 16-byte rows
    from there, ``ldmatrix.trans`` where they run down columns), a layout from lane to column-major cell such as
    ``(2,16):(512,1)``, each with ``@16`` behind it for 16 bytes a lane; or it lists the (row, column) that each lane
    starts at. ``bits`` is the element's width, where the layout does not know it, ``width`` the bytes a lane.

    Raises TexgenError where a lane's elements do not lie side by side, naming the mode that must be contiguous, and
    UsageError for a text that names no access.
    """
    spec = _spec(layout, bits)
    if not spec.bits:
        raise UsageError("Banks need the width of an element: give --bits 16, or --dtype f16.")
    if spec.coords:
        raise UsageError(f"{spec.layout} gives coordinates, and banks need offsets in shared memory.")
    if isinstance(lanes, str):
        return _named(spec, lanes, width)
    starts = [(int(r), int(c)) for r, c in lanes]
    return _at(spec, "lanes at " + " ".join(f"({r},{c})" for r, c in starts[:4]) + (" …" if len(starts) > 4 else ""), starts, width)


def _spec(layout: LayoutSpec | AnyLayout, bits: int) -> LayoutSpec:
    if isinstance(layout, LayoutSpec):
        return layout
    from texgen.sources.smem import layout_spec

    return layout_spec(layout, bits=bits)


def contiguous(offsets: IntArray, axis: int) -> int:
    """The longest run of elements that lies side by side along an axis everywhere, from its multiples on.

    >>> contiguous(Layout((4, 8), (8, 1)).table(), 1)
    8
    """
    length = offsets.shape[axis]
    table = np.moveaxis(offsets, axis, 1)
    run = 1
    while length % (2 * run) == 0:
        pieces = table.reshape(table.shape[0], length // (2 * run), 2 * run)
        if not (pieces == pieces[:, :, :1] + np.arange(2 * run)).all():
            break
        run *= 2
    return run


def _named(spec: LayoutSpec, text: str, width: int) -> Access:
    body, _, bytes_text = text.partition("@")
    said = re.fullmatch(r"\s*(\d{1,3})\s*B?\s*", bytes_text)
    width = int(said[1]) if said else width
    body = body.strip()
    if re.match(r"[(\d]", body) and (said or not bytes_text):
        return _by_layout(spec, body, width)
    match = re.fullmatch(r"(column|row|ldmatrix(?:\.trans)?)(?::(\d{1,7})(?:,(\d{1,7}))?)?", body)
    if match is None or (bytes_text and not said):
        raise UsageError(f"--banks {text!r} names no access: {GRAMMAR}.")
    kind, first, second = match[1], int(match[2] or 0), int(match[3] or 0)
    rows, columns = spec.offsets.shape
    if kind.startswith("ldmatrix"):
        if width not in (0, 16):
            raise UsageError("An 8x8 matrix of ldmatrix is 8 rows of 16 bytes: leave the @ out.")
        return _ldmatrix(spec, kind, first, second)
    if match[3] is not None:
        raise UsageError(f"--banks {text!r}: a {kind} has one number, as in {kind}:0.")
    along, across = (rows, columns) if kind == "column" else (columns, rows)
    if first >= across:
        raise UsageError(f"--banks {text!r}: the layout has {kind}s 0 to {across - 1}.")
    values = _elements(spec, width)
    axis = 0 if kind == "column" else 1
    step = values if _direction(spec, values) == axis else 1
    lanes = range(0, min(along, step * WARP), step)
    starts = [(x, first) if axis == 0 else (first, x) for x in lanes]
    return _at(spec, f"{kind} {first}", starts, width)


def _by_layout(spec: LayoutSpec, text: str, width: int) -> Access:
    from texgen.sources.text import parse_layout

    layout = parse_layout(text)
    cells = layout.offsets() if isinstance(layout, Layout) else layout.table().reshape(-1, order="F")
    rows = spec.offsets.shape[0]
    if cells.min() < 0 or cells.max() >= spec.offsets.size:
        raise UsageError(f"--banks {text}: it reaches cell {int(cells.max())}, and the layout has cells 0 to {spec.offsets.size - 1}.")
    return _at(spec, f"lanes {layout}", [(c % rows, c // rows) for c in cells.tolist()], width)


def _ldmatrix(spec: LayoutSpec, kind: str, row: int, column: int) -> Access:
    """Eight rows of 16 bytes; for ``ldmatrix`` they run along the second mode, for ``.trans`` along the first."""
    axis = 0 if kind.endswith("trans") else 1
    values = _elements(spec, 16)
    run = contiguous(spec.offsets, axis)
    if run < values:
        other = contiguous(spec.offsets, 1 - axis)
        hint = f"; along {AXES[1 - axis]} there are {other}, which {'ldmatrix' if axis == 0 else 'ldmatrix.trans'} reads" if other >= values else ""
        what, mode = ("m or n", "first") if axis == 0 else ("k", "second")
        raise TexgenError(
            f"{kind} reads 16 bytes a lane: it needs {values} contiguous {what} per lane, so the {mode} mode ({AXES[axis]}) of "
            f"{spec.layout or 'the layout'} must be contiguous, and it has runs of {run}{hint}."
        )
    starts = [(row, column + x) if axis == 0 else (row + x, column) for x in range(8)]
    return _at(spec, f"{kind} at ({row},{column})", starts, 16, axis)


def _elements(spec: LayoutSpec, width: int) -> int:
    """Elements of a lane that takes ``width`` bytes (0: one element)."""
    if width and width not in WIDTHS:
        lanes_per_phase(width)
    if not width:
        if spec.bits % 8:
            raise UsageError(f"Elements of {spec.bits} bits are taken several at a time: write @4 behind the access for 4 bytes a lane.")
        return 1
    if width * 8 % spec.bits or width * 8 < spec.bits:
        raise UsageError(f"{width} bytes a lane hold no whole number of {spec.bits}-bit elements.")
    return width * 8 // spec.bits


def _direction(spec: LayoutSpec, values: int) -> int:
    """The axis along which a lane's elements run: 1, unless only the first mode has such runs."""
    runs = [contiguous(spec.offsets, axis) for axis in (0, 1)]
    return 0 if runs[1] < values <= runs[0] else 1


def _at(spec: LayoutSpec, name: str, starts: Sequence[tuple[int, int]], width: int, axis: int | None = None) -> Access:
    values = _elements(spec, width)
    axis = _direction(spec, values) if axis is None else axis
    start = np.asarray(starts, dtype=np.int64).reshape(-1, 2)
    if not 0 < len(start) <= WARP:
        raise UsageError(f"One access is a warp's, 1 to {WARP} lanes, and {name} has {len(start)}.")
    step = np.arange(values)
    rows = start[:, :1] + (step if axis == 0 else 0 * step)
    columns = start[:, 1:] + (step if axis == 1 else 0 * step)
    height, breadth = spec.offsets.shape
    if (start < 0).any() or rows.max() >= height or columns.max() >= breadth:
        raise UsageError(f"{name} leaves the layout's {height} × {breadth} cells.")
    offsets = spec.offsets[rows, columns]
    apart = np.flatnonzero((offsets != offsets[:, :1] + step).any(axis=1))
    if len(apart):
        lane = int(apart[0])
        run = max(contiguous(spec.offsets, 0), contiguous(spec.offsets, 1))
        raise TexgenError(
            f"Lane {lane} takes {values} elements from {AXES[axis]}={int(start[lane, axis])} on, and they are not contiguous in "
            f"{spec.layout or 'the layout'} (its longest runs are {run}): take fewer bytes a lane."
        )
    return Access(name, rows, columns, offsets, spec.bits)


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" + ("" if n == 1 else "s")
