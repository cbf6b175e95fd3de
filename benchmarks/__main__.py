"""Run every benchmark: ``python -m benchmarks [NAME ...]`` (names without ``bench_``)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(names: list[str]) -> None:
    found = sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))
    for name in names or found:
        print(f"\n== {name}")
        importlib.import_module(f"benchmarks.bench_{name}").main()


main(sys.argv[1:])
