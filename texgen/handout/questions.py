"""What a question is, and how a sheet's are chosen so that none answers another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from texgen.figures.model import Panel
from texgen.handout.dice import Dice
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, TVMap, TVSpec
from texgen.words import ADDRESSES, GETS, HOLDS, READS, role

LEVELS = ("easy", "medium", "hard")
DIFFICULTIES = (*LEVELS, "mixed")
MOST_OF_A_KIND = 2
"""How often one kind of question may stand on a sheet, about other cells each time."""

HELD = frozenset({HOLDS, READS, GETS})
ADDRESSED = frozenset({ADDRESSES})

Askable: TypeAlias = MmaSpec | CopySpec | TVSpec | LayoutSpec
"""The specs that there are questions about."""
Cell: TypeAlias = tuple[str, int, int]
"""(panel, row, column) in the operand's own indices."""
Step: TypeAlias = tuple[str, Mapping[str, Any]]
"""(key of the catalogue below ``work``, its placeholders)."""


@dataclass(frozen=True, eq=False)
class Question:
    """One question with its one right answer.

    ``subject`` says in numbers what is asked, ``answer`` is the right answer as plain integers and lists, ``values`` fill
    the catalogue's ``question.KIND.ask`` and ``.answer``, ``steps`` work the answer out. ``cells`` must be blank on the
    sheet; ``found`` says that they are themselves the answer, so that other blanks must stand beside them. ``asks`` and
    ``tells`` name facts: no question is put beside one that tells what it asks.
    """

    kind: str
    level: str
    subject: Mapping[str, Any]
    answer: Any
    values: Mapping[str, Any]
    steps: tuple[Step, ...]
    cells: frozenset[Cell] = frozenset()
    found: bool = False
    asks: frozenset[str] = frozenset()
    tells: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class View:
    """A spec and what of it the sheet shows: its panels by key."""

    spec: Askable
    panels: Mapping[str, Panel]
    dice: Dice
    maps: Mapping[str, TVMap] = field(default_factory=dict)
    """The operands that threads hold a part of, by letter."""

    def cells(self, key: str) -> list[tuple[int, int]]:
        """(row, column) of every cell that a panel shows, in the operand's own indices."""
        panel = self.panels.get(key)
        if panel is None:
            return []
        pairs = [(int(r), int(c)) for r in panel.rows for c in panel.columns]
        return [(c, r) for r, c in pairs] if panel.transposed else pairs

    def shows(self, key: str, row: int, column: int) -> bool:
        panel = self.panels.get(key)
        if panel is None:
            return False
        rows, columns = (panel.columns, panel.rows) if panel.transposed else (panel.rows, panel.columns)
        return row in rows and column in columns


@dataclass(frozen=True)
class Kind:
    """``make(view, operand)`` gives a question of this kind at random, None where the spec has none."""

    name: str
    level: str
    make: Callable[[View, str], Question | None]
    roles: frozenset[str] = HELD | ADDRESSED
    """What threads may do with the operand (``words.role``)."""
    once: bool = False
    """Whether an operand has but one question of this kind."""


def kinds(view: View) -> Sequence[Kind]:
    """The kinds of question that a spec can be asked."""
    from texgen.handout import ask_copy, ask_layout, ask_mma, ask_tv

    if isinstance(view.spec, LayoutSpec):
        return ask_layout.KINDS
    held = ask_tv.KINDS if view.maps else ()
    if isinstance(view.spec, MmaSpec):
        return (*held, *ask_mma.KINDS)
    return (*held, *ask_copy.KINDS) if isinstance(view.spec, CopySpec) else held


def choose(view: View, count: int, difficulty: str, kinds: Iterable[Kind], room: int) -> list[Question]:
    """Up to ``count`` questions, the easy first: every kind before one comes again, levels in turn where they are mixed.

    They leave at most ``room`` cells empty, decoys included.
    """
    levels = LEVELS if difficulty == "mixed" else (difficulty,)
    operands = list(view.maps) or [""]
    waiting = {level: view.dice.shuffled(k for k in kinds if k.level == level) for level in levels}
    used: dict[str, int] = {}
    chosen: list[Question] = []
    stale = 0
    while len(chosen) < count and stale < 2 * len(levels):
        level = min(levels, key=lambda x: (sum(q.level == x for q in chosen) + used.get(f"!{x}", 0), LEVELS.index(x)))
        question = _next(view, waiting[level], used, chosen, operands, room)
        if question is None:
            used[f"!{level}"] = used.get(f"!{level}", 0) + count  # this level has no more: the others go on
            stale += 1
        else:
            chosen.append(question)
    return sorted(chosen, key=lambda q: LEVELS.index(q.level))


def _next(
    view: View, kinds: Sequence[Kind], used: dict[str, int], chosen: list[Question], operands: list[str], room: int
) -> Question | None:
    """The next question of one level: the kind that was asked least."""
    for kind in sorted(kinds, key=lambda k: used.get(k.name, 0)):
        if used.get(kind.name, 0) >= MOST_OF_A_KIND:
            continue
        for operand in view.dice.shuffled(operands):
            if operand and role(view.spec, operand) not in kind.roles:
                continue
            if kind.once and any(q.kind == kind.name and q.subject.get("operand", "") == operand for q in chosen):
                continue
            question = kind.make(view, operand)
            if question is not None and fits(question, chosen) and empty_cells(view, [*chosen, question]) <= room:
                used[kind.name] = used.get(kind.name, 0) + 1
                return question
    return None


def decoy_counts(view: View, questions: Iterable[Question]) -> dict[str, int]:
    """How many cells of a panel stay empty beside those that are an answer: as many as these, and at least two."""
    found = Counter(c[0] for q in questions if q.found for c in q.cells if view.shows(*c))
    return {key: max(2, n) for key, n in found.items()}


def empty_cells(view: View, questions: Sequence[Question]) -> int:
    """How many cells questions leave empty, decoys included."""
    hidden = sum(view.shows(*c) for q in questions for c in q.cells)
    return hidden + sum(decoy_counts(view, questions).values())


def fits(question: Question, others: Iterable[Question]) -> bool:
    """Whether a question repeats none of the others, and none tells what another asks."""
    for other in others:
        if question.cells & other.cells or question.asks & other.tells or other.asks & question.tells:
            return False
        if question.kind == other.kind and question.subject == other.subject:
            return False
        if question.asks & other.asks:
            return False
    return True
