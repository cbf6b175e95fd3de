"""Handouts: every printed question is read again and answered here from the bare tables, and has one answer.

The second route knows nothing of ``texgen.handout``: it takes the English sentence off the sheet, looks the numbers up in
the target's JSON tables with plain loops (XOR, banks and layouts by their definitions), and gives every right answer.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from pathlib import Path

import pytest
from readback import from_tikz

import texgen
from texgen.cli import app
from texgen.errors import TexgenError, UsageError
from texgen.handout import catalogue
from texgen.handout.api import key_path, make, save
from texgen.handout.figure import MARGIN, PT_MM
from texgen.handout.questions import kinds
from texgen.handout.sheet import SheetOptions, blank_answer
from texgen.render.environment import home
from texgen.render.escape import to_tex

F16 = "SM80_16x8x16_F32F16F16F32_TN"
TRANSPOSE = {"kind": "copy", "name": "transpose", "tile": [4, 4], "S": {"tv": [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]], "dtype": "f16"},
             "D": {"tv": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]], "dtype": "f16"}}  # fmt: skip
"""A copy whose threads keep but one element each, without layouts."""
CASES = {
    "mma": (F16, {}, 0),
    "tiled": (F16, {"atom_layout": "2,2,1", "tile": "32,32,16"}, 1),
    "tiled along m": (F16, {"atom_layout": "4,1,1"}, 2),
    "permuted": (F16, {"atom_layout": "2,2,1", "tile": "(32,32,16)"}, 17),
    "volta": ("SM70_8x8x4_F32F16F16F32_TN", {}, 3),
    "double": ("SM80_8x8x4_F64F64F64F64_TN", {}, 4),
    "wgmma": ("SM90_64x32x16_F32F16F16_SS", {}, 5),
    "wgmma rs": ("SM90_64x64x16_F32F16F16_RS", {}, 6),
    "umma": ("SM100_128x64x16_F32F16F16_SS", {}, 7),
    "fma": ("UniversalFMA", {"atom_layout": "16,16,1"}, 8),
    "ldmatrix": ("SM75_U32x4_LDSM_N", {}, 9),
    "ldmatrix trans": ("SM75_U16x8_LDSM_T", {}, 10),
    "stmatrix": ("SM90_U32x4_STSM_N", {}, 11),
    "cp.async": ("SM80_CP_ASYNC_CACHEALWAYS", {"atom_layout": "(16,8):(8,1)", "val_layout": "1,8", "dtype": "f16"}, 12),
    "tiled ldmatrix": ("SM75_U32x4_LDSM_N", {"atom_layout": "(16,2):(1,16)", "val_layout": "2,4"}, 13),
    "tv": ("((4,8),(2,2)):((32,1),(16,8))", {"tv": True, "tile": "16,8"}, 14),
    "plain": ("(8,8):(8,1)", {}, 15),
    "nested": ("((2,4),(4,2)):((1,8),(2,32))", {"dtype": "f32"}, 16),
    "broadcast": ("(16,4):(1,0)", {}, 18),
    "swizzle": ("S<3,4,3> o 0 o (8,64):(64,1)", {"dtype": "f16"}, 19),
    "swizzle of elements": ("S<2,3,3> o 0 o (8,32):(32,1)", {"bits": 16, "swizzle_unit": "elements"}, 20),
    "doubles in memory": ("(4,8):(17,2)", {"dtype": "f64"}, 23),
    "complex in memory": ("(8,4):(4,1)", {"dtype": "c64"}, 24),
    "tensor memory rows": ("SM90_U16x4_STSM_T", {}, 25),
    "transposed": (TRANSPOSE, {}, 26),
    "large": ("(128,128):(128,1)", {"dtype": "f32"}, 21),
    "holes": ({"kind": "tv", "tile": [8, 8], "tv": [list(range(8 * t, 8 * t + 8, 2)) for t in range(8)]}, {"allow_holes": True}, 30),
    "from offset 8": ("S<2,0,3> o 8 o (8,8):(8,1)", {"bits": 32, "swizzle_unit": "elements"}, 31),
    "one mode": ("24:3", {}, 32),
    "backwards": ("(8,4):(-1,8)", {}, 27),
    "bits": ("SM80_16x8x256_S32U1U1S32_TN_XORPOPC", {}, 28),
    "swizzle of one bit": ("S<1,4,3> o 0 o (32,32):(32,1)", {"dtype": "e4m3"}, 29),
    "coordinates": ("(4,8):(1@1,1@0)", {}, 22),
}  # fmt: skip
SEEDS = (0, 1, 2)


def made(name: str, seed: int = 0, **options):
    target, reading, own = CASES[name]
    options = {"seed": 1000 * own + seed, **options}
    return make([target], SheetOptions(**options), **reading)


def asked(handout, question) -> tuple[str, str]:
    """The printed question and answer."""
    say = handout.catalogue.say
    return tuple(say(f"question.{question.kind}.{part}", **question.values).replace("−", "-") for part in ("ask", "answer"))


# --- the second route


class Table:
    """A target's JSON form, looked through by brute force."""

    def __init__(self, spec) -> None:
        self.data = spec.to_dict()
        self.name = spec.name

    def operand(self, letter: str) -> dict:
        return self.data if self.data["kind"] == "tv" else self.data[letter]

    def cell(self, letter: str, t: int, v: int) -> tuple[int, int]:
        operand = self.operand(letter)
        index = operand["tv"][t][v]
        return index % operand["tile"][0], index // operand["tile"][0]

    def held(self, letter: str) -> list[tuple[int, int, int, int]]:
        """(thread, value, row, column) of every entry."""
        rows = self.operand(letter)["tile"][0]
        return [
            (t, v, i % rows, i // rows) for t, entries in enumerate(self.operand(letter)["tv"]) for v, i in enumerate(entries)
        ]

    def threads(self, letter: str, row: int, column: int) -> list[int]:
        return sorted({t for t, _, r, c in self.held(letter) if (r, c) == (row, column)})

    def offsets(self, plain: bool = False) -> dict[tuple[int, int], int]:
        table = self.data["plain" if plain and "plain" in self.data else "offsets"]
        return {(r, c): x for r, row in enumerate(table) for c, x in enumerate(row)}


HOLD = r"(?:hold|read|get)"
"""What a thread does with an element; which of them is tested apart."""
E = r"(\w*)\((\d+),(\d+)\)"
LOAD = r"In one load, lanes 0 to (\d+) take (\d+)-byte pieces; lane by lane they begin at (.*?)\. "


def letter_of(text: str) -> str:
    return "" if text == "the tile" else text


def width_of(dtype: str) -> int:
    if small := re.fullmatch(r"e(\d)m(\d)", dtype):
        return 1 + int(small[1]) + int(small[2])
    return int(re.search(r"\d+", dtype)[0])


def wavefronts(table: Table, question, plain: bool = False) -> tuple[int, int]:
    """(wavefronts, different banks), lane by lane and word by word."""
    bits, bytes_ = table.data["bits"], question.subject["bytes"]
    offsets = table.offsets(plain)
    together = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[bytes_]
    total, touched = 0, set()
    starts = [tuple(s) for s in question.subject["starts"]]
    for first in range(0, len(starts), together):
        words: dict[int, set[int]] = {}
        for start in starts[first : first + together]:
            at = offsets[start] * bits // 8
            for byte in range(at, at + bytes_):
                words.setdefault(byte // 4 % 32, set()).add(byte // 4)
        touched |= set(words)
        total += max(len(w) for w in words.values())
    return total, len(touched)


def stride(table: Table, operand: str, formula: str, axis: int) -> list[str]:
    """Every distance of the printed index between neighbours, over all threads and values."""
    own = table.operand(letter_of(operand))
    index = {cell: i for i, cell in indices(formula, own["tile"]).items()}
    rows = own["tile"][0]
    tv = [[index[x % rows, x // rows] for x in line] for line in own["tv"]]
    tv = tv if axis else [list(x) for x in zip(*tv, strict=True)]
    return sorted({str(b - a) for line in tv for a, b in itertools.pairwise(line)})


def threads_text(threads: list[int]) -> str:
    return ", ".join(f"T{t}" for t in threads)


def by_layout(text: str, *indices: int) -> int:
    """A layout's value before any swizzle by tensor-layouts."""
    import tensor_layouts as tl

    *composed, layout = text.split(" o ")
    shape, strides = (eval(part, {}) for part in layout.split(":"))
    return int(tl.Layout(shape, strides)(*indices[-(1 if isinstance(shape, int) else 2) :])) + int(composed[1] if composed else 0)


def brute(table: Table, question, ask: str) -> list[str]:
    """Every right answer to a printed question, as text."""
    for pattern, answers in ROUTES.items():
        if match := re.fullmatch(pattern, ask):
            return sorted(set(answers(table, question, *match.groups())))
    raise AssertionError(f"no second route for: {ask}")


def _elements(table: Table, _, operand: str, thread: str) -> list[str]:
    letter = letter_of(operand)
    cells = sorted((v, r, c) for t, v, r, c in table.held(letter) if t == int(thread))
    return [", ".join(f"{letter}({r},{c})" for _, r, c in cells)]


def _meet(table: Table, _, __, a: str, ai, ak, b: str, bj, bk, k: str, *more: str) -> list[str]:
    assert ak == bk == k
    return [f"A({ai},{k}): {threads_text(table.threads('A', int(ai), int(k)))}; B({bj},{k}): {threads_text(table.threads('B', int(bj), int(k)))}"]


def indices(formula: str, tile: list[int]) -> dict[int, tuple[int, int]]:
    """The cell of every index that a printed formula such as ``m + 16·n`` or ``8·m + n`` gives, which must differ."""
    down, across = ("m", "n") if "m" in formula and "n" in formula else ("mn"["n" in formula], "k")
    code = formula.replace("·", "*")
    found = {eval(code, {}, {down: r, across: c}): (r, c) for r in range(tile[0]) for c in range(tile[1])}
    assert len(found) == tile[0] * tile[1]
    return found


def _compute(table: Table, _, operand: str, layout: str, formula: str, thread: str, value: str) -> list[str]:
    letter = letter_of(operand)
    row, column = indices(formula, table.operand(letter)["tile"])[by_layout(layout, int(thread), int(value))]
    assert (row, column) == table.cell(letter, int(thread), int(value))
    return [f"{letter}({row},{column})"]


def _per_element(table: Table, _, threads: str, values: str, operand: str, rows: str, columns: str) -> list[str]:
    letter = letter_of(operand)
    assert int(threads) * int(values) == len(table.held(letter)) and [int(rows), int(columns)] == table.operand(letter)["tile"]
    cells: dict[tuple[int, int], set[int]] = {}
    for t, _v, r, c in table.held(letter):
        cells.setdefault((r, c), set()).add(t)
    return [f"{len(x)} threads" for x in cells.values()]


def _values(table: Table, _, operand: str) -> list[str]:
    tv = table.operand(letter_of(operand))["tv"]
    return [f"{len(set(row))} value{'' if len(set(row)) == 1 else 's'}" for row in tv]


def _line(table: Table, question, operand: str, axis: str, index: str) -> list[str]:
    letter = letter_of(operand)
    at = {"A": "mk", "B": "nk"}.get(letter, "mn").index(axis)
    threads = {x[0] for x in table.held(letter) if x[2 + at] == int(index)}
    return [f"{len(threads)} thread{'' if len(threads) == 1 else 's'}"]


def _span(table: Table, _, operand: str, thread: str, axis: str, __) -> list[str]:
    letter = letter_of(operand)
    at = {"A": "mk", "B": "nk"}.get(letter, "mn").index(axis)
    along = [x[2 + at] for x in table.held(letter) if x[0] == int(thread)]
    return [str(max(along) - min(along))]


def _registers(table: Table, _, bits: str, operand: str) -> list[str]:
    own = table.operand(letter_of(operand))
    assert own.get("dtype") and width_of(own["dtype"]) == int(bits)
    n = len(own["tv"][0]) * int(bits) // 32
    return [f"{n} register{'' if n == 1 else 's'}"]


def _bytes(table: Table, _, operand: str, rows: str, columns: str, bits: str) -> list[str]:
    assert [int(rows), int(columns)] == table.operand(operand)["tile"] and int(bits) == width_of(table.operand(operand)["dtype"])
    return [f"{int(rows) * int(columns) * int(bits) // 8} bytes"]


def _matrix(table: Table, _, last: str, side: str, row: str, column: str) -> list[str]:
    (thread,) = table.threads(side, int(row), int(column))
    assert int(last) == len(table.operand(side)["tv"]) // 8 - 1
    # a row of 16 bytes of the matrix is what this one thread points at, and nothing else
    assert {t for t, _, r, c in table.held(side) if (r, c) in {(r2, c2) for t2, _, r2, c2 in table.held(side) if t2 == thread}} == {thread}
    return [f"matrix {thread // 8}, row {thread % 8}"]


def _kept(table: Table, _, *threads: str | None) -> list[str]:
    (n,) = (int(x) for x in threads if x)
    return [str(len({x[2:] for x in table.held("S") if x[0] == n} & {x[2:] for x in table.held("D") if x[0] == n}))]


def _swizzled(table: Table, x: int) -> int:
    b, m, s = table.data["swizzle"]
    if table.data.get("unit", "elements") == "bytes":
        m -= (table.data["bits"] // 8).bit_length() - 1
    bits = x >> (m + s) & ((1 << b) - 1)
    return x ^ bits << m


def _load(table: Table, question, last: str, bytes_: str, starts: str, what: str) -> list[str]:
    own = [f"({r},{c})" for r, c in question.subject["starts"]]
    assert len(own) == int(last) + 1 and question.subject["bytes"] == int(bytes_)
    assert starts == ", ".join(own if len(own) <= 4 else [*own[:3], "…", own[-1]])
    total, banks = wavefronts(table, question)
    n = {"wavefronts does this load take": total, "different banks does it touch": banks}.get(what)
    if n is None:
        n = wavefronts(table, question, plain=True)[0] - total
    unit = "bank" if "banks" in what else "wavefront"
    return [f"{n} {unit}{'' if n == 1 else 's'}"]


def _where(table: Table, wanted: int, plain: bool) -> list[str]:
    return [f"({r},{c})" for (r, c), x in table.offsets(plain).items() if x == wanted]


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


ROUTES = {
    rf"Which thread {HOLD}s {E}\?": lambda t, q, x, r, c: [f"T{i}" for i in t.threads(x, int(r), int(c))],
    rf"A warp is 32 .* Which warp {HOLD}s {E}\?": lambda t, q, x, r, c: [f"warp {i // 32}" for i in t.threads(x, int(r), int(c))],
    rf"Several threads {HOLD} {E}\. Name all of them\.": lambda t, q, x, r, c: [threads_text(t.threads(x, int(r), int(c)))],
    rf"Thread T(\d+) {HOLD}s {E}\. As which of its values\?": lambda t, q, n, x, r, c: [f"V{v}" for th, v, a, b in t.held(x) if (th, a, b) == (int(n), int(r), int(c))],
    rf"Which elements of (.+) does T(\d+) {HOLD}\? List them from V0 on\.": _elements,
    rf"Which element of (.+) does T(\d+) {HOLD} as its value V(\d+)\?": lambda t, q, x, th, v: ["{}({},{})".format(letter_of(x), *t.cell(letter_of(x), int(th), int(v)))],
    r"The thread-value layout of (.+) is `(.+)`; it maps \(T, V\) to the index (.+?)\. Compute which element belongs to T = (\d+), V = (\d+)\.": _compute,
    rf"How many values of (.+) does each thread {HOLD}\?": _values,
    rf"Each of (\d+) threads {HOLD}s (\d+) values of (.+) \((\d+)×(\d+)\), .* How many threads {HOLD} one element\?": _per_element,
    r"The thread-value layout of (.+) maps \(T, V\) to the index (.+?)\. .* value mode, .*": lambda t, q, x, f: stride(t, x, f, 1),
    r"The thread-value layout of (.+) maps \(T, V\) to the index (.+?)\. .* thread mode, .*": lambda t, q, x, f: stride(t, x, f, 0),
    rf"How many different threads {HOLD} elements of (.+) with (\w) = (\d+)\?": _line,
    rf"Take the elements of (.+) that T(\d+) {HOLD}s\. How much larger is their largest (\w) than their smallest( ?)\?": _span,
    r"How many 32-bit registers do the (\d+)-bit values of (.+) take in one thread, packed without gaps\?": _registers,
    r"How many multiplications of an element of A by an element of B does the whole tile take\?": lambda t, q: [str(sum(1 for _ in itertools.product(*map(range, t.data["tile_mnk"]))))],
    r"How many bytes does the tile of (\w) \((\d+)×(\d+)\) take with (\d+)-bit elements\?": _bytes,
    r"How many (\d+)×(\d+)×(\d+) atoms does it take to cover the tile of (\d+)×(\d+)×(\d+)\?": lambda t, q, a, b, c, m, n, k: [_count(int(m) // int(a) * (int(n) // int(b)) * (int(k) // int(c)), "atom")],
    rf"The sum for (C\(\d+,\d+\)) takes the product {E}·{E} at k = (\d+)\. Which threads hold .*": _meet,
    rf"The sum for (C\(\d+,\d+\)) takes the product {E}·{E} at k = (\d+)\. The thread-value layouts are .*": _meet,
    rf"Which thread reads {E} from the source, and which thread gets this element at the destination \({E}\)\?": lambda t, q, _s, r, c, _d, r2, c2: [
        f"T{a} reads it, T{b} gets it" for a in t.threads("S", int(r), int(c)) for b in t.threads("D", int(r2), int(c2)) if (r, c) == (r2, c2)],
    rf"Which thread names the address of the row that {E} lies in\?": lambda t, q, x, r, c: [f"T{i}" for i in t.threads(x, int(r), int(c))],
    r"Which elements of (.+) lie in the row whose address T(\d+) names\? List .*": _elements,
    rf"Which thread names the address of the row that {E} lies in, and which thread gets this element at the destination \({E}\)\?": lambda t, q, _s, r, c, _d, r2, c2: [
        f"T{a} names the address, T{b} gets it" for a in t.threads("S", int(r), int(c)) for b in t.threads("D", int(r2), int(c2)) if (r, c) == (r2, c2)],
    rf"Which thread reads {E} from the source, and which thread names the address of the row that this element goes to \({E}\)\?": lambda t, q, _s, r, c, _d, r2, c2: [
        f"T{a} reads it, T{b} names the address" for a in t.threads("S", int(r), int(c)) for b in t.threads("D", int(r2), int(c2)) if (r, c) == (r2, c2)],
    r"How many of the elements (?:that T(\d+) reads|whose address T(\d+) names) .*": _kept,
    r"How many bytes of (\d+)-bit elements does each thread read from the source\?": lambda t, q, b: [_count(len(set(row)) * int(b) // 8, "byte") for row in t.operand("S")["tv"]],
    rf"Shared memory is moved as 8×8 matrices, 0 to (\d+), .* Which matrix does {E} lie in, and in which row of it\?": _matrix,
    r"Which offset does the layout give for \((\d+),(\d+)\)\?": lambda t, q, r, c: [str(by_layout(t.data["layout"], int(r), int(c)))],
    r"Which offset does \((\d+),(\d+)\) have before the swizzle\?": lambda t, q, r, c: [str(by_layout(t.data["layout"], int(r), int(c)))],
    r"Which coordinate \(i,j\) has the offset (-?\d+)( before the swizzle)?\?": lambda t, q, x, s: _where(t, int(x), True),
    r"A layout also takes one index, .* the index (\d+)(?: have before the swizzle)?\?": lambda t, q, x: [str(by_layout(t.data["layout"], int(x)))],
    r"How many elements must memory hold, .*": lambda t, q: [_count(max(t.offsets().values()) + 1, "element")],
    r"How many different offsets does the layout give\?": lambda t, q: [str(len(set(t.offsets().values())))],
    r"By how much does the offset (?:before the swizzle )?change from \((\d+),(\d+)\) to \((\d+),(\d+)\)\?": lambda t, q, a, b, c, d: [str(t.offsets(True)[int(c), int(d)] - t.offsets(True)[int(a), int(b)])],
    r"Which coordinate does the layout give for \((\d+),(\d+)\)\?": lambda t, q, r, c: ["({})".format(",".join(str(x[int(r)][int(c)]) for x in t.data["coords"]))],
    r"For which \(i,j\) does the layout give the coordinate \((\d+),(\d+)\)\?": lambda t, q, a, b: [f"({r},{c})" for r, row in enumerate(t.data["coords"][0]) for c, x in enumerate(row) if (x, t.data["coords"][1][r][c]) == (int(a), int(b))],
    r"Where does the swizzle put an element whose offset before it is (\d+)\? Work in binary\.": lambda t, q, x: [str(_swizzled(t, int(x)))],
    r"Which coordinate \(i,j\) lies at offset (\d+) after the swizzle\?": lambda t, q, x: _where(t, int(x), False),
    r"How many elements of row i = (\d+) does the swizzle leave at their offset\?": lambda t, q, r: [_count(sum(x == t.offsets()[rc] for rc, x in t.offsets(True).items() if rc[0] == int(r)), "element")],
    r"In which bank does the element at \((\d+),(\d+)\) lie\?": lambda t, q, r, c: [f"bank {t.offsets()[int(r), int(c)] * t.data['bits'] // 8 // 4 % 32}"],
    LOAD + r"How many (.*)\?": _load,
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_the_only_right_one(name, seed):
    handout = made(name, seed, questions=12)
    (section,) = handout.sections
    table = Table(section.spec)
    assert section.questions
    for question in section.questions:
        ask, answer = asked(handout, question)
        assert brute(table, question, ask) == [answer], ask
    assert len({asked(handout, q)[0] for q in section.questions}) == len(section.questions), "a question is asked twice"


def test_every_kind_is_asked_and_has_a_second_route():
    """Guards the loop above: no kind of question is left out of it."""
    english = catalogue.load()
    known = {key.split(".")[1] for key in english.strings if key.startswith("question.")}
    seen = {
        q.kind
        for name in CASES
        for level in ("easy", "medium", "hard")
        for s in _maybe(name, 0, level)
        for q in s.questions
    }
    assert seen == known
    assert len(known) >= 12


def _maybe(name: str, seed: int, level: str):
    try:
        return made(name, seed, questions=20, difficulty=level, blanks=0).sections
    except TexgenError as error:
        assert "question to ask" in str(error)
        return ()


@pytest.mark.parametrize("level", ["easy", "medium", "hard"])
def test_difficulty_picks_its_own_questions(level):
    for name in ("mma", "ldmatrix", "swizzle"):
        (section,) = made(name, difficulty=level).sections
        assert {q.level for q in section.questions} == {level}
    (mixed,) = made("mma", questions=9).sections
    assert [q.level for q in mixed.questions] == ["easy"] * 3 + ["medium"] * 3 + ["hard"] * 3
    assert {k.level for k in kinds(mixed.view)} == {"easy", "medium", "hard"}


@pytest.mark.parametrize("name", CASES)
def test_every_rule_of_a_worked_answer_gives_its_element(name):
    """Each ``T = 5, V = 1 gives C(1,3)`` by the rule printed before it; what an answer names, its work comes to."""
    handout = made(name, questions=12)
    for question in handout.sections[0].questions:
        rules: tuple[str, ...] = ()
        for key, values in question.steps:
            said = handout.catalogue.say(f"work.{key}", **values)
            if key == "rule":
                rules = re.fullmatch(r"By the rule \w = `(.*)`, \w = `(.*)`:", said).groups()
            if key == "put":
                t, v, row, column = map(int, re.fullmatch(r"T = (\d+), V = (\d+) gives \w?\((\d+),(\d+)\)\.", said).groups())
                assert [eval(r, {"T": t, "V": v}) for r in rules] == [row, column]
        work = " ".join(handout.catalogue.say(f"work.{key}", **values) for key, values in question.steps)
        assert "…" not in work or question.kind in ("kept", "line-threads")
        assert " as V" not in work or name in ("transposed", "holes"), "where there is a layout, its rule says why"


@pytest.mark.parametrize("name", CASES)
def test_the_worked_answers_add_up(name):
    """Every equation in a worked answer holds, and the answer's numbers are among those that it comes to."""
    handout = made(name, questions=12)
    equations = 0
    for question in handout.sections[0].questions:
        steps = [handout.catalogue.say(f"work.{key}", **values) for key, values in question.steps]
        assert steps
        for left, right in re.findall(r"([-\d·+−/()⌊⌋ ]*\d[-\d·+−/()⌊⌋ ]*(?: mod 32)?) = (−?-?\d+(?: \+ \d+·\d+)?)(?![\d/·])", " ".join(steps)):
            if not re.search(r"[·+−/]| mod ", left):
                continue
            for old, new in (("·", "*"), ("−", "-"), ("/", "//"), ("⌊", "("), ("⌋", ")"), (" mod ", " % ")):
                left, right = left.replace(old, new), right.replace(old, new)
            assert eval(left) == eval(right), steps
            equations += 1
        numbers = set(re.findall(r"\d+", asked(handout, question)[1])) - ({"0"} if name == "one mode" else set())
        assert numbers <= set(re.findall(r"\d+", " ".join(steps))), (steps, numbers)
    assert equations or name == "coordinates"


SAYS = {"mma": {"hold"}, "tv": {"hold"}, "cp.async": {"read"}, "ldmatrix": {"get", "address"}, "tiled ldmatrix": {"get", "address"}, "stmatrix": {"read", "address"}}


@pytest.mark.parametrize("name", SAYS)
def test_a_sheet_says_what_threads_do(name):
    """Threads hold what is in registers, read a source and get a destination; of ldmatrix's source a lane only names an address."""
    said = ""
    for level in ("easy", "medium", "hard"):
        handout = made(name, 5, questions=20, difficulty=level, blanks=3)
        (section,) = handout.sections
        said += re.sub(r"(?m)(?<!\\)%.*$", "", handout.tex()) + " ".join(asked(handout, q)[0] for q in section.questions)
    sides = {"S": "read", "D": "get"} if "address" not in SAYS[name] else {"S": "address", "D": "get"} if "ldmatrix" in name else {"S": "read", "D": "address"}
    for word in ("hold", "read", "get", "address"):
        found = re.search(rf"\b(?:threads?|warp|T\d+) (?:names the )?{word}s?\b", said)
        assert bool(found) == (word in SAYS[name]), (word, found)
    for side, wrong in ((s, w) for s, does in sides.items() for w in {"read", "get"} - {does} if "hold" not in SAYS[name]):
        assert not re.search(rf"\b{wrong}s? {side}\(", said), (side, wrong)


@pytest.mark.parametrize("name", CASES)
def test_no_template_more_than_twice_and_no_mode_of_two_strides(name):
    for level in ("hard", "mixed"):
        for section in _maybe(name, 3, level):
            kinds_ = [q.kind for q in section.questions]
            assert max(kinds_.count(k) for k in kinds_) <= 2
            assert sum(k in ("lane-bytes", "tile-bytes") for k in kinds_) <= 1


# --- what the sheet shows


def figures(tex: str) -> list[dict]:
    return [from_tikz(part) for part in tex.split("\\begin{tikzpicture}")[1:]]


def picture_cell(panel, row: int, column: int) -> tuple[int, int]:
    rows, columns = list(panel.rows), list(panel.columns)
    return (rows.index(column), columns.index(row)) if panel.transposed else (rows.index(row), columns.index(column))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_the_blanks_are_the_answers_and_the_sheet_tells_none(name, seed):
    handout = made(name, seed)
    (section,) = handout.sections
    sheet, key = handout.tex(), handout.tex(key=True)
    table = Table(section.spec)
    if not section.view.panels:
        assert not section.blanks and not figures(sheet)
        return
    assert len(section.blanks) == 6
    (empty,), (filled,) = figures(sheet), figures(key)
    marked = set()
    for blank in section.blanks:
        panel, row, column = blank.cell
        at = picture_cell(section.view.panels[panel], row, column)
        marked.add((panel, at))
        assert empty[panel].labels[at] == [blank.letter]
        # the label of the key against the bare table
        printed, said = filled[panel].labels[at], blank_answer(section, blank).split(": ")[1]
        if section.view.maps:
            own = [(t, v) for t, v, r, c in table.held("" if panel == "TV" else panel) if (r, c) == (row, column)]
            assert said == (", ".join(f"T{t} V{v}" for t, v in own) if len(printed) > 1 else ", ".join(f"T{t}" for t, _ in own))
            assert printed[0].startswith(f"T{own[0][0]}")
        else:
            true = (
                "({},{})".format(*(c[row][column] for c in table.data["coords"]))
                if "coords" in table.data
                else str(table.offsets(panel == "before")[row, column])
            )
            assert printed == [said] == [true]
        assert f"{{{blank.letter}}}{{{to_tex(blank_answer(section, blank))}}}" in key
        assert f"\\txgLetter{{{panel}}}{{{at[1]}}}{{{at[0]}}}{{{blank.letter}}}" in key and "\\txgLetter{" + panel not in sheet
        assert blank.cell[1:] != (0, 0), "(0,0) has T0 V0, or the offset 0"
    for question in section.questions:
        for panel, row, column in question.cells:
            if section.view.shows(panel, row, column):
                at = picture_cell(section.view.panels[panel], row, column)
                marked.add((panel, at))
                assert at not in empty[panel].labels, "the figure answers a question"
                assert at in filled[panel].labels
        if question.found:  # cells that are the answer do not stand out: as many others of their panel are empty too
            shown = {(p, picture_cell(section.view.panels[p], r, c)) for p, r, c in question.cells if section.view.shows(p, r, c)}
            for panel in {p for p, _ in shown}:
                mine = {at for p, at in shown if p == panel}
                blank = {at for at in filled[panel].labels if at not in empty[panel].labels}
                assert len(blank) >= 2 * len(mine)
    # nothing but the blanks is left out, and nothing else is changed
    for panel, drawn in filled.items():
        for at, label in drawn.labels.items():
            if empty[panel].labels.get(at) != label:
                assert empty[panel].fills[at] == "Hole"
            else:
                assert (panel, at) not in marked


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["mma", "tiled", "tv", "wgmma rs", "ldmatrix", "permuted"])
def test_layout_strings_stand_on_the_sheet_only_where_they_are_given(name, seed):
    """The key has them; on the sheet one stands in the question that gives it, and none asks what it tells."""
    handout = made(name, seed, questions=10)
    (section,) = handout.sections
    sheet = handout.tex().replace("\\allowbreak{}", "")
    key = handout.tex(key=True).replace("\\allowbreak{}", "")
    for letter, operand in section.spec.operands().items():
        about = [q for q in section.questions if q.kind in ("compute", "meet-layouts") and operand.layout in asked(handout, q)[0]]
        assert (operand.layout in sheet) == bool(about)
        assert operand.layout in key
        if about:
            told = [q.kind for q in section.questions if q.subject.get("operand") == letter]
            assert not {"values", "value-stride", "thread-stride", "copies"} & set(told)


def test_a_sheet_says_what_its_figure_and_its_layout_leave_open():
    """Cells of nobody are no blanks; a byte swizzle and the one on elements are told apart, so are banks before and after it."""
    drawn, table = figures(made("holes").tex())[0]["TV"], Table(made("holes").sections[0].spec)
    nobody = {(r, c) for r, c in itertools.product(range(8), repeat=2) if not table.threads("", r, c)}
    assert {at for at, label in drawn.labels.items() if label == ["--"]} == nobody and len(nobody) == 32
    assert "with a dash" in made("holes").tex() and "with a dash" not in made("tv").tex()
    said = made("swizzle", questions=20).tex().replace("\\allowbreak{}", "").replace("\\textless{}", "<").replace("\\textgreater{}", ">")
    assert "S<3,4,3>} acts on offsets of bytes. The swizzle is {\\ttfamily S<3,3,3>} on offsets of elements" in said
    assert "lies where the swizzle puts it" in said
    assert "offsets of bytes" not in made("swizzle of elements", questions=20).tex()
    assert "j, and i is 0" in made("one mode").tex() and "j, and i is 0" not in made("plain").tex()


def test_labels_print_in_five_points_or_more():
    for name in CASES:
        for paper in ("a4", "letter"):
            (section,) = made(name, paper=paper).sections
            if section.shown is not None:
                assert section.shown.label_pt >= 5.0 and section.shown.width <= 186


# --- the same, every time


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_sheet():
    for name in ("tiled", "wgmma", "ldmatrix", "tv", "nested", "swizzle", "coordinates"):
        first, again, other = made(name, 7), made(name, 7), made(name, 8)
        assert first.tex() == again.tex() and first.tex(key=True) == again.tex(key=True)
        assert first.tex().split("\\begin{document}")[1] != other.tex().split("\\begin{document}")[1]


def test_a_target_keeps_its_questions_when_another_follows():
    alone, both = make([F16]), make([F16, "(8,8):(8,1)"])
    assert [asked(alone, q) for q in alone.sections[0].questions] == [asked(both, q) for q in both.sections[0].questions]
    numbers = re.findall(r"\\txgItem(?:\[[^\n]*?\}\])?\{(\d+)\}", both.tex())
    assert numbers == [str(i + 1) for i in range(16)]


GROUPS = [list(CASES)[i::6] for i in range(6)]


def _grouped(group: list[str], **options):
    specs = [(name, texgen.read(CASES[name][0], **CASES[name][1])) for name in group]
    from texgen.handout.sheet import handout

    return handout(specs, SheetOptions(**options))


@pytest.mark.pdflatex
@pytest.mark.pdftotext
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_sheets_and_keys_compile(group, tmp_path):
    """All targets, several a document; no character is lost (``save`` refuses that), and no word runs into a margin."""
    handout = _grouped(GROUPS[group], seed=group, paper="letter" if group % 2 else "a4")
    written = save(handout, tmp_path / "sheet.pdf")
    assert [p.name for p in written] == ["sheet.pdf", "sheet-key.pdf"]
    for pdf in written:
        words = subprocess.run(["pdftotext", "-bbox", pdf, "-"], capture_output=True, text=True, check=True).stdout
        (width,) = {float(w) for w in re.findall(r'<page width="([\d.]+)"', words)}
        left, right = (f([float(x) for x in re.findall(rf'{side}="([\d.]+)"', words)]) for f, side in ((min, "xMin"), (max, "xMax")))
        margin = MARGIN / PT_MM * 72 / 72.27  # TeX points to those of the PDF
        assert left >= margin - 0.5 and right <= width - margin + 0.5


@pytest.mark.pdflatex
def test_the_same_seed_gives_the_same_pdf(tmp_path, monkeypatch):
    handout = _grouped(["tv"], seed=3)
    first = [p.read_bytes() for p in save(handout, tmp_path / "a" / "sheet.pdf")]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    again = [p.read_bytes() for p in save(handout, tmp_path / "b" / "sheet.pdf")]
    assert first == again and first[0] != first[1]


@pytest.mark.pdflatex
@pytest.mark.pdftotext
def test_a_hostile_title_shows_as_text(tmp_path):
    title = r"50% & #1 $x_2^3$ {\input{/etc/passwd} \write18{id} ~\\ }{ ^^41"
    handout = make(["(4,4):(4,1)"], SheetOptions(title=title, questions=2))
    (sheet, _) = save(handout, tmp_path / "sheet.pdf")
    text = subprocess.run(["pdftotext", "-layout", sheet, "-"], capture_output=True, text=True, check=True).stdout
    assert r"\input{/etc/passwd}" in text and r"\write18{id}" in text and "50% & #1" in text and "root:" not in text


@pytest.mark.parametrize("engine", [pytest.param(e, marks=getattr(pytest.mark, e)) for e in ("lualatex", "xelatex")])
@pytest.mark.pdftotext
def test_a_chinese_sheet_and_key(engine, tmp_path):
    handout = _grouped(["tv"], seed=1, lang="zh", questions=6)
    try:
        written = save(handout, tmp_path / "sheet.pdf", engine)
    except TexgenError as error:
        if "install" in str(error):
            pytest.skip(str(error))
        raise
    sheet, key = (subprocess.run(["pdftotext", "-layout", p, "-"], capture_output=True, text=True, check=True).stdout for p in written)
    assert "姓名" in sheet and "答案" in key and "U+" not in sheet + key
    squeezed = re.sub(r"\W+", "", sheet)
    assert "第1页" in squeezed
    for question in handout.sections[0].questions:
        ask = re.sub(r"\W+", "", handout.catalogue.say(f"question.{question.kind}.ask", **question.values))
        assert ask[:8] in squeezed, ask
    from texgen.render.engine import compile_pdf

    assert compile_pdf(handout.tex(), engine) == written[0].read_bytes()
    about = subprocess.run(["pdfinfo", written[0]], capture_output=True, text=True, check=True).stdout
    assert time.strftime("%Y.%m.%d:") not in about, "xelatex notes the minute of its run"


# --- catalogues


def test_the_chinese_catalogue_has_the_english_keys_and_placeholders():
    english, chinese = (catalogue._read(catalogue.FOLDER / f"{x}.toml") for x in ("en", "zh"))
    assert list(chinese.strings) == list(english.strings) and len(english.strings) > 100
    for key, forms in english.strings.items():
        assert catalogue.placeholders(forms) - {"n"} == catalogue.placeholders(chinese.strings[key]) - {"n"}, key
    assert not catalogue.load("zh").untranslated
    same = [k for k, v in english.strings.items() if chinese.strings[k] == v and re.search(r"[a-z]{3}", re.sub(r"\{\w+\}", "", v[0]))]
    assert same in ([], ["question.warp.answer"]), "not translated"


def test_every_string_is_used_and_every_used_one_exists():
    """Keys in the code and the template against the catalogue, so that neither has what the other lacks."""
    root = Path(texgen.__file__).parent
    code = "".join(p.read_text() for p in (root / "handout").glob("*.py"))
    template = (home() / "handout.tex.j2").read_text()
    english = catalogue.load()
    for key in english.strings:
        group, name = key.split(".")[:2]
        used = f'"{key}"' in code + template or (group in ("question", "work") and f'"{name}"' in code)
        assert used or group in ("level", "panel", "list", "verb") or re.match(r"sheet\.(blank|label)-", key), key


def test_a_language_that_tex_has_no_letters_for_asks_for_a_font(tmp_path):
    """Cyrillic stands in the source for lualatex; without fonts a sentence says so, and no sheet has [U+0423] on it."""
    own = tmp_path / "ru.toml"
    own.write_text('[sheet]\ntitle = "Упражнения"\n', encoding="utf-8")
    with pytest.raises(TexgenError, match=r"language\.fonts"):
        save(make(["(4,4):(4,1)"], SheetOptions(strings=own)), tmp_path / "sheet.pdf")
    assert not (tmp_path / "sheet.pdf").exists()
    own = tmp_path / "with fonts.toml"
    own.write_text('[language]\nfonts = ["DejaVu Sans"]\n[sheet]\ntitle = "Упражнения"\n', encoding="utf-8")
    assert "\\bfseries Упражнения\\par" in make(["(4,4):(4,1)"], SheetOptions(strings=own)).tex()


def test_a_translation_replaces_strings_and_what_it_lacks_is_named(tmp_path):
    own = tmp_path / "de.toml"
    own.write_text('[language]\ncode = "de"\nplural = "n != 1"\n[sheet]\ntitle = "Übungen"\n[question.values]\nanswer = ["{n} Wert", "{n} Werte"]\n', encoding="utf-8")
    handout = make([F16], SheetOptions(strings=own))
    assert to_tex("Übungen") in handout.tex()
    (warning,) = handout.warnings
    assert "de.toml" in warning and "sheet.name" in warning and "sheet.title" not in warning and "question.values.answer" not in warning
    lacks = len(catalogue.load("en").strings) - 2
    assert f"lacks {lacks} strings" in warning and f"and {lacks - 8} more" in warning
    say = handout.catalogue.say
    assert [say("question.values.answer", n=n) for n in (1, 4)] == ["1 Wert", "4 Werte"]
    assert catalogue.load("zh").say("question.values.answer", n=1) == "1 个值"


def test_a_catalogue_in_another_encoding_is_told_to_be_utf8(tmp_path):
    own = tmp_path / "de.toml"
    own.write_bytes('[sheet]\ntitle = "Übungen"'.encode("cp1252"))
    with pytest.raises(TexgenError, match="is not in UTF-8: save it"):
        catalogue.load(path=own)


@pytest.mark.parametrize("text, says", [
    ("= =", "no catalogue"), ('[sheet]\nno = "x"', "'sheet.no'"), ('[sheet]\ntitle = "{seed.__class__} {x}"', "{x}"),
    ('[sheet]\npage = "{seite}"', "it has {page}"),
    ('[language]\nplural = "__import__"', "plural"), ('[sheet]\ntitle = 3', "string"), ('[sheet]\ntitle = ["a", "b", "c"]', "3 forms"),
    ('[language]\nfonts = ["a\\\\input{x}"]', "fonts"), ('[language]\nbabel = "a}b"', "babel"),
])  # fmt: skip
def test_a_catalogue_with_a_mistake_is_refused_in_one_sentence(text, says, tmp_path):
    own = tmp_path / "x.toml"
    own.write_text(text)
    with pytest.raises(TexgenError) as error:
        make(["(4,4):(4,1)"], SheetOptions(strings=own))
    assert says in str(error.value) and str(own) in str(error.value) and "\n  " not in str(error.value)


def test_python_holds_no_sentences():
    """What is printed on a sheet is in the catalogue: no string of the question modules has two words in a row."""
    folder = Path(texgen.__file__).parent / "handout"
    for path in folder.glob("ask_*.py"):
        code = re.sub(r'"""[\s\S]*?"""|#.*', "", path.read_text())
        assert not [x for x in re.findall(r'"[^"\n]*"', code) if re.search(r"[a-z]{3,} [a-z]{3,} [a-z]", x) and " for " not in x], path


# --- the command


def run(*arguments: str):
    from click.testing import CliRunner

    return CliRunner().invoke(app, ["handout", *arguments], catch_exceptions=True)


def test_the_command_writes_sheet_and_key(tmp_path):
    result = run(F16, "(8,8):(8,1)", "-o", str(tmp_path / "sheet.tex"), "--seed", "5", "--questions", "4", "--title", "Week 3")
    assert result.exit_code == 0, result.output
    sheet, key = (tmp_path / "sheet.tex").read_text(), (tmp_path / "sheet-key.tex").read_text()
    assert "Week 3" in sheet and "Week 3" in key and len(re.findall(r"^\\txgItem", sheet, re.M)) == 8
    assert result.output.split() == [str(tmp_path / "sheet.tex"), str(tmp_path / "sheet-key.tex")]


@pytest.mark.parametrize("arguments, says", [
    (("-o", "x.svg"), "as .pdf or .tex"), (("-o", "x.tex", "--difficulty", "fiendish"), "--difficulty"), (("-o", "x.tex", "--paper", "a5"), "--paper"),
    (("-o", "x.tex", "--lang", "xx"), "--lang"), (("-o", "x.tex", "--font", "a}b"), "--font"), (("-o", "x.tex", "--operand", "Q"), "--operand"),
    (("-o", "x.pdf", "--lang", "zh", "--engine", "pdflatex"), "lualatex or xelatex"), (("-o", "x.tex", "--strings", "none.toml"), "cannot be read"),
])  # fmt: skip
def test_wrong_options_are_explained_and_nothing_is_written(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = run(F16, *arguments).exception
    assert isinstance(error, TexgenError) and says in str(error)
    assert not list(tmp_path.iterdir())


def test_without_tex_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for lang, package in (("en", "texlive-latex-extra"), ("zh", "texlive-luatex")):
        with pytest.raises(TexgenError, match=package):
            save(make(["(4,4):(4,1)"], SheetOptions(lang=lang)), tmp_path / "sheet.pdf")
    assert not list(tmp_path.iterdir())


def test_sheet_and_key_are_written_both_or_neither(tmp_path):
    handout = make(["(4,4):(4,1)"])
    sheet = tmp_path / "sheet.tex"
    key_path(sheet).mkdir()
    with pytest.raises(TexgenError):
        save(handout, sheet)
    assert not sheet.exists()
    sheet.write_text("mine")
    with pytest.raises(TexgenError):
        save(handout, sheet)
    assert sheet.read_text() == "mine"


def test_too_few_questions_are_said(tmp_path):
    handout = make(["(4,4):(4,1)"], SheetOptions(questions=40, blanks=60))
    assert len(handout.warnings) == 2 and "40" in handout.warnings[0] and "60" in handout.warnings[1]
    with pytest.raises(TexgenError, match="no hard question"):
        make(["SM100_128x64x16_F32F16F16_SS"], SheetOptions(difficulty="hard"))
    with pytest.raises(TexgenError, match="nothing to ask of 1:0"):
        make(["1:0"])
    with pytest.raises(TexgenError, match="not about a timeline"):
        make([{"kind": "timeline", "stages": 2, "k_tiles": 2, "k_blocks": 1, "program": [["copy", 0, 0], ["commit"]]}])
    assert "no thread holds" in make(["SM100_128x64x16_F32F16F16_SS"]).warnings[1]
    with pytest.raises(UsageError):
        SheetOptions(difficulty="x")
