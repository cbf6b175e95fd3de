"""Writes the catalogue's pages from the data file of atoms, and knows the two directives that they need.

Pages are ``docs/catalogue/**.rst``, from ``templates/site_*.rst.j2``; a page whose text has not changed is not touched.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from checked import ABOUT, KINDS, checks, checks_of
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from texgen.figures.caption import AXES
from texgen.figures.panels import in_memory, memory_note
from texgen.pages import SECTIONS, Family, Page, pages, spread
from texgen.render.environment import fill, home
from texgen.render.files import write
from texgen.sources import catalog
from texgen.specs import CopySpec, MmaSpec
from texgen.sphinxext.domain import TexgenDomain, anchor_of
from texgen.words import in_words, role

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

FOLDER = "catalogue"
LISTED = 4
FEW = (
    "warp/mma-sm-80-f16-into-f32", "warpgroup/wgmma-sm-90a-f16-into-f32", "copy/ldmatrix-8x8-16-bit-sm-75",
)  # fmt: skip
"""What PDF, EPUB and plain text have of the catalogue."""
Rule = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""Layouts by operand and where each operand lies."""
TITLES = {"A": "A", "B": "B", "C": "C", "S": "Source", "D": "Destination"}


@cache
def environment() -> jinja2.Environment:
    """Templates that write reStructuredText: nothing is escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(home()), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.filters |= {"under": lambda title, mark: f"{title}\n{mark * len(title)}", "number": lambda n: f"{n:,}"}
    return made


def text_of(template: str, **names: Any) -> str:
    """The text of a template of the site."""
    return environment().get_template(template).render(names)


@cache
def all_pages() -> tuple[Page, ...]:
    return tuple(pages())


def generate(app: Sphinx) -> None:
    """builder-inited: write the pages, remove those that are none any more, and keep most out of a PDF."""
    folder = Path(app.srcdir) / FOLDER
    made = {f"{page.docname}.rst": page_text(page) for page in all_pages()}
    for section in SECTIONS:
        made[f"{section.folder}/index.rst"] = text_of("site_section.rst.j2", section=section)
    made["index.rst"] = text_of("site_catalogue.rst.j2", sections=SECTIONS, **counts())
    made["checks.rst"] = text_of("site_checks.rst.j2", rows=check_rows(), kinds=KINDS, about=ABOUT, **counts())
    for name, text in made.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write(path, text)
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()
    if is_short(app):
        kept = {f"{FOLDER}/{name}" for name in FEW}
        app.config.exclude_patterns = [
            *app.config.exclude_patterns,
            *(f"{FOLDER}/{p.docname}.rst" for p in all_pages() if f"{FOLDER}/{p.docname}" not in kept),
        ]


def is_short(app: Sphinx) -> bool:
    """True where a few pages stand for the catalogue: in PDF, EPUB and text, and with ``-t few``."""
    return app.builder.format != "html" or app.builder.name == "epub" or app.tags.has("few")


def _of(folder: str) -> list[Page]:
    return [p for p in all_pages() if p.section.folder == folder]


def counts() -> dict[str, Any]:
    """Numbers that pages name."""
    entries = [e for p in all_pages() for e in p.entries]
    origins = sorted({e.origin for e in entries})
    return {
        "atoms": len(entries), "families": sum(len(p.families) for p in all_pages()), "page_count": len(all_pages()),
        "corrected": sum(bool(e.corrected) for e in entries), "origins": origins,
        "dsl": next(o for o in origins if o.startswith("nvidia")), "library": next(o for o in origins if o.startswith("tensor")),
    }  # fmt: skip


def check_rows() -> list[tuple[str, list[int]]]:
    """(section, [atoms, from the DSL, from tensor-layouts, corrected, a number a kind of check]), and their sum."""
    rows = []
    for section in SECTIONS:
        entries = [e for p in _of(section.folder) for e in p.entries]
        dsl = sum(e.build is not None for e in entries)
        passed = [checks_of(e) for e in entries]
        numbers = [len(entries), dsl, len(entries) - dsl, sum(bool(e.corrected) for e in entries)]
        rows.append((section.title, numbers + [sum(kind in p for p in passed) for kind in KINDS]))
    rows.append(("All", [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]))
    return rows


def page_text(page: Page) -> str:
    """One page of the catalogue."""
    spec, drawn = page.spec, page.drawn
    passed = checks(page)
    return text_of(
        "site_page.rst.j2", page=page, drawn=drawn, threads=spec.threads, spread=spread,
        held=facts(page), ptx=_unique(f.ptx for f in page.families if f.ptx), about=ABOUT,
        checks=[(kind, len(names), names) for kind, names in passed.items()],
        corrected=_unique(e.corrected for e in page.entries if e.corrected), notes=_unique(n for e in page.entries for n in e.notes),
        ops=_unique(str(f.line["build"]["op"]) for f in page.families if f.line.get("build")),
        aka=_unique(a for f in page.families for a in f.line.get("aka", ())), cpp=page.section.folder not in ("amd", "intel"),
    )  # fmt: skip


def facts(page: Page) -> list[tuple[str, str]]:
    """(operand with its axes, what threads hold of it) of the atom that is drawn."""
    out = []
    for name in page.spec.operands():
        axes = AXES[name]
        text = said(name, page.spec)
        text = text[:1].upper() + text[1:].rstrip(".") + "." if text else "No closed form: see the layout."
        out.append((f"{TITLES[name]} ({axes[0]}, {axes[1]})", text))
    return out


def rules(page: Page) -> list[tuple[list[Family], list[tuple[str, str, str]]]]:
    """The rules of a page's layouts: (families, [(operand, layout with N, in words), …])."""
    groups: dict[Rule, list[Family]] = {}
    for family in page.families:
        groups.setdefault((family.layouts, tuple(family.line.get("mem", ()))), []).append(family)
    return [(families, in_words_of(rule, families[0])) for rule, families in groups.items()]


_KNOWN: dict[tuple[Rule, str], list[tuple[str, str, str]]] = {}


def in_words_of(rule: Rule, family: Family) -> list[tuple[str, str, str]]:
    """(operand, layout, in words), from one atom of the family; many pages of MMAs share a rule."""
    example = family.example
    key = (rule, example.name if example.kind == "copy" else "")
    if key not in _KNOWN:
        spec = catalog.read(example.name)
        _KNOWN[key] = [(letter, layout, said(letter, spec) or "—") for letter, layout in rule[0]]
    return _KNOWN[key]


def said(letter: str, spec: MmaSpec | CopySpec) -> str:
    """Where an operand is, in words; empty where it follows no rule."""
    operand = spec.operands()[letter]
    return memory_note(operand) if in_memory(operand) else in_words(operand, AXES[letter], role(spec, letter))


def _unique(items: Any) -> list[Any]:
    return list(dict.fromkeys(items))


class AtomNames(SphinxDirective):
    """``.. atom-names:: FOLDER/SLUG``: every name of a page, each where links to it lead."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = _page(self.arguments[0])
        domain = self.env.get_domain("texgen")
        assert isinstance(domain, TexgenDomain)
        listed = []
        for family in page.families:
            for entry in family.entries:
                domain.note_atom(entry.name, anchor_of(entry.name))
            names = [(anchor_of(e.name), e.name) for e in family.entries]
            listed.append((family.name if len(names) > 1 else "", names))
        if not is_short(self.env.app):  # thousands of nodes would cost a third of the build
            return [nodes.raw("", fill("site_names.html.j2", {"families": listed}), format="html")]
        out: list[nodes.Node] = []
        for name, names in listed:
            if name:
                out.append(nodes.rubric("", name))
            line = nodes.paragraph("")
            for i, (anchor, text) in enumerate(names):
                line += [nodes.Text(" " if i else ""), nodes.literal(text, text, ids=[anchor])]
            out.append(line)
        return out


class AtomLayouts(SphinxDirective):
    """``.. atom-layouts:: FOLDER/SLUG``: the layouts of a page, one table for each rule."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        page = _page(self.arguments[0])
        out: list[nodes.Node] = []
        for families, rows in rules(page):
            names: list[nodes.Node] = []
            for family in families[:LISTED]:
                names += [nodes.Text(", " if names else ""), _code(family.name)]
            rest = len(families) - LISTED
            names.append(nodes.Text((f" and {rest} more" if rest > 0 else "") + (":" if not families[0].ns else "; in words ")))
            if families[0].ns:
                names += [_code(families[0].example.name), nodes.Text(":")]
            out.append(nodes.paragraph("", "", *names))
            cells = [[nodes.Text(letter), _code(layout), nodes.Text(text)] for letter, layout, text in rows]
            out.append(table(("Operand", "Layout", "In words"), (8, 46, 46), cells, "layouts"))
        return out


class AtomFamilies(SphinxDirective):
    """``.. atom-families:: FOLDER/SLUG``: the DSL's op of each family of a page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = [
            [_code(f.name), nodes.Text(f.shape or "—"), nodes.Text(f.spread or "—"), _code(f.dsl)]
            for f in _page(self.arguments[0]).families if f.dsl
        ]  # fmt: skip
        return [table(("Family", "M×N×K", "N", "Op"), (30, 10, 20, 40), rows, "families")]


def table(titles: tuple[str, ...], widths: tuple[int, ...], rows: list[list[nodes.Node]], name: str) -> nodes.table:
    """A table, without the cost of parsing each cell."""
    group = nodes.tgroup("", *(nodes.colspec("", colwidth=width) for width in widths), cols=len(widths))
    group += nodes.thead("", nodes.row("", *(_cell(nodes.Text(title)) for title in titles)))
    group += nodes.tbody("", *(nodes.row("", *map(_cell, row)) for row in rows))
    return nodes.table("", group, classes=[name])


def _page(docname: str) -> Page:
    return next(p for p in all_pages() if p.docname == docname)


def _code(text: str) -> nodes.literal:
    return nodes.literal(text, text)


class CatalogueIndex(SphinxDirective):
    """``.. catalogue-index::``: a table of all pages. A script of the site filters its rows by their classes."""

    COLUMNS = (("Instruction", 34), ("Architecture", 12), ("A · B → C", 22), ("M×N×K", 24), ("Atoms", 8))

    def run(self) -> list[nodes.Node]:
        made = table(tuple(t for t, _ in self.COLUMNS), tuple(w for _, w in self.COLUMNS), [], "catalogue-index")
        body = next(iter(made.findall(nodes.tbody)))
        body += [self._row(page) for page in self.shown()]
        return [made]

    def shown(self) -> tuple[Page, ...]:
        """The pages that stand in the table."""
        return all_pages()

    def _row(self, page: Page) -> nodes.row:
        link: nodes.Node = nodes.Text(page.title)
        docname = f"{FOLDER}/{page.docname}"
        if docname in self.env.found_docs:
            link = addnodes.pending_xref(
                "", nodes.inline("", page.title), refdomain="std", reftype="doc", reftarget=f"/{docname}", refexplicit=True, refwarn=True,
                refdoc=self.env.docname,
            )  # fmt: skip
        triples = [f"{a} · {b} → {c}" for a, b, c in page.type_triples]
        if len(triples) > 4:
            triples = [*triples[:3], f"and {len(triples) - 3} more"]
        shapes = [shape + (f", N = {spread(ns)}" if ns else "") for shape, ns in page.shapes]
        row = nodes.row(
            "", _cell(link), _cell(nodes.Text(", ".join(page.archs))), _cell(*_lines(triples or ["any"])), _cell(*_lines(shapes or ["—"])),
            _cell(nodes.Text(f"{len(page.entries):,}")),
        )  # fmt: skip
        row["classes"] += [f"arch:{a}" for a in page.archs] + [f"type:{t}" for t in page.types]
        row["classes"] += [f"shape:{shape.replace('×', 'x')}:{'-'.join(map(str, ns))}" for shape, ns in page.shapes]
        return row


class CataloguePages(CatalogueIndex):
    """``.. catalogue-pages:: FOLDER``: the pages of a section; a PDF gets those that it has.

    They stand in no table of contents but this: in the theme's sidebar they would be most of every page.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if not is_short(self.env.app):
            return super().run()
        names = [name.partition("/")[2] for name in FEW if name.startswith(f"{self.arguments[0]}/")]
        return self.parse_text_to_nodes("\n   ".join([".. toctree::", "", *names]) + "\n") if names else []

    def shown(self) -> tuple[Page, ...]:
        return tuple(_of(self.arguments[0]))


def _cell(*inside: nodes.Node) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", "", *inside))


def _lines(texts: list[str]) -> list[nodes.Node]:
    """Texts one under another; a writer without lines inside a paragraph shows them by blanks."""
    out: list[nodes.Node] = []
    for i, text in enumerate(texts):
        out.append(nodes.inline("", text + ("" if i == len(texts) - 1 else "; "), classes=["line"]))
    return out


def missing_atom(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: Element) -> Element | None:
    """missing-reference: in a PDF an atom whose page is left out stands there without a link."""
    return contnode if node.get("refdomain") == "texgen" and is_short(app) else None


def mend_headings(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """html-page-context, after the theme: the captions in the sidebar say that they are headings, but not of which level."""
    tree = context.get("furo_navigation_tree")
    if isinstance(tree, str):
        context["furo_navigation_tree"] = tree.replace('role="heading">', 'role="heading" aria-level="2">')


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", generate)
    app.connect("missing-reference", missing_atom)
    app.connect("html-page-context", mend_headings, priority=900)
    app.add_directive("atom-names", AtomNames)
    app.add_directive("atom-layouts", AtomLayouts)
    app.add_directive("atom-families", AtomFamilies)
    app.add_directive("catalogue-index", CatalogueIndex)
    app.add_directive("catalogue-pages", CataloguePages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
