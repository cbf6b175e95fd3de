"""Questions about a layout: offsets and coordinates, swizzles in binary, banks and wavefronts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from texgen.banks import BANK_BYTES, Access, access, bank, lanes_per_phase
from texgen.errors import TexgenError
from texgen.figures.banks import before
from texgen.handout.ask_tv import digits, signed
from texgen.handout.questions import Kind, Question, Step, View
from texgen.layouts import ComposedLayout, IntArray, Layout, flat
from texgen.sources.smem import element_swizzle
from texgen.specs import LayoutSpec

MOST_LISTED = 32


def _spec(view: View) -> LayoutSpec:
    assert isinstance(view.spec, LayoutSpec)
    return view.spec


def plain_part(spec: LayoutSpec) -> Layout | None:
    """The layout before any swizzle, where its text gives this very table of offsets, up to the one of (0,0)."""
    from texgen.sources.text import parse_layout

    try:
        layout = parse_layout(spec.layout) if spec.layout else None
    except TexgenError:
        return None
    if isinstance(layout, ComposedLayout):
        layout = layout.outer
    if not isinstance(layout, Layout) or layout.is_coordinate or layout.rank > 2:
        return None
    table = plain_table(spec)
    return layout if np.array_equal(layout.table() + table[0, 0], table) else None


def plain_table(spec: LayoutSpec) -> IntArray:
    return spec.offsets if spec.plain is None else spec.plain


def plain_panel(view: View) -> str:
    return "before" if "before" in view.panels else "offsets"


def _known(view: View) -> bool:
    """Whether a reader can find every offset: from the layout's text in the heading, or in the figure."""
    spec = _spec(view)
    return plain_part(spec) is not None or any(p.fill.size == spec.offsets.size for p in view.panels.values())


def offset_steps(spec: LayoutSpec, row: int, column: int) -> tuple[Step, ...]:
    """How a coordinate comes to its offset before the swizzle: mode by mode, or just read from the table."""
    layout = plain_part(spec)
    total = int(plain_table(spec)[row, column])
    if layout is None:
        return (("table", {"coordinate": f"({row},{column})", "offset": total}),)
    modes = [("j", column, layout.mode(0) if layout.rank == 1 else layout.mode(1))]
    if layout.rank == 2:
        modes.insert(0, ("i", row, layout.mode(0)))
    parts = [digits(mode, index) for _, index, mode in modes]
    steps: list[Step] = [
        ("digits", {"what": f"{axis} = {index}", **part}) for (axis, index, _), part in zip(modes, parts, strict=True)
    ]
    terms = [p["sum"] for p in parts]
    if origin := int(plain_table(spec)[0, 0]):
        steps.insert(0, ("origin", {"offset": origin}))
        terms.insert(0, origin)
    if len(terms) > 1:
        steps.append(("sum", {"terms": " + ".join(map(signed, terms)), "total": total}))
    return tuple(steps)


def _pick(view: View, key: str) -> tuple[int, int] | None:
    cells = view.cells(key)
    spec = _spec(view)
    if spec.coords or not cells:
        return None
    return view.dice.pick([c for c in cells if c != (0, 0)] or cells)  # offset 0 at (0,0) asks nothing


def _about(row: int, column: int, **more: Any) -> dict[str, Any]:
    return {"row": row, "column": column, **more}


def offset(view: View, key: str) -> Question | None:
    """The offset of a coordinate, before any swizzle."""
    panel = plain_panel(view)
    spec = _spec(view)
    if (cell := _pick(view, panel)) is None:
        return None
    found = int(plain_table(spec)[cell])
    return Question(
        "offset-before" if spec.plain is not None else "offset", "easy", _about(*cell), found,
        {"coordinate": f"({cell[0]},{cell[1]})", "offset": found}, offset_steps(spec, *cell), frozenset({(panel, *cell)}),
    )  # fmt: skip


def coordinate(view: View, key: str) -> Question | None:
    """The coordinate of an offset that occurs once."""
    panel = plain_panel(view)
    spec = _spec(view)
    if (cell := _pick(view, panel)) is None:
        return None
    table = plain_table(spec)
    wanted = int(table[cell])
    if int((table == wanted).sum()) != 1:
        return None
    return Question(
        "coordinate-before" if spec.plain is not None else "coordinate", "medium", {"offset": wanted}, list(cell),
        {"coordinate": f"({cell[0]},{cell[1]})", "offset": wanted}, (*offset_steps(spec, *cell), ("only", {"offset": wanted})),
        frozenset({(panel, *cell)}), found=True,
    )  # fmt: skip


def linear(view: View, key: str) -> Question | None:
    """The offset of a one-dimensional (colexicographic) index."""
    panel = plain_panel(view)
    spec = _spec(view)
    layout = plain_part(spec)
    if layout is None or layout.rank != 2 or (cell := _pick(view, panel)) is None:
        return None
    rows = spec.offsets.shape[0]
    index = cell[0] + rows * cell[1]
    found = int(plain_table(spec)[cell])
    steps = (("colex", {"index": index, "rows": rows, "row": cell[0], "column": cell[1]}), *offset_steps(spec, *cell))
    return Question(
        "linear-before" if spec.plain is not None else "linear", "hard", {"index": index}, found, {"index": index, "offset": found}, steps, frozenset({(panel, *cell)}), found=True
    )


def extent(view: View, key: str) -> Question | None:
    """How many elements of memory a layout spans (its cosize)."""
    spec = _spec(view)
    table = plain_table(spec)
    if spec.coords or spec.plain is not None or int(table.min()) != 0 or not _known(view):
        return None
    most = int(table.max())
    cells = {(plain_panel(view), int(r), int(c)) for r, c in np.argwhere(table == most)}
    shown = frozenset(c for c in cells if view.shows(*c))
    if len(shown) > 4:
        return None
    layout = plain_part(spec)
    steps: tuple[Step, ...] = (("most", {"most": most, "extent": most + 1}),)
    if layout is not None and all(isinstance(d, int) and d >= 0 for _, d in flat(layout.shape, layout.stride)):
        terms = " + ".join(f"{n - 1}·{d}" for n, d in flat(layout.shape, layout.stride))
        steps = (("sum", {"terms": terms, "total": most}), *steps)
    return Question("extent", "medium", {}, most + 1, {"n": most + 1}, steps, shown, asks=frozenset({"extent"}))


def distinct(view: View, key: str) -> Question | None:
    """How many different offsets a layout that repeats some has."""
    spec = _spec(view)
    table = plain_table(spec)
    count = len(np.unique(table))
    if spec.coords or count == table.size or not _known(view):
        return None
    layout = plain_part(spec)
    still = math.prod(n for n, d in flat(layout.shape, layout.stride) if d == 0) if layout is not None else 1
    step: Step = ("repeats", {"cells": table.size, "distinct": count, "n": still}) if count * still == table.size else ("count", {"n": count})
    return Question("distinct", "medium", {}, count, {"n": count}, (step,), asks=frozenset({"distinct"}))


def step_of(view: View, key: str) -> Question | None:
    """How the offset changes from one coordinate to the next along a row or a column."""
    panel = plain_panel(view)
    spec = _spec(view)
    if (cell := _pick(view, panel)) is None:
        return None
    axis = view.dice.below(2)
    after = (cell[0] + (axis == 0), cell[1] + (axis == 1))
    if not view.shows(panel, *after):
        return None
    table = plain_table(spec)
    first, second = int(table[cell]), int(table[after])
    values = {"first": f"({cell[0]},{cell[1]})", "second": f"({after[0]},{after[1]})", "a": first, "b": second, "step": second - first,
              "less": signed(first)}  # fmt: skip
    return Question(
        "step-before" if spec.plain is not None else "step", "easy", _about(*cell, axis=axis), second - first, values, (("step", values),),
        frozenset({(panel, *cell), (panel, *after)}),
    )  # fmt: skip


def _coordinate(view: View) -> tuple[tuple[int, int], list[int]] | None:
    """(a cell, what the layout gives there) of a coordinate-valued layout; None for other layouts."""
    spec = _spec(view)
    if not spec.coords or not (cells := view.cells("offsets")):
        return None
    cell = view.dice.pick(cells)
    return cell, [int(c[cell]) for c in spec.coords]


def to_coordinate(view: View, key: str) -> Question | None:
    """What a coordinate-valued layout gives."""
    if not (picked := _coordinate(view)):
        return None
    cell, found = picked
    return Question(
        "to-coordinate", "easy", _about(*cell), found,
        {"coordinate": f"({cell[0]},{cell[1]})", "result": f"({','.join(map(str, found))})"},
        (("table", {"coordinate": f"({cell[0]},{cell[1]})", "offset": f"({','.join(map(str, found))})"}),),
        frozenset({("offsets", *cell)}),
    )  # fmt: skip


def from_coordinate(view: View, key: str) -> Question | None:
    """Where a coordinate-valued layout gives a coordinate."""
    if not (picked := _coordinate(view)):
        return None
    cell, found = picked
    same = np.logical_and.reduce([c == v for c, v in zip(_spec(view).coords, found, strict=True)])
    if int(same.sum()) != 1:
        return None
    text = f"({','.join(map(str, found))})"
    return Question(
        "from-coordinate", "medium", {"result": found}, list(cell), {"coordinate": f"({cell[0]},{cell[1]})", "result": text},
        (("table", {"coordinate": f"({cell[0]},{cell[1]})", "offset": text}),), frozenset({("offsets", *cell)}), found=True,
    )  # fmt: skip


# --- swizzles


def _swizzled(view: View) -> list[tuple[int, int]]:
    """Cells that both panels show, those that the swizzle moves before the others."""
    spec = _spec(view)
    swizzle = element_swizzle(spec)
    if spec.plain is None or swizzle is None or not swizzle.bits or "after" not in view.panels:
        return []
    cells = view.cells("after")
    return [c for c in cells if spec.plain[c] != spec.offsets[c]] or cells


def swizzle_steps(spec: LayoutSpec, x: int) -> tuple[Step, ...]:
    """The XOR of an offset in binary."""
    swizzle = element_swizzle(spec)
    assert swizzle is not None
    y = int(swizzle(np.asarray([x], dtype=np.int64))[0])
    high, low = (swizzle.base + swizzle.shift, swizzle.base) if swizzle.shift >= 0 else (swizzle.base, swizzle.base - swizzle.shift)
    width = max(high, low) + swizzle.bits
    width = max(width, x.bit_length())
    mask = (1 << swizzle.bits) - 1
    source, target = x >> high & mask, x >> low & mask

    def binary(v: int, n: int) -> str:
        return format(v, f"0{n}b")

    bits = max(swizzle.bits, 1)
    return (
        ("binary", {"x": x, "bits": binary(x, width)}),
        ("xor", {"high": high, "high_end": high + bits - 1, "low": low, "low_end": low + bits - 1, "source": binary(source, bits),
                 "target": binary(target, bits), "result": binary(source ^ target, bits), "n": bits}),
        ("swizzled", {"bits": binary(y, width), "y": y}),
    )  # fmt: skip


def swizzle(view: View, key: str) -> Question | None:
    """Where the swizzle puts an offset."""
    if not (cells := _swizzled(view)):
        return None
    spec = _spec(view)
    cell = view.dice.pick(cells)
    assert spec.plain is not None
    x, y = int(spec.plain[cell]), int(spec.offsets[cell])
    if x < 0:
        return None
    same = np.argwhere(spec.plain == x)
    hidden = frozenset(("after", int(r), int(c)) for r, c in same if view.shows("after", int(r), int(c)))
    return Question("swizzle", "hard", {"offset": x}, y, {"x": x, "y": y}, swizzle_steps(spec, x), hidden)


def unswizzle(view: View, key: str) -> Question | None:
    """Which coordinate an offset after the swizzle belongs to."""
    if not (cells := _swizzled(view)):
        return None
    spec = _spec(view)
    cell = view.dice.pick(cells)
    assert spec.plain is not None
    x, y = int(spec.plain[cell]), int(spec.offsets[cell])
    swizzle = element_swizzle(spec)
    if y < 0 or swizzle is None or int((spec.offsets == y).sum()) != 1 or int(swizzle(np.asarray([y], dtype=np.int64))[0]) != x:
        return None
    steps = (("inverse", {}), *swizzle_steps(spec, y), ("before", {"x": x, "coordinate": f"({cell[0]},{cell[1]})"}))
    return Question(
        "unswizzle", "hard", {"offset": y}, list(cell), {"y": y, "coordinate": f"({cell[0]},{cell[1]})"}, steps,
        frozenset({("after", *cell)}), found=True,
    )  # fmt: skip


def stay(view: View, key: str) -> Question | None:
    """How many elements of a row the swizzle leaves in place."""
    spec = _spec(view)
    columns = spec.offsets.shape[1]
    if not _swizzled(view) or not view.shows("after", *view.cells("after")[0][:1], columns - 1):
        return None
    row = view.dice.pick(sorted({r for r, _ in view.cells("after")}))
    if not view.shows("after", row, 0):
        return None
    assert spec.plain is not None
    count = int((spec.plain[row] == spec.offsets[row]).sum())
    return Question(
        "stay", "medium", {"row": row}, count, {"row": row, "n": count}, (("stay", {"row": row, "n": count, "columns": columns}),),
        frozenset(),
    )  # fmt: skip


# --- banks


def _accesses(view: View) -> Access | None:
    """An access that the layout's elements allow, at random: a column, a row, 16 bytes a lane, a matrix of ldmatrix."""
    spec = _spec(view)
    if not spec.bits or spec.coords or int(spec.offsets.min()) < 0 or not _known(view):
        return None
    rows, columns = spec.offsets.shape
    texts = [f"column:{view.dice.below(columns)}", f"row:{view.dice.below(rows)}", f"column:{view.dice.below(columns)}@16",
             "column:0@16", "ldmatrix", "column:0@8"]  # fmt: skip
    for text in view.dice.shuffled(texts):
        try:
            found = access(spec, text)
            found.conflicts  # noqa: B018  (may find it misaligned)
        except TexgenError:
            continue
        if len(found.rows) >= 4:
            return found
    return None


def _said(found: Access) -> dict[str, Any]:
    """The access in placeholders: how many lanes take how many bytes from which coordinates."""
    starts = [f"({r[0]},{c[0]})" for r, c in zip(found.rows, found.columns, strict=True)]
    shown = starts if len(starts) <= 4 else [*starts[:3], "…", starts[-1]]
    return {"lanes": len(starts), "last": len(starts) - 1, "bytes": found.width, "starts": shown, "n": found.width}


def bank_steps(found: Access) -> tuple[Step, ...]:
    """The first bank of every lane, then the busiest bank of every phase."""
    first = bank(found.offsets[:, 0] * found.bits // 8)
    out: list[Step] = [("banks", {"banks": [str(int(b)) for b in first[:MOST_LISTED]]})]
    for phase in found.conflicts.phases:
        out.append(("phase", {"first": phase.lanes[0], "last": phase.lanes[-1], "words": sum(phase.words), "bank": phase.bank,
                              "busiest": phase.wavefronts, "n": phase.wavefronts}))  # fmt: skip
    if len(found.conflicts.phases) > 1:
        terms = " + ".join(str(p.wavefronts) for p in found.conflicts.phases)
        out.append(("sum", {"terms": terms, "total": found.conflicts.wavefronts}))
    return tuple(out)


def _subject(found: Access) -> dict[str, Any]:
    return {"starts": [[int(r[0]), int(c[0])] for r, c in zip(found.rows, found.columns, strict=True)], "bytes": found.width}


def bank_of(view: View, key: str) -> Question | None:
    """The bank of an element."""
    spec = _spec(view)
    panel = "after" if "after" in view.panels else "offsets"
    # A wider element lies in several banks; one whose bits straddle bytes has no byte of its own.
    if not spec.bits or spec.bits > 8 * BANK_BYTES or 32 % spec.bits or int(spec.offsets.min()) < 0 or (cell := _pick(view, panel)) is None:
        return None
    at = int(spec.offsets[cell])
    byte = at * spec.bits // 8
    found = int(bank(np.asarray([byte]))[0])
    values: Mapping[str, Any] = {"coordinate": f"({cell[0]},{cell[1]})", "bits": spec.bits, "bank": found, "offset": at, "byte": byte,
                                 "word": byte // BANK_BYTES}  # fmt: skip
    return Question("bank", "medium", _about(*cell), found, values, (("bank", values),))


def wavefronts(view: View, key: str) -> Question | None:
    """How many wavefronts an access takes."""
    if (found := _accesses(view)) is None:
        return None
    total = found.conflicts.wavefronts
    return Question(
        "wavefronts", "hard", _subject(found), total, {**_said(found), "phase": lanes_per_phase(found.width), "wavefronts": total,
        "n": total}, bank_steps(found), asks=frozenset({f"wavefronts:{found.name}:{found.width}"}),
    )  # fmt: skip


def banks_hit(view: View, key: str) -> Question | None:
    """How many different banks an access touches."""
    if (found := _accesses(view)) is None:
        return None
    first = found.offsets[:, :1] * found.bits // 8
    used = np.unique(bank(first + np.arange(found.width)))
    return Question(
        "banks-hit", "medium", _subject(found), len(used), {**_said(found), "n": len(used)},
        (("hit", {"banks": [str(int(b)) for b in used], "n": len(used)}),),
    )  # fmt: skip


def saved(view: View, key: str) -> Question | None:
    """The wavefronts that a swizzle saves."""
    spec = _spec(view)
    if spec.plain is None or (found := _accesses(view)) is None:
        return None
    plain = replace(found, offsets=before(spec).offsets[found.rows, found.columns])
    try:
        without = plain.conflicts.wavefronts
    except TexgenError:
        return None
    total = found.conflicts.wavefronts
    if without <= total:
        return None
    steps: tuple[Step, ...] = (
        ("without", {}), *bank_steps(plain), ("with", {}), *bank_steps(found),
        ("sum", {"terms": f"{without} − {total}", "total": without - total}),
    )  # fmt: skip
    return Question(
        "saved", "hard", _subject(found), without - total, {**_said(found), "n": without - total}, steps,
        asks=frozenset({f"wavefronts:{found.name}:{found.width}"}),
    )  # fmt: skip


KINDS = (
    Kind("offset", "easy", offset), Kind("step", "easy", step_of), Kind("to-coordinate", "easy", to_coordinate),
    Kind("coordinate", "medium", coordinate), Kind("extent", "medium", extent, once=True), Kind("distinct", "medium", distinct, once=True),
    Kind("from-coordinate", "medium", from_coordinate), Kind("bank", "medium", bank_of), Kind("banks-hit", "medium", banks_hit),
    Kind("stay", "medium", stay, once=True), Kind("linear", "hard", linear), Kind("swizzle", "hard", swizzle),
    Kind("unswizzle", "hard", unswizzle), Kind("wavefronts", "hard", wavefronts), Kind("saved", "hard", saved),
)  # fmt: skip
