"""A figure step by step: which cells come in thread by thread, value by value, warp by warp, k by k, offset by offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from texgen.errors import UsageError
from texgen.figures.frame import Placed, in_frame, in_page
from texgen.figures.labels import text_width
from texgen.figures.layout import chunk
from texgen.figures.model import HOLE, IN_MEMORY, BoolArray, Figure, Panel
from texgen.figures.options import FigureOptions
from texgen.layouts import IntArray
from texgen.specs import LayoutSpec, MmaSpec, Spec, TVMap
from texgen.words import listed

STEPS = 64
"""Steps of a build-up unless ``--steps`` says otherwise; more threads than these share steps."""
LISTED = 32
"""The most cells of an operand that a step's line names one by one; of more it says how many."""
ALWAYS = -1
"""In ``Slides.when``: shown from the start, since no step brings it."""


@dataclass(frozen=True, eq=False)
class Step:
    """What one step says, and the cells that are new or met again in it: a mask a panel, by the panel's key."""

    text: str
    now: dict[str, BoolArray]


@dataclass(frozen=True, eq=False)
class Slides:
    """A figure and how it is built up.

    ``when`` has the step, from 0, that first shows a cell (ALWAYS: none does), one array a panel; cells of the panels in
    ``fading`` come in with every step a little more. ``done`` is said of the finished figure. ``each`` is how many threads
    (values, …) share a step.
    """

    placed: Placed
    by: str
    steps: tuple[Step, ...]
    when: dict[str, IntArray]
    fading: tuple[str, ...]
    done: str
    each: int
    remark: str = ""
    """What a frame leaves out."""

    @property
    def figure(self) -> Figure:
        """The figure with room for the steps' line."""
        return self.placed.figure


def slides(spec: Spec, figure: Figure, options: FigureOptions, frame: tuple[float, float] | None = None) -> Slides:
    """How a figure is built up, ``options.slides`` at a time in at most ``options.steps`` steps.

    ``figure`` is how it stands in a page; for a ``frame`` of that width and height, in mm, it is drawn anew. Raises
    UsageError, naming those that fit, where the figure has no such steps.
    """
    by = options.slides
    fits = fitting(spec, figure)
    if by not in fits:
        what = spec.name or (spec.layout if isinstance(spec, LayoutSpec) else "") or "this target"
        rest = f"--slides {listed(fits).replace(' and ', ' or ')} fits" if fits else "it has nothing to build up step by step"
        raise UsageError(f"--slides {by} does not fit this picture of {what}: {rest}.")
    placed, remark = in_frame(spec, options, frame) if frame else (in_page(figure), "")
    figure = placed.figure
    made, each, done = _WALKS[by](spec, figure, options.steps or STEPS, placed.room)
    steps = tuple(s for s in made if any(mask.any() for mask in s.now.values()))
    fading = tuple(p.key for p in figure.panels if by == "k" and p.key.startswith("C"))
    when = {}
    for panel in figure.panels:
        first = np.full(panel.fill.shape, ALWAYS)
        for i, step in reversed(list(enumerate(steps))):
            if panel.key in step.now:
                first[step.now[panel.key]] = i
        if by != "offset":
            first[panel.fill == HOLE] = ALWAYS
        when[panel.key] = first
    alt = f"{figure.alt} The picture is built up {words(by)}, in {len(steps)} steps."
    return Slides(replace(placed, figure=replace(figure, alt=alt)), by, steps, when, fading, done, each, remark)


def words(by: str) -> str:
    """``thread by thread``, ``in order of offset``."""
    return "in order of offset" if by == "offset" else f"{by} by {by}"


def fitting(spec: Spec, figure: Figure) -> list[str]:
    """The ways in which a figure can be built up in more than one step."""
    if isinstance(spec, LayoutSpec):
        return ["offset"] if spec.offsets.size > 1 and not spec.coords else []
    held = [o for _, o in _held(spec, figure)]
    threads, values = max((o.threads for o in held), default=0), max((o.values for o in held), default=0)
    keys = {p.key for p in figure.panels}
    ways = [
        ("thread", threads > 1), ("value", values > 1), ("warp", any(o.threads > o.warp for o in held)),
        ("k", isinstance(spec, MmaSpec) and spec.tile_mnk[2] > 1 and keys >= {"A", "B"}),
    ]  # fmt: skip
    return [way for way, fits in ways if fits]


# --- the steps -------------------------------------------------------------------------------------------------------


def _held(spec: Spec, figure: Figure) -> Iterator[tuple[Panel, TVMap]]:
    """The panels whose cells threads hold, with their operands."""
    operands = {} if isinstance(spec, LayoutSpec) else spec.operands()
    for panel in figure.panels:
        operand = operands.get(_operand(panel))
        if operand is not None and not (panel.fill == IN_MEMORY).all():
            yield panel, operand


def _operand(panel: Panel) -> str:
    return panel.key.removesuffix("detail")


def _grouped(count: int, most: int, unit: int = 1) -> tuple[int, list[range]]:
    """(how many share a step, the steps): a power of two times ``unit`` each, at most ``most`` steps."""
    each = unit
    while -(-count // each) > most:
        each *= 2
    return each, [range(i, min(i + each, count)) for i in range(0, count, each)]


def _named(letter: str, members: range) -> str:
    first, last = members[0], members[-1]
    return f"{letter}{first}" if first == last else f"{letter}{first}–{letter}{last}"


def _all(count: int, noun: str, each: int) -> str:
    return f"All {count:,} {noun}s, {'one' if each == 1 else each} a step"


def _by_thread(spec: Spec, figure: Figure, most: int, room: float, size: int = 1) -> tuple[list[Step], int, str]:
    held = list(_held(spec, figure))
    threads = max(o.threads for _, o in held)
    count = -(-threads // size)
    each, groups = _grouped(count, most)
    steps = []
    for group in groups:
        picked = slice(group[0] * size, (group[-1] + 1) * size)
        name = _named("T" if size == 1 else "W", group)
        if size > 1:
            name += f" (T{picked.start}–T{min(picked.stop, threads) - 1})"
        steps.append(_step(name, held, picked, slice(None), room))
    return steps, each, _all(count, "thread" if size == 1 else "warp", each)


def _by_warp(spec: Spec, figure: Figure, most: int, room: float) -> tuple[list[Step], int, str]:
    return _by_thread(spec, figure, most, room, next(o.warp for _, o in _held(spec, figure)))


def _by_value(spec: Spec, figure: Figure, most: int, room: float) -> tuple[list[Step], int, str]:
    held = list(_held(spec, figure))
    count = max(o.values for _, o in held)
    each, groups = _grouped(count, most)
    steps = [_step(_named("V", g), held, slice(None), slice(g[0], g[-1] + 1), room) for g in groups]
    return steps, each, _all(count, "value", each)


def _step(name: str, held: list[tuple[Panel, TVMap]], threads: slice, values: slice, room: float) -> Step:
    """One step: the cells of those table entries, and a line that names as many as there is room for."""
    now: dict[str, BoolArray] = {}
    found: dict[str, list[str]] = {}
    for panel, operand in held:
        entries = operand.tv[threads, values].reshape(-1)
        mask = np.zeros(operand.cells, dtype=bool)
        mask[entries] = True
        now[panel.key] = _oriented(panel, mask.reshape(operand.tile, order="F"))
        letter = _operand(panel)
        if panel.key == letter:
            first, second = (entries % operand.tile[0]).tolist(), (entries // operand.tile[0]).tolist()
            rows, columns = (set(x.tolist()) for x in (panel.rows, panel.columns))
            if panel.transposed:
                rows, columns = columns, rows
            shown = "" if letter == "TV" else letter
            cells = [f"{shown}({i},{j})" for i, j in zip(first, second, strict=True) if i in rows and j in columns]
            found[letter] = list(dict.fromkeys(cells))
    in_order = {k: found[k] for k in ("A", "B", "C", *found) if k in found}
    return Step(f"{name}: {_listing(in_order, room - text_width(name) - 1.0)}", now)


def _listing(found: dict[str, list[str]], room: float) -> str:
    """``A(1,2) A(1,3) +6 · C(1,2) C(1,3)``: as many cells of each operand as fit, ``8 of A, 4 of C`` where none does."""
    found = {k: v for k, v in found.items() if v}
    for most in (16, 8, 6, 4, 3, 2, 1) if max(map(len, found.values()), default=0) <= LISTED else ():
        parts = [" ".join(v[:most]) + (f" +{len(v) - most}" if len(v) > most else "") for v in found.values()]
        if text_width(text := " · ".join(parts)) <= room:
            return text
    counts = [f"{len(v):,} cells" if k == "TV" else f"{len(v):,} of {k}" for k, v in found.items()]
    return ", ".join(counts)


def _oriented(panel: Panel, mask: BoolArray) -> BoolArray:
    """A mask over the operand's tile as one over the panel's cells."""
    cells: BoolArray = (mask.T if panel.transposed else mask)[np.ix_(panel.rows, panel.columns)]
    return cells


def _by_k(spec: Spec, figure: Figure, most: int, room: float) -> tuple[list[Step], int, str]:
    """Columns of A and rows of B that meet, C gathering their products."""
    assert isinstance(spec, MmaSpec)
    count = spec.tile_mnk[2]
    each, groups = _grouped(count, most)
    steps = []
    for group in groups:
        now: dict[str, BoolArray] = {}
        for panel in figure.panels:
            if _operand(panel) == "C":
                now[panel.key] = np.ones(panel.fill.shape, dtype=bool)
            else:
                mask = np.zeros(spec.operands()[_operand(panel)].tile, dtype=bool)
                mask[:, group[0] : group[-1] + 1] = True
                now[panel.key] = _oriented(panel, mask)
        k = str(group[0]) if each == 1 else "k"
        which = f"k = {k}" if each == 1 else f"k = {group[0]} to {group[-1]}"
        texts = [f"{which}: C(m,n) += A(m,{k}) · B(n,{k})", f"{which}: C += A·B", which]
        if not any(_operand(p) == "C" for p in figure.panels):
            texts = [f"{which}: A(m,{k}) meets B(n,{k})", which]
        done = f", {group[-1] + 1} of {count} terms"
        texts = [texts[0] + done, texts[0], *texts[1:]]
        steps.append(Step(next((t for t in texts if text_width(t) <= room), texts[-1]), now))
    return steps, each, f"All {count} values of k, {'one' if each == 1 else each} a step"


def _by_offset(spec: Spec, figure: Figure, most: int, room: float) -> tuple[list[Step], int, str]:
    """Cells in the order of their offsets; what a swizzle moves together comes together."""
    assert isinstance(spec, LayoutSpec)
    placed = {p.key: _offsets(spec, p) for p in figure.panels}
    unit = chunk(spec)
    runs = np.unique(np.concatenate([x.reshape(-1) // unit for x in placed.values()]))
    each, groups = _grouped(len(runs), most)
    steps = []
    for group in groups:
        first, last = int(runs[group[0]]) * unit, (int(runs[group[-1]]) + 1) * unit - 1
        now = {key: np.isin(x // unit, runs[group[0] : group[-1] + 1]) for key, x in placed.items()}
        found = {p.key: _cells(p, now[p.key], placed[p.key]) for p in figure.panels}
        if len(found) > 1:
            found = {k: [f"{k} {v[0]}", *v[1:]] if v else v for k, v in found.items()}
        name = f"offset {first}" if first == last else f"offsets {first} to {last}"
        steps.append(Step(f"{name}: {_listing(found, room - text_width(name) - 1.0)}", now))
    return steps, each * unit, _all(len(np.unique(np.concatenate([x.reshape(-1) for x in placed.values()]))), "offset", each * unit)


def _offsets(spec: LayoutSpec, panel: Panel) -> IntArray:
    whole = spec.plain if panel.key == "before" and spec.plain is not None else spec.offsets
    shown: IntArray = whole[np.ix_(panel.rows, panel.columns)]
    return shown


def _cells(panel: Panel, mask: BoolArray, offsets: IntArray) -> list[str]:
    """The cells in the order of their offsets, neighbours in a row as ``(0,8) to (0,15)``."""
    rows, columns = np.nonzero(mask)
    order = np.argsort(offsets[rows, columns], kind="stable")
    runs: list[list[tuple[int, int]]] = []
    for row, column in zip(panel.rows[rows[order]].tolist(), panel.columns[columns[order]].tolist(), strict=True):
        if runs and runs[-1][-1] == (row, column - 1):
            runs[-1].append((row, column))
        else:
            runs.append([(row, column)])
    names = [[f"({i},{j})" for i, j in run] for run in runs]
    return [x for run in names for x in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]


_WALKS: dict[str, Callable[..., tuple[list[Step], int, str]]] = {
    "thread": _by_thread, "value": _by_value, "warp": _by_warp, "k": _by_k, "offset": _by_offset,
}  # fmt: skip
