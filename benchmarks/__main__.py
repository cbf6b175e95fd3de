"""Run every benchmark: ``python -m benchmarks [NAME ...]`` (names without ``bench_``); ``--readme`` makes the README's table.

The rows go to ``benchmarks/results.json``; exit status 1 where a goal was missed.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks import rows


def main(arguments: list[str]) -> int:
    if arguments != ["--readme"]:
        found = sorted(p.stem.removeprefix("bench_") for p in Path(__file__).parent.glob("bench_*.py"))
        if unknown := [a for a in arguments if a not in found]:
            print(f"There is no benchmark {unknown[0]!r}: take {', '.join(found)}.", file=sys.stderr)
            return 2
        for name in arguments or found:
            print(f"\n== {name}")
            importlib.import_module(f"benchmarks.bench_{name}").main()
            rows.save()
        print("\n== all")
        for row in rows.load():
            print(row.text())
    readme = rows.README.read_text(encoding="utf-8")
    rows.README.write_text(rows.in_readme(readme, rows.load()), encoding="utf-8")
    return int(any(r.met is False for r in rows.ROWS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
