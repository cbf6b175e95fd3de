"""What happens at which moment of a build."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.util import logging
from sphinx.util.display import status_iterator

from texgen.errors import TexgenError
from texgen.keys import dsl_version
from texgen.render.environment import fill
from texgen.render.files import write
from texgen.sphinxext.entries import Use
from texgen.sphinxext.stamps import stamps_digest
from texgen.sphinxext.studio import Studio, page_digest

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

    from texgen.sphinxext.domain import TexgenDomain

STYLE = "texgen.css"
logger = logging.getLogger(__name__)


def domain_of(env: BuildEnvironment) -> TexgenDomain:
    """Our domain of a build's environment."""
    from texgen.sphinxext.domain import TexgenDomain

    found = env.get_domain("texgen")
    assert isinstance(found, TexgenDomain)
    return found


def warn(error: TexgenError, subtype: str, location: Any) -> None:
    """A warning of type ``texgen.SUBTYPE`` with the sentence and what belongs to it."""
    logger.warning("%s", error, type="texgen", subtype=subtype, location=location)


def add_preamble(app: Sphinx, config: Config) -> None:
    """config-inited: the LaTeX macro that keeps a picture inside the page."""
    own = fill("sphinx_preamble.tex.j2", {})
    config.latex_elements = {**config.latex_elements, "preamble": config.latex_elements.get("preamble", "") + own}


def open_studio(app: Sphinx) -> None:
    """builder-inited."""
    domain_of(app.env).studio = Studio(app)


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> Sequence[str]:
    """env-get-outdated: pages to read again: all after a change of texgen or its templates, those that were read with
    another version of the DSL, all after another run of ``texgen verify``, and those with a figure that failed, so that it is never forgotten."""
    domain = domain_of(env)
    studio = domain.open_studio
    now = {"figures": studio.digest, "pages": page_digest(), "stamps": stamps_digest(env)}
    before, domain.data["digests"] = domain.data["digests"], now
    domain.data["drawn"] = {}
    if before != now:
        return sorted({*domain.uses, *domain.failed})
    stale = set(domain.failed)
    for docname, uses in domain.uses.items():
        if any((use.dsl and use.dsl != dsl_version()) or studio.known(use.entry.stem) is None for use in uses):
            stale.add(docname)
    return sorted(stale)


def finish_forms(app: Sphinx, env: BuildEnvironment) -> Sequence[str]:
    """env-updated: make the forms that this builder needs and another did not, then the PDFs, and put all into place."""
    domain = domain_of(env)
    studio = domain.open_studio
    uses: dict[str, tuple[str, Use]] = {}
    for docname, listed in sorted(domain.uses.items()):
        for use in listed:
            uses.setdefault(use.entry.stem, (docname, use))
    todo = [stem for stem in uses if studio.missing(stem)]
    for stem in _progress(app, todo, "drawing figures... "):
        _or_warn(domain, *uses[stem], lambda stem=stem: studio.complete(stem))
    if "pdf" in studio.forms:
        _make_pdfs(app, domain, uses)
    studio.publish(uses)
    if app.builder.format == "latex" and domain.data["charts"] and not app.registry.has_latex_package("pgfplots"):
        app.add_latex_package("pgfplots")
    if app.builder.name == "epub":
        studio.keep_out_of_epub()
    if app.builder.format == "html":
        style = Path(app.outdir) / "_static" / STYLE
        text = studio.page_text("sphinx_style.css.j2", {})
        if not style.is_file() or style.read_text(encoding="utf-8") != text:
            write(style, text)
    return ()


def _make_pdfs(app: Sphinx, domain: TexgenDomain, uses: dict[str, tuple[str, Use]]) -> None:
    studio = domain.open_studio
    todo = [stem for stem in uses if not studio.pdf_path(stem).is_file()]
    if todo and studio.engine() is None:
        what = app.config.texgen_engine or "A TeX engine"
        logger.warning(
            "%s is not on the PATH: PDFs of %d figures are drawn from their SVG. Install it, or change texgen_engine, or "
            "leave PDF out of texgen_latex and texgen_links.", what, len(todo), type="texgen", subtype="engine",
        )  # fmt: skip

    def make(stem: str) -> tuple[str, list[str] | TexgenError]:
        try:
            return stem, studio.make_pdf(stem)
        except TexgenError as error:
            return stem, error

    with ThreadPoolExecutor(max(1, app.parallel)) as pool:
        for stem, result in _progress(app, pool.map(make, todo), "making PDFs of figures... ", len(todo), lambda r: str(r[0])):
            docname, use = uses[stem]
            if isinstance(result, TexgenError):
                studio.failed[stem] = result
                domain.note_failure(docname)
                warn(result, "tex", use.location)
            else:
                for said in result:
                    logger.warning("%s: %s", stem, said, type="texgen", subtype="tex", location=use.location)


def _progress(app: Sphinx, items: Any, what: str, length: int | None = None, name: Any = str) -> Any:
    count = len(items) if length is None else length
    return status_iterator(items, what, "darkgreen", count, app.verbosity, name) if count else iter(())


def _or_warn(domain: TexgenDomain, docname: str, use: Use, action: Any) -> None:
    try:
        action()
    except TexgenError as error:
        domain.note_failure(docname)
        domain.open_studio.failed[use.entry.stem] = error
        warn(error, "figure", use.location)


def sweep(app: Sphinx, exception: Exception | None) -> None:
    """build-finished: files of figures that are gone go too."""
    if exception is None and app.builder is not None:
        domain = domain_of(app.env)
        if domain.studio is not None:
            domain.studio.sweep(use for uses in domain.uses.values() for use in uses)
