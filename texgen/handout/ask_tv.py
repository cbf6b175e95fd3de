"""Questions about one operand: which thread holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from texgen.figures.caption import AXES
from texgen.handout.catalogue import Key
from texgen.handout.questions import ADDRESSED, HELD, Kind, Question, Step, View
from texgen.layouts import Layout, flat, text
from texgen.specs import TVMap, dtype_bits
from texgen.words import by_rows, carried_terms_of, index_formula, index_table, layout_of, role

LISTED = 8
"""The most threads or elements that an answer lists."""
TRIES = 12


def element(key: str, row: int, column: int) -> str:
    """``C(3,5)``; an operand without a letter is just ``(3,5)``."""
    return f"{'' if key == 'TV' else key}({row},{column})"


def name(key: str) -> str | Key:
    """What a question calls an operand."""
    return Key("operand.TV") if key == "TV" else key


def words(view: View, key: str) -> dict[str, Key]:
    """What threads do with an operand's elements, as placeholders: ``{verb}`` (T5 reads), ``{do}`` (which does T5 read)."""
    does = role(view.spec, key)
    return {"verb": Key(f"verb.{does}"), "do": Key(f"verb.{does}-do")}


def once_each(operand: TVMap) -> bool:
    """Whether no thread holds an element twice."""
    return bool((np.diff(np.sort(operand.tv, axis=1), axis=1) > 0).all())


def place(key: str, operand: TVMap, thread: int, value: int) -> tuple[int, int]:
    index = int(operand.tv[thread, value])
    return index % operand.tile[0], index // operand.tile[0]


def where_steps(view: View, key: str, *pairs: tuple[int, int]) -> tuple[Step, ...]:
    """How (thread, value) pairs come to their elements: by the closed form, or where there is none read from the table."""
    operand = view.maps[key]
    found = carried_terms_of(operand)
    if found is not None:
        down, across = AXES[key]
        rules = [" + ".join(map(str, terms)) or "0" for terms in found]
        puts = (("put", {"thread": t, "value": v, "element": element(key, *place(key, operand, t, v))}) for t, v in pairs)
        return (("rule", {"down": down, "across": across, "row_rule": rules[0], "column_rule": rules[1]}), *puts)
    return tuple(
        ("holds", {"thread": t, "value": v, "element": element(key, *place(key, operand, t, v)), **words(view, key)}) for t, v in pairs
    )


def owner_steps(view: View, key: str, row: int, column: int) -> tuple[Step, ...]:
    """How every owner of an element comes to it."""
    return where_steps(view, key, *((o.thread, o.value) for o in view.maps[key].owners(row, column)))


def _cells(view: View, key: str) -> list[tuple[int, int]]:
    """The cells that are shown but (0,0), whose T0 V0 asks nothing."""
    return [c for c in view.cells(key) if c != (0, 0)]


def _cell(view: View, key: str, low: int, high: int) -> tuple[int, int] | None:
    """A shown cell with ``low`` to ``high`` owners."""
    operand = view.maps[key]
    good = [(r, c) for r, c in _cells(view, key) if low <= operand.owner_counts[r, c] <= high]
    return view.dice.pick(good) if good and operand.threads > 1 else None


def _about(key: str, row: int, column: int, **more: Any) -> dict[str, Any]:
    return {"operand": key, "row": row, "column": column, **more}


def owner(view: View, key: str) -> Question | None:
    """Which thread holds an element that one alone holds."""
    if (cell := _cell(view, key, 1, 1)) is None:
        return None
    own = view.maps[key].owners(*cell)[0]
    return Question(
        "owner", "easy", _about(key, *cell), own.thread, {"element": element(key, *cell), "thread": own.thread, "value": own.value, **words(view, key)},
        where_steps(view, key, (own.thread, own.value)), frozenset({(key, *cell)}),
    )  # fmt: skip


def warp(view: View, key: str) -> Question | None:
    operand = view.maps[key]
    if operand.threads <= operand.warp or (cell := _cell(view, key, 1, 1)) is None:
        return None
    own = operand.owners(*cell)[0]
    steps = (*where_steps(view, key, (own.thread, own.value)), ("warp", {"thread": own.thread, "size": operand.warp, "warp": own.thread // operand.warp}))
    return Question(
        "warp", "medium", _about(key, *cell), own.thread // operand.warp,
        {"element": element(key, *cell), "size": operand.warp, "last": operand.warp - 1, "warp": own.thread // operand.warp, **words(view, key)},
        steps, frozenset({(key, *cell)}),
    )  # fmt: skip


def owners(view: View, key: str) -> Question | None:
    """All threads of an element that several hold."""
    if (cell := _cell(view, key, 2, LISTED)) is None:
        return None
    operand = view.maps[key]
    found = operand.owners(*cell)
    threads = sorted({o.thread for o in found})
    if len(threads) < 2:
        return None
    return Question(
        "owners", "medium", _about(key, *cell), threads,
        {"element": element(key, *cell), "threads": [f"T{t}" for t in threads], "n": len(threads), **words(view, key)},
        owner_steps(view, key, *cell), frozenset({(key, *cell)}),
    )  # fmt: skip


def value(view: View, key: str) -> Question | None:
    """The value index of an element in a thread that is named."""
    operand = view.maps[key]
    if operand.values < 2 or (cell := _cell(view, key, 1, LISTED)) is None:
        return None
    own = view.dice.pick(operand.owners(*cell))
    if sum(o.thread == own.thread for o in operand.owners(*cell)) != 1:
        return None
    return Question(
        "value", "medium", _about(key, *cell, thread=own.thread), own.value,
        {"element": element(key, *cell), "thread": own.thread, "value": own.value, **words(view, key)},
        where_steps(view, key, (own.thread, own.value)), frozenset({(key, *cell)}),
    )  # fmt: skip


def elements(view: View, key: str) -> Question | None:
    """Everything that a thread holds, by value."""
    operand = view.maps[key]
    if not 2 <= operand.values <= LISTED:
        return None
    for _ in range(TRIES):
        thread = view.dice.below(operand.threads)
        places = [place(key, operand, thread, v) for v in range(operand.values)]
        if all(view.shows(key, *p) for p in places):
            names = [element(key, *p) for p in places]
            return Question(
                "elements", "medium", {"operand": key, "thread": thread}, [list(p) for p in places],
                {"operand": name(key), "thread": thread, "elements": names, **words(view, key)},
                where_steps(view, key, *((thread, v) for v in range(operand.values))), frozenset((key, *p) for p in places), found=True,
            )  # fmt: skip
    return None


def _pair(view: View, key: str) -> tuple[int, int, int, int] | None:
    """(thread, value, row, column) of a shown element."""
    operand = view.maps[key]
    if operand.threads < 2 or not (cells := _cells(view, key)):
        return None
    row, column = view.dice.pick(cells)
    found = operand.owners(row, column)
    if not found:
        return None
    own = view.dice.pick(found)
    return own.thread, own.value, row, column


def one_element(view: View, key: str) -> Question | None:
    """The element of a (thread, value)."""
    if (found := _pair(view, key)) is None:
        return None
    thread, val, row, column = found
    return Question(
        "element", "easy", {"operand": key, "thread": thread, "value": val}, [row, column],
        {"operand": name(key), "thread": thread, "value": val, "element": element(key, row, column), **words(view, key)},
        where_steps(view, key, (thread, val)), frozenset({(key, row, column)}), found=True,
    )  # fmt: skip


def compute(view: View, key: str) -> Question | None:
    """The element of a (thread, value) by the layout's own arithmetic."""
    operand = view.maps[key]
    layout = layout_of(operand)
    if layout is None or (found := _pair(view, key)) is None:
        return None
    thread, val, row, column = found
    index = int(index_table(operand)[thread, val])
    rows, columns = operand.tile
    t, v = (digits(layout.mode(i), x) for i, x in ((0, thread), (1, val)))
    down, across = AXES[key]
    steps: tuple[Step, ...] = (
        ("digits", {"what": f"T = {thread}", **t}),
        ("digits", {"what": f"V = {val}", **v}),
        ("index", {"terms": f"{t['sum']} + {v['sum']}", "index": index}),
        ("split-rows", {"index": index, "columns": columns, "down": down, "across": across, "row": row, "column": column})
        if by_rows(operand)
        else ("split", {"index": index, "rows": rows, "down": down, "across": across, "row": row, "column": column}),
    )
    return Question(
        "compute", "hard", {"operand": key, "thread": thread, "value": val}, [row, column],
        {"operand": name(key), "layout": str(layout), "thread": thread, "value": val, "element": element(key, row, column),
         "formula": index_formula(operand, AXES[key])},
        steps, frozenset({(key, row, column)}), found=True,
        tells=frozenset(f"{fact}:{key}" for fact in ("layout", "values", "stride", "copies")),
    )  # fmt: skip


def signed(x: int) -> str:
    """A number as a term of a sum or product: ``(−2)``."""
    return str(x) if x >= 0 else f"(−{-x})"


def digits(layout: Layout, index: int) -> Mapping[str, Any]:
    """An index in a mode's mixed radix, and the offset that its strides make of it: placeholders of ``work.digits``."""
    parts, total, terms = [], 0, []
    modes = list(flat(layout.shape, layout.stride))
    for n, d in modes:
        digit, index = index % n, index // n
        parts.append(str(digit))
        terms.append(f"{digit}·{signed(int(d))}")  # type: ignore[arg-type]
        total += digit * int(d)  # type: ignore[arg-type]
    return {"digits": f"({','.join(parts)})", "shape": text(layout.shape), "stride": text(layout.stride),
            "terms": " + ".join(terms), "sum": total}  # fmt: skip


def values(view: View, key: str) -> Question | None:
    """How many values a thread holds."""
    operand = view.maps[key]
    counts = operand.owner_counts
    if key not in view.panels or not once_each(operand) or int(counts.min()) != int(counts.max()):
        return None
    step = {"cells": operand.cells, "threads": operand.threads, "values": operand.values, "n": int(counts.max())}
    return Question(
        "values", "easy", {"operand": key}, operand.values, {"operand": name(key), "n": operand.values, **words(view, key)}, (("values", step),),
        asks=frozenset({f"values:{key}"}),
    )  # fmt: skip


def copies(view: View, key: str) -> Question | None:
    """How many threads hold each element, of an operand whose labels the sheet does not show."""
    operand = view.maps[key]
    counts = operand.owner_counts
    most = int(counts.max())
    if key in view.panels or not once_each(operand) or int(counts.min()) != most or most < 2:
        return None
    step = {"threads": operand.threads, "values": operand.values, "cells": operand.cells, "copies": most, "n": operand.threads,
            "operand": name(key), **words(view, key)}  # fmt: skip
    return Question(
        "copies", "hard", {"operand": key}, most,
        {"operand": name(key), "n": most, "rows": operand.tile[0], "columns": operand.tile[1], "threads": operand.threads, "values": operand.values,
         **words(view, key)},
        (("copies", step),), asks=frozenset({f"copies:{key}"}), tells=frozenset({f"values:{key}"}),
    )  # fmt: skip


def _stride(view: View, key: str, axis: int) -> Question | None:
    """The one stride of the value mode (axis 1) or the thread mode (axis 0), in the index of the operand's own layout."""
    operand = view.maps[key]
    if key not in view.panels or operand.tv.shape[axis] < 2:
        return None
    index = index_table(operand)
    steps = np.unique(np.diff(index, axis=axis))
    if len(steps) != 1 or not steps[0] > 0:  # a mode of several strides
        return None
    stride = int(steps[0])
    a, b = (int(x) for x in (index[:2, 0] if axis == 0 else index[0, :2]))
    names = ("T0 V0", "T0 V1") if axis else ("T0 V0", "T1 V0")
    places = place(key, operand, 0, 0), place(key, operand, 1 - axis, axis)
    work: dict[str, Any] = {"first": names[0], "second": names[1], "a": a, "b": b, "stride": stride,
                            "first_element": element(key, *places[0]), "second_element": element(key, *places[1])}  # fmt: skip
    return Question(
        "value-stride" if axis else "thread-stride", "hard", {"operand": key}, stride,
        {"operand": name(key), "formula": index_formula(operand, AXES[key]), "stride": stride}, (("stride", work),),
        asks=frozenset({f"stride:{key}"}),
    )  # fmt: skip


def value_stride(view: View, key: str) -> Question | None:
    return _stride(view, key, 1)


def thread_stride(view: View, key: str) -> Question | None:
    return _stride(view, key, 0)


def _line(view: View, key: str, axis: int) -> int | None:
    """A row (axis 0) or column that is shown whole."""
    operand = view.maps[key]
    along, across = operand.tile[1 - axis], operand.tile[axis]
    whole = [i for i in range(across) if all(view.shows(key, *((i, j) if axis == 0 else (j, i))) for j in (0, along - 1))]
    cells = len(view.cells(key))
    if not whole or along < 2 or across < 2 or cells % along:
        return None
    return view.dice.pick(whole)


def line_threads(view: View, key: str) -> Question | None:
    """How many threads share a row or a column."""
    operand = view.maps[key]
    axis = view.dice.below(2)
    if operand.threads < 2 or (i := _line(view, key, axis)) is None:
        return None
    along = operand.tile[1 - axis]
    cells = [(i, j) if axis == 0 else (j, i) for j in range(along)]
    threads = sorted({o.thread for c in cells for o in operand.owners(*c)})
    if not threads:
        return None
    axis_name = AXES[key][axis]
    listed = [f"T{t}" for t in threads[:32]] + (["…"] if len(threads) > 32 else [])
    return Question(
        "line-threads", "medium", {"operand": key, "axis": axis, "index": i}, len(threads),
        {"operand": name(key), "axis": axis_name, "index": i, "n": len(threads), **words(view, key)}, (("line", {"threads": listed, "n": len(threads)}),),
    )  # fmt: skip


def span(view: View, key: str) -> Question | None:
    """How far apart a thread's outermost elements lie."""
    operand = view.maps[key]
    if not 2 <= operand.values <= 2 * LISTED or operand.threads < 2:
        return None
    axis = view.dice.below(2)
    for _ in range(TRIES):
        thread = view.dice.below(operand.threads)
        places = [place(key, operand, thread, v) for v in range(operand.values)]
        along = [p[axis] for p in places]
        if max(along) > min(along) and all(view.shows(key, *p) for p in places):
            return Question(
                "span", "medium", {"operand": key, "thread": thread, "axis": axis}, max(along) - min(along),
                {"operand": name(key), "thread": thread, "axis": AXES[key][axis], "distance": max(along) - min(along),
                 **words(view, key)},
                (*where_steps(view, key, *((thread, along.index(x)) for x in (min(along), max(along)))),
                 ("span", {"axis": AXES[key][axis], "low": min(along), "high": max(along), "distance": max(along) - min(along)})),
            )  # fmt: skip
    return None


def registers(view: View, key: str) -> Question | None:
    """Registers of 32 bits for a thread's part of an operand."""
    operand = view.maps[key]
    bits = dtype_bits(operand.dtype)
    if key not in view.panels or not bits or operand.memory != "rmem" or key in "SD" or not once_each(operand) or operand.values * bits % 32:
        return None
    count = operand.values * bits // 32
    return Question(
        "registers", "medium", {"operand": key}, count, {"operand": name(key), "bits": bits, "n": count},
        (("registers", {"values": operand.values, "bits": bits, "total": operand.values * bits, "registers": count, "n": count}),),
    )  # fmt: skip


def address(view: View, key: str) -> Question | None:
    """Which lane of ldmatrix or stmatrix names the address of the row that an element lies in."""
    if (cell := _cell(view, key, 1, 1)) is None:
        return None
    own = view.maps[key].owners(*cell)[0]
    return Question(
        "address", "easy", _about(key, *cell), own.thread, {"element": element(key, *cell), "thread": own.thread},
        where_steps(view, key, (own.thread, own.value)), frozenset({(key, *cell)}),
    )  # fmt: skip


def address_row(view: View, key: str) -> Question | None:
    """The elements of the row whose address a lane names."""
    made = elements(view, key)
    return None if made is None else replace(made, kind="address-row")


KINDS = (
    Kind("owner", "easy", owner, HELD), Kind("element", "easy", one_element, HELD), Kind("values", "easy", values, HELD, once=True),
    Kind("warp", "medium", warp, HELD), Kind("owners", "medium", owners, HELD), Kind("value", "medium", value, HELD),
    Kind("elements", "medium", elements, HELD), Kind("line-threads", "medium", line_threads, HELD), Kind("span", "medium", span, HELD),
    Kind("registers", "medium", registers, HELD, once=True), Kind("address", "easy", address, ADDRESSED),
    Kind("address-row", "medium", address_row, ADDRESSED), Kind("compute", "hard", compute),
    Kind("copies", "hard", copies, HELD, once=True), Kind("value-stride", "hard", value_stride, once=True),
    Kind("thread-stride", "hard", thread_stride, once=True),
)  # fmt: skip
