"""Pipelines: the simulator's verdict against every interleaving of two warps, the planted faults, the kernels' own PTX, and
what is drawn, read back out of SVG and TikZ."""

from __future__ import annotations

import itertools
import random

import pytest

from texgen.pipeline.hazards import hazards
from texgen.pipeline.program import FAULTS, events, kernel_program
from texgen.pipeline.steps import steps

# A second route: every interleaving ---------------------------------------------------------------------------------------


def some_interleaving_goes_wrong(program, stages: int) -> str:
    """What can happen to two warps that run ``program`` on a machine that lets a copy land as late as it may.

    A warp's part of a stage holds a tile, or is torn from a copy's issue to its own wait. Depth-first over all
    interleavings; barriers let nobody past until both have come. Returns the first thing that is wrong, empty where
    nothing can be. Knows nothing of phases.
    """
    start = (((0, 0, (), (), ()),) * 2, (("none",) * stages,) * 2)
    seen, todo = {start}, [start]

    while todo:
        warps, parts = todo.pop()
        moves = [w for w in range(2) if warps[w][0] < len(program)]
        if not moves and any(flight for *_, flight in (warps[0], warps[1])):
            return "copies in flight at the end"
        for w in moves:
            at, passed, opened, groups, flight = warps[w]
            event = program[at]
            other = warps[1 - w]
            mine = list(parts[w])
            if event.op == "barrier" and not (other[1] > passed or (other[0] < len(program) and program[other[0]].op == "barrier" and other[1] == passed)):
                continue  # waits for the other
            if event.op == "copy":
                if event.stage in dict(flight):
                    return f"event {at}: a second copy into stage {event.stage}"
                opened, flight = (*opened, event.stage), (*flight, (event.stage, event.tile))
                mine[event.stage] = "torn"
            elif event.op == "commit":
                opened, groups = (), (*groups, opened)
            elif event.op == "wait":
                kept = groups[len(groups) - event.n :] if event.n else ()
                over = [s for group in groups[: len(groups) - len(kept)] for s in group]
                for stage, tile in flight:
                    if stage in over:
                        if mine[stage] == "reused":
                            return "lands in reused memory"
                        mine[stage] = tile
                flight = tuple(x for x in flight if x[0] not in over)
                groups = kept
            elif event.op == "read":
                if any(p[event.stage] != event.tile for p in parts):
                    return f"event {at}: warp {w} reads {[p[event.stage] for p in parts]} for {event.tile}"
            elif event.op == "reuse":
                if flight or other[4]:
                    return f"event {at}: reuse with copies in flight"
                mine = ["reused"] * stages
                parts = tuple(("reused",) * stages for _ in range(2))
            elif event.op == "barrier":
                passed += 1
            new = (at + 1, passed, opened, groups, flight)
            state = (
                tuple(new if i == w else warps[i] for i in range(2)),
                tuple(tuple(mine) if i == w else parts[i] for i in range(2)),
            )
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return ""


def verdict(program) -> list[str]:
    """The simulator's hazards of memory (not of registers)."""
    at = steps(program)
    return [h.kind for h in hazards(program, at.__getitem__, 10**6) if h.kind != "fragment"]


def mutated(program, choose: random.Random, stages: int):
    """One event moved, dropped, doubled or changed."""
    items = [e.to_list() for e in program]
    for _ in range(choose.choice((1, 1, 2))):
        i = choose.randrange(len(items))
        what = choose.choice(("drop", "move", "swap", "wait", "stage"))
        if what == "drop":
            del items[i]
        elif what == "move":
            items.insert(max(0, min(len(items), i + choose.choice((-3, -2, -1, 1, 2, 3)))), items.pop(i))
        elif what == "swap" and i:
            items[i - 1], items[i] = items[i], items[i - 1]
        elif what == "wait" and items[i][0] == "wait":
            items[i] = ["wait", max(0, items[i][1] + choose.choice((-1, 1)))]
        elif what == "stage" and items[i][0] in ("copy", "read"):
            items[i] = [*items[i][:-1], choose.randrange(stages)]
        if not items:
            items = [["barrier"]]
    return events(items, stages)


@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_is_that_of_all_interleavings(seed):
    choose = random.Random(seed)
    wrong = 0
    for _ in range(60):
        stages, k_tiles, k_blocks = choose.choice((1, 2, 2, 3, 4)), choose.randint(1, 4), choose.randint(1, 2)
        program = kernel_program(stages, k_tiles, k_blocks)
        if choose.random() < 0.9:
            program = mutated(program, choose, stages)
        found = some_interleaving_goes_wrong(program, stages)
        assert bool(verdict(program)) == bool(found), (found, verdict(program), [e.to_list() for e in program])
        wrong += bool(found)
    assert 10 < wrong < 58


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_planted_fault_goes_wrong_in_some_interleaving(fault):
    for stages, k_tiles, k_blocks in itertools.product((2, 3), (2, 4), (1, 2)):
        assert bool(some_interleaving_goes_wrong(kernel_program(stages, k_tiles, k_blocks, fault), stages)) == bool(fault)
