"""Who owns a cell, in the few characters that fit it, and how wide text is."""

from __future__ import annotations

import numpy as np

from texgen.figures.model import HOLE, Block, rectangles
from texgen.figures.options import QUAD, Highlight
from texgen.layouts import IntArray
from texgen.specs import TVMap

# Widths in ems of Helvetica's (= Arial's) characters; the average for the rest. Source: the font's AFM file.
_EM = {c: 0.556 for c in "0123456789abdeghnopqu_L$?"} | {c: 0.278 for c in " .,:;/|!ftI[]"} | {c: 0.222 for c in "ijl'"}
_EM |= (
    {c: 0.333 for c in "()-r{}"}
    | {c: 0.5 for c in "ckvxyzsJ"}
    | {c: 0.611 for c in "TFZ"}
    | {c: 0.667 for c in "VABEKPSXY&"}
)
_EM |= (
    {c: 0.722 for c in "CDHNRUw"}
    | {c: 0.778 for c in "GOQ"}
    | {"m": 0.833, "M": 0.833, "W": 0.944, "+": 0.584, "=": 0.584}
)
_MONO_EM = 0.602


def text_width(text: str, code: bool = False) -> float:
    """An estimate of a line's width in ems; wide (CJK) characters count one em."""
    if code:
        return _MONO_EM * len(text)
    return sum(_EM.get(c, 1.0 if ord(c) > 0x2E7F else 0.584) for c in text)


def owner_lines(operand: TVMap, label: str, highlight: Highlight | None) -> tuple[list[list[str]], ...]:
    """Label lines of every cell: all its owners as far as they fit.

    One owner ``T5`` / ``V2``; two ``T0 T64`` / ``V0``; more ``T0 +3`` / ``V0``. Where the owners' values differ the pairs
    are written together, ``T0V0`` / ``T4V1``. With a highlight a highlighted owner is named first.
    """
    most = int(operand.owner_counts.max())
    threads, values = zip(*(operand.nth_owner(n) for n in range(min(most, 2))), strict=True)
    t0, v0 = threads[0], values[0]
    counts = operand.owner_counts
    if highlight is not None and most > 1:
        t0, v0 = _matching_owner(operand, highlight, t0, v0)
    t_name = np.array([f"T{i}" for i in range(operand.threads)] + [""], dtype=object)
    v_name = np.array([f"V{i}" for i in range(operand.values)] + [""], dtype=object)
    if label == "thread" or (label == "full" and operand.values == 1 and most == 1):
        return (_more(t_name[t0], counts, most).tolist(),)
    if label == "value":
        return (v_name[v0].tolist(),)
    if most == 1:
        return t_name[t0].tolist(), v_name[v0].tolist()
    if _values_agree(operand):
        if most == 2 and highlight is None:
            second = np.where(threads[1] >= 0, " ", "").astype(object) + t_name[threads[1]]
            return (t_name[t0] + second).tolist(), v_name[v0].tolist()
        return _more(t_name[t0], counts, most).tolist(), v_name[v0].tolist()
    first = t_name[t0] + v_name[v0]
    if most == 2 and highlight is None:
        return first.tolist(), (t_name[threads[1]] + v_name[values[1]]).tolist()
    rest = np.array([f"+{n - 1}" if n > 1 else "" for n in range(most + 1)], dtype=object)
    return first.tolist(), rest[counts].tolist()


def _more(names: np.ndarray, counts: IntArray, most: int) -> np.ndarray:  # type: ignore[type-arg]
    suffix = np.array(["", ""] + [f" +{n - 1}" for n in range(2, most + 1)], dtype=object)
    labelled: np.ndarray = names + suffix[counts]  # type: ignore[type-arg]
    return labelled


def _values_agree(operand: TVMap) -> bool:
    """True where all owners of a cell hold it as the same value."""
    flat = operand.tv
    value = np.broadcast_to(np.arange(operand.values), flat.shape)
    first = np.full(operand.cells, -1, dtype=np.int64)
    first[flat.reshape(-1)[::-1]] = value.reshape(-1)[::-1]
    return bool((first[flat] == value).all())


def _matching_owner(operand: TVMap, highlight: Highlight, t0: IntArray, v0: IntArray) -> tuple[IntArray, IntArray]:
    thread, value = grid(operand)
    hit = highlight.matches(thread, value, operand.warp)
    cells = operand.tv[hit][::-1]
    t0, v0 = t0.copy(), v0.copy()
    rows, columns = cells % operand.tile[0], cells // operand.tile[0]
    t0[rows, columns], v0[rows, columns] = thread[hit][::-1], value[hit][::-1]
    return t0, v0


def grid(operand: TVMap) -> tuple[IntArray, IntArray]:
    """The thread and the value of every table entry, two arrays of the table's shape."""
    threads, values = operand.tv.shape
    return (
        np.broadcast_to(np.arange(threads, dtype=np.int64)[:, None], (threads, values)),
        np.broadcast_to(np.arange(values, dtype=np.int64), (threads, values)),
    )


def highlighted(operand: TVMap, highlight: Highlight) -> np.ndarray:  # type: ignore[type-arg]
    """The cells that at least one highlighted (thread, value) holds, a mask of the tile's shape."""
    thread, value = grid(operand)
    mask = np.zeros(operand.cells, dtype=bool)
    mask[operand.tv[highlight.matches(thread, value, operand.warp)]] = True
    return mask.reshape(operand.tile, order="F")


def color_key(operand: TVMap, color_by: str) -> IntArray:
    """What a cell is coloured by: its first owner's thread, value, warp or quad; HOLE where nobody owns it."""
    thread, value = operand.nth_owner(0)
    key = {"thread": thread, "value": value, "warp": thread // operand.warp, "quad": thread // QUAD}[color_by]
    return np.where(thread < 0, HOLE, key)


def group_blocks(operand: TVMap, group: str) -> tuple[Block, ...]:
    """Rectangles of cells that the same warps (or quads) own, with the names of all of them: ``W0``, ``W0 W2``."""
    size, letter = (operand.warp, "W") if group == "warp" else (QUAD, "Q")
    groups = -(-operand.threads // size)
    held = np.zeros((operand.cells, groups), dtype=bool)
    thread = np.broadcast_to(np.arange(operand.threads)[:, None] // size, operand.tv.shape)
    held[operand.tv, thread] = True
    patterns, key = np.unique(held, axis=0, return_inverse=True)
    names = [_names(np.flatnonzero(p).tolist(), letter) for p in patterns]
    grid = key.reshape(operand.tile, order="F")
    return tuple(Block(*rectangle, name=names[k]) for rectangle, k in rectangles(grid))


def _names(members: list[int], letter: str) -> str:
    if len(members) <= 2:
        return " ".join(f"{letter}{i}" for i in members)
    if members == list(range(members[0], members[-1] + 1)):
        return f"{letter}{members[0]}–{members[-1]}"
    return f"{letter}{members[0]} +{len(members) - 1}"
