"""Atoms as things to link to, in the project and from others."""

import re

import pytest

pytest.importorskip("sphinx")

from sphinx.util.inventory import InventoryFile
from sphinx_site import ATOM, Site

from texgen.sphinxext.domain import anchor_of, canonical

WGMMA = "SM90_64x128x16_F32F16F16_SS"


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


def test_role_links_in_every_spelling(site):
    site.page(".. toctree::\n\n   atoms", *(f":texgen:atom:`{name}`" for name in (
        ATOM, ATOM.lower(), f"cute::{ATOM}", f"{ATOM}{{}}", f"words <{ATOM}>", f"{WGMMA}_TN", "MINE",
    )))  # fmt: skip
    site.page(f".. texgen:atom:: {ATOM} {WGMMA}\n\n   MINE\n   UniversalCopy<uint128_t>", name="atoms.rst")
    built = site.build(nitpicky=True)
    assert built.warnings == ""
    links = re.findall(r'href="atoms\.html#([^"]+)"[^>]*><code[^>]*><span class="pre">([^<]+)', built.text("index.html"))
    assert [a for a, _ in links] == [ATOM] * 5 + [WGMMA, "MINE"]
    assert [t for _, t in links][4] == "words"
    ids = re.findall(r'id="([^"]+)"', built.text("atoms.html"))
    assert {ATOM, WGMMA, "MINE", "UniversalCopy-uint128_t"} <= set(ids)


def test_any_role_and_dangling_ones(site):
    site.page(f".. texgen:atom:: {ATOM}", f":any:`{ATOM}`", ":texgen:atom:`NOTHING`", ".. texgen:atom::")
    built = site.build()
    assert f'href="#{ATOM}"' in built.text("index.html")
    assert re.search(r"index\.rst:8: WARNING: no page describes the atom NOTHING", built.warnings)
    assert "texgen:atom needs names" in built.warnings and built.warnings.count("WARNING") == 2


def test_an_atom_described_twice_is_a_warning(site):
    site.page(f".. texgen:atom:: {ATOM}", ".. toctree::\n\n   other")
    site.page(f".. texgen:atom:: {ATOM}", name="other.rst")
    assert re.search(r"rst:4: WARNING: the atom .* is described in index too", site.build().warnings)


def test_pages_that_go_take_their_atoms(site):
    site.page(f".. texgen:atom:: {ATOM}", f".. texgen:atom:: {WGMMA}")
    assert len(site.build().app.env.get_domain("texgen").atoms) == 2
    page = site.page(f".. texgen:atom:: {ATOM}")
    page.touch()
    assert list(site.build().app.env.get_domain("texgen").atoms) == [ATOM]


def test_two_projects_by_intersphinx(tmp_path):
    """objects.inv carries the atoms; another project links to them in any spelling."""
    first = Site(tmp_path / "first")
    first.page(f".. texgen:atom:: {ATOM} MINE")
    out = first.build().out
    with open(out / "objects.inv", "rb") as file:
        listed = InventoryFile.load(file, "https://first.example", lambda *parts: "/".join(parts))
    assert set(listed["texgen:atom"]) == {ATOM, "MINE"}
    second = Site(
        tmp_path / "second",
        'extensions.append("sphinx.ext.intersphinx")\n'
        f'intersphinx_mapping = {{"first": ("https://first.example", {str(out / "objects.inv")!r})}}',
    )
    second.page(f":texgen:atom:`{ATOM.lower()}`", ":texgen:atom:`mine <MINE>`", ":external+first:texgen:atom:`MINE`")
    built = second.build(nitpicky=True)
    assert built.warnings == ""
    assert built.text("index.html").count(f'href="https://first.example/index.html#{ATOM}"') == 1
    assert built.text("index.html").count('href="https://first.example/index.html#MINE"') == 2


def test_thousands_of_names_on_a_page(site):
    names = [f"NAME_{i}" for i in range(4000)]
    site.page(".. texgen:atom::\n\n   " + "\n   ".join(names))
    built = site.build("dummy")
    assert len(built.app.env.get_domain("texgen").atoms) == 4000


def test_generated_pages_may_note_atoms_themselves(site):
    """``note_atom`` is what a directive of another extension calls for a row of its table."""
    (site.folder / "conf.py").write_text(
        (site.folder / "conf.py").read_text() + f"\n\ndef note(app, doctree):\n"
        f"    app.env.get_domain('texgen').note_atom('{ATOM}', 'row-7')\n\n\ndef setup(app):\n    app.connect('doctree-read', note)\n"
    )
    site.page(f":texgen:atom:`{ATOM}`")
    assert 'href="#row-7"' in site.build().text("index.html")


def test_latex_links_atoms(site):
    site.page(f".. texgen:atom:: {ATOM}", f":texgen:atom:`{ATOM}`")
    built = site.build("latex")
    assert built.warnings == "" and "\\hyperref[\\detokenize{index:" in built.text("site.tex")


@pytest.mark.parametrize("name, expected", [
    (ATOM.lower(), ATOM), (f" {ATOM} ", ATOM), ("whatever", "whatever"), (f"{WGMMA}_TN", WGMMA),
])  # fmt: skip
def test_canonical_names(name, expected):
    assert canonical(name) == expected


def test_anchors_hold_no_odd_characters():
    assert anchor_of("UniversalCopy<uint128_t>") == "UniversalCopy-uint128_t"
