"""``texgen:mma``, ``texgen:copy`` and ``texgen:layout``: a target becomes a numbered figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from texgen.errors import TexgenError, UsageError
from texgen.keys import dsl_version
from texgen.sphinxext.body import program
from texgen.sphinxext.entries import Entry, ExecutionOff, MissingDsl, Request, Use
from texgen.sphinxext.nodes import links, picture
from texgen.sphinxext.options import LazySpecification, spelt_here, split
from texgen.sphinxext.stamps import stamps
from texgen.sphinxext.studio import each

if TYPE_CHECKING:
    from texgen.specs import Spec
    from texgen.sphinxext.domain import TexgenDomain

logger = logging.getLogger(__name__)


class FigureDirective(SphinxDirective):
    """A figure of a target (the argument) or of the object that the Python of the body ends in."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = cast("Any", LazySpecification())
    kinds: ClassVar[tuple[str, ...]] = ()

    @property
    def domain(self) -> TexgenDomain:
        """Our domain."""
        return cast("TexgenDomain", self.env.get_domain("texgen"))

    def run(self) -> list[nodes.Node]:
        """The figure node, or a box with what went wrong. Never raises."""
        try:
            entries = self._entries()
        except TexgenError as error:
            return self._figure([self._failure(error)])
        except Exception as error:
            fault = TexgenError(f"texgen itself failed ({type(error).__name__}: {error}): please report it.")
            logger.debug("texgen", exc_info=True)
            return self._figure([self._failure(fault)])
        return self._figure([*map(self._picture, entries), self._links(entries), *stamps(self, entries)])

    # What is drawn

    def _entries(self) -> list[Entry]:
        reading, look = split(self.options, self.config.texgen_options)
        request = self._request(reading)
        studio = self.domain.open_studio
        for file in studio.files(request):
            self.env.note_dependency(str(file))
        before = studio.drawn
        entries = [studio.draw(self._fitting(spec), look) for spec in each(studio.read(request))]
        self._count(studio.drawn - before)
        dsl, kept = dsl_version() if request.needs_dsl else "", studio.spec_name(request)
        for entry in entries:
            self.domain.note_use(Use(entry, self.get_location(), dsl, kept))
            for warning in entry.warnings:
                logger.warning("%s", spelt_here(warning), type="texgen", subtype="layout", location=self.get_location())
        return entries

    def _count(self, drawn: int) -> None:
        """Noted by page as well, since a page may be read in another process."""
        counts = self.domain.data["drawn"]
        counts[self.env.docname] = counts.get(self.env.docname, 0) + drawn

    def _request(self, reading: dict[str, Any]) -> Request:
        """What to read; files are taken relative to the page, or to the source folder with a leading ``/``."""
        target = " ".join(self.arguments[0].split()) if self.arguments else ""
        body = list(self.content)
        here = Path(self.env.doc2path(self.env.docname)).parent
        has_body = any(line.strip() for line in body)
        if target and has_body:
            raise UsageError("This directive has a target and a body: give one of them.")
        if not target and not has_body:
            raise UsageError("This directive names nothing to draw: give a target after ::, or Python in its body.")
        if not target:
            return Request("", reading, here, program(body), "The Python in the body")
        shown = target
        place, colon, name = target.rpartition(":")
        if place.endswith(".py") and name:
            target = self.env.relfn2path(place)[1] + colon + name
        elif target.endswith((".json", ".py")):
            target = self.env.relfn2path(target)[1]
        return Request(target, reading, here, shown=shown)

    def _fitting(self, spec: Spec) -> Spec:
        if spec.kind not in self.kinds:
            other = "layout" if spec.kind == "tv" else spec.kind
            raise UsageError(f"{spec.name or 'This target'} is a {spec.kind}, not a {self.kinds[0]}: use the directive texgen:{other}.")
        return spec

    # What stands in the page

    def _figure(self, inside: list[nodes.Node]) -> list[nodes.Node]:
        figure = nodes.figure("", *inside, align=self.options.get("align", "default"))
        self.set_source_info(figure)
        figure["classes"] += ["texgen", *self.options.get("class", [])]
        messages: list[nodes.Node] = []
        if text := self.options.get("caption"):
            inline, said = self.parse_inline(text)
            caption = nodes.caption(text, "", *inline)
            self.set_source_info(caption)
            figure += caption
            messages += said
        self.add_name(figure)
        return [figure, *messages]

    def _picture(self, entry: Entry) -> nodes.Node:
        node = picture(stem=entry.stem, alt=self.options.get("alt") or entry.alt)
        if "width" in self.options:
            node["width"] = self.options["width"]
        if "interactive" in self.options or "no-interactive" in self.options:
            node["interactive"] = "no-interactive" not in self.options
        self.set_source_info(node)
        return node

    def _links(self, entries: list[Entry]) -> nodes.Node:
        return links(stems=[entry.stem for entry in entries])

    def _failure(self, error: TexgenError) -> nodes.Node:
        """A warning, and a box in the page in place of the picture."""
        error = type(error)(spelt_here(error.message, self.option_spec), error.detail)
        subtype = "execute" if isinstance(error, ExecutionOff) else "figure"
        said, studio = str(error), self.domain.open_studio
        if isinstance(error, MissingDsl):
            subtype, said = "dsl", said if said not in studio.named else "This figure needs the CuTe DSL too."
            studio.named.add(str(error))
        logger.warning("%s", said, type="texgen", subtype=subtype, location=self.get_location())
        self.domain.note_failure()
        box = nodes.error("", nodes.paragraph("", "", nodes.strong("", "This figure could not be drawn.")), classes=["texgen-failure"])
        box += nodes.paragraph("", error.message)
        if error.detail:
            box += nodes.literal_block(error.detail, error.detail, language="none")
        self.set_source_info(box)
        return box


class MmaDirective(FigureDirective):
    """``texgen:mma``: A, B and C of a tiled MMA or an MMA atom."""

    kinds = ("mma", "tv")


class CopyDirective(FigureDirective):
    """``texgen:copy``: source and destination of a tiled copy or a copy atom."""

    kinds = ("copy", "tv")


class LayoutDirective(FigureDirective):
    """``texgen:layout``: a layout's offsets, a swizzle before beside after, a thread-value layout."""

    kinds = ("layout", "tv")


__all__ = ["CopyDirective", "FigureDirective", "LayoutDirective", "MmaDirective"]
