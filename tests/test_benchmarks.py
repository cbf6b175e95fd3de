"""The README's table of ratios is made from the committed results."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import rows  # noqa: E402


def test_the_readmes_table_is_made_from_the_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = rows.load()
    assert len(found) >= 8 and sum(r.shown for r in found) >= 4
    assert rows.in_readme(readme, found) == readme


def test_a_ratio_is_of_its_two_sides() -> None:
    for r in rows.load():
        assert min(abs(r.ratio - r.ours / r.other), abs(r.ratio - r.other / r.ours)) <= 0.02 * r.ratio, r.what
