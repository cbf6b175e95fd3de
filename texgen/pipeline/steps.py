"""A program in steps, and what each stage of the ring is at each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from texgen.pipeline.hazards import Course
from texgen.pipeline.program import Event

ORDER = ("wait", "barrier", "read", "copy", "compute", "commit", "reuse")
"""The rows of a step: its events stand one below the other in the program's order."""
FREE, WRITTEN, FLIGHT, LANDED, READ = range(5)
LETTERS = {FREE: "", WRITTEN: "W", FLIGHT: "F", LANDED: "L", READ: "R"}


@dataclass(frozen=True)
class Cell:
    """A stage in a step: its state, and the k tile that is read, copied or kept there (-1: none)."""

    state: int = FREE
    tile: int = -1


def steps(program: Sequence[Event]) -> list[int]:
    """The step of each event: a new one begins where an operation does not stand below the one before it in ``ORDER``."""
    step, row, out = 0, -1, []
    for event in program:
        if event.op in ORDER:
            at = ORDER.index(event.op)
            if at <= row:
                step += 1
            row = at
        out.append(step)
    return out


def cells(program: tuple[Event, ...], stages: int) -> list[list[Cell]]:
    """[stage][step] as one warp has it: read or written in this step, else what it is at the step's end.

    A copy is in flight until a barrier after its wait, when all of the block may count on it; it has landed from there to
    its last read.
    """
    at, course = steps(program), Course(program)
    count = at[-1] + 1
    grid = [[Cell()] * count for _ in range(stages)]
    barriers = [i for i, e in enumerate(program) if e.op == "barrier"]
    reads: dict[int, list[int]] = defaultdict(list)
    for i, event in enumerate(program):
        if event.op == "read":
            reads[event.stage].append(i)
    ends = {stage: [c.at for c in course.copies if c.stage == stage] for stage in range(stages)}
    for copy in course.copies:
        row = grid[copy.stage]
        end = next((i for i in ends[copy.stage] if i > copy.at), len(program))
        done = copy.done
        visible = next((i for i in barriers if done is not None and i > done), len(program)) if done is not None else len(program)
        last_read = max((i for i in reads[copy.stage] if copy.at < i < end), default=-1)
        last = at[min(visible, end, len(program) - 1)]
        for step in range(at[copy.at], last + (visible >= len(program) and end >= len(program))):
            row[step] = Cell(FLIGHT, copy.tile)
        if visible < end and last_read >= 0:
            for step in range(at[visible], at[last_read] + 1):
                row[step] = Cell(LANDED, copy.tile)
    for copy in course.copies:
        grid[copy.stage][at[copy.at]] = Cell(WRITTEN, copy.tile)
    for stage, events in reads.items():
        for i in events:
            held = max((c for c in course.copies if c.stage == stage and c.at < i), key=lambda c: c.at, default=None)
            grid[stage][at[i]] = Cell(READ, held.tile if held is not None else -1)
    return grid
