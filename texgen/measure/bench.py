"""``python -m texgen.measure.bench --out DIR``: times the kernels beside torch and writes ``DIR/<gpu>/bench.json``.

Every kernel is first checked: fresh random input, an output poisoned with NaN, the error against float64 under a bound
tied to dtype and K. Then ours and torch's calls are captured in CUDA graphs over the same sets of inputs, together several
times the L2, and replayed in turns, each after settling at the clocks that its own work leaves it. All samples are kept;
a ratio is torch's median time over ours.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.kernels import KERNELS
from texgen.measure import provenance

SAMPLES = 20
SAMPLE_SECONDS = 0.01
"""A sample repeats its call until it has lasted about this long, and is divided by the count."""
TURNS, SETTLE_SECONDS = 4, 0.3

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One measurement: a kernel, its extents, and how A and B lie (``"k"``: contiguous along K, ``"mn"``: along M or N)."""

    kernel: str
    m: int
    n: int = 1
    k: int = 1
    majors: tuple[str, str] = ("k", "k")
    options: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("vector_add", 1 << 28),
    Case("vector_add", (1 << 24) + 3),
    Case("sgemm_naive", 4096, 4096, 4096, ("k", "mn")),
    Case("sgemm_tiled", 4096, 4096, 4096, ("k", "mn")),
    Case("sgemm_pipelined", 4096, 4096, 4096, ("k", "mn")),
    Case("sgemm_naive", 4096, 4096, 4096, ("mn", "mn")),
    Case("sgemm_tiled", 4096, 4096, 4096, ("mn", "mn")),
    Case("sgemm_pipelined", 4096, 4096, 4096, ("mn", "mn")),
    Case("sgemm_pipelined", 4096, 4096, 4096, ("k", "k")),
    Case("sgemm_pipelined", 2048, 2048, 2048, ("mn", "mn")),
    Case("sgemm_pipelined", 1000, 1000, 1000, ("k", "mn")),
    Case("hgemm_sm80", 4096, 4096, 4096),
    Case("hgemm_sm80", 4096, 4096, 4096, ("k", "mn")),
    Case("hgemm_sm80", 8192, 8192, 8192),
    Case("hgemm_sm90", 4096, 4096, 4096),
    Case("hgemm_sm90", 8192, 8192, 8192),
    Case("hgemm_sm90", 8192, 8192, 8192, ("k", "mn")),
)

SCALARS = (1.5, -0.75, 0.125)


def tolerance(dtype: str, k: int) -> float:
    """The largest accepted ‖out − float64‖ / ‖float64‖: float32 sums of k products, and a rounding of the result.

    Normal random data; the error of a float32 sum of k terms grows like its square root.
    """
    sums = 2.0**-24 * math.sqrt(k) * 2
    rounding = {"float32": 2.0**-24, "float16": 2.0**-11}[dtype]
    if k == 1:  # element by element
        return 2 * rounding
    return sums if dtype == "float32" else sums + rounding


def flops(m: int, n: int, k: int) -> int:
    """Operations of a product, a fused multiply-add counted as two."""
    return 2 * m * n * k


# Inputs ------------------------------------------------------------------------------------------------------------------


def operand(rows: int, k: int, major: str, dtype: Any) -> Any:
    """A normal random (rows, k) matrix on the GPU, contiguous along K or along its rows."""
    import torch

    if major == "k":
        return torch.randn((rows, k), dtype=dtype, device="cuda")
    return torch.randn((k, rows), dtype=dtype, device="cuda").T


def inputs(case: Case) -> tuple[Any, ...]:
    """(A, B, C) or (x, y, z), the output poisoned."""
    import torch

    dtype = getattr(torch, KERNELS[case.kernel].dtype)
    if case.kernel == "vector_add":
        x, y = (torch.randn(case.m, dtype=dtype, device="cuda") for _ in range(2))
        return x, y, torch.full_like(x, math.nan)
    a, b = operand(case.m, case.k, case.majors[0], dtype), operand(case.n, case.k, case.majors[1], dtype)
    return a, b, torch.full((case.m, case.n), math.nan, dtype=dtype, device="cuda")


def ours(case: Case, data: tuple[Any, ...]) -> Call:
    """Our kernel over one set of inputs: a function of no arguments."""
    kernel = KERNELS[case.kernel]
    module = kernel.load()
    left, right, out = data
    if case.kernel == "vector_add":
        return module.prepare(left, right, *SCALARS, out)[0]  # type: ignore[no-any-return]
    options = dict(case.options, step=kernel.step) if kernel.step else case.options
    return module.prepare(left, right, out, **options)[0]  # type: ignore[no-any-return]


def theirs(case: Case, data: tuple[Any, ...]) -> Call:
    """torch's call over the same inputs and another output."""
    import torch

    left, right, _ = data
    if case.kernel == "vector_add":
        out, part = torch.empty_like(left), torch.empty_like(left)
        a, b, c = SCALARS

        def call() -> None:
            torch.mul(left, a, out=part)
            torch.add(part, right, alpha=b, out=part)
            torch.add(part, c, out=out)

        return call
    out = torch.empty((case.m, case.n), dtype=left.dtype, device="cuda")
    return lambda: torch.mm(left, right.T, out=out)


def copying(data: tuple[Any, ...]) -> Call:
    """A device-to-device copy of x."""
    import torch

    out = torch.empty_like(data[0])
    return lambda: out.copy_(data[0])


# Checking ----------------------------------------------------------------------------------------------------------------


def relative_error(out: Any, reference: Any) -> tuple[float, float]:
    """(‖out − reference‖ / ‖reference‖, max |out − reference|) in float64; NaN anywhere gives infinity."""
    import torch

    difference = out.double() - reference
    if not bool(torch.isfinite(difference).all()):
        return math.inf, math.inf
    return float(difference.norm() / reference.norm()), float(difference.abs().max())


def check(case: Case) -> dict[str, Any]:
    """Run once on fresh random input with a poisoned output; the error and its bound."""
    import torch

    kernel = KERNELS[case.kernel]
    data = inputs(case)
    ours(case, data)()
    torch.cuda.synchronize()
    reference = kernel.load().reference
    exact = reference(data[0], data[1], *SCALARS) if case.kernel == "vector_add" else reference(data[0], data[1])
    relative, largest = relative_error(data[2], exact.double())
    bound = tolerance(kernel.dtype, case.k)
    return {"error": relative, "max_abs_error": largest, "tolerance": bound, "correct": relative <= bound}


# Timing ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repeated:
    """Calls to time: a CUDA graph of them, or, where ``graph`` is None, the calls one after another."""

    graph: Any
    calls: Sequence[Call]
    rounds: int

    def once(self) -> None:
        """All of it, on the current stream."""
        if self.graph is not None:
            self.graph.replay()
        else:
            for _ in range(self.rounds):
                for call in self.calls:
                    call()

    def seconds(self) -> float:
        """Seconds a call, by the device's events."""
        import torch

        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        self.once()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / (self.rounds * len(self.calls))


def repeated(calls: Sequence[Call], rounds: int, graph: bool = True) -> Repeated:
    """``rounds`` times all the calls, captured in a graph or not."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    if not graph:
        return Repeated(None, calls, rounds)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(rounds):
            for call in calls:
                call()
    return Repeated(captured, calls, rounds)


Times = dict[str, list[float]]
States = dict[str, dict[str, Any]]


def time_in_turns(groups: Mapping[str, Sequence[Call]], samples: int = SAMPLES) -> tuple[Times, States]:
    """Seconds a call for each group of calls, ``samples`` of them, taken in ``TURNS`` turns; clocks and power meanwhile.

    Every turn begins with ``SETTLE_SECONDS`` of the same work: a GPU at its power limit lowers its clocks to what the
    work draws, and a sample must not live on what the other group left over. The group ``copy`` is not put into a
    graph, where a large memory copy takes a slower path.
    """
    work = {}
    for name, calls in groups.items():
        trial = repeated(calls, 1, graph=name != "copy")
        trial.seconds()
        seconds = min(trial.seconds() for _ in range(3)) * len(calls)
        work[name] = repeated(calls, max(1, min(200, round(SAMPLE_SECONDS / seconds))), graph=name != "copy")
    times: Times = {name: [] for name in groups}
    states: States = {}
    for turn in range(TURNS):
        for name, one in work.items():
            begin = time.monotonic()
            while time.monotonic() - begin < SETTLE_SECONDS:
                one.seconds()
            count = samples * (turn + 1) // TURNS - samples * turn // TURNS
            times[name] += [one.seconds() for _ in range(count)]
            if turn == TURNS - 1:
                states[name] = state_during(one)
    return times, states


def state_during(work: Repeated) -> dict[str, Any]:
    """Clock and power as nvidia-smi sees them while the work runs."""
    import torch

    for _ in range(max(1, min(40, round(0.2 / (work.seconds() * work.rounds * len(work.calls)))))):
        work.once()
    state = provenance.device_state()
    torch.cuda.synchronize()
    return {k: state[k] for k in ("sm_mhz", "power_w") if k in state}


def sets_needed(data: tuple[Any, ...], l2_bytes: int) -> int:
    """How many sets of inputs lie several times past the L2."""
    size: int = sum(t.numel() * t.element_size() for t in data)
    return max(2, min(16, math.ceil(4 * l2_bytes / size)))


def measure(case: Case, samples: int = SAMPLES) -> dict[str, Any]:
    """One entry of ``bench.json``."""
    import torch

    kernel = KERNELS[case.kernel]
    found = check(case)
    first = inputs(case)
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = [first, *(inputs(case) for _ in range(sets_needed(first, l2) - 1))]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    groups = {"ours": [ours(case, d) for d in sets], "torch": [theirs(case, d) for d in sets]}
    if case.kernel == "vector_add":
        groups["copy"] = groups["copy in a graph"] = [copying(d) for d in sets]
    times, states = time_in_turns(groups, samples)
    if kernel.dtype == "float32":
        torch.backends.cuda.matmul.allow_tf32 = True
        times["torch_tf32"] = time_in_turns({"torch": groups["torch"]}, samples)[0]["torch"]
        torch.backends.cuda.matmul.allow_tf32 = False
    median = {name: statistics.median(t) for name, t in times.items()}
    low, high = min(times["ours"]), max(times["ours"])
    entry: dict[str, Any] = {
        "kernel": case.kernel,
        "m": case.m,
        "n": case.n,
        "k": case.k,
        "dtype": kernel.dtype,
        "layout": layout_text(case),
        "samples_s": times["ours"],
        "median_s": median["ours"],
        "spread": (high - low) / median["ours"],
        "torch_samples_s": times["torch"],
        "torch_median_s": median["torch"],
        "torch_precision": "float32 (TF32 off)" if kernel.dtype == "float32" else "float16, float32 sums",
        "ratio_to_torch": median["torch"] / median["ours"],
        **found,
        "input_sets": len(sets),
        "clocks": {name: states[name] for name in ("ours", "torch")},
        "source_hash": provenance.source_hash(case.kernel),
    }
    if case.kernel == "vector_add":
        moved, copied = 6 * case.m, 4 * case.m
        copy = min(median["copy"], median["copy in a graph"])
        entry["torch_precision"] = "float16, three calls"
        entry["bytes_per_s"] = moved / median["ours"]
        entry["copy_bytes_per_s"] = copied / copy
        entry["ratio_to_copy"] = entry["bytes_per_s"] / entry["copy_bytes_per_s"]
    else:
        entry["flop_per_s"] = flops(case.m, case.n, case.k) / median["ours"]
    if "torch_tf32" in median:
        entry["torch_tf32_median_s"] = median["torch_tf32"]
        entry["ratio_to_torch_tf32"] = median["torch_tf32"] / median["ours"]
    return entry


def layout_text(case: Case) -> str:
    """How the operands lie, in words."""
    if case.kernel == "vector_add":
        return "contiguous"
    names = {"k": "K", "mn": None}
    return f"A {names[case.majors[0]] or 'M'}-major, B {names[case.majors[1]] or 'N'}-major, C N-major"


# The run -----------------------------------------------------------------------------------------------------------------


def bench(
    cases: Sequence[Case] = CASES, samples: int = SAMPLES, progress: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Run the cases on this machine's GPU; the content of ``bench.json``. Raises TexgenError where there is none."""
    try:
        import torch
    except ImportError:
        raise TexgenError("bench needs torch: pip install '.[gpu]'") from None
    if not torch.cuda.is_available():
        raise TexgenError("bench needs a CUDA device, and torch sees none")
    from texgen.kernels import common

    arch = common.device_arch()
    result = provenance.header()
    result["entries"], result["skipped"] = [], []
    begin = time.monotonic()
    for case in cases:
        if "sm_90a" in KERNELS[case.kernel].architectures[:1] and arch != "sm_90a":
            result["skipped"].append({"kernel": case.kernel, "reason": f"made for sm_90a; this GPU is {arch}"})
            continue
        torch.manual_seed(time.time_ns() % 2**31)
        entry = measure(case, samples)
        result["entries"].append(entry)
        torch.cuda.empty_cache()
        if progress:
            progress(f"{time.monotonic() - begin:6.1f} s  {row(entry)}")
    state = provenance.device_state()
    state.pop("driver", None)
    result["clocks"]["after"] = state
    return result


HEADER = f"{'kernel':<16} {'M':>10} {'N':>6} {'K':>6}  {'ours us':>9} {'torch us':>9} {'ratio':>6} {'error':>9}  layout"


def row(entry: dict[str, Any]) -> str:
    """An entry as a line of the table."""
    return (
        f"{entry['kernel']:<16} {entry['m']:>10} {entry['n']:>6} {entry['k']:>6}  {entry['median_s'] * 1e6:>9.1f} "
        f"{entry['torch_median_s'] * 1e6:>9.1f} {entry['ratio_to_torch']:>6.3f} {entry['error']:>9.2e}"
        f"{'' if entry['correct'] else ' WRONG'}  {entry['layout']}"
        + (f"  (to copy {entry['ratio_to_copy']:.3f})" if "ratio_to_copy" in entry else "")
        + (f"  (to TF32 {entry['ratio_to_torch_tf32']:.3f})" if "ratio_to_torch_tf32" in entry else "")
    )


def table(result: dict[str, Any]) -> Iterator[str]:
    """A result as lines of text."""
    yield f"{result['gpu']}, driver {result['driver']}, DSL {result['dsl']}, torch {result['torch']}, {result['date']}"
    yield HEADER
    yield from (row(entry) for entry in result["entries"])
    yield from (f"{skip['kernel']:<16} skipped: {skip['reason']}" for skip in result["skipped"])


def save(result: dict[str, Any], out: Path) -> Path:
    """Write ``out/<gpu>/bench.json``, whole or not at all."""
    from texgen.render.files import write

    return write(out / provenance.folder_name(result["gpu"]) / "bench.json", json.dumps(result, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. 0: all correct; 1: a kernel was wrong, or there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m texgen.measure.bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("docs/results"), help="folder of result folders (default: docs/results)"
    )
    parser.add_argument("--only", default="", help="only kernels whose name begins so")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="samples a measurement")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if case.kernel.startswith(options.only)]
    try:
        result = bench(cases, options.samples, progress=lambda line: print(line, flush=True))
        path = save(result, options.out)
    except TexgenError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\nwrote {path}")
    print("\n".join(table(result)))
    return 0 if all(entry["correct"] for entry in result["entries"]) else 1


if __name__ == "__main__":
    sys.exit(main())
