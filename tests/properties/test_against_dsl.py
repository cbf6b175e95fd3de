"""Our tables are the DSL's own evaluation: layouts, swizzled layouts, and what each thread of a tiled MMA holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies as some
from hypothesis import given, reject
from hypothesis import strategies as st

from texgen.checks import check
from texgen.errors import TexgenError
from texgen.layouts import ComposedLayout, Layout
from texgen.sources.atoms_dsl import op_arch
from texgen.sources.smem import layout_spec
from texgen.tiling import tile_mma

pytestmark = pytest.mark.dsl


class Dsl:
    """The DSL in a process of its own, which is started anew where it dies."""

    def __init__(self) -> None:
        self.process: Any = None

    def __call__(self, job: dict[str, Any]) -> Any:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, str(Path(__file__).with_name("dsl_eval.py"))]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "it died"}

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


@pytest.fixture(scope="module")
def dsl() -> Iterator[Dsl]:
    made = Dsl()
    yield made
    made.close()


@given(layout=some.layouts())
def test_layouts(dsl: Dsl, layout: Layout) -> None:
    assert dsl({"layout": [layout.shape, layout.stride]}) == layout.offsets().tolist()


@given(layout=some.composed())
def test_swizzled_layouts(dsl: Dsl, layout: ComposedLayout) -> None:
    inner, outer = layout.inner, layout.outer
    found = dsl({"layout": [outer.shape, outer.stride], "swizzle": [inner.bits, inner.base, inner.shift], "offset": layout.offset})
    ours = inner(outer.offsets() + layout.offset)
    assert found == ours.tolist()
    if outer.rank <= 2:
        assert layout_spec(layout, unit="elements").offsets.reshape(-1, order="F").tolist() == found


@given(made=some.tiled_mmas(4, live=True), data=st.data())
def test_tiled_mmas(dsl: Dsl, made: Any, data: st.DataObject) -> None:
    entry, atoms, tile = made
    try:
        spec = check(tile_mma(entry.atom(), atoms, tile))
    except TexgenError:
        reject()
    if any("smaller than" in w or "reaches" in w for w in spec.warnings):
        reject()  # where the DSL aliases what lies outside the tile, ours grows
    threads = [data.draw(st.integers(0, spec.threads - 1))]
    found = dsl({
        "build": entry.build, "arch": op_arch(entry.build["op"]), "atom_layout": [atoms.shape, atoms.stride], "threads": threads,
        "tile_mn": spec.tile_mnk[:2], "tile": tile and [[t.shape, t.stride] if isinstance(t, Layout) else t for t in tile],
    })  # fmt: skip
    assert "error" not in found, found
    for thread, places in zip(threads, found["partition_C"], strict=True):
        assert places == spec.C.tv[thread][found["values"]].tolist()
    for name, operand in spec.operands().items():
        table = Layout(*map(tuple_of, found[name])).table()
        if int(table.max()) < operand.cells:  # with atoms along k the DSL's layout of C runs out of the tile, its partition does not
            assert np.array_equal(table, operand.tv), name


def tuple_of(x: Any) -> Any:
    return tuple(map(tuple_of, x)) if isinstance(x, list) else x
