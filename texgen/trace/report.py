"""A trace as files: ``index.html``, ``report.tex`` and ``trace.json``, all text from templates."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.figures import FigureOptions, draw
from texgen.figures.labels import text_width
from texgen.figures.model import Figure
from texgen.figures.palette import palette
from texgen.render.environment import fill
from texgen.render.files import write
from texgen.specs import LayoutSpec, MmaSpec, Spec
from texgen.trace import flow, naming
from texgen.trace.flow import Box
from texgen.trace.records import Launch, Recorded, Recording
from texgen.trace.run import Trace
from texgen.visible import json_text

FULL_CELLS = 1200
"""A figure with more cells in one operand is drawn as an overview, a longer swizzled layout by its first rows."""
LAYOUT_ROWS = 16
COLUMN, GAP, PAD, LINE, MINI_SIZE = 200.0, 32.0, 9.0, 15.0, 80.0
A_ROW, HEAD = 5, 34.0
WIDE = 1.13
"""How much wider than Helvetica the font of a reader's machine may be."""
BOLD = 1.07
"""How much wider bold letters are."""
TITLE_PX, FACT_PX, WARP_PX = 13.0, 11.5, 10.5
KIND_NAMES = {
    "tiled_mma": "Tiled MMA", "tiled_copy": "Tiled copy", "mma_atom": "MMA atom", "copy_atom": "Copy atom",
    "smem_layout": "Shared-memory layout", "tma_atom": "TMA atom",
}  # fmt: skip
ENDS = {
    "launch": "It ended at the launch: the kernel was compiled and not run.",
    "end": "It ran to its end.",
    "error": "It ended with an error; what it had built until then is here.",
}


class Drawer:
    """Figures by spec, each drawn once."""

    def __init__(self, templates: tuple[str, ...] = ()) -> None:
        self.templates = templates
        self.figures: dict[Any, Figure] = {}
        self.texts: dict[tuple[str, int], str] = {}

    def figure(self, o: Recorded) -> Figure | None:
        spec = o.spec
        if spec is None:
            return None
        key = (spec.layout, spec.bits, spec.notes) if isinstance(spec, LayoutSpec) else (o.text, o.kind)
        if key not in self.figures:
            self.figures[key] = draw(spec, options(spec))
        return self.figures[key]

    def watch(self, recording: Recording) -> None:
        """Draw what has been built so far; what fails now says so in the report."""
        for o in recording.objects:
            with contextlib.suppress(TexgenError):
                self.svg(o)
                self.tikz(o)

    def svg(self, o: Recorded) -> str:
        from texgen.render.svg import svg

        return self._text("svg", o, lambda f: svg(f, self.templates))

    def tikz(self, o: Recorded) -> str:
        from texgen.render.tex import tikz

        return self._text("tikz", o, lambda f: tikz(f, self.templates))

    def _text(self, form: str, o: Recorded, make: Any) -> str:
        figure = self.figure(o)
        if figure is None:
            return ""
        key = (form, id(figure))
        if key not in self.texts:
            self.texts[key] = make(figure)
        return self.texts[key]


def options(spec: Spec) -> FigureOptions:
    """How a report draws a spec: in full, or a large one so that it can be read on a page."""
    if isinstance(spec, LayoutSpec):
        rows, columns = spec.offsets.shape
        if rows * columns <= FULL_CELLS:
            return FigureOptions()
        return FigureOptions(rows=f"0:{min(rows, LAYOUT_ROWS)}", cols=f"0:{min(columns, 64)}")
    cells = max(o.cells for o in spec.operands().values())
    return FigureOptions(overview=cells > FULL_CELLS)


def write_report(trace: Trace, folder: Path, partitions: bool = False, drawer: Drawer | None = None) -> list[Path]:
    """Write the three files, and ``details.json`` with launches, allocations and partitions. Gives their paths."""
    drawer = drawer or Drawer()
    names = drawer.templates
    context = report_context(trace, partitions, drawer)
    made = [write(folder / "trace.json", json_text(trace.to_dict(), separators=(",", ":")) + "\n")]
    made.append(write(folder / "details.json", json_text(details(trace), indent=1) + "\n"))
    made.append(write(folder / "index.html", fill("trace_report.html.j2", context, names)))
    made.append(write(folder / "report.tex", fill("trace_report.tex.j2", context, names)))
    return made


def details(trace: Trace) -> dict[str, Any]:
    """What ``trace.json`` has no place for."""
    r = trace.recording
    numbers = {id(launch): i for i, launch in enumerate(r.launches)}

    def at(launch: Launch | None) -> int | None:
        return numbers.get(id(launch)) if launch is not None else None

    return {
        "schema": 1, "arguments": trace.arguments, "status": trace.status, "error": trace.error, "arch": trace.arch,
        "seconds": round(trace.seconds, 3), "launched": trace.launches, "notes": trace.notes,
        "launches": [asdict(x) for x in r.launches],
        "objects": [{"name": o.name, "line": o.line, "launch": at(o.launch), "tensors": o.tensors, "text": o.text, "error": o.error} for o in r.objects],
        "allocations": [{**asdict(a), "launch": at(a.launch)} for a in r.allocations],
        "partitions": [{**asdict(p), "launch": at(p.launch)} for p in r.partitions],
    }  # fmt: skip


def report_context(trace: Trace, partitions: bool, drawer: Drawer) -> dict[str, Any]:
    """The names that the report's templates may use."""
    from texgen import __version__

    r = trace.recording
    objects = r.objects
    anchors = {id(o): f"object-{i + 1}" for i, o in enumerate(objects)}
    shown: dict[Any, str] = {}
    entries = {id(o): _entry(o, anchors[id(o)], drawer, shown) for o in objects}
    kernels = [_kernel(trace, launch, objects, entries, anchors, partitions) for launch in r.launches]
    rest = [entries[id(o)] for o in objects if o.launch is None]
    return {
        "version": __version__, "program": os.path.basename(trace.program) or trace.program, "path": trace.program,
        "arguments": trace.arguments, "ended": trace.ended, "ending": ENDS[trace.ended], "status": trace.status,
        "error": trace.error, "replaced": trace.replaced, "notes": trace.notes, "arch": trace.arch,
        "seconds": trace.seconds, "kernels": kernels, "rest": rest, "count": len(objects),
        "entries": [entries[id(o)] for o in objects], "palette": palette("default"),
        "partitions": [_partition(p) for p in r.partitions if p.launch is None] if partitions else [],
    }  # fmt: skip


def _entry(o: Recorded, anchor: str, drawer: Drawer, shown: dict[Any, str]) -> dict[str, Any]:
    figure, error = None, o.error
    try:
        figure = drawer.figure(o)
    except TexgenError as e:
        error = e.message
    same = shown.setdefault(id(figure), anchor) if figure is not None else anchor
    spec = o.spec
    return {
        "anchor": anchor, "name": o.name or f"({KIND_NAMES[o.kind].lower()})", "kind": KIND_NAMES[o.kind], "class": o.kind,
        "file": os.path.basename(o.file), "path": o.file, "line": o.line, "code": o.code, "function": o.function,
        "sightings": o.sightings, "error": error, "tensors": o.tensors, "alias": o.alias, "same": "" if same == anchor else same,
        "svg": drawer.svg(o) if figure is not None and same == anchor else "",
        "tikz": drawer.tikz(o) if figure is not None and same == anchor else "",
        "facts": flow.facts(o), "warp": flow.follow(o)[0] if spec is not None else "",
        "what": spec.name if spec is not None and not isinstance(spec, LayoutSpec) else spec.layout if isinstance(spec, LayoutSpec) else o.details.get("op_name", ""),
        "threads": spec.threads if spec is not None and not isinstance(spec, LayoutSpec) else 0,
        "warnings": list(spec.warnings) if isinstance(spec, MmaSpec) else [],
        "op": o.details.get("op_name", ""),
    }  # fmt: skip


def _kernel(
    trace: Trace, launch: Launch, objects: list[Recorded], entries: dict[int, dict[str, Any]], anchors: dict[int, str],
    partitions: bool,
) -> dict[str, Any]:  # fmt: skip
    own = flow.used_objects(launch, objects)
    parts = [p for p in trace.recording.partitions if p.launch is launch]
    rows, total = flow.budget(launch, trace.recording.allocations, trace.recording.tensors)
    capacity = flow.capacity(launch.arch or trace.arch)
    chain = flow.boxes(launch, own, anchors, parts)
    return {
        "name": launch.kernel, "file": os.path.basename(launch.file), "line": launch.line,
        "call_file": os.path.basename(launch.call_file), "call_line": launch.call_line,
        "call": naming.source_of(launch.call_file).text(None, launch.call_line) if launch.call_file else "",
        "grid": dims(launch.grid), "block": dims(launch.block), "cluster": dims(launch.cluster), "arch": launch.arch,
        "threads": _product(launch.block), "sightings": launch.sightings,
        "entries": [entries[id(o)] for o in own], "budget": rows, "total": total, "capacity": capacity,
        "share": 100.0 * total / capacity if capacity else 0.0,
        "chain": place(chain), "partitions": [_partition(p) for p in parts] if partitions else [],
    }  # fmt: skip


def dims(values: Sequence[int | str]) -> str:
    """``4 × 4 × 1``; one variable for all of them is known only at run time."""
    if len(values) == 1 and isinstance(values[0], str):
        return f"{values[0]} (known at run time)"
    return " × ".join(str(v) for v in values)


def _product(values: Sequence[int | str]) -> int:
    out = 1
    for v in values:
        if not isinstance(v, int):
            return 0
        out *= v
    return out


def _partition(p: Any) -> dict[str, Any]:
    where = flow.NAMES.get(flow.space(p.type), "coordinates" if "coord" in p.type else "shared (descriptors)" if "smem_desc" in p.type else "")
    found = p.type.split("<", 1)[-1].split(",")[0] if "memref" in p.type else ""
    return {
        "name": p.name or "(unnamed)", "call": p.call, "line": p.line, "file": os.path.basename(p.file), "code": p.code,
        "dtype": found, "memory": where, "layout": p.layout, "type": p.type, "sightings": p.sightings,
    }  # fmt: skip


# The diagram


def place(boxes: list[Box]) -> dict[str, Any]:
    """Boxes in columns by stage, five columns a row, with the arrows between them and the size of the whole."""
    stages = [s for s in flow.STAGES if any(b.stage == s for b in boxes)]
    columns: list[dict[str, Any]] = []
    arrows: list[list[tuple[float, float]]] = []
    top, bottom = 0.0, 0.0
    for i, stage in enumerate(stages):
        at = i % A_ROW
        if at == 0 and i:
            turn, last = bottom + 6.0, columns[-1]["x"] + COLUMN
            top = bottom + 26.0
            arrows.append([(last + 2.0, columns[-1]["y"] + HEAD + 24.0), (last + 14.0, columns[-1]["y"] + HEAD + 24.0),
                           (last + 14.0, turn), (-12.0, turn), (-12.0, top + HEAD + 24.0), (-2.0, top + HEAD + 24.0)])  # fmt: skip
        elif i:
            arrows.append([(at * (COLUMN + GAP) - GAP + 4.0, top + HEAD + 24.0), (at * (COLUMN + GAP) - 4.0, top + HEAD + 24.0)])
        x, y = at * (COLUMN + GAP), top + HEAD
        made = []
        for box in (b for b in boxes if b.stage == stage):
            box.x, box.y = x, y
            made.append(_lay_out(box))
            y += made[-1]["height"] + 14.0
        columns.append({"title": flow.TITLES[stage], "x": x, "y": top, "boxes": made})
        bottom = max(bottom, y)
    width = max(1.0, min(len(columns), A_ROW) * (COLUMN + GAP) - GAP)
    return {"columns": columns, "arrows": arrows, "width": width, "height": bottom, "column": COLUMN}


def _lay_out(box: Box) -> dict[str, Any]:
    lines = [piece for line in box.lines for piece in _broken(line, FACT_PX)]
    warp = _broken(box.warp, WARP_PX)
    y = PAD + 12.0
    out: dict[str, Any] = {"title": _cut(box.title.removeprefix("self."), TITLE_PX), "full": box.title, "title_y": y, "anchor": box.anchor, "x": box.x, "y": box.y, "lines": [], "warp": [], "minis": []}
    for line in lines:
        y += LINE
        out["lines"].append((line, y))
    if box.mini:
        y += 10.0
        x = PAD
        tallest = 0.0
        for mini in box.mini:
            side = MINI_SIZE / max(mini.rows, mini.columns)
            width, height = mini.columns * side, mini.rows * side
            if height < 6.0 or width < 6.0:  # a long row: stretch it so that it can be seen
                width, height = max(width, 10.0), max(height, 10.0)
            sx, sy = width / mini.columns, height / mini.rows
            out["minis"].append({
                "name": mini.name, "x": x, "y": y + 10.0, "width": width, "height": height,
                "runs": [(c * sx, r * sy, w * sx, h * sy, k) for r, c, h, w, k in mini.runs],
            })  # fmt: skip
            x += width + 12.0
            tallest = max(tallest, height)
        y += tallest + 12.0
    for i, line in enumerate(warp):
        y += 18.0 if i == 0 else 13.0
        out["warp"].append((line, y))
    out["height"] = y + PAD + 2.0
    return out


def _broken(text: str, size: float) -> list[str]:
    """Text in lines that fit a box at a font size; long words are cut at underscores."""
    room = (COLUMN - 2 * PAD) / size / WIDE
    lines: list[str] = []
    line = ""
    for word in text.replace("_", "_\u200b").split(" "):
        for i, piece in enumerate(word.split("\u200b")):
            glue = " " if line and i == 0 else ""
            if line and text_width(line + glue + piece) > room:
                lines.append(line)
                line, glue = "", ""
            line += glue + piece
    return [*lines, line] if line else lines


def _cut(text: str, size: float) -> str:
    """Text that fits a box in bold, its middle left out where it is too long: the end tells names apart."""
    room = (COLUMN - 2 * PAD) / size / WIDE / BOLD
    if text_width(text) <= room:
        return text
    head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    while len(tail) > 1 and text_width(f"{head}…{tail}") > room:
        head, tail = (head[:-1], tail) if len(head) > len(tail) else (head, tail[1:])
    return f"{head}…{tail}"
