"""Every kind of figure compiles; fragments need only TikZ; sizes and colours are the author's; failures are explained."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import texgen
from texgen.errors import TexgenError
from texgen.render import engine
from texgen.render.escape import to_tex

F16 = "SM80_16x8x16_F32F16F16F32_TN"
KINDS = {
    "mma": (F16, {}),
    "tiled": (F16, {"atom_layout": "2,2,1", "tile": "32,32,16"}),
    "operand": (F16, {"operand": "B", "rows": "0:4"}),
    "highlight": (F16, {"highlight": "T5,V0"}),
    "overview": (F16, {"atom_layout": "2,2,1", "tile": "64,64,16", "overview": True}),
    "warp labels": (F16, {"atom_layout": "2,2,1", "tile": "64,64,16", "label": "warp"}),
    "wgmma": ("SM90_64x32x16_F32F16F16_SS", {}),
    "copy": ("SM75_U32x4_LDSM_N", {}),
    "layout": ("((2,4),(4,2)):((1,8),(2,32))", {}),
    "swizzle": ("S<3,4,3> o 0 o (8,64):(64,1)", {"bits": 16}),
    "tv": ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8"}),
    "coordinates": ("(4,8):(1@1,1@0)", {}),
    "white": ("(4,8):(8,1)", {"palette": "white", "caption": False, "title": ""}),
}


def pdf_of(source: str, program: str = "pdflatex") -> bytes:
    return engine.compile_pdf(source, program)


def words_of(pdf: bytes, folder: Path) -> str:
    (folder / "x.pdf").write_bytes(pdf)
    return subprocess.run(
        ["pdftotext", "-layout", "x.pdf", "-"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.pdflatex
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_compiles(kind):
    target, options = KINDS[kind]
    assert pdf_of(texgen.figure(target, **options).tex()).startswith(b"%PDF")


@pytest.mark.pdflatex
def test_a_fragment_needs_only_tikz_and_takes_the_authors_sizes(tmp_path):
    fragment = texgen.figure(F16).tikz()
    document = (
        "\\documentclass{article}\\usepackage[paperwidth=60cm,paperheight=60cm,margin=1cm]{geometry}\\usepackage{tikz}"
        "\\begin{document}%s" + fragment + "\\end{document}"
    )
    sizes = {}
    for name, before in {"plain": "", "small": "\\newcommand*\\txgCell{2.5mm}"}.items():
        pdf = pdf_of(document.replace("%s", before))
        (tmp_path / f"{name}.pdf").write_bytes(pdf)
        assert pdf.startswith(b"%PDF")
        if shutil.which("pdftotext"):
            boxes = subprocess.run(
                ["pdftotext", "-bbox", f"{name}.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout
            xs = [float(x) for x in re.findall(r'xMin="([\d.]+)"[^>]*>T\d+<', boxes)]
            sizes[name] = max(xs) - min(xs)
    if sizes:
        assert sizes["small"] == pytest.approx(sizes["plain"] / 2, rel=0.02)


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_a_cell_can_be_pointed_at(tmp_path):
    r"""``\texgencell{C}{3}{5}`` is the middle of cell C(3,5); for B the indices are (n, k)."""
    fragment = texgen.figure(F16).tikz()
    document = (
        "\\documentclass{article}\\usepackage[paperwidth=60cm,paperheight=60cm,margin=1cm]{geometry}\\usepackage{tikz}"
        "\\begin{document}\\def\\txgLabelFont{\\fontsize{1}{1}\\selectfont}"
        "\\def\\txgOverlay{\\node at \\texgencell{C}{3}{5} {HEREC};\\node at \\texgencell{B}{5}{2} {HEREB};}"
        + fragment + "\\end{document}"
    )  # fmt: skip
    (tmp_path / "x.pdf").write_bytes(pdf_of(document))
    boxes = subprocess.run(
        ["pdftotext", "-bbox", "x.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]+)<', boxes)
    places = [((float(a) + float(c)) / 2, (float(b) + float(d)) / 2, word) for a, b, c, d, word in found]

    def nearest(mark: str) -> set[str]:
        x, y, _ = next(p for p in places if p[2] == mark)
        near = sorted(
            (p for p in places if re.fullmatch(r"[TV]\d+", p[2])), key=lambda p: (p[0] - x) ** 2 + (p[1] - y) ** 2
        )
        return {near[0][2], near[1][2]}

    # C(3,5): thread 4*3 + 5//2 holds it as value 5%2; B(n=5,k=2): thread 4*5 + 2//2, value 0 (PTX ISA, m16n8k16).
    assert nearest("HEREC") == {"T14", "V1"}
    assert nearest("HEREB") == {"T21", "V0"}


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_specials_and_unicode_in_titles_are_shown_not_acted_on(tmp_path):
    title = r"a_b & 50% #1 {x} ~ ^ \input{/etc/passwd} $x$ ^^5c — µ × <b> 中"
    pdf = pdf_of(texgen.figure("(2,2):(2,1)", title=title).tex())
    shown = words_of(pdf, tmp_path).replace("’", "'")
    assert re.search(r"a.b & 50% #1 \{x\}", shown)  # OT1 fonts draw an underscore as a rule
    assert "root:" not in shown
    assert "\\input{/etc/passwd}" in shown.replace(" ", "").replace("“", "").replace("”", "")
    assert "[U+4E2D]" in shown


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("plain T0", "plain T0"),
        ("a_b", r"a\_b"),
        ("50%", r"50\%"),
        ("#1 & {x}", r"\#1 \& \{x\}"),
        ("x\ny", "x y"),
        ("中", r"\txgU{4E2D}"),
        ("\u202eabc", "[U+202E]abc"),
    ],
)
def test_escaping(text, tex):
    assert to_tex(text) == tex


@pytest.mark.pdflatex
@pytest.mark.parametrize("size", [128, 256])
def test_large_tiles_compile_in_stock_pdflatex(size):
    drawing = texgen.figure(F16, atom_layout="4,2,1", tile=f"{size},{size},16", operand="C")
    assert engine.compile_pdf(drawing.tex(), "pdflatex").startswith(b"%PDF")


@pytest.mark.pdflatex
def test_full_labels_of_256_columns_fall_back_or_compile(tmp_path):
    """A picture that stock pdflatex has no memory for is drawn another way, and says so; never a bare TeX error."""
    drawing = texgen.figure(F16, atom_layout="4,2,1", tile="256,256,16", operand="C", label="full")
    assert drawing.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def test_wide_pictures_stay_within_tex_and_acrobat():
    """Cases X01 and 2-C05: TeX ends at 575.8 cm, Acrobat refuses pages over 508 cm."""
    for columns in (100, 580, 1200):
        drawing = texgen.figure(f"(1,{columns}):({columns},1)")
        cell = float(re.search(r"\\txgCell\{([\d.]+)mm\}", drawing.tikz())[1])
        assert drawing.figure.width * drawing.figure.aspect * cell <= 5080


@pytest.mark.pdflatex
def test_a_wide_picture_compiles():
    assert pdf_of(texgen.figure("(1,1200):(1200,1)").tex()).startswith(b"%PDF")


def test_numbers_are_in_fixed_notation():
    """Cases X02 and 2-C07."""
    from texgen.render.environment import number

    assert [number(x) for x in (1e-06, 1000000.5, -0.0, 0.1 + 0.2, 12)] == ["0", "1000000.5", "0", "0.3", "12"]
    for form in ("tikz", "svg"):
        assert not re.search(
            r"\d[eE][-+]\d",
            re.sub(r"txg-[0-9a-f]{10}|#[0-9A-Fa-f]{6}|\{[0-9A-F]{6}\}", "", getattr(texgen.figure(F16), form)()),
        )


@pytest.mark.pdflatex
def test_a_tex_failure_names_the_error_and_keeps_the_source(tmp_path):
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "document.tex.j2").write_text(
        "\\documentclass{article}\n\\begin{document}\n\\undefinedmacro\n\\end{document}\n"
    )
    drawing = texgen.figure("(2,2):(2,1)", templates=[folder])
    with pytest.raises(TexgenError) as caught:
        drawing.save(tmp_path / "x.pdf", engine="pdflatex")
    assert "Undefined control sequence" in caught.value.message
    assert "line 3: \\undefinedmacro" in caught.value.detail
    assert (tmp_path / "x.failed.tex").exists() and not (tmp_path / "x.pdf").exists()


@pytest.mark.pdflatex
def test_tex_runs_confined():
    for source in (
        r"\documentclass{article}\begin{document}\immediate\write18{touch /tmp/texgen-shell}\input{/etc/passwd}\end{document}",
        r"\documentclass{article}\begin{document}\newwrite\f\immediate\openout\f=/tmp/texgen-out x\end{document}",
    ):
        with pytest.raises(TexgenError):
            engine.compile_pdf(source, "pdflatex")
    assert not Path("/tmp/texgen-shell").exists() and not Path("/tmp/texgen-out").exists()


@pytest.mark.pdflatex
def test_tex_is_ended_at_its_time_limit():
    with pytest.raises(TexgenError, match="did not finish within 1 s"):
        engine.compile_pdf(
            r"\documentclass{article}\begin{document}\def\x{\x}\x\end{document}", "pdflatex", time_limit=1
        )


@pytest.mark.lualatex
def test_lualatex_compiles():
    assert pdf_of(texgen.figure(F16).tex(), "lualatex").startswith(b"%PDF")


@pytest.mark.pdflatex
def test_an_authors_template_goes_first_and_its_mistakes_are_placed(tmp_path):
    (tmp_path / "figure.svg.j2").write_text("<svg xmlns='http://www.w3.org/2000/svg'>{{ figure.title }}</svg>")
    assert (
        texgen.figure("(2,2):(2,1)", templates=[tmp_path], title="<i>").svg()
        == "<svg xmlns='http://www.w3.org/2000/svg'>&lt;i&gt;</svg>"
    )
    for text, what in {
        "{{ figure.nothing }}": "nothing",
        "{% if %}": "",
        "{{ ''.__class__.__mro__ }}": "unsafe",
    }.items():
        folder = tmp_path / str(abs(hash(text)))
        folder.mkdir()
        (folder / "figure.svg.j2").write_text(f"<svg>\n{text}\n</svg>")
        with pytest.raises(TexgenError, match=r"figure\.svg\.j2, line 2.*" + what) as caught:
            texgen.figure("(2,2):(2,1)", templates=[folder]).svg()
        assert text in caught.value.detail
    with pytest.raises(TexgenError, match="does not exist"):
        texgen.figure("(2,2):(2,1)", templates=[tmp_path / "no"]).svg()


def test_render_tikz_is_a_hook_of_the_dsl():
    from texgen.api import TikzPicture

    picture = TikzPicture("\\begin{tikzpicture}\\draw (0,0) -- (1,1);\\end{tikzpicture}")
    assert picture.source in picture.tex() and "\\documentclass" in picture.tex()
    if shutil.which("pdflatex"):
        assert texgen.render_tikz(picture.source).pdf().startswith(b"%PDF")


def pixels(pdf: bytes, folder: Path, dpi: int):
    """The page as an array of RGB (a PPM file, which needs no library to read)."""
    import numpy as np

    (folder / "x.pdf").write_bytes(pdf)
    subprocess.run(["pdftoppm", "-singlefile", "-r", str(dpi), "x.pdf", "x"], cwd=folder, check=True)
    header, size, depth, data = (folder / "x.ppm").read_bytes().split(b"\n", 3)
    assert (header, depth) == (b"P6", b"255")
    width, height = map(int, size.split())
    return np.frombuffer(data, dtype=np.uint8).reshape(height, width, 3)


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("options", [{}, {"overview": True}], ids=["whole", "overview"])
def test_every_label_stands_on_its_threads_color(tmp_path, options):
    """The compiled page, pixel by pixel: beside each label T5 is the fill of thread 5."""
    from texgen.figures.palette import palette

    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16", operand="C", caption=False, legend=False, title="", **options)
    pdf, dpi = pdf_of(drawing.tex()), 288
    page = pixels(pdf, tmp_path, dpi)
    boxes = subprocess.run(["pdftotext", "-bbox", "x.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    words = re.findall(r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">T(\d+)<', boxes)
    assert len(words) == (128 if options else 1024)
    for x, top, bottom, thread in words:
        row, column = (float(top) + float(bottom)) / 2, float(x) - 1.2
        shown = page[round(row * dpi / 72), round(column * dpi / 72)]
        color = palette("default")[int(thread) % 8]
        assert [int(color[i : i + 2], 16) for i in (0, 2, 4)] == shown.tolist()


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("palette", ["default", "white"])
def test_owners_of_neighbouring_cells_stand_apart(palette, tmp_path):
    """Between two cells there is at least twice the space that two owners of one cell have between them."""
    drawing = texgen.figure("SM80_16x8x16_F32F16F16F32_TN", atom_layout="2,2,1", tile="64,32,16", operand="B", palette=palette)
    drawing.save(tmp_path / "b.pdf")
    boxes = subprocess.run(["pdftotext", "-bbox", "b.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    lines: dict[str, list[tuple[float, float]]] = {}
    for left, top, right in re.findall(r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="[\d.]+">T\d+<', boxes):
        lines.setdefault(f"{float(top):.1f}", []).append((float(left), float(right)))
    rows = [sorted(words) for words in lines.values() if len(words) > 20]  # the caption names threads too
    assert len(rows) == 16 and {len(words) for words in rows} == {64}
    gaps = [[b[0] - a[1] for a, b in itertools.pairwise(words)] for words in rows]
    assert min(g for row in gaps for g in row[1::2]) > 2 * max(g for row in gaps for g in row[::2])
