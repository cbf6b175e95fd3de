"""Clock stamps of a real run as panels: the stages over the whole run, and the warps about one barrier, enlarged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from texgen.figures.model import HOLE, Bar, Line, Panel
from texgen.pipeline.measured import Measured
from texgen.pipeline.steps import FLIGHT, LANDED, READ, WRITTEN

FEWEST_CELLS = 26
ROUND = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)


def measured_panels(measured: Measured, cells: int, colors: int) -> list[Panel]:
    """The ring's stages as warp 0 had them from the first stamp to the last; every warp about a wait in the middle."""
    from texgen.figures.timeline import FILLS

    cells = max(cells, FEWEST_CELLS)
    fills = {state: fill % colors for state, fill in FILLS.items()}
    last = max(warp[-1] for warp in measured.events["passed"])
    unit = _unit(last, cells)
    stages = [bar for stage in range(measured.stages) for bar in _stage(measured, stage, fills, 0, unit)]
    out = [_panel("measured", f"Measured: stages, as warp 0 had them ({measured.entry['kernel']}, {measured.head['gpu']})", "stage",
                  tuple(f"stage {s}" for s in range(measured.stages)), 0, unit, cells, stages)]  # fmt: skip
    tile = max(1, measured.k_tiles // 2)
    begin = min(warp[tile] for warp in measured.events["wait"])
    end = max(warp[tile] for warp in measured.events["passed"])
    room = max(end - begin, 20)
    unit = _unit(2 * room, cells)
    start = max(0, begin - (cells * unit - (end - begin)) // 2) // unit * unit
    bars = [bar for warp in range(measured.warps) for bar in _warp(measured, warp, fills, start, unit, cells)]
    out.append(_panel("warps", f"Measured: every warp about the wait for k tile {tile}, enlarged", "warp",
                      tuple(f"warp {w}" for w in range(measured.warps)), start, unit, cells, bars))  # fmt: skip
    return out


def _panel(key: str, title: str, rows: str, names: tuple[str, ...], start: int, unit: int, cells: int, bars: list[Bar]) -> Panel:
    columns = np.arange(cells)
    shown = max(1, -(-len(f"{start + cells * unit:,}") * 2 // 7))
    ticks = tuple(f"{start + c * unit:,}" if c % shown == 0 else "" for c in range(cells))
    return Panel(
        key, title, np.arange(len(names)), columns, rows, "cycle", np.full((len(names), cells), HOLE, dtype=np.int64), lined=False,
        row_names=names, column_names=ticks, bars=tuple(bars),
    )  # fmt: skip


def _unit(span: int, cells: int) -> int:
    """The least round number of cycles a cell that fits the span into the cells."""
    power = 1
    while True:
        for tenths in ROUND:
            if tenths * power % 10 == 0 and tenths * power // 10 * (cells - 1) >= span:
                return tenths * power // 10
        power *= 10


def _bar(row: int, begin: int, end: int, start: int, unit: int, cells: int, fill: int, name: str, what: str) -> Iterator[Bar]:
    """Time 0 stands at the middle of the first cell, where its number is printed; what lies outside is cut off."""
    left, right = max(0.0, (begin - start) / unit + 0.5), min(float(cells), (end - start) / unit + 0.5)
    if right > left:
        yield Bar(row, round(left, 4), round(right - left, 4), fill, name, f"{what} {begin:,}–{end:,}")


def _stage(measured: Measured, stage: int, fills: dict[int, int], start: int, unit: int) -> Iterator[Bar]:
    """Copy, flight until the barrier after its wait, and reading until the wait that frees the stage."""
    copy, commit, wait, passed = (measured.events[name][0] for name in ("copy", "commit", "wait", "passed"))
    everything = 1 << 20
    for tile in range(stage, measured.k_tiles + measured.stages - 1, measured.stages):
        real = tile < measured.k_tiles
        name = str(tile) if real else f"{measured.k_tiles - 1}*"
        until = passed[min(tile, measured.k_tiles + 1)]
        yield from _bar(stage, copy[tile], commit[tile], start, unit, everything, fills[WRITTEN], f"{name} W", f"k tile {name} copy issued")
        yield from _bar(stage, commit[tile], until, start, unit, everything, fills[FLIGHT], f"{name} F", f"k tile {name} in flight")
        if tile <= measured.k_tiles:  # of the first k tile past the end a k block is read, and nobody multiplies it
            yield from _bar(stage, until, wait[tile + 1], start, unit, everything, fills[READ], f"{name} R", f"k tile {name} read")


def _warp(measured: Measured, warp: int, fills: dict[int, int], start: int, unit: int, cells: int) -> Iterator[Bar]:
    """Multiplying, waiting for the copies, standing at the barrier."""
    wait, landed, passed = (measured.events[name][warp] for name in ("wait", "landed", "passed"))
    ends = [*wait[1 : measured.k_tiles + 1]]
    for tile, end in enumerate(ends):
        at = (warp, start, unit, cells)
        yield from _bar(warp, passed[tile], end, *at[1:], fills[READ], "R", f"k tile {tile} read and multiplied")
        yield from _bar(warp, wait[tile + 1], landed[tile + 1], *at[1:], fills[LANDED], "wait", "wait_group")
        yield from _bar(warp, landed[tile + 1], passed[tile + 1], *at[1:], HOLE, "barrier", "at the barrier")


def measured_lines(measured: Measured) -> list[Line]:
    """Where the stamps come from, what they cost, and what they say of the waits."""
    e, events = measured.entry, measured.events
    tiles = range(1, measured.k_tiles)
    waits = [w - b for t in tiles for b, w in zip(_at(events["wait"], t), _at(events["landed"], t), strict=True)]
    stood = [p - w for t in tiles for w, p in zip(_at(events["landed"], t), _at(events["passed"], t), strict=True)]
    rounds = [b - a for warp in events["wait"] for a, b in pairwise(warp[1:-1])]
    cost = 100 * (e["stamped_median_s"] / e["plain_median_s"] - 1)
    size = "×".join(str(e[x]) for x in "mnk")
    rate = f", {e['cycles'] / e['ns']:.2f} cycles a nanosecond" if e["ns"] else ""
    lines = [
        Line(f"Measured on {measured.head['gpu']}, driver {measured.head['driver']}, DSL {measured.head['dsl']}, {measured.head['date'][:10]}: "
             f"{size}, {e['k_tiles']} k tiles of {e['k_blocks']} k blocks, block {tuple(e['block'])} on multiprocessor {e['smid']}{rate}"),
        Line(f"Cycles, as median (10th to 90th percentile, most): between two waits {_spread(rounds)}, in wait_group {_spread(waits)}, at the barrier {_spread(stood)}; the stamps cost {cost:.1f}% of the run"),
    ]  # fmt: skip
    if measured.early:
        lines.append(Line(f"Warning: at {measured.early} barriers a warp's stamp is earlier than the last warp's arrival, so the stamps after barriers are not to be trusted"))
    return lines


def _at(warps: list[list[int]], tile: int) -> list[int]:
    return [warp[tile] for warp in warps]


def _spread(values: list[int]) -> str:
    """``32 (26–168, 170)``: a median alone would hide that waits have two peaks."""
    if not values:
        return "–"
    middle, low, high = np.percentile(values, [50, 10, 90]).tolist()
    return f"{middle:,.0f} ({low:,.0f}–{high:,.0f}, {max(values):,})"
