"""The directives: what they take, what they put into a page, what they say when something is wrong."""

import re
import xml.etree.ElementTree as ET

import pytest

sphinx = pytest.importorskip("sphinx")

from docutils import nodes  # noqa: E402
from sphinx_site import ATOM, Site, copied  # noqa: E402

from texgen.cli import FIGURE_OPTIONS, READ_OPTIONS  # noqa: E402
from texgen.errors import TexgenError, UsageError  # noqa: E402
from texgen.sphinxext.body import program  # noqa: E402
from texgen.sphinxext.nodes import links, picture  # noqa: E402
from texgen.sphinxext.options import specification, split  # noqa: E402

COPY = "SM75_U32x4_LDSM_N"


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site", "numfig = True")


def figures(built, docname="index"):
    return list(built.app.env.get_doctree(docname).findall(nodes.figure))


def test_each_directive_gives_a_figure(site):
    site.page(
        f".. texgen:mma:: {ATOM}\n   :name: m\n   :caption: An *MMA* of :math:`x^2`, see :doc:`index`",
        f".. texgen:copy:: {COPY}\n   :caption: A copy",
        ".. texgen:layout:: (8,8):(8,1)\n   :caption: A layout",
        "See :numref:`m` and :ref:`m`.",
    )
    built = site.build()
    assert built.warnings == ""
    found = figures(built)
    assert [type(f[0]) for f in found] == [picture] * 3 and [type(f[1]) for f in found] == [links] * 3
    assert found[0]["ids"] == ["m"]
    caption = next(found[0].findall(nodes.caption))
    assert list(caption.findall(nodes.math)) and list(caption.findall(nodes.emphasis))
    page = built.text("index.html")
    assert '<span class="doc">Page</span></a>' in built.figures()[0]
    assert 'href="#m"><span class="std std-numref">Fig. 1</span>' in page
    assert [re.search(r"caption-number\">(Fig. \d) ", f)[1] for f in built.figures()] == ["Fig. 1", "Fig. 2", "Fig. 3"]


def test_s07_numbers_go_on_over_pages(site):
    """S07: the node is a real figure, and the second page counts on."""
    site.page(
        ".. texgen:layout:: (4,4):(4,1)\n   :name: one\n   :caption: One", ":numref:`two`", ".. toctree::\n   :numbered:\n\n   other"
    )
    site.page(".. texgen:layout:: (4,4):(1,4)\n   :name: two\n   :caption: Two", name="other.rst")
    built = site.build()
    assert built.warnings == ""
    assert re.search(r'<span class="std std-numref">Fig. 1\.1</span>', built.text("index.html"))
    assert built.app.env.toc_fignumbers["other"]["figure"] == {"two": (1, 1)}


def test_targets(site):
    site.page(*(f".. texgen:mma:: {target}" for target in (
        "TiledMMA<MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>,\n   Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>>",
        "sm80_16x8x16_f32f16f16f32_tn",
    )), *(f".. texgen:layout:: {target}\n   :dtype: f16" for target in (
        "Sw<3,4,3> o 0 o (8,64):(64,1)", "((4,8),(2,2)):((32,1),(16,8))", "Layout<Shape<_4,_8>,Stride<_8,_1>>", "(8,8)",
    )))  # fmt: skip
    built = site.build()
    assert built.warnings == "" and len(built.figures()) == 6 and built.drawn == 6


def test_json_is_relative_to_the_page(site):
    site.page(".. toctree::\n\n   deep/page")
    site.page(".. texgen:layout:: table.json", ".. texgen:layout:: /deep/table.json", name="deep/page.rst")
    path = site.write("deep/table.json", '{"tile": [2, 2], "tv": [[0, 1], [2, 3]]}')
    built = site.build()
    assert built.warnings == "" and len(built.figures("deep/page.html")) == 2 and built.drawn == 1
    path.write_text('{"tile": [2, 2], "tv": [[0, 2], [1, 3]]}')
    assert site.build().drawn == 1


def test_every_option_of_the_command_line_is_one_here():
    """The directive takes what ``texgen render`` takes; ``--caption/--no-caption`` is ``no-caption``."""
    names = set()
    for option in (*READ_OPTIONS, *FIGURE_OPTIONS):
        command = option(lambda: None)
        for parameter in command.__click_params__:
            names |= {o.removeprefix("--") for o in (*parameter.opts, *parameter.secondary_opts)}
    assert len(names) > 20
    assert names <= set(specification())
    assert {"caption", "name", "alt", "width", "align", "class"} <= set(specification())


def test_options_become_keywords():
    reading, look = split({"rows": "0:4", "no-caption": None, "caption": "text", "swizzle": None, "tv": None, "bits": 16}, {})
    assert reading == {"tv": True, "bits": 16}
    assert (look.rows, look.caption, look.swizzle) == ("0:4", False, True)
    assert split({"no-swizzle": None}, {"palette": "grey"})[1].palette == "grey"
    with pytest.raises(UsageError, match="texgen_options has 'colour'"):
        split({}, {"colour": "red"})


SHOWN = {
    "operand: C": "C (M×N)", "highlight: T5,T37": "txg-Dim", "rows: 0:4": ">3<", "cols: 0:4": ">3<",
    "palette: grey": "txg-0", "color-by: value": "Colour: value", "title: My <title>": "My &lt;title&gt;",
    "label: thread": ">T5<", "overview:": "txg-block", "atom-layout: 2,2,1": "for 128 threads",
    "tile: 32,32,16\n   :atom-layout: 2,2,1": "a tile of 32 by 32 by 16", "val-layout: 1,2,1": "a tile of 16 by 16 by 16",
}  # fmt: skip


def test_options_change_the_figure(site):
    site.page(f".. texgen:mma:: {ATOM}", *(f".. texgen:mma:: {ATOM}\n   :{option}" for option in SHOWN))
    built = site.build()
    assert built.warnings == "" and len(built.files) == 2 * (1 + len(SHOWN))
    plain, *rest = built.figures()
    for shown, figure in zip(SHOWN.values(), rest, strict=True):
        assert shown in figure and figure != plain, shown


def test_options_of_layouts(site):
    site.page(
        ".. texgen:layout:: (8,64):(64,1)\n   :no-caption:\n   :dtype: f16",
        ".. texgen:layout:: Sw<3,3,3> o 0 o (8,64):(64,1)\n   :no-swizzle:\n   :bits: 16\n   :swizzle-unit: elements",
        ".. texgen:layout:: ((4,8),2):((16,1),8)\n   :tv:\n   :tile: 8,8",
        ".. texgen:layout:: (4,8):(8,1)\n   :tv:\n   :tile: 8,8\n   :allow-holes:",
        ".. texgen:layout:: ((4,8),2):((16,1),8)\n   :tv:\n   :tile: 8,8\n   :allow-holes:\n   :timeout: 5",
    )
    built = site.build()
    found = built.figures()
    assert "txg-caption" not in found[0] and found[1].count("txg-panel") == 1
    assert all('data-texgen="tv"' in f for f in found[2:]) and built.warnings == ""


def test_common_options(site):
    site.page(
        ".. texgen:layout:: (4,4):(4,1)\n   :alt: A <small> layout & more\n   :width: 50%\n   :align: right\n   :class: wide tall\n   :name: here",
        ".. texgen:layout:: (4,4):(4,1)\n   :width: 300",
        ":ref:`words <here>`",
    )
    built = site.build()
    assert built.warnings == ""
    first, second = built.figures()
    assert 'aria-label="A &lt;small&gt; layout &amp; more"' in first and 'style="width:50%"' in first
    head = first.partition("\n")[0]
    assert all(word in head for word in ("align-right", "wide", "tall", 'id="here"'))
    assert 'style="width:300px"' in second and "as a grid of 4 by 4 cells" in second


def test_default_options(tmp_path):
    site = Site(tmp_path, 'texgen_options = {"rows": "0:2", "title": "All"}')
    site.page(".. texgen:layout:: (4,4):(4,1)", ".. texgen:layout:: (4,4):(4,1)\n   :rows: 0:3")
    first, second = site.build().figures()
    assert ">All<" in first and ">8<" not in first and ">8<" in second


def test_myst(tmp_path):
    """The same directives in MyST, colons in values kept; ``rows: 0:16`` is no number of seconds."""
    pytest.importorskip("myst_parser")
    site = copied("myst", tmp_path / "site")
    built = site.build()
    assert built.warnings == ""
    first, second = built.figures()
    assert "<em>em</em>" in first and "math" in first and 'id="myst-figure"' in first
    assert ">15<" in second and ">16<" not in second.partition("txg-labels")[0]
    assert "Fig. 1" in built.text("index.html") and 'href="#SM80_16x8x16_F32F16F16F32_TN"' in built.text("index.html")


FAILURES = [
    (".. texgen:mma:: SM80_16x8x16_F32F16F16F32_TM", r"There is no atom named .* The nearest are"),
    (".. texgen:layout:: (8,8:(8,1)", r"\(8,8:\(8,1\)"),
    (f".. texgen:copy:: {ATOM}", "is a mma, not a copy: use the directive texgen:mma"),
    (".. texgen:layout:: none.json", r"none\.json cannot be read"),
    (".. texgen:mma::\n   :caption: x", "names nothing to draw"),
    (".. texgen:layout:: (4,4)\n\n   1 + 1", "a target and a body"),
    (".. texgen:layout:: (4,4):(4,1)\n   :palette: pink", "pink"),
    (".. texgen:layout:: (4,4):(4,1)\n   :rows: x", ":rows: 'x' is no range"),
    (".. texgen:layout:: (4000,4000):(4000,1)", "cells"),
]  # fmt: skip


def test_a_failing_figure_is_a_warning_and_a_box(site):
    site.page(*(block for block, _ in FAILURES))
    built = site.build()
    said = re.split(r"\[texgen\.figure\]\n", built.warnings)
    assert said.pop() == ""
    for (_, says), text in zip(FAILURES, said, strict=True):
        assert re.match(r".*index\.rst:\d+: WARNING: ", text) and re.search(says, text), text
    lines = [int(n) for n in re.findall(r"index\.rst:(\d+): WARNING", built.warnings)]
    source = (site.folder / "index.rst").read_text().splitlines()
    assert [source[n - 1] for n in lines] == [block.partition("\n")[0] for block, _ in FAILURES]
    page = built.text("index.html")
    assert page.count("This figure could not be drawn.") == page.count("texgen-failure") == len(FAILURES)
    assert str(site.folder) not in page


def test_s01_warnings_are_failures_with_w(site):
    """S01: -W turns the warning into a failure, and says where."""
    from sphinx.cmd.build import main

    site.page(".. texgen:mma:: NOTHING_OF_THE_KIND\n   :caption: still a figure\n   :name: fig", ":numref:`fig`")
    arguments = ["-q", "-b", "html", str(site.folder), str(site.folder / "out")]
    assert main(["-E", *arguments]) == 0
    assert main(["-E", "-W", "--keep-going", *arguments]) == 1
    assert main(["-W", "--keep-going", *arguments]) == 1, "the second build warns again"
    page = (site.folder / "out" / "index.html").read_text()
    assert "This figure could not be drawn." in page and "Fig. 1" in page, "the label holds, numbered as before"


def test_unknown_option_and_wrong_values_are_docutils_errors(site):
    site.page(".. texgen:layout:: (4,4):(4,1)\n   :colour: red", ".. texgen:layout:: (4,4):(4,1)\n   :bits: many")
    built = site.build()
    assert 'unknown option: "colour"' in built.warnings and "bits" in built.warnings


# Running Python


def test_nothing_runs_unless_allowed(site, tmp_path):
    site.write("program.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    site.page(
        ".. texgen:mma:: program.py:make", ".. texgen:mma:: os.path:join", ".. texgen:mma::\n   :operand: C\n\n   import program\n   program"
    )
    built = site.build()
    assert built.warnings.count("texgen_execute = True") == built.warnings.count("[texgen.execute]") == 3
    assert built.text("index.html").count("texgen_execute = True") == 3
    assert not (tmp_path / "ran").exists()


def test_body_becomes_a_program():
    lines = ["import x", "", "x.make(", "    1,  # one", "    2)  # two"]
    made = program(lines)
    assert made.splitlines()[2:] == ["texgen_figure = (x.make(", "    1,  # one", "    2))  # two"]
    assert program(["a = 1; a"]).strip() == "a = 1; texgen_figure = (a)"
    assert program(["'µ' + 'x'"]).strip() == "texgen_figure = ('µ' + 'x')"
    with pytest.raises(TexgenError, match="its line 2") as caught:
        program(["x = 1", "y = = 2"])
    assert "y = = 2" in caught.value.detail
    for lines in (["x = 1"], ["import os"], ["# nothing"], []):
        with pytest.raises(TexgenError, match="must end in an expression"):
            program(lines)


@pytest.mark.dsl
def test_callables_and_bodies(tmp_path):
    pytest.importorskip("cutlass")
    site = copied("kernels", tmp_path / "site")
    built = site.build()
    assert built.warnings == ""
    found = built.figures("deep/page.html")
    assert len(found) == 5 and built.drawn == len(built.files) // 2
    assert "a tile of 32 by 16 by 16 for 128 threads" in found[0]
    assert found[3].count("<svg") == 2, "a dict gives a picture for each of its objects"
    assert str(site.folder) not in "".join(found)
    again = site.build()
    assert again.drawn == 0 and "0 added, 0 changed" in again.said


@pytest.mark.dsl
def test_failing_python_is_a_box_with_its_own_traceback(tmp_path):
    pytest.importorskip("cutlass")
    site = Site(tmp_path / "site", "texgen_execute = True")
    site.write("program.py", "def make():\n    raise ValueError('the tile is odd')\n\n\ndef die():\n    import os\n    os._exit(3)\n")
    site.page(
        ".. texgen:mma:: program.py:make", ".. texgen:mma:: program.py:die", ".. texgen:mma:: program.py:other",
        ".. texgen:mma::\n\n   x = 1\n   x / 0", ".. texgen:layout:: (4,4):(4,1)",
    )  # fmt: skip
    built = site.build()
    assert "program.py:make raised ValueError: the tile is odd" in built.warnings
    assert "The Python in the body cannot be loaded" in built.warnings or "ZeroDivisionError" in built.warnings
    page = built.text("index.html")
    assert page.count("This figure could not be drawn.") == 4 and page.count("<svg") >= 1
    assert "the tile is odd" in page and str(site.folder) not in page


def test_s15_the_missing_dsl_is_named_once(tmp_path, monkeypatch):
    from texgen.sphinxext import studio

    monkeypatch.setattr(studio, "_missing_dsl", lambda: "The CuTe DSL is not installed: pip install it.")
    site = Site(tmp_path / "site", "texgen_execute = True")
    site.write("program.py", "")
    site.page(".. texgen:mma:: program.py:a", ".. texgen:mma:: program.py:b", f".. texgen:mma:: {ATOM}\n   :live:")
    built = site.build()
    assert built.warnings.count("pip install it") == 1 and built.warnings.count("WARNING") == 3
    assert built.text("index.html").count("pip install it") == 3


def test_pictures_are_well_formed(site):
    site.page(f".. texgen:mma:: {ATOM}\n   :title: 5 < 6 & \"7\"")
    svg = re.search(r"<svg.*?</svg>", site.build().text("index.html"), re.DOTALL)[0]
    assert ET.fromstring(svg).tag.endswith("svg")
