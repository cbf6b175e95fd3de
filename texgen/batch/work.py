"""The work of a batch: items in, the bytes of their files out. Runs in a worker, which writes no file of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from shutil import which
from typing import TYPE_CHECKING, Any

from texgen.batch.listing import Item
from texgen.errors import TexgenError

if TYPE_CHECKING:
    from texgen.api import Drawing


@dataclass(frozen=True)
class Job:
    """Items that one worker does in one go. ``base``: the folder that targets' files are named from; ``limit``: seconds an
    item; ``share``: whether small TeX figures are compiled together; ``digest``: of the texgen that sends it, empty for
    workers that run the same files."""

    items: tuple[Item, ...]
    base: str
    templates: tuple[str, ...]
    limit: float
    share: bool
    digest: str


@dataclass
class Outcome:
    """What became of an item: the bytes of its files by name, or why there are none, and what was remarked on the way."""

    item: Item
    files: dict[str, bytes] = field(default_factory=dict)
    error: str = ""
    detail: str = ""
    remarks: list[str] = field(default_factory=list)
    source: str = ""
    """The TeX that an engine refused."""


class OtherVersion(TexgenError):
    """A worker has another texgen than the batch: nothing it draws can be trusted to be the same."""


class _TooLong(BaseException):
    """An item's time is over; no TexgenError, which code on the way may handle."""


_one_at_a_time = threading.Lock()
"""Working folder, standard error and warnings are the process's: the threads of a dask worker take turns."""


def work(job: Job) -> list[Outcome]:
    """Do the items of a job. Never raises for a fault of an item: that is in its outcome. Raises OtherVersion."""
    from texgen.keys import digest

    outcomes = [Outcome(item) for item in job.items]
    with _one_at_a_time, _in_folder(job.base):
        if job.digest and digest(()) != job.digest:
            raise OtherVersion("A worker has another texgen than this one: install the same on both.")
        drawn = [_attempt(o, job.limit, lambda o=o: _drawings(o.item, job.templates)) or {} for o in outcomes]  # type: ignore[misc]
        if job.share:
            _share(outcomes, drawn, job.limit)
        for outcome, drawings in zip(outcomes, drawn, strict=True):
            if not outcome.error:
                _attempt(outcome, job.limit, lambda o=outcome, d=drawings: _fill(o, d))  # type: ignore[misc]
            drawings.clear()
    return outcomes


def _drawings(item: Item, templates: tuple[str, ...]) -> dict[str, Drawing]:
    """The drawing of every file of an item; a target of several gives ``figure-A.svg``, ``figure-B.svg``, …"""
    from texgen.api import Drawings, drawings
    from texgen.batch.subjects import hazards
    from texgen.batch.subjects import specs as specs_of
    from texgen.specs import flat

    specs = specs_of(item.kind, item.target, dict(item.parts), item.look.operand, dict(item.reading))
    for warning in dict.fromkeys(w for _, spec in flat(specs) for w in (*spec.warnings, *hazards(spec))):
        warnings.warn(warning, stacklevel=1)
    made = drawings(specs, item.look, templates)
    out: dict[str, Drawing] = {}
    for name in item.outputs:
        out |= {p.as_posix(): d for p, d in made.paths(Path(name)).items()} if isinstance(made, Drawings) else {name: made}
    return out


def _share(outcomes: list[Outcome], drawn: list[dict[str, Drawing]], limit: float) -> None:
    """Give the drawings that TeX is to print their PDFs, as many as one run can make together."""
    from texgen.batch.pages import shared
    from texgen.render import engine as tex

    by_engine: dict[str, dict[int, tuple[Outcome, Drawing]]] = {}
    for outcome, drawings in zip(outcomes, drawn, strict=True):
        with contextlib.suppress(TexgenError):  # an engine that is missing: the item says so itself
            chosen = tex.choose(outcome.item.engine)
            for name, drawing in drawings.items() if chosen else ():
                suffix = PurePosixPath(name).suffix.lower()
                if suffix == ".pdf" or (suffix == ".png" and which("pdftocairo")):
                    by_engine.setdefault(str(chosen), {})[id(drawing)] = outcome, drawing
    for engine, wanted in by_engine.items():
        sources = {}
        for key, (outcome, drawing) in wanted.items():
            if source := _attempt(outcome, limit, drawing.tex):
                sources[key] = source
        for key, pdf in shared(sources, engine).items():
            wanted[key][1].printed = pdf


def _fill(outcome: Outcome, drawings: dict[str, Drawing]) -> None:
    from texgen.render.engine import TexFailure

    item = outcome.item
    for name, drawing in drawings.items():
        try:
            outcome.files[name] = drawing.data(PurePosixPath(name).suffix, item.engine, item.scale)
        except TexFailure:
            outcome.source = drawing.tex()
            raise


def _attempt(outcome: Outcome, limit: float, action: Any) -> Any:
    """``action()``; what it raises, warns and says on standard error goes into the outcome."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), warnings.catch_warnings(record=True) as caught, _alarm(limit):
            warnings.simplefilter("always")
            return action()
    except TexgenError as error:
        outcome.error, outcome.detail = error.message, error.detail
    except _TooLong:
        outcome.error = f"It took more than {limit:g} s and was stopped."
    except MemoryError:
        outcome.error = "There is not enough memory for this target: draw a part of it with rows and cols."
    except Exception as error:
        outcome.error = f"texgen itself failed ({type(error).__name__}: {error}): please report it."
    finally:
        outcome.remarks += [x.removeprefix("texgen: ") for x in said.getvalue().splitlines() if x.strip()]
        outcome.remarks += [str(w.message) for w in caught]
        if outcome.error:
            outcome.files.clear()
    return None


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooLong after so many seconds, where the system and the thread allow an alarm."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _in_folder(folder: str) -> Iterator[None]:
    before = os.getcwd()
    if os.path.isdir(folder):  # a dask worker may be on a machine that lacks it
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
