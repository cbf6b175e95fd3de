"""A copy and an MMA → ``ChainSpec``: which operand, how the copy is laid over it, where shared memory has it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from texgen.banks import contiguous
from texgen.chains import delivery as told
from texgen.chains.faults import first_mode, warnings_of
from texgen.chains.retile import tiled_copy
from texgen.chains.shared import covering, default_smem, read_smem
from texgen.chains.spec import ChainSpec
from texgen.errors import TexgenError, UsageError
from texgen.measure.stamp import instruction_name
from texgen.specs import MEMORIES, WARP, CopySpec, LayoutSpec, MmaSpec, TVMap, dtype_bits, flat

ACCESS_BITS = 128
"""The widest access to shared memory of one lane."""
MMA_ONLY = ("atom_layout", "tile", "val_layout")
"""Options of reading that go to the MMA."""
FILL = "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"
NO_FILL = (
    ("LDSM|ldmatrix", "reads shared memory into registers"),
    ("STSM|stmatrix", "writes registers into shared memory"),
    ("TMEM|tcgen05", "is of tensor memory"),
    ("TMA_STORE|TMA_REDUCE", "reads shared memory"),
)
"""Copies, by name, that cannot bring global memory into shared memory, and what they do."""
OF_LAYOUTS = ("swizzle_unit", "arch", "timeout")
"""Options of reading that a shared-memory layout takes too."""


def read_chain(targets: Sequence[Any], *, smem: Any = None, operand: str = "", at: Any = None, **options: Any) -> ChainSpec:
    """The chain of its targets: a copy and the MMA, or what fills shared memory, the copy and the MMA.

    Each target is all that ``texgen.read`` takes; one may return several of the objects (a dict or list), also the
    layout of shared memory. ``smem``: that layout, of the operand's tile or more (default: the tile as the copy must
    have it, without swizzle). ``operand``: A or B (default: A, or B where that alone fits). ``at``: where the MMA's tile begins in
    shared memory, ``(row, k)``. ``options`` are those of reading; ``atom_layout``, ``tile`` and ``val_layout`` go to the
    MMA. Raises TexgenError where the copy cannot feed the MMA at all.
    """
    found = _read_all(targets, options)
    copies = [s for s in found if isinstance(s, CopySpec)]
    mmas = [s for s in found if isinstance(s, MmaSpec)]
    layouts = [s for s in found if isinstance(s, LayoutSpec)]
    if len(mmas) != 1 or not 1 <= len(copies) <= 2 or len(layouts) > 1 or len(copies) + len(mmas) + len(layouts) != len(found):
        kinds = ", ".join(s.kind for s in found)
        raise UsageError(
            f"A chain is a copy and the MMA that it feeds, or cp.async, a copy and the MMA; these targets give {kinds}: "
            f"write texgen render --chain SM75_U32x4_LDSM_N SM80_16x8x16_F32F16F16F32_TN -o chain.svg."
        )
    writes = len(copies) == 2 or _is_write(copies[0])
    write, copy = (copies[0] if writes else None), (copies[-1] if len(copies) == 2 or not writes else None)
    if write is not None:
        _check_fill(write)
    given = layouts[0] if layouts and smem is None else smem
    letters = [c for c in operand.upper() if c not in ", "]
    if letters not in ([], ["A"], ["B"]):
        raise UsageError(f"--operand {operand!r}: a chain feeds one operand, A or B.")
    made: list[ChainSpec] = []
    failed: list[TexgenError] = []
    for letter in letters or "AB":
        try:
            made.append(_chain(write, copy, mmas[0], letter, given, _corner(at), options))
        except UsageError:
            raise
        except TexgenError as error:
            failed.append(error)
            continue
        own = mmas[0].operands()[letter].tile
        if not told.delivery(made[-1]).wrong.any() and (letter == "A" or made[-1].tile == own):
            return made[-1]  # a copy of A's tile may also fit two tiles of B, which nobody means
    if not made:
        raise failed[0]
    return made[0]


def _read_all(targets: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
    """The specs of all targets in order; the last is read first, since its dtype says how wide a copy's elements are."""
    from texgen.sources import read

    if not targets:
        raise UsageError("A chain needs a copy and the MMA that it feeds: give both.")
    *before, last = targets
    at_end = [s for _, s in flat(read(last, **options))]
    bits = next((dtype_bits(s.A.dtype) for s in at_end if isinstance(s, MmaSpec)), 0)
    other = {k: v for k, v in options.items() if k not in MMA_ONLY}
    if bits and not other.get("bits") and not other.get("dtype"):
        other["bits"] = bits
    first = [s for target in before for _, s in flat(read(target, **other))]
    mma = next((s for s in first if isinstance(s, MmaSpec)), None)
    copy = next((s for s in at_end if isinstance(s, CopySpec)), None)
    if mma is not None and copy is not None and not any(isinstance(s, MmaSpec) for s in at_end):
        raise UsageError(f"{mma.name or 'The MMA'} is an MMA and {copy.name or 'what follows'} a copy: the copy comes first, then the MMA that it feeds.")
    return [_by_instruction(s) for s in first + at_end]


def _by_instruction(spec: Any) -> Any:
    """The spec under its instruction's name, where a dict gave it another."""
    return replace(spec, name=instruction_name(spec)) if isinstance(spec, CopySpec | MmaSpec) else spec


def _is_write(copy: CopySpec) -> bool:
    return "CP_ASYNC" in copy.name or any("CP_ASYNC" in n or "cp.async" in n for n in copy.notes)


def _check_fill(write: CopySpec) -> None:
    """Raises TexgenError for a copy that does not bring global memory into shared memory."""
    known = " ".join((write.name, *write.notes))
    done = next((said for pattern, said in NO_FILL if re.search(pattern, known)), "")
    if done or not np.array_equal(write.S.tv, write.D.tv):
        raise TexgenError(
            f"{write.name} {done or 'gives one thread what another reads'}: what fills shared memory comes from global memory, take {FILL}."
        )


def _corner(at: Any) -> tuple[int, int]:
    """``--at 0,16``."""
    if at in (None, ""):
        return 0, 0
    parts = at if isinstance(at, tuple | list) else re.findall(r"\d+", at) if re.fullmatch(r"\s*\d{1,7}\s*,\s*\d{1,7}\s*", str(at)) else ()
    if len(parts) != 2 or any(int(x) < 0 for x in parts):
        raise UsageError(f"--at {at!r} is no place: write the row and the k at which the operand begins in shared memory, as 0,16.")
    return int(parts[0]), int(parts[1])


def _chain(
    write: CopySpec | None, copy: CopySpec | None, mma: MmaSpec, letter: str, smem: Any, at: tuple[int, int], options: Mapping[str, Any]
) -> ChainSpec:  # fmt: skip
    operand = mma.operands()[letter]
    what = f"{letter} of {mma.name or 'the MMA'}"
    if operand.memory != "rmem":
        raise TexgenError(f"{what} is read from {MEMORIES[operand.memory]} through a descriptor: no copy fills registers for it.")
    notes: list[str] = []
    bits = told.element_bits(operand, copy or write)
    if not bits:
        raise TexgenError(f"The width of the elements of {what} is not known: give --dtype f16.")
    for one in (write, copy):
        if one is not None and (own := dtype_bits(one.S.dtype)) and own != bits:
            raise TexgenError(f"{one.name} copies elements of {own} bits and {what} has {operand.dtype or f'{bits} bits'}: give both the same dtype.")
    if copy is not None:
        copy, note = _laid_over(copy, operand, what, letter)
        notes += note
    tile = copy.tile if copy is not None else operand.tile
    wide = tile if write is None or write.threads == 1 else write.tile
    if smem is None:
        shape = max(at[0] + tile[0], wide[0]), max(at[1] + tile[1], wide[1])
        layout = default_smem(shape, first_mode(copy if copy is not None else write), bits)
        major = "first mode" if layout.offsets.shape[0] > 1 and layout.offsets[1, 0] == 1 else "second mode (k)"
        notes.append(f"Shared memory was not given: {shape[0]}×{shape[1]} with the {major} contiguous is taken (--smem says otherwise).")
    else:
        layout = read_smem(smem, bits, **{k: v for k, v in options.items() if k in OF_LAYOUTS})
        _check_place(layout, at, tile)
        layout = covering(layout, at[0] + tile[0], at[1] + tile[1])
    if write is not None:
        write, note = _filling(write, layout, mma.threads)
        notes += note
    names = [s.name for s in (write, copy) if s is not None]
    spec = ChainSpec(
        f"{' → '.join(names)} → {what}", letter, mma, layout, copy, write, at,
        vector=1 if copy is None else _vector(copy, layout, at), arch=mma.arch, source=mma.source, notes=tuple(notes),
    )  # fmt: skip
    return replace(spec, warnings=tuple(dict.fromkeys((*mma.warnings, *layout.warnings, *warnings_of(spec)))))


def _check_place(layout: LayoutSpec, at: tuple[int, int], tile: tuple[int, int]) -> None:
    """Raises UsageError where the tile begins outside of the layout that was given, or runs over an edge that it need not meet.

    A layout smaller than the tile is an atom, which ``covering`` repeats.
    """
    shape = layout.offsets.shape
    if any(a >= n or (a and a + t > n >= t) for a, t, n in zip(at, tile, shape, strict=True)):
        raise UsageError(
            f"--at {at[0]},{at[1]}: the tile of {tile[0]}×{tile[1]} from there on leaves --smem {layout.layout}, which holds {shape[0]}×{shape[1]}: "
            f"give another --at or a larger --smem."
        )


def _laid_over(copy: CopySpec, operand: TVMap, what: str, letter: str) -> tuple[CopySpec, list[str]]:
    """The copy over a whole number of the operand's tiles: an atom laid over it, a tiled copy repeated."""
    if re.search(r"SM100_SU\d", copy.name):
        raise TexgenError(f"{copy.name} unpacks narrower elements on the way, which texgen does not follow in shared memory.")
    if re.search("STSM|TMEM|CP_ASYNC|TMA_", copy.name):
        raise TexgenError(f"{copy.name} does not read shared memory into registers: give ldmatrix (SM75_U32x4_LDSM_N) or a UniversalCopy.")
    if is_atom(copy):
        made = tiled_copy(copy, operand, what)
        count = made.D.values // copy.D.values
        said = f"The atom is laid over {letter} as make_tiled_copy_{letter} does, {count} instruction{'s' if count > 1 else ''} a warp."
        return made, [said if told.is_matrix_copy(copy) else said.replace("a warp", "a thread")]
    tile: tuple[int, int] = tuple(math.lcm(a, b) for a, b in zip(copy.tile, operand.tile, strict=True))  # type: ignore[assignment]
    if any(t > 64 * max(a, b) for t, a, b in zip(tile, copy.tile, operand.tile, strict=True)):
        raise TexgenError(f"{copy.name} has a tile of {copy.tile[0]}×{copy.tile[1]}, which does not divide into {operand.tile[0]}×{operand.tile[1]} of {what}.")
    from texgen.copy_tiling import over_tile

    return over_tile(copy, tile), []


def is_atom(copy: CopySpec) -> bool:
    """True for a copy atom alone: one thread's run of elements, or ldmatrix's buffer of rows read by one warp."""
    if copy.S.threads == 1:
        return copy.tile == (1, copy.S.values) and np.array_equal(copy.S.tv, np.arange(copy.S.values)[None, :])
    rows, columns = copy.tile
    lane, value = np.indices(copy.S.tv.shape)
    plain = np.array_equal(copy.S.tv, lane % rows + rows * value)
    return "LDSM" in copy.name and copy.S.threads == WARP and columns == copy.S.values and (plain or "SM100" in copy.name)


def _filling(write: CopySpec, layout: LayoutSpec, threads: int) -> tuple[CopySpec, list[str]]:
    """The copy into shared memory over all of its layout; an atom alone gets the MMA's threads, side by side along a row."""
    from texgen.copy_tiling import over_tile

    rows, columns = layout.offsets.shape
    if not is_atom(write):
        return over_tile(write, (rows, columns)), []
    run = write.S.values
    turned = contiguous(layout.offsets, 1) < run <= contiguous(layout.offsets, 0)
    along = rows if turned else columns
    pieces = rows * columns // run
    if along % run:
        raise TexgenError(f"{write.name} copies {run} elements at a time, which do not divide the {along} of a row of shared memory: take a narrower copy.")
    used = math.gcd(pieces, threads)
    piece = np.arange(pieces).reshape(-1, used).T  # piece of every (thread, turn)
    start, line = piece % (along // run) * run, piece // (along // run)
    run_of = (start[:, :, None] + np.arange(run)).reshape(used, -1)
    line_of = np.repeat(line, run, axis=1)
    tv = run_of + rows * line_of if turned else line_of + rows * run_of
    side = replace(write.S, tile=(rows, columns), tv=tv, layout="")
    turns = pieces // used
    line = "column" if turned else "row"
    share = f"a piece of {run} elements each" if turns == 1 else f"{turns} pieces of {run} elements each"
    said = f"{write.name} was given as an atom: {used} threads copy {share}, {line} by {line}" + (f", {used} neighbouring pieces at a time." if turns > 1 else ".")
    return replace(write, tile=(rows, columns), S=side, D=side, tiler=f"({rows},{columns})"), [said]


def _vector(copy: CopySpec, layout: LayoutSpec, at: tuple[int, int]) -> int:
    """Elements that a lane reads at one address: an instruction's own width, else the longest run that lies together."""
    bits = layout.bits
    if told.is_matrix_copy(copy):
        return max(1, min(copy.S.values, ACCESS_BITS // bits))
    named = re.search(r"UniversalCopy<uint(\d+)_t", " ".join((copy.name, *copy.notes)))
    if named and int(named[1]) % bits == 0 and copy.S.values % (int(named[1]) // bits) == 0:
        return min(int(named[1]), ACCESS_BITS) // bits or 1
    rows, columns = copy.S.coordinates()
    offsets = layout.offsets[np.minimum(rows + at[0], layout.offsets.shape[0] - 1), np.minimum(columns + at[1], layout.offsets.shape[1] - 1)]
    run = 1
    while copy.S.values % (2 * run) == 0 and 2 * run * bits <= ACCESS_BITS:
        pieces = offsets.reshape(len(offsets), -1, 2 * run)
        if not (pieces == pieces[:, :, :1] + np.arange(2 * run)).all() or (pieces[:, :, 0] % (2 * run)).any():
            break
        run *= 2
    return run


def check_parts(spec: ChainSpec, where: str) -> ChainSpec:
    """The spec, if its parts go together. Raises TexgenError otherwise."""
    if spec.mma.operands()[spec.operand].memory != "rmem" or not spec.smem.bits or spec.smem.coords:
        raise TexgenError(f"{where}: a chain needs an operand in registers, and a layout of shared memory with offsets and bits.")
    if len(np.unique(spec.smem.offsets)) != spec.smem.offsets.size or int(spec.smem.offsets.min()) < 0:
        raise TexgenError(f"{where}: the layout of shared memory must have offsets from 0 up, each once.")
    if spec.write is not None and spec.write.tile != spec.smem.offsets.shape:
        raise TexgenError(f"{where}: 'write' must have the tile of shared memory, {list(spec.smem.offsets.shape)}.")
    told.delivery(spec)
    return spec
