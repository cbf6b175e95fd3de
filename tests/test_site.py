"""The site: what its pages say is so, and every builder takes them."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

from site_build import DOCS, ROOT, Block, blocks, built, only_one, sphinx
from sphinx.util.inventory import InventoryFile

import texgen
from texgen.api import Drawing
from texgen.closed_form import Term
from texgen.errors import TexgenError
from texgen.figures.panels import in_memory
from texgen.pages import pages, spread
from texgen.render.context import context
from texgen.render.svg import svg_context
from texgen.sources import atoms_diff, catalog
from texgen.words import in_words, terms_of

sys.path[:0] = [str(DOCS / "_ext"), str(DOCS)]

F16 = "SM80_16x8x16_F32F16F16F32_TN"
OLD, NEW = DOCS / "data" / "atoms-4.5.3.json.gz", Path(catalog.__file__).with_name("atoms.json")


# --- words and pages -------------------------------------------------------------------------------------------------


def test_every_atom_has_one_page() -> None:
    made = pages()
    names = [e.name for p in made for e in p.entries]
    assert sorted(names) == sorted(e.name for e in catalog.search())
    assert len(names) == len(set(names))
    assert len({p.docname for p in made}) == len(made) > 60
    for page in made:
        assert page.drawn.name in {e.name for e in page.entries}
        assert catalog.find(page.drawn.name).name == page.drawn.name


def test_words() -> None:
    said = {k: in_words(o, ("row", "column")) for k, o in catalog.read(F16).operands().items()}
    assert said["C"] == "Lane l holds rows ⌊l/4⌋ and ⌊l/4⌋ + 8, columns 2(l mod 4) and 2(l mod 4) + 1."
    assert in_words(catalog.read(F16).operands()["B"], ("n", "k")).startswith("Lane l holds n = ⌊l/4⌋ and k = 2(l mod 4), ")
    assert in_words(catalog.read("SM75_U32x4_LDSM_N").operands()["S"]) == "Lane l holds row l and columns i for i = 0 … 7."


FORMULA = re.compile(r"⌊(\w)/(\d+)⌋")


def _positions(text: str, thread: int) -> set[int]:
    """The positions that one half of a sentence names, for a thread."""
    text, _, ranges = text.partition(" for ")
    counters = {m[0]: int(m[1]) + 1 for m in re.findall(r"(\w) = 0 … (\d+)", ranges)}
    terms = re.split(r", | and ", re.sub(r"^(rows?|columns?) ", "", text))
    out: set[int] = set()
    scopes = [{}]
    for name, count in counters.items():
        scopes = [{**s, name: i} for s in scopes for i in range(count)]
    for term in terms:
        code = FORMULA.sub(r"(\1//\2)", term).replace(" mod ", "%")
        code = re.sub(r"(\d)([(a-z])", r"\1*\2", code)
        out |= {eval(code, {}, {"l": thread, "t": thread, **scope}) for scope in scopes}
    return out


def test_words_say_what_the_table_has() -> None:
    """Each sentence is read back, for the atom of every page and for the first and last thread and some between."""
    read = 0
    for page in pages():
        for name, operand in page.spec.operands().items():
            sentence = in_words(operand)
            if not sentence or in_memory(operand) or operand.threads == 1:
                continue
            body = sentence.partition(" holds ")[2].rstrip(".")
            cut = re.search(r"(?: and|,) (columns? )", body)
            assert cut, sentence
            rows, columns = operand.coordinates()
            for thread in sorted({0, 1, 5, operand.threads // 2, operand.threads - 1} & set(range(operand.threads))):
                assert _positions(body[: cut.start()], thread) == set(rows[thread].tolist()), (page.drawn.name, name, sentence)
                assert _positions(body[cut.start(1) :], thread) == set(columns[thread].tolist()), (page.drawn.name, name, sentence)
            read += 1
    assert read > 100


def test_nearly_every_operand_in_registers_has_words() -> None:
    without = [
        (p.drawn.name, k) for p in pages() for k, o in p.spec.operands().items() if not in_memory(o) and not in_words(o)
    ]  # fmt: skip
    assert len(without) <= 6, without


def test_terms_give_the_table() -> None:
    operand = catalog.read("SM90_U32x4_STSM_N").operands()["S"]
    found = terms_of(operand)
    assert found is not None
    t, v = np.indices(operand.tv.shape)
    for terms, truth in zip(found, operand.coordinates(), strict=True):
        assert all(isinstance(x, Term) for x in terms)
        total = sum(
            x.coefficient * (((t if x.x == "T" else v) // x.divisor) % (x.modulus or 1 << 30)) for x in terms
        )  # fmt: skip
        assert np.array_equal(total, truth)


@pytest.mark.parametrize(
    ("ns", "text"),
    [((), ""), ((8,), "8"), ((8, 16), "8 and 16"), (tuple(range(8, 257, 8)), "8 to 256 by 8"),
     ((8, 16, 24, *range(32, 257, 16)), "8, 16, 24 and 32 to 256 by 16")],
)  # fmt: skip
def test_spread(ns: tuple[int, ...], text: str) -> None:
    assert spread(ns) == text


# --- checks ----------------------------------------------------------------------------------------------------------


def test_checks_are_those_of_the_tests() -> None:
    """What a page says an atom is held against is what the tests hold it against, or more."""
    import checked
    import test_catalog
    import test_oracle

    for instruction in {f["instr"] for f in test_oracle.FORMS}:
        for name in test_oracle._names(instruction):
            assert checked.PTX in checked.checks_of(catalog.find(name)), (instruction, name)
    for case in test_oracle.CPP:
        if case["kind"] == "mma":
            assert checked.CPP in checked.checks_of(catalog.find(case["name"]))
    for _, entries in catalog.families():
        op = str((entries[0].build or {"op": ""})["op"])
        if op.startswith("tcgen05"):
            assert checked.sampled(entries[-1]) == test_catalog._sampled(entries[0])


def test_a_wrong_table_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    import checked

    entry = catalog.find(F16)
    line = json.loads(json.dumps(entry.line))
    line["C"][1] = [[32, 1], [8, 16]]
    with pytest.raises(TexgenError, match="differs from the PTX ISA"):
        checked._ptx(catalog.Entry(F16, 0, line))


# --- two versions ----------------------------------------------------------------------------------------------------


def test_diff_of_two_versions() -> None:
    found = atoms_diff.diff(OLD, NEW)
    assert found.equal == found.counts[0] and not found.removed and not found.changed
    assert found.counts[1] - found.counts[0] == sum(n for _, n in found.added)
    assert any("SPARSE" in name for name, _ in found.added)


def test_diff_names_what_changed(tmp_path: Path) -> None:
    data = json.loads(NEW.read_text())
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    some = data["atoms"][:3]
    before.write_text(json.dumps({"schema": 1, "atoms": some}))
    changed = json.loads(json.dumps(some[1:] + data["atoms"][5:6]))
    changed[0]["C"][1] = [[32, 1], [8, 16]]
    after.write_text(json.dumps({"schema": 1, "atoms": changed}))
    found = atoms_diff.diff(before, after)
    assert [n for n, _ in found.removed] == [some[0]["name"]] and [n for n, _ in found.added] == [data["atoms"][5]["name"]]
    assert [(c.name, c.what, c.after) for c in found.changed] == [(some[1]["name"], "C", "((4,8),(2,2)):((32,1),(8,16))")]
    assert found.equal == 1
    done = subprocess.run(
        [sys.executable, "-m", "texgen", "atoms", "--diff", str(before), str(after)], capture_output=True, text=True, check=True
    )
    assert f"~ {some[1]['name']}, C" in done.stdout and f"- {some[0]['name']}  1 atom" in done.stdout


@pytest.mark.parametrize("content", ["", "[]", '{"atoms": 3}', None])
def test_diff_of_what_is_no_catalogue(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    done = subprocess.run(
        [sys.executable, "-m", "texgen", "atoms", "--diff", str(path), str(NEW)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr and "x.json" in done.stderr


# --- the reference ---------------------------------------------------------------------------------------------------


def test_names_of_templates_are_all_described() -> None:
    import reference

    figure = texgen.figure(F16).figure
    plain, svg = context(figure), svg_context(figure)
    for known, given in (
        (reference.TOP, plain), (reference.FIGURE, plain["figure"]), (reference.PANEL, plain["panels"][0]),
        (reference.SVG_TOP | plain, svg), (reference.SVG_PANEL | plain["panels"][0], svg["panels"][0]),
    ):  # fmt: skip
        assert set(given) <= set(known), sorted(set(given) - set(known))
    gone = set(reference.TOP) - set(plain) | set(reference.FIGURE) - set(plain["figure"]) | set(reference.PANEL) - set(plain["panels"][0])
    assert not gone


def test_keys_of_the_json_are_all_described() -> None:
    import reference

    for kind in reference.schema()["kinds"]:
        assert kind["rows"], kind


def test_options_are_all_described() -> None:
    import reference

    tables = reference.directives()
    missing = [name for name, text in (*tables["rows"], *tables["frame"]) if not text]
    assert not missing
    assert len(tables["rows"]) > 15


def test_macros_are_found() -> None:
    import reference

    names = [name for name, _, _ in reference.macros()["macros"]]
    assert {r"\txgCell", r"\txgOverlay", r"\txgAspect"} <= set(names)
    svg = texgen.figure(F16, overview=True).svg()
    for name in reference.CSS:
        assert name in svg or name in ("txg-note", "txg-shared", "txg-code", "txg-block-name"), name


class _Signatures(HTMLParser):
    """Texts of the ``dt`` elements that describe functions and methods, by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._id = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "dt":
            self._id = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "dt":
            self._id = ""

    def handle_data(self, data: str) -> None:
        if self._id:
            self.found[self._id] = self.found.get(self._id, "") + data


def test_signatures_are_the_codes(built_site: Path) -> None:
    """Each parameter that a signature of the reference shows is one of the function's, in its order."""
    parser = _Signatures()
    parser.feed((built_site / "reference" / "python.html").read_text())
    seen = 0
    for name, obj in {
        "texgen.read": texgen.read, "texgen.figure": texgen.figure, "texgen.render_tikz": texgen.render_tikz,
        "texgen.api.Drawing.save": Drawing.save, "texgen.api.Drawing.png": Drawing.png, "texgen.sources.catalog.find": catalog.find,
        "texgen.words.in_words": in_words,
    }.items():  # fmt: skip
        shown = re.sub(r"\s+", " ", parser.found[name])
        inside = shown[shown.index("(") + 1 :]
        at = 0
        for parameter in inspect.signature(obj).parameters:
            if parameter != "self":
                at = inside.index(parameter, at)
                seen += 1
    assert seen > 10


def test_commands_are_those_of_click(built_site: Path) -> None:
    from texgen.cli import app

    page = (built_site / "reference" / "commands.html").read_text()
    for name, command in app.commands.items():
        assert f"texgen {name}" in page
        for parameter in command.params:
            for opt in parameter.opts:
                assert not opt.startswith("--") or opt in page, (name, opt)


# --- the pages' own commands -----------------------------------------------------------------------------------------

MISSING = {"pdflatex": lambda: shutil.which("pdflatex") is None, "dsl": lambda: importlib.util.find_spec("cutlass") is None}


def _run(listed: list[Block], here: Path) -> int:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for block in listed:
        if block.caption and "." in block.caption:
            (here / block.caption).write_text("\n".join(block.lines) + "\n")
        if block.language != "console" or block.needs == "not-run" or (block.needs in MISSING and MISSING[block.needs]()):
            continue
        commands: list[tuple[str, list[str]]] = []
        for line in block.lines:
            if line.startswith("$ "):
                commands.append((line[2:].split("   #")[0], []))
            elif line.strip():
                commands[-1][1].append(line)
        for command, expected in commands:
            done = subprocess.run(
                command, shell=True, cwd=here, capture_output=True, text=True, timeout=300, check=False, executable="/bin/bash",
                env=environment,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            if expected and expected != ["..."]:
                assert done.stdout.splitlines() == expected, command
            ran += 1
    return ran


@pytest.mark.parametrize("page", ["paper.rst", "blog.md", "class.rst", "style.rst"])
def test_start_here(page: str, tmp_path: Path) -> None:
    """Each page's commands run in order in an empty folder and print what the page shows."""
    assert _run(blocks(DOCS / "start" / page), tmp_path) >= 3


def test_the_questions_commands_run(tmp_path: Path) -> None:
    assert _run(blocks(DOCS / "reading" / "questions.rst"), tmp_path) == 2
    assert (tmp_path / "old.svg").read_text() == (tmp_path / "new.svg").read_text()


@pytest.mark.dsl
@pytest.mark.parametrize("name", ["copy_a", "global_to_shared"])
def test_shipped_tables_are_what_the_programs_give(name: str) -> None:
    spec = texgen.read(f"{DOCS / 'programs' / 'ldmatrix.py'}:{name}")
    kept = texgen.read(str(DOCS / "programs" / f"{name}.json"))
    assert spec.operands() == kept.operands()
    assert spec.tiler == kept.tiler


def test_original_figures() -> None:
    """Eight figures, five of them with the original's own table, whose owners are all among ours."""
    import original

    rows = original.figures()
    assert len(rows) == 8
    assert sum(r["has_original"] for r in rows) == 5


# --- the whole site --------------------------------------------------------------------------------------------------


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if given.get("src"):
            self.sources.append(str(given["src"]))
        if tag == "link" and given.get("href") and given.get("rel") in ("stylesheet", "icon"):
            self.sources.append(str(given["href"]))


def test_internal_links_all_resolve(built_site: Path) -> None:
    parsed: dict[Path, _Links] = {}
    for path in built_site.rglob("*.html"):
        parsed[path] = _Links()
        parsed[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, found in parsed.items():
        for link in [*found.links, *found.sources]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (parts.fragment and target in parsed and unquote(parts.fragment) not in parsed[target].ids | {"top"}):
                broken.append(f"{path.relative_to(built_site)}: {link}")
        outside = [s for s in found.sources if urlsplit(s).scheme in ("http", "https")]
        assert not outside, (path, outside)
    assert len(parsed) > 130
    assert not broken, broken[:20]


def test_objects_inv_has_every_atom(built_site: Path) -> None:
    with (built_site / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda base, uri: uri)
    atoms = dict(inventory.data["texgen:atom"]) if hasattr(inventory, "data") else dict(inventory["texgen:atom"])
    assert set(atoms) == {e.name for e in catalog.search()}
    uri = atoms["SM90_64x128x16_F32F16F16_RS"].uri
    page, _, anchor = uri.partition("#")
    assert f'id="{anchor.replace("$", "SM90_64x128x16_F32F16F16_RS")}"' in (built_site / page).read_text()


def test_every_page_of_the_catalogue(built_site: Path) -> None:
    for page in pages():
        text = (built_site / "catalogue" / f"{page.docname}.html").read_text(encoding="utf-8")
        assert "<svg" in text or "texgen-card" in text, page.docname
        assert page.archs[0] in text and "Where it comes from" in text
        assert all(origin in text for origin in page.origins)
        assert all(escape(entry.name) in text for entry in page.entries)


def test_numbers_of_the_catalogue(built_site: Path) -> None:
    index = (built_site / "catalogue" / "index.html").read_text(encoding="utf-8")
    total = len(catalog.search())
    assert f"{total:,} atoms" in index
    assert catalog.find(F16).origin in index
    checks = (built_site / "catalogue" / "checks.html").read_text(encoding="utf-8")
    assert f"{total:,}" in checks
    assert (built_site / "differences.html").read_text(encoding="utf-8").count("_SPARSE") > 3


def test_a_second_build_draws_nothing(site_folder: Path, built_site: Path) -> None:
    """Nothing is drawn, read or written again."""
    stamps = {p: p.stat().st_mtime_ns for p in (built_site / "_texgen").iterdir()}
    with only_one(site_folder):
        done = sphinx("html", built_site, "-j", "2")
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "drawing figures" not in said
    assert "0 added, 0 changed, 0 removed" in said
    assert {p: p.stat().st_mtime_ns for p in (built_site / "_texgen").iterdir()} == stamps


def _bytes(folder: Path) -> dict[str, str]:
    kept = [p for p in folder.rglob("*") if p.is_file() and p.name not in (".buildinfo", "environment.pickle")]
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}


def test_two_jobs_give_the_same_bytes(site_folder: Path) -> None:
    one, two = (built(site_folder, "html", f"few{n}", "-t", "few", "-j", n)[0] for n in ("1", "2"))
    a, b = _bytes(one), _bytes(two)
    assert a == b


@pytest.mark.pdflatex
def test_pdf_has_the_figures(site_folder: Path) -> None:
    out, _ = built(site_folder, "latex", "latex")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "texgen.tex"], cwd=out, capture_output=True, text=True,
        errors="replace", timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, re.findall(r"^!.*(?:\n.*){8}", done.stdout, re.M)[:1] or done.stdout[-2000:]
    assert (out / "texgen.pdf").stat().st_size > 200_000
    log = (out / "texgen.log").read_text(errors="replace")
    assert "Missing character" not in log, re.findall(r"Missing character.*", log)[:5]
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", "-layout", "texgen.pdf", "-"], cwd=out, capture_output=True, text=True, check=True).stdout
        assert "T5" in text and "V2" in text and "What does PermutationMNK do?" in text


@pytest.mark.parametrize(("builder", "file"), [("epub", "texgen.epub"), ("text", "index.txt")])
def test_other_builders(site_folder: Path, builder: str, file: str) -> None:
    out, _ = built(site_folder, builder, builder, "-t", "few")
    assert (out / file).is_file()
    if builder == "text":
        assert "T5V2" in (out / "reading" / "tv-layouts.txt").read_text(encoding="utf-8").replace(" ", "")


def test_make_site_is_the_first_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^\$ make (\w+)", readme, re.M)[0] == "site"
    makefile = (ROOT / "Makefile").read_text()
    assert "-W -n --keep-going" in makefile
