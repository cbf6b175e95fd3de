"""What the whole site costs: a cold build, the same again with nothing changed, and pages and figures counted.

Goal: at most 90 s for the cold build on two cores, and no figure drawn by the second. The machine may be busy: the processor
time of both builds is printed beside.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
JOBS = 2


def build(out: Path) -> tuple[float, float, str]:
    """(seconds, processor seconds, what it said)."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-j", str(JOBS), "-b", "html", "-d", str(out / "doctrees"), str(DOCS), str(out / "html")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used, said


def main() -> None:
    """Build twice and print the times."""
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary)
        cold, cold_used, _ = build(out)
        warm, warm_used, said = build(out)
        pages = len(list((out / "html").rglob("*.html")))
        figures = len(list((out / "html" / "_texgen").glob("*.svg")))
        load = os.getloadavg()[0]
        print(f"cold: {cold:.1f} s, {cold_used:.1f} s of processor time, for {pages} pages with {figures} figures (goal: at most 90 s)")
        print(f"again, nothing changed: {warm:.1f} s, {warm_used:.1f} s of processor time; draws: {'drawing figures' in said} (goal: False)")
        print(f"load of the machine afterwards: {load:.1f}")


if __name__ == "__main__":
    main()
