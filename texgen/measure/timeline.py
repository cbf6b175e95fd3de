"""``python -m texgen.measure.timeline --out DIR``: clock stamps of the pipelined ``sgemm``, ``DIR/<gpu>/timeline.json``.

The kernel that ``bench`` times is compiled once more with ``texgen.kernels.clock`` switched on: one block in the middle of a
grid that fills the GPU stores, warp by warp, its multiprocessor's cycle counter before and after its copies, waits and
barriers, and where each k block's multiplication begins. The run is checked against float64, and timed beside the kernel
without stamps, so that what the stamps cost stands beside what they show.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from texgen.errors import TexgenError
from texgen.kernels.clock import GLOBALTIMER, SMID, Slots
from texgen.layouts import IntArray
from texgen.measure import provenance

NOT_STAMPED = -1


@dataclass(frozen=True)
class Case:
    """One run: the ring's depth and the k tiles; ``m`` and ``n`` give about a block a multiprocessor."""

    stages: int
    k_tiles: int = 12
    m: int = 2048
    n: int = 2048
    block: tuple[int, int] = (8, 4)


CASES = (Case(3), Case(2), Case(4))


def events(raw: IntArray, slots: Slots) -> dict[str, Any]:
    """The stamps of a run by name, in cycles after the first; ``raw``: (warps, slots).

    ``copy``, ``commit``: [warp][k tile], of ``k_tiles + stages - 1`` copies, ``wait``, ``landed``, ``passed``: [warp][k tile],
    the drain's last, ``block``: [warp][k tile][k block]. Raises TexgenError where a slot was never written.
    """
    copies, waits = range(slots.k_tiles + slots.stages - 1), range(slots.k_tiles + 2)
    wanted: dict[str, Any] = {
        "copy": [slots.copy(t) for t in copies],
        "commit": [slots.commit(t) for t in copies],
        "wait": [slots.wait(t) for t in waits],
        "landed": [slots.landed(t) for t in waits],
        "passed": [slots.passed(t) for t in waits],
        "block": [[slots.block(t, b) for b in range(slots.k_blocks)] for t in range(slots.k_tiles)],
    }
    picked = {name: raw[:, np.asarray(at)] for name, at in wanted.items()}
    if any((values == NOT_STAMPED).any() for values in picked.values()):
        raise TexgenError("A stamp was never written: the chosen block did not run, or K is no multiple of the k tile.")
    first = min(int(values.min()) for values in picked.values())
    return {name: (values - first).tolist() for name, values in picked.items()}


def early(events: dict[str, Any]) -> int:
    """How many barriers a warp passed before the last warp had come: none, or the stamps are not what they say."""
    landed, passed = (np.asarray(events[name]) for name in ("landed", "passed"))
    return int((passed.min(axis=0) < landed.max(axis=0)).sum())


def head(raw: IntArray) -> dict[str, int]:
    """The multiprocessor, and cycles and nanoseconds between the two readings of both counters by warp 0."""
    ns, cycles = (int(raw[0, GLOBALTIMER + 2 + i] - raw[0, GLOBALTIMER + i]) for i in range(2))
    return {"smid": int(raw[0, SMID]), "warps": raw.shape[0], "cycles": cycles, "ns": ns}


def compiled(arch: str, case: Case, options: str = "") -> tuple[Any, Slots, Any]:
    """(the kernel with its clock on, its slots, its configuration). Needs no GPU."""
    import cutlass

    from texgen.kernels import common, sgemm

    cfg = sgemm.Config(stages=case.stages)
    slots = Slots(case.stages, case.k_tiles, cfg.bk)
    tensors = [common.fake_matrix(common.f32, sgemm.UNITS[w], vector=4) for w in ("mn", "mn", "n4")]
    stamps = common.fake_vector(cutlass.Int64)
    more = (True, cfg, case.block, case.k_tiles)
    return common.compile_for(arch, sgemm.host_stamped, [*tensors, stamps], more, options), slots, cfg


def measure(case: Case) -> dict[str, Any]:
    """One entry of ``timeline.json``."""
    import torch

    from texgen.kernels import common, sgemm
    from texgen.measure import bench

    run, slots, cfg = compiled(common.device_arch(), case)
    k = case.k_tiles * cfg.bk
    a, b = (bench.operand(rows, k, "mn", torch.float32) for rows in (case.m, case.n))
    c = torch.full((case.m, case.n), float("nan"), device="cuda")
    raw = torch.full((cfg.threads // 32, slots.count), NOT_STAMPED, dtype=torch.int64, device="cuda")
    arguments = [common.as_argument(t, sgemm.UNITS[w], vector=4) for t, w in ((a, "mn"), (b, "mn"), (c, "n4"))]
    stamps = common.as_argument(raw.view(-1), 0)

    def stamped() -> None:
        run(*arguments, stamps, common.current_stream())

    plain = sgemm.prepare(a, b, torch.empty_like(c), cfg=cfg)[0]
    for _ in range(3):  # the inputs are in the L2 from the second on
        c.fill_(float("nan"))
        raw.fill_(NOT_STAMPED)
        torch.cuda.synchronize()
        stamped()
        torch.cuda.synchronize()
    taken = raw.cpu().numpy()
    error, _ = bench.relative_error(c, sgemm.reference(a, b))
    bound = bench.tolerance("float32", k)
    times, _ = bench.time_in_turns({"stamped": [stamped], "plain": [plain]})
    return {
        "kernel": "sgemm_pipelined",
        "m": case.m, "n": case.n, "k": k,
        "stages": case.stages, "k_tiles": case.k_tiles, "k_blocks": cfg.bk,
        "block": list(case.block),
        **head(taken),
        "error": error, "tolerance": bound, "correct": error <= bound,
        "stamped_median_s": statistics.median(times["stamped"]),
        "plain_median_s": statistics.median(times["plain"]),
        "source_hash": provenance.source_hash("sgemm_pipelined"),
        "events": events(taken, slots),
    }  # fmt: skip


def run(cases: Sequence[Case] = CASES, progress: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """The content of ``timeline.json``. Raises TexgenError where torch sees no GPU."""
    try:
        import torch
    except ImportError:
        raise TexgenError("Stamps need torch: pip install '.[gpu]'") from None
    if not torch.cuda.is_available():
        raise TexgenError("Stamps need a CUDA device, and torch sees none.")
    torch.manual_seed(1)
    result = provenance.header()
    result["entries"] = []
    for case in cases:
        entry = measure(case)
        result["entries"].append(entry)
        if progress:
            progress(line(entry))
    return result


def line(entry: dict[str, Any]) -> str:
    """An entry in a line."""
    cost = entry["stamped_median_s"] / entry["plain_median_s"] - 1
    wrong = "" if entry["correct"] else " WRONG"
    if count := early(entry["events"]):
        wrong += f", {count} barriers passed EARLY"
    return (
        f"{entry['kernel']} {entry['stages']} stages, {entry['k_tiles']} k tiles: {entry['cycles']} cycles on multiprocessor "
        f"{entry['smid']}, stamps cost {100 * cost:.1f}%, error {entry['error']:.1e}{wrong}"
    )


def text(result: dict[str, Any]) -> str:
    """The file: an entry's fields one a line, its stamps one warp a line."""
    keys = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in result.items() if k != "entries"]
    entries = []
    for entry in result["entries"]:
        fields = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items() if k != "events"]
        rows = [
            f"{json.dumps(name)}: [\n    " + ",\n    ".join(json.dumps(warp, separators=(",", ":")) for warp in warps) + "]"
            for name, warps in entry["events"].items()
        ]
        entries.append("  {" + ",\n   ".join([*fields, '"events": {\n   ' + ",\n   ".join(rows) + "}"]) + "}")
    return "{\n " + ",\n ".join([*keys, '"entries": [\n' + ",\n".join(entries) + "\n ]"]) + "\n}\n"


def save(result: dict[str, Any], out: Path) -> Path:
    """Write ``out/<gpu>/timeline.json``, whole or not at all."""
    from texgen.render.files import write

    return write(out / provenance.folder_name(result["gpu"]) / "timeline.json", text(result))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. 0: all correct; 1: a kernel was wrong, or there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m texgen.measure.timeline", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results"), help="folder of result folders (default: docs/results)")
    options = parser.parse_args(arguments)
    try:
        result = run(progress=lambda text: print(text, flush=True))
        print(f"wrote {save(result, options.out)}")
    except TexgenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if all(entry["correct"] for entry in result["entries"]) else 1


if __name__ == "__main__":
    sys.exit(main())
