"""How a figure is to look: one frozen record, the same for the library, the command line and the directives."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from texgen.errors import UsageError
from texgen.layouts import IntArray
from texgen.specs import WARP

COLOR_BY = ("thread", "value", "warp", "quad", "matrix")
SLIDES = ("thread", "value", "warp", "k", "offset")
THEMES = ("light", "dark", "auto")
LENGTH = re.compile(
    r"(?:\d{1,4}(?:\.\d{1,4})?|\.\d{1,4})?(?:\s*(?:mm|cm|in|pt|bp)|\\(?:linewidth|textwidth|columnwidth))"
)
LABELS = ("auto", "full", "thread", "value", "warp", "quad", "none")
QUAD = 4
MOST_STEPS = 512
NONE = type(None)
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"), "str | None": ((str, NONE), "a text"), "bool": ((bool,), "True or False"),
    "bool | None": ((bool, NONE), "True or False"), "int": ((int,), "a whole number"),
}  # fmt: skip
"""What the options' annotations take, and how a message says it."""


@dataclass(frozen=True)
class FigureOptions:
    """Options of a figure; every default draws the whole thing.

    ``operand``: letters of the operands to draw (``"C"``, ``"AB"``; empty: all). ``highlight``: owners to keep in colour
    (``T5,T37``, ``V0``, ``T5V2``, ``T0-T3``, ``W1``). ``rows``, ``cols``: what to draw of the picture's rows and columns
    (``0:16``, ``8``). ``palette``: default, cute, grey, okabe-ito or white. ``title``: in place of the target's name, empty for
    none. ``color_by``: thread, value, warp, quad, or of a chain matrix (empty: by the size of the figure). ``label``: auto,
    full, thread, value, warp, quad or none. ``overview``: blocks of the whole tile and one of them in full.
    ``swizzle``: a swizzled layout as before beside after (None: whenever it has a swizzle). ``banks``: an access to a
    layout in shared memory (``column:0``, ``row:0@16``, ``ldmatrix``, ...: ``texgen.banks.access``), whose cells keep their
    colours, with the bank of every cell. ``caption``: the lines of
    facts below the panels. ``legend``: the row of colours. ``print_width``: what the TikZ figure is scaled to (``84mm``,
    ``.9\\linewidth``; an SVG takes absolute lengths). ``theme``: light, dark, or auto (what follows the reader's
    setting: SVG, HTML); empty: auto for a page of HTML, light for the rest. ``slides``: thread, value, warp, k (of an MMA)
    or offset (of a layout): the figure built up step by step, as beamer frames in TikZ, LaTeX and PDF and as an animation
    in SVG. ``steps``: how many at most (0: 64); more threads than steps share them.
    """

    operand: str = ""
    highlight: str = ""
    rows: str = ""
    cols: str = ""
    palette: str = "default"
    color_by: str = ""
    title: str | None = None
    label: str = "auto"
    overview: bool = False
    swizzle: bool | None = None
    banks: str = ""
    caption: bool = True
    legend: bool = True
    print_width: str = ""
    theme: str = ""
    slides: str = ""
    steps: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, (fits, words) = getattr(self, field.name), TYPES[str(field.type)]
            if type(value) not in fits and not (str in fits and isinstance(value, str)):  # True is an int to isinstance
                raise UsageError(f"The option {field.name} = {value!r} must be {words}.")
        if self.color_by and self.color_by not in COLOR_BY:
            raise UsageError(f"--color-by {self.color_by!r} must be one of {', '.join(COLOR_BY)}.")
        if self.theme and self.theme not in THEMES:
            raise UsageError(f"--theme {self.theme!r} must be one of {', '.join(THEMES)}.")
        if self.print_width and not LENGTH.fullmatch(self.print_width):
            raise UsageError(f"--width {self.print_width!r} is no length: write 84mm, 3.3in, or .9\\linewidth.")
        if self.slides and self.slides not in SLIDES:
            raise UsageError(f"--slides {self.slides!r} must be one of {', '.join(SLIDES)}.")
        if not 0 <= self.steps <= MOST_STEPS or self.steps == 1:
            raise UsageError(f"--steps {self.steps} must be from 2 to {MOST_STEPS}, or 0 for texgen's choice.")
        if self.label not in LABELS:
            raise UsageError(f"--label {self.label!r} must be one of {', '.join(LABELS)}.")

    @classmethod
    def of(cls, **options: Any) -> FigureOptions:
        """From keywords; raises UsageError naming an option that does not exist."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise UsageError(f"A figure has no option {unknown[0]!r}: it has {', '.join(sorted(known))}.")
        return cls(**{k: v for k, v in options.items() if v is not None})


def crop(text: str, length: int, axis: str) -> IntArray:
    """The indices that ``--rows`` or ``--cols`` name (``a:b`` with b left out, ``a``, and lists of them by comma).

    Raises UsageError for anything else, and where nothing is left.
    """
    if not text:
        return np.arange(length)
    picked: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d{0,9})(?:(:)(\d{0,9}))?", part)
        if not match or (part in ("", ":") and part != ":"):
            raise UsageError(f"--{axis} {text!r} is no range: write 0:16 for the first sixteen, or 8, or 0:4,8:12.")
        start, colon, stop = match.groups()
        first = int(start or 0)
        last = int(stop) if stop else (length if colon else first + 1)
        picked += range(first, min(last, length))
    if not picked:
        raise UsageError(f"--{axis} {text!r} leaves nothing to draw: the picture has {axis} 0 to {length - 1}.")
    return np.asarray(sorted(set(picked)), dtype=np.int64)


@dataclass(frozen=True)
class Highlight:
    """Which (thread, value) pairs stay in colour: threads, warps or quads (``T``, ``W``, ``Q``), and values."""

    picks: tuple[tuple[str, range | None, range | None], ...]

    def matches(self, thread: IntArray, value: IntArray, warp: int = WARP) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """A mask over arrays of threads and values; a warp has ``warp`` threads."""
        mask = np.zeros(thread.shape, dtype=bool)
        for unit, members, values in self.picks:
            hit = thread >= 0
            if members is not None:
                size = {"W": warp, "Q": QUAD}.get(unit, 1)
                hit &= (thread >= members.start * size) & (thread < members.stop * size)
            if values is not None:
                hit &= (value >= values.start) & (value < values.stop)
            mask |= hit
        return mask


def parse_highlight(text: str) -> Highlight | None:
    """``T5,T37``, ``V0``, ``T5V2``, ``T0-3``, ``T0-T3V1``, ``W1`` (a warp), ``Q3`` (a quad). Raises UsageError."""
    if not text.strip():
        return None
    picks: list[tuple[str, range | None, range | None]] = []
    for part in re.split(r"[,;\s]+", text.strip()):
        match = re.fullmatch(
            r"(?:([TWQ])(\d{1,7})(?:-\1?(\d{1,7}))?)?\.?(?:V(\d{1,7})(?:-V?(\d{1,7}))?)?", part, re.IGNORECASE
        )
        if not match or not part:
            raise UsageError(
                f"--highlight {part!r} is not understood: write T5 (a thread), V0 (a value), T5V2, T0-T3 or W1 (a warp)."
            )
        unit, t0, t1, v0, v1 = match.groups()
        members = range(int(t0), int(t1 or t0) + 1) if t0 else None
        values = range(int(v0), int(v1 or v0) + 1) if v0 else None
        picks.append(((unit or "T").upper(), members, values))
    return Highlight(tuple(picks))
