"""Atoms by their CuTe C++ name, from a data file in the package: no DSL at run time.

``atoms.json`` holds one family of atoms a line, most of one atom; where the instructions of a family differ in N alone
(wgmma, tcgen05) the line lists the Ns, and an entry of its layouts may be ``"N"``, ``"N/8"`` or ``"N*64"``. Names are
CuTe C++'s where it has them (``SM80_16x8x16_F32F16F16F32_TN``, ``SM90_64x128x16_F32F16F16_SS``). The tcgen05 atoms,
whose C++ types are templates, are named in the same manner:

    SM100[_2SM]_MxNxK_<C><A><B>[_<scale type>_VS<vector>]_SS|TS[_SPARSE]

``2SM`` for a pair of CTAs, ``TS`` for A in tensor memory, ``SM103`` and ``SM107`` where an op needs these. Major modes
change no layout and are in no name.

A line is a record with these keys. ``name``; ``kind`` (mma or copy); ``arch``, empty for any; ``origin``, the name of a source
(``texgen.sources.atoms_save.SOURCES``) and its version; ``thr``, the layout of thread ids; ``ptx``, the instruction. A layout is
``[shape, stride]`` in nested lists. Of an MMA: ``mnk``; ``A``, ``B``, ``C``, from (thread, value) to ``m + M*k``, ``n + N*k``,
``m + M*n``; ``types`` of A, B and C, each may be empty. Of a copy: ``S`` and ``D``, from (thread, value) to an element, both over
the same elements; ``bits`` of an element. Where it applies: ``mem``, the memories of A, B and C (rmem, smem, tmem); ``n`` and
``also_n``, the Ns of a family (``ns``); ``row`` and ``ref`` of matrix copies, elements in a row and the side in registers (src,
dst); ``aka``, further names; ``notes``; ``corrected``; ``build``, how the DSL makes it.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from texgen.copy_tiling import CopyAtom, copy_atom, copy_from_thr_val
from texgen.errors import TexgenError
from texgen.layouts import Layout
from texgen.specs import CopySpec, MmaSpec
from texgen.tiling import MmaAtom, Permutation, tile_mma, val_layout_tile

DATA = "atoms.json"
NEAREST = 3
FAMILY = re.compile(r"([A-Za-z]\w*?_\d+x)(\d+)(x.*)$", re.IGNORECASE)
"""A name whose N may be any of a family's."""
ARCH = re.compile(r"(?:SM|GFX)\d+_", re.IGNORECASE)
"""What a name begins with."""

WIDTHS = {
    "char": 8, "int8_t": 8, "uint8_t": 8, "half_t": 16, "bfloat16_t": 16, "int16_t": 16, "uint16_t": 16, "float": 32,
    "tfloat32_t": 32, "int": 32, "int32_t": 32, "uint32_t": 32, "double": 64, "int64_t": 64, "uint64_t": 64,
    "uint128_t": 128, "uint256_t": 256, "float4": 128, "float2": 64, "uint4": 128,
}  # fmt: skip
"""Bits of the C++ types that copies are written with."""


@dataclass(frozen=True)
class Entry:
    """One name of the catalogue. ``n`` picks the atom of a family; ``line`` is the family's record in the data file."""

    name: str
    n: int
    line: dict[str, Any] = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        return str(self.line["kind"])

    @property
    def arch(self) -> str:
        return str(self.line.get("arch", ""))

    @property
    def origin(self) -> str:
        """The package and version that the layouts come from."""
        return str(self.line["origin"])

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.line.get("notes", ()))

    @property
    def corrected(self) -> str:
        """Why this entry differs from its origin, with the source; empty where it does not."""
        return str(self.line.get("corrected", ""))

    @property
    def family(self) -> str:
        """The family's name, ``SM90_64xNx16_F32F16F16_SS``; the name itself where it has one member."""
        return str(self.line["name"]).replace("{N}", "N")

    @property
    def build(self) -> dict[str, Any] | None:
        """How the DSL builds this atom (``texgen.sources.atoms_dsl.build_live``), or None where it has no such op."""
        build = self.line.get("build")
        return None if build is None else _fill(build, self.n)

    def atom(self) -> MmaAtom | CopyAtom:
        """The atom with its layouts."""
        line, n = self.line, self.n
        notes = self.notes + ((f"corrected: {self.corrected}",) if self.corrected else ())
        common: dict[str, Any] = {
            "name": self.name,
            "thr_id": _layout(line["thr"], n),
            "arch": self.arch,
            "origin": self.origin,
            "instruction": str(line.get("ptx", "")).replace("{N}", str(n)),
            "notes": notes,
        }
        if self.kind == "copy":
            return CopyAtom(
                src=_layout(line["S"], n), dst=_layout(line["D"], n), bits=line["bits"], row=line.get("row", 0),
                ref=line.get("ref", "src"), **common,
            )  # fmt: skip
        return MmaAtom(
            shape_mnk=tuple(_fill(line["mnk"], n)),
            A=_layout(line["A"], n), B=_layout(line["B"], n), C=_layout(line["C"], n),
            dtypes=tuple(line["types"]), memories=tuple(line.get("mem", ("rmem",) * 3)), **common,
        )  # fmt: skip


def find(name: str) -> Entry:
    """The catalogue's entry of a name in any of the usual spellings (``entry.atom()`` has the layouts).

    ``cute::``, ``SM90::GMMA::MMA_…``, template arguments, ``{}`` and an ``_TN`` after ``_SS`` may be there or not.
    Raises TexgenError, with the nearest names, where there is none.
    """
    spellings = _spellings(name)
    for spelling in spellings:
        if (entry := _lookup(spelling)) is not None:
            return entry
    near = _nearest(spellings[-1])
    close = f" The nearest are {', '.join(near)}." if near else ""
    arch = m[0].upper() if (m := ARCH.match(spellings[-1])) and any(k.startswith(m[0].lower()) for k in _index()) else ""
    raise TexgenError(
        f"There is no atom named {name.strip()!r} in the catalogue.{close} "
        f"List what there is with: texgen atoms {arch or 'PATTERN'}"
    )


def _lookup(name: str) -> Entry | None:
    index = _index()
    if (text := index.get(name.lower())) is not None and "{n}" not in name.lower():
        line = _parsed(text)
        return Entry(str(line["name"]), 0, line)
    if (m := FAMILY.match(name)) and (text := index.get(f"{m[1]}{{N}}{m[3]}".lower())) is not None:
        line, n = _parsed(text), int(m[2])
        if n in ns(line):
            return Entry(str(line["name"]).replace("{N}", str(n)), n, line)
    return None


def _nearest(name: str) -> list[str]:
    """Up to three names that could have been meant; of a family the N nearest to the one given."""
    m = FAMILY.match(name)
    names: dict[str, str] = {}
    for line in _lines():
        own = str(line["name"])
        if "n" in line:
            n = min(ns(line), key=lambda k: abs(k - int(m[2]))) if m else ns(line)[-1]
            own = own.replace("{N}", str(n))
        names[own] = own
    upper = {own.upper(): own for own in names}
    arch = ARCH.match(name)
    same = [k for k in upper if arch and k.startswith(arch[0].upper())]  # an atom of another architecture is seldom meant
    anywhere = difflib.get_close_matches(name.upper(), upper, n=NEAREST, cutoff=0.4)
    near = difflib.get_close_matches(name.upper(), anywhere, n=NEAREST, cutoff=0.9)  # a slip in the architecture itself
    near += difflib.get_close_matches(name.upper(), same, n=NEAREST, cutoff=0.3) or anywhere
    return [upper[k] for k in dict.fromkeys(near)][:NEAREST]


def search(pattern: str = "") -> list[Entry]:
    """The entries whose name or PTX instruction holds ``pattern``, or matches it as a glob (``SM80_*_F64*``), in the file's order."""
    wanted = pattern.strip().lower()
    if any(c in wanted for c in "*?["):
        return [e for k, e in _names().items() if fnmatch.fnmatchcase(k.lower(), wanted)]
    return [e for k, e in _names().items() if wanted in k.lower() or wanted in str(e.line.get("ptx", "")).lower()]


def families(pattern: str = "") -> list[tuple[str, list[Entry]]]:
    """As ``search``, grouped: (family name, its entries), so that the 32 Ns of a wgmma take one line."""
    groups: dict[int, list[Entry]] = {}
    for entry in search(pattern):
        groups.setdefault(id(entry.line), []).append(entry)
    return [(entries[0].family, entries) for entries in groups.values()]


def read(
    name: str,
    atom_layout: Layout | None = None,
    tile: Sequence[Permutation] | None = None,
    val_layout: Layout | None = None,
) -> MmaSpec | CopySpec:
    """The spec of a named atom: alone, or tiled.

    For an MMA ``atom_layout`` counts atoms in M, N, K and ``tile`` is the permutation; ``val_layout`` is what CUTLASS
    before 3.4 called ValLayoutMNK, in place of ``tile``. For a copy the two layouts are those of threads and values.
    """
    atom = find(name).atom()
    if isinstance(atom, CopyAtom):
        if tile is not None:
            raise TexgenError(f"{name} is a copy: give a thread layout and a value layout instead of a tile.")
        if atom_layout is None and val_layout is None:
            return copy_atom(atom)
        if atom_layout is None or val_layout is None:
            raise TexgenError(f"{name} is a copy: a tiled one needs both a thread layout and a value layout.")
        return copy_from_thr_val(atom, atom_layout, val_layout)
    if val_layout is None:
        return tile_mma(atom, atom_layout, tile)
    if tile is not None:
        raise TexgenError("Give a tile or a value layout, not both: a value layout stands for the tile it gives.")
    return tile_mma(atom, atom_layout, val_layout_tile(atom, atom_layout, val_layout))


@cache
def _text() -> list[str]:
    """The data file's lines, one family each, unparsed: parsing all of them takes longer than drawing one."""
    try:
        lines = Path(__file__).with_name(DATA).read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise TexgenError(
            f"The catalogue of atoms ({DATA}) is missing: reinstall texgen, or make it with texgen atoms --save."
        ) from e
    return [line.rstrip(",") for line in lines if line.startswith('{"name":')]


@cache
def _index() -> dict[str, str]:
    """Unparsed lines by their lower-case names, ``{n}`` in place of N."""
    out: dict[str, str] = {}
    for line in _text():
        names = [line[9 : line.index('"', 9)]]
        if '"aka":[' in line:
            names += json.loads(line)["aka"]
        for name in names:
            out.setdefault(name.lower(), line)
    return out


@cache
def _parsed(line: str) -> dict[str, Any]:
    return dict(json.loads(line))


@cache
def _lines() -> list[dict[str, Any]]:
    return [_parsed(line) for line in _text()]


@cache
def _names() -> dict[str, Entry]:
    """Every name there is, families written out."""
    out: dict[str, Entry] = {}
    for line in _lines():
        for n in ns(line):
            full = str(line["name"]).replace("{N}", str(n)) if n else str(line["name"])
            out.setdefault(full, Entry(full, n, line))
    return out


def ns(line: dict[str, Any]) -> Sequence[int]:
    """The Ns of a family: ``"n": [first, last, step]`` and further ones in ``"also_n"``; (0,) for a single atom."""
    if "n" not in line:
        return (0,)
    first, last, step = line["n"]
    return sorted({*range(first, last + 1, step), *line.get("also_n", ())})


def _spellings(name: str) -> list[str]:
    """The name as the catalogue may have it, most faithful first."""
    base = re.sub(r"\s+", "", name)
    base = re.sub(r"(\{\}|\(\))$", "", base)
    base = re.sub(r"^(typename)?(::)?(cutlass::)?(cute::)?", "", base)
    out = [base]
    cut = re.sub(r"<.*$", "", base)
    if (m := re.match(r"[^<]*<(?:\w+::)*(\w+)", base)) and m[1] in WIDTHS:
        out.append(f"{cut}<uint{WIDTHS[m[1]]}_t>")
    out.append(cut)
    m = re.match(r"SM(\d+)::(?:\w+::)*(?:(?:MMA|GMMA)_(.*)|(SM\d+_.*))$", cut)
    if m:
        cut = m[3] or f"SM{m[1]}_{m[2]}"
        if "::SPARSE::" in name and not cut.endswith("_SPARSE"):
            cut = f"{cut}_SPARSE"
        out.append(cut)
    out.append(re.sub(r"_(SS|RS)_TN(_SATURATE)?(?=$|_SPARSE$)", r"_\1", cut))
    return list(dict.fromkeys(out))


def _layout(data: Any, n: int) -> Layout:
    shape, stride = data
    return Layout(_tuples(_fill(shape, n)), _tuples(_fill(stride, n)))


def _tuples(x: Any) -> Any:
    return tuple(_tuples(i) for i in x) if isinstance(x, list) else x


def _fill(x: Any, n: int) -> Any:
    """The data with N in place of ``"N"``, ``"N/8"`` and ``"N*64"``."""
    if isinstance(x, list):
        return [_fill(i, n) for i in x]
    if isinstance(x, dict):
        return {k: _fill(v, n) for k, v in x.items()}
    if isinstance(x, str) and (m := re.fullmatch(r"N(?:([*/])(\d+))?", x)):
        by = int(m[2] or 1)
        return n // by if m[1] == "/" else n * by
    return x
