"""Results in pages: read from files, never typed in; what is missing, older or wrong says so. And the commands that write them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx")

from click.testing import CliRunner
from sphinx_site import ATOM, Site

import texgen
from texgen.kernels import KERNELS
from texgen.measure import __main__ as everything
from texgen.measure import provenance
from texgen.measure.stamp import spec_hash
from texgen.sphinxext import charts
from texgen.sphinxext.results import duration, size, value

ROOT = Path(__file__).resolve().parents[1]
HEAD = {"schema": 1, "gpu": "NVIDIA H200", "driver": "580.1", "dsl": "4.8.1", "torch": "2.11", "date": "2026-01-02T03:04:05Z"}


def kernel_entry(kernel: str = "sgemm_tiled", **changes: Any) -> dict[str, Any]:
    entry = {
        "kernel": kernel, "m": 4096, "n": 4096, "k": 4096, "dtype": "float32", "layout": "A K-major, B N-major, C N-major",
        "samples_s": [2e-3], "median_s": 2e-3, "spread": 0.02, "torch_samples_s": [1.5e-3], "torch_median_s": 1.5e-3,
        "torch_precision": "float32 (TF32 off)", "ratio_to_torch": 0.75, "torch_tf32_median_s": 4e-4, "ratio_to_torch_tf32": 0.2,
        "flop_per_s": 6.87e13, "error": 1e-6, "max_abs_error": 1e-4, "tolerance": 7.6e-6, "correct": True, "input_sets": 2,
        "clocks": {"ours": {"sm_mhz": 1980.0}, "torch": {"sm_mhz": 1410.0}}, "source_hash": provenance.source_hash(kernel),
    }  # fmt: skip
    return entry | changes


def bench(*entries: dict[str, Any]) -> dict[str, Any]:
    clocks = {"before": {"sm_max_mhz": 1980.0, "power_limit_w": 700.0}, "after": {}}
    return HEAD | {"clocks": clocks, "entries": list(entries), "skipped": [{"kernel": "hgemm_sm90", "reason": "made for sm_90a"}]}


def executed(target: str, status: str = "pass", **changes: Any) -> dict[str, Any]:
    name, *rest = target.split(" --atom-layout ")
    spec = texgen.read(name, atom_layout=rest[0]) if rest else texgen.read(name)
    entry = {"target": target, "spec_hash": spec_hash(spec), "status": status, "mutation_caught": status == "pass", "reason": ""}
    return entry | changes


CONFLICTS = HEAD | {
    "entries": [
        {"way": way, "layout": layout, "bits": 32, "lanes": "column:0", "width": 4, "op": "ld", "predicted": p, "ideal": 1,
         "counted": c, "agree": p == c, "reason": "" if p == c else "a broadcast", "counters": {}}
        for way, layout, p, c in (("plain", "(32,32):(32,1)", 32, 32), ("padded", "(32,32):(33,1)", 1, 1), ("swizzled", "S<5,0,5>", 2, 1))
    ],
    "global": [{"name": "neighbours", "bits": 32, "lanes": "32:1", "shift": 0, "width": 4, "predicted": 4, "counted": 4, "agree": True,
                "reason": "", "requests": 1}],
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def put(site: Site, kind: str, data: Any) -> Path:
    return site.write(f"results/nvidia-h200/{kind}.json", data if isinstance(data, str) else json.dumps(data))


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_missing_file_says_so(site: Site) -> None:
    site.page(*(f".. texgen:results:: {k}" for k in ("bench", "verify", "conflicts")), "It is :texgen:result:`sgemm_tiled 4096`.",
              ".. texgen:results:: bench\n   :gpu: nvidia-b200\n   :name: here")  # fmt: skip
    built = site.build()
    assert built.warnings == ""
    text = words(built.text("index.html"))
    assert text.count("Not measured yet: there is no results/") == 4 and "results/nvidia-b200/bench.json" in text
    assert "It is not measured" in text and not re.search(r"\d\.\d\d to", text)


def test_table_chart_and_machine(site: Site) -> None:
    put(site, "bench", bench(kernel_entry(), kernel_entry("sgemm_naive", ratio_to_torch=0.11)))
    site.page(".. texgen:results:: bench\n   :caption: All of them.\n   :name: all", ".. texgen:results:: bench\n   :kernel: sgemm_naive\n   :no-chart:")
    built = site.build()
    html = built.text("index.html")
    assert built.warnings == ""
    text = words(html)
    for part in ("0.75 to torch float32 (TF32 off)", "0.20 to torch float32 (TF32 on)", "2.00 ms", "68.7 TFLOP/s", "4096³", "1980 MHz",
                 "NVIDIA H200 (driver 580.1, SM clock up to 1980 MHz, power limit 700 W), CuTe DSL 4.8.1, torch 2.11, 2026-01-02",
                 "hgemm_sm90 was not measured: made for sm_90a", "All of them.", "±1.0 %", "1.0e-06 of 7.6e-06 allowed"):  # fmt: skip
        assert part in text, part
    assert "older version" not in text
    assert html.count("<table") == 2 and html.count("texgen-chart") == 1 and "<svg" in html
    chart = html[html.index('class="texgen-chart"') :]
    assert "currentColor" in chart and "<text" in chart and "0.75 to torch float32 (TF32 off)" in chart[:600]


def test_a_changed_kernel_is_older(site: Site) -> None:
    put(site, "bench", bench(kernel_entry(source_hash="0" * 16), kernel_entry("vector_add", dtype="float16", m=64, n=1, k=1)))
    site.page(".. texgen:results:: bench", ":texgen:result:`sgemm_tiled 4096 ratio_to_torch_tf32`, :texgen:result:`vector_add 64`, "
              ":texgen:result:`sgemm_tiled 4096 [mn,mn]`, :texgen:result:`sgemm_tiled 4096 nothing`")  # fmt: skip
    text = words(site.build().text("index.html"))
    assert text.count("measured with an older version") == 2 + 1  # the row, the number, and the line that explains it
    assert re.search(r"0\.20 \(measured with an older version\) , 0\.75 , not measured , not measured", text)


def test_files_that_are_no_results(site: Site) -> None:
    put(site, "bench", "{")
    put(site, "verify", {"schema": 2})
    put(site, "conflicts", HEAD | {"entries": [{"op": "ld"}]})
    site.page(*(f".. texgen:results:: {k}" for k in ("bench", "verify", "conflicts")), ".. texgen:results:: nonsense", ":texgen:result:`what`",
              f".. texgen:mma:: {ATOM}")  # fmt: skip
    built = site.build()
    assert built.warnings.count("is no result") == 3 and "[texgen.results]" in built.warnings
    assert "takes bench, verify, conflicts, not nonsense" in built.warnings and "takes KERNEL M" in built.warnings
    assert "Traceback" not in built.warnings and len(built.figures()) == 1


def test_stamps_link_to_their_rows(site: Site) -> None:
    put(site, "verify", HEAD | {"entries": [
        executed(ATOM), executed("SM75_U32x4_LDSM_N", "fail", reason="C(0,0) is 1"), executed("SM75_U32x2_LDSM_N", "skip", reason="no such GPU"),
    ]})  # fmt: skip
    site.write("list.rst", "List\n====\n\n.. texgen:results:: verify\n")
    site.page(
        f".. texgen:mma:: {ATOM}\n   :operand: C", f".. texgen:mma:: {ATOM}\n   :no-stamp:", f".. texgen:mma:: {ATOM}\n   :atom-layout: 2,1,1",
        f".. texgen:mma:: {ATOM}\n   :atom-layout: 2,2,1\n   :stamp:", ".. texgen:copy:: SM75_U32x4_LDSM_N", ".. texgen:copy:: SM75_U32x2_LDSM_N",
        ".. texgen:copy:: SM75_U32x2_LDSM_N\n   :stamp:", ".. toctree::\n\n   list",
    )  # fmt: skip
    built = site.build(nitpicky=True)
    assert built.warnings == ""
    found = [re.findall(r'<p class="texgen-stamp">(.*?)</p>', f, re.DOTALL) for f in built.figures()]
    assert [len(f) for f in found] == [1, 0, 0, 1, 1, 0, 1]
    said = [words(f[0]).strip() for f in found if f]
    assert said == ["executed on NVIDIA H200, DSL 4.8.1", "not executed: no result of texgen verify has this figure",
                    "executed on NVIDIA H200, DSL 4.8.1 and found wrong: C(0,0) is 1", "not executed: no such GPU"]  # fmt: skip
    link = re.search(r'href="list.html#([^"]+)"', found[0][0])
    assert link and f'id="{link[1]}"' in built.text("list.html")
    listed = words(built.text("list.html"))
    assert "2 figures were executed on NVIDIA H200" in listed and "1 gave the exact result, 1 did not" in listed and "no such GPU" in listed


def test_stamps_follow_the_file(site: Site) -> None:
    site.page(f".. texgen:mma:: {ATOM}")
    assert "executed on" not in site.build().text("index.html")
    path = put(site, "verify", HEAD | {"entries": [executed(ATOM)]})
    second = site.build()
    assert "executed on NVIDIA H200" in second.text("index.html") and second.drawn == 0
    assert "executed on" not in site.build(texgen_stamps=False).text("index.html")
    path.unlink()
    assert "executed on" not in site.build().text("index.html")


def test_conflicts_stand_side_by_side(site: Site) -> None:
    put(site, "conflicts", CONFLICTS)
    site.page(".. texgen:results:: conflicts")
    text = words(site.build().text("index.html"))
    for part in ("agree for 2 of 3 pairs", "1 of 1 global", "Plain, wavefronts", "Padded, wavefronts", "Swizzled, wavefronts",
                 "32 predicted, 32 counted", "2 predicted, 1 counted (they differ)", "Where they differ: a broadcast", "neighbours"):  # fmt: skip
        assert part in text, part


def test_other_builders(site: Site) -> None:
    put(site, "bench", bench(kernel_entry()))
    put(site, "verify", HEAD | {"entries": [executed(ATOM)]})
    put(site, "conflicts", CONFLICTS)
    site.page(*(f".. texgen:results:: {k}" for k in ("bench", "verify", "conflicts")), f".. texgen:mma:: {ATOM}\n   :operand: C")
    latex = site.build("latex")
    tex = latex.text(next(p.name for p in latex.out.glob("*.tex")))
    assert latex.warnings == "" and "{pgfplots}" in tex and r"\begin{axis}" in tex and "(0.7500," in tex and "executed on NVIDIA H200" in tex
    assert r"torch float32 (TF32 off)" in tex
    text = site.build("text")
    plain = text.text("index.txt")
    assert text.warnings == "" and "0.75 to torch" in plain and "predicted, 32 counted" in plain and "executed on NVIDIA H200, DSL 4.8.1" in plain
    assert site.build("epub").warnings.count("texgen") == 0


@pytest.mark.pdflatex
def test_the_chart_compiles(site: Site, tmp_path: Path) -> None:
    if subprocess.run(["kpsewhich", "pgfplots.sty"], capture_output=True, check=False).returncode:
        pytest.skip("pgfplots is not installed")
    put(site, "bench", bench(kernel_entry(), kernel_entry("sgemm_naive")))
    site.page(".. texgen:results:: bench")
    latex = site.build("latex")
    tex = latex.text(next(p.name for p in latex.out.glob("*.tex")))
    picture = re.search(r"\\begin\{tikzpicture\}.*?\\end\{tikzpicture\}", tex, re.DOTALL)
    assert picture
    (tmp_path / "c.tex").write_text("\\documentclass{article}\\usepackage{pgfplots}\\DeclareUnicodeCharacter{00B7}{.}\\begin{document}" + picture[0] + "\\end{document}")
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "c.tex"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_a_chart_is_the_same_every_time() -> None:
    bars = [charts.Bar("one", "a", 0.5), charts.Bar("one", "b", 1.5), charts.Bar("two", "a", 1.0)]
    assert charts.svg(bars, "axis", 1.0) == charts.svg(bars, "axis", 1.0)


@pytest.mark.parametrize(
    ("sizes", "text"), [((4096, 4096, 4096), "4096³"), ((1 << 28, 1, 1), "2²⁸"), ((16777219, 1, 1), "16,777,219"), ((640, 480, 320), "640×480×320")]
)
def test_sizes(sizes: tuple[int, int, int], text: str) -> None:
    assert size(dict(zip("mnk", sizes, strict=True))) == text


def test_units() -> None:
    assert duration(2.5e-3) == "2.50 ms" and duration(3.69e-4) == "369.0 µs"
    assert value("flop_per_s", 5e13) == "50.0 TFLOP/s" and value("bytes_per_s", 4.37e12) == "4.37 TB/s"
    assert value("median_s", 1e-3) == "1.00 ms" and value("ratio_to_torch", 0.999) == "1.00"


def test_published_times_give_their_ratio() -> None:
    """R02: a row carries its dtype, and the times published there give 13.6 times the library's."""
    assert {k.dtype for k in KERNELS.values()} == {"float16", "float32"}
    assert value("ratio_to_torch", 0.0641e-3 / 0.872562e-3) == "0.07"


# --- the site's own tables ---------------------------------------------------------------------------------------------


@pytest.mark.dsl
def test_tables_of_the_pages_are_the_kernels() -> None:
    """A page draws from a table, so that it needs no DSL; the table is what the kernel's function gives."""
    for path in sorted((ROOT / "docs" / "kernels" / "tables").glob("*.json")):
        module = next(m for m in {k.module.rpartition(".")[2] for k in KERNELS.values()} if path.stem.startswith(m + "_"))
        live = texgen.read(f"texgen.kernels.{module}:{path.stem.removeprefix(module + '_')}")
        assert spec_hash(texgen.read(str(path))) == spec_hash(live), path.name


def test_pages_type_no_number() -> None:
    """Ratios, times and rates stand in pages through texgen:result and texgen:results alone."""
    for page in (*(ROOT / "docs" / "kernels").glob("*.rst"), ROOT / "docs" / "results" / "index.rst"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"\b\d+\.\d+\b|\d (TFLOP|TB/s|ms\b|µs|us\b)", text), page.name


# --- commands --------------------------------------------------------------------------------------------------------------


def test_bench_without_torch_is_one_sentence() -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['texgen', 'bench']; from texgen.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.strip() == "texgen: bench needs torch: pip install '.[gpu]'"
    from texgen.cli import app

    assert "--only" in CliRunner().invoke(app, ["bench", "--help"]).output
    done = subprocess.run([sys.executable, "-m", "texgen", "bench", "--only", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "sgemm_naive" in done.stderr and "Traceback" not in done.stderr


def test_everything_in_one_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert everything.main(["--emulate", "--quick", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "none-emulated" / "verify.json").read_text())["entries"][0]["status"] == "pass"
    assert capfd.readouterr().out.rstrip().splitlines()[-1].startswith("figures    1 exact, 0 wrong")
    assert sum(everything.LIMITS.values()) < 600
    lines = everything.short("bench", bench(kernel_entry())) + everything.short("conflicts", CONFLICTS)
    assert lines == ["sgemm_tiled      4096x4096x4096  0.75 to torch float32 (TF32 off), 0.20 to TF32", "conflicts  3 of 4 predictions counted"]


def test_everything_without_a_gpu_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(everything.importlib.util, "find_spec", lambda name: None)
    assert everything.main([]) == 1
    assert "needs torch: pip install" in capsys.readouterr().err
