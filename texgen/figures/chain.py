"""From copy to MMA: memory, registers and the MMA's operand side by side, one colour through all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from texgen.banks import Conflicts
from texgen.chains.delivery import cell_name, first_wrong, wavefronts
from texgen.chains.spec import ChainSpec
from texgen.errors import UsageError
from texgen.figures import caption as words
from texgen.figures.chain_panels import View, fragment_panel, global_panel, memory_panel, register_panel, unit_bits
from texgen.figures.model import DIMMED, HOLE, Figure, LegendItem, Line, Panel
from texgen.figures.options import FigureOptions
from texgen.figures.palette import palette
from texgen.figures.panels import check_size
from texgen.figures.place import assemble
from texgen.specs import WARP

WORDS = 32
"""Columns of a panel of memory whose cells are words: the panels then stand one below the other, lanes across."""


def draw_chain(spec: ChainSpec, options: FigureOptions) -> Figure:
    """The figure of a copy and the MMA that it feeds.

    Raises TexgenError for more than a million cells, UsageError for options that do not fit a chain.
    """
    for name in ("overview", "slides"):
        if getattr(options, name, None):
            raise UsageError(f"--{name} is of one target: draw a part of a chain with --rows and --cols, or follow a thread with --highlight T5.")
    if options.operand.upper().strip() not in ("", spec.operand):
        raise UsageError(f"--operand {options.operand!r}: this chain feeds {spec.operand}.")
    if not (options.rows or options.cols):
        check_size(spec.tile[0] * spec.tile[1], spec.name, "--rows 0:64 --cols 0:64")
    view = View.of(spec, options)
    memory = memory_panel(view)
    stacked = memory.width >= WORDS
    panels: list[Panel] = [p for p in (global_panel(view), memory) if p is not None]
    warp = 0
    if spec.copy is not None:
        registers, warp = register_panel(view, stacked)
        panels.append(registers)
    panels.append(fragment_panel(view))
    check_size(sum(p.height * p.width for p in panels), spec.name, "--rows 0:64 --cols 0:64")
    panels = [replace(p, title=f"{i}  {p.title}") for i, p in enumerate(panels, 1)]
    legend, legend_title = _legend(view, panels)
    title = options.title if options.title is not None else spec.name
    alt = _alternative(view)
    return assemble(
        "chain", spec.name, title, [[p] for p in panels] if stacked else [[*panels]], palette(options.palette), legend, legend_title,
        _caption(view, warp) if options.caption else [], alt, spec.warnings,
    )  # fmt: skip


def _legend(view: View, panels: list[Panel]) -> tuple[list[LegendItem], str]:
    colors = len(palette(view.options.palette))
    if not view.options.legend:
        return [], ""
    letter = {"matrix": "M", "thread": "T", "value": "V", "warp": "W", "quad": "Q"}[view.color_by]
    fills = np.unique(np.concatenate([p.fill.reshape(-1) for p in panels]))
    items = [LegendItem(i, f"{letter}{key}") for key, i in enumerate(view.order_of_fills) if i in fills] if colors > 1 else []
    if view.bad.any():
        items.append(LegendItem(HOLE, "another element than the MMA wants" if view.found.wrong.any() else "! nothing: the address is misaligned"))
    if any(p.shared is not None for p in panels):
        items.append(LegendItem(None, "held by several threads"))
    if DIMMED in fills:
        items.append(LegendItem(DIMMED, "the rest"))
    what = {"matrix": "8×8 matrix", "thread": "writing thread" if view.by_writer else "thread that gets it"}.get(view.color_by, view.color_by)
    again = f" modulo {colors}" if int(view.keys.max()) >= colors else ""
    return items, f"Colour: {what}{again}" if colors > 1 else ""


def _caption(view: View, warp: int) -> list[Line]:
    spec = view.spec
    lines = [*_reading(view, warp), *_marks(view), *_memory(spec), *_cost(view), *_proof(view), *(Line(n) for n in spec.notes)]
    m, n, k = spec.mma.tile_mnk
    parts = [f"{spec.mma.name or 'MMA'} {m}×{n}×{k}, {words.plural(spec.mma.threads, 'thread')}"]
    parts += [f"{c.name} {c.tile[0]}×{c.tile[1]}, {words.plural(c.threads, 'thread')} × {words.plural(c.D.values, 'value')}" for c in (spec.copy, spec.write) if c]
    return [*lines, Line(" · ".join(parts)), *words.origin_line(spec), *(Line(f"Warning: {w}") for w in spec.warnings)]


def _reading(view: View, warp: int) -> list[Line]:
    """How to read a label of memory and a register, by examples that are in the figure."""
    spec, found = view.spec, view.found
    if spec.copy is None:
        return _written(view)
    seen = view.shown & ~view.bad if (view.shown & ~view.bad).any() else view.shown
    seen = seen if view.picked is None or not (seen & view.picked).any() else seen & view.picked
    threads = np.flatnonzero(seen.any(axis=1))
    threads = threads[(threads // WARP) == warp] if ((threads // WARP) == warp).any() else threads
    t = int(threads[min(5, len(threads) - 1)])
    v = int(np.flatnonzero(seen[t])[0])
    own = int(np.flatnonzero(found.order == v)[0])
    lane, cell = int(found.lanes[t, own]), int(found.arrives[t, v])
    width = spec.vector * spec.bits
    lines = []
    access = own // (found.order.size // found.addresses.shape[1])
    at = int(found.addresses[lane, access])
    if found.is_matrix and at % width:
        pass  # a misaligned address has no cell of its own to point at, and a warning says so
    elif found.is_matrix and unit_bits(view) >= width:
        start = _cell_of(spec, at // spec.bits)
        takers = np.flatnonzero(((found.lanes == lane) & (found.matrices == found.matrices[t, own])).any(axis=1))
        lines.append(Line(
            f"T{lane}→ over {view.coordinate(start)}: lane {lane} names byte {at // 8}, banks {at // 32 % 32}–{(at + width - 1) // 32 % 32}, where {cell_name(spec, start)} "
            f"begins a row of {spec.vector}; {_threads(takers)} get {words.plural(spec.vector // max(1, len(takers)), 'element')} each"
        ))  # fmt: skip
    elif found.is_matrix:
        lines.append(Line(f"T{t} over {view.coordinate(cell)} in shared memory: thread {t} gets the 4 bytes there, whichever lane names their address"))
    else:
        lines.append(Line(f"T{t} over {view.coordinate(cell)} in shared memory: thread {t} reads {cell_name(spec, cell)} there, {words.plural(max(1, width // 8), 'byte')} at a time"))
    packed = max(1, 32 // spec.bits)
    register = own // packed
    first, last = register * packed, min(found.order.size, (register + 1) * packed) - 1
    held = [cell_name(spec, int(found.arrives[t, found.order[x]])) for x in range(first, last + 1)]
    said = " and ".join(held) if len(held) <= 2 else f"{held[0]} to {held[-1]}"
    values = f"V{first}" if first == last else f"V{first} and V{last}" if last == first + 1 else f"V{first} to V{last}"
    lines.append(Line(f"T{t}, r{register}: thread {t}'s register {register} holds {said}, the copy's {values}"))
    return lines


def _marks(view: View) -> list[Line]:
    """What ! at an address and ? in place of an element mean, where the figure has them."""
    width, lines = view.spec.vector * view.spec.bits // 8, []
    if view.misaligned.any() and view.found.is_matrix and unit_bits(view) >= 8 * width:
        lines.append(Line(f"→!: an address that {words.plural(width, 'byte')} do not divide, and the element there; the access faults"))
    if view.bad.any() and any(not view.coordinate(int(c)) for c in np.unique(view.found.arrives[view.shown])):
        lines.append(Line(f"?: what lies there is no element of {view.spec.operand}'s tile"))
    return lines


def _written(view: View) -> list[Line]:
    """How to read memory that threads write and the MMA's threads read without a copy of their own."""
    spec = view.spec
    if spec.write is None:
        return []
    t = min(5, spec.write.threads - 1)
    cell = int(spec.write.D.tv[t, 0])
    at = int(spec.smem.offsets.reshape(-1, order="F")[cell]) * spec.bits // 8
    text = f"T{t} over {view.coordinate(cell)} in shared memory: thread {t} writes {cell_name(spec, cell)} and what follows to byte {at}"
    return [Line(text), Line("In the MMA's operand T and V name who needs an element, the colour who wrote it" if view.by_writer else "In the MMA's operand T and V name who needs an element")]


def _cell_of(spec: ChainSpec, offset: int) -> int:
    where = np.flatnonzero(spec.smem.offsets.reshape(-1, order="F") == offset)
    return int(where[0]) if len(where) else -1


def _threads(threads: np.ndarray) -> str:  # type: ignore[type-arg]
    t = threads.tolist()
    if t == list(range(t[0], t[-1] + 1)):
        return f"T{t[0]}" if len(t) == 1 else f"T{t[0]} to T{t[-1]}"
    return ", ".join(f"T{x}" for x in t[:2]) + (", …" if len(t) > 3 else ",") + f" T{t[-1]}"


def _memory(spec: ChainSpec) -> list[Line]:
    """The layout, and where in it the operand begins."""
    rows, columns = spec.smem.offsets.shape
    at = f", {spec.operand} from ({spec.at[0]},{spec.at[1]}) on" if spec.at != (0, 0) or (rows, columns) != spec.tile else ""
    lines = [Line(f"smem {spec.smem.layout}", code=True)] if spec.smem.layout else []
    return [*lines, Line(f"Shared memory holds {rows}×{columns} elements of {spec.bits} bits{at}"), *(Line(n) for n in spec.smem.notes)]


def _cost(view: View) -> list[Line]:
    """Wavefronts of the reading, and where they are more than the ideal, why."""
    costs = [c for warp in wavefronts(view.spec) for c in warp]
    if not costs:
        return []
    worst = max(costs, key=lambda c: c.excess)
    what = "ldmatrix" if view.found.is_matrix else "read"
    count = view.found.addresses.shape[1]
    each = f"1 {what} a warp: {worst}" if count == 1 else f"{count} {what}{'' if view.found.is_matrix else 's'} a warp, each {worst}"
    if len({c.wavefronts for c in costs}) > 1:
        each = f"{count} {what} a warp, the costliest {worst}"
    return [Line(each + _why(worst))]


def _why(cost: Conflicts) -> str:
    if not cost.excess:
        return ", no bank conflicts"
    phase = max(cost.phases, key=lambda p: p.wavefronts)
    return f", bank conflicts: lanes {phase.lanes[0]} to {phase.lanes[-1]} want {phase.wavefronts} different words of bank {phase.bank}"


def _proof(view: View) -> list[Line]:
    """That the copy's destination is the MMA's fragment, value by value; nothing where it is not (a warning says that)."""
    spec, found = view.spec, view.found
    if spec.copy is None or view.bad.any():
        return []
    count = f"checked for all {words.plural(found.fragment.threads, 'thread')} × {words.plural(found.fragment.values, 'value')}"
    if (found.order == np.arange(found.order.size)).all():
        return [Line(f"It feeds the MMA: value v of the copy is value v of {spec.operand}, {count}")]
    shown = found.order[:16].tolist()
    return [Line(f"It feeds the MMA: values 0, 1, 2, … of the copy are values {', '.join(map(str, shown))}{', …' if len(found.order) > 16 else ''} of {spec.operand} (retile), {count}")]


def _alternative(view: View) -> str:
    """What the chain is and what becomes of one element, for those who cannot see it."""
    spec, found = view.spec, view.found
    rows, columns = spec.tile
    text = f"{spec.name}: {rows} by {columns} elements from shared memory to the MMA, for {words.plural(found.fragment.threads, 'thread')}. "
    if (wrong := first_wrong(spec)) is not None:
        t, v, gets, wants = wrong
        return text + f"The copy does not feed the MMA: thread {t} gets {gets} as value {v}, where the MMA wants {wants}."
    if view.bad.any():
        return text + "The copy does not feed the MMA: addresses are misaligned."
    facts: Mapping[str, str] = {}
    if spec.copy is not None and found.addresses.size:
        at = int(found.addresses[0, 0]) // 8
        facts = {"lane": f"Thread 0 names byte {at}; " if found.is_matrix else f"Thread 0 reads byte {at}; "}
    return text + facts.get("lane", "") + f"thread 0 then holds {words.held_cells(spec.operand, found.fragment, 0)} as the MMA wants them."
