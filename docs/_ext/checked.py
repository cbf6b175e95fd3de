"""Against what each atom of the catalogue is held: run here over the tables of ``tests/oracle``, so that a page says it only
where it holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import tv_table
from texgen.pages import Page
from texgen.sources import catalog
from texgen.sources.atoms_tl import library_atoms
from texgen.sources.catalog import Entry

ORACLE = Path(__file__).parents[2] / "tests" / "oracle"
CPP, PTX, LIVE, LIBRARY = "CuTe C++", "PTX ISA", "live DSL", "tensor-layouts"
KINDS = (CPP, PTX, LIVE, LIBRARY)
ABOUT = {
    CPP: "a table that CuTe C++ itself printed",
    PTX: "the closed form of a fragment in the PTX ISA, written down as a formula",
    LIVE: "the installed DSL, built again and compared by the tests",
    LIBRARY: "the table of tensor-layouts for the same instruction",
}
DRIVEN = re.compile(r"(ld|st)matrix\.m8n8\.x(\d)")


def checks(page: Page) -> dict[str, tuple[str, ...]]:
    """Kind of check → the names of the page's atoms that have passed it. Raises TexgenError where one fails."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for entry in page.entries:
        for kind in checks_of(entry):
            found[kind].append(entry.name)
    return {kind: tuple(names) for kind, names in found.items() if names}


@cache
def checks_of(entry: Entry) -> tuple[str, ...]:
    """The kinds of check that an atom has passed."""
    tests = {CPP: entry.name in cpp_names(), PTX: _ptx(entry), LIVE: is_live(entry), LIBRARY: entry.name in library_names()}
    return tuple(kind for kind, passed in tests.items() if passed)


@cache
def cpp_names() -> frozenset[str]:
    """Atoms of which there is a table from C++, alone or tiled; the tests compare each."""
    cases = [json.loads(line) for line in (ORACLE / "cute_cpp.jsonl").read_text(encoding="utf-8").splitlines()]
    names = set()
    for case in cases:
        inner = re.search(r"<(\w+)", case["name"])
        names.add(case["name"] if case["kind"] == "mma" else inner[1] if inner else "")
    return frozenset(n.replace("UniversalCopy", "UniversalCopy<uint128_t>") for n in names)


def is_live(entry: Entry) -> bool:
    """True for the atoms that the tests build again with the installed DSL: all of warps, warpgroups and copies, and of
    tcgen05 the smallest and largest N of the families that ``sampled`` picks."""
    op = str((entry.line.get("build") or {}).get("op", ""))
    if not op.startswith("tcgen05"):
        return bool(op)
    ns = catalog.ns(entry.line)
    return sampled(entry) and entry.n in (ns[0], ns[-1])


def sampled(entry: Entry) -> bool:
    """One in twelve of the tcgen05 families, and all with 16-bit operands: by the name of the family's first atom."""
    first = str(entry.line["name"]).replace("{N}", str(catalog.ns(entry.line)[0]))
    return "F16F16" in first or sum(map(ord, first)) % 12 == 0


@cache
def library_names() -> frozenset[str]:
    """Atoms of the DSL that ``tensor-layouts`` has too, compared here. Raises TexgenError for one that differs."""
    names = set()
    for line in library_atoms():
        if line["kind"] != "mma":
            continue
        try:
            entry = catalog.find(str(line["name"]))
        except TexgenError:
            continue
        if entry.build is None:
            continue
        n = int(line["mnk"][1]) if "n" in entry.line else 0
        theirs, ours = Entry(entry.name, n, line).atom(), entry.atom()
        for operand in "ABC":
            if not np.array_equal(tv_table(getattr(theirs, operand)), tv_table(getattr(ours, operand))):
                raise TexgenError(f"{entry.name}: {operand} differs from tensor-layouts.")
        names.add(entry.name)
    return frozenset(names)


@dataclass(frozen=True)
class Form:
    """A closed form of the PTX ISA and the instruction that it is of; ``n`` is None where it holds for every N."""

    text: dict[str, Any]
    matrix: str
    m: int = 0
    n: int | None = None
    k: int = 0
    types: tuple[str, ...] = ()
    warpgroup: bool = False

    def speaks_of(self, entry: Entry) -> bool:
        line = entry.line
        if self.matrix:
            ptx, instruction = str(line.get("ptx", "")), str(self.text["instr"])
            return ptx.startswith(self.matrix) and ("address" in instruction or (".trans" in instruction) == (".trans" in ptx))
        if entry.kind != "mma" or self.warpgroup != (entry.arch == "sm_90a") or "SPARSE" in entry.name:
            return False
        m, n, k = (entry.n if x == "N" else x for x in line["mnk"])
        if (m, k) != (self.m, self.k) or line["types"][0] not in self.types:
            return False
        return entry.name.endswith("_RS") if self.n is None else n == self.n


@cache
def _forms() -> tuple[Form, ...]:
    return tuple(map(_form, json.loads((ORACLE / "ptx_isa.json").read_text(encoding="utf-8"))["forms"]))


def _form(text: dict[str, Any]) -> Form:
    if matrix := DRIVEN.match(text["instr"]):
        return Form(text, f"{matrix[1]}matrix.sync.aligned.m8n8.x{matrix[2]}")
    shape = re.match(r"(w?g?mma)\.m(\d+)n(\d+|N)k(\d+) (\S+)", text["instr"])
    assert shape, text["instr"]
    n = None if shape[3] == "N" else int(shape[3])
    return Form(text, "", int(shape[2]), n, int(shape[4]), tuple(shape[5].split("/")), shape[1] == "wgmma")


def _ptx(entry: Entry) -> bool:
    """True if closed forms of the PTX ISA speak of this atom; all of them are compared."""
    if not entry.arch.startswith("sm_") or entry.arch.startswith(("sm_10", "sm_12")):
        return False
    forms = [form.text for form in _forms() if form.speaks_of(entry)]
    for form in forms:
        _hold(entry, form)
    return bool(forms)


def _hold(entry: Entry, form: dict[str, Any]) -> None:
    """Compare one operand with a closed form, element by element. Raises TexgenError where they differ."""
    operand = form["operand"].split()[0]
    i, lane = np.meshgrid(np.arange(form["values"]), np.arange(form["lanes"]))
    row, column = (np.broadcast_to(eval(form[x], {}, {"l": lane, "i": i}), lane.shape) for x in ("row", "col"))
    if entry.kind == "copy":
        ours = list(catalog.read(entry.name).operands()[{"src": "S", "dst": "D"}[operand]].coordinates())
    else:
        table = tv_table(getattr(entry.atom(), {"D": "C"}.get(operand, operand)))
        rows = form["tile"][1 if operand == "B" else 0]
        ours = [table % rows, table // rows]
    if operand == "B":
        ours.reverse()
    if not all(np.array_equal(a[: form["lanes"]], b) for a, b in zip(ours, (row, column), strict=True)):
        raise TexgenError(f"{entry.name}: {operand} differs from the PTX ISA's closed form {form['id']}.")
