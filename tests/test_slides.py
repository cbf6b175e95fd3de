"""Slides: the cells of every step are those of the table, pages are steps, and a page's animation can be done without."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from readback import SVG

import texgen
from texgen.batch.listing import read_list
from texgen.cli import app
from texgen.errors import UsageError
from texgen.render import engine

ATOM = "SM80_16x8x16_F32F16F16F32_TN"
TILED = {"atom_layout": "2,2,1", "tile": "32,32,16"}
X4 = "SM75_U32x4_LDSM_N"
SWIZZLE = "S<2,1,3> o 0 o (8,8):(8,1)"
HOSTILE = r'</style><script>alert(1)</script> \input{x} %$&_^~#{} "'
Cells = dict[str, set[tuple[int, int]]]


# --- the marks, read back --------------------------------------------------------------------------------------------


def tikz_steps(source: str) -> list[tuple[str, Cells]]:
    """(line, new cells by panel) of every step."""
    steps = []
    for number, (body, text) in enumerate(re.findall(r"^\\txgOn\{\d+\}\{\\txgStep\{\d+\}\{(.*)\}\{(.*)\}\}%$", source, re.MULTILINE), 1):
        assert f"\\txgOn{{{number}}}{{\\txgStep{{{number}}}" in source
        now: Cells = {}
        for key, runs in re.findall(r"\\txgIn\{(\w+)\}\{\\txgNow\{((?:\\N(?:\{\d+\}){4})+)\}\}", body):
            for c, r, c1, r1 in re.findall(r"\\N\{(\d+)\}\{(\d+)\}\{(\d+)\}\{(\d+)\}", runs):
                now.setdefault(key, set()).update((y, x) for y in range(int(r), int(r1)) for x in range(int(c), int(c1)))
        steps.append((text, now))
    return steps


def tikz_veils(source: str) -> dict[int, Cells]:
    """The cells that are veiled until a step."""
    veils: dict[int, Cells] = {}
    for part in source.split(r"\begin{lrbox}{\txgBox}\begin{tikzpicture}")[1:]:
        cells = veils[int(re.search(r"\\end\{lrbox\}\\txgStore\{(\d+)\}", part)[1])] = {}
        part = part.split(r"\end{tikzpicture}")[0]
        for key, body in re.findall(r"\\txgIn\{(\w+)\}\{(.*)\}%$", part, re.MULTILINE):
            for c, r, w, h in re.findall(r"\\R\{(\d+)\}\{(\d+)\}\{(\d+)\}\{(\d+)\}", body):
                cells.setdefault(key, set()).update((int(r) + i, int(c) + j) for i in range(int(h)) for j in range(int(w)))
    return veils


def svg_parts(source: str, aspect: float) -> tuple[dict[int, Cells], dict[float, Cells]]:
    """(cells that come in at a step, cells outlined from a second on)."""
    parts: dict[int, Cells] = {}
    now: dict[float, Cells] = {}

    def cells(d: str) -> Iterator[tuple[int, int]]:
        for x, y, w, h in re.findall(r"M(\S+) (\S+?)h([\d.]+)v([\d.]+)h", d):
            r, c = round(float(y) / 24), round(float(x) / (24 * aspect))
            yield from ((r + i, c + j) for i in range(round(float(h) / 24)) for j in range(round(float(w) / (24 * aspect))))

    for panel in ET.fromstring(source).iter(f"{SVG}g"):
        if panel.get("class") != "txg-panel":
            continue
        key = panel.get("data-panel")
        for group in panel.findall(f"{SVG}g"):
            name = re.search(r"animation-name:txg-\w+-(\d+)$", group.get("style", ""))
            filled = [p.get("d") for p in group if re.fullmatch(r"txg-(\d+|Memory|Hole|Dim)", p.get("class", ""))]
            if filled:
                at = parts.setdefault(int(name[1]) if name else 0, {}).setdefault(key, set())
                for d in filled:
                    assert not at & set(cells(d)), "a cell is filled twice"
                    at.update(cells(d))
        for path in panel.iter(f"{SVG}path"):
            if path.get("class") == "txg-now":
                delay = re.search(r"delay:([\d.]+)s", path.get("style", ""))
                now.setdefault(float(delay[1]) if delay else 0.0, {})[key] = set(cells(path.get("d")))
    return parts, now


def table_cells(drawing: Any, threads: slice, values: slice = slice(None)) -> Cells:
    """The panel cells of table entries, straight from the table."""
    found = {}
    for key, operand in drawing.spec.operands().items():
        picked = operand.tv[threads, values].reshape(-1).tolist()
        pairs = {(i % operand.tile[0], i // operand.tile[0]) for i in picked}
        if pairs and operand.memory != "smem":
            found[key] = {(c, r) for r, c in pairs} if key == "B" else pairs
    return found


def first_shown(steps: list[Cells]) -> list[Cells]:
    """Every step's cells without those of the steps before."""
    seen: Cells = {}
    out = []
    for step in steps:
        out.append({k: new for k, v in step.items() if (new := v - seen.get(k, set()))})
        for k, v in step.items():
            seen.setdefault(k, set()).update(v)
    return out


# --- which cells a step brings ---------------------------------------------------------------------------------------

WALKS: list[tuple[str, dict[str, Any], str, list[tuple[slice, slice]]]] = [
    (ATOM, {}, "thread", [(slice(t, t + 1), slice(None)) for t in range(32)]),
    (ATOM, {}, "value", [(slice(None), slice(v, v + 1)) for v in range(8)]),
    (ATOM, TILED, "thread", [(slice(t, t + 2), slice(None)) for t in range(0, 128, 2)]),
    (ATOM, TILED, "warp", [(slice(t, t + 32), slice(None)) for t in range(0, 128, 32)]),
    ("SM75_U32x4_LDSM_N", {}, "thread", [(slice(t, t + 1), slice(None)) for t in range(32)]),
    ("SM90_64x32x16_F32F16F16_SS", {"steps": 16}, "thread", [(slice(t, t + 8), slice(None)) for t in range(0, 128, 8)]),
    ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8"}, "value", [(slice(None), slice(v, v + 1)) for v in range(4)]),
]  # fmt: skip


@pytest.mark.parametrize(("target", "options", "by", "walk"), WALKS, ids=lambda x: str(x)[:20])
def test_cells_of_every_step_are_those_of_the_table(target: str, options: dict[str, Any], by: str, walk: Any) -> None:
    drawing = texgen.figure(target, slides=by, **options)
    wanted = [table_cells(drawing, *picked) for picked in walk]
    steps = tikz_steps(drawing.tikz())
    assert [now for _, now in steps] == wanted
    new = first_shown(wanted)
    assert tikz_veils(drawing.tikz()) == {i + 1: cells for i, cells in enumerate(new) if i and cells}
    parts, now = svg_parts(drawing.svg(), drawing.figure.aspect)
    assert [now[t] for t in sorted(now)] == wanted
    held = set(drawing.spec.operands()) & {k for cells in wanted for k in cells}
    assert [{k: v for k, v in parts.get(i, {}).items() if k in held} for i in range(len(new))] == new


def test_a_line_names_the_cells() -> None:
    """Lane l holds rows l/4 and l/4 + 8, columns 2 (l mod 4) and the next (PTX ISA, m16n8k16)."""
    steps = tikz_steps(texgen.figure(ATOM, slides="thread", operand="C").tikz())
    for lane, (text, _) in enumerate(steps):
        r, c = lane // 4, 2 * (lane % 4)
        assert text == f"T{lane}: C({r},{c}) C({r},{c + 1}) C({r + 8},{c}) C({r + 8},{c + 1})"
    assert tikz_steps(texgen.figure(ATOM, slides="warp", **TILED).tikz())[1][0] == "W1 (T32--T63): 256 of A, 256 of B, 256 of C"


def test_columns_and_rows_of_k_meet() -> None:
    drawing = texgen.figure(ATOM, slides="k")
    steps = tikz_steps(drawing.tikz())
    assert len(steps) == 16
    for k, (text, now) in enumerate(steps):
        assert now == {"A": {(m, k) for m in range(16)}, "B": {(k, n) for n in range(8)}}
        assert text == rf"k = {k}: C(m,n) += A(m,{k}) $\cdot$ B(n,{k}), {k + 1} of 16 terms"
    assert r"\txgIn{C}{\pgfmathsetmacro\txgLeft{1-#1/16}" in drawing.tikz()  # C comes in by a sixteenth a step
    svg = drawing.svg()
    levels = re.search(r"@keyframes txg-\w+-fading\{(.*?) \}", svg)[1]
    assert [float(x) for x in re.findall(r"opacity:([\d.]+)", levels)] == [*(pytest.approx((i + 1) / 16, abs=1e-3) for i in range(16)), 1]


def test_offsets_come_in_their_order() -> None:
    """A swizzle's chunks of two elements come one after another, each where the layout puts it."""
    drawing = texgen.figure(SWIZZLE, bits=16, swizzle_unit="elements", slides="offset")
    offsets = np.array([[8 * r + c for c in range(8)] for r in range(8)])
    after = offsets ^ ((offsets >> 3) & 0b110)  # bits 4 and 5 xored into bits 1 and 2
    assert np.array_equal(drawing.spec.offsets, after)
    steps = tikz_steps(drawing.tikz())
    assert len(steps) == 32
    for i, (text, now) in enumerate(steps):
        for key, table in (("before", offsets), ("after", after)):
            assert now[key] == {(r, c) for r in range(8) for c in range(8) if table[r, c] // 2 == i}
        assert text.startswith(f"offsets {2 * i} to {2 * i + 1}: before ")


@pytest.mark.parametrize("by", ["thread", "k"])
def test_no_label_is_lost_in_parts(by: str) -> None:
    drawing = texgen.figure(ATOM, slides=by, caption=False, **TILED)
    moving, still = (
        [
            sorted((t.get("x"), t.get("y"), t.text) for g in panel.iter(f"{SVG}g") if g.get("class") == "txg-labels" for t in g)
            + sorted(p.get("d").count("M") for p in panel.iter(f"{SVG}path") if p.get("class") == "txg-grid")
            for panel in ET.fromstring(source).iter(f"{SVG}g") if panel.get("class") == "txg-panel"
        ]
        for source in (drawing.svg(), drawing.finished().svg())
    )  # fmt: skip
    assert moving == still and sum(len(panel) for panel in still) > 2000


@pytest.mark.parametrize("steps", [2, 16, 64])
def test_many_threads_share_steps(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = texgen.figure("SM90_64x8x16_F32F16F16_RS", slides="thread", steps=steps)
    assert len(tikz_steps(drawing.tikz())) == steps
    assert f"{128 // steps} threads a step" in capsys.readouterr().err
    assert f"in {steps} steps" in drawing.figure.alt


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize(("target", "options", "by", "mend"), [
    ("S<3,3,3> o 0 o (8,64):(64,1)", {"bits": 16, "label": "full"}, "offset", "fewer --rows and --cols"),
    (ATOM, {**TILED, "label": "full"}, "k", "one --operand, fewer --rows and --cols, --label thread, or an --overview"),
    (ATOM, {**TILED, "label": "thread"}, "k", "one --operand, fewer --rows and --cols, or an --overview"),
    (ATOM, {"operand": "C"}, "thread", ""), ("(8,8):(8,1)", {}, "offset", ""), (ATOM, {}, "k", ""), (X4, {"operand": "D"}, "thread", ""),
])  # fmt: skip
def test_labels_that_are_hard_to_read_in_a_frame_are_said(
    target: str, options: dict[str, Any], by: str, mend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The size that is said is that of the page's own labels, measured against 4 pt of a slide of 160 mm."""
    pdf = texgen.figure(target, slides=by, steps=2, **options).save(tmp_path / "a.pdf")
    said = re.search(r"labels are ([\d.]+) pt in a frame, hard to read: draw (.*)", capsys.readouterr().err)
    assert bool(said) == bool(mend) and (said is None or said[2].startswith(mend))
    boxes = subprocess.run(["pdftotext", "-bbox", "-l", "1", str(pdf), "-"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r'yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">[TV]\d+<', boxes)
    if found:  # a layout's labels are numbers like its axes'
        size = min(float(b) - float(a) for a, b in found) / 0.885  # the height of a line of 1 pt in that font
        assert size == pytest.approx(float(said[1]), rel=0.05) if said else size >= 4.0


@pytest.mark.parametrize(("target", "options", "by", "labels", "said"), [
    (ATOM, {}, "k", r"T\d+|V\d", ""),
    (ATOM, TILED, "k", "", "labels are left out"), (ATOM, TILED, "thread", "", "labels are left out"),
    (ATOM, TILED, "warp", r"W\d( W\d)?", "fewer labels are drawn"),
    (ATOM, {**TILED, "operand": "C"}, "thread", r"T\d+", "fewer labels are drawn"),
    (X4, {}, "value", r"V\d", "fewer labels are drawn"),
    ("S<3,3,3> o 0 o (8,64):(64,1)", {"bits": 16}, "offset", "", "labels are left out"),
    ("SM90_64x256x16_F32F16F16_SS", {"operand": "C"}, "thread", "", ""),  # names of warps would come in piece by piece
    ("SM90_64x256x16_F32F16F16_SS", {"operand": "C"}, "warp", r"W\d", ""),
    ("SM90_64x16x16_F32F16F16_SS", {"overview": True}, "thread", r"T\d+|V\d", "labels are 1.9 pt"),
])  # fmt: skip
def test_a_frame_has_the_labels_that_can_be_read(
    target: str, options: dict[str, Any], by: str, labels: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says which it leaves out."""
    drawing = texgen.figure(target, slides=by, steps=2, **options)
    capsys.readouterr()
    tex = drawing.tex()
    drawn = {x for x in re.findall(r"\\[XY]\{([^{}]+)\}", "".join(re.findall(r"^\\txgRow.*$", tex, re.MULTILINE)))}
    drawn |= set(re.findall(r"^\\txgBlockName(?:\{[^{}]*\}){4}\{([^{}]+)\}", tex, re.MULTILINE))
    assert bool(drawn) == bool(labels) and all(re.fullmatch(labels, x) for x in drawn), drawn
    remark = capsys.readouterr().err
    assert said in remark if said else "pt in a frame" not in remark
    assert ("--label full" in remark) == ("labels are left out" in remark or "fewer labels" in remark)


def test_panels_stand_side_by_side_where_labels_need_it() -> None:
    """k by k, A's column and B's row point at C's cells where that can be read: m8n8k4, not m16n8k16."""
    for target, corner in (("SM80_8x8x4_F64F64F64F64_TN", True), (ATOM, False)):
        a, b, c = (re.search(rf"csname txgIn@{x}\\endcsname#1\{{\\begin\{{scope\}}\[shift=\{{\(([\d.]+),([\d.]+)\)", texgen.figure(target, slides="k").tex()) for x in "ABC")
        assert ((b[1] == c[1]) and (a[2] == c[2])) == corner and (a[2] == b[2] == c[2]) != corner


@pytest.mark.parametrize(("target", "options", "by", "said"), [
    (ATOM, {}, "offset", "--slides thread, value or k fits"), (ATOM, {}, "warp", "--slides thread, value or k fits"),
    (ATOM, {"operand": "C"}, "k", "--slides thread or value fits"), ("(8,8):(8,1)", {}, "thread", "--slides offset fits"),
    ("SM75_U32x4_LDSM_N", {}, "k", "--slides thread or value fits"), ("(1,1):(1,1)", {}, "offset", "nothing to build up"),
    (ATOM, {}, "cell", "must be one of thread, value, warp, k, offset"),
])  # fmt: skip
def test_what_does_not_fit_is_said_in_a_sentence(target: str, options: dict[str, Any], by: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        texgen.figure(target, slides=by, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".png", ".html", ".txt"])
def test_a_form_without_steps_is_refused(suffix: str, tmp_path: Path) -> None:
    """In one command that also writes frames, in a list and in the library; nothing is written."""
    named = r"\.tikz, \.tex, \.pdf, \.svg"
    done = CliRunner().invoke(app, ["render", "(8,8):(8,1)", "--slides", "offset", "-o", str(tmp_path / "a.svg"), "-o", str(tmp_path / f"a{suffix}")])
    assert isinstance(done.exception, UsageError) and re.search(f"A {suffix} shows no steps.*{named}", str(done.exception))
    (tmp_path / "list.toml").write_text(f"[[figure]]\ntarget = '(8,8):(8,1)'\nslides = 'offset'\noutput = ['a.svg', 'a{suffix}']\n")
    with pytest.raises(UsageError, match=f"figure 1: A {suffix} shows no steps"):
        read_list(tmp_path / "list.toml")
    with pytest.raises(UsageError, match=named):
        texgen.figure("(8,8):(8,1)", slides="offset").save(tmp_path / f"a{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == ["list.toml"]
    with pytest.raises(UsageError, match=r"-o talk\.pdf"):
        CliRunner().invoke(app, ["render", "(8,8):(8,1)", "--slides", "offset"], catch_exceptions=False)
    assert texgen.figure("(8,8):(8,1)", slides="offset").save(tmp_path / "a.json").exists()


def test_the_same_every_time_and_near_the_size_of_the_figure() -> None:
    first, again = (texgen.figure(ATOM, **TILED).slides("thread") for _ in range(2))
    for form in ("tikz", "tex", "svg"):
        assert getattr(first, form)() == getattr(again, form)()
    assert len(first.svg()) < 1.6 * len(first.finished().svg())
    assert first.finished().svg() == texgen.figure(ATOM, **TILED).svg()


# --- pages -----------------------------------------------------------------------------------------------------------


def pages(pdf: bytes, folder: Path) -> list[str]:
    (folder / "x.pdf").write_bytes(pdf)
    done = subprocess.run(["pdftotext", "-layout", "x.pdf", "-"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split("\f")[:-1]


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize(("target", "options", "by", "lines"), [
    (ATOM, {"title": HOSTILE}, "thread", [f"T{t}:" for t in range(32)]),
    ("SM90_64x8x16_F32F16F16_SS", {}, "k", [f"k = {k}:" for k in range(16)]),
])  # fmt: skip
def test_a_page_is_a_step(target: str, options: dict[str, Any], by: str, lines: list[str], tmp_path: Path) -> None:
    drawing = texgen.figure(target, slides=by, **options)
    warnings: list[str] = []
    made = pages(engine.compile_pdf(drawing.tex(), "pdflatex", warnings=warnings), tmp_path)
    assert len(made) == len(lines) and not [w for w in warnings if w.startswith(("Missing", "Overfull"))]
    for page, line in zip(made, lines, strict=True):
        assert len([x for x in page.splitlines() if re.match(r"\s*(T\d+|k = \d+): ", x)]) == 1
        assert re.search(rf"^\s*{line} ", page, re.MULTILINE)
        if "title" in options:
            assert r"<script>alert(1)</script> \input{x}" in page


FOREIGN = r"""\documentclass[aspectratio=43%s]{beamer}
\usetheme{Madrid}\usecolortheme{albatross}
\usepackage{tikz}
\begin{document}
\begin{frame}{Mine}\begin{itemize}\item<1-> One \item<2-> Two\end{itemize}\end{frame}
\begin{frame}{Threads}\input{talk.tikz}\par After it.\end{frame}
\begin{frame}[fragile]{Smaller}\begin{columns}\column{.5\linewidth}\input{talk.tikz}\column{.4\linewidth}\verb|x_y|\end{columns}
\end{frame}
\end{document}
"""
ARTICLE = r"\documentclass{article}\usepackage{tikz}\begin{document}Before \input{talk.tikz} after.\end{document}"


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_frames_in_the_talk_of_another(tmp_path: Path) -> None:
    """In a theme of its own, twice in two sizes; a handout and an article get the finished figure once."""
    talk = texgen.figure("(4,2):(1,4)", tv=True, tile="4,2", slides="value").save(tmp_path / "talk.tikz")
    steps = len(tikz_steps(talk.read_text()))
    assert steps == 2
    made = pages(engine.compile_pdf(FOREIGN % "", "pdflatex", [tmp_path]), tmp_path)
    assert len(made) == 2 + 2 * steps
    assert [re.findall(r"V\d: \(", page) for page in made] == [[], [], ["V0: ("], ["V1: ("], ["V0: ("], ["V1: ("]]
    assert "After it." in made[3] and "x_y" in made[5]
    made = pages(engine.compile_pdf(FOREIGN % ",handout", "pdflatex", [tmp_path]), tmp_path)
    assert [len(re.findall("All 2 values", page)) for page in made] == [0, 1, 1]
    made = pages(engine.compile_pdf(ARTICLE, "pdflatex", [tmp_path]), tmp_path)
    assert len(made) == 1 and "All 2 values" in made[0] and "V0: (" not in made[0] and "after." in made[0]


# --- the browser -----------------------------------------------------------------------------------------------------

SEEK = "t => document.getAnimations().forEach(a => { a.pause(); a.currentTime = 1000 * t; })"
SEEN = """selector => [...document.querySelectorAll(selector)].filter(x => getComputedStyle(x).visibility === 'visible')
    .map(x => x.textContent || x.getAttribute('style') || x.getAttribute('d'))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def opened(browser: Any, svg: str, motion: str = "no-preference", scheme: str = "light") -> Any:
    context = browser.new_context(reduced_motion=motion, color_scheme=scheme)
    page = context.new_page()
    page.set_content(f"<body style='margin:0'>{svg}</body>")
    return page


@pytest.mark.chromium
@pytest.mark.xdist_group("browser")
def test_a_browser_shows_the_steps(browser: Any) -> None:
    """At the middle of every step its line and the parts up to it are seen; then all is finished and stays so."""
    drawing = texgen.figure(ATOM, slides="thread", operand="C", title=HOSTILE)
    page = opened(browser, drawing.svg())
    lines = [re.sub(r"\s+", " ", text) for text, _ in tikz_steps(drawing.tikz())]
    each = 16 / 32
    for step in (0, 1, 17, 31):
        page.evaluate(SEEK, (step + 0.5) * each)
        assert page.evaluate(SEEN, ".txg-step") == [lines[step]]
        assert len(page.evaluate(SEEN, ".txg-now")) == 1
        assert len(page.evaluate(SEEN, ".txg-part")) == step
        assert page.evaluate(SEEN, ".txg-done") == []
    page.evaluate("document.getAnimations().forEach(a => a.finish())")
    assert page.evaluate(SEEN, ".txg-step, .txg-now") == [] and len(page.evaluate(SEEN, ".txg-part")) == 31
    assert page.evaluate(SEEN, ".txg-done") == ["All 32 threads, one a step"]
    assert page.locator("script").count() == 0


@pytest.mark.chromium
@pytest.mark.xdist_group("browser")
def test_opened_alone_it_is_whole_and_in_an_image_as_large_as_it_says(browser: Any, tmp_path: Path) -> None:
    svg = texgen.figure(ATOM, slides="k").svg().replace("reduced-motion:no-preference", "reduced-motion:none")  # stands still
    (tmp_path / "a.svg").write_text(svg)
    (tmp_path / "plain.svg").write_text(re.sub(r"\.[\w-]+:root\{[^}]*\}", "", svg))
    assert (tmp_path / "plain.svg").read_text() != svg
    page = browser.new_context(viewport={"width": 1000, "height": 500}, reduced_motion="reduce").new_page()
    page.goto((tmp_path / "a.svg").as_uri())
    low, right = page.evaluate("['bottom', 'right'].map(k => Math.max(...[...document.querySelectorAll('text')].map(t => t.getBoundingClientRect()[k])))")
    assert 300 < low <= 500 and right <= 1000
    seen = []
    for name in ("a", "plain"):
        (tmp_path / f"{name}.html").write_text(f"<body style='margin:0'><img src='{name}.svg'><img src='{name}.svg' width=300>")
        page.goto((tmp_path / f"{name}.html").as_uri())
        page.wait_for_function("[...document.images].every(i => i.complete)")
        size = page.evaluate("[document.images[0].naturalWidth, document.images[0].naturalHeight]")
        seen.append((size, page.screenshot(full_page=True)))
    root = ET.fromstring(svg)
    assert seen[0] == seen[1] and seen[0][0] == pytest.approx([float(root.get(k)) for k in ("width", "height")], abs=1)


@pytest.mark.chromium
@pytest.mark.xdist_group("browser")
def test_pointing_or_the_keyboard_pauses(browser: Any) -> None:
    page = opened(browser, texgen.figure(ATOM, slides="k").svg())
    states = "[...new Set(document.getAnimations().map(a => a.playState))]"
    assert page.evaluate(states) == ["running"]
    page.mouse.move(100, 100)
    page.wait_for_function(f"JSON.stringify({states}) === '[\"paused\"]'")
    page.mouse.move(1200, 700)
    page.wait_for_function(f"JSON.stringify({states}) === '[\"running\"]'")
    page.keyboard.press("Tab")
    page.wait_for_function(f"JSON.stringify({states}) === '[\"paused\"]'")
    assert page.evaluate("Math.max(...document.getAnimations().map(a => a.effect.getComputedTiming().iterations))") == 3


@pytest.mark.chromium
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize(("by", "scheme"), [("thread", "dark"), ("k", "light")])
def test_without_motion_it_is_the_finished_figure(browser: Any, by: str, scheme: str) -> None:
    """Readers who want less motion see what the end of the animation shows; on paper nothing moves either."""
    drawing = texgen.figure(ATOM, slides=by, caption=False, theme="auto")
    still = opened(browser, drawing.svg(), "reduce", scheme)
    assert still.evaluate("document.getAnimations().length") == 0
    moving = opened(browser, drawing.svg(), scheme=scheme)
    begun = moving.screenshot()
    moving.evaluate("document.getAnimations().forEach(a => a.finish())")
    finished = still.screenshot()
    assert moving.screenshot() == finished != begun
    moving = opened(browser, drawing.svg(), scheme=scheme)
    moving.emulate_media(media="print")
    assert moving.evaluate("document.getAnimations().length") == 0


# --- a page of Sphinx ------------------------------------------------------------------------------------------------


def test_a_page_is_animated_and_a_book_is_finished(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    from sphinx_site import Site

    site = Site(tmp_path / "site")
    site.page(f".. texgen:mma:: {ATOM}\n   :operand: C\n   :animate: thread\n   :caption: Thread by thread.")
    built = site.build()
    assert built.warnings == ""
    picture = built.figures()[0]
    assert 'data-slides="thread"' in picture and "prefers-reduced-motion" in picture and "built up thread by thread" in picture
    book = site.build("latex")
    source = next(p for p in (book.out / "_texgen").glob("*.tikz")).read_text()
    assert book.warnings == "" and source == texgen.figure(ATOM, operand="C").tikz()
    wrong = Site(tmp_path / "wrong")
    wrong.page(f".. texgen:mma:: {ATOM}\n   :operand: C\n   :animate: k")
    assert "thread or value fits" in wrong.build().warnings
