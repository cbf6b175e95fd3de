"""Clock stamps of a real run, out of a ``timeline.json`` (``python -m texgen.measure.timeline``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError

HEAD = ("gpu", "driver", "dsl", "date")
TEXTS, NUMBERS = ("kernel",), ("m", "n", "k", "stages", "k_tiles", "k_blocks", "smid", "warps", "cycles", "ns")
TIMES = ("stamped_median_s", "plain_median_s")
MOST = 1 << 20
"""The most stamps."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One entry of a result file with its file's head; ``events[name][warp]``: cycles, as the file's schema has them."""

    head: Mapping[str, str]
    entry: Mapping[str, Any]

    @property
    def events(self) -> Mapping[str, Any]:
        stamps: Mapping[str, Any] = self.entry["events"]
        return stamps

    @property
    def warps(self) -> int:
        return int(self.entry["warps"])

    @property
    def k_tiles(self) -> int:
        return int(self.entry["k_tiles"])

    @property
    def k_blocks(self) -> int:
        return int(self.entry["k_blocks"])

    @property
    def stages(self) -> int:
        return int(self.entry["stages"])

    @property
    def early(self) -> int:
        """Barriers that a warp passed before the last had come: the stamps, or the barrier, are not what they should be."""
        landed, passed = self.events["landed"], self.events["passed"]
        return sum(
            min(w[t] for w in passed) < max(w[t] for w in landed) for t in range(len(landed[0]))
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measured) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        return {**self.head, **self.entry}


def read_measured(path: Path, stages: int) -> Measured:
    """The stamps of a result file for a ring of ``stages``. Raises TexgenError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TexgenError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except (ValueError, RecursionError):
        raise TexgenError(f"{path} is no JSON: give a timeline.json that python -m texgen.measure.timeline wrote.") from None
    entries = data.get("entries") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not all(isinstance(e, dict) and "events" in e for e in entries):
        raise TexgenError(f"{path} has no clock stamps: give a timeline.json that python -m texgen.measure.timeline wrote.")
    fitting = [e for e in entries if e.get("stages") == stages]
    if not fitting:
        there = ", ".join(str(e.get("stages")) for e in entries)
        raise TexgenError(f"{path} has no run with {stages} stages: there are runs with {there}.")
    return measured_from_dict({k: data.get(k) for k in HEAD} | fitting[0], str(path))


def measured_from_dict(data: Any, where: str) -> Measured:
    """Checked: every stamp there that the figure needs. Raises TexgenError naming the key at fault."""
    if not isinstance(data, dict):
        raise TexgenError(f"{where} must be an object, an entry of a timeline.json.")
    for key in (*HEAD, *TEXTS):
        if not isinstance(data.get(key), str):
            raise TexgenError(f"{where}: {key!r} must be a string.")
    for key in NUMBERS:
        if type(data.get(key)) is not int or not 0 <= data[key] < 1 << 53:
            raise TexgenError(f"{where}: {key!r} must be a whole number.")
    for key in TIMES:
        value = data.get(key)
        if not isinstance(value, int | float) or not value > 0:
            raise TexgenError(f"{where}: {key!r} must be a number of seconds.")
    block, events = data.get("block"), data.get("events")  # type: Any, Any
    if not isinstance(block, list) or len(block) != 2 or not all(type(x) is int for x in block):
        raise TexgenError(f"{where}: 'block' must be a list of two numbers.")
    warps, k_tiles, blocks, stages = (data[k] for k in ("warps", "k_tiles", "k_blocks", "stages"))
    if not 1 <= warps <= 64 or not 1 <= stages <= 64 or not min(k_tiles, blocks) >= 1 or not 0 < warps * (k_tiles + 2) * (blocks + 5) <= MOST:
        raise TexgenError(f"{where}: 'warps', 'stages', 'k_tiles' and 'k_blocks' are not those of one block's run.")
    copies = k_tiles + stages - 1
    wanted: dict[str, tuple[int, ...]] = {
        "copy": (warps, copies), "commit": (warps, copies), "wait": (warps, k_tiles + 2), "landed": (warps, k_tiles + 2),
        "passed": (warps, k_tiles + 2), "block": (warps, k_tiles, blocks),
    }  # fmt: skip
    for key, shape in wanted.items():
        if not isinstance(events, dict) or not _fits(events.get(key), shape):
            raise TexgenError(f"{where}: 'events' must hold {key!r}, whole numbers of shape {'×'.join(map(str, shape))}.")
    kept = (*TEXTS, *NUMBERS, *TIMES, "block")
    return Measured({k: data[k] for k in HEAD}, {k: data[k] for k in kept} | {"events": {k: events[k] for k in wanted}})


def _fits(value: Any, shape: tuple[int, ...]) -> bool:
    if not shape:
        return type(value) is int and 0 <= value < 1 << 53
    return isinstance(value, list) and len(value) == shape[0] and all(_fits(v, shape[1:]) for v in value)
