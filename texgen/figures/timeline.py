"""A pipeline's timeline: the stages of its ring down, its steps across, and what is done in each step below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from texgen.errors import UsageError
from texgen.figures.caption import plural
from texgen.figures.model import HOLE, IN_MEMORY, Block, Figure, LegendItem, Line, Panel, rectangles
from texgen.figures.options import FigureOptions, crop
from texgen.figures.palette import palette
from texgen.figures.panels import check_size
from texgen.figures.place import assemble
from texgen.layouts import IntArray
from texgen.pipeline.hazards import KINDS, Course, Hazard
from texgen.pipeline.program import kernel_program
from texgen.pipeline.spec import TimelineSpec
from texgen.pipeline.steps import FLIGHT, FREE, LANDED, LETTERS, ORDER, READ, WRITTEN

FILLS = {WRITTEN: 6, FLIGHT: 4, LANDED: 2, READ: 1}
"""Of the palettes' eight: light in flight, dark where read, in grey too."""
MEANINGS = {WRITTEN: "W copy issued", FLIGHT: "F in flight", LANDED: "L landed", READ: "R read"}
NOT_OURS = ("operand", "highlight", "color_by", "overview", "swizzle", "banks", "rows", "slides")
SHOWN_HAZARDS = 4
LONGEST = 4096


def draw_timeline(spec: TimelineSpec, options: FigureOptions) -> Figure:
    """The figure of a timeline. Raises UsageError for options that a timeline has no use for."""
    for name in NOT_OURS:
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is of layouts; a timeline has stages and steps: --cols crops its steps.")
    count = spec.steps[-1] + 1
    if count > LONGEST and not options.cols:
        raise UsageError(f"The timeline has {count:,} steps: draw a part of it with --cols 0:64.")
    columns = crop(options.cols, count, "cols")
    check_size((spec.stages + len(ORDER)) * len(columns), "this timeline", "--cols 0:64")
    colors = len(palette(options.palette))
    panels: list[list[Panel | None]] = [[_stages(spec, columns, options, colors)], [_operations(spec, columns, options)]]
    lines = _caption(spec, set(columns.tolist()))
    if spec.measured is not None:
        from texgen.figures.stamps import measured_lines, measured_panels

        panels += [[p] for p in measured_panels(spec.measured, len(columns), colors)]
        lines += measured_lines(spec.measured)
        if spec.measured.k_blocks != spec.k_blocks:
            lines.append(Line(f"The model above has k tiles of {plural(spec.k_blocks, 'k block')}, the run's have {spec.measured.k_blocks}: one step more a k block, while its k tile is read"))
        if spec.program != kernel_program(spec.stages, spec.k_tiles, spec.k_blocks):
            lines.append(Line("The run is of the kernel's own protocol, not of the one above"))
    states = {row[t].state for row in spec.cells for t in columns.tolist()}
    legend = [LegendItem(fill % colors, MEANINGS[state]) for state, fill in FILLS.items() if options.legend and state in states]
    return assemble(
        "timeline", spec.name, options.title if options.title is not None else (spec.name or title(spec)), panels,
        palette(options.palette), legend, "", lines if options.caption else [], alternative_text(spec),
    )  # fmt: skip


def title(spec: TimelineSpec) -> str:
    """``Pipeline of 3 stages, 8 k tiles of 2 k blocks``."""
    fault = f", fault: {spec.fault}" if spec.fault else ""
    return f"Pipeline of {plural(spec.stages, 'stage')}, {plural(spec.k_tiles, 'k tile')} of {plural(spec.k_blocks, 'k block')}{fault}"


def marked(spec: TimelineSpec) -> tuple[set[tuple[int, int]], set[tuple[str, int]]]:
    """What the hazards outline: (stage, step) of the accesses that clash, and (operation, step) of what is at fault."""
    stages, operations = set(), set()
    for hazard in spec.hazards:
        for event in _at_fault(hazard):
            if hazard.stage >= 0 and event != hazard.weak:
                stages.add((hazard.stage, spec.steps[event]))
            if spec.program[event].op in ORDER:
                operations.add((spec.program[event].op, spec.steps[event]))
    return stages, operations


def _at_fault(hazard: Hazard) -> list[int]:
    """The events that a hazard outlines: where it shows, what it clashes with, the wait that is too weak."""
    other = -1 if hazard.kind in ("raw", "tile", "drain") else hazard.other
    return [event for event in (hazard.event, other, hazard.weak) if event >= 0]


def _stages(spec: TimelineSpec, columns: IntArray, options: FigureOptions, colors: int) -> Panel:
    hazardous, _ = marked(spec)
    shown = [[spec.cells[s][t] for t in columns.tolist()] for s in range(spec.stages)]
    fill = np.asarray([[FILLS[c.state] % colors if c.state else HOLE for c in row] for row in shown], dtype=np.int64)
    mask = np.asarray([[(s, t) in hazardous for t in columns.tolist()] for s in range(spec.stages)])
    tiles = [["" if c.state == FREE else spec.tile(c.tile) if c.tile >= 0 else "?" for c in row] for row in shown]
    letters = [
        [LETTERS[c.state] + ("!" if wrong else "") for c, wrong in zip(row, wrongs, strict=True)]
        for row, wrongs in zip(shown, mask.tolist(), strict=True)
    ]
    return Panel(
        "stages", "Stages of the ring: k tile and state", np.arange(spec.stages), columns, "stage", "step", fill,
        () if options.label == "none" else (tiles, letters), blocks=_outlines(mask),
        row_names=tuple(f"stage {s}" for s in range(spec.stages)),
    )  # fmt: skip


def _operations(spec: TimelineSpec, columns: IntArray, options: FigureOptions) -> Panel:
    """What a warp does in each step, from top to bottom; commits by the number of their group."""
    _, hazardous = marked(spec)
    groups = Course(spec.program).groups
    rows = [op for op in ORDER if any(e.op == op for e in spec.program)]
    text = {(op, t): "" for op in rows for t in columns.tolist()}
    for i, event in enumerate(spec.program):
        key = (event.op, spec.steps[i])
        if key in text:
            tile = spec.tile(event.tile)
            text[key] = {
                "wait": str(event.n), "barrier": "all", "copy": tile, "commit": f"g{groups.get(i)}", "reuse": "all",
            }.get(event.op, f"{tile}.{event.block}")  # fmt: skip
    labels = [[text[op, t] + "!" * ((op, t) in hazardous) for t in columns.tolist()] for op in rows]
    mask = np.asarray([[(op, t) in hazardous for t in columns.tolist()] for op in rows])
    fill = np.asarray([[IN_MEMORY if label else HOLE for label in row] for row in labels], dtype=np.int64)
    return Panel(
        "operations", "What every warp does, from top to bottom", np.arange(len(rows)), columns, "operation", "step", fill,
        () if options.label == "none" else (labels,), blocks=_outlines(mask), row_names=tuple(rows),
    )  # fmt: skip


def _outlines(mask: np.ndarray) -> tuple[Block, ...]:  # type: ignore[type-arg]
    return tuple(Block(*rectangle, name="", strong=True) for rectangle, wrong in rectangles(mask.astype(np.int64)) if wrong)


# Words -------------------------------------------------------------------------------------------------------------------


def verdict(spec: TimelineSpec, seen: int | None = None) -> str:
    """How many hazards there are, by kind; ``seen``: how many have a mark in the steps drawn (None: all)."""
    if not spec.hazards:
        return "No hazards: in every interleaving of the warps each read finds its k tile."
    counts = Counter(h.kind for h in spec.hazards)
    kinds = ", ".join(f"{KINDS[kind]} {n}×" if n > 1 else KINDS[kind] for kind, n in counts.items())
    many = plural(len(spec.hazards), "hazard")
    if seen == 0:
        return f"{many}, none in the steps drawn: {kinds}."
    part = "" if seen in (None, len(spec.hazards)) else f", {seen} in the steps drawn"
    return f"{many}{part}, outlined and marked with !: {kinds}."


def chosen(hazards: Sequence[Hazard]) -> list[Hazard]:
    """A few hazards that say most: the first of each kind, then those of other k tiles."""
    first = {h.kind: h for h in reversed(hazards)}
    others = {(h.kind, h.tile): h for h in reversed(hazards)}
    kept = sorted(first.values(), key=lambda h: h.event)
    kept += sorted((h for h in others.values() if h not in kept), key=lambda h: h.event)[: max(0, SHOWN_HAZARDS - len(kept))]
    return sorted(kept, key=lambda h: h.event)


def _caption(spec: TimelineSpec, drawn: set[int]) -> list[Line]:
    """The lines of facts of the steps drawn; hazards that have no mark there are counted, and told where no other is."""
    lines = [Line("wait: groups that wait_group leaves in flight; read, compute: k tile.k block; commit: group")]
    held = {row[t].tile for row in spec.cells for t in drawn} | {e.tile for i, e in enumerate(spec.program) if spec.steps[i] in drawn}
    if max(held) >= spec.k_tiles:
        lines.append(Line(f"{spec.k_tiles - 1}*: the last k tile once more, copied so that no branch is needed; nobody multiplies it"))
    lines += [Line(note) for note in spec.notes]
    seen = [h for h in spec.hazards if any(spec.steps[event] in drawn for event in _at_fault(h))]
    lines.append(Line(verdict(spec, len(seen))))
    told = chosen(seen or spec.hazards)
    lines += [Line(h.text) for h in told]
    if len(told) < len(spec.hazards):
        lines.append(Line(f"and {plural(len(spec.hazards) - len(told), 'more hazard')}".replace("more hazards", "more")))
    return lines + ([Line(spec.source)] if spec.source else [])


def alternative_text(spec: TimelineSpec) -> str:
    """What the figure shows, for those who cannot see it."""
    states = spec.cells[0]
    spans = []
    for step, cell in enumerate(states):
        if cell.state and (step == 0 or states[step - 1] != cell):
            what = {WRITTEN: "is copied", FLIGHT: "is in flight", LANDED: "has landed", READ: "is read"}[cell.state]
            spans.append(f"k tile {spec.tile(cell.tile)} {what} from step {step}")
    faults = "" if not spec.hazards else " " + " ".join(h.text for h in chosen(spec.hazards))
    return f"{title(spec)}, {spec.steps[-1] + 1} steps. In stage 0 {_some(spans)}. {verdict(spec)}{faults}"


def _some(parts: Sequence[str], most: int = 6) -> str:
    return ", ".join(parts[:most]) + (" and so on" if len(parts) > most else "") if parts else "nothing happens"
