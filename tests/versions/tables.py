"""``python -m tests.versions.tables OUT``: what the installed DSL gives for the test set, drawn, as JSON.

The test set is one atom of every family that the DSL can build, alone and tiled, one in EVERY of them. Each entry holds the tables as texgen reads them from the live object and the SHA-256 of its TikZ and its SVG; an atom that this
release of the DSL lacks is listed as absent.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

EVERY = 4
TILINGS: dict[str, tuple[dict[str, str], ...]] = {"warp": ({"atom_layout": "2,2,1"},), "warpgroup": ({"atom_layout": "2,1,1"},)}


def test_set() -> list[tuple[str, dict[str, str]]]:
    """(name, reading options) of everything that is read; the names are the catalogue's, for whichever DSL."""
    from texgen.sources import catalog

    out: list[tuple[str, dict[str, str]]] = []
    for _, entries in catalog.families():
        entry = entries[len(entries) // 2]
        if entry.build:
            unit = str(entry.build.get("op", "")).split(".")[0]
            out += [(entry.name, options) for options in ({}, *TILINGS.get(unit, ()))]
    return out[::EVERY]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def one(name: str, options: dict[str, str]) -> dict[str, Any]:
    """The tables of one live object and what its figures hash to."""
    from texgen.api import Drawing
    from texgen.figures import FigureOptions
    from texgen.sources import read
    from texgen.spec_json import to_json

    spec = read(name, live=True, **options)
    large = "--overview" if max(getattr(spec, "tile_mnk", (0,))) > 128 else ""
    drawing = Drawing(spec, FigureOptions(overview=bool(large)))
    tables = json.loads(to_json(spec))
    tables.pop("source", None)  # it names the release
    return {"tables": digest(json.dumps(tables, sort_keys=True)), "svg": digest(_neutral(drawing.svg())), "tikz": digest(_neutral(drawing.tikz()))}


def _neutral(text: str) -> str:
    """A picture without the lines that name the release and the id that hashes them."""
    return re.sub(r"nvidia-cutlass-dsl \d[\w.]*|txg-[0-9a-f]{10}", "", text)


def main() -> None:
    from texgen.errors import TexgenError

    found: dict[str, Any] = {}
    for name, options in test_set():
        key = " ".join([name, *(f"{k}={v}" for k, v in options.items())])
        try:
            found[key] = one(name, options)
        except TexgenError as error:
            found[key] = {"absent": str(error)}
    result = {"dsl": version("nvidia-cutlass-dsl"), "python": sys.version.split()[0], "entries": found}
    Path(sys.argv[1]).write_text(json.dumps(result, indent=1), encoding="utf-8")
    absent = sum("absent" in e for e in found.values())
    print(f"DSL {result['dsl']} on Python {result['python']}: {len(found) - absent} read and drawn, {absent} absent")


if __name__ == "__main__":
    main()
