"""Targets → sheet and key: figures with blanks, questions with answers, as LaTeX and PDF."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from texgen.errors import TexgenError, UsageError
from texgen.figures import Figure
from texgen.figures.caption import AXES, plural
from texgen.handout import figure as pictures
from texgen.handout.ask_tv import element, words
from texgen.handout.catalogue import Catalogue, is_font_name, load
from texgen.handout.dice import Dice
from texgen.handout.figure import Blank, Shown
from texgen.handout.questions import DIFFICULTIES, LEVELS, Askable, Cell, Question, View, choose, kinds
from texgen.layouts import Swizzle
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, Owner, Spec, TVSpec
from texgen.words import ADDRESSES, role

NAMED_STRINGS = 8
"""How many strings that a translation lacks are named."""
LINES = {"easy": 1, "medium": 2, "hard": 3}
"""Lines left for an answer."""
BANK_KINDS = ("bank", "wavefronts", "banks-hit", "saved")


@dataclass(frozen=True)
class SheetOptions:
    """What a handout is to be; ``seed`` and the targets settle all else.

    ``questions`` and ``blanks``: how many for each target. ``difficulty``: easy, medium, hard or mixed. ``lang`` or
    ``strings``: the catalogue. ``operand``: the operands to draw. ``title``: the sheet's title in place of the catalogue's.
    ``font``: the font for characters that TeX's own lack.
    """

    seed: int = 0
    questions: int = 8
    blanks: int = 6
    difficulty: str = "mixed"
    lang: str = "en"
    strings: Path | None = None
    paper: str = "a4"
    title: str | None = None
    operand: str = ""
    font: str = ""

    def __post_init__(self) -> None:
        if self.difficulty not in DIFFICULTIES:
            raise UsageError(f"--difficulty {self.difficulty!r} must be one of {', '.join(DIFFICULTIES)}.")
        if self.paper not in pictures.PAPERS:
            raise UsageError(f"--paper {self.paper!r} must be one of {', '.join(pictures.PAPERS)}.")
        if self.font and not is_font_name(self.font):
            raise UsageError(f"--font {self.font!r} is no name of a font: write it as fc-list does, Noto Serif CJK SC.")


@dataclass(frozen=True, eq=False)
class Section:
    """One target on the sheet: its figure whole, its blanks, its questions, the cells left empty without a letter."""

    name: str
    spec: Askable
    shown: Shown | None
    view: View
    questions: tuple[Question, ...]
    blanks: tuple[Blank, ...]
    empty: frozenset[Cell]

    @property
    def marked(self) -> dict[Cell, str]:
        """Every cell that is blank on the sheet, with its letter or an empty string."""
        return {c: "" for c in self.empty} | {b.cell: b.letter for b in self.blanks}


@dataclass(frozen=True, eq=False)
class Handout:
    """A sheet and its key."""

    sections: tuple[Section, ...]
    options: SheetOptions
    catalogue: Catalogue
    warnings: tuple[str, ...] = field(default=())

    def tex(self, key: bool = False, templates: Sequence[str] = ()) -> str:
        """The LaTeX document of the sheet, or of the key."""
        from texgen.handout.paper import document

        return document(self, key, tuple(templates))

    @property
    def unicode(self) -> bool:
        """Whether the catalogue's language takes lualatex or xelatex."""
        return bool(self.catalogue.fonts)


def handout(specs: Sequence[tuple[str, Spec]], options: SheetOptions | None = None) -> Handout:
    """Questions, blanks and figures of named specs; the same options give the same handout.

    Raises UsageError for options that do not fit, TexgenError for a catalogue that cannot be read and for a target that
    there is nothing to ask of.
    """
    options = options or SheetOptions()
    catalogue = load(options.lang, options.strings)
    warnings = []
    if catalogue.untranslated:
        count = len(catalogue.untranslated)
        more = f" and {count - NAMED_STRINGS} more" if count > NAMED_STRINGS else ""
        warnings.append(f"{catalogue.where} lacks {count} strings, which stand in English: {', '.join(catalogue.untranslated[:NAMED_STRINGS])}{more}.")
    if options.font:
        catalogue = replace(catalogue, fonts=(options.font,))
    warnings += dict.fromkeys(w for _, spec in specs for w in spec.warnings)
    sections = []
    for index, (name, spec) in enumerate(specs):
        if not isinstance(spec, Askable):
            raise TexgenError(f"A handout asks about MMAs, copies, thread-value layouts and layouts, not about a {spec.kind}{f', which {name} is' if name else ''}: texgen render draws it.")
        section = _section(name, spec, options, catalogue, Dice(f"{options.seed}/{index}"))
        sections.append(section)
        no_more = "there are no more" if options.difficulty == "mixed" else "there are no more of this difficulty"
        no_room = "no more of its cells can be blank" if section.shown else "no thread holds a part of it, so there is no figure to fill in"
        for what, asked, got, why in (
            ("question", options.questions, len(section.questions), no_more), ("blank", options.blanks, len(section.blanks), no_room),
        ):  # fmt: skip
            if got < asked:
                warnings.append(f"{heading(section, catalogue)} has {plural(got, what)}, not the {asked} that were asked for: {why}.")
    return Handout(tuple(sections), options, catalogue, tuple(warnings))


def _section(name: str, spec: Askable, options: SheetOptions, catalogue: Catalogue, dice: Dice) -> Section:
    shown = pictures.show(spec, options.paper, dice, options.operand)
    panels = pictures.panels_of(shown.figure) if shown else {}
    view = View(spec, panels, dice, pictures.operands(spec))
    room = pictures.room(view)
    questions = tuple(choose(view, options.questions, options.difficulty, kinds(view), room - min(options.blanks, room // 2)))
    if options.questions and not questions:
        what = heading(Section(name, spec, shown, view, (), (), frozenset()), catalogue)
        if options.difficulty == "mixed":
            raise TexgenError(f"There is nothing to ask of {what}: take a larger target.")
        raise TexgenError(f"There is no {options.difficulty} question to ask of {what}: take another --difficulty or target.")
    hidden = frozenset(c for q in questions for c in q.cells if view.shows(*c))
    empty = hidden | pictures.decoys(view, questions)
    blanks = tuple(pictures.choose_blanks(view, options.blanks, empty))
    return Section(name, spec, shown, view, questions, blanks, empty)


def heading(section: Section, catalogue: Catalogue) -> str:
    """The target's name and tile; of a layout of offsets its text, which is what is asked about."""
    spec = section.spec
    if isinstance(spec, LayoutSpec):
        return spec.name or spec.layout or section.name
    if isinstance(spec, MmaSpec):
        return f"{spec.name or section.name}  {'×'.join(map(str, spec.tile_mnk))}".strip()
    tile: tuple[int, int] = spec.map.tile if isinstance(spec, TVSpec) else spec.tile
    return f"{spec.name or catalogue.say('panel.TV')}  {tile[0]}×{tile[1]}"


def owners(section: Section, blank: Blank) -> list[Owner]:
    """The owners of a blank; none of an offset."""
    key, row, column = blank.cell
    operand = section.view.maps.get(key)
    return operand.owners(row, column) if operand is not None else []


def blank_answer(section: Section, blank: Blank, colon: str = ": ", comma: str = ", ") -> str:
    """``C(3,5): T13 V1``, with every owner; of an offset the coordinate and the offset."""
    key, row, column = blank.cell
    if key not in section.view.maps:
        return f"({row},{column}){colon}{blank.label[0]}"
    own = owners(section, blank)
    if len(blank.label) == 1:
        return f"{element(key, row, column)}{colon}{comma.join(f'T{o.thread}' for o in own)}"
    return f"{element(key, row, column)}{colon}{comma.join(f'T{o.thread} V{o.value}' for o in own)}"


def localised(figure: Figure, spec: Askable, catalogue: Catalogue) -> Figure:
    """The figure with its panels' titles from the catalogue."""
    panels = []
    for p in figure.panels:
        key = "coords" if isinstance(spec, LayoutSpec) and spec.coords else p.key
        detail = spec.operands()[p.key].dtype if isinstance(spec, MmaSpec | CopySpec) else ""
        panels.append(replace(p, title=f"{catalogue.say(f'panel.{key}')} {detail}".strip()))
    return replace(figure, panels=tuple(panels))


def notes(section: Section, catalogue: Catalogue) -> list[str]:
    """What a reader must know: what a label means, what part is shown, how wide an element is."""
    spec, view = section.spec, section.view
    out = []
    if isinstance(spec, LayoutSpec):
        out.append(catalogue.say("sheet.label-coords" if spec.coords else "sheet.label-layout"))
        if len(spec.shape) == 1:
            out.append(catalogue.say("sheet.label-row"))
        if spec.bits:
            out.append(catalogue.say("sheet.element-bits", bits=spec.bits, n=spec.bits))
        if any(q.kind in ("swizzle", "unswizzle", "saved", "stay") for q in section.questions):
            out += _swizzle_notes(spec, catalogue)
        if any(q.kind in BANK_KINDS for q in section.questions):
            out.append(catalogue.say("sheet.banks"))
            if spec.plain is not None:
                out.append(catalogue.say("sheet.banks-after"))
    elif view.panels:
        out.append(catalogue.say("sheet.threads", n=max(m.threads for m in view.maps.values())))
        out += _label_notes(section, catalogue)
        if any(p.shared is not None for p in view.panels.values()):
            out.append(catalogue.say("sheet.label-shared"))
        if any(line[r][c] == pictures.NOBODY for p in view.panels.values() for line in p.lines[:1] for r, c in np.ndindex(p.fill.shape)):
            out.append(catalogue.say("sheet.label-hole"))
        out += _drawn_note(section, catalogue)
    ranges = list(dict.fromkeys(r for p in view.panels.values() if (r := _range(p, section))))
    if ranges:
        out.append(catalogue.say("sheet.part", ranges=ranges))
    return out


def _swizzle_notes(spec: LayoutSpec, catalogue: Catalogue) -> list[str]:
    """The swizzle on elements, as the offsets are; where it stands in the layout on bytes, that too."""
    from texgen.sources.smem import element_swizzle

    s: Swizzle | None = element_swizzle(spec)
    assert s is not None
    high, low = (s.base + s.shift, s.base) if s.shift >= 0 else (s.base, s.base - s.shift)
    given = str(Swizzle(*spec.swizzle)) if spec.swizzle else str(s)
    out = [catalogue.say("sheet.swizzle-bytes", given=given)] if given != str(s) else []
    return [*out, catalogue.say("sheet.swizzle", swizzle=str(s), bits=s.bits, n=s.bits, high=high, low=low)]


def _label_notes(section: Section, catalogue: Catalogue) -> list[str]:
    """How to read a label, by a cell that is not blank: once, or for each side of a copy, whose threads act otherwise."""
    found: dict[str, str] = {}
    for key, panel in section.view.panels.items():
        operand, does = section.view.maps[key], role(section.spec, key)
        for row, column in section.view.cells(key):
            own = operand.owners(row, column)
            if (key, row, column) not in section.marked and own and does not in found:
                form = "address" if does == ADDRESSES else "tv" if len(panel.lines) > 1 else "thread"
                label = catalogue.say(f"sheet.label-{form}", thread=own[0].thread, value=own[0].value, **words(section.view, key))
                found[does] = label if isinstance(section.spec, MmaSpec | TVSpec) else catalogue.say("sheet.label-side", operand=key, label=label)
    return list(found.values())


def _drawn_note(section: Section, catalogue: Catalogue) -> list[str]:
    """Which operands are not drawn, where a question is about one."""
    shown, spec = section.view.panels, section.spec
    if isinstance(spec, LayoutSpec | TVSpec):
        return []
    others = [x for x in spec.operands() if x not in shown]
    asked = any(q.subject.get("operand") in others or q.kind == "meet-layouts" for q in section.questions)
    return [catalogue.say("sheet.drawn", drawn=_both(list(shown), catalogue), others=_both(others, catalogue))] if asked else []


def _both(letters: Sequence[str], catalogue: Catalogue) -> str:
    """``A and C``, or the one there is."""
    return letters[0] if len(letters) == 1 else catalogue.say("list.pair", first=letters[0], second=letters[1])


def _range(panel: Any, section: Section) -> str:
    """``C: m 0–15, n 0–7`` of a panel that is cropped, else nothing."""
    spec = section.spec
    tile = spec.offsets.shape if isinstance(spec, LayoutSpec) else section.view.maps[panel.key].tile
    if panel.fill.size == tile[0] * tile[1]:
        return ""
    down, across = ("i", "j") if isinstance(spec, LayoutSpec) else AXES[panel.key]
    rows, columns = (panel.columns, panel.rows) if panel.transposed else (panel.rows, panel.columns)
    lead = "" if isinstance(spec, LayoutSpec | TVSpec) else f"{panel.key} "
    return f"{lead}{down} {_to(int(rows[-1]))}, {across} {_to(int(columns[-1]))}"


def _to(last: int) -> str:
    return f"0–{last}" if last else "0"


def layouts(section: Section) -> list[str]:
    """The layout strings of the operands, for the key."""
    spec = section.spec
    if isinstance(spec, LayoutSpec):
        return []
    return [f"{'' if k == 'TV' else k + ' '}{m.layout}" for k, m in spec.operands().items() if m.layout]


def plain(text: str) -> list[tuple[str, bool]]:
    """A catalogue's text in pieces, (text, whether in a typewriter face)."""
    return [(piece, bool(i % 2)) for i, piece in enumerate(re.split(r"`([^`]*)`", text)) if piece]


__all__ = ["LEVELS", "Handout", "Section", "SheetOptions", "handout"]
