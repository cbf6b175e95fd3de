"""Run as a program: the installed DSL evaluates layouts and tiled MMAs, a JSON line out for each line in.

``{"layout": [shape, stride]}``, with ``"swizzle": [b, m, s]`` and ``"offset"`` for a composed one, gives the offset of every
coordinate in colexicographic order. ``{"build", "arch", "atom_layout", "tile", "tile_mn", "threads"}`` gives the layouts of
the tiled MMA as ``[shape, stride]`` and the positions in C that these threads get from ``partition_C`` as ``"values"``;
``{"error": …}`` is what the DSL refuses. A process of its own because the DSL can end it.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from typing import Any

from texgen.layouts import Layout
from texgen.sources import atoms_dsl

JOBS_A_CONTEXT = 200
SHOWN = 2
"""About how many values of a thread are evaluated, spread over all: one takes milliseconds."""


def tuples(x: Any) -> Any:
    return tuple(map(tuples, x)) if isinstance(x, list) else x


def offsets(job: dict[str, Any]) -> list[int]:
    import cutlass.cute as cute

    shape, stride = map(tuples, job["layout"])
    layout = cute.make_layout(shape, stride=stride)
    if "swizzle" in job:
        layout = cute.make_composed_layout(cute.make_swizzle(*job["swizzle"]), job["offset"], layout)
    return [int(layout(i)) for i in range(cute.size(layout))]


def tiled(job: dict[str, Any]) -> dict[str, Any]:
    import cutlass.cute as cute

    atoms_dsl.set_arch(job["arch"])
    tile = job["tile"] and [Layout(*map(tuples, t)) if isinstance(t, list) else t for t in job["tile"]]
    live = atoms_dsl.build_live(job["build"], Layout(*map(tuples, job["atom_layout"])), tile)
    m, n = job["tile_mn"]
    out: dict[str, Any] = {name: atoms_dsl._plain(getattr(live, f"tv_layout_{name}_tiled")) for name in "ABC"}
    parts = [live.get_slice(thread).partition_C(cute.make_identity_tensor((m, n))) for thread in job["threads"]]
    every = range(0, cute.size(parts[0]), max(1, cute.size(parts[0]) // SHOWN))
    out["values"] = list(every)
    out["partition_C"] = [[int(r) + m * int(c) for r, c in (part[i] for i in every)] for part in parts]
    return out


def main() -> None:
    warnings.simplefilter("ignore")
    while jobs := list(itertools.islice(sys.stdin, 1)):
        with atoms_dsl.tracing():  # a context grows with every object in it
            for line in itertools.chain(jobs, itertools.islice(sys.stdin, JOBS_A_CONTEXT)):
                job = json.loads(line)
                try:
                    out: Any = offsets(job) if "layout" in job else tiled(job)
                except Exception as error:
                    out = {"error": f"{type(error).__name__}: {error}"[:300]}
                print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
