"""Tables of integers in few bytes: layouts fold into their modes, whatever they were made from; the rest is compressed.

A table of shape:stride form is a sum of one digit's offsets a mode, a swizzled one an exclusive or of them. Such modes are
peeled off the table itself, from its fastest or slowest end, so that what is kept always unfolds to exactly the table.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from texgen.layouts import IntArray

PLAIN = 512
"""Entries up to which a core, or one mode, is a list of numbers."""
LARGEST = 1 << 31
"""Numbers from here on are kept as text: a script's bitwise operations have 32 bits."""


def packed(table: IntArray) -> dict[str, Any]:
    """A table, flattened row by row, as ``{"steps": [...], "core": [...]}``; ``core`` may be ``deflate`` (Base64) in its place.

    A step ``["l+", o1, o2, ...]`` makes every entry x the run x, x + o1, x + o2, ...; ``"h+"`` appends to the whole table
    its copies plus o1, o2, ...; ``^`` in place of ``+`` is the exclusive or. Steps stand in the order of unfolding.
    """
    flat = np.ascontiguousarray(table, dtype=np.int64).reshape(-1)
    if flat.size and int(np.abs(flat).max()) >= LARGEST:
        return {"steps": [], "core": [str(x) for x in flat.tolist()]}
    steps: list[list[Any]] = []
    while (found := _peeled(flat)) is not None:
        step, flat = found
        steps.append(step)
    steps.reverse()
    if flat.size <= PLAIN:
        return {"steps": steps, "core": flat.tolist()}
    return {"steps": steps, "deflate": _deflated(flat)}


def unpacked(data: dict[str, Any]) -> IntArray:
    """The flat table of ``packed``, as the script of a page has it."""
    if "deflate" in data:
        raw = np.frombuffer(zlib.decompress(base64.b64decode(data["deflate"]), -15), dtype=np.uint8).reshape(4, -1)
        flat = np.ascontiguousarray(raw.T).view("<i4").reshape(-1).astype(np.int64)
    else:
        flat = np.asarray([int(x) for x in data["core"]], dtype=np.int64)
    for kind, *rest in data["steps"]:
        offsets = np.asarray([0, *rest], dtype=np.int64)
        x, o = (flat[:, None], offsets[None, :]) if kind[0] == "l" else (flat[None, :], offsets[:, None])
        flat = (x + o if kind[1] == "+" else x ^ o).reshape(-1)
    return flat


def _peeled(flat: IntArray) -> tuple[list[Any], IntArray] | None:
    """One step and the table without it; None where no mode can be taken off."""
    for p in (p for p in _primes(flat.size) if p <= PLAIN):
        for side, runs in (("l", flat.reshape(-1, p)), ("h", flat.reshape(p, -1).T)):
            first = runs[:, :1]
            for sign, moved in (("+", runs - first), ("^", runs ^ first)):
                if (moved == moved[0]).all():
                    return [side + sign, *moved[0, 1:].tolist()], np.ascontiguousarray(runs[:, 0])
    return None


def _primes(n: int) -> list[int]:
    """The prime factors of n, each once."""
    out, p = [], 2
    while n > 1:
        if p * p > n:
            p = n
        if n % p == 0:
            out.append(p)
            while n % p == 0:
                n //= p
        p += 1
    return out


def _deflated(flat: IntArray) -> str:
    """The bytes of 32-bit numbers, all lowest bytes first, as raw DEFLATE in Base64."""
    planes = flat.astype("<i4").view(np.uint8).reshape(-1, 4).T
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(squeezer.compress(planes.tobytes()) + squeezer.flush()).decode("ascii")
