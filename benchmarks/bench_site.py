"""What the whole site costs: a cold build, the same again with nothing changed, and pages and figures counted.

Goal: at most 90 s for the cold build on two cores, and no figure drawn by the second. The machine may be busy: the processor
time of both builds is printed beside.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import row

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
        assert "drawing figures" not in said
        row("site", f"texgen's own site, {pages} pages, {figures} figures, built again", warm, cold, "the cold build")
        row("site", "processor time of the same", warm_used, cold_used, "the cold build")


if __name__ == "__main__":
    main()
