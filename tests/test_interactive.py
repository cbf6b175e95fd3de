"""What an interactive figure carries: its tables, whole and in few bytes, and nothing that a page could trip over."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import texgen
from texgen.api import Drawing, FigureOptions
from texgen.cli import app
from texgen.errors import TexgenError
from texgen.figures.pointing import pointing
from texgen.render import html
from texgen.render.packed import PLAIN, packed, unpacked
from texgen.spec_json import from_dict
from texgen.specs import CopySpec, LayoutSpec, TVMap, TVSpec

F16 = "SM80_16x8x16_F32F16F16F32_TN"


def random_table(rows: int, columns: int, threads: int, name: str = "random") -> TVSpec:
    tv = np.random.default_rng(5).permutation(rows * columns).reshape(threads, -1)
    return TVSpec(name, TVMap((rows, columns), tv))


def drawn(target: Any, **options: Any) -> Drawing:
    if isinstance(target, TVSpec | LayoutSpec | CopySpec):
        return Drawing(target, FigureOptions.of(**options))
    return texgen.figure(target, **options)  # type: ignore[no-any-return]


FIGURES: dict[str, Any] = {
    "atom": lambda: drawn(F16),
    "tiled": lambda: drawn(F16, atom_layout="2,2,1", tile="32,32,16"),
    "256": lambda: drawn(F16, atom_layout="4,2,1", tile="256,256,64"),
    "wgmma": lambda: drawn("SM90_64x256x16_F32F16F16_SS"),
    "ldmatrix": lambda: drawn("SM75_U32x4_LDSM_N"),
    "swizzle": lambda: drawn("S<3,4,3> o 0 o (8,64):(64,1)", bits=16),
    "banks": lambda: drawn("S<3,4,3> o 0 o (8,64):(64,1)", bits=16, banks="column:0"),
    "layout 256": lambda: drawn("S<3,4,3> o 0 o (256,256):(256,1)", bits=16),
    "random": lambda: drawn(random_table(128, 96, 64)),
    "random 256": lambda: drawn(random_table(256, 256, 128), label="none"),
    "overview": lambda: drawn(F16, atom_layout="2,2,1", tile="64,64,16", overview=True),
    "cropped": lambda: drawn(F16, atom_layout="2,2,1", tile="64,64,16", rows="4:20,40:44", cols="8:24"),
    "far": lambda: drawn("(4,4):(1099511627776,1)"),
    "coordinates": lambda: drawn("(4,8):(1@0,1@1)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def drawings() -> dict[str, Drawing]:
    return {name: make() for name, make in FIGURES.items()}


def carried(text: str) -> dict[str, Any]:
    """The JSON that a page carries."""
    (found,) = re.findall(r'<script type="application/json" class="txg-data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FIGURES)
def test_a_page_carries_the_tables_of_the_spec(drawings: dict[str, Drawing], name: str) -> None:
    drawing = drawings[name]
    data, spec = carried(drawing.html()), drawing.spec
    assert [p["key"] for p in data["panels"]] == [p.key for p in drawing.figure.panels]
    for panel, own in zip(data["panels"], drawing.figure.panels, strict=True):
        table = data["tables"][panel["table"]]
        assert [i for a, b in zip(panel["rows"][::2], panel["rows"][1::2], strict=True) for i in range(a, b)] == own.rows.tolist()
        assert bool(panel["flip"]) == own.transposed
        if isinstance(spec, LayoutSpec):
            wanted = spec.plain if own.key == "before" else spec.offsets
            if spec.coords:
                assert all((unpacked(t) == c.reshape(-1)).all() for t, c in zip(table["coords"], spec.coords, strict=True))
            else:
                assert (unpacked(table["offsets"]) == wanted.reshape(-1)).all()
            continue
        operand = spec.operands()[own.key.removesuffix("detail")]
        assert table["tile"] == list(operand.tile)
        if spec.kind == "mma" and operand.memory == "smem":
            assert "tv" not in table and "shared memory" in table["memory"]
        else:
            assert (table["threads"], table["values"]) == operand.tv.shape
            assert (unpacked(table["tv"]) == operand.tv.reshape(-1)).all()


@pytest.mark.parametrize("name", FIGURES)
def test_size(drawings: dict[str, Drawing], name: str) -> None:
    """At most three times the static figure and 60 kB; a figure whose tables are layouts, 55 kB more than it."""
    static, live = (len(text.encode()) for text in (drawings[name].svg(), drawings[name].html()))
    assert live <= 3 * static + 60_000
    if not name.startswith("random"):
        assert live <= static + 55_000


def test_the_same_bytes_every_time(drawings: dict[str, Drawing]) -> None:
    for name in ("tiled", "random"):
        assert FIGURES[name]().html() == drawings[name].html()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40) | st.lists(st.integers(0, 7), min_size=1, max_size=64))
def test_any_table_unfolds_to_itself(numbers: list[int]) -> None:
    assert unpacked(json.loads(json.dumps(packed(np.array(numbers))))).tolist() == numbers


@pytest.mark.parametrize("n", [PLAIN + 1, 1021, 4096, 65536])
def test_a_table_without_a_rule_is_compressed(n: int) -> None:
    table = np.random.default_rng(n).permutation(n) - 5
    data = packed(table)
    assert "deflate" in data and (unpacked(data) == table).all()
    assert len(json.dumps(data)) < 3 * n + 100


@pytest.mark.parametrize("text", ["(256,256):(256,1)", "((2,4),(3,5)):((1,60),(2,7))", "S<3,4,3> o 0 o (64,128):(128,1)", "S<2,3,3> o 0 o (48,64):(64,1)"])
def test_a_layout_folds_into_its_modes(text: str) -> None:
    offsets = texgen.read(text).offsets
    data = packed(offsets)
    assert data["core"] == [0] and len(json.dumps(data)) < 400
    assert (unpacked(data) == offsets.reshape(-1)).all()


class Parsed(HTMLParser):
    """The elements of a page and what stands in its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("element", [False, True])
def test_a_page_asks_for_nothing(drawings: dict[str, Drawing], element: bool) -> None:
    text = drawings["atom"].html(element=element)
    for tag, attributes in Parsed(text).tags:
        assert not {"src", "srcset", "action", "poster", "data"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("href") in (None, "data:,")
    assert "eval(" not in text and "import(" not in text and "@import" not in text and "fetch(" not in text
    assert not re.findall(r"url\((?!#)", text)
    assert [tag for tag, _ in Parsed(text).tags].count("script") == 2


def test_hostile_text_stays_inside_its_script() -> None:
    hostile = "</script><script>alert(1)</script><!--<script>\u2028\u202e\x00]]>'\"&lt;"
    table = {"tile": [2, 2], "tv": [[0, 1], [2, 3]], "name": hostile, "dtype": hostile, "layout": hostile}
    drawing = Drawing(from_dict(table), FigureOptions(title=hostile))
    for text in (drawing.html(), drawing.html(element=True)):
        assert [tag for tag, _ in Parsed(text).tags].count("script") == 2
        assert carried(text)["panels"][0]["title"] == drawing.figure.panels[0].title
        assert "<!--" not in text


def test_who_holds_what_in_a_chain() -> None:
    """Every panel's places against the labels of the static figure, which come from the chain's own module."""
    drawing = texgen.chain("SM75_U32x4_LDSM_N", F16, smem="S<3,3,3> o 0 o (16,64):(64,1)")
    cells = pointing(drawing.spec, drawing.figure, drawing.options).cells
    fragment = cells["A"].owners
    for panel in drawing.figure.panels[:2]:
        tv = cells[panel.key].owners.tv
        seen = 0
        for t, v in np.ndindex(tv.shape):
            r, c = int(tv[t, v]) % panel.height, int(tv[t, v]) // panel.height
            m, k = int(fragment.tv[t, v]) % 16, int(fragment.tv[t, v]) // 16
            if panel.key == "registers":
                assert r == t and f"{m},{k}" in [line[r][c] for line in panel.lines]
            else:
                first = panel.lines[1][r][c].split(",")  # 16 bytes: eight elements along k
                assert int(first[0]) == m and 0 <= k - int(first[1]) < 8
            seen += 1
        assert seen == 32 * 8


def test_a_table_too_large_for_a_page_says_so(monkeypatch: pytest.MonkeyPatch, drawings: dict[str, Drawing]) -> None:
    monkeypatch.setattr(html, "MOST_ENTRIES", 100)
    with pytest.raises(TexgenError, match="more than 100 entries: draw one --operand, or write an SVG"):
        drawings["atom"].html()


def test_a_kind_without_tables_stays_static(drawings: dict[str, Drawing]) -> None:
    """Panels whose cells nothing is known of have no tables; the page is the figure."""
    from texgen.figures.pointing import Pointing

    data = carried(html.page(drawings["atom"].figure, Pointing()))
    assert data["panels"] == data["tables"] == []


def test_the_command_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "figure.html"
    result = CliRunner().invoke(app, ["render", F16, "--operand", "C", "-o", str(path)])
    assert result.exit_code == 0, result.output
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.count("<svg") == 1 and carried(text)["product"] == 0


PAGE = f"""
.. texgen:mma:: {F16}
   :operand: C
   :name: plain

.. texgen:mma:: {F16}
   :operand: C
   :interactive:
   :width: 50%

.. texgen:layout:: (4,8):(8,1)
   :no-interactive:
"""


def test_pages_of_a_site(tmp_path: Path) -> None:
    """One script for all figures of a page, and only where there is one; other builders have the static figure."""
    pytest.importorskip("sphinx")
    from sphinx_site import Site

    site = Site(tmp_path)
    site.page(PAGE, ".. toctree::\n\n   other")
    site.page(f".. texgen:mma:: {F16}", name="other.rst")
    one = site.build()
    assert one.text("index.html").count("data-txg-figure=") == 1 and one.text("index.html").count("texgen.js") == 1
    assert "texgen.js" not in one.text("other.html")
    assert carried(one.text("index.html"))["panels"][0]["key"] == "C"
    assert "texgenFigures" in one.text("_static/texgen.js") and ".txg-veil" in one.text("_static/texgen.css")
    every = site.build(texgen_interactive=True)
    assert re.findall(r'data-txg-figure="([^"]*)"', every.text("index.html"))[0] == "plain"
    assert every.text("index.html").count("data-txg-figure=") == 2 and "data-txg-figure=" in every.text("other.html")
    assert every.drawn == 0, "the same pictures"
    asked = site.build(texgen_svg="file")
    assert asked.text("index.html").count("data-txg-figure=") == 1, "what a directive asks for goes inside the page"
    assert "txg-data" not in site.build("latex", texgen_interactive=True).text("site.tex")
    assert not every.warnings and not one.warnings
