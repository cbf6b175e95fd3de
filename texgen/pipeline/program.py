"""A pipeline's program: what every warp of a block does, in order. All warps run the same one.

An event is an operation with what it works on:

- ``copy tile``: issue this warp's part of the ``cp.async`` of a k tile into a stage of the ring (``write``'s, if none is named);
- ``commit``: close a group of the copies issued so far; ``wait n``: until at most ``n`` of this warp's groups are in flight;
- ``barrier``: ``bar.sync`` of the whole block;
- ``read tile block``: fragments of a k block out of a stage (``read``'s, if none is named); ``compute tile block``: multiply them;
- ``advance read`` or ``advance write``: the index goes to the next stage of the ring;
- ``reuse``: the block writes its shared memory anew by ordinary stores, as an epilogue does.

K tiles from ``k_tiles`` on are those past the end of K: the kernels copy the last tile again instead of branching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from texgen.errors import TexgenError, UsageError

OPS = {"copy": 1, "commit": 0, "wait": 1, "barrier": 0, "read": 2, "compute": 2, "advance": 1, "reuse": 0}
"""How many numbers (or the name of an index) follow each operation; a stage may follow those of ``copy`` and ``read``."""
FAULTS = {
    "wait": "each wait_group leaves one group more in flight",
    "barrier": "the next copy is issued before the barrier, not after it",
    "advance": "the read index is advanced one k block too early",
    "drain": "no wait_group(0) and no barrier after the main loop",
}
"""The planted faults."""
MOST_EVENTS = 5_000
MOST_STAGES = 64


@dataclass(frozen=True)
class Event:
    """One operation. ``tile``, ``block``, ``stage`` and ``n`` are -1 where it has none; ``index`` is ``read`` or ``write``."""

    op: str
    tile: int = -1
    block: int = -1
    stage: int = -1
    n: int = -1
    index: str = ""

    def to_list(self) -> list[Any]:
        """``["copy", 3, 0]``: the operation, its numbers, its stage."""
        numbers: dict[str, list[Any]] = {
            "copy": [self.tile, self.stage], "wait": [self.n], "read": [self.tile, self.block, self.stage],
            "compute": [self.tile, self.block], "advance": [self.index],
        }  # fmt: skip
        return [self.op, *numbers.get(self.op, [])]


def events(items: Sequence[Any], stages: int, where: str = "the protocol") -> tuple[Event, ...]:
    """Events out of lists such as ``["copy", 3]``; stages that are not named are those of the ring's indices.

    Both indices begin at stage 0. Raises TexgenError naming the event at fault.
    """
    if not isinstance(items, list | tuple) or not items:
        raise TexgenError(f'{where} has no program: give a list of events such as ["copy", 0], ["commit"], ["wait", 0].')
    if len(items) > MOST_EVENTS:
        raise TexgenError(f"{where} has {len(items):,} events; at most {MOST_EVENTS:,} can be followed.")
    ring = {"read": 0, "write": 0}
    out = []
    for i, item in enumerate(items):
        event = _event(item, stages, ring, f"{where}, event {i}")
        if event.op == "advance":
            ring[event.index] = event.stage
        out.append(event)
    if all(event.op == "advance" for event in out):
        raise TexgenError(f"{where} only advances the ring's indices: give copies, waits, barriers and reads too.")
    return tuple(out)


def _event(item: Any, stages: int, ring: dict[str, int], where: str) -> Event:
    op, rest = (item[0], list(item[1:])) if isinstance(item, list | tuple) and item else (item, [])
    if not isinstance(op, str) or op not in OPS:
        raise TexgenError(f"{where} is {item!r}: an event is a list that begins with one of {', '.join(OPS)}.")
    if op == "advance":
        if rest not in (["read"], ["write"]):
            raise TexgenError(f'{where} is {item!r}: write ["advance", "read"] or ["advance", "write"].')
        return Event(op, index=rest[0], stage=(ring[rest[0]] + 1) % stages)
    few, most = OPS[op], OPS[op] + (op in ("copy", "read"))
    if not few <= len(rest) <= most or not all(type(x) is int and 0 <= x < 1 << 20 for x in rest):
        names = {"copy": "tile[, stage]", "wait": "groups", "read": "tile, block[, stage]", "compute": "tile, block"}.get(op, "")
        raise TexgenError(f"{where} is {item!r}: write [{', '.join(filter(None, [f'{op!r}'.replace(chr(39), chr(34)), names]))}], numbers from 0.")
    if op == "wait":
        return Event(op, n=rest[0])
    if op not in ("copy", "read", "compute"):
        return Event(op)
    tile, block = rest[0], rest[1] if op != "copy" else -1
    stage = -1
    if op != "compute":
        stage = rest[few] if len(rest) > few else ring["read" if op == "read" else "write"]
        if stage >= stages:
            raise TexgenError(f"{where} names stage {stage}, and the ring has {stages}: 0 to {stages - 1}.")
    return Event(op, tile, block, stage)


# The kernels' own ----------------------------------------------------------------------------------------------------------


def kernel_program(stages: int, k_tiles: int, k_blocks: int, fault: str = "") -> tuple[Event, ...]:
    """What ``kernel_pipelined`` of ``texgen.kernels.sgemm`` (and ``hgemm_sm80``) does, with a planted fault or none.

    Where a k tile is one k block its fragments have no second set of registers, so they are read after the multiplication,
    not before. A ring of one stage is the unpipelined loop: copy, wait for it, barrier, read, barrier. Raises UsageError.
    """
    for name, value, most in (("stages", stages, MOST_STAGES), ("k-tiles", k_tiles, 4096), ("k-blocks", k_blocks, 256)):
        if type(value) is not int or not 1 <= value <= most:
            raise UsageError(f"--{name} {value!r} must be between 1 and {most}.")
    if fault and fault not in FAULTS:
        raise UsageError(f"--fault {fault!r} must be one of {', '.join(FAULTS)}.")
    if k_tiles * (k_blocks * 2 + 6) > MOST_EVENTS:
        raise UsageError(f"{k_tiles} k tiles of {k_blocks} k blocks are more than can be followed: fewer --k-tiles or --k-blocks.")
    if stages == 1 and fault in ("advance", "drain"):
        raise UsageError(f"--fault {fault} needs a ring of two --stages or more: with one there is no index and nothing to drain.")
    if stages > 1 and k_tiles == 1 and fault == "barrier":
        raise UsageError("--fault barrier needs two --k-tiles or more: with one there is no next copy to be issued too early.")
    made = _pipelined(stages, k_tiles, k_blocks, fault) if stages > 1 else _unpipelined(k_tiles, k_blocks, fault)
    return events(list(made), stages)


def _unpipelined(k_tiles: int, k_blocks: int, fault: str) -> Iterator[list[Any]]:
    for tile in range(k_tiles):
        yield from (["copy", tile], ["commit"], ["wait", int(fault == "wait")], ["barrier"])
        for block in range(k_blocks):
            yield from (["read", tile, block], ["compute", tile, block])
        if fault != "barrier":
            yield ["barrier"]
    yield ["reuse"]


def _pipelined(stages: int, k_tiles: int, k_blocks: int, fault: str) -> Iterator[list[Any]]:
    in_flight = stages - 2 + (fault == "wait")
    for tile in range(stages - 1):
        yield from (["copy", tile], ["commit"], ["advance", "write"])
    yield from (["wait", in_flight], ["barrier"], ["read", 0, 0])
    for tile in range(k_tiles):
        ahead = tile + stages - 1
        early = fault == "barrier" and tile > 0  # already issued, before the barrier
        for block in range(k_blocks):
            last = block == k_blocks - 1
            following = ["read", tile + last, (block + 1) % k_blocks]
            if fault == "advance" and (block == k_blocks - 2 or k_blocks == 1):
                yield ["advance", "read"]
            if k_blocks > 1:
                if last:
                    yield from _hand_over(stages, tile, k_tiles, in_flight, fault, k_blocks)
                yield following
            if block == 0 and not early:
                yield ["copy", ahead]
            yield ["compute", tile, block]
            if block == 0 and not early:
                yield from (["commit"], ["advance", "write"])
            if k_blocks == 1:
                yield from _hand_over(stages, tile, k_tiles, in_flight, fault, k_blocks)
                yield following
    if fault != "drain":
        yield from (["wait", 0], ["barrier"])
    yield ["reuse"]


def _hand_over(stages: int, tile: int, k_tiles: int, in_flight: int, fault: str, k_blocks: int) -> Iterator[list[Any]]:
    """The next k tile has landed for every thread, and every thread is done with this one's stage."""
    hoisted = fault == "barrier" and tile + 1 < k_tiles
    if hoisted:
        yield from (["copy", tile + stages], ["commit"], ["advance", "write"])
    yield from (["wait", in_flight + hoisted], ["barrier"])
    if fault != "advance" or (k_blocks == 1 and tile == 0):
        yield ["advance", "read"]
