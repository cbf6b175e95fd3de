"""``texgen:timeline``: a pipeline's stages over time, as ``texgen timeline`` draws them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

from docutils.parsers.rst import directives

from texgen.sphinxext.directives import FigureDirective
from texgen.sphinxext.entries import Entry, ExecutionOff, Use
from texgen.sphinxext.options import Converter, specification, split

NUMBERS = ("stages", "k-tiles", "k-blocks")
LOOK = ("cols", "palette", "title", "label", "legend", "no-legend", "no-caption", "print-width", "theme")
FRAME = ("caption", "name", "alt", "align", "width", "class")


@cache
def timeline_specification() -> dict[str, Converter]:
    """The options of the command, and those of a figure in a page."""
    known = specification()
    own: dict[str, Any] = {name: directives.positive_int for name in NUMBERS}
    own |= {name: directives.unchanged_required for name in ("fault", "protocol", "measured")}
    return own | {name: known[name] for name in (*LOOK, *FRAME) if name in known}


class _Lazy:
    def __get__(self, instance: object, owner: type | None = None) -> dict[str, Converter]:
        return timeline_specification()


class TimelineDirective(FigureDirective):
    """A pipeline's timeline; hazards are part of the picture, not warnings of the build."""

    has_content = False
    optional_arguments = 0
    option_spec = cast("Any", _Lazy())
    kinds: ClassVar[tuple[str, ...]] = ("timeline",)

    def _entries(self) -> list[Entry]:
        from texgen.pipeline.build import timeline_spec

        given = dict(self.options)
        numbers = {name.replace("-", "_"): given.pop(name, None) for name in NUMBERS}
        fault = given.pop("fault", "")
        protocol, measured = (given.pop(name, None) for name in ("protocol", "measured"))
        if protocol and not protocol.endswith(".json"):
            place, _, name = protocol.rpartition(":")
            if not self.config.texgen_execute:
                raise ExecutionOff("This timeline runs Python, and that is off here: set texgen_execute = True in conf.py to allow it.")
            protocol = f"{self._file(place)}:{name}" if place.endswith(".py") else protocol
        elif protocol:
            protocol = str(self._file(protocol))
        _, look = split(given, self.config.texgen_options)
        spec = timeline_spec(**numbers, fault=fault, protocol=protocol, measured=self._file(measured) if measured else None)
        studio = self.domain.open_studio
        before = studio.drawn
        entry = studio.draw(spec, look)
        self._count(studio.drawn - before)
        self.domain.note_use(Use(entry, self.get_location()))
        return [entry]

    def _file(self, name: str) -> Path:
        """A file relative to the page, or to the source folder with a leading ``/``; the page is read again when it changes."""
        path = Path(self.env.relfn2path(name)[1])
        self.env.note_dependency(str(path))
        return path
