"""What an entry of a list draws: a target, a chain of a copy and an MMA, or the timeline of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from texgen.errors import UsageError
from texgen.sources import ReadOptions

SUBJECTS: dict[str, tuple[str, ...]] = {
    "target": (),
    "chain": ("fill", "smem", "at"),
    "timeline": ("stages", "k_tiles", "k_blocks", "fault", "protocol", "measured"),
}
"""The keys of which an entry has one, each with the keys that go with it alone."""
OWN = tuple(key for keys in SUBJECTS.values() for key in keys)
NUMBERS = ("stages", "k_tiles", "k_blocks")
MOST_SAID = 3
"""Hazards of a timeline that are said one by one."""

Parts = tuple[tuple[str, Any], ...]


def subject(entry: Mapping[str, Any], where: str) -> tuple[str, str, Parts]:
    """(kind, how it is called, its parts) of an entry. Raises UsageError led by ``where``."""
    kinds = [kind for kind in SUBJECTS if entry.get(kind, False) is not False]
    if not kinds:
        raise UsageError(
            f"{where}: target is missing: give an atom's name, layout text, a C++ type, file.py:callable or a .json file; or "
            f"chain = [COPY, MMA], or timeline = true."
        )
    if len(kinds) > 1:
        raise UsageError(f"{where}: {' and '.join(kinds)} are two figures: write an entry for each.")
    kind = kinds[0]
    for key in OWN:
        owner = next(k for k, keys in SUBJECTS.items() if key in keys)
        if key in entry and owner != kind:
            raise UsageError(f"{where}: {key} goes with {owner}.")
    if kind == "timeline" and (unread := [f.name for f in fields(ReadOptions) if f.name in entry]):
        raise UsageError(f"{where}: {unread[0]} says how a target is read, and a timeline has none: leave it out.")
    given = {key: entry[key] for key in SUBJECTS[kind] if key in entry}
    _types(given, where)
    if kind == "chain":
        targets = entry["chain"]
        if not isinstance(targets, list) or len(targets) != 2 or not all(_is_text(t) for t in targets):
            raise UsageError(f"{where}: chain must be a list of two texts, the copy and the MMA that it feeds.")
        if "fill" in given:
            targets = [given.pop("fill"), *targets]
        given = {"targets": tuple(targets), **given}
        return kind, " → ".join(targets), tuple(given.items())
    if kind == "timeline":
        if entry["timeline"] is not True:
            raise UsageError(f"{where}: timeline = {entry['timeline']!r} must be true; its numbers are keys of their own, such as stages = 4.")
        return kind, " ".join(["timeline", *(f"{k}={v}" for k, v in given.items())]), tuple(given.items())
    if not _is_text(entry["target"]):
        raise UsageError(f"{where}: target must be a text that is not empty.")
    return kind, entry["target"], ()


def _types(given: Mapping[str, Any], where: str) -> None:
    for key, value in given.items():
        if key in NUMBERS:
            fits, words = type(value) is int and value > 0, "a whole number above 0"
        elif key == "at":
            pair = isinstance(value, list) and len(value) == 2 and all(type(x) is int and x >= 0 for x in value)
            fits, words = pair or _is_text(value), "the row and the k at which the tile begins, [0, 16]"
        else:
            fits, words = _is_text(value), "a text in quotes"
        if not fits:
            raise UsageError(f"{where}: {key} = {value!r} must be {words}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def named(kind: str, target: str, parts: Parts) -> tuple[str, ...]:
    """The texts that may name files."""
    given = dict(parts)
    if kind == "target":
        return (target,)
    return (*given.get("targets", ()), *(str(given[key]) for key in ("smem", "protocol", "measured") if key in given))


def specs(kind: str, target: str, parts: dict[str, Any], operand: str, reading: Mapping[str, Any]) -> Any:
    """The spec or specs of an entry. Raises TexgenError."""
    if kind == "chain":
        from texgen.chains.build import read_chain

        return read_chain(parts.pop("targets"), operand=operand, **parts, **reading)
    if kind == "timeline":
        from texgen.pipeline.build import timeline_spec

        return timeline_spec(**parts)
    from texgen.sources import read

    return read(target, **reading)


def hazards(spec: Any) -> list[str]:
    """What is wrong with a timeline, a sentence each."""
    found = [hazard.text for hazard in getattr(spec, "hazards", ())]
    return found[:MOST_SAID] + ([f"and {len(found) - MOST_SAID} hazards more."] if len(found) > MOST_SAID else [])
