"""The catalogue as pages: which atoms stand together, which of them is drawn, what a page says of them.

A page is an instruction with its types on one architecture; its families differ in shape, in where A comes from, or in
how a sum saturates. Nothing here knows of Sphinx or of the templates that write the pages down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from texgen.copy_tiling import CopyAtom
from texgen.layouts import Layout
from texgen.sources import catalog
from texgen.sources.catalog import Entry
from texgen.specs import CopySpec, MmaSpec

CELLS = 900
"""A page draws its largest atom of at most so many cells."""
DRAWN_N = 16
PAIR, PAIR_N = "_2SM_256x", 32
"""A page of tcgen05 draws a pair of CTAs, whose parts tell more than the one part of a single CTA."""


@dataclass(frozen=True)
class Section:
    """A group of pages. ``folder`` is its place under the catalogue."""

    folder: str
    title: str
    about: str


SECTIONS = (
    Section("warp", "Warp MMA", "Instructions that one warp executes, and Volta's quad pairs: every operand in registers."),
    Section("warpgroup", "Warpgroup MMA", "wgmma of Hopper: B comes from shared memory, A from there or from registers."),
    Section("tcgen05", "Tensor-memory MMA", "tcgen05 of Blackwell: one thread issues it for a CTA or a pair of CTAs; "
            "the accumulator lies in tensor memory, so that no thread holds a part of it."),
    Section("copy", "Copies", "ldmatrix, stmatrix, cp.async, shuffles and plain loads and stores."),
    Section("universal", "Scalar MMA", "Instructions of one thread."),
    Section("amd", "AMD", "MFMA and WMMA, from tensor-layouts."),
    Section("intel", "Intel", "DPAS and AMX, from tensor-layouts."),
)  # fmt: skip

NAMES = {"s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "binary", "s16": "int16"}
"""Integers of one width share a page."""
COPIES = {
    "warp.LdMatrix8x8x16bOp": "ldmatrix 8x8, 16-bit",
    "warp.StMatrix8x8x16bOp": "stmatrix 8x8, 16-bit",
    "warp.LdMatrix16x16x8bOp": "ldmatrix 16x16, 8-bit, transposed",
    "warp.LdMatrix8x16x8bOp": "ldmatrix 8x16, 4-bit and 6-bit",
    "warp.LdMatrix16x8x8bOp": "ldmatrix 16x8, 8-bit",
    "warp.StMatrix16x8x8bOp": "stmatrix 16x8, 8-bit",
    "cpasync.CopyG2SOp": "cp.async",
    "nvgpu.CopyUniversalOp": "Universal copy",
}


@dataclass(frozen=True)
class Family:
    """Atoms of one line of the catalogue: they differ in N alone."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def line(self) -> dict[str, Any]:
        return self.entries[0].line

    @property
    def ns(self) -> tuple[int, ...]:
        """The Ns, empty for a single atom."""
        return tuple(e.n for e in self.entries) if self.entries[0].n else ()

    @property
    def example(self) -> Entry:
        """The atom whose rule is put into words: a small N, but one that shows how N goes on."""
        return self.entries[min(1, len(self.entries) - 1)]

    @property
    def shape(self) -> str:
        """``64×N×16``."""
        return "×".join(map(str, self.line.get("mnk", ())))

    @property
    def spread(self) -> str:
        """``8 to 256 by 8``, and Ns out of step before it; empty for a single atom."""
        return spread(self.ns)

    @property
    def layouts(self) -> tuple[tuple[str, str], ...]:
        """(operand, its layout with N as a letter), for A, B, C or S, D."""
        return tuple((x, layout_text(self.line[x])) for x in ("A", "B", "C", "S", "D") if x in self.line)

    @property
    def ptx(self) -> str:
        return str(self.line.get("ptx", "")).replace("{N}", "N")

    @property
    def dsl(self) -> str:
        """The DSL's op with its arguments, empty where it has none."""
        build = self.line.get("build")
        if not build:
            return ""
        given = ", ".join(f"{k}={_plain(v)}" for k, v in build["args"].items())
        return f"{build['op']}({given})"


@dataclass(frozen=True)
class Page:
    """One page. ``folder/slug`` is its place under the catalogue."""

    section: Section
    slug: str
    title: str
    families: tuple[Family, ...]

    @property
    def docname(self) -> str:
        return f"{self.section.folder}/{self.slug}"

    @property
    def kind(self) -> str:
        return self.families[0].entries[0].kind

    @property
    def archs(self) -> tuple[str, ...]:
        return _unique(f.entries[0].arch or "any" for f in self.families)

    @property
    def origins(self) -> tuple[str, ...]:
        return _unique(f.entries[0].origin for f in self.families)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(e for f in self.families for e in f.entries)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of A and B and of the accumulator, once each."""
        return _unique(t for f in self.families for t in f.line.get("types", ()) if t)

    @property
    def type_triples(self) -> tuple[tuple[str, ...], ...]:
        return _unique(tuple(f.line["types"]) for f in self.families if any(f.line.get("types", ())))

    @property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """(``64×N×16``, its Ns), once each."""
        found: dict[str, set[int]] = {}
        for f in self.families:
            if f.shape:
                found.setdefault(f.shape, set()).update(f.ns)
        return tuple((shape, tuple(sorted(ns))) for shape, ns in found.items())

    @cached_property
    def drawn(self) -> Entry:
        """The atom of the picture: the largest that is no more than ``CELLS`` cells, A in registers where it can be."""
        best: list[tuple[tuple[Any, ...], Entry]] = []
        for i, f in enumerate(self.families):
            pair = PAIR in f.name
            entry = min(f.entries, key=lambda e: abs(e.n - (PAIR_N if PAIR in e.name else DRAWN_N))) if f.ns else f.entries[0]
            cells = _cells(entry)
            small = cells <= CELLS
            in_registers = f.line.get("mem", ["rmem"])[0] == "rmem"
            last = i if self.kind == "copy" else -i
            best.append(((pair, small, in_registers, "SPARSE" not in f.name, cells if small else -cells, last), entry))
        return max(best, key=lambda b: b[0])[1]

    @property
    def is_in_memory(self) -> bool:
        """True if no thread holds a part of any operand (tcgen05)."""
        return "rmem" not in self.drawn.line.get("mem", ["rmem"])

    @property
    def rows(self) -> str:
        """Which rows of A and C are drawn, empty for all: of operands in memory a few of each CTA."""
        if not self.is_in_memory:
            return ""
        return "0:8,128:136" if PAIR in self.drawn.name else "0:16"

    @cached_property
    def spec(self) -> MmaSpec | CopySpec:
        return catalog.read(self.drawn.name)


def pages() -> list[Page]:
    """All of them, every atom of the catalogue in one."""
    groups: dict[tuple[str, str], tuple[Section, str, list[Family]]] = {}
    by_folder = {s.folder: s for s in SECTIONS}
    for name, entries in catalog.families():
        family = Family(name, tuple(entries))
        folder, title = _place(family)
        groups.setdefault((folder, title), (by_folder[folder], title, []))[2].append(family)
    order = {s.folder: i for i, s in enumerate(SECTIONS)}
    made = [Page(section, _slug(title), title, tuple(families)) for section, title, families in groups.values()]
    return sorted(made, key=lambda p: (order[p.section.folder], _natural(p.slug)))


def _place(family: Family) -> tuple[str, str]:
    """(folder, title of the page) of a family."""
    line, name = family.line, family.name
    arch, op = str(line.get("arch", "")), str((line.get("build") or {}).get("op", ""))
    if line["kind"] == "copy":
        kind = COPIES.get(op) or ("Shuffle" if "Shuffle" in name else "Other copies")
        return "copy", kind + (f", {arch}" if arch else "")
    types = list(line["types"])
    a, _, c = types if all(types) else ("f8f6f4", "", "f32")
    a = NAMES.get(a, a)
    if arch.startswith("gfx"):
        return "amd", f"{'MFMA' if 'MFMA' in name else 'WMMA'} {arch}, {a}"
    if arch.startswith(("Xe", "AMX")):
        return "intel", f"{'AMX' if arch == 'AMX' else f'DPAS {arch}'}, {a}"
    if not arch or arch == "sm_61":
        return "universal", "Universal FMA" if not arch else "Dot products, sm_61"
    sparse = ", sparse" if "SPARSE" in name else ""
    to = "" if a in NAMES.values() else f" into {c}"
    if op.startswith("tcgen05") or arch.startswith("sm_10"):
        return "tcgen05", f"tcgen05 {arch}, {_tcgen05(op)}{a}{to}{sparse}"
    if arch == "sm_90a":
        return "warpgroup", f"wgmma {arch}, {a}{to}{sparse}"
    scaled = ", block scaled" if "_VS" in name else ""
    return "warp", f"mma {arch}, {a}{to}{scaled}{sparse}"


def _tcgen05(op: str) -> str:
    """The kind of a tcgen05 op where its types do not say it."""
    kind = op.removeprefix("tcgen05.").removeprefix("SM103").removeprefix("SM107").removeprefix("BlockScaled")
    kind = kind.removeprefix("Mma").removesuffix("Op").removesuffix("Sparse")
    return f"{kind} " if kind.startswith("MX") else ""


def _cells(entry: Entry) -> int:
    atom = entry.atom()
    if isinstance(atom, CopyAtom):
        return int(atom.src.size)
    m, n, k = atom.shape_mnk
    return int(m * k + n * k + m * n)


def layout_text(data: Any) -> str:
    """``((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512))`` from a line of the catalogue; ``N*64`` is written ``64N``."""
    shape, stride = data
    return f"{_text(shape)}:{_text(stride)}"


def _text(x: Any) -> str:
    if isinstance(x, list):
        return f"({','.join(map(_text, x))})"
    text = str(x)
    return re.sub(r"^N\*(\d+)$", r"\1N", text)


def layout_at(data: Any, n: int) -> Layout:
    """The layout of a line at an N."""
    return catalog._layout(data, n)


def spread(ns: Sequence[int]) -> str:
    """``8, 16, 24 and 32 to 256 by 16``."""
    if len(ns) < 2:
        return "".join(map(str, ns))
    step = ns[-1] - ns[-2]
    first = len(ns) - 1
    while first and ns[first] - ns[first - 1] == step:
        first -= 1
    run = f"{ns[first]} to {ns[-1]} by {step}" if len(ns) - first > 2 else f"{ns[first]} and {ns[-1]}"
    return f"{', '.join(map(str, ns[:first]))} and {run}" if first else run


def _plain(value: Any) -> str:
    return f"({', '.join(map(_plain, value))})" if isinstance(value, list) else str(value)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _natural(text: str) -> list[Any]:
    return [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", text)]


def _unique(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))
