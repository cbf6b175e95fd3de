"""What is wrong with a chain, in sentences with numbers: elements that arrive elsewhere, addresses, writes."""

from __future__ import annotations

import re

import numpy as np

from texgen.banks import contiguous
from texgen.chains import delivery as told
from texgen.chains.retile import value_order
from texgen.chains.spec import ChainSpec
from texgen.specs import CopySpec


def warnings_of(spec: ChainSpec) -> list[str]:
    """What is wrong with a chain, in sentences with numbers: the first wrong element, misaligned addresses."""
    out = []
    found = told.delivery(spec)
    if wrong := told.first_wrong(spec):
        t, v, gets, wants = wrong
        text = f"This copy does not feed the MMA: T{t} gets {gets} as V{v} and the MMA wants {wants} there; {int(found.wrong.sum())} of {found.wrong.size} values are wrong"
        out.append(text + (f". {hint}" if (hint := _hint(spec)) else "."))
    width = spec.vector * spec.bits
    if (odd := np.argwhere(told.misaligned(spec))).size:
        t, i = (int(x) for x in odd[0])
        text = f"T{t} reads {width // 8} bytes at byte {int(found.addresses[t, i]) // 8}, which is misaligned: {width // 8} must divide it, or the access faults."
        out.append(text if wrong else f"This copy does not feed the MMA: {text}")
    if spec.write is not None:
        out += _write_warnings(spec, spec.write)
    return out


def _hint(spec: ChainSpec) -> str:
    """What would mend it: another copy, another place, or which mode of shared memory would have to be contiguous."""
    if spec.copy is None or spec.vector == 1:
        return ""
    if spec.bits != 16 and (moved := re.search(r"SM75_U16x(\d)_LDSM_T", spec.copy.name)):
        return f"The transposing ldmatrix moves elements of 16 bits, and these have {spec.bits}: take SM75_U32x{int(moved[1]) // 2}_LDSM_N, and memory whose k is contiguous."
    needed = 0 if first_mode(spec.copy) else 1
    runs = [contiguous(spec.smem.offsets, axis) for axis in (0, 1)]
    names = ("m" if spec.operand == "A" else "n", "k")
    if runs[needed] >= spec.vector and spec.at[needed] % spec.vector:
        return f"The tile begins at {names[needed]} = {spec.at[needed]}, within the {spec.vector} elements that lie at one address: let it begin where {spec.vector} divides {names[needed]}."
    if runs[needed] >= spec.vector and not told.is_matrix_copy(spec.copy):
        apart = longest_run(spec.copy)
        return f"It reads {spec.vector} elements at each address, and the MMA's values lie together in runs of {apart}: take UniversalCopy<uint{apart * spec.bits}_t>."
    if runs[needed] >= spec.vector:
        made_for_it = value_order(spec.copy.D.tv, told.delivery(spec).fragment.tv) is not None and longest_run(spec.copy) >= spec.vector
        mend = f"Make the copy with make_tiled_copy_{spec.operand} of this MMA" + (" (or give the atom alone)." if spec.copy.name else ".")
        return "" if made_for_it else mend
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


def first_mode(copy: CopySpec | None) -> bool:
    """True where a thread's neighbouring source values lie along the first mode, which then must be contiguous."""
    if copy is None:
        return False
    side = copy.S
    if side.values < 2:
        return False
    rows, columns = side.coordinates()
    return bool((columns[:, 0] == columns[:, 1]).all() and (rows[:, 0] != rows[:, 1]).any())
