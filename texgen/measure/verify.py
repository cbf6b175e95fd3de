"""``texgen verify``: figures executed, and the result file ``RESULTS/<gpu>/verify.json``.

For each target the spec that a page draws is put to work (``executed`` on a GPU, ``emulate`` without one): its result must
be the exact one, and with two entries of any of its tables swapped it must not be. What cannot run is in the file too,
with the reason. Targets run in several processes, as a kernel that goes wrong can end its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.measure.emulate import Backend, Numpy, Outcome, check
from texgen.measure.stamp import spec_hash
from texgen.specs import CopySpec, MmaSpec, Spec

SCHEMA = Path(__file__).with_name("schema") / "verify.json"
NS = (8, 64, 128, 256)
"""The Ns of each warpgroup family that are executed."""
RUNS_ON = ("", "sm_61", "sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_90a")
"""Architectures whose instructions a Hopper GPU runs."""
JOBS = 8
SECONDS_A_TARGET = 120


@dataclass(frozen=True)
class Target:
    """What is executed: a target as ``texgen.read`` takes it, with its tiling.

    ``live`` names the function that builds the same object in the DSL, where the target is a file of tables.
    """

    text: str
    atom_layout: str = ""
    tile: str = ""
    val_layout: str = ""
    live: str = ""

    def __str__(self) -> str:
        """As on the command line: ``SM80_16x8x16_F32F16F16F32_TN --atom-layout 2,2,1``."""
        options = ((f"--{k.replace('_', '-')}", getattr(self, k)) for k in ("atom_layout", "tile", "val_layout"))
        return " ".join([self.text, *(f"{k} {v}" for k, v in options if v)])

    @classmethod
    def parse(cls, text: str) -> Target:
        """The reverse of ``str``."""
        found = dict(re.findall(r"--(atom-layout|tile|val-layout)[ =](\S+)", text))
        name = re.sub(r"\s--(atom-layout|tile|val-layout)[ =]\S+", "", text).strip()
        return cls(name, **{k.replace("-", "_"): v for k, v in found.items()})

    def spec(self) -> Spec:
        """The spec of the figure. TexgenError as ``texgen.read``, and where there are several."""
        from texgen.sources import read

        options = {k: v for k in ("atom_layout", "tile", "val_layout") if (v := getattr(self, k))}
        made = read(self.text, **options)
        if not isinstance(made, MmaSpec | CopySpec):
            raise TexgenError(f"{self} is no single TiledMma or TiledCopy: only these can be executed.")
        return made

    @property
    def builder(self) -> str:
        """``module:callable`` or ``file.py:callable`` of the live object, empty for an atom of the catalogue."""
        if self.live:
            return self.live
        return self.text if re.search(r"^[\w./-]+:[\w.]+$", self.text) and "::" not in self.text else ""

    def build(self) -> Any:
        """The live object, inside a trace. Needs the DSL."""
        from texgen.sources import as_layout, as_tile, catalog
        from texgen.sources.atoms_dsl import build_live
        from texgen.sources.worker import load
        from texgen.tiling import MmaAtom, val_layout_tile

        if self.builder:
            return load(self.builder)()
        entry = catalog.find(self.text)
        if entry.build is None:
            raise TexgenError(f"the DSL has no op for {entry.name}")
        if entry.kind == "copy":  # tables do the tiling
            return build_live(entry.build)
        atom_layout, tile, val = as_layout(self.atom_layout or None), as_tile(self.tile or None), as_layout(self.val_layout or None)
        if val is not None:
            atom = entry.atom()
            assert isinstance(atom, MmaAtom)
            tile = val_layout_tile(atom, atom_layout, val)
        return build_live(entry.build, atom_layout, tile)

    def cannot_run(self) -> str:
        """Why a Hopper GPU cannot run it; empty where it can."""
        from texgen.sources import catalog

        if self.builder:
            return ""
        entry = catalog.find(self.text)
        if entry.arch not in RUNS_ON:
            kind = "tcgen05" if entry.build and entry.build["op"].startswith("tcgen05") else "an instruction"
            return f"{kind} of {entry.arch}, which this GPU (sm_90a) lacks"
        if entry.build is None and not self.is_ptx:
            known = entry.atom().instruction or "no instruction known"
            return f"the CuTe DSL has no op for it, and without one only a warp's dense mma.sync is executed ({known})"
        return ""

    @property
    def is_ptx(self) -> bool:
        """Whether it is executed through its PTX instruction, for want of an op in the DSL."""
        from texgen.sources import catalog

        if self.builder or self.text.endswith(".json"):
            return False
        entry = catalog.find(self.text)
        return entry.build is None and re.fullmatch(r"mma\.sync\.aligned\.m\d+n\d+k\d+\.[\w.]+", str(entry.line.get("ptx", ""))) is not None


F16 = "SM80_16x8x16_F32F16F16F32_TN"
TILINGS = (
    *(Target(F16, *x) for x in (
        ("1,2,1", "16,32,16"), ("1,2,1", "16,(8,2,2):(1,16,8),16"), ("2,1,1",), ("2,2,1",), ("2,2,1", "32,32,16"),
        ("2,2,1", "32,(8,2,2):(1,16,8),16"), ("2,2,1", "", "1,2,1"), ("4,2,1",), ("4,1,1", "", "1,2,1"), ("1,1,1", "", "1,2,1"),
        ("2,1,1", "", "1,2,1"), ("4,1,1",), ("2,2,1", "64,64,32"), ("1,4,1", "16,32,32"), ("2,4,1", "(16,2,2):(1,32,16),64,16"),
    )),
    Target("SM80_16x8x8_F32TF32TF32F32_TN", "2,2,1", "32,32,16"),
    Target("SM80_16x8x16_F32BF16BF16F32_TN", "2,2,1", "32,32,32"),
    Target("SM80_16x8x16_F16F16F16F16_TN", "2,2,1", "32,32,16"),
    Target("SM89_16x8x32_F32E4M3E4M3F32_TN", "2,2,1", "32,32,32"),
    *(Target(f"UniversalFMA_{t}", "(16,16,1):(16,1,0)") for t in ("F16", "F32", "F64")),
    Target("UniversalFMA_F32", "16,16,1", "64,64,4"),
    Target("UniversalFMA_F32", "16,16,1", "(16,4):(4,1),(16,4):(4,1),1"),
    *(Target(f"SM90_64x64x16_F32F16F16_{x}", "2,1,1") for x in ("SS", "RS")),
    Target("SM90_64x256x16_F32F16F16_SS", "2,1,1"),
    Target("SM90_64x16x16_F32F16F16_SS"),
)  # fmt: skip
"""Tiled MMAs: those of the site's pages and a few harder ones."""
COPIES = (
    *(Target(f"SM80_CP_ASYNC_CACHEALWAYS<uint{b}_t>", "(16,8):(8,1)", "", f"(1,{b // 16})") for b in (32, 64, 128)),
    Target("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "(16,8):(8,1)", "", "(1,8)"),
    Target("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "(8,16)", "", "(8,2)"),
    *(Target(f"UniversalCopy<uint{b}_t>", "(16,8):(8,1)", "", f"(1,{max(1, b // 16)})") for b in (8, 16, 32, 64, 128, 256)),
    Target("UniversalCopy<uint128_t>", "(16,16)", "", "(8,1)"),
    Target("UniversalCopy<uint128_t>", "(4,8):(8,1)", "", "(2,16):(16,1)"),
    Target("docs/programs/copy_a.json", live="docs/programs/ldmatrix.py:copy_a"),
    Target("docs/programs/global_to_shared.json", live="docs/programs/ldmatrix.py:global_to_shared"),
    *(Target(f"docs/programs/ldmatrix.py:{x}") for x in ("tiled_mma", "copy_a", "global_to_shared")),
)  # fmt: skip
"""Tiled copies: the widths of cp.async and universal copies, and those of the site's programs."""
KERNELS = tuple(
    Target(f"texgen.kernels.{x}")
    for x in (
        "vector_add:tiled_copy", "sgemm:tiled_mma", "sgemm:tiled_mma_tiled", "sgemm:copy_a", "sgemm:copy_b", "sgemm:copy_a_tiled",
        "sgemm:copy_b_tiled", "hgemm_sm80:tiled_mma", "hgemm_sm80:copy_a", "hgemm_sm80:copy_b", "hgemm_sm80:ldmatrix_a",
        "hgemm_sm80:ldmatrix_b", "hgemm_sm80:copy_c", "hgemm_sm90:tiled_mma", "hgemm_sm90:piece_mma", "hgemm_sm90:stmatrix_c",
    )
)  # fmt: skip
"""The tiled objects of texgen's own kernels."""


def atoms() -> Iterator[Target]:
    """Every warp-level atom that the DSL or the GPU has, four Ns of each warpgroup family, ldmatrix and stmatrix; what needs another
    GPU, one of each op class."""
    from texgen.sources import catalog

    seen: set[str] = set()
    for name, entries in catalog.families():
        first = entries[0]
        if first.build is None:
            if first.kind == "mma" and first.arch in RUNS_ON:
                yield from (Target(e.name) for e in entries if not e.n or e.n in NS)
            continue
        group, op = first.build["op"].split(".")
        if group == "warpgroup":
            yield from (Target(name.replace("xN", f"x{n}")) for n in NS if n in {e.n for e in entries})
        elif group == "warp" or (group == "tcgen05" and op not in seen):
            yield Target(first.name)
        seen.add(op)


def targets() -> list[Target]:
    """All that ``texgen verify`` runs, each once."""
    return list(dict.fromkeys((*TILINGS, *COPIES, *KERNELS, *atoms())))


# One target ----------------------------------------------------------------------------------------------------------------


def verify(target: Target, backend: Callable[[Target], Backend], hopper: bool = True) -> dict[str, Any]:
    """The entry of one target. Never raises: what went wrong is the entry's reason."""
    digest = ""
    try:
        spec = target.spec()
        digest = spec_hash(spec)
        reason = target.cannot_run() if hopper else ""
        outcome = Outcome("skip", None, reason) if reason else check(spec, backend(target))
    except TexgenError as e:
        outcome = Outcome("skip" if digest else "fail", None, e.message)
    except Exception as e:
        outcome = Outcome("fail", None, f"{type(e).__name__}: {_first_line(str(e))}")
    return entry(target, digest, outcome)


def entry(target: Target, digest: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "target": str(target), "spec_hash": digest, "status": outcome.status, "mutation_caught": outcome.mutation_caught,
        "reason": outcome.reason,
    }  # fmt: skip


def _first_line(message: str) -> str:
    lines = [x.strip() for x in re.sub(r"\x1b\[[0-9;]*m", "", message).splitlines() if x.strip()]
    return " ".join(lines[:3])[:300]


def emulated(wanted: Sequence[Target]) -> list[dict[str, Any]]:
    """The entries through NumPy: no GPU, no DSL but for live objects."""
    return [verify(t, lambda _: Numpy(), hopper=False) for t in wanted]


# On a GPU ------------------------------------------------------------------------------------------------------------------


def executed(wanted: Sequence[Target], jobs: int = JOBS) -> list[dict[str, Any]]:
    """The entries from the GPU, in the order of ``wanted``."""
    found: dict[int, dict[str, Any]] = {}
    lanes = [list(range(i, len(wanted), jobs)) for i in range(min(jobs, len(wanted)))]
    threads = [threading.Thread(target=_lane, args=(wanted, lane, found)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(len(wanted))]


def _lane(wanted: Sequence[Target], todo: list[int], found: dict[int, dict[str, Any]]) -> None:
    """Run targets one after another in a child process; a new one after each death."""
    while todo:
        order = json.dumps([[i, asdict(wanted[i])] for i in todo])
        command = [sys.executable, "-m", "texgen.measure.verify", "--worker"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
        ) as child:
            assert child.stdin and child.stdout and child.stderr
            said: list[str] = []
            listener = threading.Thread(target=lambda: said.extend(child.stderr or ()))  # noqa: B023
            listener.start()
            limit = threading.Timer(SECONDS_A_TARGET * len(todo), child.kill)
            limit.start()
            child.stdin.write(order)
            child.stdin.close()
            for line in child.stdout:
                if line.startswith("{"):
                    answer = json.loads(line)
                    found[answer["i"]] = answer["entry"]
            child.wait()
            limit.cancel()
            listener.join()
        left = [i for i in todo if i not in found]
        if left and child.returncode:
            if child.returncode != RESTART:
                end = _first_line(" ".join(x.strip() for x in said[-3:]))
                found[left[0]] = entry(wanted[left[0]], "", Outcome("fail", None, f"its process ended with {child.returncode}: {end}"))
            left = [i for i in left if i not in found]
        elif left:
            for i in left:
                found[i] = entry(wanted[i], "", Outcome("fail", None, "its process ended without an answer"))
            left = []
        todo = left


RESTART = 75
"""How a worker ends after a failure of CUDA's, which would go on in its process."""


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def _worker() -> None:
    """Answer the targets of standard input, a JSON line each."""
    from texgen.measure.executed import Gpu
    from texgen.measure.ptx import PtxGpu

    for i, fields in json.load(sys.stdin):
        made = verify(Target(**fields), lambda t: PtxGpu() if t.is_ptx else Gpu(t.build))
        print(json.dumps({"i": i, "entry": made}), flush=True)
        if "CUDA" in made["reason"] or "cuda" in made["reason"]:
            os._exit(RESTART)
    os._exit(0)


# The file ------------------------------------------------------------------------------------------------------------------


def head() -> dict[str, Any]:
    """The head of the result file. Needs torch and a GPU."""
    from texgen.measure import provenance

    whole = provenance.header()
    return {k: whole[k] for k in ("schema", "gpu", "driver", "dsl", "torch", "date")}


def emulated_head() -> dict[str, Any]:
    """The head of a file that no GPU had a part in; it says so."""
    from texgen.measure import provenance

    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"schema": 1, "gpu": "none (emulated)", "driver": "none", "dsl": provenance.dsl_version(), "torch": "none", "date": now}


def save(result: dict[str, Any], folder: Path, name: str = "verify.json") -> Path:
    """Write ``FOLDER/<gpu>/NAME``, an entry of each list on a line."""
    from texgen.measure import provenance
    from texgen.render.files import write

    path = folder / provenance.folder_name(result["gpu"]) / name
    parts = []
    for key, value in result.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join("    " + json.dumps(e, ensure_ascii=False) for e in value) + "\n  ]"
        parts.append(f"  {json.dumps(key)}: {text}")
    return write(path, "{\n" + ",\n".join(parts) + "\n}\n")


def summary(entries: Sequence[dict[str, Any]]) -> list[str]:
    """A short table: what failed, why others were skipped, and the counts."""
    lines = [f"FAIL  {e['target']}: {e['reason']}" for e in entries if e["status"] == "fail"]
    skipped = Counter(e["reason"] for e in entries if e["status"] == "skip")
    lines += [f"skip  {n:3}  {reason}" for reason, n in skipped.items()]
    counts = Counter(e["status"] for e in entries)
    caught = sum(bool(e["mutation_caught"]) for e in entries)
    return [*lines, f"{counts['pass']} pass, every swap caught in {caught}; {counts['fail']} fail; {counts['skip']} skipped"]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m texgen.measure.verify", description="Execute figures.")
    parser.add_argument("targets", nargs="*", help="'NAME --atom-layout 2,2,1', module:callable, ... (default: all)")
    parser.add_argument("--emulate", action="store_true", help="through NumPy, without a GPU")
    parser.add_argument("-o", "--out", type=Path, help="the folder of result files, such as docs/results")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        _worker()
    return run([Target.parse(t) for t in options.targets] or targets(), options.emulate, options.out, options.jobs)


def run(wanted: Sequence[Target], emulate: bool, out: Path | None, jobs: int = JOBS, echo: Callable[[str], Any] = print) -> int:
    """Verify, write the file, print the table; 0 where nothing failed. TexgenError where there is no GPU to run on."""
    began = time.monotonic()
    if not emulate:
        try:
            import torch

            usable = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
        except ImportError:
            usable = False
        if not usable:
            raise TexgenError("texgen verify runs on a Hopper GPU through torch, and here is none: add --emulate for NumPy.")
    entries = emulated(wanted) if emulate else executed(wanted, jobs)
    for line in summary(entries):
        echo(line)
    if out is not None:
        echo(f"{save({**(emulated_head() if emulate else head()), 'entries': entries}, out)} in {time.monotonic() - began:.0f} s")
    return int(any(e["status"] == "fail" for e in entries))


if __name__ == "__main__":
    sys.exit(main())
