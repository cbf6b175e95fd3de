"""The drawn marks are the table: labels and fills are read back out of TikZ and SVG and held against the spec."""

from __future__ import annotations

import numpy as np
import pytest
from readback import Drawn, from_svg, from_tikz

import texgen
from texgen.figures.labels import text_width
from texgen.figures.palette import PALETTES
from texgen.render.context import context
from texgen.specs import TVMap

F16 = "SM80_16x8x16_F32F16F16F32_TN"
TF32 = "SM80_16x8x8_F32TF32TF32F32_TN"
TARGETS = [
    (F16, {}),
    (F16, {"atom_layout": "2,2,1", "tile": "32,32,16"}),
    (F16, {"atom_layout": "4,1,1", "val_layout": "1,2,1"}),
    (F16, {"atom_layout": "2,2,1", "tile": "(32,(8,2,2):(1,16,8),16)"}),
    (TF32, {"atom_layout": "2,4,1", "tile": "32,64,8"}),
    ("SM70_8x8x4_F32F16F16F32_NT", {"atom_layout": "(2,2,1):(2,1,0)", "tile": "((4,4,2):(1,8,4),32,4)"}),
    ("SM70_8x8x4_F32F16F16F32_TN", {}),
    ("SM80_8x8x4_F64F64F64F64_TN", {"atom_layout": "1,4,1"}),
    ("SM90_64x16x16_F32F16F16_RS", {}),
    ("SM75_U32x4_LDSM_N", {}),
    ("SM75_U16x8_LDSM_T", {}),
]


def both(drawing) -> list[dict[str, Drawn]]:
    return [from_tikz(drawing.tikz()), from_svg(drawing.svg(), drawing.figure.aspect)]


def owners_by_cell(operand: TVMap) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Every owner of every cell straight from the table, by a plain loop."""
    rows = operand.tile[0]
    cells: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for t, values in enumerate(operand.tv.tolist()):
        for v, index in enumerate(values):
            cells.setdefault((index % rows, index // rows), []).append((t, v))
    return cells


def expected_label(owners: list[tuple[int, int]]) -> list[str]:
    """One owner ``T5``/``V2``, two ``T0 T64``/``V0``, more ``T0 +3``/``V0``; pairs where the values differ."""
    (t, v), same = owners[0], len({v for _, v in owners}) == 1
    if len(owners) == 1:
        return [f"T{t}", f"V{v}"]
    if same:
        return [f"T{t} T{owners[1][0]}" if len(owners) == 2 else f"T{t} +{len(owners) - 1}", f"V{v}"]
    return [f"T{t}V{v}", f"T{owners[1][0]}V{owners[1][1]}" if len(owners) == 2 else f"+{len(owners) - 1}"]


@pytest.mark.parametrize(("target", "options"), TARGETS, ids=lambda x: str(x)[:60])
def test_every_cell_shows_its_owners(target, options):
    drawing = texgen.figure(target, **options)
    colors = len(PALETTES["default"])
    for panels in both(drawing):
        for name, operand in drawing.spec.operands().items():
            if operand.memory == "smem" and drawing.spec.kind == "mma":
                assert not panels[name].labels and set(panels[name].fills.values()) == {"Memory"}
                continue
            transposed = name == "B"
            cells = owners_by_cell(operand)
            height, width = operand.tile[::-1] if transposed else operand.tile
            assert set(panels[name].fills) == {(r, c) for r in range(height) for c in range(width)}
            one_value = operand.values == 1 and max(map(len, cells.values())) == 1
            for (row, column), owners in cells.items():
                at = (column, row) if transposed else (row, column)
                label = expected_label(owners)
                assert panels[name].labels[at] == (label[:1] if one_value else label)
                assert panels[name].fills[at] == str(owners[0][0] % colors)
                assert (at in panels[name].shared) == (len(owners) > 1)


def test_every_thread_of_a_shared_operand_is_drawn():
    """Case V01: all 128 threads appear in each of A, B and C of the 2x2x1 tiling."""
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16")
    for panels in both(drawing):
        for name in "ABC":
            named = {word for label in panels[name].labels.values() for word in label[0].split()}
            assert named == {f"T{t}" for t in range(128)}


@pytest.mark.parametrize("by", ["thread", "value", "warp", "quad"])
def test_color_by(by):
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16", color_by=by)
    key = {
        "thread": lambda t, v: t,
        "value": lambda t, v: v,
        "warp": lambda t, v: t // 32,
        "quad": lambda t, v: t // 4,
    }[by]
    for panels in both(drawing):
        for (row, column), owners in owners_by_cell(drawing.spec.C).items():
            assert panels["C"].fills[row, column] == str(key(*owners[0]) % 8)


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("T5", lambda t, v: t == 5),
        ("T5,T37", lambda t, v: t in (5, 37)),
        ("V0", lambda t, v: v == 0),
        ("T64V2", lambda t, v: (t, v) == (64, 2)),
        ("T0-T3", lambda t, v: t < 4),
        ("W1", lambda t, v: 32 <= t < 64),
        ("Q3 V1", lambda t, v: 12 <= t < 16 or v == 1),
    ],
)
def test_highlight_greys_out_the_rest(text, keeps):
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16", highlight=text)
    for panels in both(drawing):
        for name, operand in drawing.spec.operands().items():
            for (row, column), owners in owners_by_cell(operand).items():
                at = (column, row) if name == "B" else (row, column)
                kept = [o for o in owners if keeps(*o)]
                assert (panels[name].fills[at] != "Dim") == bool(kept)
                assert (at in panels[name].dim) == (not kept)
                if kept:  # a highlighted owner is the one that is named
                    assert panels[name].labels[at][0].startswith(f"T{kept[0][0]}")


def test_crop_draws_the_cells_named_and_no_others():
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="32,32,16", operand="C", rows="8:12", cols="16:18,30")
    cells = owners_by_cell(drawing.spec.C)
    for panels in both(drawing):
        assert set(panels) == {"C"}
        assert set(panels["C"].labels) == {(r, c) for r in range(4) for c in range(3)}
        for (r, c), label in panels["C"].labels.items():
            assert label == expected_label(cells[8 + r, [16, 17, 30][c]])
    assert drawing.figure.panels[0].rows.tolist() == [8, 9, 10, 11]


def test_layout_offsets_and_swizzle():
    plain = texgen.figure("((2,4),(4,2)):((1,8),(2,32))")
    offsets = plain.spec.offsets
    for panels in both(plain):
        assert {at: label for at, (label,) in panels["offsets"].labels.items()} == {
            (r, c): str(offsets[r, c]) for r, c in np.ndindex(offsets.shape)
        }
    swizzled = texgen.figure("S<3,4,3> o 0 o (8,64):(64,1)", dtype="f16")
    for panels in both(swizzled):
        assert panels["before"].labels[1, 0] == ["64"] and panels["after"].labels[1, 0] == ["72"]
        for r in range(8):
            for j in range(8):  # 16-byte chunk j of row r sits in chunk j xor r
                assert panels["after"].fills[r, 8 * j] == str(j ^ r)


def test_overview_outlines_the_warps():
    drawing = texgen.figure(F16, atom_layout="2,2,1", tile="128,128,16", overview=True)
    warp = np.empty((128, 128), dtype=int)
    for (row, column), owners in owners_by_cell(drawing.spec.C).items():
        warp[row, column] = owners[0][0] // 32
    for panels in both(drawing):
        seen = np.zeros((128, 128), dtype=int)
        for r, c, h, w in panels["C"].blocks:
            seen[r : r + h, c : c + w] += 1
            assert len(set(warp[r : r + h, c : c + w].flat)) == 1
        assert (seen == 1).all()
        assert panels["Cdetail"].labels[0, 0] == ["T0", "V0"]


@pytest.mark.parametrize(("target", "options", "detail"), [
    ("SM90_64x64x16_F32F16F16_SS", {}, (16, 32)),  # an atom of four warps
    ("SM80_16x8x64_S32S4S4S32_TN", {"operand": "A"}, (16, 32)),
    (F16, {"atom_layout": "2,2,1", "tile": "64,64,16", "rows": "16:48", "cols": "8:64"}, (16, 8)),
])  # fmt: skip
def test_overview_outlines_the_cells_that_it_draws_in_full(target, options, detail):
    """Whose cells they are is what the panel says; the outline crosses no name."""
    drawing = texgen.figure(target, overview=True, **options)
    *_, panel, full = drawing.figure.panels
    (outline,) = (b for b in panel.blocks if b.strong)
    assert (outline.row, outline.column, outline.height, outline.width) == (0, 0, *detail) == (0, 0, *full.fill.shape)
    assert full.rows.tolist() == panel.rows[: detail[0]].tolist() and full.columns.tolist() == panel.columns[: detail[1]].tolist()
    for panels in both(drawing):
        for row, column in np.ndindex(detail):
            who = next(b.name for b in panel.blocks if b.row <= row < b.row + b.height and b.column <= column < b.column + b.width)
            thread = int(panels[full.key].labels[row, column][0][1:])
            assert who == (f"W{thread // 32}" if drawing.spec.threads > 32 else f"Q{thread // 4}")
    made = next(p for p in context(drawing.figure)["panels"] if p["key"] == panel.key)
    size = made["text_size"] / drawing.figure.aspect
    for b in made["blocks"]:
        half = text_width(b["name"]) * b["size"] * size / 2
        beside = b["x"] + half < detail[1] or b["x"] - half > detail[1]
        assert beside or not b["size"] or b["y"] > detail[0] + made["text_size"] * b["size"] / 2


def test_large_tiles_fall_back_to_warp_labels():
    drawing = texgen.figure(F16, atom_layout="4,2,1", tile="256,256,16", operand="C")
    for panels in both(drawing):
        assert not panels["C"].labels and panels["C"].blocks
    names = {b.name for b in drawing.figure.panels[0].blocks}
    assert names == {f"W{i}" for i in range(8)}


def test_the_same_bytes_every_time():
    first, second = (texgen.figure(F16, atom_layout="2,2,1") for _ in range(2))
    for form in ("tikz", "tex", "svg", "text", "json"):
        assert getattr(first, form)() == getattr(second, form)()


def test_cells_can_differ_in_their_owners_values():
    """Two owners that hold a cell as different values are written as pairs."""
    table = {"tile": [2, 2], "tv": [[0, 1, 2, 3], [1, 0, 3, 2]]}
    for panels in both(texgen.figure(table)):
        assert panels["TV"].labels == {
            (0, 0): ["T0V0", "T1V1"], (1, 0): ["T0V1", "T1V0"], (0, 1): ["T0V2", "T1V3"], (1, 1): ["T0V3", "T1V2"],
        }  # fmt: skip


@pytest.mark.parametrize(("target", "fits"), [("SM90_64x256x8_F32TF32TF32_SS_TN", False), ("SM90_64x64x16_F32F16F16_SS", True)])
def test_a_note_is_within_its_panel(target, fits):
    """The words across an operand in memory are no wider than it, smaller where the longest is."""
    drawing = texgen.figure(target)
    made = {p["key"]: p for p in context(drawing.figure)["panels"]}
    for panel in (p for p in drawing.figure.panels if p.note):
        p = made[panel.key]
        wide = max(text_width(text) for text, _ in p["note_lines"]) * p["text_size"]
        assert " ".join(text for text, _ in p["note_lines"]) == panel.note
        assert wide * p["note_size"] <= panel.width * drawing.figure.aspect
        assert (panel.key != "A" or fits) == (p["note_size"] == 1) == (wide <= panel.width * drawing.figure.aspect)
