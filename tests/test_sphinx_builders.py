"""What each builder gets, from one source."""

import re
import shutil
import subprocess
import xml.dom.minidom
import zipfile

import pytest

pytest.importorskip("sphinx")

from sphinx_site import ATOM, PROJECTS, Site, copied

from texgen.api import figure
from texgen.sphinxext.settings import LINKS, SETTINGS

PAGE = (
    f".. texgen:mma:: {ATOM}\n   :caption: An *MMA*, :math:`x^2`\n   :name: mma\n   :alt: Threads & values",
    ".. texgen:layout:: (4,4):(4,1)\n   :width: 50%\n   :caption: A layout",
    ":numref:`mma`",
)
LATEX = 'latex_elements = {"fontpkg": ""}\nversion = "1"\ncopyright = "2026 us"'


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "site", f"numfig = True\n{LATEX}")
    made.page(*PAGE)
    return made


def compiled(built):
    """The text of the PDF that pdflatex makes of a LaTeX build."""
    name = next(p.name for p in built.out.glob("*.tex") if not p.name.startswith("sphinx"))
    for _ in range(2):
        made = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name], cwd=built.out, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout[-2000:]
    pdf = built.out / f"{name[:-4]}.pdf"
    if not shutil.which("pdftotext"):
        return ""
    return subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True).stdout


# HTML


def test_html_inlines_svg_and_links_to_its_files(site):
    built = site.build()
    assert built.warnings == ""
    first = built.figures()[0]
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in first and ">T0<" in first, "text is text"
    names = re.findall(r'href="(_texgen/[^"]+)"', first)
    assert [n.rpartition(".")[2] for n in names] == ["tikz", "svg"]
    drawing = figure(ATOM)
    assert built.text(names[0]) == drawing.tikz() and built.text(names[1]) == drawing.svg()
    assert first.index("</svg>") < first.index("texgen-links") < first.index("<figcaption>")


def test_s06_alternative_text_is_read(site):
    """S06: given or made from the spec, on the picture itself, never on an <object>."""
    for settings in ({}, {"texgen_svg": "file"}):
        built = site.build(**settings)
        first, second = built.figures()
        label = "alt" if settings else "aria-label"
        assert f'{label}="Threads &amp; values"' in first
        assert f'{label}="The layout (4,4):(4,1) as a grid of 4 by 4 cells' in second
        assert settings or 'role="img"' in first
        assert "<object" not in built.text("index.html") and "aria-labelledby" not in first


def test_s04_wide_figures_are_capped_not_clipped(site):
    """S04: viewBox kept, width capped by CSS."""
    site.page(".. texgen:layout:: (8,64):(64,1)")
    for settings in ({}, {"texgen_svg": "file"}):
        built = site.build(**settings)
        assert "max-width: 100%" in built.text("_static/texgen.css")
        svg = built.figures()[0] if not settings else built.text(f"_texgen/{next(f for f in built.files if f.endswith('.svg'))}")
        width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()
        assert float(width) > 1500 and f'width="{width}" height="{height}"' in svg
    assert "texgen.css" in built.text("index.html")


def test_s05_files_are_images(site):
    """S05: <img> with alternative text, so that no host can make a download of it."""
    built = site.build(texgen_svg="file")
    images = re.findall(r'<img class="texgen-card[^>]*src="([^"]+)"[^>]*/>', built.text("index.html"))
    assert len(images) == 2 and all((built.out / i).is_file() for i in images)
    assert 'style="width:50%"' in built.figures()[1]


def test_s16_dark_mode(site):
    """S16: what is inlined takes the colour of the theme's text outside its cells; a file lies on a light card."""
    built = site.build()
    style = re.sub(r"\s+", " ", built.text("_static/texgen.css"))
    assert ".texgen-picture svg.texgen .txg-page { fill: none; }" in style
    assert ".texgen-picture svg.texgen .txg-ink { fill: currentColor; }" in style
    assert ".texgen-picture svg.texgen .txg-frame { stroke: currentColor; }" in style
    assert re.search(r"img\.texgen-card \{[^}]*background: #fff", style)
    svg = built.figures()[0]
    assert re.search(r'<rect class="txg-page"[^>]*fill="#fff"', svg), "a copy without the style is light"
    assert re.search(r'<g class="txg-labels"[^>]* fill="#[0-9a-f]{6}"', svg, re.IGNORECASE), "labels keep their dark ink"
    assert re.search(r'<g class="txg-ink"', svg) and re.search(r'class="txg-frame"[^>]*stroke=', svg)


def test_ids_do_not_clash(site):
    site.page(*[".. texgen:layout:: (4,4):(4,1)\n   :caption: Same"] * 3, f".. texgen:mma:: {ATOM}")
    for builder in ("html", "singlehtml"):
        built = site.build(builder)
        page = built.text("index.html")
        ids = re.findall(r'\bid="([^"]+)"', page)
        assert len(ids) == len(set(ids)) and sum(i.startswith("txg-") for i in ids) == 8
        assert len([f for f in built.files if f.endswith(".svg")]) == 2


def test_large_pictures_are_files(site):
    site.page(".. texgen:layout:: (4,4):(4,1)")
    assert "<img" in site.build(texgen_inline_limit=100).figures()[0]
    assert "<img" not in site.build().figures()[0]


@pytest.mark.parametrize("builder, page, prefix", [
    ("dirhtml", "sub/page/index.html", "../../"), ("html", "sub/page.html", "../"), ("singlehtml", "index.html", ""),
])  # fmt: skip
def test_addresses_in_other_folders(site, builder, page, prefix):
    site.page(".. toctree::\n\n   sub/page")
    site.page(*PAGE, name="sub/page.rst")
    built = site.build(builder)
    assert built.warnings == ""
    links = re.findall(r'href="([^"]*_texgen/[^"]+)"', built.text(page))
    assert len(links) == 4 and all(re.fullmatch(re.escape(prefix) + r"_texgen/[\w.-]+", link) for link in links)
    assert all((built.out / page).parent.joinpath(link).is_file() for link in links)


def test_links_are_switchable(site):
    assert "texgen-links" not in site.build(texgen_links=[]).text("index.html")
    built = site.build(texgen_links=["json", "svg"])
    assert re.findall(r">(JSON|SVG|TikZ|PDF)</a>", built.figures()[0]) == ["JSON", "SVG"]
    assert '"kind": "mma"' in built.text(f"_texgen/{next(f for f in built.files if f.startswith(ATOM) and f.endswith('.json'))}")


def test_templates_of_pages_can_be_replaced(site):
    site.write("own/sphinx_links.html.j2", "<p>{{ rows|length }} figure here</p>")
    built = site.build(texgen_templates=["own"])
    assert built.text("index.html").count("<p>1 figure here</p>") == 2
    site.write("own/sphinx_links.html.j2", "<p>{{ nothing }}</p>")
    built = site.build(texgen_templates=["own"])
    assert built.warnings.count("'nothing' is undefined") == 1 and "[texgen.template]" in built.warnings
    assert built.text("index.html").count("TikZ</a>") == 2


def test_settings_say_what_they_are(site):
    """The table that the reference page prints."""
    assert {s.name for s in SETTINGS} == {n for n in site.build("dummy").app.config.values if n.startswith("texgen_")}
    assert all(s.help.endswith(".") and s.type_names for s in SETTINGS)
    assert {s.name: s.type_names for s in SETTINGS}["texgen_svg"] == "'inline' or 'file'"
    assert set(LINKS) == {"tikz", "svg", "pdf", "json"}
    built = site.build(texgen_svg="flash")
    assert "texgen_svg" in built.warnings and "flash" in built.warnings


# LaTeX


def test_s09_latex_gets_tikz(site):
    """S09: nothing with .svg in LaTeX."""
    built = site.build("latex")
    assert built.warnings == ""
    source = built.text("site.tex")
    assert source.count("\\texgenpicture{") == 2 and ".svg" not in source
    assert "\\usepackage{tikz}" in source and "\\texgenpicture{0.500\\linewidth}" in source
    assert {f.rpartition(".")[2] for f in built.files} == {"tikz"}
    assert source.count("\\begin{figure}") == 2 and "\\caption{An \\sphinxstyleemphasis{MMA}" in source


@pytest.mark.pdflatex
def test_latex_compiles(site):
    site.page(
        *PAGE, ".. texgen:layout:: (8,100):(100,1)\n   :caption: Wider than the page",
        ".. texgen:layout:: (90,8):(8,1)\n   :caption: Higher than the page", ".. texgen:mma:: NO_SUCH_ATOM\n   :caption: Failed\n   :name: f",
        ".. texgen:layout:: (4,4):(4,1)\n   :align: right\n   :width: 4cm", "Words beside it.",
    )  # fmt: skip
    built = site.build("latex")
    assert built.warnings.count("WARNING") == 1
    text = compiled(built)
    log = next(built.out.glob("*.log")).read_text(errors="replace")
    assert "Float too large" not in log
    wide = [w for w in map(float, re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)) if w > 5]
    assert not wide
    if text:
        assert re.search(r"This figure could not be drawn.*Fig\. 1: An\s+MMA|Fig\. 1: An\s+MMA.*This figure could not be drawn", text, re.DOTALL)


@pytest.mark.pdflatex
def test_latex_gets_pdfs(site):
    built = site.build("latex", texgen_latex="pdf")
    assert built.warnings == "" and "making PDFs of figures" in built.said
    assert {f.rpartition(".")[2] for f in built.files} == {"pdf"}
    assert "\\includegraphics{_texgen/" in built.text("site.tex")
    compiled(built)
    assert "making PDFs" not in site.build("latex", texgen_latex="pdf").said


@pytest.mark.pdflatex
def test_s02_pictures_beside_the_source_are_found(site):
    """S02: a template of the author's that takes an image of the project."""
    source = (PROJECTS.parents[1] / "templates" / "figure.tikz.j2").read_text()
    site.write("own/figure.tikz.j2", source.replace("\\txgOverlay", "\\node at (0,0) {\\includegraphics[width=1cm]{_static/chip.png}};"))
    path = site.write("_static/chip.png", "")
    path.write_bytes(figure("(2,2):(2,1)").png())
    built = site.build("latex", texgen_latex="pdf", texgen_templates=["own"])
    assert built.warnings == "" and len(built.files) == 2


@pytest.mark.pdflatex
def test_s01_tex_that_fails_is_a_warning_with_its_line(site):
    """S01: a missing semicolon in TikZ; the page says so, -W fails, and the next build warns again."""
    source = (PROJECTS.parents[1] / "templates" / "figure.tikz.j2").read_text()
    site.write("own/figure.tikz.j2", source.replace("\\txgOverlay", "\\draw (0,0) -- (1,1)"))
    for _ in range(2):
        built = site.build("latex", texgen_latex="pdf", texgen_templates=["own"])
        assert re.search(r"index\.rst:4: WARNING: pdflatex failed: .*Did you forget a semicolon", built.warnings)
        assert "[texgen.tex]" in built.warnings
        assert "This figure could not be drawn" in built.text("site.tex")


@pytest.mark.pdflatex
def test_2_d07_what_tex_lost_is_said(site):
    """2-D07: a run that ends well and lost something is a warning."""
    source = (PROJECTS.parents[1] / "templates" / "figure.tikz.j2").read_text()
    lost = "\\node[font=\\fontfamily{zzz}\\selectfont] at (0,0) {x};"
    site.write("own/figure.tikz.j2", source.replace("\\txgOverlay", lost))
    built = site.build(texgen_links=["pdf"], texgen_templates=["own"])
    assert re.search(r"index\.rst:4: WARNING: .*Font shape `\w+/zzz.* undefined", built.warnings)
    assert built.text("index.html").count(">PDF</a>") == 2


def test_s15_one_warning_without_a_tex_engine(site, monkeypatch):
    """S15: the program and the setting are named once; the PDFs come from the SVG; those that are there are used."""
    from texgen.render import engine

    monkeypatch.setattr(engine, "available", lambda: [])
    built = site.build(texgen_links=["pdf"])
    assert built.warnings.count("WARNING") == 1
    assert "texgen_engine" in built.warnings and "[texgen.engine]" in built.warnings
    for name in built.files:
        assert name.endswith(".svg") or (built.out / "_texgen" / name).read_bytes().startswith(b"%PDF")
    assert built.text("index.html").count(">PDF</a>") == 2
    site.page(*(p.replace("An *MMA*", "Another caption") for p in PAGE))
    assert site.build(texgen_links=["pdf"]).warnings == "", "2-D04: a new caption needs no TeX"


def test_a_named_engine_that_is_missing_is_named(site, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    built = site.build("latex", texgen_latex="pdf", texgen_engine="lualatex")
    assert built.warnings.count("lualatex") == 1 and len(built.files) == 2


# EPUB, text, man, others


def test_epub_is_clean(site):
    """SVG files, every file well-formed XML, nothing of the cache inside."""
    built = site.build("epub")
    assert built.warnings == ""
    with zipfile.ZipFile(next(built.out.glob("*.epub"))) as book:
        names = book.namelist()
        for name in names:
            if name.endswith((".xhtml", ".svg", ".opf", ".ncx")):
                xml.dom.minidom.parseString(book.read(name))
        page = next(book.read(n).decode() for n in names if n.endswith("index.xhtml") and "gen" not in n)
        listed = book.read(next(n for n in names if n.endswith(".opf"))).decode()
    assert len([n for n in names if n.endswith(".svg")]) == 2 and not [n for n in names if "doctrees" in n or n.endswith(".tikz")]
    assert page.count("<img") == 2 and "<svg" not in page and "texgen-links" not in page
    assert listed.count('media-type="image/svg+xml"') == 2


def test_epub_keeps_a_cache_inside_its_output_out(site, tmp_path):
    """``sphinx-build -b epub`` puts the doctrees below the output."""
    from sphinx.cmd.build import main

    out = tmp_path / "out"
    assert main(["-q", "-b", "epub", str(site.folder), str(out)]) == 0
    with zipfile.ZipFile(next(out.glob("*.epub"))) as book:
        assert len([n for n in book.namelist() if n.endswith(".svg")]) == 2


@pytest.mark.parametrize("builder, name", [("text", "index.txt"), ("man", "site.1"), ("texinfo", "site.texi")])
def test_text_forms(site, builder, name):
    built = site.build(builder)
    assert built.warnings == "" and built.files == []
    text = built.text(name)
    assert "T0V0  T0V1  T1V0" in text and "An" in text and "<svg" not in text and "\\begin" not in text
    rows = figure("(4,4):(4,1)").text().splitlines()
    assert all(row.strip() in text for row in rows if row.strip())


@pytest.mark.parametrize("builder", ["dummy", "xml", "pseudoxml", "gettext", "linkcheck", "json"])
def test_other_builders_pass(site, builder):
    built = site.build(builder)
    assert built.warnings == "" and built.drawn == 2


def test_s14_a_form_is_made_when_a_builder_needs_it(site):
    """S14: HTML first, then LaTeX and text out of the same doctrees: nothing is read again, each form is there."""
    assert site.build(texgen_links=[]).drawn == 2
    for builder, suffix in (("latex", "tikz"), ("text", ""), ("epub", "svg")):
        built = site.build(builder, texgen_links=[])
        assert "0 added, 0 changed" in built.said and built.warnings == ""
        assert {f.rpartition(".")[2] for f in built.files} == ({suffix} if suffix else set())
    assert built.drawn == 0 and "drawing figures" not in built.said


def test_2_d18_the_drawing_shows_itself_in_notebooks_and_latex(tmp_path):
    """2-D18: SVG and PDF of one object."""
    drawing = figure("(4,4):(4,1)")
    assert drawing._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert drawing.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    assert drawing.png().startswith(b"\x89PNG")


def test_s03_no_deprecation_warnings(site, recwarn):
    """S03: nothing that Sphinx is going to remove."""
    for builder in ("html", "latex", "text"):
        site.build(builder)
    ours = [w for w in recwarn.list if "RemovedInSphinx" in w.category.__name__ or "texgen" in str(w.filename)]
    assert not ours, [str(w.message) for w in ours]


def test_copied_projects_exist():
    assert copied and (PROJECTS / "kernels" / "conf.py").is_file()


def test_the_page_wins_over_a_figure_with_a_theme_of_its_own(site):
    """The page's rules are more specific than those inside an SVG drawn with ``:theme: dark``."""
    style = site.build().text("_static/texgen.css")
    own = [line for line in style.splitlines() if re.search(r"\.txg-(?:page|ink|frame|code)\b", line)]
    assert own and all(".texgen-picture svg.texgen .txg-" in line for line in own)
