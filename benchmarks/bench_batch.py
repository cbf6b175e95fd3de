"""Big work: 2,000 SVGs by ``texgen render --batch``, against a bare loop in one process and one process a figure; memory at
200 and 2,000 figures; 50 small TeX figures in shared runs against runs of their own.

Both sides of a row are taken one after the other on the same machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.rows import left_out, row

SINGLE = 6
"""Figures by processes of their own, from which 2,000 are extrapolated."""
TEX = 48


def targets(count: int) -> list[str]:
    """Layouts and atoms of the usual sizes, each another."""
    from texgen.sources import catalog

    atoms = [e.name for e in catalog.search("SM80_16x8*")]
    return [atoms[i // 4] if i % 4 == 0 and i // 4 < len(atoms) else f"({8 + i % 40},{8 + i // 40}):({8 + i // 40},1)" for i in range(count)]


def batch(folder: Path, count: int, suffix: str = "svg", *options: str) -> tuple[float, float, float]:
    """(seconds, peak MB of the parent, peak MB of the largest worker) of a batch with two processes."""
    path = folder / f"list{count}{suffix}.json"
    path.write_text(json.dumps([{"target": t, "output": f"{i}.{suffix}"} for i, t in enumerate(targets(count))]))
    out = tempfile.mkdtemp(dir=folder)
    command = [sys.executable, "-m", "texgen", "render", "--batch", str(path), "-j", "2", "--out", out, *options]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peaks: dict[int, float] = {}
    watch = threading.Thread(target=_watch, args=(process, peaks))
    watch.start()
    process.wait()
    seconds = time.perf_counter() - start
    watch.join()
    assert process.returncode == 0
    return seconds, peaks.pop(process.pid, 0.0), max(peaks.values(), default=0.0)


def _watch(process: subprocess.Popen[bytes], peaks: dict[int, float]) -> None:
    """Peak resident memory in MB, by process, of a program and its children (Linux)."""
    while process.poll() is None:
        for path in (Path(f"/proc/{process.pid}"), *(Path(f"/proc/{c}") for c in _children(process.pid))):
            try:
                peak = next(x for x in (path / "status").read_text().splitlines() if x.startswith("VmHWM"))
                peaks[int(path.name)] = float(peak.split()[1]) / 1024
            except (OSError, StopIteration):
                continue
        time.sleep(0.05)


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def main() -> None:
    import texgen
    from texgen.render import engine

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        few = batch(folder, 200)
        many = batch(folder, 2000)
        start = time.perf_counter()
        for i, target in enumerate(targets(2000)):
            texgen.figure(target).save(folder / "bare" / f"{i}.svg")
        bare = time.perf_counter() - start
        start = time.perf_counter()
        for i, target in enumerate(targets(SINGLE)):
            subprocess.run([sys.executable, "-m", "texgen", "render", target, "-o", str(folder / f"single{i}.svg")], check=True, stdout=subprocess.DEVNULL)
        single = (time.perf_counter() - start) / SINGLE * 2000
        row("batch", "2,000 SVGs by render --batch -j 2", many[0], single, f"a process a figure ({SINGLE} of them, extrapolated)", inverse=True, shown=True)
        row("batch", "the same", many[0], bare, "a bare loop in one process", inverse=True, goal=1)
        for name, i in (("parent", 1), ("largest worker", 2)):
            row("batch", f"peak memory of the {name} at 2,000 figures", many[i], few[i], "at 200", unit="MB", goal=1.3)
        if "pdflatex" in engine.available():
            shared, alone = batch(folder, TEX, "pdf")[0], batch(folder, TEX, "pdf", "--no-share")[0]
            row("batch", f"{TEX} PDFs by pdflatex in shared runs", shared, alone, "a run a figure", inverse=True)
        else:
            left_out("batch", "pdflatex is not on the PATH")


if __name__ == "__main__":
    main()
