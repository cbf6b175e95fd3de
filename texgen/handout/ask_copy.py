"""Questions about a tiled copy: from the source's threads to the destination's."""

from __future__ import annotations

import numpy as np

from texgen.handout.ask_tv import element, once_each, owner_steps
from texgen.handout.questions import Kind, Question, View
from texgen.specs import CopySpec, TVMap, dtype_bits
from texgen.words import ADDRESSES, matrix_side, role

ROW_BITS = 128
"""A row of an 8x8 matrix of ldmatrix or stmatrix."""


def _sides(view: View) -> tuple[TVMap, TVMap] | None:
    """Source and destination, where threads hold both and not the same way."""
    assert isinstance(view.spec, CopySpec)
    if not {"S", "D"} <= set(view.maps):
        return None
    source, destination = view.maps["S"], view.maps["D"]
    same = source.tv.shape == destination.tv.shape and np.array_equal(source.tv, destination.tv)
    return None if same else (source, destination)


def _form(view: View, plain: str, load: str, store: str) -> str:
    """The question's form: of ldmatrix the source's lanes but name addresses, of stmatrix the destination's."""
    return {"S": load, "D": store}.get(matrix_side(view.spec), plain)


def move(view: View, key: str) -> Question | None:
    """Who reads an element, and who gets it."""
    if (sides := _sides(view)) is None:
        return None
    source, destination = sides
    cells = [(r, c) for r, c in view.cells("S") if source.owner_counts[r, c] == 1 == destination.owner_counts[r, c]]
    if not cells:
        return None
    row, column = view.dice.pick(cells)
    reads, gets = source.owners(row, column)[0], destination.owners(row, column)[0]
    steps = tuple(step for x in "SD" for step in owner_steps(view, x, row, column))
    return Question(
        _form(view, "move", "move-load", "move-store"), "medium", {"row": row, "column": column}, [reads.thread, gets.thread],
        {"source": element("S", row, column), "destination": element("D", row, column), "reads": reads.thread, "gets": gets.thread},
        steps, frozenset((x, row, column) for x in "SD" if view.shows(x, row, column)),
    )  # fmt: skip


def kept(view: View, key: str) -> Question | None:
    """How many elements a thread gets that it read itself."""
    if (sides := _sides(view)) is None or not all(once_each(x) for x in sides):
        return None
    source, destination = sides
    thread = view.dice.below(min(source.threads, destination.threads))
    rows = source.tile[0]
    if not all(view.shows(x, i % rows, i // rows) for x, side in zip("SD", sides, strict=True) for i in side.tv[thread].tolist()):
        return None
    both = sorted(set(source.tv[thread].tolist()) & set(destination.tv[thread].tolist()))
    names = [f"({i % rows},{i // rows})" for i in both[:8]] + (["…"] if len(both) > 8 else [])
    step = ("kept", {"elements": names, "thread": thread, "n": len(both)}) if both else ("kept-none", {"thread": thread})
    return Question(_form(view, "kept", "kept-load", "kept-store"), "hard", {"thread": thread}, len(both), {"thread": thread, "n": len(both)}, (step,))


def lane_bytes(view: View, key: str) -> Question | None:
    """Bytes that a thread reads."""
    source = view.maps.get("S")
    bits = dtype_bits(source.dtype) if source is not None else 0
    if source is None or role(view.spec, "S") == ADDRESSES or "S" not in view.panels or not bits or source.values * bits % 8 or not once_each(source):
        return None
    total = source.values * bits // 8
    return Question(
        "lane-bytes", "easy", {}, total, {"bits": bits, "n": total},
        (("product", {"terms": f"{source.values}·{bits}/8", "total": total}),), asks=frozenset({"bytes"}),
    )  # fmt: skip


def matrix(view: View, key: str) -> Question | None:
    """The 8x8 matrix of ldmatrix or stmatrix that an element of shared memory lies in, and its row there."""
    side = matrix_side(view.spec)
    operand = view.maps.get(side)
    if operand is None or operand.values * dtype_bits(operand.dtype) != ROW_BITS or operand.threads not in (16, 32):
        return None
    cells = [(r, c) for r, c in view.cells(side) if operand.owner_counts[r, c] == 1]
    if not cells:
        return None
    row, column = view.dice.pick(cells)
    thread = operand.owners(row, column)[0].thread
    values = {"element": element(side, row, column), "last": operand.threads // 8 - 1, "matrix": thread // 8, "row": thread % 8,
              "thread": thread}  # fmt: skip
    return Question(
        "matrix", "medium", {"operand": side, "row": row, "column": column}, [thread // 8, thread % 8], values,
        (*owner_steps(view, side, row, column), ("matrix", values)), frozenset({(side, row, column)}),
    )  # fmt: skip


KINDS = (
    Kind("lane-bytes", "easy", lane_bytes, once=True), Kind("move", "medium", move), Kind("kept", "hard", kept),
    Kind("matrix", "medium", matrix),
)  # fmt: skip
