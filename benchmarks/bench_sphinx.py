"""What figures cost a site: 100 of ours against the same pages with 100 ready-made images, in one run.

Prints ratios of cold builds (goal: at most 2), of builds with nothing changed (at most 1.1), and of builds with one page
edited and nothing to draw.
Run as ``python benchmarks/bench_sphinx.py [--jobs N] [--rounds N]``.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rows import row

PAGES, ON_A_PAGE = 25, 4
ATOM = "SM80_16x8x16_F32F16F16F32_TN"
TEXT = "Some words stand between the figures, with *emphasis*, ``code`` and a list.\n\n* one\n* two\n* three\n\n"


def targets() -> list[tuple[str, str, dict[str, str]]]:
    """100 different figures of the usual sizes: (directive, target, options)."""
    out: list[tuple[str, str, dict[str, str]]] = []
    for i in range(25):
        out.append(("layout", f"(8,{8 + i}):({8 + i},1)", {}))
        out.append(("layout", f"Sw<3,3,3> o 0 o (8,{32 + i}):({32 + i},1)", {"cols": "0:16"}))
        out.append(("mma", ATOM, {"highlight": f"T{i}"}))
        out.append(("mma", ATOM, {"operand": "C", "atom-layout": "2,2,1", "highlight": f"T{i}"}))
    return out


def ours(folder: Path) -> None:
    """A site whose figures are directives."""
    made = iter(targets())
    pages(folder, lambda n: directive(*next(made), n), 'extensions = ["texgen.sphinxext"]\nnumfig = True\n')


def directive(kind: str, target: str, options: dict[str, str], n: int) -> str:
    lines = [f".. texgen:{kind}:: {target}", *(f"   :{k}: {v}" for k, v in options.items())]
    return "\n".join([*lines, f"   :caption: Figure number {n}", f"   :name: figure-{n}", "", ""])


def images(folder: Path) -> None:
    """The same site with SVG files that are there already."""
    from texgen import figure

    folder.mkdir(parents=True)
    for n, (_, target, options) in enumerate(targets()):
        drawing = figure(target, **{k.replace("-", "_"): v for k, v in options.items()})
        drawing.save(folder / f"image{n}.svg")
    pages(
        folder,
        lambda n: f".. figure:: image{n}.svg\n   :name: figure-{n}\n   :alt: image {n}\n\n   Figure number {n}\n\n",
        "numfig = True\n",
    )


def pages(folder: Path, figure_text: object, conf: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conf.py").write_text(f'{conf}html_theme = "{THEME}"\nproject = "bench"\n')
    names = [f"page{p}" for p in range(PAGES)]
    (folder / "index.rst").write_text("Site\n====\n\n.. toctree::\n\n" + "".join(f"   {n}\n" for n in names))
    for p, name in enumerate(names):
        parts = [f"{name}\n======\n\n"]
        for i in range(ON_A_PAGE):
            n = p * ON_A_PAGE + i
            parts += [TEXT * 3, figure_text(n), f"See :numref:`figure-{n}`.\n\n"]  # type: ignore[operator]
        (folder / f"{name}.rst").write_text("".join(parts))


def build(folder: Path, jobs: int) -> float:
    """Seconds of processor time, which other work on the machine changes least."""
    start = spent()
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-j", str(jobs), "-b", "html", str(folder), str(folder / "out")], check=True
    )
    return spent() - start


def spent() -> float:
    """Seconds that ended child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Build both sites in turns and print the ratios of the medians."""
    with tempfile.TemporaryDirectory() as temporary:
        sites = {"figures": Path(temporary, "figures"), "images": Path(temporary, "images")}
        ours(sites["figures"])
        images(sites["images"])
        cold: dict[str, list[float]] = {name: [] for name in sites}
        warm: dict[str, list[float]] = {name: [] for name in sites}
        edited: dict[str, list[float]] = {name: [] for name in sites}
        for _ in range(ROUNDS):
            for name, folder in sites.items():
                shutil.rmtree(folder / "out", ignore_errors=True)
                cold[name].append(build(folder, JOBS))
                warm[name].append(build(folder, JOBS))
                page = folder / "page3.rst"
                page.write_text(page.read_text() + "\nMore words.\n")
                edited[name].append(build(folder, JOBS))
        for what, times, goal in (("cold", cold, 2.0), ("warm", warm, 1.1), ("one page edited", edited, None)):
            a, b = (statistics.median(times[name]) for name in ("figures", "images"))
            row("Sphinx", f"sphinx-build of 100 figures, {what}", a, b, "100 plain images", goal=goal, shown=goal is not None)


THEME = "furo"
JOBS, ROUNDS = 1, 3

if __name__ == "__main__":
    main()
