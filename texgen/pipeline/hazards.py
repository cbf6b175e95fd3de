"""What is wrong with a pipeline's program: which accesses to a stage are not ordered, found without running anything.

The model is that of the PTX ISA (cp.async, "Asynchronous copy completion mechanisms"; bar.sync):

- Every warp runs the same program; between two barriers each may be anywhere (a *phase* is what lies between barriers).
- A warp's copy writes its part of a stage at any time between its issue and the ``wait_group`` of its own that covers its
  group; a group is covered when at most ``n`` newer ones are left. Other warps may count on it after a barrier that
  follows that wait.
- A read takes all parts of a stage, those of the other warps too.

Two accesses are ordered for every pair of warps exactly if one is over in an earlier phase than the other begins in; a
warp's own are ordered by its program as well. What is not ordered is a hazard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from texgen.pipeline.program import Event

KINDS = {
    "raw": "read too early (RAW)",
    "war": "overwritten while read (WAR)",
    "waw": "two copies into one stage at once (WAW)",
    "tile": "wrong k tile read",
    "drain": "copies not drained",
    "fragment": "wrong registers multiplied",
    "sum": "wrong sum over k",
}


@dataclass(frozen=True)
class Hazard:
    """One fault: its kind, the event where it shows, and that it clashes with (-1: none); ``weak``: the wait that is too weak."""

    kind: str
    event: int
    stage: int
    tile: int
    text: str
    other: int = -1
    weak: int = -1


@dataclass(frozen=True)
class Copy:
    """A copy's life: issued by one event, waited for by another (None: never). ``tile`` -1 is a reuse by ordinary stores."""

    at: int
    stage: int
    tile: int
    done: int | None


@dataclass
class Course:
    """A program, and what follows from its order alone."""

    program: tuple[Event, ...]
    phases: list[int] = field(default_factory=list)
    """Barriers before each event."""
    copies: list[Copy] = field(default_factory=list)
    groups: dict[int, int] = field(default_factory=dict)
    """The number of the group that a ``commit`` closes."""
    commits: dict[int, int] = field(default_factory=dict)
    """The ``commit`` that closes a copy's group."""

    def __post_init__(self) -> None:
        phase = count = 0
        open_copies: list[int] = []
        pending: list[tuple[int, list[int]]] = []  # (group, copies), oldest first
        done: dict[int, int] = {}
        for i, event in enumerate(self.program):
            self.phases.append(phase)
            if event.op == "barrier":
                phase += 1
            elif event.op == "copy":
                open_copies.append(i)
            elif event.op == "commit":
                pending.append((count, open_copies))
                self.commits.update(dict.fromkeys(open_copies, i))
                self.groups[i] = count
                open_copies = []
                count += 1
            elif event.op == "wait":
                while pending and pending[0][0] < count - event.n:
                    done.update(dict.fromkeys(pending.pop(0)[1], i))
        self.copies = [Copy(i, e.stage, e.tile, done.get(i)) for i, e in enumerate(self.program) if e.op == "copy"]

    def seen_by_all(self, copy: Copy, event: int) -> bool:
        """The copy is over for every warp before any comes to the event."""
        return copy.done is not None and self.phases[copy.done] < self.phases[event]

    def last(self, op: str, before: int) -> int:
        """The last event of a kind before another, -1 where there is none."""
        return next((i for i in range(before - 1, -1, -1) if self.program[i].op == op), -1)

    def weak_wait(self, copy: Copy, read: int) -> int:
        """The wait that could have covered the copy before the read and leaves too many groups; -1: none stands there."""
        if copy.at > read or (copy.done is not None and copy.done < read):
            return -1
        wait = self.last("wait", read)
        return wait if wait > self.commits.get(copy.at, len(self.program)) else -1


def hazards(program: Sequence[Event], step: Callable[[int], int], k_tiles: int) -> tuple[Hazard, ...]:
    """Every hazard of a program, by event. ``step`` gives an event's step, for the sentences."""
    course = Course(tuple(program))
    say = _Words(course, step, k_tiles)
    found = [*_reads(course, say), *_overlapping(course, say), *_drain(course, say), *_registers(course, say), *_sum(course, say)]
    return tuple(sorted(found, key=lambda h: (h.event, list(KINDS).index(h.kind), h.stage, h.other)))


def by_kind(found: Sequence[Hazard]) -> Iterator[str]:
    """A line for each kind of hazard: its first sentence, and how many more there are."""
    for kind, name in KINDS.items():
        if own := [h for h in found if h.kind == kind]:
            yield f"{name}: {own[0].text}" + (f" And {len(own) - 1} more." if len(own) > 1 else "")


def _reads(course: Course, say: _Words) -> Iterator[Hazard]:
    """RAW, WAR and wrong k tiles: each read against what is written into its stage."""
    by_stage: dict[int, list[Copy]] = defaultdict(list)
    reuses = [i for i, e in enumerate(course.program) if e.op == "reuse"]
    for copy in course.copies:
        by_stage[copy.stage].append(copy)
    copied: dict[tuple[int, int], int] = {}
    for copy in reversed(course.copies):
        copied[copy.stage, copy.tile] = copy.at
    for i, event in enumerate(course.program):
        if event.op != "read":
            continue
        written = by_stage[event.stage] + [Copy(x, event.stage, -1, x) for x in reuses]
        mine = copied.get((event.stage, event.tile), i)
        clashes = [
            c for c in written
            if not course.seen_by_all(c, i) and course.phases[c.at] <= course.phases[i]
        ]  # fmt: skip
        if clashes:
            latest: dict[str, Copy] = {}
            for copy in sorted(clashes, key=lambda c: c.at):
                latest[say.kind(i, copy, mine < i)] = copy
            for kind, copy in latest.items():
                text = say.clash(i, copy, mine)
                yield Hazard(kind, max(i, copy.at) if kind == "war" else i, event.stage, event.tile, text,
                             min(i, copy.at) if kind == "war" else copy.at, course.weak_wait(copy, i) if kind == "raw" else -1)  # fmt: skip
            continue
        before = [c for c in written if course.seen_by_all(c, i)]
        held = max(before, key=lambda c: c.at, default=None)
        if held is None or held.tile != event.tile:
            yield Hazard("tile", i, event.stage, event.tile, say.holds(i, held), held.at if held else -1)


def _overlapping(course: Course, say: _Words) -> Iterator[Hazard]:
    """WAW: the order in which two copies of one warp land is open until the first has been waited for."""
    by_stage: dict[int, list[Copy]] = defaultdict(list)
    for copy in course.copies:
        earlier = [c for c in by_stage[copy.stage] if c.done is None or c.done > copy.at]
        if earlier:
            yield Hazard("waw", copy.at, copy.stage, copy.tile, say.both(copy, earlier[-1]), earlier[-1].at)
        by_stage[copy.stage].append(copy)


def _drain(course: Course, say: _Words) -> Iterator[Hazard]:
    """Copies that may land in memory that has been given another use, or after the end."""
    told = set()
    for i, event in enumerate(course.program):
        if event.op != "reuse":
            continue
        for copy in course.copies:
            other_warp_ahead = copy.at > i and course.phases[copy.at] == course.phases[i]
            if (copy.at < i and not course.seen_by_all(copy, i)) or other_warp_ahead:
                told.add(copy.at)
                yield Hazard("drain", i, copy.stage, copy.tile, say.reused(i, copy), copy.at)
    for copy in course.copies:
        if copy.done is None and copy.at not in told:
            yield Hazard("drain", len(course.program) - 1, copy.stage, copy.tile, say.never(copy), copy.at)


def _registers(course: Course, say: _Words) -> Iterator[Hazard]:
    """A k block has one set of registers; a multiplication takes what was read into it last."""
    held: dict[int, int] = {}
    for i, event in enumerate(course.program):
        if event.op == "read":
            held[event.block] = event.tile
        elif event.op == "compute" and held.get(event.block) != event.tile:
            yield Hazard("fragment", i, -1, event.tile, say.registers(i, held.get(event.block)))


def _sum(course: Course, say: _Words) -> Iterator[Hazard]:
    """What a sum lacks, shown at its end, or has twice; without a multiplication there is none, as in a program of copies alone."""
    last, end = say.k_tiles - 1, course.last("compute", len(course.program))
    taken: set[tuple[int, int]] = set()
    for i, event in enumerate(course.program):
        if event.op != "compute":
            continue
        part = (min(event.tile, last), event.block)
        if part in taken:
            yield Hazard("sum", i, -1, event.tile, say.again(i))
        taken.add(part)
    blocks = {block for _, block in taken}
    for tile in range(say.k_tiles) if taken else ():
        if lost := sorted(blocks - {b for t, b in taken if t == tile}):
            yield Hazard("sum", end, -1, tile, say.left_out(tile, lost if len(lost) < len(blocks) else []))


@dataclass
class _Words:
    """The sentences."""

    course: Course
    step: Callable[[int], int]
    k_tiles: int

    def tile(self, tile: int) -> str:
        return f"k tile {tile}" if tile < self.k_tiles else f"k tile {self.k_tiles - 1} once more"

    def kind(self, read: int, copy: Copy, was_copied: bool) -> str:
        """The kind of a read and a write that are not ordered; ``was_copied``: the stage got the read's k tile before."""
        if copy.tile == self.course.program[read].tile:
            return "raw"
        return "war" if was_copied or copy.tile < 0 else "tile"

    def clash(self, read: int, copy: Copy, mine: int) -> str:
        """The sentence of a read and a write that are not ordered; ``mine``: where the read's k tile was copied into the stage."""
        event, at = self.course.program[read], self.step(read)
        wanted, stage = self.tile(event.tile), f"stage {event.stage}"
        if copy.tile == event.tile:
            if copy.at > read:
                return f"Step {at}: {wanted} is read from {stage} before its copy is issued in step {self.step(copy.at)}."
            if copy.done is not None and copy.done < read:
                return f"Step {at}: {wanted} is read from {stage} after its wait and before a barrier: what other threads copied may be missing."
            return f"Step {at}: {wanted} is read from {stage} while its copy of step {self.step(copy.at)} may be in flight: {self.why(copy, read)}."
        if copy.tile < 0:
            return f"Step {self.step(copy.at)}: {stage} is reused while another warp may still read {wanted} from it (step {at}): no barrier between."
        if mine >= read:
            what = f"{self.tile(copy.tile)} is in flight into it" if copy.at < read else "it was never copied there"
            return f"Step {at}: {stage} is read for {wanted}, and {what}."
        if copy.at > read:
            return f"Step {self.step(copy.at)}: {self.tile(copy.tile)} is copied into {stage} while another warp may still read {wanted} from it (step {at}): no barrier between."
        return f"Step {at}: {wanted} is read from {stage}, into which {self.tile(copy.tile)} was copied in step {self.step(copy.at)}."

    def why(self, copy: Copy, read: int) -> str:
        """Why a copy that was issued before a read may be in flight then."""
        if (wait := self.course.weak_wait(copy, read)) >= 0:
            return f"wait_group {self.course.program[wait].n} in step {self.step(wait)} is too weak"
        commit = self.course.commits.get(copy.at, len(self.course.program))
        wait = self.course.last("wait", read)
        if copy.at < wait < commit:
            return f"no commit stands between it and wait_group {self.course.program[wait].n} in step {self.step(wait)}, which cannot wait for it"
        return "no commit and no wait_group stand between" if commit > read else "no wait_group stands between its commit and the read"

    def holds(self, read: int, held: Copy | None) -> str:
        event = self.course.program[read]
        what = "nothing was copied into it" if held is None else "it was reused" if held.tile < 0 else f"it holds {self.tile(held.tile)}"
        return f"Step {self.step(read)}: stage {event.stage} is read for {self.tile(event.tile)}, and {what}."

    def both(self, copy: Copy, earlier: Copy) -> str:
        return (
            f"Step {self.step(copy.at)}: {self.tile(copy.tile)} is copied into stage {copy.stage} while the copy of "
            f"{self.tile(earlier.tile)} (step {self.step(earlier.at)}) is in flight into it."
        )

    def reused(self, reuse: int, copy: Copy) -> str:
        return (
            f"Step {self.step(reuse)}: shared memory is reused while the copy of {self.tile(copy.tile)} "
            f"(step {self.step(copy.at)}) may be in flight into stage {copy.stage}."
        )

    def never(self, copy: Copy) -> str:
        return (
            f"The program ends with the copy of {self.tile(copy.tile)} (step {self.step(copy.at)}) in flight into stage {copy.stage}: "
            f"no wait_group covers it."
        )

    def registers(self, compute: int, held: int | None) -> str:
        event = self.course.program[compute]
        what = "nothing was read into its registers" if held is None else f"its registers hold that of {self.tile(held)}"
        return f"Step {self.step(compute)}: k block {event.block} of {self.tile(event.tile)} is multiplied, and {what}."

    def again(self, compute: int) -> str:
        event = self.course.program[compute]
        return f"Step {self.step(compute)}: k block {event.block} of {self.tile(event.tile)} is multiplied, and is in the sum already."

    def left_out(self, tile: int, blocks: Sequence[int]) -> str:
        """``blocks``: those that are missing, none where all are."""
        what = f"k block {', '.join(map(str, blocks))} of {self.tile(tile)}" if blocks else self.tile(tile)
        return f"The program ends and {what} was never multiplied."
