"""Mutations that know the form: values of JSON in place of others, characters of text in place of others."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 1.5, float("nan"), float("inf"), 1 << 31, (1 << 62) - 1, 1 << 62, 1 << 63, 10**400, "", "a", "mma", "copy",
    "tv", "layout", "smem", "tmem", "bytes", "elements", "f16", "\ud800", "\x1b[2J", "\u202e", "x" * 2000, [], [[]], [[0]], [[0, 0]], [[1, 1]],
    [[[0, 0]]], [0], [2, 2], [4, 4], [1 << 20, 1 << 20], [3, 4, 3], [3, 4, -3], [60, 60, 60], {}, {"tile": [1, 1], "tv": [[0]]}, "S<3,4,3> o 0 o (8,8)",
    "(2,2):(1,2)", "((4,8),(2,2)):((32,1),(16,8))",
]  # fmt: skip
KEYS = ("kind", "tile", "tv", "offsets", "plain", "coords", "swizzle", "unit", "bits", "shape", "layout", "memory", "dtype", "name", "notes",
        "warnings", "source", "arch", "schema", "tile_mnk", "atom_mnk", "A", "B", "C", "S", "D")  # fmt: skip


def json_bytes(data: bytes, chance: random.Random) -> bytes:
    """A JSON text with one to three values changed; other bytes as they are."""
    try:
        made = json.loads(data)
    except ValueError:
        return data
    for _ in range(chance.randint(1, 3)):
        places = list(_places(made))
        if not places:
            return json.dumps(chance.choice(NASTY)).encode()
        holder, key = chance.choice(places)
        what = chance.randrange(4)
        if what == 0 and isinstance(holder, dict):
            holder[chance.choice(KEYS)] = deepcopy(chance.choice(NASTY))
        elif what == 1:
            del holder[key]
        elif what == 2:
            other, at = chance.choice(places)
            holder[key] = deepcopy(other[at])
        else:
            holder[key] = deepcopy(chance.choice(NASTY))
    return json.dumps(made).encode()


def _places(node: Any) -> Any:
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in items:
        yield node, key
        yield from _places(value)


def text_bytes(data: bytes, tokens: list[bytes], chance: random.Random) -> bytes:
    """One to five pieces cut, doubled, moved or put in."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at, end = sorted(chance.randrange(len(made) + 1) for _ in range(2))
        end = min(end, at + 12)
        what = chance.randrange(4)
        if what == 0:
            del made[at:end]
        elif what == 1:
            made[at:at] = made[at:end] * chance.choice((1, 2, 60))
        elif what == 2:
            made[at:end] = bytes([chance.randrange(256)])
        else:
            made[at:end] = chance.choice(tokens)
    return bytes(made[:4000])


def tokens(dictionary: str) -> list[bytes]:
    """The words of a libFuzzer dictionary."""
    lines = [line[1:-1] for line in dictionary.splitlines() if line.startswith('"')]
    return [line.replace('\\"', '"').replace("\\\\", "\\").replace("\\x0a", "\n").encode() for line in lines]
