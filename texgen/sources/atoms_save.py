"""Makes the catalogue's data file from the installed DSL and ``tensor-layouts`` (``texgen atoms --save FILE``).

Every atom goes through ``texgen.checks`` and is saved only if it covers its tile evenly. Where a library is known to be
wrong the right layout is saved with ``corrected``, a sentence that names the reason and the source.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from texgen.checks import check_cover
from texgen.copy_tiling import CopyAtom, copy_atom
from texgen.errors import TexgenError, UsageError
from texgen.render.files import write
from texgen.sources.atoms_dsl import GROUPS, KINDS, TYPES, op_arch
from texgen.sources.atoms_tl import library_atoms
from texgen.sources.catalog import FAMILY, Entry, ns
from texgen.tiling import tile_mma

SCHEMA = 1
TIMEOUT = 1800
KEYS = {
    "mma": ("name", "arch", "origin", "thr", "mnk", "A", "B", "C", "types", "ptx"),
    "copy": ("name", "arch", "origin", "thr", "S", "D", "bits", "ptx"),
}
"""What no record may lack, by its kind."""
HEAD, TAIL = f'{{"schema":{SCHEMA},"atoms":[\n', "\n]}\n"
Line: TypeAlias = dict[str, Any]

AKA = {
    "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>": ["SM80_CP_ASYNC_CACHEALWAYS", "SM80_CP_ASYNC_CACHEALWAYS_16B"],
    "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>": ["SM80_CP_ASYNC_CACHEGLOBAL", "SM80_CP_ASYNC_CACHEGLOBAL_16B"],
    "UniversalCopy<uint16_t>": ["UniversalCopy", "DefaultCopy"],
    "UniversalFMA_F16": ["UniversalFMA<half_t>", "UniversalFMA<uint16_t>"],
    "UniversalFMA_F32": ["UniversalFMA", "UniversalFMA<float>", "UniversalFMA<uint32_t>"],
    "UniversalFMA_F64": ["UniversalFMA<double>", "UniversalFMA<uint64_t>"],
}
"""Further names that CuTe C++ and ``tensor-layouts`` have for the same atom."""


def dsl_atoms() -> Iterator[Line]:
    """The families of the installed DSL, a few minutes. Raises TexgenError where it is missing or ends the process."""
    for group in GROUPS:
        yield from dsl_lines(group)


SOURCES: dict[str, Callable[[], Iterable[Line]]] = {
    "nvidia-cutlass-dsl": dsl_atoms,
    "tensor-layouts": library_atoms,
}
"""Where atoms come from, by the first word of their ``origin``; of two with one name the first one's is taken."""


def save(path: str | Path, sources: Sequence[str] = ()) -> int:
    """Write the catalogue to ``path`` and return how many families it has.

    With ``sources`` only theirs are made anew, and the file's other atoms stay as they are. Raises UsageError for a source
    that there is not, TexgenError where a package is missing, two sources differ, or an atom does not cover its tile.
    """
    if unknown := [s for s in sources if s not in SOURCES]:
        raise UsageError(f"There is no source of atoms {unknown[0]!r}: there are {', '.join(SOURCES)}.")
    kept = [json.loads(line) for line in _text(Path(path))] if sources else []
    found: list[Line] = []
    for name, make in SOURCES.items():
        if sources and name not in sources:
            found += [line for line in kept if line["origin"].split()[0] == name]
            continue
        for line in make():
            verify(line)
            if line["origin"].split()[0] != name:
                raise TexgenError(f"{line['name']} has the origin {line['origin']!r}, which must begin with its source's name, {name}.")
            found.append(line)
    lines = _merge(found + [line for line in kept if line["origin"].split()[0] not in SOURCES])
    write(Path(path), HEAD + ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + TAIL)
    return len(lines)


def _text(path: Path) -> list[str]:
    """The lines of a catalogue's file. Raises TexgenError where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text.startswith(HEAD) or not text.endswith(TAIL):
        raise TexgenError(f"{path} is no catalogue of atoms: --source needs the file whose other atoms are to stay.")
    return text.removeprefix(HEAD).removesuffix(TAIL).split(",\n")


def verify(line: dict[str, Any]) -> None:
    """Raise TexgenError unless the record is whole and every atom of the family (three of its Ns) covers its tile."""
    if lacking := [key for key in KEYS.get(line.get("kind", ""), ("a kind, mma or copy",)) if key not in line]:
        raise TexgenError(f"The record of {line.get('name', 'an atom')} lacks {lacking[0]!r}: texgen.sources.catalog says what it is.")
    every = list(ns(line))
    for n in {every[0], every[len(every) // 2], every[-1]}:
        entry = Entry(str(line["name"]).replace("{N}", str(n)), n, line)
        atom = entry.atom()
        spec = copy_atom(atom) if isinstance(atom, CopyAtom) else tile_mma(atom)
        for operand, table in spec.operands().items():
            check_cover(f"{entry.name}, {operand}", table)


def dsl_lines(group: str) -> list[dict[str, Any]]:
    """The families of one group of the installed DSL, read in a child process."""
    command = [sys.executable, "-m", "texgen.sources.atoms_dsl", group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise TexgenError(
            f"The DSL ended while its {group} atoms were read (exit {done.returncode}).", done.stderr.strip()[-2000:]
        )
    records = [json.loads(x) for x in done.stdout.splitlines()]
    origin = f"nvidia-cutlass-dsl {version('nvidia-cutlass-dsl')}"
    return [_copy_line(r, origin) if group == "copy" else _mma_line(r, origin) for r in records]


def _mma_line(record: dict[str, Any], origin: str) -> dict[str, Any]:
    build, by_n = record["build"], {int(n): d for n, d in record["by_n"].items()}
    sizes = sorted(by_n)
    first = by_n[sizes[0]]
    name, ptx = _names(build, first)
    line: dict[str, Any] = {"name": name, "kind": "mma", "arch": op_arch(build["op"]), "origin": origin}
    if build["op"].startswith("nvgpu"):
        line["arch"] = ""
    if name in AKA:
        line["aka"] = AKA[name]
    if len(sizes) > 1:
        line |= _sizes(sizes)
    line["mnk"] = _template({n: d["mnk"] for n, d in by_n.items()}, "mnk")
    for key in ("thr", "A", "B", "C"):
        model = _unit_strides(by_n[sizes[-1]][key])
        line[key] = _template({n: _aligned(_unit_strides(d[key]), model) for n, d in by_n.items()}, f"{name}, {key}")
    line["types"] = first["types"]
    memory = _memories(build)
    if memory != ["rmem"] * 3:
        line["mem"] = memory
    line["ptx"] = ptx
    if build["op"].startswith("tcgen05"):
        line["notes"] = ["threads are CTAs: the instruction is issued for the whole CTA"]
        if "Sparse" in build["op"]:
            line["notes"].append("A counts logical k; half of it is stored")
    line["build"] = build
    if record.get("majors"):
        line["majors"] = ["/".join(pair) for pair in record["majors"]]
    return line


def _sizes(sizes: list[int]) -> dict[str, Any]:
    """The Ns as a range and the ones outside it."""
    step = max({b - a for a, b in itertools.pairwise(sizes)}, key=lambda s: (_run(sizes, s), -s))
    regular = [n for n in sizes if n % step == 0]
    others = [n for n in sizes if n % step]
    assert regular == list(range(regular[0], regular[-1] + 1, step)), sizes
    return {"n": [regular[0], regular[-1], step]} | ({"also_n": others} if others else {})


def _run(sizes: list[int], step: int) -> int:
    regular = [n for n in sizes if n % step == 0]
    return len(regular) if regular and regular == list(range(regular[0], regular[-1] + 1, step)) else 0


def _template(by_n: dict[int, Any], where: str) -> Any:
    """One structure for all Ns: a number where it is the same for all, else ``"N"``, ``"N/8"`` or ``"N*64"``.

    None stands for any number: the stride of a mode that has one element at this N.
    """
    by_n = {n: v for n, v in by_n.items() if v is not None}
    values = list(by_n.values())
    if all(v == values[0] and _complete(v) for v in values):
        return values[0]
    if all(isinstance(v, list) and len(v) == len(values[0]) for v in values):
        return [_template({n: v[i] for n, v in by_n.items()}, where) for i in range(len(values[0]))]
    n, v = max(by_n.items())
    if isinstance(v, int) and v:
        by = v // n or -(n // v)
        text = "N" if by == 1 else f"N*{by}" if by > 0 else f"N/{-by}"
        if all((x == k * by if by > 0 else x * -by == k) for k, x in by_n.items()):
            return text
    raise TexgenError(f"{where} does not follow N: {by_n}")


def _complete(x: Any) -> bool:
    return all(map(_complete, x)) if isinstance(x, list) else x is not None


def _aligned(layout: Any, model: Any) -> Any:
    """The layout with the structure of ``model``: missing modes are of one element, and their strides None."""
    if not isinstance(model, list) or len(model) != 2:
        return layout
    shape, stride = layout
    if not isinstance(model[0], list):
        return [shape, None if shape == 1 and model[0] != 1 else stride]
    if not isinstance(shape, list):
        shape, stride = [shape], [stride]
    pad = len(model[0]) - len(shape)
    shape, stride = [*shape, *[1] * pad], [*stride, *[None] * pad]
    pairs = [_aligned([s, d], [m, e]) for s, d, m, e in zip(shape, stride, *model, strict=True)]
    return [[s for s, _ in pairs], [d for _, d in pairs]]


def _unit_strides(layout: Any) -> Any:
    """The layout with stride 0 at every mode of one element, where libraries print different ones."""
    if not isinstance(layout, list) or len(layout) != 2 or isinstance(layout[1], list) != isinstance(layout[0], list):
        return layout
    shape, stride = layout
    if not isinstance(shape, list):
        return [shape, 0 if shape == 1 else stride]
    pairs = [_unit_strides([s, d]) for s, d in zip(shape, stride, strict=True)]
    return [[s for s, _ in pairs], [d for _, d in pairs]]


def _memories(build: dict[str, Any]) -> list[str]:
    a = str(build["args"].get("a_src", "")).lower()
    if not a:
        return ["rmem", "rmem", "rmem"]
    return [a, "smem", "tmem" if build["op"].startswith("tcgen05") else "rmem"]


def _names(build: dict[str, Any], data: dict[str, Any]) -> tuple[str, str]:
    """(the family's name, its instruction), ``{N}`` in place of N."""
    module, op = build["op"].split(".")
    args, (m, n, k), (a, b, c) = build["args"], data["mnk"], data["types"]
    types = f"{c}{a}{b}".upper()
    scale = TYPES.get(args.get("sf_type", args.get("sf_dtype", "")), "").replace("e4m3", "ue4m3")
    vector = args.get("sf_vec_size") or (16 if "NVF4" in op else 32)
    scaled = f"_{scale.upper()}_VS{vector}" if "MX" in op else ""
    if "MX" in op and not scale:
        scaled = f"_UE8M0_VS{vector}"
    if module == "nvgpu":
        return f"UniversalFMA_{a.upper()}", "fma"
    if module == "warp":
        chip = op_arch(build["op"]).replace("sm_", "SM").rstrip("a")
        tail = ".block_scale" if scaled else ""
        return (
            f"{chip}_{m}x{n}x{k}_{types}{c.upper()}{scaled}_TN",
            f"mma.sync.aligned.m{m}n{n}k{k}.row.col{tail}.{c}.{a}.{b}.{c}",
        )
    source = {"SMEM": "SS", "RMEM": "RS", "TMEM": "TS"}[args["a_src"]]
    if module == "warpgroup":
        return f"SM90_{m}x{{N}}x{k}_{types}_{source}", f"wgmma.mma_async.sync.aligned.m{m}n{{N}}k{k}.{c}.{a}.{b}"
    pair = args["cta_group"] == "TWO"
    chip = f"SM{op_arch(build['op'])[3:6]}{'_2SM' if pair else ''}"
    sparse = "Sparse" in op
    ptx = f"tcgen05.mma{'.sp' if sparse else ''}.cta_group::{2 if pair else 1}.kind::{KINDS[op]}"
    if scaled:
        ptx += f".block_scale.block{vector}"
    return f"{chip}_{m}x{{N}}x{k}_{types}{scaled}_{source}{'_SPARSE' if sparse else ''}", ptx


def _copy_line(record: dict[str, Any], origin: str) -> dict[str, Any]:
    name, op = record["name"], record["build"]["op"]
    line: dict[str, Any] = {"name": name, "kind": "copy", "arch": "", "origin": origin}
    if m := re.match(r"SM(\d+)_", name):
        line["arch"] = f"sm_{m[1]}" + ("a" if m[1] == "100" else "")
    line |= {"aka": AKA[name]} if name in AKA else {}
    line |= {k: _unit_strides(record[k]) for k in ("thr", "S", "D")} | {"bits": record["bits"]}
    if "Matrix" in op:
        line["row"] = 128 // record["bits"]
        line["ref"] = "dst" if "Ld" in op else "src"
    line["ptx"] = _copy_ptx(record)
    line["build"] = record["build"]
    return line


def _copy_ptx(record: dict[str, Any]) -> str:
    op, args = record["build"]["op"].split(".")[1], record["build"]["args"]
    if "Matrix" in op:
        kind = "ldmatrix" if op.startswith("Ld") else "stmatrix"
        rows = re.search(r"(\d+)x(\d+)x", op)
        assert rows
        trans = ".trans" if args["transpose"] else ""
        return f"{kind}.sync.aligned.m{rows[1]}n{rows[2]}.x{args['num_matrices']}{trans}.shared.b{record['bits']}"
    if op == "CopyG2SOp":
        cache = "cg" if args.get("cache_mode") == "GLOBAL" else "ca"
        return f"cp.async.{cache}.shared.global [{record['build']['copy']['num_bits_per_copy'] // 8} bytes]"
    return f"ld/st [{record['build']['copy']['num_bits_per_copy'] // 8} bytes]"


def _merge(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line a name; two ops of one name and the same layouts become one line with both parameter sets.

    An atom of the library that the DSL also has is dropped if its tables agree, and is an error if they do not.
    """
    out: dict[str, dict[str, Any]] = {}
    for line in lines:
        name = str(line["name"])
        known = out.get(name) or _member(out, name)
        if known is None:
            out[name] = line
        elif "build" in line:
            _same(known, line)
            known.setdefault("also", []).append(line["build"])
            if line["ptx"] not in known["ptx"].split(" or "):
                known["ptx"] = f"{known['ptx']} or {line['ptx']}"
        else:
            _agree(known, line)
    rank = {"SM6": 0, "SM7": 0, "SM8": 0, "SM9": 1, "SM12": 2, "Uni": 3, "SM10": 4}
    order = {name: i for i, name in enumerate(out)}

    def key(item: tuple[str, dict[str, Any]]) -> tuple[int, int]:
        name = item[0]
        place = next((r for p, r in rank.items() if name.startswith(p)), 6)
        return (place if item[1]["kind"] == "mma" else 5, order[name])

    return [line for _, line in sorted(out.items(), key=key)]


def _member(out: dict[str, dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The family that already has an atom of this name."""
    m = FAMILY.match(name)
    family = out.get(f"{m[1]}{{N}}{m[3]}") if m else None
    return family if family is not None and m is not None and int(m[2]) in ns(family) else None


def _same(known: dict[str, Any], other: dict[str, Any]) -> None:
    keys = ("mnk", "thr", "A", "B", "C", "n", "also_n")
    differing = [k for k in keys if known.get(k) != other.get(k)]
    if differing:
        raise TexgenError(f"{known['name']} is two atoms: {known['build']} and {other['build']} differ in {differing}.")


def _agree(known: dict[str, Any], other: dict[str, Any]) -> None:
    """Raise TexgenError unless the DSL's atom and the library's of the same name have equal tables."""
    n = int(other["mnk"][1]) if "n" in known else 0
    specs = [tile_mma(Entry(str(other["name"]), n, x).atom()) for x in (known, other)]  # type: ignore[arg-type]
    for operand, table in specs[0].operands().items():
        if table.tv.tolist() != specs[1].operands()[operand].tv.tolist():
            raise TexgenError(f"{other['name']}: {operand} differs between {known['origin']} and {other['origin']}.")
