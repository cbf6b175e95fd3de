"""TeX is confined: attacks through the raw entry, ``texgen.render_tikz``, compiled."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

import texgen
from texgen.errors import TexgenError
from texgen.render import confine, engine
from texgen.render.environment import fill

PICTURE = "\\begin{tikzpicture}\\node{x};\\end{tikzpicture}"
SECRET = "A53CR3TW0RD"

READS = {
    "input": r"\input{%s}", "openin": r"\newread\r\openin\r=%s \ifeof\r\else\read\r to\x \x\fi", "at-input": r"\makeatletter\@input{%s}",
    "image": r"\pdfximage{%s}", "filedump": r"\pdffiledump length 20{%s}", "object": r"\pdfobjcompresslevel=0 \immediate\pdfobj file{%s}\pdfrefobj\pdflastobj",
    "stream": r"\pdfcompresslevel=0 \immediate\pdfobj stream file{%s}\pdfrefobj\pdflastobj",
}  # fmt: skip
WRITES = {
    "write18": r"\immediate\write18{touch %s}", "pipe": r"\input{|touch %s}",
    "openout": r"\newwrite\w\immediate\openout\w=%s \immediate\write\w{x}\immediate\closeout\w",
    "filecontents": "\\begin{filecontents*}{%s}\nx\n\\end{filecontents*}\n",
}  # fmt: skip


def compiled(source: str, program: str = "pdflatex") -> bytes:
    """The PDF, empty where TeX refused."""
    try:
        return texgen.render_tikz(source + PICTURE, program).pdf()
    except TexgenError:
        return b""


@pytest.fixture
def hostile(tmp_path, monkeypatch) -> Path:
    """A user's environment that undoes every setting of TeX, with a tikz.sty of its own in the home's texmf."""
    evil = tmp_path / "home" / "texmf" / "tex" / "latex" / "evil"
    evil.mkdir(parents=True)
    for name in ("tikz.sty", "standalone.cls"):
        (evil / name).write_text(f"\\errmessage{{evil {name}}}\n")
    (tmp_path / "home" / "texmf.cnf").write_text("shell_escape = t\nopenin_any = a\nopenout_any = a\n")
    for name, value in {
        "HOME": str(tmp_path / "home"), "TEXMFHOME": str(tmp_path / "home" / "texmf"), "TEXINPUTS": f"{evil}:", "TEXMFCNF": f"{tmp_path / 'home'}:",
        "TEXINPUTS_pdflatex": f"{evil}:", "openin_any": "a", "openout_any": "a", "shell_escape": "t", "TEXMFOUTPUT": str(tmp_path), "TEXMF": str(tmp_path / "home" / "texmf"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.pdflatex
@pytest.mark.parametrize("how", READS)
def test_no_file_of_the_machine_is_read(how, hostile):
    """By its absolute name, and by one that climbs out of the folder."""
    secret = hostile / "secret.tex"
    secret.write_text(SECRET)
    climbing = "../" * 12 + str(secret)[1:]
    if how in ("object", "stream") and not confine.version():
        pytest.skip("this kernel has no Landlock")
    for name in (str(secret), climbing):
        pdf = compiled(READS[how] % name)
        assert SECRET.encode() not in pdf and SECRET.encode().hex().upper().encode() not in pdf
        if pdf:
            words = subprocess.run(["pdftotext", "-", "-"], input=pdf, capture_output=True, check=False).stdout.decode()
            assert SECRET not in words and SECRET.encode().hex().upper() not in words


@pytest.mark.pdflatex
@pytest.mark.parametrize("how", WRITES)
def test_nothing_is_run_and_nothing_written_outside_of_the_folder(how, hostile):
    for name in (str(hostile / "made.tex"), "../made-by-texgen-test.tex"):
        compiled(WRITES[how] % name)
        assert not (hostile / "made.tex").exists() and not (Path(os.environ.get("TMPDIR", "/tmp")) / "made-by-texgen-test.tex").exists()


@pytest.mark.pdflatex
def test_the_users_own_texmf_tree_has_no_part_in_it(hostile):
    assert compiled("").startswith(b"%PDF")


@pytest.mark.pdflatex
def test_a_folder_that_is_allowed_is_read_by_plain_names(hostile):
    (hostile / "allowed").mkdir()
    (hostile / "allowed" / "part.tex").write_text("\\typeout{part was read}")
    from texgen.api import TikzPicture

    source = TikzPicture("\\input{part}" + PICTURE).tex()
    assert engine.compile_pdf(source, "pdflatex", [hostile / "allowed"]).startswith(b"%PDF")
    with pytest.raises(engine.TexFailure, match="not found"):
        engine.compile_pdf(source, "pdflatex")


@pytest.mark.pdflatex
def test_an_endless_loop_ends_at_the_limit():
    begin = time.monotonic()
    with pytest.raises(engine.TexFailure, match="did not finish within 2 s"):
        engine.compile_pdf("\\documentclass{standalone}\\begin{document}\\loop\\iftrue\\repeat\\end{document}", "pdflatex", time_limit=2)
    assert time.monotonic() - begin < 60


@pytest.mark.pdflatex
@pytest.mark.skipif(not hasattr(engine.resource, "prlimit"), reason="the size of files is limited on Linux")
def test_a_file_without_end_ends_at_its_size(monkeypatch):
    monkeypatch.setattr(engine, "LARGEST_FILE", 1 << 20)
    source = "\\documentclass{standalone}\\begin{document}\\newwrite\\w\\immediate\\openout\\w=big \\loop\\iftrue\\immediate\\write\\w{%s}\\repeat\\end{document}" % ("x" * 900)
    with pytest.raises(engine.TexFailure, match="wrote more than 1 MB"):
        engine.compile_pdf(source, "pdflatex")


@pytest.mark.pdflatex
def test_the_same_source_gives_the_same_bytes_at_another_time(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first = compiled("")
    time.sleep(1.1)
    assert compiled("") == first != b""


LUA_READS = ("io.open('%s'):read('*a')", "io.lines('%s')()", "(function() lfs.chdir('/') return io.open(('%s'):sub(2)):read('*a') end)()")
LUA_RUNS = ("os.execute('touch %s')", "io.popen('touch %s'):close()", "os.spawn({'touch', '%s'})")


@pytest.mark.lualatex
def test_lua_runs_nothing(hostile):
    made = hostile / "made"
    calls = "".join(f"pcall(function() {c % made} end) " for c in LUA_RUNS)
    assert compiled(f"\\directlua{{{calls}}}", "lualatex").startswith(b"%PDF")
    assert not made.exists()


@pytest.mark.lualatex
@pytest.mark.skipif(not confine.version(), reason="this kernel has no Landlock")
def test_lua_reads_nothing_and_removes_nothing(hostile):
    secret = hostile / "secret.tex"
    secret.write_text(SECRET)
    reads = "".join(f"pcall(function() tex.print({c % secret}) end) " for c in LUA_READS)
    others = f"os.remove('{secret}') os.rename('{secret}', '{hostile}/moved') lfs.mkdir('{hostile}/made') lfs.chdir('{hostile}')"
    pdf = compiled(f"\\directlua{{local here = lfs.currentdir() {reads} {others} lfs.chdir(here)}}", "lualatex")
    assert pdf and SECRET not in subprocess.run(["pdftotext", "-", "-"], input=pdf, capture_output=True, check=False).stdout.decode()
    assert secret.read_text() == SECRET and not (hostile / "made").exists()


@pytest.mark.parametrize("line", ["{{ ''.__class__.__mro__ }}", "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ nosuchname }}",
    "{% for i in range(10000000) %}{% endfor %}", "{{ {'a': 1}.pop('b') }}", "{{ 2.0 ** 100000 }}", "{{ 'x'.encode('nope') }}",
])  # fmt: skip
def test_a_template_runs_in_the_sandbox_and_its_fault_has_file_and_line(line, tmp_path):
    (tmp_path / "figure.txt.j2").write_text(f"first\nsecond\n{line}\n")
    with pytest.raises(TexgenError) as caught:
        fill("figure.txt.j2", {}, (str(tmp_path),))
    assert f"{tmp_path / 'figure.txt.j2'}, line 3" in caught.value.message


def test_a_template_begins_from_texgens_own(tmp_path):
    """``texgen/figure.svg.j2`` is the shipped one also where a folder has its own; one that extends itself is told so."""
    (tmp_path / "figure.svg.j2").write_text('{% extends "texgen/figure.svg.j2" %}{% block classes %} mine{% endblock %}')
    plain, mine = (texgen.figure("(4,4):(4,1)", templates=t).svg() for t in ((), tmp_path))
    assert " mine" in mine.partition(">")[0] and " mine" not in plain and mine.count("<text") == plain.count("<text") > 16
    for name, data, said in (("endless", b'{% extends "figure.svg.j2" %}', "without end: texgen's own is called texgen/figure"), ("bytes", b"\xff\xfe", "not UTF-8")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "figure.svg.j2").write_bytes(data)
        with pytest.raises(TexgenError, match=said):
            texgen.figure("(4,4):(4,1)", templates=[tmp_path / name]).svg()
