"""Names from the syntax tree: a small tracer notes where ``make`` is called, as the recorder does."""

import sys

import pytest

from texgen.trace import naming


def names(tmp_path, source, index=None):
    """What the calls of ``make()`` in a program are called, in the order of the calls."""
    file = tmp_path / "program.py"
    file.write_text(source)
    seen = []

    def make(*args):
        places, frame = [], sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == str(file):
            places.append(naming.place_of(frame.f_code, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        seen.append(naming.sighted(places, index))
        return object(), object()

    naming.source_of.cache_clear()
    exec(compile(source, str(file), "exec"), {"make": make})
    return seen


CASES = {
    "x = make()": ["x"],
    "x: object = make()": ["x"],
    "a = b = make()": ["a"],
    "class S: pass\ns = S()\ns.tiled_mma = make()": ["s.tiled_mma"],
    "a, b = make(), make()": ["a", "b"],
    "(a, b), c = (make(), make()), make()": ["a", "b", "c"],
    "x = [make(), make()]": ["x[0]", "x[1]"],
    "x = {'A': make(), 'B': make()}": ["x['A']", "x['B']"],
    "x = [make() for _ in range(2)]": ["x", "x"],
    "x = make() if True else 0": ["x"],
    "if (x := make()): pass": ["x"],
    "x = make(make())": ["x", "x"],
    "x = []\nx.append(make())": ["x"],
    "make()": [""],
    "def f(): return make()\nx = f()": ["x"],
    "def f(): return make(), make()\na, b = f()": ["a", "b"],
    "def f(): return g()\ndef g(): return make()\nx = f()": ["x"],
    "f = lambda: make()\nx = f()": ["x"],
    "def f(): return make()\nf()": [""],
    "def f():\n  y = make()\n  return y\nx = f()": ["y"],
    "def f(*, mma): pass\nf(mma=make())": ["mma"],
    "x = (\n  make(\n  )\n)": ["x"],
    "x = make(); y = make()": ["x", "y"],
    "for i in [make()]: pass": ["i"],
    "x = dict(a=make())": ["x['a']"], "class C:\n  def __init__(self, **k): pass\nx = C(a=make(), b=1)": ["x.a"],
    "def f(**k): pass\nx = f(a=make())": ["x"],
    "class S: pass\ns = S()\nsetattr(s, 'mma', make())": ["s.mma"],
}


@pytest.mark.parametrize("source", CASES)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns need Python 3.11")
def test_names(tmp_path, source):
    assert [s.name for s in names(tmp_path, source)] == CASES[source]


def test_the_first_of_a_tuple(tmp_path):
    assert [s.name for s in names(tmp_path, "atom, tensor = make()", 0)] == ["atom"]
    assert [s.name for s in names(tmp_path, "info = make()", 0)] == ["info"]


def test_helpers_that_name_and_return(tmp_path):
    source = "def f():\n  y = make()\n  return y\na = f()\nb = f()\n"
    assert [(s.name, s.outer) for s in names(tmp_path, source)] == [("y", "a"), ("y", "b")]
    source = "def f():\n  y, z = make()\n  return y, z\na, t = f()\n"
    assert [(s.name, s.outer) for s in names(tmp_path, source, 0)] == [("y", "a")]


def test_statement_line_and_function(tmp_path):
    source = "class G:\n  @cute.jit\n  def run(self):\n    x = make(\n      1,\n      2)\nclass cute:\n  pass\n"
    source = source.replace("  @cute.jit\n", "  @jit\n").replace("class G", "jit = lambda f: f\nclass G") + "G().run()\n"
    (seen,) = names(tmp_path, source)
    assert (seen.code, seen.line, seen.function) == ("x = make(\n  1,\n  2)", 5, "G.run")


def test_no_source(tmp_path):
    place = naming.Place(str(tmp_path / "gone.py"), 3)
    seen = naming.sighted([place])
    assert (seen.name, seen.line, seen.code, seen.function) == ("", 3, "", "")


def test_arguments(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("k(x).launch(grid=[n // 4, 1, 1], block=block)\n")
    naming.source_of.cache_clear()
    place = naming.Place(str(file), 1, 0, 1, 45)
    assert naming.argument(place, "grid") == ["n // 4", "1", "1"]
    assert naming.argument(place, "block") == ["block"]
    assert naming.argument(place, "cluster") == []
