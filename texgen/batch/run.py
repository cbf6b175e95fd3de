"""A batch from its list to its files: what is done is skipped, what fails is collected, what is written is whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from texgen.batch.listing import Item
from texgen.batch.pool import Pool
from texgen.batch.stamps import Stamps
from texgen.batch.work import Job, OtherVersion, Outcome
from texgen.errors import TexgenError
from texgen.keys import digest
from texgen.render.files import Unwritable

CHUNK = 16
"""Items of a job: so many TeX figures share one start of the engine, and sending costs nothing to speak of."""
PATIENCE = 60.0
"""Seconds beyond its items' limits after which a job's worker is taken for stuck."""


@dataclass
class Summary:
    """What a batch did."""

    total: int = 0
    drawn: int = 0
    current: int = 0
    failed: list[Outcome] = field(default_factory=list)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """Remarks with the names of the items that they were made of."""

    @property
    def done(self) -> int:
        """Items that need nothing more."""
        return self.drawn + self.current


def run(
    items: Sequence[Item], stamps: Stamps, pool: Pool, *, templates: tuple[str, ...] = (), limit: float = 600.0,
    share: bool = True, summary: Summary | None = None, progress: Callable[[Summary], None] = lambda _: None,
) -> Summary:  # fmt: skip
    """Draw the items that are not current, and write their files and stamps as they come.

    ``summary`` is filled on the way, so that it is right when Ctrl-C or an error ends the call. Raises TexgenError where
    the workers cannot be reached or nothing can be written.
    """
    made = summary if summary is not None else Summary()
    made.total = len(items)
    keys: dict[int, str] = {}
    todo: list[Item] = []
    for item in items:
        keys[item.number] = stamps.key(item)
        if stamps.current(item, keys[item.number]):
            made.current += 1
        else:
            todo.append(item)
    progress(made)
    if todo:
        stamps.prepare()
    written: dict[str, Item] = {}
    own = digest(()) if pool.remote else ""
    jobs = [Job(part, str(stamps.base), templates, limit, share, own) for part in _chunks(todo, pool, CHUNK if share else 1)]
    with closing(_outcomes(jobs, pool)) as outcomes:  # Ctrl-C ends the workers at once
        for outcome in outcomes:
            _keep(outcome, stamps, keys[outcome.item.number], made, written)
            progress(made)
    made.failed.sort(key=lambda o: o.item.number)
    return made


def _chunks(items: Sequence[Item], pool: Pool, most: int) -> Iterator[tuple[Item, ...]]:
    """Parts of at most ``most`` items, smaller where that gives every worker its share."""
    size = max(1, min(most, -(-len(items) // pool.window())))
    for i in range(0, len(items), size):
        yield tuple(items[i : i + size])


def _keep(outcome: Outcome, stamps: Stamps, key: str, made: Summary, written: dict[str, Item]) -> None:
    """Write what an item gave, or note why it gave nothing."""
    item = outcome.item
    for remark in dict.fromkeys(outcome.remarks):
        made.remarks.setdefault(remark, []).append(item.name)
    twice = next((n for n in outcome.files if written.setdefault(n.casefold(), item) is not item), "")
    if twice:
        outcome.error = f"It gives several figures, and {twice} is written by {written[twice.casefold()].name} too: rename one."
    if not outcome.error:
        try:
            stamps.save(item, key, outcome.files)
            made.drawn += 1
        except (Unwritable, OSError) as error:
            outcome.error = error.message if isinstance(error, Unwritable) else f"It cannot be written ({error.strerror})."
    if outcome.error:
        if outcome.source:
            name = str(PurePosixPath(item.name).with_suffix(".failed.tex"))
            with suppress(Unwritable):
                stamps.write(name, outcome.source)
                outcome.error = f"{outcome.error.rstrip('.')}; its source is kept in {name}."
        outcome.files, outcome.source = {}, ""
        made.failed.append(outcome)


def _outcomes(jobs: Sequence[Job], pool: Pool) -> Generator[Outcome, None, None]:
    """The outcome of every item. The items of a job whose worker died are tried again, each alone, twice at most: the first
    death may have been a neighbour's, or the system's in a bad moment."""
    todo, suspects = deque(jobs), deque[Job]()
    died: set[int] = set()
    while todo or suspects:
        alone = not todo
        queue = suspects if alone else todo
        with pool.open(alone) as executor:
            for job, outcomes in _drain(executor, queue, pool, alone):
                if outcomes is not None:
                    yield from outcomes
                elif alone and job.items[0].number in died:
                    yield Outcome(job.items[0], error="It ended its worker process twice when tried alone (out of memory?).")
                elif alone:
                    died.add(job.items[0].number)
                    suspects.append(job)
                else:
                    suspects += [Job((item,), job.base, job.templates, job.limit, job.share, job.digest) for item in job.items]


def _drain(executor: Any, queue: deque[Job], pool: Pool, alone: bool) -> Iterator[tuple[Job, list[Outcome] | None]]:
    """(job, its outcomes) as they come, None for those of a job whose worker died; ends when the pool is to be opened anew.

    Only a window of jobs is on its way, so that neither the jobs nor their results fill the memory.
    """
    pending: dict[Future[Any], Job] = {}
    sent, broken = 0, False
    while pending or (queue and not broken and not (pool.generation and sent >= pool.generation)):
        while queue and not broken and len(pending) < (1 if alone else pool.window()) and not (pool.generation and sent >= pool.generation):
            try:
                pending[pool.send(executor, queue[0])] = queue[0]
            except BrokenExecutor:
                broken = True
                break
            queue.popleft()
            sent += 1
        slowest = max((len(j.items) * j.limit for j in pending.values()), default=0.0)
        done, _ = wait(pending, timeout=2 * slowest + PATIENCE, return_when=FIRST_COMPLETED)
        if not done and pending:
            pool.kill()
        for future in done:
            job = pending.pop(future)
            try:
                outcomes = pool.take(future.result())
            except OtherVersion:
                raise
            except CancelledError:
                raise TexgenError("The workers are gone: what is drawn is whole, run the same command to go on.") from None
            except Exception as error:
                if not pool.death(error):
                    raise TexgenError(f"A worker cannot do its work ({type(error).__name__}: {error}): is the same texgen installed there?") from error
                broken = broken or isinstance(error, BrokenExecutor)
                yield job, None
            else:
                yield job, outcomes
