"""The house style: ``texgen.sty`` with its keys and presets, read back out of compiled pages, and its gallery."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_tex import F16, pixels

import texgen
from texgen.cli import app
from texgen.figures.palette import PALETTES
from texgen.render.sty import FILLS, sty

DOCS = Path(__file__).parents[1] / "docs"
STY = sty()
PRESETS = {name: keys for name, keys in re.findall(r"^\\txg@preset\{([^}]+)\}\{[^}]*\}\{([^}]*)\}", STY, re.MULTILINE)}
KEYS = set(re.findall(r"^\\txg@(?:key|stored|length|choice)\{([^}#]+)\}", STY, re.MULTILINE)) | {"preset"}
FRAGMENTS = {
    "c": (F16, {"operand": "C"}),
    "rows": (F16, {"operand": "C", "rows": "0:8"}),
    "full": (F16, {}),
    "shared": (F16, {"atom_layout": "2,1,1", "operand": "B"}),
    "overview": (F16, {"atom_layout": "2,2,1", "tile": "64,64,16", "overview": True}),
    "memory": ("SM90_64x8x16_F32F16F16_SS", {}),
}
BIG = "\\documentclass{article}\\usepackage[paperwidth=90cm,paperheight=90cm,margin=1cm]{geometry}\\pagestyle{empty}"
SMALL = BIG.replace("90cm", "20cm")


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """A folder with ``texgen.sty`` and fragments."""
    folder = tmp_path_factory.mktemp("paper")
    (folder / "texgen.sty").write_text(STY)
    for name, (target, options) in FRAGMENTS.items():
        (folder / f"{name}.tikz").write_text(texgen.figure(target, **options).tikz())
    return folder


class Run:
    """One document, compiled."""

    def __init__(self, folder: Path, source: str, program: str = "pdflatex", runs: int = 1) -> None:
        self.folder = folder
        (folder / "x.tex").write_text(source)
        (folder / "x.aux").unlink(missing_ok=True)
        for _ in range(runs):
            subprocess.run([program, "-interaction=nonstopmode", "x.tex"], cwd=folder, capture_output=True, check=False)
        # TeX breaks lines of its log at 79 characters
        self.log = (folder / "x.log").read_text(errors="replace")
        self.pdf = (folder / "x.pdf").read_bytes() if (folder / "x.pdf").exists() else b""
        (folder / "x.pdf").unlink(missing_ok=True)

    @property
    def errors(self) -> list[str]:
        return re.findall(r"^! .*$", self.log, re.MULTILINE)

    @property
    def said(self) -> str:
        return re.sub(r"\n(?:\(texgen\))? *", "", self.log)

    def words(self) -> list[tuple[str, float, float, float]]:
        """(word, x and y of its middle, height of its line), all in bp."""
        (self.folder / "w.pdf").write_bytes(self.pdf)
        boxes = subprocess.run(["pdftotext", "-bbox", "w.pdf", "-"], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        found = re.findall(r'xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">([^<]+)<', boxes)
        return [(w, (float(a) + float(c)) / 2, (float(b) + float(d)) / 2, float(d) - float(b)) for a, b, c, d, w in found]

    def colors(self, dpi: int = 60) -> set[str]:
        """Colours that fill a fair part of the page."""
        import numpy as np

        page = pixels(self.pdf, self.folder, dpi).astype(int)
        shades, counts = np.unique(page[..., 0] << 16 | page[..., 1] << 8 | page[..., 2], return_counts=True)
        return {f"{s:06X}" for s, n in zip(shades, counts, strict=True) if n > 100}


def document(body: str, options: str = "", head: str = BIG) -> str:
    return f"{head}\\usepackage[{options}]{{texgen}}\\begin{{document}}{body}\\end{{document}}"


# --- the file ------------------------------------------------------------------------------------------------------------


def test_the_command_writes_it_whole(tmp_path):
    done = CliRunner().invoke(app, ["sty", "-o", str(tmp_path / "style")])
    assert done.exit_code == 0 and Path(done.output.strip()) == tmp_path / "style" / "texgen.sty"
    assert (tmp_path / "style" / "texgen.sty").read_text() == STY == CliRunner().invoke(app, ["sty"]).output
    assert re.search(r"^\\ProvidesPackage\{texgen\}\[\d{4}-\d\d-\d\d v" + re.escape(texgen.__version__) + " ", STY, re.MULTILINE)


def test_it_has_every_palette():
    for name, colors in PALETTES.items():
        text = re.search(rf"txg@p@{name}\\endcsname\{{(.*)\}}", STY)[1]
        assert re.findall(r"\\txg@fill\{(\d+)\}\{(\w+)\}", text) == [(str(i), colors[i % len(colors)]) for i in range(FILLS)]


def test_the_page_tells_of_every_key_and_preset():
    page = (DOCS / "start" / "style.rst").read_text()
    assert {"width", "cell", "palette", "label font"} < KEYS and list(PRESETS) == ["one column", "two columns", "beamer", "poster", "bw"]
    assert not [key for key in KEYS if not re.search(rf"^   \* - .*``{key}``", page, re.MULTILINE)]
    for name, keys in PRESETS.items():
        size = re.search(r"smallest text=(\d+)pt", keys)
        assert re.search(rf"\* - ``{name}``\n     - {size[1] + ' pt' if size else 'as before'}\n", page), name


# --- sizes ---------------------------------------------------------------------------------------------------------------

MEDIA = {
    "one column": ("345pt", "12cm"), "two columns": ("240pt", "12cm"), "beamer": ("307pt", "240pt"), "poster": ("38cm", "60cm"),
}  # fmt: skip
RULER = r"\newpage{\sffamily\fontsize{10}{10}\selectfont T12345}"


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("preset", MEDIA)
def test_nothing_is_smaller_than_a_preset_promises(paper, preset):
    """Every label and number of six figures, against a word of 10 pt in the same font."""
    width, height = MEDIA[preset]
    figures = "".join(rf"\begin{{minipage}}{{{width}}}\texgenfigure{{{name}}}\end{{minipage}}\newpage " for name in FRAGMENTS)
    run = Run(paper, document(rf"\setlength\textheight{{{height}}}\noindent " + figures + RULER, preset, BIG + "\\usepackage{lmodern}\\usepackage[T1]{fontenc}"))
    assert not run.errors
    words = run.words()
    ten = next(h for w, _, _, h in words if w == "T12345")
    sizes = [10 * h / ten for w, _, _, h in words if re.fullmatch(r"[TV]?\d{1,3}", w)]
    least = float(re.search(r"smallest text=(\d+)pt", PRESETS[preset])[1])
    assert len(sizes) > 60 and min(sizes) >= least - 0.05
    assert "Overfull \\hbox" not in run.log


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_what_is_left_out_is_said_with_its_size(paper):
    run = Run(paper, document(r"\noindent\begin{minipage}{240pt}\texgenfigure{full}\end{minipage}", "two columns"))
    assert re.search(r"full: left out, for it would be smaller thansmallest text=5pt:.*labels of cells at 3\.\dpt.*--operand", run.said)
    assert run.said.count("left out") == 1
    assert "(M×K)" in " ".join(w for w, *_ in run.words()) and "T0" not in {w for w, *_ in run.words()}
    whole = Run(paper, document(r"\noindent\begin{minipage}{240pt}\texgenfigure[labels=all]{full}\end{minipage}", "two columns"))
    assert "T0" in {w for w, *_ in whole.words()}


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize(("tiles", "cols", "kept", "lost"), [(8, "0:18", {"7.0", "17"}, set()), (8, "", {"19"}, {"7.0"}), (14, "0:26", set(), {"7.0", "19"})])
def test_a_timeline_in_a_column_keeps_the_names_of_its_rows(paper, tiles, cols, kept, lost):
    """The stages and operations, what the colours mean, and the advice that is right for a timeline."""
    (paper / "time.tikz").write_text(texgen.timeline(3, tiles, 2, cols=cols).tikz())
    run = Run(paper, document(r"\noindent\begin{minipage}{229.5pt}\texgenfigure{time}\end{minipage}\newpage " + RULER, "two columns"))
    words = run.words()
    said = {w for w, *_ in words}
    assert not run.errors and "Overfull" not in run.log
    assert {"stage", "wait", "compute", "flight"} | kept <= said and not said & lost
    ten = next(h for w, _, _, h in words if w == "T12345")
    assert min(h for w, _, _, h in words if w in ("compute", "barrier", "flight")) >= (5 - 0.05) / 10 * ten
    assert ("left out" in run.said) == bool(lost) and ("(fewer --cols, or fewer --k-tiles)" in run.said) == bool(lost)


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_beside_text_on_a_slide_a_figure_keeps_labels_axes_and_legend(paper):
    """The C operand in .55 of a frame's width, as an arrow to T14 needs it."""
    body = r"\begin{frame}{C}\begin{columns}\begin{column}{.55\textwidth}\texgenfigure{c}\end{column}\end{columns}\end{frame}"
    run = Run(paper, document(body, "beamer", r"\documentclass[aspectratio=169]{beamer}"))
    words = {w for w, *_ in run.words()}
    assert not run.errors and "left out" not in run.said
    assert {"T14", "V3", "15", "Colour:"} <= words


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_in_a_column_an_overview_keeps_the_names_of_its_blocks(paper):
    made = Run(paper, document(r"\begin{minipage}{84mm}\texgenfigure{overview}\end{minipage}", "two columns"))
    heights = [height for word, _, _, height in made.words() if re.fullmatch(r"W\d", word)]
    assert len(heights) >= 4 and min(heights) > 0.88 * 5 and "names of blocks" not in made.said  # 0.89 of its font's size
    assert "Draw less of it (one --operand, fewer --rows and --cols, or --label thread)" in made.said.replace("\n", "")
    made = Run(paper, document(r"\begin{minipage}{15mm}\texgenfigure{overview}\end{minipage}", "two columns"))
    assert "names of blocks at " in made.said and not [w for w, *_ in made.words() if w.startswith("W")]


@pytest.mark.pdflatex
def test_sizes_follow_what_is_shown(paper):
    """Hidden parts take no room: boxes with and without them, in cells."""
    names = {"all": "", "title": "title=false", "caption": "caption=false", "legend": "legend=false", "axes": "axes=false", "none": "title=false,caption=false,legend=false"}
    body = "".join(rf"\sbox0{{\texgenfigure[cell=10pt,{keys}]{{c}}}}\typeout{{SIZE {n} \the\wd0 \the\dimexpr\ht0+\dp0}}" for n, keys in names.items())
    body += r"\sbox0{\texgenfigure[width=300pt,caption=false,title=false]{full}}\typeout{SIZE wide \the\wd0 \the\ht0}"
    body += r"\sbox0{\texgenfigure[width=300pt,height=100pt]{c}}\typeout{SIZE high \the\wd0 \the\dimexpr\ht0+\dp0}"
    run = Run(paper, document(body))
    size = {n: (float(w), float(h)) for n, w, h in re.findall(r"^SIZE (\w+) ([\d.]+)pt([\d.]+)pt", run.log, re.MULTILINE)}
    assert not run.errors and set(size) == {*names, "wide", "high"}
    size_10 = 0.42 * 10
    assert size["all"][1] - size["caption"][1] == pytest.approx(7 * 1.45 * size_10, abs=1)
    assert size["all"][1] - size["title"][1] == pytest.approx(1.9 * size_10, abs=1.5)
    assert size["none"][1] < 16 * 10 + 4 * size_10
    assert size["none"][0] <= size["caption"][0] < size["all"][0]
    assert size["wide"][0] == pytest.approx(300, rel=0.03) and size["wide"][0] <= 300
    assert size["high"][1] == pytest.approx(100, rel=0.05)


@pytest.mark.pdflatex
def test_without_keys_the_package_changes_nothing(paper):
    pages = []
    for package in ("tikz", "texgen"):
        run = Run(paper, f"{BIG}\\usepackage{{{package}}}\\begin{{document}}\\input{{full.tikz}}\\end{{document}}")
        assert not run.errors
        pages.append(pixels(run.pdf, paper, 40))
    assert (pages[0] == pages[1]).all()


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_keys_are_local_and_what_is_set_by_hand_goes_first(paper):
    def spread(*before: str) -> list[float]:
        body = "".join(b + r"\input{c.tikz}\newpage " if b.startswith("\\") else rf"\texgenfigure[{b}]{{c}}\newpage " for b in before)
        xs = [x for w, x, _, _ in Run(paper, document(body, "cell=4mm,legend=false,caption=false")).words() if re.fullmatch(r"T\d+", w)]
        pages = [xs[i : i + 128] for i in range(0, len(xs), 128)]
        return [(max(p) - min(p)) / 7 * 25.4 / 72 for p in pages]

    assert spread("", "cell=8mm", r"\begingroup\texgenset{cell=2mm}\endgroup", r"\relax\newcommand*\txgCell{3mm}") == pytest.approx([4, 8, 4, 3], rel=0.02)
    assert spread("width=5cm, cell=6mm", "cell=6mm, largest cell=2mm") == pytest.approx([6, 2], rel=0.02)


# --- colours and arrows --------------------------------------------------------------------------------------------------


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("name", [*PALETTES, "figure"])
def test_palettes_have_their_colors_on_paper(paper, name):
    shown = Run(paper, document(rf"\texgenfigure[cell=6mm,labels=none,legend=false,caption=false,title=false,palette={name}]{{c}}", head=SMALL)).colors()
    other = set(PALETTES["default" if name != "default" and name != "figure" else "cute"]) - set(PALETTES.get(name, PALETTES["default"])) - {"FFFFFF"}
    assert set(PALETTES.get(name, PALETTES["default"])) <= shown and not shown & other


@pytest.mark.pdflatex
def test_black_and_white_has_no_color_and_keeps_its_marks(paper):
    run = Run(paper, document("".join(rf"\texgenfigure{{{n}}}\par " for n in ("shared", "memory")), "bw,cell=3mm,caption=false", SMALL.replace("20cm", "40cm")))
    page = pixels(run.pdf, paper, 72)
    assert not run.errors and (page.max(axis=2) == page.min(axis=2)).all()
    assert {"FFFFFF", "A8A8A8", "EDEDED"} <= run.colors() and (page == 0x1A).all(axis=2).sum() > 300


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_arrows_from_outside_meet_the_middle_of_cells(paper):
    """A word set at each cell stands between the thread and the value that the PTX ISA has there, in two figures."""
    body = (
        r"\texgenfigure[name=left]{c}\qquad\texgenfigure[name=right]{full}"
        r"\begin{texgenoverlay}\node at \texgencell{left/C}{3}{5} {HERE};\node at \texgencell{right/B}{5}{2} {THERE};"
        r"\draw \texgencell{left/C}{0}{0} to[bend left] (txg cs:right/A,0,0);\end{texgenoverlay}"
        r"\texgenfigure[overlay={\node at \texgencell{C}{15}{7} {INSIDE};}]{c}"
    )
    run = Run(paper, document(body, "cell=12mm,caption=false"), runs=2)
    assert not run.errors
    places = run.words()
    for mark, labels in {"HERE": {"T14", "V1"}, "THERE": {"T21", "V0"}, "INSIDE": {"T31", "V3"}}.items():
        x, y = next((x, y) for w, x, y, _ in places if w == mark)
        near = sorted((p for p in places if re.fullmatch(r"[TV]\d+", p[0])), key=lambda p: (p[1] - x) ** 2 + (p[2] - y) ** 2)[:2]
        assert {p[0] for p in near} == labels
        assert sum(p[1] for p in near) / 2 == pytest.approx(x, abs=0.7) and sum(p[2] for p in near) / 2 == pytest.approx(y, abs=3)


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("options", [{}, {"rows": "0:8", "cols": "0:16"}, {"rows": "2:4"}])
def test_cells_go_by_the_numbers_along_their_panel(paper, options):
    """Of shared memory bytes and banks: lane 3 names A(3,0), in the swizzle's chunk 3 of row 3, with 4 banks a chunk."""
    drawing = texgen.chain("SM75_U32x4_LDSM_N", F16, smem="S<3,4,3> o 0 o (16,64):(64,1)", **options)
    (paper / "chain.tikz").write_text(drawing.tikz())
    marks = r"\node at \texgencell{smem}{384}{12} {HERE};\node at \texgencell{A}{3}{0} {THERE};"
    run = Run(paper, document(rf"\texgenfigure[overlay={{{marks}}}]{{chain}}", "cell=12mm,caption=false"))
    places = run.words()
    assert not run.errors
    for mark, label in {"HERE": "T3→", "THERE": "T12"}.items():
        x, y = next((x, y) for w, x, y, _ in places if w == mark)
        near = min((p for p in places if p[0].startswith("T") and p[0] != mark), key=lambda p: (p[1] - x) ** 2 + (p[2] - y) ** 2)
        assert near[0] == label and near[1] == pytest.approx(x, abs=3) and near[2] == pytest.approx(y, abs=10)


# --- errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.pdflatex
def test_mistakes_are_named_with_what_there_is(paper):
    run = Run(paper, document(r"\texgenset{widht=3cm, palette=viridis, preset=slides, title=maybe}\texgenfigure{none}x", "twocolum"))
    said = re.sub(r"\n(?:\(texgen\) *)?", "", run.log).replace(" ", "")
    for text in ("Thereisnokey`twocolum'", "Thereisnokey`widht'", "Thekey`palette'cannotbe`viridis'", "Thereisnopreset`slides'", "Thekey`title'cannotbe`maybe'", "Thereisnofile`none'"):
        assert said.count(text) == 1, text
    assert len(run.errors) == 6 and run.pdf
    for key in KEYS:
        assert key.replace(" ", "") in said.split("`widht'")[1].split("viridis")[0]
    assert f"figure,{','.join(PALETTES)}" in said and "onecolumn,twocolumns,beamer,poster,bw" in said


@pytest.mark.pdflatex
def test_a_length_that_is_none_and_a_panel_that_is_not_there_are_named(paper):
    """Each once, in place of what TikZ would say of what follows from it; the figure is drawn."""
    body = r"""\texgenset{cell=abc, smallest text=big, preset}\texgenfigure[width=-3cm]{c}
        \begin{texgenoverlay}\draw (0,0) -- \texgencell{late/C}{9}{5};\end{texgenoverlay}\texgenfigure[name=late, cell=.5\linewidth/20]{c}
        \texgenfigure[overlay={\draw (0,0) -- \texgencell{c}{0}{0};}]{full}"""
    run = Run(paper, document(body), runs=2)
    said = run.said
    for text in ("The key `cell' cannot be `abc'", "The key `smallest text' cannot be `big'", "preset' requires a value", "A cell of c would be -", "No panel `late/C' is drawn before this place", "No panel `c' is drawn before this place; this figure has B, A, C"):
        assert said.replace("\n", "").count(text) == 1, text
    assert len(run.errors) == 6 and run.pdf


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_what_tex_cannot_measure_in_one_piece_is_set_in_pieces_alike(paper):
    """Labels and numbers of a long timeline, made larger for ``smallest text``: a step wide each, of one size."""
    (paper / "long.tikz").write_text(texgen.timeline(3, 75, 8, cols="0:600").tikz())
    assert (paper / "long.tikz").read_text().count("\\txgAt{") > 2
    run = Run(paper, document(r"\texgenfigure[cell=2.4mm, smallest text=2.9pt]{long}", head=BIG.replace("paperwidth=90cm", "paperwidth=160cm")))
    assert not run.errors
    labels = [w for w in run.words() if re.fullmatch(r"\d+\.\d", w[0])]
    top = min(y for _, _, y, _ in labels)
    row = sorted((x, h, w) for w, x, y, h in labels if abs(y - top) < 1)
    assert len(row) == 598 and {round(h, 2) for _, h, _ in row} == {round(row[0][1], 2)}
    steps = [(b[0] - a[0]) / (2.4 / 25.4 * 72) for a, b in itertools.pairwise(row)]
    assert min(steps) == pytest.approx(1, abs=0.1) and max(steps) == pytest.approx(1, abs=0.1)


# --- in the company of others --------------------------------------------------------------------------------------------

ACTIVE = "".join(rf"\catcode`\{c}=\active\def{c}{{\unskip\string{c}}}" for c in ";:!?'")
COMPANY = {
    "babel": "\\documentclass[twocolumn]{article}\\usepackage[english]{babel}\\usepackage[two columns]{texgen}"
    "\\useshorthands{\"}\\defineshorthand{\"a}{x}\\begin{document}" + ACTIVE + "\\shorthandon{\"}"
    "\\begin{figure*}\\texgenfigure[overlay={\\draw[->] (0,0) -- \\texgencell{C}{3}{5};}]{full}\\caption{a; b: c!}\\end{figure*}"
    "\\begin{figure}\\input{c.tikz}\\end{figure}x; y\\end{document}",
    "xcolor, hyperref, cleveref, subcaption": "\\documentclass{article}\\usepackage[table,dvipsnames]{xcolor}\\usepackage[one column]{texgen}"
    "\\usepackage{subcaption,graphicx,hyperref,cleveref}\\begin{document}\\cref{f}\\begin{figure}"
    "\\begin{subfigure}{.5\\linewidth}\\texgenfigure{c}\\caption{}\\end{subfigure}\\begin{subfigure}{.5\\linewidth}\\resizebox{\\linewidth}{!}"
    "{\\texgenfigure[cell=5mm]{shared}}\\caption{}\\end{subfigure}\\caption{c}\\label{f}\\end{figure}"
    "\\rowcolors{1}{red!20}{}\\begin{tabular}{cc}\\texgenfigure{c}&b\\end{tabular}\\end{document}",
    "an = that is active": "\\documentclass{article}\\usepackage{texgen}\\begin{document}\\catcode`\\==\\active\\def={\\string=}"
    "\\texgenset{palette=grey}\\texgenfigure[name=l, width=8cm, picture={baseline}]{c}\\end{document}",
    "beamer": "\\documentclass{beamer}\\usepackage[beamer]{texgen}\\begin{document}\\begin{frame}<1-2>{a}\\texgenfigure[name=l]{c}"
    "\\begin{texgenoverlay}\\draw<2>[red] \\texgencell{l/C}{0}{0} circle (2pt);\\end{texgenoverlay}\\end{frame}"
    "\n\\begin{frame}[fragile]\n\\texgenfigure{full}\n\\end{frame}\n\\end{document}",
    "standalone": "\\documentclass{standalone}\\usepackage[label font=\\rmfamily, label size=4pt, font=\\sffamily, picture={baseline=(txg-C)}]{texgen}"
    "\\begin{document}\\texgenfigure{c}\\end{document}",
}  # fmt: skip


@pytest.mark.pdflatex
@pytest.mark.parametrize("case", COMPANY)
def test_it_gets_on_with_other_classes_and_packages(paper, case):
    run = Run(paper, COMPANY[case])
    assert not run.errors and run.pdf.startswith(b"%PDF")
    assert "Overfull \\hbox" not in run.log


@pytest.mark.lualatex
@pytest.mark.parametrize("case", ["babel", "beamer"])
def test_lualatex_too(paper, case):
    run = Run(paper, COMPANY[case], "lualatex")
    assert not run.errors and run.pdf.startswith(b"%PDF")


@pytest.mark.xelatex
def test_xelatex_too(paper):
    assert not Run(paper, COMPANY["babel"], "xelatex").errors


# --- the gallery ---------------------------------------------------------------------------------------------------------


def test_committed_pictures_of_the_gallery_are_those_of_their_sources(tmp_path):
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "_ext" / "gallery.py")
    gallery = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("gallery", gallery)
    spec.loader.exec_module(gallery)
    page = (DOCS / "start" / "gallery.rst").read_text()
    assert sorted(re.findall(r"^\.\. gallery:: (\S+)$", page, re.MULTILINE)) == gallery.names()
    assert {n for n in PRESETS if not any(n in gallery.source(d) for d in gallery.names())} == set()
    made = json.loads((gallery.COMMITTED / gallery.LIST).read_text())
    hashes = {}
    for name in gallery.names():
        (tmp_path / name).mkdir()
        hashes[name] = gallery.prepare(name, tmp_path / name)
        assert (gallery.COMMITTED / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert made == hashes, "run: python docs/_ext/gallery.py"
