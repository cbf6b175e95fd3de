"""Two saved catalogues side by side: which atoms are in one alone, and which differ (``texgen atoms --diff``)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.pages import layout_text, spread
from texgen.sources.catalog import ns

COMPARED = ("mnk", "thr", "A", "B", "C", "S", "D", "types", "bits", "mem", "arch", "ptx")
"""What makes an atom another one: not where it comes from, nor how the DSL builds it."""
LAYOUTS = ("thr", "A", "B", "C", "S", "D")


@dataclass(frozen=True)
class Change:
    """One thing about a family that differs: its text before and after."""

    name: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """``added`` and ``removed``: (family, number of atoms); families that are in both with other Ns are changes.

    ``equal`` counts the atoms of families that are in both and the same.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    counts: tuple[int, int]
    added: tuple[tuple[str, int], ...]
    removed: tuple[tuple[str, int], ...]
    changed: tuple[Change, ...]
    equal: int


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The families of a saved catalogue (``.json``, or ``.json.gz``), ``{N}`` in their names.

    Raises TexgenError for a file that is none.
    """
    try:
        raw = path.read_bytes()
        data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        return {str(line["name"]): dict(line) for line in data["atoms"]}
    except OSError as error:
        raise TexgenError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, EOFError):
        raise TexgenError(f"{path} is no saved catalogue: make one with texgen atoms --save {path}.") from None


def diff(before: Path, after: Path) -> Difference:
    """What changed from one saved catalogue to another. Raises TexgenError for a file that is none."""
    old, new = load(before), load(after)
    added = tuple((_family(name), len(ns(line))) for name, line in new.items() if name not in old)
    removed = tuple((_family(name), len(ns(line))) for name, line in old.items() if name not in new)
    changes = [c for name, line in new.items() if name in old for c in _changes(name, old[name], line)]
    touched = {c.name for c in changes}
    same = {name: line for name, line in new.items() if name in old and _family(name) not in touched}
    counts = (len(_names(old)), len(_names(new)))
    return Difference(_origins(old), _origins(new), counts, added, removed, tuple(changes), len(_names(same)))


def lines(difference: Difference) -> list[str]:
    """The difference for the screen, one line a family or change."""
    out = [f"before: {', '.join(difference.before)}: {difference.counts[0]:,} atoms"]
    out.append(f"after:  {', '.join(difference.after)}: {difference.counts[1]:,} atoms, {difference.equal:,} of them as before")
    out += [f"+ {name}  {_atoms(n)}" for name, n in difference.added]
    out += [f"- {name}  {_atoms(n)}" for name, n in difference.removed]
    for change in difference.changed:
        out += [f"~ {change.name}, {change.what}", f"    {change.before or 'none'}", f"    {change.after or 'none'}"]
    return out


def _names(atoms: dict[str, dict[str, Any]]) -> set[str]:
    """Every name; an N that a family lists may also stand on a line of its own."""
    return {name.replace("{N}", str(n)) for name, line in atoms.items() for n in ns(line)}


def _atoms(n: int) -> str:
    return "1 atom" if n == 1 else f"{n:,} atoms"


def _family(name: str) -> str:
    return name.replace("{N}", "N")


def _origins(atoms: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted({str(line["origin"]) for line in atoms.values()}))


def _changes(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    out = []
    if ns(old) != ns(new):
        out.append(Change(_family(name), "N", spread(tuple(ns(old))), spread(tuple(ns(new)))))
    for key in COMPARED:
        if old.get(key) != new.get(key):
            out.append(Change(_family(name), key, *(_shown(key, x.get(key)) for x in (old, new))))
    return out


def _shown(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in LAYOUTS:
        return layout_text(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value).replace("{N}", "N")
