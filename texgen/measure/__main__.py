"""``python -m texgen.measure --out docs/results``: all that is measured on a GPU, and a short table last.

Figures executed (``verify.json``), bank conflicts counted (``conflicts.json``), kernels timed (``bench.json``), a pipeline
stamped (``timeline.json``); each part is a process of its own, so that one that fails leaves the others. ``--emulate`` runs
the first through NumPy, without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PARTS = ("verify", "conflicts", "bench", "timeline")
LIMITS = {"verify": 220, "conflicts": 130, "bench": 200, "timeline": 45}
"""Seconds that a part may take: together under ten minutes."""
INSTALL = "pip install '.[gpu]'"


def why_not() -> str:
    """Why nothing can be measured here; empty where it can."""
    for module, name in (("torch", "torch"), ("cutlass", "the CuTe DSL")):
        if importlib.util.find_spec(module) is None:
            return f"Measuring needs {name}: {INSTALL}"
    code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
        return "Measuring needs a CUDA device, and torch sees none; --emulate executes the figures in NumPy."
    return ""


def command(part: str, out: Path, emulate: bool, quick: bool) -> list[str]:
    """How a part is run."""
    base = [sys.executable, "-m", f"texgen.measure.{part}", "--out", str(out)]
    return [*base, *(["--emulate"] if emulate else []), *(["SM80_16x8x16_F32F16F16F32_TN"] if quick and part == "verify" else [])]


def run(part: str, out: Path, emulate: bool, quick: bool) -> tuple[int, float]:
    """(exit status, seconds) of a part; 124 where it took too long."""
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")) if p)}
    try:
        done = subprocess.run(command(part, out, emulate, quick), timeout=LIMITS[part], env=environment, check=False).returncode
    except subprocess.TimeoutExpired:
        done = 124
    return done, time.monotonic() - began


def newest(out: Path, part: str, since: float) -> dict[str, Any] | None:
    """The result that a part has just written."""
    files = [f for f in out.glob(f"*/{part}.json") if f.stat().st_mtime >= since - 1]
    return dict(json.loads(max(files, key=lambda f: f.stat().st_mtime).read_text(encoding="utf-8"))) if files else None


def short(part: str, result: dict[str, Any]) -> list[str]:
    """A result in a few lines."""
    entries = result["entries"]
    if part == "verify":
        counts = {s: sum(e["status"] == s for e in entries) for s in ("pass", "fail", "skip")}
        caught = sum(bool(e["mutation_caught"]) for e in entries)
        return [f"figures    {counts['pass']} exact, {counts['fail']} wrong, {counts['skip']} not run; swaps caught in {caught}"]
    if part == "conflicts":
        both = [*entries, *result.get("global", [])]
        return [f"conflicts  {sum(bool(e['agree']) for e in both)} of {len(both)} predictions counted"]
    if part == "timeline":
        from texgen.measure.timeline import line

        return [line(e) for e in entries]
    lines = []
    for e in entries:
        size = "x".join(str(e[x]) for x in "mnk" if e[x] > 1)
        more = "".join(f", {e[k]:.2f} to {n}" for k, n in (("ratio_to_torch_tf32", "TF32"), ("ratio_to_copy", "a copy")) if k in e)
        wrong = "" if e["correct"] else " WRONG"
        lines.append(f"{e['kernel']:<16} {size:<15} {e['ratio_to_torch']:.2f} to torch {e['torch_precision']}{more}{wrong}")
    return lines


def main(arguments: Sequence[str] | None = None, echo: Callable[[str], Any] = print) -> int:
    """0 where every part ended well."""
    parser = argparse.ArgumentParser(prog="python -m texgen.measure", description="Execute the figures, count bank conflicts, time the kernels, stamp a pipeline.")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results"), help="folder of result folders (default: docs/results)")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    parser.add_argument("--emulate", action="store_true", help="the figures through NumPy, without a GPU, and nothing else")
    parser.add_argument("--quick", action="store_true", help="one figure only, to try the command")
    options = parser.parse_args(arguments)
    if not options.emulate and (reason := why_not()):
        print(f"texgen: {reason}", file=sys.stderr)
        return 1
    parts = ("verify",) if options.emulate else tuple(options.only or PARTS)
    began, table, failed = time.time(), [], False
    for part in parts:
        echo(f"--- {part}")
        status, seconds = run(part, options.out, options.emulate, options.quick)
        result = newest(options.out, part, began)
        failed = failed or status != 0
        end = "" if status == 0 else f"  (took more than {LIMITS[part]} s)" if status == 124 else f"  (ended with {status})"
        lines = short(part, result) if result else [f"{part:<10} no result"]
        table += [f"{lines[0]}{end}  {seconds:.0f} s", *lines[1:]]
    echo("\n" + "\n".join(table))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
