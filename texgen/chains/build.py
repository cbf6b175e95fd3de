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
from texgen.chains.retile import tiled_copy
from texgen.chains.shared import covering, default_smem, read_smem
from texgen.chains.spec import ChainSpec
from texgen.errors import TexgenError, UsageError
from texgen.measure.stamp import instruction_name
from texgen.specs import MEMORIES, CopySpec, LayoutSpec, MmaSpec, TVMap, dtype_bits, flat

ACCESS_BITS = 128
"""The widest access to shared memory of one lane."""
MMA_ONLY = ("atom_layout", "tile", "val_layout")
"""Options of reading that go to the MMA."""
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
    return [_by_instruction(s) for s in [s for target in before for _, s in flat(read(target, **other))] + at_end]


def _by_instruction(spec: Any) -> Any:
    """The spec under its instruction's name, where a dict gave it another."""
    return replace(spec, name=instruction_name(spec)) if isinstance(spec, CopySpec | MmaSpec) else spec


def _is_write(copy: CopySpec) -> bool:
    return "CP_ASYNC" in copy.name or any("CP_ASYNC" in n or "cp.async" in n for n in copy.notes)


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
        layout = default_smem(shape, _first_mode(copy if copy is not None else write), bits)
        major = "first mode" if layout.offsets.shape[0] > 1 and layout.offsets[1, 0] == 1 else "second mode (k)"
        notes.append(f"Shared memory was not given: {shape[0]}×{shape[1]} with the {major} contiguous is taken (--smem says otherwise).")
    else:
        layout = covering(read_smem(smem, bits, **{k: v for k, v in options.items() if k in OF_LAYOUTS}), at[0] + tile[0], at[1] + tile[1])
    if write is not None:
        write, note = _filling(write, layout, mma.threads)
        notes += note
    names = [s.name for s in (write, copy) if s is not None]
    spec = ChainSpec(
        f"{' → '.join(names)} → {what}", letter, mma, layout, copy, write, at,
        vector=1 if copy is None else _vector(copy, layout, at), arch=mma.arch, source=mma.source, notes=tuple(notes),
    )  # fmt: skip
    return replace(spec, warnings=tuple(dict.fromkeys((*mma.warnings, *layout.warnings, *warnings_of(spec)))))


def _laid_over(copy: CopySpec, operand: TVMap, what: str, letter: str) -> tuple[CopySpec, list[str]]:
    """The copy over a whole number of the operand's tiles: an atom laid over it, a tiled copy repeated."""
    if re.search(r"SM100_SU\d", copy.name):
        raise TexgenError(f"{copy.name} unpacks narrower elements on the way, which texgen does not follow in shared memory.")
    if "STSM" in copy.name or "TMEM" in copy.name:
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
    return "LDSM" in copy.name and copy.S.threads == told.WARP and columns == copy.S.values and (plain or "SM100" in copy.name)


def _first_mode(copy: CopySpec | None) -> bool:
    """True where a thread's neighbouring source values lie along the first mode, which then must be contiguous."""
    if copy is None:
        return False
    side = copy.S
    if side.values < 2:
        return False
    rows, columns = side.coordinates()
    return bool((columns[:, 0] == columns[:, 1]).all() and (rows[:, 0] != rows[:, 1]).any())


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
    said = f"{write.name} was given as an atom: {used} threads stand side by side along the {'first' if turned else 'second'} mode, {pieces // used} time{'s' if pieces > used else ''}."
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


def warnings_of(spec: ChainSpec) -> list[str]:
    """What is wrong with a chain, in sentences with numbers: the first wrong element, misaligned addresses."""
    out = []
    found = told.delivery(spec)
    if wrong := told.first_wrong(spec):
        t, v, gets, wants = wrong
        text = f"This copy does not feed the MMA: T{t} gets {gets} as V{v} and the MMA wants {wants} there; {int(found.wrong.sum())} of {found.wrong.size} values are wrong"
        out.append(text + (f". {hint}" if (hint := _hint(spec)) else "."))
    width = spec.vector * spec.bits
    if spec.copy is not None and (odd := np.argwhere(found.addresses % width)).size:
        t, i = (int(x) for x in odd[0])
        out.append(f"T{t} reads {width // 8} bytes at byte {int(found.addresses[t, i]) // 8}, which is misaligned: {width // 8} must divide it.")
    if spec.write is not None:
        out += _write_warnings(spec, spec.write)
    return out


def _hint(spec: ChainSpec) -> str:
    """Which mode of shared memory would have to be contiguous."""
    if spec.copy is None or spec.vector == 1:
        return ""
    needed = 0 if _first_mode(spec.copy) else 1
    runs = [contiguous(spec.smem.offsets, axis) for axis in (0, 1)]
    names = ("m" if spec.operand == "A" else "n", "k")
    if runs[needed] >= spec.vector and not told.is_matrix_copy(spec.copy):
        apart = longest_run(spec.copy)
        return f"It reads {spec.vector} elements at each address, and the MMA's values lie together in runs of {apart}: take UniversalCopy<uint{apart * spec.bits}_t>."
    if runs[needed] >= spec.vector:
        return f"Make the copy with make_tiled_copy_{spec.operand} of this MMA"+ (" (or give the atom alone)." if spec.copy.name else ".")
    said = f"It reads {spec.vector} contiguous {names[needed]} at each address, and shared memory has runs of {runs[needed]} along {names[needed]}"
    if runs[1 - needed] < spec.vector:
        return said + "."
    said += f" and of {runs[1 - needed]} along {names[1 - needed]}"
    if "LDSM_N" in spec.copy.name or "LDSM_T" in spec.copy.name:
        return said + f", which {'the transposing' if 'LDSM_N' in spec.copy.name else 'the plain'} ldmatrix reads."
    return said + "."


def longest_run(copy: CopySpec) -> int:
    """The longest run of a thread's values, from its multiples on, that are neighbours along one mode of the tile."""
    tables, run = copy.S.coordinates(), 1
    while copy.S.values % (2 * run) == 0:
        step = np.arange(2 * run)
        pieces = [x.reshape(len(x), -1, 2 * run) for x in tables]
        if not any((a == a[:, :, :1] + step).all() and (b == b[:, :, :1]).all() for a, b in (pieces, pieces[::-1])):
            break
        run *= 2
    return run


def _write_warnings(spec: ChainSpec, write: CopySpec) -> list[str]:
    """Elements that nobody writes, and writes whose elements do not lie together in shared memory."""
    written = np.zeros(spec.smem.offsets.size, dtype=bool)
    written[write.D.tv] = True
    out = []
    used = told.tile_cells(spec)
    if not written[used].all():
        cell = int(used[~written[used]][0])
        out.append(f"{write.name} leaves {int((~written[used]).sum())} of the operand's {used.size} elements unwritten, {told.cell_name(spec, cell)} first.")
    moved = re.search(r"uint(\d+)_t", write.name)
    run = int(moved[1]) // spec.bits if moved else 1
    if run > 1 and write.D.values % run == 0:
        offsets = spec.smem.offsets.reshape(-1, order="F")[write.D.tv].reshape(write.threads, -1, run)
        apart = np.argwhere((offsets != offsets[:, :, :1] + np.arange(run)).any(axis=2))
        if len(apart):
            t, i = (int(x) for x in apart[0])
            rows = spec.smem.offsets.shape[0]
            first = int(write.D.tv[t, i * run])
            out.append(
                f"{write.name}: T{t} writes {run} elements from {told.cell_name(spec, first)} (shared memory's ({first % rows},{first // rows})) on, and they do not lie side by side in "
                f"{spec.smem.layout or 'shared memory'}."
            )
    return out
