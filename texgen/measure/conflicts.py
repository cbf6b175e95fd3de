"""``python -m texgen.measure.conflicts -o docs/results``: bank conflicts and coalescing, predicted and counted.

Each pair of a copy and a shared-memory layout is one instruction of one warp: ``texgen.banks`` predicts its wavefronts, and
Nsight Compute counts those of a DSL kernel in which a warp executes that instruction once (in BLOCKS blocks, and the count
is divided by them). Global accesses likewise: 32-byte sectors a request. What a lane received is checked too.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from texgen.banks import Access, Conflicts, access, conflicts
from texgen.errors import TexgenError
from texgen.layouts import IntArray, Layout
from texgen.specs import WARP, CopySpec, LayoutSpec

SCHEMA = Path(__file__).with_name("schema") / "conflicts.json"
BLOCKS = 264
SECTOR = 32
TABLES = "docs/programs/copy_a.json"


@dataclass(frozen=True)
class Pair:
    """A warp's access to a shared-memory layout: lanes as ``texgen.banks.access`` names them, or warp 0 of a tiled copy."""

    way: str
    layout: str
    bits: int
    lanes: str
    op: str = "ld"

    @cached_property
    def spec(self) -> LayoutSpec:
        from texgen.sources.smem import layout_spec
        from texgen.sources.text import parse_layout

        return layout_spec(parse_layout(self.layout), bits=self.bits, unit="elements")

    @cached_property
    def access(self) -> Access:
        if self.lanes.endswith(".json"):
            from texgen.sources import read

            copy = read(self.lanes)
            assert isinstance(copy, CopySpec)
            return warp_access(copy, self.spec)
        return access(self.spec, self.lanes)

    @property
    def addresses(self) -> IntArray:
        """Where each lane begins, in bytes."""
        return self.access.offsets[:, 0] * self.bits // 8

    @property
    def width(self) -> int:
        """Bytes a lane."""
        return self.access.width

    @property
    def predicted(self) -> Conflicts:
        return conflicts(self.addresses, self.width)


def warp_access(copy: CopySpec, layout: LayoutSpec, side: str = "S", warp: int = 0, instruction: int = 0) -> Access:
    """What one instruction of one warp of a tiled copy asks of a shared-memory layout of the copy's tile."""
    from texgen.measure.emulate import CopyPlan

    operand = copy.operands()[side]
    run = CopyPlan.of(copy).run(side)
    rows, columns = operand.coordinates()
    threads = slice(WARP * warp, WARP * (warp + 1))
    starts = list(zip(rows[threads, run * instruction].tolist(), columns[threads, run * instruction].tolist(), strict=True))
    return access(layout, starts, width=run * layout.bits // 8)


PLAIN, PADDED = "(32,32):(32,1)", "(32,32):({},1)"
PAIRS = (
    Pair("plain", PLAIN, 32, "column:0"),
    Pair("padded", PADDED.format(33), 32, "column:0"),
    Pair("swizzled", f"S<5,0,5> o 0 o {PLAIN}", 32, "column:0"),
    Pair("plain", PLAIN, 32, "row:0"),
    Pair("plain", PLAIN, 32, "column:0", "st"),
    Pair("padded", PADDED.format(33), 32, "column:0", "st"),
    Pair("swizzled", f"S<5,0,5> o 0 o {PLAIN}", 32, "column:0", "st"),
    Pair("plain", PLAIN, 32, "column:0@8"),
    Pair("padded", PADDED.format(34), 32, "column:0@8"),
    Pair("swizzled", f"S<4,1,4> o 0 o {PLAIN}", 32, "column:0@8"),
    Pair("plain", "(8,64):(64,1)", 32, "row:0@8"),
    Pair("plain", PLAIN, 32, "column:0@16"),
    Pair("padded", PADDED.format(36), 32, "column:0@16"),
    Pair("swizzled", f"S<3,2,3> o 0 o {PLAIN}", 32, "column:0@16"),
    Pair("plain", PLAIN, 32, "column:0@16", "st"),
    Pair("swizzled", f"S<3,2,3> o 0 o {PLAIN}", 32, "column:0@16", "st"),
    Pair("plain", "(8,128):(128,1)", 32, "row:0@16"),
    Pair("plain", "(32,64):(64,1)", 16, "column:0"),
    Pair("padded", "(32,64):(66,1)", 16, "column:0"),
    Pair("plain", "(32,64):(64,1)", 16, "column:0@16", "ldmatrix"),
    Pair("padded", "(32,64):(72,1)", 16, "column:0@16", "ldmatrix"),
    Pair("padded", "(32,64):(80,1)", 16, "column:0@16", "ldmatrix"),
    Pair("swizzled", "S<3,3,3> o 0 o (32,64):(64,1)", 16, "column:0@16", "ldmatrix"),
    Pair("plain", "(64,32):(1,64)", 16, "row:0@16", "ldmatrix.trans"),
    Pair("padded", "(64,32):(1,72)", 16, "row:0@16", "ldmatrix.trans"),
    Pair("plain", "(32,16):(16,1)", 16, TABLES, "ldmatrix"),
    Pair("padded", "(32,16):(24,1)", 16, TABLES, "ldmatrix"),
    Pair("swizzled", "S<1,3,3> o 0 o (32,16):(16,1)", 16, TABLES, "ldmatrix"),
    Pair("plain", "(16,8):(1,128)", 32, "(2,16):(64,1)", "st"),
    Pair("padded", "(16,8):(1,132)", 32, "(2,16):(64,1)", "st"),
    Pair("plain", PLAIN, 32, "(32):(0)"),
    Pair("plain", PLAIN, 32, "(2,16):(0,32)"),
    Pair("plain", "(1,64):(64,1)", 32, "(2,16):(0,2)@8"),
    Pair("plain", "(1,64):(64,1)", 32, "(16,2):(2,0)@8"),
    Pair("plain", "(1,128):(128,1)", 32, "(8,4):(4,0)@16"),
    Pair("plain", "(1,128):(128,1)", 32, "(4,8):(0,4)@16"),
    Pair("plain", "(1,128):(128,1)", 32, "(32):(0)@16"),
)
"""Shared memory: ways to read a column, the transposed store of siboehm/SGEMM_CUDA#8, a tiled copy's ldmatrix, and lanes
that share words."""

def together(addresses: IntArray, width: int) -> int | None:
    """The wavefronts where each lane wants its neighbour's words (lanes l and l^1) and takes 8 or 16 bytes; else None.

    The hardware then serves twice as many lanes at once, as was counted on an H200; lanes further apart that share words
    (the second half of a warp the first half's) change nothing.
    """
    at = np.asarray(addresses, dtype=np.int64)
    if width < 8 or len(at) != WARP or not np.array_equal(at, at[np.arange(WARP) ^ 1]):
        return None
    step = 2 * WARP * 4 // width
    total = 0
    for first in range(0, WARP, step):
        words = np.unique(at[first : first + step, None] // 4 + np.arange(width // 4))
        total += int(np.bincount(words % 32).max())
    return total


def explanation(pair: Pair, counted: float | None) -> str:
    """Why the count differs from the prediction; empty where it does not, or nobody knows."""
    merged = together(pair.addresses, pair.width)
    if counted == pair.predicted.wavefronts or merged is None or merged != counted:
        return ""
    return (
        f"Lanes l and l^1 want the same words, and the hardware then serves twice as many lanes at once: {merged} wavefronts. "
        f"The model serves {len(pair.predicted.phases[0].lanes)} lanes at once whatever they want."
    )


@dataclass(frozen=True)
class Request:
    """A warp's load from global memory: ``lanes`` maps lane to element, ``width`` is in bytes a lane, ``shift`` in elements."""

    name: str
    bits: int
    lanes: str
    width: int
    shift: int = 0

    @cached_property
    def layout(self) -> Layout:
        from texgen.sources.text import parse_layout

        layout = parse_layout(self.lanes)
        assert isinstance(layout, Layout)
        return layout

    @property
    def addresses(self) -> IntArray:
        return (self.layout.offsets() + self.shift) * self.bits // 8

    @property
    def predicted(self) -> int:
        return sectors(self.addresses, self.width)


def sectors(addresses: Sequence[int] | IntArray, width: int) -> int:
    """The 32-byte sectors that one request touches: lane ``l`` takes ``width`` bytes at ``addresses[l]``.

    >>> sectors([4 * lane for lane in range(32)], 4), sectors([128 * lane for lane in range(32)], 4)
    (4, 32)
    """
    at = np.asarray(addresses, dtype=np.int64)
    return len(np.unique((at[:, None] + np.arange(width)) // SECTOR))


REQUESTS = (
    Request("neighbours", 32, "32:1", 4),
    Request("neighbours, 8 bytes a lane", 32, "32:2", 8),
    Request("neighbours, 16 bytes a lane", 32, "32:4", 16),
    Request("neighbours, 2 bytes a lane", 16, "32:1", 2),
    Request("shifted by one element", 32, "32:1", 4, 1),
    Request("every second element", 32, "32:2", 4),
    Request("a column of 32", 32, "32:32", 4),
    Request("16 bytes of every 32", 32, "32:8", 16),
    Request("rows of 8 lanes, 16 bytes each", 32, "(8,4):(4,256)", 16),
    Request("rows of 2 lanes, 16 bytes each", 32, "(2,16):(4,256)", 16),
    Request("one element for all", 32, "32:0", 4),
)
"""Global memory."""

METRICS = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
    "smsp__inst_executed_op_shared_ld", "smsp__inst_executed_op_shared_st", "smsp__inst_executed_op_ldsm",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld", "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
)  # fmt: skip
"""Counters asked for, where this ncu has them."""


def counter(op: str) -> str:
    """The counter of an operation's wavefronts."""
    return "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" + ("st" if op == "st" else "ld")


# Counting ------------------------------------------------------------------------------------------------------------------


def count(folder: Path) -> list[dict[str, float]]:
    """The counters of every pair and then every request, a block's share, by ncu. TexgenError where it fails."""
    ncu = shutil.which("ncu") or next((str(p) for p in sorted(Path("/usr/local").glob("cuda*/bin/ncu"))), "")
    if not ncu:
        raise TexgenError("Nsight Compute (ncu) is not on the PATH: it counts the bank conflicts.")
    known = subprocess.run([ncu, "--query-metrics", "--chip", "gh100"], capture_output=True, text=True, timeout=120).stdout.split()
    wanted = [m for m in METRICS if m in known] or list(METRICS)
    command = [
        ncu, "--clock-control", "none", "-k", "regex:probe_", "--csv", "--page", "raw", "--metrics",
        ",".join(f"{m}.sum" for m in wanted), sys.executable, "-m", "texgen.measure.conflicts", "--probe",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env={**os.environ, "CUTE_DSL_ARCH": "sm_90a"})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ncu.csv").write_text(done.stdout + "\n" + done.stderr[-4000:])
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None or done.returncode:
        raise TexgenError(f"ncu ended with {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    return parse(lines[start:])


def parse(lines: Sequence[str]) -> list[dict[str, float]]:
    """The rows of ncu's raw page (a header, units, a row a kernel) as counters of one block."""
    table = list(csv.DictReader(io.StringIO("\n".join(lines))))
    out = []
    for row in table:
        if not (row["ID"] or "").isdigit():
            continue
        out.append({
            k.removesuffix(".sum"): float(v.replace(",", "")) / BLOCKS
            for k, v in row.items() if k and k.endswith(".sum") and v and re.fullmatch(r"[\d,.]+", v)
        })  # fmt: skip
    return out


def measure(folder: Path) -> dict[str, Any]:
    """Both results, with the head of the file."""
    from texgen.measure.verify import head

    counted = count(folder)
    if len(counted) != len(PAIRS) + len(REQUESTS):
        raise TexgenError(f"ncu saw {len(counted)} kernels, not {len(PAIRS) + len(REQUESTS)}.")
    return {
        **head(),
        "entries": [pair_entry(p, c) for p, c in zip(PAIRS, counted, strict=False)],
        "global": [request_entry(r, c) for r, c in zip(REQUESTS, counted[len(PAIRS) :], strict=True)],
    }


def pair_entry(pair: Pair, counted: dict[str, float]) -> dict[str, Any]:
    """One pair in the file: predicted beside counted."""
    found = _whole(counted.get(counter(pair.op)))
    predicted = pair.predicted
    agree = found == predicted.wavefronts
    return {
        "way": pair.way, "layout": pair.layout, "bits": pair.bits, "lanes": pair.lanes, "width": pair.width, "op": pair.op,
        "predicted": predicted.wavefronts, "ideal": predicted.ideal, "counted": found, "agree": agree,
        "reason": explanation(pair, found), "counters": {k: _whole(v) for k, v in counted.items() if "mem_shared" in k or k.startswith("smsp")},
    }  # fmt: skip


def request_entry(request: Request, counted: dict[str, float]) -> dict[str, Any]:
    found = _whole(counted.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld"))
    return {
        "name": request.name, "bits": request.bits, "lanes": request.lanes, "shift": request.shift, "width": request.width,
        "predicted": request.predicted, "counted": found, "agree": found == request.predicted, "reason": "",
        "requests": _whole(counted.get("l1tex__t_requests_pipe_lsu_mem_global_op_ld")),
    }  # fmt: skip


def _whole(x: float | None) -> int | float | None:
    return int(x) if x is not None and x == int(x) else x


def probe() -> None:
    """Launch the kernel of every pair and request once, under ncu."""
    from texgen.measure import probes

    for pair in probes.PAIRS:  # not this module's own, which may be __main__
        probes.shared(pair)
    for request in probes.REQUESTS:
        probes.globally(request)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where every prediction was counted, or the difference has its reason."""
    parser = argparse.ArgumentParser(prog="python -m texgen.measure.conflicts", description="Bank conflicts, predicted and counted.")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.probe:
        probe()
        return 0
    from texgen.measure.verify import save

    result = measure(options.out)
    for e in result["entries"]:
        print(f"{'ok ' if e['agree'] else 'OFF'} {e['predicted']:3} predicted {e['counted']!s:>5} counted  {e['op']:9} {e['way']:9} {e['lanes']:14} {e['layout']}")
    for e in result["global"]:
        print(f"{'ok ' if e['agree'] else 'OFF'} {e['predicted']:3} predicted {e['counted']!s:>5} counted  sectors   {e['name']}")
    print(save(result, options.out, "conflicts.json"))
    return int(not all(e["agree"] or e["reason"] for e in [*result["entries"], *result["global"]]))


def load(file: Path) -> dict[str, Any]:
    """A result file."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
