"""The domain ``texgen``: its directives, and atoms as things to link to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from sphinx.domains import Domain, ObjType
from sphinx.roles import XRefRole
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from texgen.errors import TexgenError
from texgen.sphinxext.chain import ChainDirective
from texgen.sphinxext.directives import CopyDirective, LayoutDirective, MmaDirective
from texgen.sphinxext.entries import Use
from texgen.sphinxext.program import ProgramDirective
from texgen.sphinxext.results import ResultRole, ResultsDirective
from texgen.sphinxext.studio import Studio
from texgen.sphinxext.timeline import TimelineDirective

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.builders import Builder
    from sphinx.environment import BuildEnvironment

logger = logging.getLogger(__name__)


def canonical(name: str) -> str:
    """The catalogue's spelling of an atom's name; the name as it is where the catalogue has none such."""
    from texgen.sources import catalog

    try:
        return catalog.find(name).name
    except TexgenError:
        return name.strip()


def anchor_of(name: str) -> str:
    """The id in a page that an atom's name gets."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")


class AtomRole(XRefRole):
    """``:texgen:atom:`` links to the page of an atom, in any spelling that ``texgen render`` takes."""

    def process_link(
        self, env: BuildEnvironment, refnode: Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        return title, canonical(target)


class AtomDirective(SphinxDirective):
    """``.. texgen:atom:: NAME …`` makes its place in the page the one that the names link to; names may also stand in the
    body, by blanks or one a line."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        names = [*(self.arguments[0].split() if self.arguments else ()), *" ".join(self.content).split()]
        domain = self.env.get_domain("texgen")
        assert isinstance(domain, TexgenDomain)
        target = nodes.target("", "")
        self.set_source_info(target)
        for name in names:
            target["ids"].append(domain.note_atom(name, location=target))
        if not names:
            logger.warning("texgen:atom needs names of atoms", location=target, type="texgen", subtype="atom")
        self.state.document.note_explicit_target(target)
        return [target]


class TexgenDomain(Domain):
    """Figures of layouts, and the atoms that pages describe."""

    name = "texgen"
    label = "texgen"
    object_types: ClassVar[dict[str, ObjType]] = {"atom": ObjType("atom", "atom")}  # type: ignore[misc]
    directives: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "mma": MmaDirective, "copy": CopyDirective, "layout": LayoutDirective, "chain": ChainDirective, "atom": AtomDirective,
        "program": ProgramDirective, "results": ResultsDirective, "timeline": TimelineDirective,
    }  # fmt: skip
    roles: ClassVar[dict[str, Any]] = {"atom": AtomRole(warn_dangling=True), "result": ResultRole()}  # type: ignore[misc]
    initial_data: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "atoms": {}, "uses": {}, "failed": {}, "drawn": {}, "digests": {},
        "results": {}, "charts": {},
    }  # fmt: skip
    data_version = 2
    dangling_warnings: ClassVar[dict[str, str]] = {"atom": "no page describes the atom %(target)s"}  # type: ignore[misc]
    studio: Studio | None = None

    @property
    def open_studio(self) -> Studio:
        """This build's studio."""
        assert self.studio is not None, "builder-inited has not happened"
        return self.studio

    @property
    def atoms(self) -> dict[str, tuple[str, str]]:
        """Name of an atom → (page, anchor)."""
        return self.data["atoms"]  # type: ignore[no-any-return]

    @property
    def uses(self) -> dict[str, list[Use]]:
        """Page → its figures."""
        return self.data["uses"]  # type: ignore[no-any-return]

    @property
    def failed(self) -> dict[str, bool]:
        """Pages with a figure that failed."""
        return self.data["failed"]  # type: ignore[no-any-return]

    @property
    def drawn(self) -> int:
        """How many figures this build has drawn, in all its processes."""
        return self.open_studio.drawn

    def note_atom(self, name: str, anchor: str | None = None, location: Any = None) -> str:
        """Say that the current page describes an atom, at ``anchor`` (made from the name if left out), which it returns."""
        anchor = anchor or anchor_of(name)
        docname = self.env.docname
        known = self.atoms.get(name)
        if known is not None and known != (docname, anchor):
            logger.warning("the atom %s is described in %s too", name, known[0], location=location, type="texgen", subtype="atom")
        self.atoms[name] = (docname, anchor)
        return anchor

    def note_use(self, use: Use) -> None:
        """Say that the current page shows a figure."""
        self.uses.setdefault(self.env.docname, []).append(use)

    def note_failure(self, docname: str | None = None) -> None:
        """Say that a figure of the page failed: the page is read again at the next build."""
        self.failed[docname or self.env.docname] = True

    def note_result(self, digest: str, anchor: str) -> bool:
        """Say that the current page lists the execution of a spec; False where another place does."""
        known = self.data["results"].setdefault(digest, (self.env.docname, anchor))
        return bool(known == (self.env.docname, anchor))

    def clear_doc(self, docname: str) -> None:
        self.data["results"] = {k: v for k, v in self.data["results"].items() if v[0] != docname}
        self.data["charts"].pop(docname, None)
        self.data["atoms"] = {k: v for k, v in self.atoms.items() if v[0] != docname}
        self.uses.pop(docname, None)
        self.failed.pop(docname, None)

    def merge_domaindata(self, docnames: Set[str], otherdata: dict[str, Any]) -> None:  # type: ignore[override]
        self.atoms.update({k: v for k, v in otherdata["atoms"].items() if v[0] in docnames})
        self.uses.update({k: v for k, v in otherdata["uses"].items() if k in docnames})
        self.failed.update({k: v for k, v in otherdata["failed"].items() if k in docnames})
        self.data["results"].update({k: v for k, v in otherdata["results"].items() if v[0] in docnames})
        self.data["charts"].update({k: v for k, v in otherdata["charts"].items() if k in docnames})
        for docname in docnames & otherdata["drawn"].keys():
            self.open_studio.drawn += otherdata["drawn"][docname]

    def resolve_xref(
        self, env: BuildEnvironment, fromdocname: str, builder: Builder, typ: str, target: str, node: pending_xref,
        contnode: Element,
    ) -> nodes.reference | None:  # fmt: skip
        if typ == "result":
            found = self.data["results"].get(target)
        else:
            found = self.atoms.get(canonical(target) if typ == "quiet-atom" else target)
        if found is None:
            return cast("nodes.reference", contnode) if typ != "atom" else None
        return make_refnode(builder, fromdocname, found[0], found[1], [contnode], target)

    def resolve_any_xref(
        self, env: BuildEnvironment, fromdocname: str, builder: Builder, target: str, node: pending_xref, contnode: Element
    ) -> list[tuple[str, nodes.reference]]:
        made = self.resolve_xref(env, fromdocname, builder, "atom", target, node, contnode)
        return [("texgen:atom", made)] if made is not None else []

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        for name, (docname, anchor) in self.atoms.items():
            yield name, name, "atom", docname, anchor, 1
