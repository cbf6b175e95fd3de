"""What people asked of layout figures in public, with the values that are right. The ids are those of our own list."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from readback import from_svg, from_tikz

import texgen
from texgen.errors import TexgenError, TexgenWarning, UsageError
from texgen.layouts import Layout
from texgen.sources import catalog

F16 = "SM80_16x8x16_F32F16F16F32_TN"
TILED = {"atom_layout": "2,2,1", "tile": "32,32,16"}


def caption(drawing) -> str:
    return " ".join(line.text for line in drawing.figure.lines)


def owners(operand, row, column):
    return [[o.thread, o.value] for o in operand.owners(row, column)]


def legend_texts(drawing) -> list[str]:
    """The legend's texts, whether its items stand in one row or in several."""
    rows = [item if isinstance(item, tuple) else (item,) for item in drawing.figure.legend]
    return [item.text for row in rows for item in row]


def both(drawing):
    return [from_tikz(drawing.tikz()), from_svg(drawing.svg(), drawing.figure.aspect)]


def test_V01_every_owner_of_a_shared_cell():
    """NVIDIA/cutlass#2265."""
    drawing = texgen.figure(F16, **TILED)
    spec = drawing.spec
    assert owners(spec.A, 0, 0) == [[0, 0], [64, 0]] and owners(spec.A, 16, 0) == [[32, 0], [96, 0]]
    assert owners(spec.B, 0, 0) == [[0, 0], [32, 0]] and owners(spec.C, 0, 0) == [[0, 0]]
    assert {x: set(o.owner_counts.flat) for x, o in spec.operands().items()} == {"A": {2}, "B": {2}, "C": {1}}
    for panels in both(drawing):
        assert panels["A"].labels[0, 0] == ["T0 T64", "V0"] and panels["A"].labels[16, 0] == ["T32 T96", "V0"]
        assert panels["B"].labels[0, 0] == ["T0 T32", "V0"] and panels["C"].labels[0, 0] == ["T0", "V0"]
        for name in "ABC":
            named = {word for label in panels[name].labels.values() for word in label[0].split()}
            assert named == {f"T{t}" for t in range(128)}
    assert caption(drawing).count("each cell in 2 threads") == 2
    assert "held by several threads" in legend_texts(drawing)


@pytest.mark.pdflatex
def test_V02_a_tile_of_9216_cells_compiles():
    """NVIDIA/cutlass#1733: TeX ran out of memory on 128x32x32."""
    drawing = texgen.figure(F16, atom_layout="4,1,1", tile="128,32,32")
    assert drawing.figure.cells == 9216
    assert drawing.pdf("pdflatex").startswith(b"%PDF")


def test_V02_X09_the_engine_falls_back_and_says_so(monkeypatch, capsys):
    """NVIDIA/cutlass#1733, johannesjmeyer/rsmf#23: memory that ends is no bare TeX error."""
    from texgen.render import engine

    def full(source, name, *_, **__):
        raise engine.TexFailure(f"{name} failed: TeX capacity exceeded", capacity=True)

    tried = []
    monkeypatch.setattr(engine, "compile_pdf", lambda s, n, *a, **k: (tried.append(n), full(s, n))[1])
    monkeypatch.setattr(engine, "available", lambda: ["pdflatex", "lualatex"])
    assert texgen.figure("(4,4)").pdf().startswith(b"%PDF")
    assert tried == ["pdflatex", "lualatex"]
    assert "pdflatex's memory ended at this picture, the PDF is drawn from the SVG" in capsys.readouterr().err


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize(
    ("make", "by_tex"),
    [(lambda: texgen.figure("(2,20000):(20000,1)"), False), (lambda: texgen.figure("(2,8000):(8000,1)"), True), (lambda: texgen.timeline(2, 500, 1), True)],
    ids=["wider layout", "layout", "timeline"],
)
def test_a_picture_longer_than_tex_measures_is_drawn_in_pieces_or_from_the_svg(make, by_tex, capsys):
    """TeX's lengths end at 5.7 m, so at 16383 cells; a page at 14400 points in Acrobat."""
    pdf = make().pdf("pdflatex")
    said = "" if by_tex else "texgen: this picture is longer than pdflatex can measure, the PDF is drawn from the SVG\n"
    assert capsys.readouterr().err == said and (b"pdfTeX" in pdf) == by_tex
    told = subprocess.run(["pdfinfo", "-"], input=pdf, capture_output=True, check=True).stdout
    assert max(map(float, re.search(rb"Page size: +([\d.]+) x ([\d.]+)", told).groups())) < 14400


def test_V04_three_figures_three_files(tmp_path):
    """NVIDIA/cutlass#2115: three layouts printed to one stream, and one was shown."""
    targets = {"copy A": "SM75_U32x4_LDSM_N", "copy B": "SM75_U32x2_LDSM_N", "accumulator C": F16}
    written = texgen.figure(targets).save(tmp_path / "f.svg")
    assert [p.name for p in written] == ["f-copy_A.svg", "f-copy_B.svg", "f-accumulator_C.svg"]
    assert len({p.read_bytes() for p in written}) == 3
    assert [p.name for p in texgen.figure(list(targets.values())).save(tmp_path / "g.svg")] == ["g-0.svg", "g-1.svg", "g-2.svg"]


def test_V05_4096_cells_without_tex(monkeypatch):
    """NVIDIA/cutlass#2453."""
    monkeypatch.setenv("PATH", "")
    svg = texgen.figure("(64,64):(64,1)").svg()  # benchmarks/bench_core.py times it: 128x128 in a fifth of a second
    assert from_svg(svg, texgen.figure("(64,64):(64,1)").figure.aspect)["offsets"].labels[63, 63] == ["4095"]


def test_V06_body_document_and_bytes():
    """NVIDIA/cutlass#3135: a hook takes the picture's source and gives an image."""
    drawing = texgen.figure("(4,4)")
    assert "\\documentclass" not in drawing.tikz() and "\\begin{tikzpicture}" in drawing.tikz()
    assert "\\documentclass" in drawing.tex() and drawing.tikz() in drawing.tex()
    assert drawing.data(".png").startswith(b"\x89PNG") and drawing.data(".pdf").startswith(b"%PDF")
    picture = texgen.api.TikzPicture(drawing.tikz())
    assert picture.source == drawing.tikz() and "\\documentclass" in picture.tex()


def test_V07_labels_follow_the_byte_swizzle():
    """NVIDIA/cutlass#1559 and #1396."""
    text = "S<3,4,3> o 0 o (8,64):(64,1)"
    drawing, naive = texgen.figure(text, bits=16), texgen.figure(text, bits=16, swizzle_unit="elements")
    for panels in both(drawing):
        assert panels["after"].labels[1, 0] == ["72"] and panels["after"].labels[3, 9] == ["209"]
        for r in range(8):
            assert [panels["after"].fills[r, 8 * j] for j in range(8)] == [str(j ^ r) for j in range(8)]
    for panels in both(naive):
        assert panels["after"].labels[1, 0] == ["64"] and panels["after"].labels[3, 9] == ["217"]
    assert (drawing.spec.offsets != naive.spec.offsets).sum() == 256
    assert "acts on byte addresses; on 16-bit elements it is S<3,3,3>" in caption(drawing)
    assert "acts on element indices (16 bits)" in caption(naive)


def test_V10_2A09_equal_layouts_get_a_figure_each_and_what_cannot_be_drawn_is_named(tmp_path):
    """tile-ai/tilelang#1950."""
    same = "((4,8),2):((2,8),1)"
    with pytest.warns(TexgenWarning, match="deep is left out: The layout .* has rank 3"):
        drawings = texgen.figure({"A_local": same, "deep": "(2,3,4)", "B_local": same})
    assert list(drawings) == ["A_local", "B_local"]
    assert [p.name for p in drawings.save(tmp_path / "f.svg")] == ["f-A_local.svg", "f-B_local.svg"]
    with pytest.raises(TexgenError, match=r"^deep: The layout .* has rank 3"):
        texgen.figure({"deep": "(2,3,4)"})
    assert texgen.figure("8:2").spec.offsets.shape == (1, 8)  # rank 1 is one row
    assert texgen.figure("(4,4)").data(".SVG") == texgen.figure("(4,4)").data(".svg")
    for suffix in ("", ".gif", "all", "svg,png"):
        with pytest.raises(UsageError, match=r"\.svg"):
            texgen.figure("(4,4)").data(suffix)


def test_V12_too_many_cells_name_the_command_for_a_part():
    """ROCm/triton#407 and #794: tiles of 256x256 and more."""
    assert texgen.figure("(256,256):(256,1)").figure.cells == 65536
    with pytest.raises(TexgenError, match=r"4,194,304 cells, more than the 1,000,000 .* --rows 0:64 --cols 0:64"):
        texgen.figure("(2048,2048):(2048,1)")
    assert texgen.figure("(2048,2048):(2048,1)", rows="0:64", cols="0:64").figure.cells == 4096
    document = "\n".join(x for x in texgen.figure("(4,4)").tex().splitlines() if not x.startswith("%"))
    assert set(re.findall(r"\\usepackage(?:\[\w+\])?\{(\w+)\}", document)) <= {"tikz", "fontenc", "lmodern"}


def test_V13_operands_read_from_shared_memory():
    """NVIDIA/cutlass#2431."""
    drawing = texgen.figure("SM90_64x64x16_F32F16F16_SS")
    for panels in both(drawing):
        for name in "AB":
            assert not panels[name].labels and set(panels[name].fills.values()) == {"Memory"}
    assert [p.note for p in drawing.figure.panels if p.key in "AB"] == ["read from shared memory by the whole warpgroup"] * 2
    assert "A (128,((64,16),(1,1))):(0,((1,64),(0,0)))" in caption(drawing)
    assert set(drawing.spec.A.owner_counts.flat) == {128}
    rows, columns = drawing.spec.C.coordinates()
    assert np.stack([rows[37], columns[37]], 1)[:6].tolist() == [[17, 2], [17, 3], [25, 2], [25, 3], [17, 10], [17, 11]]
    registers = texgen.figure("SM90_64x64x16_F32F16F16_RS")
    assert registers.spec.A.layout == "((4,8,4),((2,2,2),(1,1))):((128,1,16),((64,8,512),(0,0)))"
    assert "A (m,k): 128 threads × 8 values = 1,024 cells" in caption(registers)
    for panels in both(registers):
        assert panels["A"].labels[0, 0] == ["T0", "V0"]


@pytest.mark.parametrize("target", [F16, "SM90_64x64x16_F32F16F16_SS", "SM75_U32x4_LDSM_N"])
def test_V14_captions_are_generated(target):
    """NVIDIA/cutlass#2920: numbers in comments differed from what the code prints."""
    drawing = texgen.figure(target)
    code = [line.text for line in drawing.figure.lines if line.code]
    for name, operand in drawing.spec.operands().items():
        assert f"{name} {operand.layout}" in code
    changed = texgen.figure(target, name="other")
    assert "other" in changed.figure.title


def test_V15_a_figures_source_ships_with_it(tmp_path):
    """NVIDIA/apex#1352: every figure can be written as the spec that draws it again."""
    drawing = texgen.figure(F16, **TILED)
    again = texgen.figure(drawing.save(tmp_path / "figure.json"))
    assert again.spec == drawing.spec and again.svg() == drawing.svg()


def test_2A10_explicit_tables_get_no_invented_layout():
    """facebookexperimental/triton#1955: a map that is no shape and stride."""
    index = [0, 1, 3, 2, 4, 5, 7, 6]
    table = texgen.figure({"tile": [8, 1], "tv": [index[:4], index[4:]]})
    assert table.spec.map.layout == "" and not any(line.code for line in table.figure.lines)
    for panels in both(table):
        assert panels["TV"].labels[3, 0] == ["T0", "V2"] and panels["TV"].labels[6, 0] == ["T1", "V3"]
    assert "This table is S<1,0,1> of value + 4 thread, 0 to 7." in table.spec.notes
    offsets = texgen.read({"kind": "layout", "offsets": [index]})
    assert offsets.layout == "" and "S<1,0,1>" in offsets.notes[0]
    assert not texgen.read({"tile": [8, 1], "tv": [[0, 2, 1, 3], [4, 5, 6, 7]]}).notes


def test_2B34_a_wrong_atom_is_caught_before_it_is_drawn():
    """NVIDIA/cutlass#3140: B of the 4-bit m16n8k32."""
    wrong, right = (Layout(((4, 8), 8), ((lane, 1), 8)) for lane in (32, 64))
    with pytest.raises(TexgenError, match=r"96 of 256 cells have no owner.*\(0,20\).*reaches 160 cells .largest index 159"):
        texgen.figure(str(wrong), tv=True, tile="8,32")
    assert len(np.unique(texgen.read(str(right), tv=True, tile="8,32").map.tv)) == 256
    spec = catalog.read("SM80_16x8x32_S32S4S4S32_TN")
    assert set(spec.B.owner_counts.flat) == {1}


@pytest.mark.dsl
def test_2B36_an_abort_costs_one_figure(tmp_path):
    """NVIDIA/cutlass#3454: cute.slice_ on a swizzled layout ends the interpreter (exit 134)."""
    program = (
        "import cutlass.cute as cute\n"
        "def f(n):\n"
        "    s = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((n, 2), stride=(2, 1)))\n"
        "    return cute.slice_(s, (None, 0))\n"
        "def ten():\n    return f(10)\n"
        "def eight():\n    return f(8)\n"
    )
    (tmp_path / "p.py").write_text(program)
    with pytest.raises(TexgenError, match="SIGABRT"):
        texgen.figure(f"{tmp_path}/p.py:ten")
    assert texgen.figure(f"{tmp_path}/p.py:eight").spec.layout == "S<0,4,3> o 0 o (8):(2)"


def test_2C14_no_opacity_in_pictures():
    """mgieseki/dvisvgm#148: tints are solid."""
    drawing = texgen.figure(F16, **TILED, highlight="T5")
    assert "opacity" not in drawing.tex() and "opacity" not in drawing.svg()


def test_light_import():
    """NVIDIA/cutlass#3083: the package is imported without the DSL."""
    code = "import sys, texgen, texgen.sources, texgen.api, texgen.banks; assert 'cutlass' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pdf_without_tex_has_the_width_asked_for(monkeypatch, tmp_path):
    """84 mm are 238 points, by whichever way the PDF is made."""
    monkeypatch.setenv("PATH", str(tmp_path))
    pdf = texgen.figure("(8,8):(8,1)", print_width="84mm").pdf()
    box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", pdf)
    assert box and float(box[1]) == pytest.approx(84 / 25.4 * 72, abs=0.5)
