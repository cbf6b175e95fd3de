"""``texgen:program``: a traced program in a page, from its cache, filtered, failing."""

import pytest

sphinx = pytest.importorskip("sphinx")

from docutils import nodes  # noqa: E402
from sphinx_site import Site  # noqa: E402

from texgen.errors import UsageError  # noqa: E402
from texgen.sphinxext.program import Item, Kernel, chosen  # noqa: E402

pytestmark = pytest.mark.dsl
SMALL = '''
import sys, sizes
import cutlass, cutlass.cute as cute
from cutlass.cute.nvgpu import warp

print("a line of its own", sys.argv[1:])

@cute.kernel
def kernel(mma: cute.TiledMma):
    pass

@cute.jit
def host():
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(op, sizes.ATOMS)
    again = cute.make_tiled_mma(op, sizes.ATOMS)
    atom_a = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
    copy_a = cute.make_tiled_copy_A(atom_a, tiled_mma)
    kernel(tiled_mma).launch(grid=[4, 1, 1], block=[tiled_mma.size, 1, 1])

cute.compile(host)
'''  # fmt: skip
PAGE = ".. texgen:program:: small.py"


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    made = Site(tmp_path / "site", "numfig = True\ntexgen_execute = True")
    made.write("small.py", SMALL)
    made.write("sizes.py", "ATOMS = (2, 2, 1)\n")
    return made


def runs(monkeypatch):
    """How often a program has run: a list that grows."""
    import texgen.trace.run as run

    seen, original = [], run.trace
    monkeypatch.setattr(run, "trace", lambda *args, **kwargs: seen.append(args[0]) or original(*args, **kwargs))
    return seen


def test_a_program_in_a_page(site, monkeypatch):
    seen = runs(monkeypatch)
    site.page(f"{PAGE}\n   :name: small", "See :numref:`small-tiled_mma` and :numref:`small-copy_a`.")
    built = site.build()
    assert built.warnings == "" and len(seen) == 1
    tree = built.app.env.get_doctree("index")
    figures = list(tree.findall(nodes.figure))
    assert [f[-1].astext() for f in figures] == [
        "tiled_mma: tiled MMA, small.py:15; again: tiled MMA, small.py:16", "atom_a: copy atom, small.py:17",
        "copy_a: tiled copy, small.py:18",
    ]  # fmt: skip
    page = built.text("index.html")
    assert "Fig. 1" in page and 'href="#small-copy-a"' in page
    assert "Launched with grid 4 × 1 × 1, block 128 × 1 × 1 for sm_80; defined at <code" in page and "small.py:9" in page
    (table,) = tree.findall(nodes.table)
    assert [r["refid"] for r in table.findall(nodes.reference)] == [figures[i]["ids"][0] for i in (0, 0, 1, 2)]
    assert next(b.astext() for b in table.findall(nodes.literal_block)) == "tiled_mma = cute.make_tiled_mma(op, sizes.ATOMS)"
    assert str(site.folder) not in page and page.count('class="texgen-picture"><svg') == 3

    # Read again, run only for what it depends on
    site.page(PAGE, "Other words.")
    assert site.build().drawn == 0 and len(seen) == 1
    site.write("sizes.py", "ATOMS = (1, 4, 1)\n")
    again = site.build()
    assert len(seen) == 2 and again.drawn == 2 and again.warnings == ""
    site.page(f"{PAGE}\n   :only: copy_atom, again")
    some = site.build("text")
    assert len(seen) == 2 and some.warnings == "" and len(list(some.app.env.get_doctree("index").findall(nodes.figure))) == 2
    site.page(f"{PAGE}\n   :args: --x 'a b'\n   :only: nothing")
    wrong = site.build()
    assert len(seen) == 3 and ":only: has 'nothing'" in wrong.warnings and "tiled_mma, again, atom_a" in wrong.text("index.html")


def test_a_program_that_raises_keeps_what_it_built(site):
    site.write("small.py", SMALL + "raise ValueError('on purpose')\n")
    site.page(PAGE)
    built = site.build()
    assert "small.py:22: ValueError: on purpose" in built.warnings and "[texgen.figure]" in built.warnings
    page = built.text("index.html")
    assert "This program failed; what it had built until then follows." in page and len(built.figures()) == 3
    assert str(site.folder) not in built.warnings.replace(f"{site.folder}/index.rst", "")
    site.write("small.py", SMALL + "sys.exit('no GPU here')\n")
    built = site.build()
    assert "small.py:22: the program ended with exit status 1." in built.warnings and "no GPU here" in built.text("index.html")
    site.write("small.py", SMALL)
    assert site.build().warnings == ""


def test_running_must_be_allowed(site):
    site.page(PAGE, ".. texgen:program:: nowhere.py", f"{PAGE}\n   :args: 'open")
    built = site.build(texgen_execute=False)
    assert built.warnings.count("[texgen.execute]") == 2 and "set texgen_execute = True" in built.text("index.html")
    assert not built.figures()
    site.page(".. texgen:program:: nowhere.py", f"{PAGE}\n   :arch: volta")
    built = site.build()
    assert "There is no file nowhere.py." in built.warnings and "'volta' is no architecture" in built.warnings


def test_only():
    item = Item("self.mma", "tiled_mma", "f.py", 1, "", "", 1, "caller", "", None)
    kernels = (Kernel("k", {}, (item,)), Kernel("", {}, ()))
    for words in (("mma",), ("self.mma",), ("tiled_mma",), ("caller",)):
        assert chosen(kernels, words) == kernels[:1]
    assert chosen(kernels, ()) == kernels
    with pytest.raises(UsageError, match=r"there are self\.mma, tiled_mma"):
        chosen(kernels, ("mmb",))


def test_latex_and_twice_on_a_page(site):
    site.page(f"{PAGE}\n   :only: tiled_copy", f"{PAGE}\n   :only: copy_a")
    built = site.build("latex")
    assert built.warnings == "" and built.drawn == 1
    assert built.text("site.tex").count("\\texgenpicture{}{\\input{_texgen/") == 2
    assert [f["ids"] for f in built.app.env.get_doctree("index").findall(nodes.figure)] == [["texgen-copy-a"], ["texgen-copy-a-2"]]
