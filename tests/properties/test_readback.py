"""A figure's marks, read back out of TikZ and SVG, are the table it was drawn from."""

from __future__ import annotations

import re

import numpy as np
import strategies as some
from hypothesis import given, reject
from hypothesis import strategies as st
from readback import from_svg, from_tikz
from test_drawn import expected_label, owners_by_cell

from texgen.api import Drawing
from texgen.errors import TexgenError, UsageError
from texgen.figures import FigureOptions
from texgen.figures.palette import PALETTES
from texgen.sources.smem import layout_spec
from texgen.tiling import tile_mma


def both(drawing: Drawing) -> list:
    return [from_tikz(drawing.tikz()), from_svg(drawing.svg(), drawing.figure.aspect)]


def check_operand(panel, operand, options: FigureOptions, transposed: bool, warp: int = 32) -> None:
    """Every cell's label and fill, and of a table without shared cells every entry."""
    cells = owners_by_cell(operand)
    picks = some_picks(options.highlight)
    colors = len(PALETTES[options.palette])
    one_line = operand.values == 1 and max(map(len, cells.values())) == 1
    assert set(panel.fills) == {(c, r) if transposed else (r, c) for r, c in cells}
    mixed = any(len({v for _, v in owners}) > 1 for owners in cells.values())  # one cell so, and all are written as pairs
    read = np.full(operand.tv.shape, -1)
    for (row, column), owners in cells.items():
        at = (column, row) if transposed else (row, column)
        kept = [o for o in owners if any(o[0] in t and o[1] in v for t, v in picks)] if picks else owners
        if not kept:
            assert panel.fills[at] == "Dim" and at in panel.dim
        else:
            thread, value = owners[0]
            key = value if options.color_by == "value" else thread // {"warp": warp, "quad": 4}.get(options.color_by, 1)
            assert panel.fills[at] == str(key % colors)
        label = panel.labels[at]
        if not picks or len(owners) == 1:
            assert label == (expected_label(owners)[:1] if one_line else pairs(owners) if mixed else expected_label(owners))
        elif kept:
            assert label[0].startswith(f"T{kept[0][0]}")
        assert (at in panel.shared) == (len(owners) > 1)
        if len(owners) == 1:
            read[int(label[0][1:]), 0 if one_line else int(label[1][1:])] = row + operand.tile[0] * column
    if operand.cells == operand.tv.size:
        assert np.array_equal(read, operand.tv)


def pairs(owners: list[tuple[int, int]]) -> list[str]:
    first, *rest = (f"T{t}V{v}" for t, v in owners)
    return [first, rest[0] if len(rest) == 1 else f"+{len(rest)}"] if rest else [first]


def some_picks(highlight: str) -> list[tuple[range, range]]:
    out = []
    for part in filter(None, highlight.split(",")):
        t0, t1, v = re.fullmatch(r"(?:T(\d+)(?:-T(\d+))?)?(?:V(\d+))?", part).groups()
        threads = range(int(t0), int(t1 or t0) + 1) if t0 else range(10**6)
        out.append((threads, range(int(v), int(v) + 1) if v else range(10**6)))
    return out


@given(some.tv_tables(), st.data())
def test_tables(spec, data) -> None:
    options = data.draw(some.figure_options(spec.threads, spec.map.values))
    for panels in both(Drawing(spec, options)):
        check_operand(panels["TV"], spec.map, options, transposed=False)


def lanes(entry) -> int:
    """Threads of a warp: an atom of AMD's and of Intel's GPUs is one warp's."""
    return entry.line["thr"][0] if entry.arch.startswith(("gfx", "Xe")) else 32


@given(some.tiled_mmas(2, 1), st.data())
def test_tiled_mmas(made, data) -> None:
    entry, atoms, tile = made
    try:
        spec = tile_mma(entry.atom(), atoms, tile)
    except TexgenError:
        reject()
    letter = data.draw(st.sampled_from("ABC"))
    operand = spec.operands()[letter]
    if operand.cells > 256 or operand.tv.size > 1024 or operand.memory != "rmem" or len(set(operand.owner_counts.flat)) != 1:
        reject()
    options = data.draw(some.figure_options(operand.threads, operand.values))
    options = FigureOptions(**{**vars(options), "operand": letter, "label": "full"})
    for panels in both(Drawing(spec, options)):
        check_operand(panels[letter], operand, options, letter == "B", lanes(entry))


@given(some.layouts(48) | some.composed(48), st.data())
def test_layouts(layout, data) -> None:
    try:
        spec = layout_spec(layout, unit="elements")
    except TexgenError:
        assert layout.rank > 2
        reject()
    rows, columns = (data.draw(st.lists(st.integers(0, n - 1), max_size=3)) for n in spec.offsets.shape)
    options = FigureOptions(rows=",".join(map(str, rows)), cols=",".join(map(str, columns)), label="full")
    at = np.ix_(sorted(set(rows)) or range(spec.offsets.shape[0]), sorted(set(columns)) or range(spec.offsets.shape[1]))
    tables = {"offsets": spec.offsets} if spec.plain is None else {"before": spec.plain, "after": spec.offsets}
    for panels in both(Drawing(spec, options)):
        assert set(panels) == set(tables)
        for name, table in tables.items():
            shown = table[at]
            assert panels[name].labels == {(r, c): [str(shown[r, c])] for r, c in np.ndindex(shown.shape)}


@given(some.layout_specs(), some.figure_options(1, 1))
def test_tables_of_offsets(spec, options) -> None:
    if options.highlight or options.color_by:
        try:
            Drawing(spec, options)
        except UsageError:
            reject()
    for panels in both(Drawing(spec, options)):
        panel = panels.get("after") or panels["offsets"]
        for r, c in np.ndindex(spec.offsets.shape):
            shown = [x[r, c] for x in spec.coords]
            assert panel.labels[r, c] == ([f"({','.join(map(str, shown))})"] if shown else [str(spec.offsets[r, c])])
