"""``texgen:chain``: a copy beside the MMA that it feeds."""

from __future__ import annotations

from typing import Any, ClassVar

from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util import logging

from texgen.errors import UsageError
from texgen.keys import dsl_version
from texgen.sphinxext.directives import FigureDirective
from texgen.sphinxext.entries import Entry, Request, Use
from texgen.sphinxext.options import specification, spelt_here, split

logger = logging.getLogger(__name__)

TARGETS = ("fill", "mma", "smem")


def _text(argument: str | None) -> str:
    return " ".join((argument or "").split())


class _Specification:
    """The options of a figure and those of a chain, made when the first directive is read."""

    def __get__(self, instance: object, owner: type | None = None) -> dict[str, Any]:
        return {**specification(), "mma": _text, "fill": _text, "smem": _text, "at": _text, "wrong": directives.flag}


class ChainDirective(FigureDirective):
    """The copy is the argument, the MMA ``:mma:``; a body may end in a dict of both, and of the layout in shared memory.

    ``:wrong:`` shows a chain that does not feed its MMA on purpose, without a warning in the build's log.
    """

    option_spec = _Specification()  # type: ignore[assignment]
    kinds: ClassVar[tuple[str, ...]] = ("chain",)

    def _entries(self) -> list[Entry]:
        from texgen.chains.build import MMA_ONLY, OF_LAYOUTS, read_chain
        from texgen.specs import MmaSpec, dtype_bits

        reading, look = split(self.options, self.config.texgen_options)
        requests: list[Request] = []
        main = self.options.get("mma") or None
        specs = self._read(main, reading, requests) if main else []
        bits = next((dtype_bits(s.A.dtype) for s in specs if isinstance(s, MmaSpec)), 0)
        other = {k: v for k, v in reading.items() if k not in MMA_ONLY} if main else dict(reading)
        if bits and not other.get("bits") and not other.get("dtype"):
            other["bits"] = bits
        fill = self._read(self.options["fill"], other, requests) if self.options.get("fill") else []
        targets = [*fill, *self._read(None, other, requests), *specs]
        smem = None
        if self.options.get("smem"):
            layouts = {k: v for k, v in other.items() if k in ("bits", "dtype", *OF_LAYOUTS)}
            found = self._read(self.options["smem"], layouts, requests)
            if len(found) != 1:
                raise UsageError(":smem: must name one layout of shared memory.")
            smem = found[0]
        spec = read_chain(targets, smem=smem, operand=look.operand, at=self.options.get("at"))
        studio = self.domain.open_studio
        before = studio.drawn
        entry = studio.draw(spec, look)
        self._count(studio.drawn - before)
        dsl = dsl_version() if any(r.needs_dsl for r in requests) else ""
        for kept in dict.fromkeys(studio.spec_name(r) for r in requests):
            self.domain.note_use(Use(entry, self.get_location(), dsl, kept))
        if "wrong" in self.options and not entry.warnings:
            raise UsageError("This chain feeds its MMA: leave :wrong: out.")
        for warning in () if "wrong" in self.options else entry.warnings:
            logger.warning("%s", spelt_here(warning), type="texgen", subtype="layout", location=self.get_location())
        return [entry]

    def _read(self, target: str | None, reading: dict[str, Any], requests: list[Request]) -> list[Any]:
        """The specs of a target (None: of the argument or the body), its files noted and the request kept in ``requests``."""
        from texgen.specs import flat

        arguments, content = self.arguments, self.content
        if target is not None:
            self.arguments, self.content = [target], StringList()
        try:
            request = self._request(reading)
        finally:
            self.arguments, self.content = arguments, content
        requests.append(request)
        studio = self.domain.open_studio
        for file in studio.files(request):
            self.env.note_dependency(str(file))
        return [spec for _, spec in flat(studio.read(request))]
