"""Whatever stands in a title, a name, a note or a file's name is shown as text in every output, and acted on in none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_tex import pdf_of, words_of

import texgen
from texgen.api import file_part
from texgen.render import environment
from texgen.sources.json_file import from_bytes
from texgen.spec_json import to_json
from texgen.visible import one_line

NASTY = {
    "input": r"\input{/etc/passwd}", "write18": r"\write18{touch pwned}", "immediate": r"\immediate\write18{id}", "hats": "^^5cinput ^^M ^^00",
    "braces": "}}{{{ } {", "percent": "50% of % all", "end": r"\end{tikzpicture}\end{document}", "dollar": "$x$ $$ & # _ ~ ^ \\", "csname": r"\csname endinput\endcsname",
    "par": "a\n\n\nb\\par c", "script": "<script>window.acted=1</script>", "close": "</script></title></style></svg><script>window.acted=2</script>",
    "onload": "\" onload=\"window.acted=3\" x='", "svg": "<svg onload=window.acted=4><image href=x onerror=window.acted=5>", "cdata": "]]><!-- --> <![CDATA[", "entity": "&lt;b&gt; &amp;amp; &#x41; &xxe;",
    "doctype": '<!DOCTYPE a [<!ENTITY xxe SYSTEM "file:///etc/passwd">]>', "pi": "<?xml-stylesheet href='http://127.0.0.1:9/x'?>", "url": "javascript:window.acted=6", "css": "}</style>*{background:url(http://127.0.0.1:9/y)}",
    "jinja": "{{7*7}} {% raw %} {# c #} << 7*7 >> <% if %>", "escape": "\x1b[31mred\x1b]0;title\x07", "c1": "\x9b31m \x85 \x7f", "controls": "".join(map(chr, range(32))),
    "rlo": "abc\u202edcba\u202c \u2066x\u2069", "rtl": "שלום 123 T0", "zero width": "T\u200b0\u200d \ufeff\u00ad", "nul": "a\0b", "noncharacters": "\ufffe\uffff",
    "emoji": "👩\u200d💻 😀", "cjk": "世界の配置", "combining": "e\u0301" + "\u0336" * 40, "tags": "a\U000e0041\U000e0042", "separators": "a\u2028b\u2029c", "long": "x" * 5000,
    "rst": "``code`` |sub| :role:`x` .. directive:: *em* _", "markdown": "[a](javascript:x) `b` **c**", "format": "{0} %s %(x)s ${HOME} $(id) `id`",
}  # fmt: skip
LONG = 400


def figure(text: str, kind: str = "tv", **options: Any) -> Any:
    """A figure with the text in every place that a JSON spec has for text."""
    words = {"name": text, "source": text, "notes": [text, text], "warnings": [text]}
    table = {"tile": [2, 2], "tv": [[0, 1], [2, 3]], "dtype": text, "layout": text}
    spec: dict[str, Any] = {
        "tv": words | table | {"kind": "tv", "arch": text},
        "layout": words | {"kind": "layout", "layout": text, "offsets": [[0, 1], [2, 3]]},
        "copy": words | {"kind": "copy", "arch": text, "tile": [2, 2], "tiler": text, "S": table, "D": table},
        "mma": words | {"kind": "mma", "arch": text, "tile_mnk": [2, 2, 2], "atom_mnk": [2, 2, 2], "thr_layout_vmnk": text, "permutation_mnk": text,
                        "A": table, "B": table, "C": table},
    }[kind]  # fmt: skip
    return texgen.figure(from_bytes(json.dumps(spec).encode(), "spec.json"), **options)


def acting(text: str) -> list[str]:
    """Control, bidirectional and invisible characters but line feeds and the joiners of emoji."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\u200d"]


@pytest.mark.parametrize("kind", ["tv", "layout", "copy", "mma"])
@pytest.mark.parametrize("name", NASTY)
def test_markup_shows_it_and_holds_no_element_of_its(name: str, kind: str) -> None:
    plain, drawing = figure("plain", kind, title="plain"), figure(NASTY[name], kind, title=NASTY[name])
    root, own = ET.fromstring(drawing.svg()), ET.fromstring(plain.svg())
    assert {e.tag for e in root.iter()} == {e.tag for e in own.iter()}
    assert {k for e in root.iter() for k in e.attrib} == {k for e in own.iter() for k in e.attrib}
    shown = one_line(NASTY[name])
    texts = ["".join(e.itertext()) for e in root.iter()]
    assert sum(shown in t for t in texts) >= 3 and shown == root[0].text
    assert not acting(drawing.svg())
    assert "<!" not in drawing.svg() and "<?" not in drawing.svg()


class Elements(HTMLParser):
    """The elements and attributes of a page, as a browser takes it apart."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, tuple(k for k, _ in attrs)))


@pytest.mark.parametrize("name", NASTY)
def test_pages_hold_no_element_of_its(name: str) -> None:
    page = figure(NASTY[name], title=NASTY[name]).html()
    assert set(Elements(page).found) == set(Elements(figure("plain", title="plain").html()).found)
    assert not acting(page)


@pytest.mark.parametrize("name", NASTY)
def test_text_and_json_are_safe_on_a_terminal(name: str) -> None:
    drawing = figure(NASTY[name], title=NASTY[name])
    assert not acting(drawing.text()) and not acting(drawing.json()) and not acting(drawing.tikz())
    assert one_line(NASTY[name]) in drawing.text()
    assert json.loads(drawing.json())["name"] == NASTY[name]
    assert from_bytes(to_json(drawing.spec).encode(), "again") == drawing.spec


def test_compiled_templates_of_other_settings_are_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache that another version left must not decide what is escaped."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = environment._bytecode_cache().directory  # type: ignore[union-attr]
    changed = tmp_path / "environment.py"
    changed.write_text(Path(environment.__file__).read_text() + "\n# other settings\n")
    monkeypatch.setattr(environment, "__file__", str(changed))
    assert environment._bytecode_cache().directory != folder  # type: ignore[union-attr]


def test_nothing_on_the_terminal_moves_its_cursor(tmp_path: Path) -> None:
    """Figures, warnings and mistakes, as the program itself prints them."""
    spec = {"tile": [2, 2], "tv": [[0, 1], [2, 3]], "name": NASTY["escape"], "warnings": [NASTY["escape"] + NASTY["rlo"]], "notes": [NASTY["c1"]]}
    (tmp_path / "a.json").write_text(json.dumps(spec))
    odd = "\x1b[31m.json"
    (tmp_path / odd).write_text("[" + json.dumps(NASTY["escape"]))
    for arguments in (["render", "a.json"], ["table", "a.json"], ["render", odd], ["render", "(4,\x1b[31m8)"], ["render", "\x1b]0;x\x07"],
                      ["handout", "a.json", "-o", "a.tex"], ["render", "a.json", "--palette", "\x1b[31m"], ["render", "a.json", "--highlight", "\u202e"]):  # fmt: skip
        run = subprocess.run([sys.executable, "-m", "texgen", *arguments], cwd=tmp_path, capture_output=True, check=False)
        said = (run.stdout + run.stderr).decode()
        assert said and not acting(said), arguments


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_tex_prints_it_and_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them as notes and one after another as titles, in one document."""
    monkeypatch.chdir(tmp_path)
    spec = {"tile": [2, 2], "tv": [[0, 1], [2, 3]], "notes": [f"B{i}E {t[:LONG]} N{i}E" for i, t in enumerate(NASTY.values())]}
    made = texgen.figure(from_bytes(json.dumps(spec).encode(), "x"), title=" ".join(t[:40] for t in NASTY.values()))
    shown = words_of(pdf_of(made.tex()), tmp_path)
    assert "root:" not in shown and not list(tmp_path.glob("pwned*"))
    flat = re.sub(r"\s+", "", shown)
    for i, text in enumerate(NASTY.values()):
        assert f"B{i}E" in flat and f"N{i}E" in flat, text
    for piece in (r"\input{/etc/passwd}", "window.acted=1", "[U+202E]", "[U+001B][31mred", "[U+4E16]", "{{7*7}}", "<<7*7>>", "50%of%all"):
        assert piece in flat.replace("“", '"').replace("”", '"').replace("’", "'"), piece


@pytest.mark.parametrize("name", [*NASTY, *("..", "../../up", "/etc/x", "-o", "CON", "a/b", "a\\b", "世" * 300, "é" * 300, "\ud800", ".", "NUL.", "")])
def test_files_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    text = NASTY.get(name, name)
    folder = tmp_path / "out"
    written = texgen.figure({text: "(2,2):(1,2)", "other": "(2,2):(2,1)"}).save(folder / "f.svg")
    assert sorted(folder.iterdir()) == sorted(written) and len(written) == 2 and os.listdir(tmp_path) == ["out"]
    for path in written:
        assert len(path.name.encode()) <= 255 and path.name.startswith("f-") and not acting(path.name)
        assert not re.search(r'[<>:"/\\|?*]|[. ]$', path.name)


def test_parts_of_file_names() -> None:
    assert file_part("世" * 300) == "世" * 40
    assert file_part("e\u0301") == file_part("é") == "é"
    assert file_part("../..") == file_part("") == "figure"


@pytest.mark.chromium
@pytest.mark.xdist_group("browser")
def test_a_browser_runs_nothing_and_asks_for_nothing(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    every = " ".join(t[:LONG] for t in NASTY.values())
    for name, text in {"every": every, **{k: NASTY[k] for k in ("close", "cdata", "css", "controls")}}.items():
        made = figure(text, title=text)
        (tmp_path / f"{name}.svg").write_text(made.svg())
        (tmp_path / f"{name}.html").write_text(made.html())
    inline = [figure(text, title=text).svg() for text in NASTY.values()]
    (tmp_path / "all.html").write_text("<!doctype html><meta charset=utf-8>" + "".join(inline))
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        said: list[str] = []
        asked: list[str] = []
        page.on("dialog", lambda d: (said.append(d.message), d.dismiss()))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: asked.append(r.url))
        files = [*sorted(path.name for path in tmp_path.iterdir() if path.name != "all.html"), "all.html"]
        for name in files:
            page.goto((tmp_path / name).as_uri())
            if name.endswith(".html"):  # what a cell says when it is pointed at
                page.mouse.move(60, 120)
                page.mouse.click(60, 120)
            assert page.evaluate("window.acted") is None, name
        assert len(page.query_selector_all("svg")) == len(NASTY)
        titles = page.evaluate("[...document.querySelectorAll('svg > title')].map(t => t.textContent)")
        assert titles == [one_line(t) for t in NASTY.values()]
        browser.close()
    assert said == [] and asked == [(tmp_path / name).as_uri() for name in files]


def test_sphinx_pages_show_it(tmp_path: Path) -> None:
    """As a directive's option, in a table's names, and in what the page says of a figure that cannot be drawn."""
    pytest.importorskip("sphinx")
    from sphinx_site import Site

    site = Site(tmp_path / "site")
    text = "".join(NASTY[k] for k in ("script", "close", "onload", "svg", "cdata", "entity", "jinja"))
    words = {k: text + NASTY["rlo"] + NASTY["escape"] for k in ("name", "source", "arch", "dtype", "layout")}
    site.write("table.json", json.dumps({"tile": [2, 2], "tv": [[0, 1], [2, 3]], "notes": [text], **words}))
    site.page(
        f".. texgen:layout:: table.json\n   :title: {text}\n   :alt: {text}", ".. texgen:layout:: table.json\n   :caption: A table",
        f".. texgen:layout:: {text}", f".. texgen:mma:: {text}",
    )  # fmt: skip
    built = site.build()
    page = built.text("index.html")
    assert built.drawn == 2 and len(built.figures()) == 4
    scripts = re.findall(r"<script\b.*?</script>", page, re.DOTALL)
    assert not [s for s in scripts if "acted" in s] and "&lt;script&gt;" in page
    assert not [a for _, names in Elements(page).found for a in names if a in ("onload", "onerror")]
    assert not acting(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)) and not acting(re.sub(r"\x1b\[[0-9;]*m", "", built.warnings))
