"""Builds again: what is drawn anew and what is not, in parallel and in turns."""

import hashlib
import os
import re
import time

import pytest

pytest.importorskip("sphinx")

from sphinx_site import ATOM, Site, copied

from texgen import keys
from texgen.imports import local_files, module_file
from texgen.sphinxext import setup, studio

LAYOUT = ".. texgen:layout:: (4,4):(4,1)"


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


def newer(path, text):
    """Write a file whose time Sphinx takes for a change."""
    path.write_text(text)
    later = time.time() + 5
    os.utime(path, (later, later))


def test_a_second_build_draws_nothing(site):
    site.page(LAYOUT, f".. texgen:mma:: {ATOM}")
    first = site.build()
    assert first.drawn == 2
    again = site.build()
    assert again.drawn == 0 and "0 added, 0 changed" in again.said and again.files == first.files


def test_a_changed_page_draws_what_is_new(site):
    page = site.page(LAYOUT, f".. texgen:mma:: {ATOM}")
    site.build()
    newer(page, page.read_text() + "\nWords.\n")
    assert site.build().drawn == 0
    newer(page, page.read_text() + "\n.. texgen:layout:: (2,2):(2,1)\n")
    assert site.build().drawn == 1


def test_pages_share_files_and_stale_files_go(site):
    site.page(LAYOUT, ".. toctree::\n\n   other")
    other = site.page(LAYOUT, ".. texgen:layout:: (2,2):(2,1)", name="other.rst")
    first = site.build()
    assert first.drawn == 2 and len(first.files) == 4
    newer(other, "Other\n=====\n")
    second = site.build()
    assert second.drawn == 0 and len(second.files) == 2 and set(second.files) < set(first.files)
    kept = {p.name for p in (site.folder / "_build" / "doctrees" / "texgen").iterdir()}
    assert len([n for n in kept if n.endswith(".entry")]) == 1
    newer(site.page(".. toctree::\n\n   other"), "Page\n====\n\n.. toctree::\n\n   other\n")
    assert site.build().files == []


def test_2_d04_caption_alt_and_name_are_not_in_the_key(site):
    """2-D04: editing the words around a figure draws nothing."""
    page = site.page(LAYOUT + "\n   :caption: One")
    before = site.build().files
    newer(page, "Page\n====\n\n" + LAYOUT + "\n   :caption: Two\n   :alt: else\n   :name: label\n   :width: 50%\n   :class: x\n")
    after = site.build()
    assert after.drawn == 0 and after.files == before
    assert "Two" in after.figures()[0] and 'aria-label="else"' in after.figures()[0]


def test_2_d03_and_2_d05_a_changed_template_redraws(site):
    """2-D03, 2-D05: the key holds the templates' content, also of one that another includes, and pages come again."""
    site.page(LAYOUT)
    plain = site.build()
    site.write("own/macros.tikz.j2", "% first\n\\def\\txgH{1mm}")
    first = site.build(texgen_templates=["own"])
    site.write("own/macros.tikz.j2", "% second\n\\def\\txgH{2mm}")
    second = site.build(texgen_templates=["own"])
    names = [next(f for f in b.files if f.endswith(".tikz")) for b in (plain, first, second)]
    assert len(set(names)) == 3 and "% second" in second.text(f"_texgen/{names[2]}")
    assert (first.drawn, second.drawn) == (1, 1) and len(second.files) == 2
    assert site.build(texgen_templates=["own"]).drawn == 0
    assert "does not exist" in site.build(texgen_templates=["nowhere"]).warnings


def test_s11_the_key_holds_texgen_itself(site, monkeypatch):
    """S11: layout content, template, engine, version."""
    site.page(LAYOUT)
    site.build()
    monkeypatch.setattr(keys, "_code", lambda: "another version of texgen")
    built = site.build()
    assert built.drawn == 1 and len(built.files) == 2


def test_pdfs_are_named_by_engine_and_version(site, monkeypatch, tmp_path):
    site.page(LAYOUT)
    app = site.build().app
    here = studio.Studio(app)
    names = set()
    for engine, version in (("pdflatex", "1"), ("pdflatex", "2"), ("lualatex", "1"), (None, "")):
        monkeypatch.setattr(here, "engine", lambda engine=engine: engine)
        monkeypatch.setattr(studio, "engine_version", lambda _, version=version: version)
        names.add(here.pdf_path("x-0123456789abcdef").name)
    assert len(names) == 4


def test_2_d06_a_failure_is_said_at_every_build(site):
    """2-D06: no old picture hides an error."""
    page = site.page(LAYOUT + "\n   :rows: 0:2")
    site.build()
    newer(page, "Page\n====\n\n" + LAYOUT + "\n   :rows: 8:9\n")
    for _ in range(2):
        built = site.build()
        assert "leaves nothing to draw" in built.warnings
        assert "This figure could not be drawn" in built.text("index.html") and built.files == []


def test_lost_cache_is_made_again(site):
    site.page(LAYOUT)
    before = site.build().files
    for path in (site.folder / "_build" / "doctrees" / "texgen").iterdir():
        if path.is_file():
            path.write_bytes(b"") if path.suffix == ".entry" else path.unlink()
    built = site.build()
    assert built.warnings == "" and built.drawn == 1 and built.files == before


# Parallel


def many(site, pages=12):
    names = [f"page{i}" for i in range(pages)]
    site.page(".. toctree::\n\n   " + "\n   ".join(names))
    for i, name in enumerate(names):
        site.page(
            LAYOUT + "\n   :caption: The same", f".. texgen:layout:: (4,{4 + i}):({4 + i},1)\n   :caption: Its own\n   :name: own{i}",
            f".. texgen:atom:: ATOM{i}", f":texgen:atom:`ATOM{(i + 1) % pages}` :numref:`own{(i + 5) % pages}`", name=f"{name}.rst",
        )  # fmt: skip


def digests(folder):
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*") if p.is_file() and p.name not in (".buildinfo", "environment.pickle")
    }  # fmt: skip


def test_s12_2_d16_2_d17_parallel_builds_give_the_same_bytes(tmp_path):
    """S12: both flags; 2-D16: pages with the same picture do not race; 2-D17: the same bytes as without -j."""
    built = []
    for jobs in (0, 2, 4):
        site = Site(tmp_path / str(jobs) / "site", "numfig = True")
        many(site)
        built.append(site.build(parallel=jobs))
        assert built[-1].warnings == "" and built[-1].drawn >= 12
    one, two, four = (digests(b.out) for b in built)
    assert one == two == four and len(built[0].files) == 24
    domain = built[1].app.env.get_domain("texgen")
    assert len(domain.uses) == 12 and len(domain.atoms) == 12
    assert site.build(parallel=2).drawn == 0


def test_parallel_failures_are_kept_too(site):
    many(site, 8)
    site.page(".. texgen:mma:: NOTHING", name="page7.rst")
    assert "page7.rst:4" in site.build(parallel=2).warnings
    built = site.build(parallel=2)
    assert "page7.rst:4" in built.warnings and "1 changed" in built.said


def test_the_extension_says_that_it_is_safe():
    class App:
        def __getattr__(self, name):
            return lambda *_, **__: None

    flags = setup(App())
    assert flags["parallel_read_safe"] and flags["parallel_write_safe"]


# What a program depends on


def test_local_files_are_found(tmp_path):
    for name, text in {
        "main.py": "import os, helper\nfrom pack import one\nfrom pack.two import thing\nimport numpy.linalg\n",
        "helper.py": "def f():\n    import late\n", "late.py": "import helper\n", "unused.py": "", "pack/__init__.py": "",
        "pack/one.py": "from . import three\nfrom ..nothing import x\n", "pack/two.py": "thing = 1\n", "pack/three.py": "(",
    }.items():  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = [p.relative_to(tmp_path).as_posix() for p in local_files(tmp_path / "main.py")]
    assert found == ["helper.py", "late.py", "main.py", "pack/__init__.py", "pack/one.py", "pack/three.py", "pack/two.py"]
    assert local_files(tmp_path / "none.py") == [tmp_path / "none.py"]


def test_modules_are_found_outside_of_the_packages(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert module_file("own_module") == tmp_path / "own_module.py"
    assert module_file("numpy.linalg") is None and module_file("no.such") is None


@pytest.mark.dsl
def test_s11_a_changed_callable_or_its_import_redraws(tmp_path, monkeypatch):
    """S11: edit the Python that makes the layout; an unchanged one does not start the DSL."""
    pytest.importorskip("cutlass")
    site = copied("kernels", tmp_path / "site")
    (site.folder / "index.rst").write_text("Page\n====\n\n.. toctree::\n\n   deep/page\n\n.. texgen:layout:: deep/program.py:two\n")
    page = site.folder / "deep" / "page.rst"
    page.write_text(re.sub(r"\n\.\. texgen:(layout|mma):: (program.py:two|SM80).*", "", page.read_text(), flags=re.DOTALL))
    calls = []
    run = studio.Studio._run
    monkeypatch.setattr(studio.Studio, "_run", lambda self, request: calls.append(request.target) or run(self, request))
    first = site.build()
    assert first.warnings == "" and "for 128 threads" in first.text("deep/page.html") and len(calls) == 3, "one file, two names"
    newer(page, page.read_text() + "\nWords.\n")
    calls.clear()
    assert site.build().drawn == 0 and calls == []
    newer(site.folder / "deep" / "neighbour.py", "ATOMS = (1, 2, 1)\n")
    second = site.build()
    assert second.warnings == "" and second.text("deep/page.html").count("for 64 threads") == 6, "label and description of three; the body depends on it too"
    assert "2 changed" in second.said and set(second.files) != set(first.files)
    monkeypatch.setattr(studio, "dsl_version", lambda: "99.0")
    calls.clear()
    site_said = site.build()
    assert len(calls) == 3 and site_said.drawn == 0, "another DSL is asked again, and drew the same"


def test_a_build_with_nothing_to_draw_imports_nothing_heavy(site):
    """What makes a warm build as quick as one without us."""
    import subprocess
    import sys

    site.page(LAYOUT, f".. texgen:mma:: {ATOM}")
    site.build("dummy")
    program = (
        "import sys; from sphinx.cmd.build import main; "
        f"main(['-q', '-b', 'dummy', '-d', {str(site.folder / '_build' / 'doctrees')!r}, {str(site.folder)!r}, {str(site.folder / 'o')!r}]); "
        "print(sorted({'numpy', 'texgen.api', 'texgen.figures', 'texgen.sources'} & set(sys.modules)))"
    )
    for _ in range(2):  # the first reads all again, its settings being others
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
