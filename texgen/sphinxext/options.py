"""The options of the directives, made from those of reading and of the figure, so that none can be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from docutils.parsers.rst import directives

from texgen.errors import UsageError, spelt

if TYPE_CHECKING:
    from texgen.figures import FigureOptions

Converter = Callable[[str], Any]
"""Docutils gives None for an option without a value; each of these takes that too."""
ALIGN = ("left", "center", "right")


@cache
def _fields() -> tuple[dict[str, Field[Any]], dict[str, Field[Any]]]:
    """The options of reading and those of the figure, by name."""
    from texgen.figures import FigureOptions
    from texgen.sources import ReadOptions

    return {f.name: f for f in fields(ReadOptions) if f.name != "name"}, {f.name: f for f in fields(FigureOptions)}


def _text(argument: str) -> str:
    return " ".join((argument or "").split())


def _align(argument: str) -> str:
    return str(directives.choice(argument, ALIGN))


def _converter(field: Field[Any]) -> Converter:
    kind = str(field.type)
    if kind == "int":
        return directives.nonnegative_int
    if kind == "float":
        return _seconds
    return directives.flag if kind.startswith("bool") else _text


def _seconds(argument: str) -> float:
    return float(argument or "")


@cache
def specification() -> dict[str, Converter]:
    """Option names with their converters; ``no-caption`` leaves the lines of facts out of the picture itself, ``animate`` is
    ``slides`` by the name that a page has for it."""
    out: dict[str, Converter] = {}
    reading, figure = _fields()
    for name, field in {**reading, **figure}.items():
        if name != "caption":
            out[name.replace("_", "-")] = _converter(field)
        if str(field.type).startswith("bool") and field.default is not False:
            out[f"no-{name.replace('_', '-')}"] = directives.flag
    return out | {
        "caption": _text, "name": directives.unchanged, "alt": _text, "align": _align,
        "width": directives.length_or_percentage_or_unitless, "class": directives.class_option,
        "animate": _text, "stamp": directives.flag, "no-stamp": directives.flag, "interactive": directives.flag, "no-interactive": directives.flag,
    }  # fmt: skip


class LazySpecification:
    """``option_spec`` of a directive, made when the first one is read."""

    def __get__(self, instance: object, owner: type | None = None) -> dict[str, Converter]:
        return specification()


def spelt_here(message: str, known: Mapping[str, Any] | None = None) -> str:
    """A message with options as a directive writes them: ``:rows:`` for ``--rows``; ``known`` are that directive's own."""
    return spelt(message, lambda name: f":{name}:" if name in (specification() if known is None else known) else f"--{name}")


def split(given: dict[str, Any], defaults: dict[str, Any]) -> tuple[dict[str, Any], FigureOptions]:
    """(options of reading, options of the figure) out of a directive's options and those of ``texgen_options``.

    Raises UsageError for a value that is not understood or a default with an unknown name.
    """
    from texgen.figures import FigureOptions

    of_reading, of_figure = _fields()
    known = {**of_reading, **of_figure}
    if unknown := sorted(set(defaults) - set(known)):
        raise UsageError(f"texgen_options has {unknown[0]!r}, which is no option: there are {', '.join(sorted(known))}.")
    chosen = dict(defaults)
    for option, value in given.items():
        option = "slides" if option == "animate" else option
        name, is_off = option.removeprefix("no-").replace("-", "_"), option.startswith("no-")
        if name not in known or (name == "caption" and not is_off):
            continue
        chosen[name] = (not is_off) if str(known[name].type).startswith("bool") else value
    look = FigureOptions.of(**{k: v for k, v in chosen.items() if k in of_figure})
    return {k: v for k, v in chosen.items() if k in of_reading}, look
