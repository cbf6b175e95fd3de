"""What a page says of a figure that was executed. Light: imports neither the DSL nor torch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from texgen.spec_json import to_json
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, Spec


def spec_hash(spec: Spec) -> str:
    """The SHA-256 of a spec's canonical JSON, of what is executed alone: tables, layouts, dtypes, the instruction's name.

    The name that a page gives its figure, notes, warnings and where the spec was read from are left out, so the stamp stays
    while the tables stay.
    """
    bare = replace(spec, source="", notes=(), warnings=())
    if not isinstance(bare, LayoutSpec):
        bare = replace(bare, name=instruction_name(spec))
    return hashlib.sha256(to_json(bare).encode()).hexdigest()


def instruction_name(spec: Spec) -> str:
    """The atom's name: the spec's own, or that in its note where the spec was given another."""
    if isinstance(spec, MmaSpec | CopySpec):
        for note in spec.notes:
            if match := re.match(r"Atom (\S.*?)\.(?:\s|$)", note):
                return match[1]
    return spec.name


@dataclass(frozen=True)
class Stamp:
    """One entry of a ``verify.json``, with the head of its file."""

    target: str
    status: str
    mutation_caught: bool | None
    reason: str
    gpu: str
    dsl: str
    date: str
    file: Path

    def __str__(self) -> str:
        """``executed on NVIDIA H200, DSL 4.8.1``, or why it was not."""
        if self.status == "skip":
            return f"not executed: {self.reason}"
        where = f"{self.gpu}, DSL {self.dsl}"
        return (
            f"executed on {where}" if self.status == "pass" else f"executed on {where} and found wrong: {self.reason}"
        )


def stamps(spec: Spec, results: Path) -> list[Stamp]:
    """What was found of exactly this spec, from every ``RESULTS/<gpu>/verify.json``; empty where it was never executed."""
    return executed_hash(spec_hash(spec), results)


def executed_hash(digest: str, results: Path) -> list[Stamp]:
    """The same of a spec's hash, each stamp once."""
    return list(dict.fromkeys(stamp for found, stamp in _all(results) if found == digest)) if digest else []


def executed(spec: Spec, results: Path) -> Stamp | None:
    """The first stamp of this spec that is no skip, or None."""
    return next((s for s in stamps(spec, results) if s.status != "skip"), None)


def _all(results: Path) -> Iterable[tuple[str, Stamp]]:
    for file in sorted(results.glob("*/verify.json")):
        yield from _load(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _load(file: Path, changed: int) -> tuple[tuple[str, Stamp], ...]:
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    head = {"gpu": data["gpu"], "dsl": data["dsl"], "date": data["date"], "file": file}
    return tuple(
        (e["spec_hash"], Stamp(e["target"], e["status"], e["mutation_caught"], e["reason"], **head))
        for e in data["entries"]
    )
