"""Rows of measurements: what a benchmark found, printed as it is found and kept for ``results.json`` and the README's table.

A ratio is of two sides measured in one run; ``better`` says whether a high or a low one is wanted, ``goal`` the bound. A row
whose other side is cited rather than run says so.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).with_name("results.json")
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- benchmarks: made by python -m benchmarks --readme -->", "<!-- end of benchmarks -->"


@dataclass(frozen=True)
class Row:
    """One measurement: ``ours`` and ``other`` in ``unit``; ``ratio`` is what is held, ours over the other unless ``inverse``."""

    group: str
    what: str
    ours: float
    other: float
    against: str
    ratio: float
    unit: str = "s"
    goal: float | None = None
    better: Literal["low", "high"] = "low"
    cited: bool = False
    shown: bool = False
    """Whether the README's table has it."""

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ratio <= self.goal if self.better == "low" else self.ratio >= self.goal

    def text(self) -> str:
        bound = "" if self.goal is None else f"  ({'at most' if self.better == 'low' else 'at least'} {self.goal:g}{'' if self.met else ': MISSED'})"
        return f"{self.group:<12} {self.what:<62} {self.ours:9.3f} {self.unit:<3} {self.against} {self.other:9.3f} {self.unit:<3} ratio {self.ratio:7.2f}{bound}"


ROWS: list[Row] = []


def row(
    group: str, what: str, ours: float, other: float, against: str, *, inverse: bool = False, unit: str = "s",
    goal: float | None = None, better: Literal["low", "high"] | None = None, cited: bool = False, shown: bool = False,
) -> None:  # fmt: skip
    """Keep and print one row. ``inverse``: the ratio is the other side over ours, and a high one is wanted."""
    ratio = other / ours if inverse else ours / other
    made = Row(group, what, ours, other, against, ratio, unit, goal, better or ("high" if inverse else "low"), cited, shown)
    ROWS.append(made)
    print(made.text(), flush=True)


def left_out(group: str, why: str) -> None:
    """Say what could not be measured here."""
    print(f"{group:<12} left out: {why}", flush=True)


def save(path: Path = FILE) -> None:
    """Write the rows with what they were measured on; rows of groups that did not run stay as they were."""
    ran = {r.group for r in ROWS}
    kept = [r for r in load(path) if r.group not in ran] if path.exists() else []
    content: dict[str, Any] = {
        "schema": 1, "python": platform.python_version(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
        "rows": [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(r).items()} for r in kept + ROWS],
    }  # fmt: skip
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load(path: Path = FILE) -> list[Row]:
    """The rows of a results file."""
    return [Row(**r) for r in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def table(rows: list[Row]) -> str:
    """The README's table: the rows that are meant for it."""
    lines = ["| what | texgen | beside | ratio |", "| --- | ---: | --- | ---: |"]
    for r in rows:
        if r.shown:
            other = f"{_value(r.other, r.unit)} {r.against}" + (" (cited)" if r.cited else "")
            lines.append(f"| {r.what} | {_value(r.ours, r.unit)} | {other} | {r.ratio:.3g} |")
    return "\n".join(lines)


def _value(value: float, unit: str) -> str:
    if unit == "s" and value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"


def in_readme(text: str, rows: list[Row]) -> str:
    """A README with its table made anew between the two marks. Raises ValueError where a mark is missing."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"
