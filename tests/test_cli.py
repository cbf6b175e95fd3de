"""The command line: outputs, exit status, and one clear sentence for wrong input, never a traceback or half a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import texgen
from texgen.cli import main
from texgen.spec_json import from_dict

F16 = "SM80_16x8x16_F32F16F16F32_TN"
PROGRAM = """
import cutlass, cutlass.cute as cute
from cutlass.cute.nvgpu import warp, warpgroup
K = cute.nvgpu.OperandMajorMode.K
def mma():
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
def wgmma():
    op = warpgroup.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, K, K)
    return cute.make_tiled_mma(op)
def three():
    return {"A": mma(), "B": wgmma(), "copy": cute.make_layout((4, 8))}
def raises():
    return {}["missing"]
def number():
    return 42
def dynamic():
    return cute.make_layout((cutlass.Int32(4), 8))
def aborts():
    swizzled = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((10, 2), stride=(2, 1)))
    return cute.slice_(swizzled, (None, 0))
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in a folder of its own: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(PROGRAM)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["texgen", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        assert "Traceback (most recent call last)" not in captured.err or "prog.py" in captured.err
        return left.value.code or 0, captured.out, captured.err

    return call


def written(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} - {"prog.py", "__pycache__"}


def test_every_suffix(run, tmp_path):
    names = ["f.tikz", "f.tex", "f.svg", "f.txt", "f.json", "f.png"]
    status, out, _ = run("render", "(4,8):(8,1)", *(x for n in names for x in ("-o", n)))
    assert status == 0 and out.split() == names and written(tmp_path) == set(names)
    starts = {"f.tikz": "% (4,8)", "f.tex": "% (4,8)", "f.svg": "<svg ", "f.txt": "(4,8)", "f.json": "{"}
    for name, start in starts.items():
        assert (tmp_path / name).read_text().startswith(start)
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_pdf_without_tex_comes_from_the_svg_and_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    status, _, err = run("render", "(4,8):(8,1)", "-o", "x.pdf", "-o", "x.png")
    assert status == 0 and (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    assert [line.count("drawn from the SVG") for line in err.splitlines()] == [1, 1]


def test_without_output_the_figure_is_shown(run):
    status, out, _ = run("render", F16, "--operand", "C")
    assert status == 0 and "T31V3" in out and "C (M×N) f32" in out


def test_table_is_the_schema_of_the_issue(run):
    status, out, _ = run("table", F16, "--atom-layout", "2,2,1", "--tile", "32,32,16")
    table = json.loads(out)
    assert status == 0
    assert {"schema", "kind", "name", "arch", "source", "tile_mnk", "A", "B", "C"} <= set(table)
    assert (table["schema"], table["kind"], table["name"], table["tile_mnk"]) == (1, "mma", F16, [32, 32, 16])
    assert table["A"]["tile"] == [32, 16] and len(table["A"]["tv"]) == 128 and len(table["A"]["tv"][0]) == 8
    copy = json.loads(run("table", "SM75_U32x4_LDSM_N")[1])
    assert (copy["kind"], copy["tile"]) == ("copy", [32, 8]) and {"tiler", "S", "D"} <= set(copy)
    layout = json.loads(run("table", "((2,2),3):((1,6),2)")[1])
    assert layout["kind"] == "layout" and layout["layout"] == "((2,2),3):((1,6),2)" and layout["shape"] == [[2, 2], 3]
    assert layout["offsets"] == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]


def test_json_goes_out_and_in(run, tmp_path):
    for target, options in (
        (F16, ["--atom-layout", "2,1,1"]),
        ("SM75_U16x4_LDSM_T", []),
        ("S<3,3,3> o 0 o (8,64):(64,1)", ["--bits", "16"]),
    ):
        assert run("table", target, *options, "-o", "spec.json")[0] == 0
        status, out, _ = run("table", "spec.json")
        assert status == 0 and out == (tmp_path / "spec.json").read_text()
        assert from_dict(json.loads(out)) == texgen.read(str(tmp_path / "spec.json"))


@pytest.mark.parametrize("spelling", ["2,2,1", "(2,2,1)", "(2,2,1):(1,2,4)"])
def test_atom_layout_spellings(run, spelling):
    assert (
        json.loads(run("table", F16, "--atom-layout", spelling)[1])["C"]
        == json.loads(run("table", F16, "--atom-layout", "2,2,1")[1])["C"]
    )


def test_cpp_and_name_agree(run):
    cpp = f"TiledMMA<MMA_Atom<{F16}>, Layout<Shape<_2,_2,_1>>, Tile<_32,_32,_16>>"
    assert json.loads(run("table", cpp)[1]) == json.loads(
        run("table", F16, "--atom-layout", "2,2,1", "--tile", "32,32,16")[1]
    )
    old = "make_tiled_mma(SM75_16x8x8_F32F16F16F32_TN{}, Layout<Shape<_4,_1,_1>>{}, Layout<Shape<_1,_2,_2>>{})"
    assert json.loads(run("table", old)[1])["tile_mnk"] == [64, 16, 16]


def test_atoms_lists_names_with_architecture_and_source(run):
    status, out, _ = run("atoms", "SM80_16x8x16")
    assert status == 0
    line = next(x for x in out.splitlines() if x.startswith(F16))
    assert "sm_80" in line and "nvidia-cutlass-dsl" in line
    assert run("atoms", "no-such-atom")[0] == 1


@pytest.mark.dsl
def test_several_figures_get_a_file_each(run, tmp_path):
    """NVIDIA/cutlass#2115: three layouts printed to one stream, and one was shown."""
    status, out, _ = run("render", "prog.py:three", "-o", "f.svg")
    assert status == 0 and out.split() == ["f-A.svg", "f-B.svg", "f-copy.svg"] and written(tmp_path) == set(out.split())


@pytest.mark.dsl
def test_live_equals_the_catalogue(run):
    options = ["--atom-layout", "2,2,1", "--tile", "32,32,16"]
    named, live, program = (
        json.loads(run("table", *a)[1]) for a in ([F16, *options], [F16, *options, "--live"], ["prog.py:mma"])
    )
    for operand in "ABC":
        assert named[operand]["tv"] == live[operand]["tv"] == program[operand]["tv"]


WRONG = [
    # (arguments, status, words of the sentence)
    (["render", "SM80_16x8x16_F32F16F16F32", "-o", "x.svg"], 1, ["no atom named", F16]),
    (["render", F16, "--tile", "24,8,16", "-o", "x.svg"], 1, ["M=24", "16", "32"]),
    (["render", "(4,8:(8,1)", "-o", "x.svg"], 1, ["not a layout", "    ^"]),
    (["render", "(?,8):(8,1)", "-o", "x.svg"], 1, ["dynamic", "static"]),
    (["render", "(4,8):(8)", "-o", "x.svg"], 1, ["^"]),
    (["render", "TiledMMA<MMA_Atom<Foo>, Layout<Shape<_2,_2,_1>>", "-o", "x.svg"], 1, ["^"]),
    (["render", "(2,3,4)", "-o", "x.svg"], 1, ["rank 3", "two axes"]),
    (["render", "(2048,2048):(2048,1)", "-o", "x.svg"], 1, ["4,194,304 cells", "--rows"]),
    (["render", "(1048576,1048576)", "-o", "x.svg"], 1, ["cells"]),
    (["render", "(4,8):(8,1)", "-o", "prog.py/x.svg"], 1, ["cannot be written"]),
    (["render", "(4,8):(8,1)", "-o", "x.gif"], 2, [".gif", ".svg"]),
    (["render", "(4,8):(8,1)", "-o", "x"], 2, ["suffix"]),
    (["render", "(4,8):(8,1)", "--highlight", "T0", "-o", "x.svg"], 2, ["threads"]),
    (["render", F16, "--highlight", "Z9", "-o", "x.svg"], 2, ["Z9", "T5"]),
    (["render", F16, "--rows", "99", "-o", "x.svg"], 2, ["0 to 15"]),
    (["render", F16, "--rows", "a:b", "-o", "x.svg"], 2, ["0:16"]),
    (["render", F16, "--operand", "S", "-o", "x.svg"], 2, ["A, B, C"]),
    (["render", F16, "--palette", "gray", "-o", "x.svg"], 2, ["grey"]),
    (["render", F16, "--color-by", "hue", "-o", "x.svg"], 2, ["thread, value, warp, quad"]),
    (["render", F16, "--engine", "luatex", "-o", "x.pdf"], 2, ["pdflatex"]),
    (["render", F16, "--atom-layout", "2,2,1,1", "-o", "x.svg"], 1, ["three"]),
    (["render", "((4,8),(2,2)):((32,1),(16,8))", "--tv", "-o", "x.svg"], 2, ["--tile"]),
    (["render", "((4,8),(2,2)):((32,1),(16,8))", "--tv", "--tile", "8,8", "-o", "x.svg"], 1, ["127", "64"]),
    (["render", "nothing.json", "-o", "x.svg"], 1, ["nothing.json", "No such file"]),
    (["render", "prog.py", "-o", "x.svg"], 1, ["prog.py:function"]),
    (["render", "gone.py:f", "-o", "x.svg"], 1, ["no file gone.py"]),
    (["render", "", "-o", "x.svg"], 1, ["empty"]),
    (["render", "(4,8):(8,1)", "--templates", "nowhere", "-o", "x.svg"], 1, ["nowhere"]),
    (["render", "(4,8):(8,1)", "--dtype", "f17", "-o", "x.svg"], 2, ["f16"]),
    (["render", "(4,8)", "--no-such-option"], 2, ["--no-such-option"]),
    (["render"], 2, ["TARGET"]),
    (["render", "SM75_U32x4_LDSM_N", "--operand", "src"], 2, ["'src'", "S (source), D (destination)"]),
]


@pytest.mark.parametrize(
    ("arguments", "status", "words"), WRONG, ids=lambda x: " ".join(x)[:70] if isinstance(x, list) else None
)
def test_wrong_input_gets_one_clear_sentence(run, tmp_path, arguments, status, words):
    got, out, err = run(*arguments)
    assert (got, out) == (status, ""), err
    for word in words:
        assert word in err
    assert "Traceback" not in err
    assert not written(tmp_path), "nothing may be left behind"


WRONG_LIVE = [
    (["prog.py:raises"], ["raised KeyError: 'missing'", 'return {}["missing"]']),
    (["prog.py:number"], ["returned an int", "TiledMma"]),
    (["prog.py:gone"], ["no 'gone'", "mma"]),
    (["prog.py:dynamic"], ["dynamic"]),
    (["prog.py:aborts"], ["SIGABRT", "prog.py"]),
    (["prog.py:wgmma", "--arch", "sm_80"], ["needs sm_90a", "--arch says sm_80"]),
    (["prog.py:wgmma", "--arch", "sm_99"], ["sm_99", "sm_90a"]),
    (["no.such.module:f"], ["no.such.module"]),
    (["SM70_8x8x4_F32F16F16F32_TN", "--live"], ["not in the CuTe DSL"]),
]


@pytest.mark.dsl
@pytest.mark.parametrize(("arguments", "words"), WRONG_LIVE, ids=lambda x: " ".join(x)[:50])
def test_wrong_programs_get_one_clear_sentence(run, tmp_path, arguments, words):
    got, out, err = run("render", *arguments, "-o", "x.svg")
    assert (got, out) == (1, ""), err
    for word in words:
        assert word in err
    assert "texgen/" not in err, "the traceback shown is the user's own"
    assert not written(tmp_path)
    # the child that reads programs is whole again after each of these
    assert run("render", "prog.py:mma", "-o", "ok.svg")[0] == 0


def test_warnings_carry_the_numbers(run):
    status, _, err = run(
        "render",
        "SM80_16x8x8_F32TF32TF32F32_TN",
        "--atom-layout",
        "4,1,1",
        "--tile",
        "16,(2,16):(1,8),8",
        "-o",
        "x.svg",
    )
    assert status == 0 and err.count("warning") == 2
    assert (
        "M=16 is smaller than the 4 atoms of 16" in err and "size 32 but reaches column 121" in err and "N=128" in err
    )


def test_explicit_tables_holes_and_uneven_owners(run, tmp_path):
    (tmp_path / "good.json").write_text('{"tile": [2, 2], "tv": [[0, 1], [2, 3]]}')
    (tmp_path / "pairs.json").write_text('{"tile": [2, 2], "tv": [[[0, 0], [1, 0]], [[0, 1], [1, 1]]]}')
    assert run("table", "good.json")[1] == run("table", "pairs.json")[1] != ""
    (tmp_path / "hole.json").write_text('{"tile": [2, 2], "tv": [[0, 1], [2, 2]]}')
    (tmp_path / "uneven.json").write_text('{"tile": [2, 2], "tv": [[0, 1, 2], [2, 3, 3]]}')
    status, _, err = run("render", "hole.json", "-o", "x.svg")
    assert status == 1 and "(1,1)" in err and "no owner" in err
    status, _, err = run("render", "uneven.json", "-o", "x.svg")
    assert status == 1 and "(0,1)" in err and "T0V2 T1V0" in err
    assert run("render", "hole.json", "--allow-holes", "-o", "x.svg")[0] == 0
    for text in ("{", "[]", '{"kind": "mma"}', '{"schema": 9}', '{"tile": [2], "tv": [[0]]}', '{"tile": [1, 1], "tv": [[5]]}',
                 '{"tile": [1, 1], "tv": [["x"]]}', '{"tile": [2, 2], "tv": [[0], [1, 2]]}', "[" * 5000, '{"tile": 1e400}', "\ud800"):  # fmt: skip
        (tmp_path / "bad.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        status, _, err = run("render", "bad.json", "-o", "y.svg")
        assert status == 1 and "bad.json" in err and not (tmp_path / "y.svg").exists()


def test_light_commands_load_neither_cutlass_nor_torch_nor_sphinx():
    code = (
        "import sys; sys.argv = ['texgen', *sys.argv[1:]]\n"
        "import texgen.cli\n"
        "try:\n    texgen.cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'cutlass', 'torch', 'sphinx', 'tensor_layouts', 'rich', 'vl_convert', 'pylatexenc'} & {m.split('.')[0] for m in sys.modules}\n"
        "assert not heavy, heavy\n"
    )
    for arguments in (["--help"], ["render", "(8,8):(8,1)", "-o", "/dev/null.svg"]):
        result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


SPELLINGS = [
    ("_4:_1", "4:1"),
    ("4:1", "4:1"),
    ("smem_ptr[16b](unset) o (8,8):(8,1)", "(8,8):(8,1)"),
    ('!cute.layout<"(8,8):(8,1)">', "(8,8):(8,1)"),
    ("Layout((4,8),stride=(8,1))", "(4,8):(8,1)"),
    ("cute.make_layout((4,8))", "(4,8):(1,4)"),
    ("make_layout(make_shape(_4{},_8{}), make_stride(_8{},_1{}))", "(4,8):(8,1)"),
    ("S<3,3,3>o0o(8,64):(64,1)", "S<3,3,3> o 0 o (8,64):(64,1)"),
    ("Sw<3,4,3>_smem_ptr[16b](0x7f) o (8,64):(64,1)", "S<3,4,3> o 0 o (8,64):(64,1)"),
    ("(0,0) o (4,8):(1@1,1@0)", "(4,8):(1@1,1@0)"),
    ("composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})", "S<3,3,3> o 0 o (8,64):(64,1)"),
]


@pytest.mark.parametrize(("text", "layout"), SPELLINGS)
def test_layout_text_reaches_its_grammar(text, layout):
    assert texgen.read(text).layout == layout


def test_a_byte_swizzle_of_the_dsl_is_placed_and_said():
    """NVIDIA/cutlass#1559: the DSL prints S<3,4,3> for 16-bit elements; CuTe C++ prints Sw<...> on elements."""
    assert texgen.read("S<3,4,3> o 0 o (8,64):(64,1)").offsets[1, 0] == 72
    assert texgen.read("Sw<3,4,3> o 0 o (8,64):(64,1)").offsets[1, 0] == 64


def test_names_of_tcgen05_templates():
    cpp = "MMA_Atom<SM100_MMA_F16BF16_SS<half_t, half_t, float, 128, 256, UMMA::Major::K, UMMA::Major::K>>"
    assert texgen.read(cpp).name == "SM100_128x256x16_F32F16F16_SS"
    pair = "cute::SM100_MMA_F16BF16_2x1SM_SS<cutlass::bfloat16_t, cutlass::bfloat16_t, float, 256, 64, UMMA::Major::K, UMMA::Major::MN>"
    assert texgen.read(pair).name == "SM100_2SM_256x64x16_F32BF16BF16_SS"


def test_several_specs_round_trip_and_keep_their_files(run, tmp_path):
    many = {"a/b": "(2,2)", "a_b": "(2,3)", "deep": ["(2,4)", "(2,5)"]}
    saved = texgen.figure(many).save(tmp_path / "f.svg")
    assert [p.name for p in saved] == ["f-a_b.svg", "f-a_b-2.svg", "f-deep-0.svg", "f-deep-1.svg"]
    from texgen.spec_json import all_to_json

    (tmp_path / "many.json").write_text("\ufeff" + all_to_json(texgen.read(many)), encoding="utf-8")
    assert all_to_json(texgen.read(str(tmp_path / "many.json"))) == all_to_json(texgen.read(many))
    assert run("render", "many.json", "-o", "g.svg")[0] == 0


def test_titles_do_not_run_into_each_other():
    """A panel's column is at least as wide as its title."""
    from texgen.figures.place import title_width

    for target in ("SM100_128x64x16_F32F16F16_SS", "SM90_64x8x16_F32F16F16_SS", F16):
        figure = texgen.figure(target).figure
        a, c = (next(p for p in figure.panels if p.key == k) for k in "AC")
        assert a.x + title_width(a.title) * figure.text_size / figure.aspect <= c.x


def test_sigterm_ends_the_engine_too(tmp_path):
    import os
    import signal
    import time

    fake = tmp_path / "pdflatex"
    fake.write_text("#!/bin/sh\necho $$ > part\nmv part started\nexec sleep 60\n")
    fake.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(scratch)}
    process = subprocess.Popen(
        [sys.executable, "-m", "texgen", "render", "(4,8)", "-o", "x.pdf"], cwd=tmp_path, env=environment
    )
    for _ in range(200):
        if found := list(scratch.rglob("started")):
            break
        time.sleep(0.1)
    engine = int(found[0].read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert not [p for p in scratch.iterdir() if p.is_dir()]
    with pytest.raises(ProcessLookupError):
        os.kill(engine, 0)
