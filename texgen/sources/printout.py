"""What ``print(tiled_mma)`` and ``print(tiled_copy)`` say, in the DSL's words and in CuTe C++'s, pasted as it stands."""

from __future__ import annotations

import re

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import AnyLayout, Layout, tv_table
from texgen.specs import CopySpec, MmaSpec

HEAD = re.compile(r"\s*(?:Tiled_?\s?(?:MMA|Mma|Copy)|(?:MMA|Mma|Copy)[_ ]?Atom)\s*\n")
FIELD = re.compile(r"^\s*([A-Za-z][\w ]*?)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
SOURCE = "pasted print-out"


def is_printout(text: str) -> bool:
    """True for text that begins as the print-out of a tiled MMA, a tiled copy or an atom does."""
    return HEAD.match(text) is not None


def read_printout(text: str) -> MmaSpec | CopySpec:
    """The spec of a pasted print-out. It names no operation, so dtypes and memories stay open.

    Raises TexgenError where a line that is needed is missing or holds no layout.
    """
    fields = {re.sub(r"[^a-z]", "", k.lower()): v for k, v in FIELD.findall(text)}
    return _copy(fields) if "copy" in text.lstrip()[:12].lower() else _mma(fields)


def _need(fields: dict[str, str], *names: str) -> str:
    for name in names:
        if name in fields:
            return fields[name]
    raise TexgenError(
        f"The print-out has no line {names[0]!r}: paste it whole, from 'Tiled MMA' or 'Tiled Copy' to its last line."
    )


def _mma(fields: dict[str, str]) -> MmaSpec:
    from texgen.sources.text import parse_layout, parse_tile
    from texgen.tiling import MmaAtom, tile_mma, tile_threads

    shape = parse_tile(_need(fields, "shapemnk"))
    if len(shape) != 3 or not all(isinstance(x, int) for x in shape):
        raise TexgenError("The print-out's shape must be three integers, (M,N,K).")
    m, n, k = (int(str(x)) for x in shape)
    a, b, c = (_layout(_need(fields, f"tvlayout{x}", f"layout{x}tv")) for x in "abc")
    atom = MmaAtom("", (m, n, k), _layout(_need(fields, "thrid")), a, b, c, origin=SOURCE)
    if "thrlayoutvmnk" not in fields:
        return tile_mma(atom)
    tile = parse_tile(fields["permutationmnk"]) if "permutationmnk" in fields else None
    threads = parse_layout(fields["thrlayoutvmnk"])
    return tile_threads(atom, _plain(threads), None if tile is None or set(tile) == {None} else tile)


def _copy(fields: dict[str, str]) -> CopySpec:
    from texgen.copy_tiling import CopyAtom, copy_atom, copy_from_tv
    from texgen.sources.copies import cpp_width
    from texgen.sources.text import parse_tile

    kind = fields.get("valuetype", "")
    digits = re.search(r"\d+", kind)
    bits = cpp_width(kind) or (int(digits.group()) if digits else 16)
    source, target = (
        _layout(_need(fields, "tvlayoutsrc", "vallayoutsrc")),
        _layout(_need(fields, "tvlayoutdst", "vallayoutdst")),
    )
    # The TV layout describes registers; on the memory side of ldmatrix and stmatrix a lane holds one whole row.
    ref = "dst" if _is_a_run(source) and not _is_a_run(target) else "src"
    atom = CopyAtom("", _layout(_need(fields, "thrid")), source, target, bits=bits, ref=ref, origin=SOURCE)
    if "tilermn" not in fields:
        return copy_atom(atom)
    tiler = [x for x in parse_tile(fields["tilermn"]) if x is not None]
    return copy_from_tv(atom, _layout(_need(fields, "tvlayouttiled", "tiledlayouttv")), tiler)


def _is_a_run(layout: Layout) -> bool:
    """True where every thread's values follow each other."""
    table = tv_table(layout)
    return bool((table == table[:, :1] + np.arange(table.shape[1])).all())


def _layout(text: str) -> Layout:
    from texgen.sources.text import parse_layout

    return _plain(parse_layout(text))


def _plain(layout: AnyLayout) -> Layout:
    if not isinstance(layout, Layout):
        raise TexgenError(f"{layout} is composed, and a thread-value layout of a print-out is plain.")
    return layout
