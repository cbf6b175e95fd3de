"""Handout → LaTeX: what the template ``handout.tex.j2`` gets."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from texgen.handout.figure import MARGIN, position, with_blanks
from texgen.handout.sheet import (
    LINES,
    Handout,
    Section,
    blank_answer,
    heading,
    layouts,
    localised,
    notes,
    owners,
    plain,
)
from texgen.render.environment import fill
from texgen.render.tex import tikz
from texgen.specs import LayoutSpec

if TYPE_CHECKING:
    from texgen.handout.questions import Question

Pieces = list[tuple[str, bool]]
_UNKNOWN = re.compile(r"\\txgU\{([0-9A-F]+)\}")


def document(handout: Handout, key: bool, templates: tuple[str, ...] = ()) -> str:
    """The sheet's document, or the key's."""
    catalogue, options = handout.catalogue, handout.options
    number = 0
    sections = []
    for section in handout.sections:
        sections.append(_section(section, handout, key, number, templates))
        number += len(section.questions)
    title = options.title if options.title is not None else catalogue.say("sheet.title")
    text = fill("handout.tex.j2", {
        "title": title, "key": key, "seed": options.seed, "paper": options.paper, "margin": MARGIN, "sections": sections,
        "fonts": list(catalogue.fonts), "babel": catalogue.babel, "words": _Words(handout), "unicode": handout.unicode,
        "version": _version(),
    }, templates)  # fmt: skip
    text = re.sub(r"\n{3,}", "\n\n", text)
    if not handout.unicode:
        return text
    head, begin, body = text.partition("\\begin{document}")
    return head + begin + _UNKNOWN.sub(lambda m: chr(int(m[1], 16)), body)


class _Words:
    """The catalogue's sentences for the template: ``words("sheet.key")``."""

    def __init__(self, handout: Handout) -> None:
        self._say = handout.catalogue.say

    def __call__(self, key: str, **values: Any) -> str:
        return self._say(key, **values)


def _version() -> str:
    from texgen import __version__

    return __version__


def _section(section: Section, handout: Handout, key: bool, number: int, templates: tuple[str, ...]) -> dict[str, Any]:
    catalogue = handout.catalogue
    drawn = ""
    if section.shown is not None:
        figure = localised(section.shown.figure, section.spec, catalogue)
        figure = replace(with_blanks(figure, section.marked, empty=not key), print_width=f"{section.shown.width:g}mm")
        drawn = tikz(figure, templates)
    blank = "coords" if isinstance(section.spec, LayoutSpec) and section.spec.coords else "offset"
    if section.view.maps:
        blank = "tv" if any(len(p.lines) > 1 for p in section.view.panels.values()) else "thread"
    return {
        "heading": heading(section, catalogue), "notes": [plain(n) for n in notes(section, catalogue)], "figure": drawn,
        "task": plain(catalogue.say(f"sheet.blank-{blank}")) if section.blanks else [],
        "blanks": [
            (b.letter, blank_answer(section, b, catalogue.say("sheet.colon"), catalogue.say("list.separator")), _a_line(len(owners(section, b))))
            for b in section.blanks
        ],
        "questions": [_question(q, handout, number + i + 1) for i, q in enumerate(section.questions)],
        "letters": [(b.cell[0], *position(section.view.panels[b.cell[0]], b.cell), b.letter) for b in section.blanks],
        "layouts": layouts(section), "marked": bool(section.marked),
    }  # fmt: skip


def _a_line(owners: int) -> int:
    """How many blanks share a line, so that each has room for its owners to be written."""
    return 3 if owners <= 2 else 2 if owners <= 4 else 1


def _question(question: Question, handout: Handout, number: int) -> dict[str, Any]:
    say = handout.catalogue.say
    return {
        "number": number, "level": say("sheet.level", level=say(f"level.{question.level}")), "lines": LINES[question.level],
        "ask": plain(say(f"question.{question.kind}.ask", **question.values)),
        "answer": plain(say(f"question.{question.kind}.answer", **question.values)),
        "steps": [plain(say(f"work.{name}", **values)) for name, values in question.steps],
    }  # fmt: skip
