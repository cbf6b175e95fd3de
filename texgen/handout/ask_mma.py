"""Questions about a tiled MMA as a whole."""

from __future__ import annotations

import math

from texgen.figures.caption import AXES
from texgen.handout.ask_tv import element, owner_steps
from texgen.handout.questions import Kind, Question, View
from texgen.specs import MmaSpec, dtype_bits
from texgen.words import index_formula, layout_of

OWNERS = 4
"""The most threads that may hold a factor that is asked for."""


def _spec(view: View) -> MmaSpec:
    assert isinstance(view.spec, MmaSpec)
    return view.spec


def products(view: View, key: str) -> Question | None:
    """Multiply-adds of the whole tile."""
    m, n, k = _spec(view).tile_mnk
    return Question(
        "products", "easy", {}, m * n * k, {"m": m, "n": m * n * k, "columns": n, "k": k},
        (("product", {"terms": f"{m}·{n}·{k}", "total": m * n * k}),), asks=frozenset({"products"}),
    )  # fmt: skip


def tile_bytes(view: View, key: str) -> Question | None:
    """Bytes of an operand's tile."""
    spec = _spec(view)
    letter = view.dice.pick("ABC")
    operand = spec.operands()[letter]
    bits = dtype_bits(operand.dtype)
    if not bits or bits & (bits - 1) or operand.cells * bits % 8:  # 6-bit elements are stored in more than their bits
        return None
    total = operand.cells * bits // 8
    rows, columns = operand.tile
    return Question(
        "tile-bytes", "easy", {"operand": letter}, total, {"operand": letter, "bits": bits, "n": total, "rows": rows, "columns": columns},
        (("product", {"terms": f"{rows}·{columns}·{bits}/8", "total": total}),), asks=frozenset({"bytes"}),
    )  # fmt: skip


def atoms(view: View, key: str) -> Question | None:
    """How many times the atom fits into the tile."""
    spec = _spec(view)
    if not all(spec.atom_mnk) or spec.atom_mnk == spec.tile_mnk:
        return None
    if any(t % a for t, a in zip(spec.tile_mnk, spec.atom_mnk, strict=True)):
        return None
    parts = [t // a for t, a in zip(spec.tile_mnk, spec.atom_mnk, strict=True)]
    total = math.prod(parts)
    names = {"atom": "×".join(map(str, spec.atom_mnk)), "tile": "×".join(map(str, spec.tile_mnk))}
    return Question(
        "atoms", "medium", {}, total, {**names, "n": total},
        (("product", {"terms": "·".join(f"({t}/{a})" for t, a in zip(spec.tile_mnk, spec.atom_mnk, strict=True)), "total": total}),),
        asks=frozenset({"atoms"}),
    )  # fmt: skip


def meet(view: View, key: str) -> Question | None:
    """The threads that hold the two factors of one product; with the layouts where the sheet does not show A and B."""
    if not {"A", "B"} <= set(view.maps):
        return None
    spec = _spec(view)
    shown = {"A", "B"} <= set(view.panels)
    if not shown and ({"A", "B"} & set(view.panels) or not all(layout_of(view.maps[x]) for x in "AB")):
        return None
    m, n, k = spec.tile_mnk
    if shown:
        row, depth = view.dice.pick(view.cells("A"))
        column = view.dice.pick(view.cells("B"))[0]
    else:
        row, column, depth = view.dice.below(m), view.dice.below(n), view.dice.below(k)
    places = {"A": (row, depth), "B": (column, depth)}
    found = {x: view.maps[x].owners(*places[x]) for x in "AB"}
    threads = {x: sorted({o.thread for o in found[x]}) for x in "AB"}
    if not all(1 <= len(t) <= OWNERS for t in threads.values()) or max(view.maps[x].threads for x in "AB") < 2:
        return None
    values = {"c": element("C", row, column), "a": element("A", row, depth), "b": element("B", column, depth), "k": depth,
              "a_threads": [f"T{t}" for t in threads["A"]], "b_threads": [f"T{t}" for t in threads["B"]]}  # fmt: skip
    steps = tuple(step for x in "AB" for step in owner_steps(view, x, *places[x]))
    subject = {"row": row, "column": column, "k": depth}
    if shown:
        cells = frozenset((x, *places[x]) for x in "AB" if view.shows(x, *places[x]))
        return Question("meet", "hard", subject, [threads["A"], threads["B"]], values, steps, cells)
    values |= {"a_layout": str(layout_of(view.maps["A"])), "b_layout": str(layout_of(view.maps["B"])),
               "a_formula": index_formula(view.maps["A"], AXES["A"]), "b_formula": index_formula(view.maps["B"], AXES["B"])}  # fmt: skip
    return Question(
        "meet-layouts", "hard", subject, [threads["A"], threads["B"]], values, steps,
        tells=frozenset(f"{fact}:{x}" for fact in ("layout", "values", "stride", "copies") for x in "AB"),
    )  # fmt: skip


KINDS = (
    Kind("products", "easy", products, once=True), Kind("tile-bytes", "easy", tile_bytes, once=True),
    Kind("atoms", "medium", atoms, once=True), Kind("meet", "hard", meet),
)  # fmt: skip
