"""How a kernel's objects hang together: global → shared → registers → MMA → epilogue, and one warp through it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from texgen.figures.model import rectangles
from texgen.layouts import IntArray
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, TVMap
from texgen.trace.records import Launch, Partition, Recorded

STAGES = ("global", "load", "shared", "feed", "mma", "accumulators", "epilogue", "store", "result")
TITLES = {
    "global": "Global memory", "load": "Global → shared", "shared": "Shared memory", "feed": "Shared → registers",
    "mma": "MMA", "accumulators": "Accumulators", "epilogue": "Epilogue", "store": "To global", "result": "Global memory",
}  # fmt: skip
SPACES = re.compile(r"\b(gmem|smem|rmem|tmem|generic)\b")
MINI = 64
LANES = 32
NAMES = {"gmem": "global", "smem": "shared", "rmem": "registers", "tmem": "tensor memory", "generic": "memory"}


@dataclass
class Box:
    """One box of the diagram: ``lines`` are facts, ``warp`` what warp 0 does there, ``mini`` a picture of its part."""

    stage: str
    title: str
    lines: list[str]
    anchor: str = ""
    warp: str = ""
    mini: list[Mini] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    height: float = 0.0


@dataclass
class Mini:
    """A small picture of a tile, the elements of warp 0 coloured by lane: ``runs`` are (row, column, height, width, colour)."""

    name: str
    rows: int
    columns: int
    runs: list[tuple[int, int, int, int, int]]


def space(type_text: str) -> str:
    """The memory that a tensor's type names, empty for coordinates."""
    found = SPACES.search(type_text)
    return found[1] if found else ""


def stage_of(o: Recorded, partitions: list[Partition]) -> str:
    """Where in the chain an object stands; empty for an atom that a tiled object was made from."""
    if o.kind == "smem_layout":
        return "shared"
    if o.kind == "tiled_mma":
        return "mma"
    if o.kind == "tma_atom":
        name = o.details.get("op_name", "")
        return "store" if "S2G" in name or "Reduce" in name else "load"
    if o.kind != "tiled_copy":
        return ""
    own = [p for p in partitions if p.owner == o.text]
    source = {space(p.of) or space(p.type) for p in own if p.call == "partition_S"} - {""}
    target = {space(p.of) or space(p.type) for p in own if p.call == "partition_D"} - {""}
    text = o.text
    if "ldsm" in text:
        return "feed"
    if "stsm" in text or "tmem_store" in text:
        return "epilogue"
    if "tmem_load" in text or "async_copy" in text:
        return "epilogue" if "tmem_load" in text else "load"
    if "smem" in target and "gmem" in source:
        return "load"
    if "gmem" in target:
        return "store"
    if "gmem" in source:
        return "feed" if "smem" not in target else "load"
    if "smem" in target:
        return "epilogue"
    if "smem" in source:
        return "feed"
    return "epilogue" if "tmem" in source | target else "feed"


def boxes(launch: Launch | None, objects: list[Recorded], anchors: dict[int, str], partitions: list[Partition]) -> list[Box]:
    """The boxes of one kernel's chain, by stage."""
    out: list[Box] = []
    tensors: dict[str, list[str]] = {"in": [], "out": []}
    seen: set[tuple[str, str, str]] = set()
    stored = _stored(objects, partitions)
    for o in objects:
        stage = stage_of(o, partitions)
        if not stage or (stage, o.name, o.text) in seen:
            continue  # a helper and its caller may build the same twice
        seen.add((stage, o.name, o.text))
        if stage == "shared" and isinstance(o.spec, LayoutSpec) and o.spec.layout in stored:
            stage = "epilogue"
        box = Box(stage, o.name or o.kind.replace("_", " "), facts(o), anchors.get(id(o), ""))
        if o.spec is not None:
            box.warp, box.mini = follow(o)
        out.append(box)
        moved = [p for p in partitions if p.owner == o.text]
        for p in moved:
            if space(p.of) == "gmem" and p.call in ("partition_S", "partition_D"):
                tensors["in" if p.call == "partition_S" else "out"].append(p.name)
        if o.kind == "tma_atom" and (shape := _tensor_text(o.details.get("tensor", ""))):
            tensors["out" if stage == "store" else "in"].append(shape)
    stages = {b.stage for b in out}
    mma = next((o for o in objects if o.kind == "tiled_mma" and isinstance(o.spec, MmaSpec)), None)
    if mma is not None and isinstance(mma.spec, MmaSpec):
        out.append(_accumulators(mma.spec, anchors.get(id(mma), "")))
    if stages:
        out.append(Box("global", "Inputs", _few(tensors["in"]) or ["tensors of the call"]))
        if "store" in stages or "epilogue" in stages or tensors["out"] or mma is not None:
            out.append(Box("result", "Output", _few(tensors["out"]) or ["written by the epilogue"]))
    return sorted(out, key=lambda b: STAGES.index(b.stage))


def _stored(objects: list[Recorded], partitions: list[Partition]) -> set[str]:
    """The shared-memory layouts that TMA stores from and nothing loads into."""
    found: dict[str, set[str]] = {"load": set(), "store": set()}
    for o in objects:
        if o.kind == "tma_atom" and isinstance(o.spec, LayoutSpec):
            found[stage_of(o, partitions)].add(o.spec.layout)
    return found["store"] - found["load"]


def _few(names: list[str]) -> list[str]:
    unique = list(dict.fromkeys(n for n in names if n))
    return [*unique[:4], *([f"and {len(unique) - 4} more"] if len(unique) > 4 else [])]


def _tensor_text(text: str) -> str:
    found = re.search(r'memref<(\w+),.*"(.*)">', text)
    return f"{found[1]} {found[2].split(':')[0]}" if found else ""


def _accumulators(spec: MmaSpec, anchor: str) -> Box:
    C = spec.C
    where = {"rmem": "registers", "tmem": "tensor memory"}.get(C.memory, C.memory)
    lines = [f"C {C.tile[0]}×{C.tile[1]} {C.dtype}".rstrip(), f"in {where}"]
    box = Box("accumulators", "Accumulators", lines, anchor)
    if C.memory == "rmem":
        lines.append(f"{C.values} a thread and tile")
        box.warp, mini = warp_text(C, "holds"), mini_of("C", C)
        box.mini = [mini] if mini else []
    return box


def facts(o: Recorded) -> list[str]:
    """What a box says of an object, in two or three short lines."""
    spec = o.spec
    if isinstance(spec, MmaSpec):
        return [spec.name, f"tile {'×'.join(map(str, spec.tile_mnk))}, {_count(spec)}"]
    if isinstance(spec, CopySpec):
        bits = "" if not spec.S.dtype else f" {spec.S.dtype}"
        return [spec.name, f"tile {spec.tile[0]}×{spec.tile[1]}{bits}, {spec.threads} threads"]
    if isinstance(spec, LayoutSpec):
        shape = f"{spec.offsets.shape[0]}×{spec.offsets.shape[1]}"
        width = f" of {o.details.get('dtype') or str(spec.bits) + ' bits'}" if spec.bits else ""
        swizzle = f", S<{','.join(map(str, spec.swizzle))}>" if spec.swizzle else ""
        first = o.details.get("op_name", "").removesuffix("Op") or f"{shape}{width}{swizzle}"
        return [first, *([f"{shape}{width}{swizzle}"] if o.details.get("op_name") else [])] + (
            [f"as {', '.join(o.tensors[:3])}"] if o.tensors else []
        )
    return [o.details.get("op_name", "") or o.kind.replace("_", " "), *([o.error[:60]] if o.error and not o.details.get("op_name") else [])]


def _count(spec: MmaSpec) -> str:
    """``128 threads``; of tcgen05, whose thread-value maps count CTAs, ``2 CTAs``."""
    word = "CTA" if spec.C.memory == "tmem" else "thread"
    return f"{spec.threads} {word}{'' if spec.threads == 1 else 's'}"


def follow(o: Recorded) -> tuple[str, list[Mini]]:
    """What the threads of warp 0 do with an object, as a sentence, and pictures of their parts."""
    spec = o.spec
    if o.kind == "tma_atom":
        return "One elected thread issues the whole box.", []
    if isinstance(spec, MmaSpec):
        minis = [m for x in "AB" if (m := mini_of(x, spec.operands()[x])) is not None]
        parts = [warp_text(spec.operands()[x], f"{x}:") for x in "AB"]
        return " ".join(p for p in parts if p), minis
    if isinstance(spec, CopySpec):
        source, target = mini_of("S", spec.S), mini_of("D", spec.D)
        same = np.array_equal(spec.S.tv, spec.D.tv)
        minis = [m for m in (source, None if same else target) if m is not None]
        text = warp_text(spec.S, "reads" if not same else "moves")
        return (text if same else f"{text} {warp_text(spec.D, 'gets')}").strip(), minis
    return "", []


def warp_text(operand: TVMap, verb: str) -> str:
    """``moves rows 0–3, columns 0–63; T0 has (0,0)–(0,7)``, from the table itself."""
    if operand.memory != "rmem":
        memory = "shared memory" if operand.memory == "smem" else "tensor memory"
        return f"{verb} read from {memory} by all." if verb.endswith(":") else f"{verb} {memory};"
    lanes = min(LANES, operand.threads)
    rows, columns = operand.coordinates()
    first = [(int(r), int(c)) for r, c in zip(rows[0], columns[0], strict=True)]
    ends = f"({first[0][0]},{first[0][1]})" + (f"…({first[-1][0]},{first[-1][1]})" if len(first) > 1 else "")
    return f"{verb} rows {_spans(rows[:lanes])}, columns {_spans(columns[:lanes])}; T0 has {len(first)}: {ends}."


def _spans(values: IntArray) -> str:
    """``0–7`` or ``0–3, 8–11`` of the distinct values; their count where there are many runs."""
    unique = np.unique(values).tolist()
    runs: list[list[int]] = []
    for v in unique:
        if runs and v == runs[-1][1] + 1:
            runs[-1][1] = v
        else:
            runs.append([v, v])
    texts = [f"{a}–{b}" if b > a else f"{a}" for a, b in runs]
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]}, {texts[1]}, … {texts[-1]}"


def mini_of(name: str, operand: TVMap) -> Mini | None:
    """The elements of warp 0 in a tile, coloured by lane; a large tile is thinned out."""
    if operand.memory != "rmem":
        return None
    rows, columns = operand.tile
    if rows * columns > 1 << 20:
        return None
    grid = np.full(rows * columns, -1, dtype=np.int64)
    lanes = min(LANES, operand.threads)
    for lane in range(lanes - 1, -1, -1):
        grid[operand.tv[lane]] = lane % 8
    table = grid.reshape(operand.tile, order="F")
    steps = max(1, -(-rows // MINI)), max(1, -(-columns // MINI))
    thin = table[:: steps[0], :: steps[1]]
    runs = [(r, c, h, w, k) for (r, c, h, w), k in rectangles(thin) if k >= 0]
    return Mini(name, thin.shape[0], thin.shape[1], runs)


def used_objects(launch: Launch, objects: list[Recorded]) -> list[Recorded]:
    """Those that a launch's kernel or its host function builds, in the order of the source."""
    own = [o for o in objects if o.launch is launch]
    return sorted(own, key=lambda o: (o.file, o.line, o.order))


def capacity(arch: str) -> int:
    """Bytes of shared memory that one block may take on an architecture; 0 where that is not known."""
    from texgen.trace.standins import SMEM_OPTIN

    found = re.search(r"\d+", arch)
    return SMEM_OPTIN.get(int(found[0]), 0) if found else 0


def budget(launch: Launch, allocations: list[Any], tensors: list[Any]) -> tuple[list[dict[str, Any]], int]:
    """(rows of name, bytes, what, where; the whole) of a kernel's shared memory."""
    rows: list[dict[str, Any]] = []
    total = 0
    for a in allocations:
        if a.launch is not launch:
            continue
        total += a.size
        if a.fields:
            rows += [
                {"name": f"{a.name}.{name}" if a.name else name, "bytes": size, "what": _held(name, launch, tensors), "line": a.line, "file": a.file}
                for name, size, _ in a.fields
            ]  # fmt: skip
            padding = a.size - sum(size for _, size, _ in a.fields)
            if padding > 0:
                rows.append({"name": "alignment", "bytes": padding, "what": "between the members", "line": a.line, "file": a.file})
        else:
            what = " ".join(filter(None, [a.dtype, a.layout]))
            rows.append({"name": a.name or "(unnamed)", "bytes": a.size, "what": what, "line": a.line, "file": a.file})
    return rows, total


def _held(field_name: str, launch: Launch, tensors: list[Any]) -> str:
    """The tensors that a struct's member is used as: element type and layout of each."""
    found = [t for t in tensors if t.launch is launch and f".{field_name}.get_tensor" in t.code]
    return "; ".join(dict.fromkeys(f"{t.name}: {t.dtype} {t.layout}" for t in found))
