"""The index of a printed layout: what captions, exercises and interactive figures say of it against tensor-layouts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import texgen
from texgen.words import index_formula, index_table, role

ROWS_FIRST = ["SM75_U32x1_LDSM_N", "SM75_U32x4_LDSM_N", "SM75_U16x8_LDSM_T", "SM90_U32x4_STSM_N", "SM90_U16x4_STSM_T", "SM100_U8x16_LDSM_T"]
COLUMNS_FIRST: list[tuple[str, dict[str, Any]]] = [
    ("SM75_U32x4_LDSM_N", {"atom_layout": "(16,2):(1,16)", "val_layout": "2,4"}),
    ("SM80_CP_ASYNC_CACHEALWAYS", {"atom_layout": "(16,8):(8,1)", "val_layout": "1,8", "dtype": "f16"}),
    ("SM80_16x8x16_F32F16F16F32_TN", {}),
    ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8"}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "reading", "by_rows"), [*((x, {}, True) for x in ROWS_FIRST), *((*x, False) for x in COLUMNS_FIRST)])
def test_the_index_is_that_of_the_layout_as_it_is_printed(target, reading, by_rows):
    import tensor_layouts as tl

    spec = texgen.read(target, **reading)
    for operand in spec.operands().values():
        shape, strides = (eval(part, {}) for part in operand.layout.split(":"))
        layout = tl.Layout(shape, strides)
        printed = [[int(layout(t, v)) for v in range(operand.values)] for t in range(operand.threads)]
        rows, columns = operand.tile
        row, column = operand.coordinates()
        own = row * columns + column if by_rows else row + rows * column
        assert own.tolist() == printed == index_table(operand).tolist()
        formula = index_formula(operand, ("m", "n"))
        assert formula == (f"{columns}·m + n" if by_rows else f"m + {rows}·n")


@pytest.mark.parametrize("target", ROWS_FIRST)
def test_a_caption_names_the_index_and_its_rule_gives_the_cells(target):
    text = "\n".join(line.text for line in texgen.figure(target).figure.lines)
    spec = texgen.read(target)
    found = re.findall(r"T, V → index (\d+)·m \+ n \(row by row\):\s+m = (.*?),\s+n = (.*)", text)
    assert len(found) == 2
    for (length, *rules), operand in zip(found, spec.operands().values(), strict=True):
        assert int(length) == operand.tile[1]
        for t in range(operand.threads):
            for v in range(operand.values):
                assert [eval(rule, {"T": t, "V": v}) for rule in rules] == [int(x[t, v]) for x in operand.coordinates()]


@pytest.mark.parametrize(("target", "does"), [
    ("SM75_U32x4_LDSM_N", ("addresses", "gets")), ("SM90_U32x4_STSM_N", ("reads", "addresses")), ("UniversalCopy<uint16_t>", ("reads", "gets")),
    ("SM80_16x8x16_F32F16F16F32_TN", ("holds", "holds", "holds")),
])  # fmt: skip
def test_what_threads_do_with_an_operand(target, does):
    spec = texgen.read(target)
    assert tuple(role(spec, key) for key in spec.operands()) == does


@pytest.mark.chromium
def test_pointing_gives_the_index_of_the_caption_and_every_bank(tmp_path: Path):
    playwright = pytest.importorskip("playwright.sync_api")
    from test_site_browser import ARGUMENTS

    ldmatrix = texgen.figure("SM75_U32x4_LDSM_N").save(tmp_path / "ldmatrix.html")
    doubles = texgen.figure("(4,8):(17,2)", dtype="f64", banks="column:0").save(tmp_path / "doubles.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page()

        def said(path: Path, wanted: str) -> str:
            page.goto("about:blank")
            page.goto(path.as_uri())
            page.wait_for_selector(".txg-live")
            page.get_by_label("Find", exact=True).fill(wanted)
            page.keyboard.press("Enter")
            return str(page.text_content(".txg-line"))

        assert "offset 72 = 8 × m + n" in said(ldmatrix, "S(9,0)")
        thread = said(ldmatrix, "T9")
        assert re.search(r"names the address of S\(9, 0\)", thread) and "gets D(" in thread and "holds" not in thread
        assert "offset 34, byte 272, banks 4, 5" in said(doubles, "(2,0)")
        browser.close()
