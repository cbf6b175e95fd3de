"""A spec's tables put to work, in NumPy: what ``executed`` does on a GPU, with the instructions emulated.

The tables say which element each thread loads and stores. The instruction knows nothing of them: a matrix product is the
atom's own on the registers that its lanes hold, repeated over the tile in the order of ``cute.gemm``; ldmatrix and
stmatrix are those of the PTX ISA. So a table that is wrong gives a wrong result, which ``check`` proves each time by
swapping two of its entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from texgen.errors import TexgenError
from texgen.layouts import IntArray, Layout, tv_table
from texgen.measure.stamp import instruction_name
from texgen.specs import CopySpec, MmaSpec, Spec
from texgen.tiling import MmaAtom

Tables = dict[str, IntArray]
POISON = np.iinfo(np.int64).min
"""What no result is."""
MUTATIONS = 3
"""Swaps tried for each table."""
MATRIX_COPY = re.compile(r"(?:U32|U16)x(\d)_(LD|ST)SM_([NT])$")


class Backend(Protocol):
    """What runs a spec: tables are those to load and store through, which may be mutated."""

    def mma(self, spec: MmaSpec, a: IntArray, b: IntArray, tables: Tables) -> IntArray:
        """C (M x N), from A (M x K) and B (N x K)."""

    def copy(self, spec: CopySpec, tables: Tables) -> IntArray:
        """What landed at each (thread, value) of the destination: the cell of the source that it came from."""


@dataclass(frozen=True)
class Outcome:
    """``status`` is pass, fail or skip; ``mutation_caught`` is None where nothing ran."""

    status: str
    mutation_caught: bool | None = None
    reason: str = ""
    mutations: int = 0


def check(spec: Spec, backend: Backend, seed: int = 0) -> Outcome:
    """Run a spec through ``backend`` and then with each table mutated. TexgenError where its instruction cannot run."""
    if isinstance(spec, MmaSpec):
        return _check_mma(spec, backend, seed)
    if isinstance(spec, CopySpec):
        return _check_copy(spec, backend, seed)
    raise TexgenError("Only a TiledMma or a TiledCopy can be executed: a layout alone has no instruction.")


def _check_mma(spec: MmaSpec, backend: Backend, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    draws = list(matrices(spec, rng))
    tables = {k: x.tv for k, x in spec.operands().items()}
    for a, b in draws:
        got, truth = backend.mma(spec, a, b, tables), multiply(spec, a, b)
        if not np.array_equal(got, truth):
            m, n = (int(x) for x in np.argwhere(got != truth)[0])
            wrong = int((got != truth).sum())
            what = f"C({m},{n}) is {got[m, n]}, not {truth[m, n]}; {wrong} of {truth.size} cells are wrong"
            return Outcome("fail", None, what)
    missed, count = [], 0
    for name, operand in spec.operands().items():
        if operand.memory != "rmem":
            continue
        for table in mutations(operand.tv, rng):
            count += 1
            changed = tables | {name: table}
            if all(np.array_equal(backend.mma(spec, a, b, changed), multiply(spec, a, b)) for a, b in draws):
                missed.append(name)
    return _outcome(missed, count)


def _check_copy(spec: CopySpec, backend: Backend, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    plan = CopyPlan.of(spec)
    tables = {k: x.tv for k, x in spec.operands().items()}
    got = backend.copy(spec, tables)
    if not np.array_equal(got, spec.D.tv):
        t, v = (int(x) for x in np.argwhere(got != spec.D.tv)[0])
        return Outcome("fail", None, f"T{t} V{v} received the element of cell {got[t, v]}, not {spec.D.tv[t, v]}")
    missed, count = [], 0
    for name, addresses in (("S", plan.source_memory), ("D", plan.target_memory)):
        table = spec.operands()[name].tv
        step = plan.run(name) if addresses else 1
        for mutated in mutations(table, rng, step, plan.lanes(name)):
            count += 1
            landed = backend.copy(spec, tables | {name: mutated})
            if np.array_equal(landed, mutated if name == "D" and not addresses else spec.D.tv):
                missed.append(name)
    return _outcome(missed, count)


def _outcome(missed: list[str], count: int) -> Outcome:
    if missed:
        return Outcome(
            "fail", False, f"a swap in the table of {' and '.join(dict.fromkeys(missed))} changed nothing", count
        )
    if not count:
        return Outcome("skip", None, "no table has two entries to swap: give it several threads (--atom-layout)")
    return Outcome("pass", True, "", count)


def multiply(spec: MmaSpec, a: IntArray, b: IntArray) -> IntArray:
    """The exact product; of bits by XOR, how many differ."""
    if instruction_name(spec).endswith("XORPOPC"):
        return np.asarray((a[:, None, :] ^ b[None, :, :]).sum(axis=2))
    return np.asarray(a @ b.T)


def numbers(dtype: str) -> IntArray:
    """Small integers that are exact in a dtype, none of them 0 (but for bits)."""
    if dtype == "b1":
        return np.array([0, 1])
    return np.arange(1, 7) if dtype[:1] in ("u", "b") and dtype != "bf16" else np.array([-3, -2, -1, 1, 2, 3])


def matrices(spec: MmaSpec, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of A and B: as many as it takes for any two cells of A, and of B, to differ in one of them.

    A cell's numbers are the digits of a random index of its own.
    """
    pools = [numbers(x.dtype) for x in (spec.A, spec.B)]
    orders = [rng.permutation(x.cells) for x in (spec.A, spec.B)]
    count = 1
    while any(len(pool) ** count < len(order) for pool, order in zip(pools, orders, strict=True)):
        count += 1
    for i in range(count):
        a, b = (
            pool[order // len(pool) ** i % len(pool)].reshape(x.tile, order="F").astype(np.int64)
            for pool, order, x in zip(pools, orders, (spec.A, spec.B), strict=True)
        )
        yield a, b


def mutations(
    table: IntArray, rng: np.random.Generator, step: int = 1, lanes: IntArray | None = None
) -> Iterator[IntArray]:
    """Tables with two entries of different cells swapped.

    ``step``: only every step-th value is an address that counts; ``lanes``: the threads whose entries count.
    """
    threads = np.arange(len(table)) if lanes is None else lanes
    rows, columns = (x.reshape(-1) for x in np.meshgrid(threads, np.arange(0, table.shape[1], step), indexing="ij"))
    cells = table[rows, columns]
    if len(np.unique(cells)) < 2:
        return
    for _ in range(MUTATIONS):
        i = int(rng.integers(len(rows)))
        j = int(rng.choice(np.flatnonzero(cells != cells[i])))
        mutated = table.copy()
        mutated[rows[i], columns[i]], mutated[rows[j], columns[j]] = cells[j], cells[i]
        yield mutated


# Copies: what both backends need to know ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CopyPlan:
    """How a copy's instruction meets memory.

    A thread's values on a side that lies in memory are runs, one an instruction, each named by the address of its first
    element. ``major`` is how the tile lies there, ``column`` or ``row``, so that runs are contiguous.
    """

    spec: CopySpec
    kind: str
    matrices: int = 0
    transpose: bool = False

    @classmethod
    def of(cls, spec: CopySpec) -> CopyPlan:
        """Raises TexgenError for a copy whose instruction is none of these."""
        name = instruction_name(spec)
        if match := MATRIX_COPY.search(name):
            matrices = int(match[1]) // (2 if "U16" in match[0] else 1)
            return cls(spec, "ldmatrix" if match[2] == "LD" else "stmatrix", matrices, match[3] == "T")
        if "CP_ASYNC" in name:
            return cls(spec, "cp.async")
        if name.startswith("UniversalCopy"):
            return cls(spec, "universal")
        raise TexgenError(f"{name} is no copy between memory and registers that is emulated or executed here.")

    @property
    def source_memory(self) -> bool:
        return self.kind != "stmatrix"

    @property
    def target_memory(self) -> bool:
        return self.kind in ("stmatrix", "cp.async")

    @property
    def bits(self) -> int:
        from texgen.specs import dtype_bits

        return dtype_bits(self.spec.S.dtype)

    @cached_property
    def moved_bits(self) -> int:
        """Bits that a thread moves at once (16 bytes a row for the matrix copies)."""
        if self.matrices:
            return 128
        match = re.search(r"uint(\d+)_t", instruction_name(self.spec))
        return int(match[1]) if match else self.bits

    def run(self, side: str) -> int:
        """Values of a thread on a side that belong to one instruction."""
        memory = self.source_memory if side == "S" else self.target_memory
        if self.matrices and not memory:
            return self.matrices * 2 * 16 // self.bits
        return max(1, self.moved_bits // self.bits)

    def lanes(self, side: str) -> IntArray | None:
        """The threads whose addresses count: of a matrix copy's warp the first eight a matrix."""
        memory = self.source_memory if side == "S" else self.target_memory
        if not self.matrices or not memory:
            return None
        threads = np.arange(len(self.spec.operands()[side].tv))
        return threads[threads % 32 < 8 * self.matrices]

    @cached_property
    def major(self) -> str:
        sides = [s for s, there in (("S", self.source_memory), ("D", self.target_memory)) if there]
        for major in ("column", "row"):
            if all(self._contiguous(side, major) for side in sides):
                return major
        raise TexgenError(
            f"{self.spec.name}: a thread's {self.moved_bits} bits are contiguous along neither mode of the tile."
        )

    def _contiguous(self, side: str, major: str) -> bool:
        run = self.run(side)
        at = self._place(self.spec.operands()[side].tv, major)
        runs = at.reshape(len(at), -1, run)
        return bool((runs == runs[:, :, :1] + np.arange(run)).all() and (runs[:, :, 0] % run == 0).all())

    def _place(self, cells: IntArray, major: str) -> IntArray:
        rows, columns = self.spec.tile
        return cells if major == "column" else cells % rows * columns + cells // rows

    def place(self, cells: IntArray) -> IntArray:
        """Where cells lie in memory, in elements."""
        return self._place(cells, self.major)

    def addresses(self, side: str, table: IntArray) -> IntArray:
        """The address of each instruction's run, (threads, instructions): of a mutated table too."""
        return self.place(table[:, :: self.run(side)])


# The instructions, emulated ----------------------------------------------------------------------------------------------


class Numpy:
    """The backend without a GPU."""

    def mma(self, spec: MmaSpec, a: IntArray, b: IntArray, tables: Tables) -> IntArray:
        return emulate_mma(spec, a, b, tables)

    def copy(self, spec: CopySpec, tables: Tables) -> IntArray:
        return emulate_copy(spec, tables)


def atom_of(spec: MmaSpec) -> MmaAtom:
    """The atom that a spec is made of, from the catalogue."""
    from texgen.sources import catalog

    atom = catalog.find(instruction_name(spec)).atom()
    if not isinstance(atom, MmaAtom):
        raise TexgenError(f"{atom.name} is a copy.")
    return atom


def emulate_mma(spec: MmaSpec, a: IntArray, b: IntArray, tables: Tables) -> IntArray:
    """Every thread loads its registers, every atom multiplies what its lanes hold, every thread stores its sums."""
    from texgen.sources.text import parse_layout

    atom = atom_of(spec)
    vmnk = parse_layout(spec.thr_layout_vmnk) if spec.thr_layout_vmnk else None
    if vmnk is None:
        vmnk = Layout((atom.thr_id.shape, 1, 1, 1), (atom.thr_id.stride, 0, 0, 0))
    if not isinstance(vmnk, Layout):
        raise TexgenError(f"{spec.thr_layout_vmnk} is no layout of threads.")
    lanes, *sides = (vmnk.mode(i).offsets() for i in range(4))
    if len(sides[2]) > 1:
        raise TexgenError("Atoms side by side along K leave partial sums in several threads.")
    tile, shape = spec.tile_mnk, atom.shape_mnk
    rests = [max(1, tile[i] // (shape[i] * len(sides[i]))) for i in range(3)]
    memory = {"A": spec.A.memory, "B": spec.B.memory}
    if "tmem" in (*memory.values(), spec.C.memory):
        raise TexgenError("An operand in tensor memory is in no thread's registers.")
    flat = {"A": a.reshape(-1, order="F"), "B": b.reshape(-1, order="F")}
    registers = {x: flat[x][tables[x]] for x in "AB"}
    own = {x: tv_table(getattr(atom, x)) for x in "ABC"}
    sums = np.zeros(tables["C"].shape, dtype=np.int64)
    stored = np.zeros(tables["C"].shape, dtype=bool)

    def part(x: str, threads: IntArray, i: int, k: int, rest: int, count: int) -> IntArray:
        """The atom's operand, rows x K: from its lanes' registers."""
        rows = shape[0 if x == "A" else 1]
        values = own[x].shape[1]
        first = values * (rest + count * k)
        held = registers[x][threads, first : first + values]
        out = np.zeros(rows * shape[2], dtype=np.int64)
        out[own[x]] = held
        out += 1000 * int(not np.array_equal(out[own[x]], held))  # lanes that share a cell must agree
        return out.reshape((rows, shape[2]), order="F")

    def shared(x: str, i: int, k: int, rest: int, counts: int) -> IntArray:
        rows = shape[0 if x == "A" else 1]
        at = rows * (i + counts * rest)
        return (a if x == "A" else b)[at : at + rows, shape[2] * k : shape[2] * (k + 1)]

    shifts = _shifts(vmnk.offsets(), spec.C.threads)
    for m, n, shift in ((m, n, s) for m in range(len(sides[0])) for n in range(len(sides[1])) for s in shifts):
        threads = lanes + sides[0][m] + sides[1][n] + shift
        for rm, rn, k in np.ndindex(*rests):
            left = (
                part("A", threads, m, k, rm, rests[0])
                if memory["A"] == "rmem"
                else shared("A", m, k, rm, len(sides[0]))
            )
            right = (
                part("B", threads, n, k, rn, rests[1])
                if memory["B"] == "rmem"
                else shared("B", n, k, rn, len(sides[1]))
            )
            product = multiply(spec, left, right).reshape(-1, order="F")
            values = own["C"].shape[1]
            at = values * (rm + rests[0] * rn) + np.arange(values)
            sums[threads[:, None], at] += product[own["C"]]
            stored[threads[:, None], at] = True
    cells = tile[0] * tile[1]
    table, copies = by_owner(tables["C"], cells)
    out = np.full(cells * copies, POISON)
    out[table[stored]] = sums[stored]
    return agreed(out, tile[:2])


def _shifts(threads: IntArray, count: int) -> list[int]:
    """What to add to the atoms' thread numbers so that all threads take part: Volta's quad pairs do the same side by side."""
    taken: set[int] = set()
    shifts = []
    for shift in range(count):
        moved = {int(t) + shift for t in threads}
        if not moved & taken and max(moved) < count:
            taken |= moved
            shifts.append(shift)
    return shifts


def by_owner(table: IntArray, cells: int) -> tuple[IntArray, int]:
    """(a table in which every owner of a cell has a place of its own, ``cell + cells * owner``; the most owners)."""
    flat = table.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.searchsorted(ordered, ordered)
    rank = np.empty_like(flat)
    rank[order] = np.arange(len(flat)) - starts
    return (flat + cells * rank).reshape(table.shape), int(rank.max()) + 1


def agreed(out: IntArray, tile: tuple[int, int]) -> IntArray:
    """C from what all owners stored; POISON where two of them differ."""
    copies = out.reshape(-1, tile[0] * tile[1])
    first = copies[0]
    there = copies != POISON
    same = (~there | (copies == first)).all(axis=0)
    return np.where(same, first, POISON).reshape(tile, order="F")


def emulate_copy(spec: CopySpec, tables: Tables) -> IntArray:
    """Every thread gives its addresses, the instruction moves what lies there, every thread says what it received."""
    plan = CopyPlan.of(spec)
    cells = spec.tile[0] * spec.tile[1]
    memory = np.full(cells, -1)
    memory[plan.place(np.arange(cells))] = np.arange(cells)
    source, target = tables["S"], tables["D"]
    if plan.kind == "ldmatrix":
        at = plan.addresses("S", source)
        out = np.zeros(target.shape, dtype=np.int64)
        run, width = plan.run("D"), 128 // plan.bits
        for warp in range(0, len(at), 32):
            for i in range(at.shape[1]):
                rows = memory[at[warp : warp + 32, i, None] + np.arange(width)]
                out[warp : warp + 32, i * run : (i + 1) * run] = _to_registers(rows, plan.matrices, plan.transpose)
        return out
    if plan.kind == "stmatrix":
        at = plan.addresses("D", target)
        landed = np.full(cells, -1)
        run, width = plan.run("S"), 128 // plan.bits
        for warp in range(0, len(at), 32):
            for i in range(at.shape[1]):
                rows = _to_rows(source[warp : warp + 32, i * run : (i + 1) * run], plan.matrices, plan.transpose)
                landed[at[warp : warp + len(rows), i, None] + np.arange(width)] = rows
        return landed[plan.place(spec.D.tv)]
    run = plan.run("S")
    pieces = memory[plan.addresses("S", source)[:, :, None] + np.arange(run)]
    if plan.kind == "universal":
        return np.asarray(pieces.reshape(target.shape))
    landed = np.full(cells, -1)
    landed[plan.addresses("D", target)[:, :, None] + np.arange(run)] = pieces
    return np.asarray(landed[plan.place(spec.D.tv)])


def _to_registers(rows: IntArray, matrices: int, transpose: bool) -> IntArray:
    """PTX ISA, ldmatrix: matrix j's row r is what lane 8j+r points to; lane t gets (t/4, 2(t%4)) and its neighbour."""
    out = []
    for j in range(matrices):
        matrix = rows[8 * j : 8 * j + 8].T if transpose else rows[8 * j : 8 * j + 8]
        out.append(matrix.reshape(32, 2))
    return np.concatenate(out, axis=1)


def _to_rows(registers: IntArray, matrices: int, transpose: bool) -> IntArray:
    """PTX ISA, stmatrix: the reverse."""
    out = []
    for j in range(matrices):
        matrix = registers[:, 2 * j : 2 * j + 2].reshape(8, 8)
        out.append(matrix.T if transpose else matrix)
    return np.concatenate(out, axis=0)
