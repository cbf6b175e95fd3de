"""Forms of output that a template makes, and the kinds of spec: each is one entry, found everywhere it is used."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import texgen
from texgen.errors import TexgenError, UsageError
from texgen.kinds import KINDS, function, is_spec
from texgen.render.forms import OWN, suffixes
from texgen.sources import atoms_save, catalog

ROWS = "{% autoescape false %}{% for p in panels %}{% for row in p.label_rows %}{% for c, _ in row[0] %}{{ c }};{% endfor %}{{ '\n' }}{% endfor %}{% endfor %}{% endautoescape %}"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "figure.csv.j2").write_text(ROWS)
    (folder / "figure.note.j2").write_text("<b>{{ figure.title }}</b>")
    (folder / "figure.sty.j2").write_text("<# TeX #>\\def\\name{<< figure.title|tex >>}\n")
    (folder / "figure.SVG.j2").write_text("never taken")
    return folder


def test_a_template_makes_a_form(mine: Path) -> None:
    assert suffixes() == OWN and suffixes([mine]) == (*OWN, ".csv", ".note", ".sty")
    drawing = texgen.figure("(2,3):(3,1)", templates=[mine], title="a<b & 50%")
    assert drawing.data(".CSV") == b"0;1;2;\n3;4;5;\n"
    assert drawing.data(".note") == b"<b>a&lt;b &amp; 50%</b>"  # escaped for markup unless the template says otherwise
    assert b"50\\%" in drawing.data(".sty")
    assert drawing.data(".svg").startswith(b"<svg")
    with pytest.raises(UsageError, match=r"writes no \.csv"):
        texgen.figure("(2,3):(3,1)").data(".csv")


def test_the_command_and_batches_write_it(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps({"figure": [{"target": "(2,3):(3,1)", "output": "b.csv"}]}))
    base = [sys.executable, "-m", "texgen", "render"]
    for arguments, code in (
        (["(2,3):(3,1)", "-o", "a.csv", "--templates", "mine"], 0), (["--batch", "list.json", "--templates", "mine"], 0),
        (["(2,3):(3,1)", "-o", "c.csv"], 2), (["--batch", "list.json"], 2), (["(2,3):(3,1)", "-o", "c.csv", "--templates", "none"], 1),
    ):  # fmt: skip
        done = subprocess.run([*base, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, (arguments, done.stderr)
        assert code == 0 or ("Traceback" not in done.stderr and done.stderr.count("\n") == 1), done.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes() == b"0;1;2;\n3;4;5;\n"
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_name_functions(kind: str) -> None:
    for place in (KINDS[kind].read, KINDS[kind].draw):
        module, _, name = place.partition(":")
        assert function(place) is vars(importlib.import_module(module))[name]


def test_what_is_no_spec() -> None:
    assert is_spec(texgen.read("SM61_DP4A")) and not is_spec(catalog.find("SM61_DP4A")) and not is_spec(42)
    with pytest.raises(TexgenError, match=f"must be one of {', '.join(KINDS)}"):
        texgen.read({"kind": "histogram"})
    with pytest.raises(TexgenError, match="must be one of"):
        texgen.read({"kind": ["mma"], "tv": []})


def test_one_source_made_anew_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other atoms of the file stay, those of the source that are gone go, and a table with a hole is refused."""
    lines = [dict(catalog.find(n).line) for n in ("SM80_16x8x8_F32F16F16F32_TN", "SM70_8x8x4_F32F16F16F32_TN")]
    dsl, library = lines
    assert [x["origin"].split()[0] for x in lines] == list(atoms_save.SOURCES)
    path = tmp_path / "atoms.json"
    monkeypatch.setitem(atoms_save.SOURCES, "nvidia-cutlass-dsl", lambda: [dsl])
    monkeypatch.setitem(atoms_save.SOURCES, "tensor-layouts", lambda: [library, library | {"name": "OLD_8x8x4"}])
    assert atoms_save.save(path) == 3
    monkeypatch.setitem(atoms_save.SOURCES, "nvidia-cutlass-dsl", lambda: pytest.fail("not asked for"))
    monkeypatch.setitem(atoms_save.SOURCES, "tensor-layouts", lambda: [library | {"name": "NEW_8x8x4"}])
    assert atoms_save.save(path, ["tensor-layouts"]) == 2
    before = path.read_bytes()
    assert [a["name"] for a in json.loads(before)["atoms"]] == [dsl["name"], "NEW_8x8x4"]
    shuffle = dict(catalog.find("SM50_Shuffle_U32_2x2Trans_XOR1").line)
    without = {k: v for k, v in library.items() if k != "thr"}
    for record, said in (
        (library | {"C": [[8, 8], [0, 1]]}, "have no owner"), (shuffle | {"D": [[32, 1], [0, 0]]}, "have no owner"), (without, "lacks 'thr'"),
        (library | {"kind": "tile"}, "lacks 'a kind"), (library | {"origin": "somebody 1"}, "must begin with its source's name"),
    ):  # fmt: skip
        monkeypatch.setitem(atoms_save.SOURCES, "tensor-layouts", lambda record=record: [record])
        with pytest.raises(TexgenError, match=said):
            atoms_save.save(path, ["tensor-layouts"])
    with pytest.raises(UsageError, match="no source of atoms 'nobody'"):
        atoms_save.save(path, ["nobody"])
    assert path.read_bytes() == before


def test_the_librarys_atoms_made_anew_are_the_committed_ones(tmp_path: Path) -> None:
    """From the installed tensor-layouts, byte for byte; the DSL's own are compared table by table elsewhere."""
    committed = Path(atoms_save.__file__).parent / "atoms.json"
    recorded = {a["origin"] for a in json.loads(committed.read_bytes())["atoms"] if a["origin"].startswith("tensor-layouts")}
    if recorded != {installed := f"tensor-layouts {version('tensor-layouts')}"}:
        pytest.skip(f"made with {', '.join(recorded)}, and {installed} is installed")
    path = tmp_path / "atoms.json"
    path.write_bytes(committed.read_bytes())
    atoms_save.save(path, ["tensor-layouts"])
    assert path.read_bytes() == committed.read_bytes()


@pytest.mark.parametrize("option", [
    {"rows": (0, 8)}, {"highlight": ["T5"]}, {"operand": ["A"]}, {"title": 5}, {"print_width": 84}, {"steps": "4"}, {"caption": "no"}, {"steps": True},
])  # fmt: skip
def test_an_option_of_the_wrong_type_is_named(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"The option {next(iter(option))} = .* must be (a text|a whole number|True or False)"):
        texgen.figure("SM80_16x8x16_F32F16F16F32_TN", **option)


def test_one_thread_that_holds_a_cell_twice_is_not_several() -> None:
    """Counted from the table: T1 holds (0,1) as V0 and as V1."""
    drawing = texgen.figure({"tile": [2, 2], "tv": [[0, 1], [2, 2]]}, allow_holes=True)
    assert drawing.spec.map.thread_counts.tolist() == [[1, 1], [1, 0]] and drawing.spec.map.owner_counts.tolist() == [[1, 2], [1, 0]]
    assert "held 0 to 2 times" in drawing.text() and "T1V0/T1V1" in drawing.text() and "several threads" not in drawing.svg()
    both = texgen.figure({"tile": [1, 2], "tv": [[0, 1], [0, 1]]})
    assert "each cell in 2 threads" in both.text() and "several threads" in both.svg()
