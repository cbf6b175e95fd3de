"""Run as a program: builds MMAs in the installed DSL and prints their layouts as JSON lines, one for each line read.

A line read is ``{"build", "arch", "atom_layout", "tile"}``; layouts are ``[shape, stride]``. With ``"threads"`` the
places in C that these threads hold come too, from ``partition_C``; with ``"atom"`` it is the atom's own layouts alone.
A process of its own because the DSL can end it.
"""

from __future__ import annotations

import json
import sys
import warnings

from texgen.layouts import Layout
from texgen.sources import atoms_dsl


def tuples(x):
    return tuple(map(tuples, x)) if isinstance(x, list) else x


def layout(x):
    return Layout(*map(tuples, x)) if isinstance(x, list) else x


def places(live, thread, m, n):
    import cutlass.cute as cute

    part = live.get_slice(thread).partition_C(cute.make_identity_tensor((m, n)))
    pairs = (part[i] for i in range(cute.size(part)))
    return [int(row) + m * int(column) for row, column in pairs]


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        atoms_dsl.set_arch(job["arch"])
        with atoms_dsl.tracing():
            if job.get("atom"):
                print(json.dumps(atoms_dsl.read_mma(job["build"])), flush=True)
                continue
            tile = job["tile"] and [layout(t) for t in job["tile"]]
            live = atoms_dsl.build_live(job["build"], layout(job["atom_layout"]), tile)
            if "copy" in job["build"]:
                out = {"S": live.layout_src_tv, "D": live.layout_dst_tv}
                out = {k: atoms_dsl._plain(v) for k, v in out.items()}
            else:
                out = {k: atoms_dsl._plain(getattr(live, f"tv_layout_{k}_tiled")) for k in "ABC"}
                out["thr_layout_vmnk"] = atoms_dsl._plain(live.thr_layout_vmnk)
                out["tile"] = [live.get_tile_size(i) for i in range(3)]
                if "threads" in job:
                    out["partition_C"] = [places(live, t, *out["tile"][:2]) for t in job["threads"]]
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
