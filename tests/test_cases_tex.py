"""TeX and picture faults of other tools, reported in public, that must not be ours."""

from __future__ import annotations

import re
import shutil
import stat
import struct
import sys
import zlib

import pytest

import texgen
from texgen.errors import TexgenError
from texgen.render import engine
from texgen.render.environment import number
from texgen.render.escape import to_tex

F16 = "SM80_16x8x16_F32F16F16F32_TN"
OTHERS = ("magick", "convert", "gs", "dvisvgm", "inkscape", "mutool", "pdf2svg", "rsvg-convert")


@pytest.fixture
def traps(tmp_path, monkeypatch):
    """Converters that we must not need, first on the PATH: each writes its name into the file returned, and fails."""
    log, folder = tmp_path / "called", tmp_path / "traps"
    folder.mkdir()
    for name in OTHERS:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >> {log}\nexit 1\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return log


def pixels(png: bytes) -> tuple[int, int, int]:
    """(width, height, colour type) of a PNG whose parts all have their checksum."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        at += 12 + length
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
    width, height, _, color = struct.unpack(">IIBB", png[16:26])
    return width, height, color


@pytest.mark.parametrize("columns", [570, 576, 580, 600, 1200, 4096])
def test_X01_2C05_pictures_stay_inside_texs_largest_dimension(columns):
    """T-F-S/genealogytree#8, pgf-tikz/pgf#1297: 16383.99998 pt, 575.8 cm, and scale= does not lift it."""
    drawing = texgen.figure(f"(1,{columns}):({columns},1)")
    cell = float(re.search(r"\\txgCell\{([\d.]+)mm\}", drawing.tikz())[1])
    for cells in (drawing.figure.width * drawing.figure.aspect, drawing.figure.height):
        assert cells * cell < 5757


@pytest.mark.pdflatex
@pytest.mark.parametrize("columns", [580, 1200])
def test_X01_2C05_wide_rows_compile(columns):
    """T-F-S/genealogytree#8."""
    assert texgen.figure(f"(1,{columns}):({columns},1)").pdf("pdflatex").startswith(b"%PDF")


def test_X02_2C07_numbers_are_in_fixed_notation():
    """halamalala/inkscape2tikz#34: 1e-06 in a coordinate."""
    assert [number(x) for x in (1e-06, -1e-06, 1000000.5, 1e6, 12.0)] == ["0", "0", "1000000.5", "1000000", "12"]
    for target, options in ((F16, {}), ("(1,4096):(4096,1)", {}), ("(1,16384):(16384,1)", {"label": "none"})):
        body = re.sub(r"(?m)%.*$|\{[0-9A-F]{6}\}", "", texgen.figure(target, **options).tikz())
        assert not re.search(r"(?<![A-Za-z])\d+\.?\d*[eE][-+]?\d", body)


def test_X03_no_convert_option():
    """lervag/vimtex#2335, James-Yu/LaTeX-Workshop#1762: standalone's convert does nothing without shell escape."""
    source = texgen.figure(F16).tex()
    assert "convert" not in source and "write18" not in source


@pytest.mark.pdflatex
def test_X03_shell_escape_is_never_asked_for(monkeypatch):
    """lervag/vimtex#2335."""
    seen = []
    run = engine._run
    monkeypatch.setattr(engine, "_run", lambda command, *rest: (seen.append(command), run(command, *rest))[1])
    assert texgen.figure("(4,4)").pdf("pdflatex").startswith(b"%PDF")
    assert "-no-shell-escape" in seen[0]


@pytest.mark.pdflatex
@pytest.mark.pdftocairo
def test_X04_X05_X06_2C12_no_other_converter_is_called(traps):
    """MartinScharrer/standalone#14 and #4, aergus/dockerfiles#12, michakraus/ipython-tikzmagic#18,
    mgieseki/dvisvgm#254, #226 and #239: neither ImageMagick nor Ghostscript nor dvisvgm stands between us and a picture."""
    drawing = texgen.figure("(4,4)")
    assert drawing.pdf().startswith(b"%PDF") and pixels(drawing.png())[0] > 100
    assert drawing.svg().count("<path") >= 2
    assert not traps.exists()


def test_X04_a_missing_program_is_named(monkeypatch):
    """MartinScharrer/standalone#14."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TexgenError, match=r"pdflatex is not on the PATH: install it"):
        texgen.figure("(4,4)").pdf("pdflatex")
    from texgen.api import TikzPicture

    with pytest.raises(TexgenError, match="needs a TeX engine and none is on the PATH: install one"):
        TikzPicture("\\begin{tikzpicture}\\end{tikzpicture}").pdf()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(TexgenError, match="pip install vl-convert-python, or install a TeX engine"):
        texgen.figure("(4,4)").pdf()


def test_2C12_the_svg_is_whole():
    """mgieseki/dvisvgm#239: an SVG with its shapes missing, and exit 0."""
    drawing = texgen.figure(F16)
    svg = drawing.svg()
    width, height = (float(re.search(rf'{side}="([\d.]+)"', svg)[1]) for side in ("width", "height"))
    assert f'viewBox="0 0 {number(width)} {number(height)}"' in svg and width > 24 * 24
    for fill in range(8):
        assert svg.count(f'class="txg-{fill}"') >= 3


def test_X10_no_externalization():
    """tectonic-typesetting/tectonic#319."""
    source = texgen.figure(F16).tex()
    assert "external" not in source and "tikzexternalize" not in source


def test_X11_the_suffix_is_the_format_and_grey_pngs_are_valid(tmp_path, monkeypatch):
    """michakraus/ipython-tikzmagic#32 and #34."""
    starts = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg", ".tex": b"%", ".tikz": b"%", ".json": b"{"}
    monkeypatch.setenv("PATH", "")
    for palette in ("default", "grey", "white"):
        drawing = texgen.figure("(4,4)", palette=palette)
        for suffix, start in starts.items():
            assert drawing.save(tmp_path / f"f{suffix}").read_bytes().startswith(start)
        width, height, color = pixels((tmp_path / "f.png").read_bytes())
        assert width > 100 and height > 100 and color in (0, 2, 3, 4, 6)


@pytest.mark.pdflatex
@pytest.mark.pdftocairo
def test_X11_grey_pngs_through_tex():
    """michakraus/ipython-tikzmagic#34."""
    assert pixels(texgen.figure("(4,4)", palette="grey").png("pdflatex"))[2] in (0, 2, 3, 4, 6)


@pytest.mark.pdflatex
def test_X12_tex_specials_in_labels():
    """sphinx-contrib/tikz#3: a_b & 50% #1 unescaped ends in 'Missing $ inserted'."""
    text = "a_b & 50% #1"
    assert to_tex(text) == r"a\_b \& 50\% \#1"
    table = {"tile": [2, 2], "tv": [[0, 1, 2, 3]], "name": text, "dtype": "x_y&z", "layout": ""}
    drawing = texgen.figure({**table, "kind": "tv", "notes": [text, "\\undefined{x}"]}, title=text)
    assert drawing.pdf("pdflatex").startswith(b"%PDF")


COVERED = {"X09": "tests/test_cases_figures.py::test_V02_X09_the_engine_falls_back_and_says_so"}


def test_what_stands_elsewhere_is_there():
    from pathlib import Path

    root = Path(__file__).parent.parent
    for place in COVERED.values():
        file, _, name = place.partition("::")
        assert re.search(rf"^def {name}\(", (root / file).read_text(), re.MULTILINE), place
    assert shutil.which("sh")
