"""A copy beside its MMA: what arrives by the PTX ISA's rule for ldmatrix, the marks of the figure, and chains that are wrong."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from readback import from_svg, from_tikz

import texgen
from texgen.chains.build import read_chain
from texgen.chains.delivery import delivery, first_wrong, wavefronts
from texgen.errors import TexgenError, UsageError
from texgen.figures.model import DIMMED, HOLE
from texgen.figures.palette import DIM, PALETTES
from texgen.spec_json import from_dict, to_json
from texgen.specs import CopySpec

M16 = "SM80_16x8x16_F32F16F16F32_TN"
X4, X2, X1 = (f"SM75_U32x{n}_LDSM_N" for n in (4, 2, 1))
T4, T2 = "SM75_U16x4_LDSM_T", "SM75_U16x2_LDSM_T"
T8 = "SM75_U16x8_LDSM_T"
SWIZZLED = "S<3,4,3> o 0 o (16,64):(64,1)"
FORMS = {f["id"]: f for f in json.loads((Path(__file__).parent / "oracle" / "ptx_isa.json").read_text())["forms"]}
CP_ASYNC = "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"


def swizzle(byte: int) -> int:
    """``S<3,4,3>`` of a byte address, by hand."""
    return byte ^ ((byte >> 7 & 7) << 4)


def arrives(spec):
    """The (row, k) that comes into every (thread, MMA value), by the rules of ldmatrix and nothing of texgen's tables.

    PTX ISA: lane 8i+r names row r of matrix i; lane l gets the elements 2(l mod 4) and the next of row ⌊l/4⌋, and with
    .trans the elements ⌊l/4⌋ of rows 2(l mod 4) and the next.
    """
    where = {int(o): rc for rc, o in np.ndenumerate(spec.smem.offsets)}
    derived = spec.to_dict()["derived"]
    size = spec.bits // 8
    per = 32 // spec.bits
    issues = len(derived["addresses"][0])
    count = spec.copy.D.values // issues // per
    out = []
    for t in range(spec.threads):
        lane, warp, row = t % 32, t - t % 32, []
        for i in range(issues):
            for m in range(count):
                for e in range(per):
                    if spec.copy.name.endswith("_T"):
                        source, element = per * (lane % 4) + e, lane // 4
                    else:
                        source, element = lane // 4, per * (lane % 4) + e
                    row.append(where.get((derived["addresses"][warp + 8 * m + source][i] + element * size) // size))
        out.append(row)
    return out


def test_a_chain_worked_by_hand():
    spec = read_chain([X4, M16], smem=SWIZZLED)
    assert spec.to_dict()["derived"]["addresses"] == [[swizzle(128 * (t % 16) + 16 * (t // 16))] for t in range(32)]
    assert first_wrong(spec) is None and spec.warnings == ()
    a, form, got = delivery(spec).fragment, FORMS["T02a"], arrives(spec)
    for t in range(32):
        for v in range(8):
            row, k = (eval(form[x], {"l": t, "i": v}) for x in ("row", "col"))
            assert a.tv[t, v] == row + 16 * k
            assert got[t][v] == (row, k)


@pytest.mark.parametrize(
    ("copy", "mma", "operand", "smem", "feeds"),
    [
        (X4, M16, "A", "", True),
        (X4, M16, "A", "(16,16):(24,1)", True),
        (X2, M16, "A", SWIZZLED, True),
        (X1, M16, "A", SWIZZLED, True),
        (X2, M16, "B", "S<2,4,3> o 0 o (8,32):(32,1)", True),
        (X1, M16, "B", "(8,16):(16,1)", True),
        (T8, M16, "A", "S<3,4,3> o 0 o (64,16):(1,64)", True),
        (T4, M16, "B", "S<3,4,3> o 0 o (64,16):(1,64)", True),
        (T2, M16, "B", "", True),
        (X4, "SM80_16x8x32_S32S8S8S32_TN", "A", "S<3,4,3> o 0 o (16,128):(128,1)", True),
        (X2, "SM80_16x8x32_S32S8S8S32_TN", "B", "", True),
        (X4, "SM80_16x8x8_F32TF32TF32F32_TN", "A", "", True),
        (X4, "SM90_64x128x16_F32F16F16_RS", "A", "S<3,4,3> o 0 o (8,64):(64,1)", True),
        (X4, M16, "A", "(16,16):(1,16)", False),
        (T8, M16, "A", "(16,16):(16,1)", False),
        (T4, M16, "B", "(8,16):(16,1)", False),
        (X4, M16, "A", "S<2,1,6> o 0 o (16,64):(64,1)", False),
    ],
)
def test_what_arrives_is_what_ptx_says(copy, mma, operand, smem, feeds):
    spec = read_chain([copy, mma], operand=operand, smem=smem or None)
    found = delivery(spec)
    height = spec.smem.offsets.shape[0]
    said = [[None if c < 0 else (c % height, c // height) for c in row] for row in found.arrives.tolist()]
    assert said == arrives(spec)
    rows, columns = found.fragment.coordinates()
    wanted = np.stack([rows, columns], axis=2).tolist()
    right = all(got == tuple(want) for g, w in zip(said, wanted, strict=True) for got, want in zip(g, w, strict=True))
    assert right == feeds == (first_wrong(spec) is None)
    assert feeds == (not any("does not feed" in w for w in spec.warnings))


@pytest.mark.parametrize(
    ("smem", "count"), [(SWIZZLED, 4), ("(16,64):(64,1)", 32), ("(16,64):(72,1)", 4), ("(16,16):(16,1)", 8), ("S<2,4,3> o 0 o (16,32):(32,1)", 4)]
)
def test_wavefronts_of_ldmatrix(smem, count):
    """Eight rows 128 bytes apart lie in the same banks: 8 wavefronts a matrix; a swizzle or 16 bytes of padding give 1."""
    assert [[(c.wavefronts, c.ideal) for c in warp] for warp in wavefronts(read_chain([X4, M16], smem=smem))] == [[(count, 4)]]


def test_warps_of_a_tiled_mma_and_a_place_in_shared_memory():
    spec = read_chain([X4, M16], smem="S<3,4,3> o 0 o (32,64):(64,1)", at="0,16", atom_layout="2,2,1", tile="32,32,16")
    addresses = spec.to_dict()["derived"]["addresses"]
    for t in range(128):  # two warps along M, then two along N that read the same A
        row, k = 16 * (t // 32 % 2) + t % 16, 16 + 8 * (t % 32 // 16)
        assert addresses[t] == [swizzle(128 * row + 2 * k)]
    assert first_wrong(spec) is None and len(wavefronts(spec)) == 4


def test_a_small_layout_is_repeated_as_tile_to_shape_does():
    atom, whole = (read_chain([X4, M16], smem=f"S<3,4,3> o 0 o ({rows},64):(64,1)") for rows in (8, 16))
    assert np.array_equal(atom.smem.offsets, whole.smem.offsets)
    assert "repeated 2 × 1 times" in " ".join(atom.smem.notes)


def test_json_there_and_back():
    for spec in (
        read_chain([X4, M16], smem=SWIZZLED, at="0,32"),
        read_chain([CP_ASYNC, T4, M16], operand="B"),
        read_chain([CP_ASYNC, M16], smem=SWIZZLED),
        read_chain(["UniversalCopy<uint32_t>", M16]),
    ):
        text = to_json(spec)
        again = from_dict(json.loads(text))
        assert again == spec and to_json(again) == text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"operand": "C"}, "'operand' must be"),
        ({"at": [0, -1]}, "'at' must be"),
        ({"at": [8, 0]}, "leaves the shared-memory layout"),
        ({"vector": 3}, "do not divide"),
        ({"smem": {"kind": "tv", "tile": [1, 1], "tv": [[0]]}}, "'smem' must be of kind 'layout'"),
        ({"mma": None}, "is no spec"),
        ({"arch": 3}, "'arch' must be"),
    ],
)
def test_json_with_a_mistake(change, said):
    data = json.loads(to_json(read_chain([X4, M16]))) | change
    with pytest.raises(TexgenError, match=said):
        from_dict(data)


# The figure's marks


def marks(drawing):
    """Every panel's marks as SVG and TikZ have them alike."""
    svg, tikz = from_svg(drawing.svg(), drawing.figure.aspect), from_tikz(drawing.tikz())
    for key in tikz:
        assert svg[key].fills == tikz[key].fills, key
        assert set(svg[key].labels) == set(tikz[key].labels), key
    return svg


def test_one_colour_through_all_panels():
    drawing = texgen.chain(X4, M16, smem=SWIZZLED)
    drawn = marks(drawing)
    assert list(drawn) == ["smem", "registers", "A"]
    for t in range(32):
        byte = swizzle(128 * (t % 16) + 16 * (t // 16))
        at = byte // 128, byte % 128 // 16
        assert drawn["smem"].labels[at] == [f"T{t}→", f"{t % 16},{8 * (t // 16)}"]
        assert drawn["smem"].fills[at] == str(t // 8)
        for r in range(4):
            row, k = t // 4 + 8 * (r % 2), 2 * (t % 4) + 8 * (r // 2)
            assert drawn["registers"].labels[t, r] == [f"{row},{k}", f"{row},{k + 1}"]
            assert drawn["registers"].fills[t, r] == str(r)
            for e in range(2):
                assert drawn["A"].labels[row, k + e] == [f"T{t}", f"V{2 * r + e}"]
                assert drawn["A"].fills[row, k + e] == str(r)
    coloured = [at for at, fill in drawn["smem"].fills.items() if fill != "Dim"]
    assert len(coloured) == 32 and len(drawn["smem"].fills) == 128
    text = " ".join(line.text for line in drawing.figure.lines)
    assert "4 wavefronts (ideal 4), no bank conflicts" in text
    assert "value v of the copy is value v of A, checked for all 32 threads × 8 values" in text


@pytest.mark.parametrize("pick", ["T5", "M2", "V0"])
def test_a_highlight_is_followed(pick):
    drawn = marks(texgen.chain(X4, M16, smem=SWIZZLED, highlight=pick))

    def held(t, v):
        return {"T5": t == 5, "M2": v // 2 == 2, "V0": v == 0}[pick]

    for t in range(32):
        for v in range(8):
            row, k = t // 4 + 8 * (v // 2 % 2), 2 * (t % 4) + v % 2 + 8 * (v // 4)
            assert (drawn["A"].fills[row, k] != "Dim") == held(t, v)
        for r in range(4):
            assert (drawn["registers"].fills[t, r] != "Dim") == (held(t, 2 * r) or held(t, 2 * r + 1))
    rows = {"T5": 4, "M2": 8, "V0": 8}[pick]
    assert sum(f != "Dim" for f in drawn["smem"].fills.values()) == rows


def test_in_grey_matrices_differ_from_each_other_and_from_the_rest():
    drawing = texgen.chain(X4, M16, smem=SWIZZLED, palette="grey")
    levels = {}
    for item in (i for row in drawing.figure.legend for i in row):
        levels[item.text] = int((DIM if item.fill == DIMMED else PALETTES["grey"][item.fill])[:2], 16)
    assert list(levels) == ["M0", "M1", "M2", "M3", "the rest"]
    assert min(abs(a - b) for a, b in itertools.combinations(levels.values(), 2)) >= 15
    assert min(levels.values()) >= 0x9A  # under black labels of 5 pt
    parts = {m: drawing.figure.panels[-1].fill[8 * (m % 2) : 8 * (m % 2) + 8, 8 * (m // 2) : 8 * (m // 2) + 8] for m in range(4)}
    for m, part in parts.items():
        assert {int(PALETTES["grey"][i][:2], 16) for i in np.unique(part)} == {levels[f"M{m}"]}


def test_by_thread_each_word_has_its_reader():
    drawn = marks(texgen.chain(X4, M16, smem=SWIZZLED, color_by="thread"))
    for t in range(32):
        for r in range(4):
            row, k = t // 4 + 8 * (r % 2), 2 * (t % 4) + 8 * (r // 2)
            byte = swizzle(128 * row + 2 * k)
            at = byte // 128, byte % 128 // 4
            assert drawn["smem"].labels[at] == [f"T{t}", f"{row},{k}"]
            assert drawn["smem"].fills[at] == drawn["registers"].fills[r, t] == drawn["A"].fills[row, k] == str(t % 8)


def test_cropping_crops_all_panels():
    drawing = texgen.chain(X4, M16, smem=SWIZZLED, rows="0:2", cols="0:4")
    smem, registers, a = drawing.figure.panels
    assert (a.height, a.width, smem.rows.tolist(), registers.rows.tolist()) == (2, 4, [0, 128], [0, 1, 4, 5])


def test_cp_async_in_front():
    drawing = texgen.chain(CP_ASYNC, X4, M16, smem=SWIZZLED)
    assert [p.key for p in drawing.figure.panels] == ["gmem", "smem", "registers", "A"]
    alone = texgen.chain(CP_ASYNC, M16, smem=SWIZZLED)
    drawn = marks(alone)
    assert list(drawn) == ["gmem", "smem", "A"]
    said = f"{CP_ASYNC} was given as an atom: 32 threads copy "
    assert f"{said}4 pieces of 8 elements each, row by row, 32 neighbouring pieces at a time." in alone.spec.notes
    for smem, rest in (("(16,16):(16,1)", "a piece of 8 elements each, row by row."), ("(16,16):(1,16)", "a piece of 8 elements each, column by column.")):
        assert said + rest in read_chain([CP_ASYNC, M16], smem=smem).notes
    for piece in range(128):  # 16 bytes each, 32 threads side by side along k
        row, k, t = piece // 8, 8 * (piece % 8), piece % 32
        byte = swizzle(128 * row + 2 * k)
        assert drawn["smem"].labels[byte // 128, byte % 128 // 16] == [f"T{t}", f"{row},{k}"]
        assert drawn["gmem"].labels[row, k // 8][0] == f"T{t}"
        assert drawn["gmem"].fills[row, k // 8] == drawn["smem"].fills[byte // 128, byte % 128 // 16] == str(t % 8)
        if k < 16:
            assert drawn["A"].fills[row, k] == str(t % 8)


def test_what_cp_async_leaves_out():
    narrow = texgen.read("(2,8):(8,1)", tv=True, tile="4,4").map
    side = replace(narrow, tile=(16, 16), tv=np.arange(128).reshape(16, 8) % 16 + 16 * (np.arange(128).reshape(16, 8) // 16), layout="")
    write = CopySpec("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", (16, 16), side, side)
    spec = read_chain([write, X4, M16], smem="(16,16):(16,1)", allow_holes=True)
    assert any("leaves 128 of the operand's 256 elements unwritten, A(0,8) first" in w for w in spec.warnings)
    assert any("do not lie side by side" in w for w in spec.warnings)


# Chains that are wrong


def test_a_wrong_chain_shows_itself():
    drawing = texgen.chain(X4, M16, smem="(16,16):(1,16)")
    (warning, misaligned) = drawing.spec.warnings
    assert "T0 gets A(1,0) as V1 and the MMA wants A(0,1) there; 224 of 256 values are wrong" in warning
    assert "runs of 1 along k and of 16 along m, which the transposing ldmatrix reads" in warning
    assert misaligned.startswith("T1 reads 16 bytes at byte 2")
    drawn = marks(drawing)
    wrong = {at: labels for at, labels in drawn["A"].labels.items() if any(x.startswith("≠") for x in labels)}
    assert len(wrong) == 224 and wrong[0, 1] == ["T0", "V1", "≠1,0"]
    assert all(drawn["A"].fills[at] == "Hole" for at in wrong) and drawn["A"].fills[3, 0] == "0"
    text = " ".join(line.text for line in drawing.figure.lines)
    assert "Warning: This copy does not feed the MMA" in text and "It feeds" not in text
    assert "does not feed the MMA" in drawing.figure.alt


def test_misaligned_addresses_feed_nothing():
    """Rows of 65 elements: all lie where they should, and lane t names byte 130 t, which 16 divides for every eighth."""
    drawing = texgen.chain(X4, M16, smem="(16,64):(65,1)")
    assert drawing.spec.warnings == ("This copy does not feed the MMA: T1 reads 16 bytes at byte 130, which is misaligned: 16 must divide it, or the access faults.",)
    assert not drawing.spec.to_dict()["derived"]["feeds"] and "It feeds" not in drawing.text() and "faults" in drawing.text()
    memory, registers, fragment = drawing.figure.panels
    named = {who: what for whos, whats in zip(*memory.lines, strict=True) for who, what in zip(whos, whats, strict=True) if who}
    assert named == {f"T{t}→{'!' * (t % 8 > 0)}": f"{t % 16},{t // 16 * 8}" for t in range(32)}
    white = {(r, c) for r, c in np.ndindex(16, 16) if r % 8}
    assert {(int(r), int(c)) for r, c in np.argwhere(fragment.fill == HOLE)} == white
    assert {(r, c) for r, c in np.ndindex(16, 16) if fragment.lines[-1][r][c] == "!"} == white
    assert (registers.fill[4:] == HOLE).all() and (registers.fill[:4] != HOLE).all()


@pytest.mark.parametrize(
    ("targets", "options", "advice"),
    [
        ((T8, "SM80_16x8x32_S32S8S8S32_TN"), {}, "these have 8: take SM75_U32x4_LDSM_N"),
        ((X4, M16), {"smem": SWIZZLED, "at": (0, 44)}, "let it begin where 8 divides k"),
    ],
)
def test_advice_is_not_to_do_what_was_done(targets, options, advice):
    drawing = texgen.chain(*targets, **options)
    assert advice in drawing.spec.warnings[0] and "make_tiled_copy" not in drawing.spec.warnings[0]
    strange = any(label == "≠?" for p in drawing.figure.panels for line in p.lines for row in line for label in row)
    assert strange == ("?: what lies there is no element of A's tile" in drawing.text())
    mended = [SWIZZLED, (0, 40)] if "smem" in options else ["", None]
    copy = targets[0] if "smem" in options else X4
    assert texgen.chain(copy, targets[1], smem=mended[0] or None, at=mended[1]).spec.warnings == ()


def test_values_in_another_order_are_retiled():
    spec = read_chain([X4, M16], smem=SWIZZLED)
    order = np.array([4, 5, 6, 7, 0, 1, 2, 3])
    mma = replace(spec.mma, A=replace(spec.mma.A, tv=spec.mma.A.tv[:, order]))
    found = read_chain([spec.copy, mma], smem=SWIZZLED)
    assert first_wrong(found) is None
    assert delivery(found).order.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    lanes = np.roll(np.arange(32), 1)
    moved = read_chain([spec.copy, replace(mma, A=replace(spec.mma.A, tv=spec.mma.A.tv[lanes]))], smem=SWIZZLED)
    assert first_wrong(moved) == (0, 0, "A(0,0)", "A(7,6)")
    assert "make_tiled_copy_A" in moved.warnings[0]


@pytest.mark.parametrize(
    ("targets", "options", "said"),
    [
        ((X4, M16), {"operand": "B"}, "SM75_U32x4_LDSM_N does not divide B of SM80_16x8x16.* 8 values a thread at a time and the operand has 4: take a copy of fewer matrices"),
        ((X4, M16), {"operand": "C"}, "A or B"),
        ((X4, "SM90_64x128x16_F32F16F16_SS"), {}, "through a descriptor"),
        ((X4, M16), {"bits": 8}, "elements of 8 bits and A of .* has f16"),
        ((X4, "SM80_8x8x4_F64F64F64F64_TN"), {}, r"does not copy elements of 64 bits: a thread's elements lie together in runs of 32 bits\."),
        (("SM75_U32x1_LDSM_N", "SM80_8x8x4_F64F64F64F64_TN"), {}, r"a thread's elements lie together in runs of 32 bits\."),
        (("UniversalCopy<uint128_t>", M16), {"operand": "B"}, "fills 8 values a thread at a time and the operand has 4: take a narrower copy"),
        (("SM90_U32x4_STSM_N", M16), {}, "does not read shared memory"),
        (("SM100_SU4_DU8x16_x4_LDSM_N", "SM80_16x8x32_S32S8S8S32_TN"), {}, "unpacks narrower"),
        ((X4, X4), {}, "these targets give copy, copy"),
        ((M16,), {}, "these targets give mma"),
        ((X4, M16), {"smem": "(16,16):(0,1)"}, "several elements at one offset"),
        ((X4, M16), {"smem": X4}, "is no layout"),
        ((X4, M16), {"smem": "(16,16):(4000000000,1)"}, "would reach element 60,000,000,015"),
        ((X4, M16), {"at": (0, 999999)}, "would reach element"),
        ((X4, M16), {"at": "3"}, "is no place"),
        ((X4, M16), {"at": (1, -1)}, "is no place"),
        ((X4, M16), {"highlight": "M4"}, "M0 to M3"),
        ((X4, M16), {"overview": True}, "--overview"),
        (("UniversalCopy<uint32_t>", M16), {"color_by": "matrix"}, "no matrices"),
        ((X4, M16), {"colour": "matrix"}, "no option 'colour'"),
        ((X4, X4, M16), {}, "SM75_U32x4_LDSM_N reads shared memory into registers: .* take SM80_CP_ASYNC_CACHEGLOBAL"),
        (("SM90_U32x4_STSM_N", X4, M16), {}, "writes registers into shared memory"),
        ((CP_ASYNC, CP_ASYNC, M16), {}, "does not read shared memory"),
        ((M16, X4), {}, "the copy comes first"),
        ((X4, M16), {"smem": "garbage"}, "--smem 'garbage' is no layout"),
        ((X4, M16), {"smem": "(16,64):(64,1)", "at": (0, 64)}, "leaves --smem .* holds 16×64"),
        ((X4, M16), {"smem": "(16,64):(64,1)", "at": (0, 56)}, "leaves --smem"),
        ((X4, M16), {"smem": "(8,64):(64,1)", "at": (0, 56)}, "leaves --smem"),
    ],
)
def test_what_cannot_be_a_chain(targets, options, said):
    with pytest.raises((TexgenError, UsageError), match=said) as error:
        texgen.chain(*targets, **options)
    assert str(error.value).count("\n") == 0


def test_a_read_wider_than_the_mma_s_runs():
    spec = read_chain(["UniversalCopy<uint128_t>", M16])
    assert "T0 gets A(0,2) as V2 and the MMA wants A(8,0)" in spec.warnings[0]
    assert "runs of 2: take UniversalCopy<uint32_t>" in spec.warnings[0]
    assert read_chain(["UniversalCopy<uint32_t>", M16]).warnings == ()


def test_matrices_are_of_chains_alone():
    with pytest.raises(UsageError, match="--color-by matrix"):
        texgen.figure(M16, color_by="matrix")


def test_the_command(tmp_path):
    from click.testing import CliRunner

    from texgen.cli import app

    run = CliRunner().invoke
    out = tmp_path / "chain.json"
    done = run(app, ["render", "--chain", X4, M16, "--smem", SWIZZLED, "--at", "0,16", "-o", str(out), "-o", str(tmp_path / "c.txt")])
    assert done.exit_code == 0, done.output
    assert from_dict(json.loads(out.read_text())) == read_chain([X4, M16], smem=SWIZZLED, at="0,16")
    again = run(app, ["render", str(out), "-o", str(tmp_path / "again.json")])
    assert again.exit_code == 0 and (tmp_path / "again.json").read_bytes() == out.read_bytes()
    assert "T17→1,8" in (tmp_path / "c.txt").read_text()
    assert "is repeated" not in done.output
    small = run(app, ["render", "--chain", X4, M16, "--smem", "(16,8):(8,1)", "--width", "84mm", "-o", str(tmp_path / "small.tikz")])
    assert "(16,8):(8,1) is repeated 1 × 2 times" in small.output and "--overview" not in small.output
    for wrong, said in ((["render", M16, "--smem", "(8,8):(8,1)"], "--smem goes with --chain"), (["render", M16, "--chain", X4, M16], "leave TARGET out")):
        failed = run(app, [*wrong, "-o", str(tmp_path / "x.svg")])
        assert said in str(failed.exception) and not (tmp_path / "x.svg").exists()


# The DSL's own tiled copies


@pytest.mark.dsl
def test_retiling_is_the_dsl_s():
    cutlass = pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    cute = pytest.importorskip("cutlass.cute", reason="needs nvidia-cutlass-dsl")
    from cutlass.cute.nvgpu import warp

    from texgen.chains.retile import tiled_copy
    from texgen.sources.atoms_dsl import set_arch, tracing
    from texgen.sources.dsl import read_object

    f16, s8, checked = cutlass.Float16, cutlass.Int8, 0
    set_arch("sm_80")
    with tracing():
        atoms = [(f16, warp.LdMatrix8x8x16bOp(t, n)) for t in (False, True) for n in (1, 2, 4)]
        atoms += [(s8, warp.LdMatrix8x8x16bOp(False, 4)), (f16, cute.nvgpu.CopyUniversalOp())]
        for tile, layout in (((16, 16, 16), (1, 1, 1)), ((32, 32, 16), (2, 2, 1)), ((64, 32, 32), (2, 1, 1)), ((32, 64, 16), (1, 4, 1))):
            mma = cute.make_tiled_mma(warp.MmaF16BF16Op(f16, cutlass.Float32, (16, 8, 16)), cute.make_layout(layout), permutation_mnk=tile)
            spec = read_object(mma)
            for dtype, op in atoms:
                bits = {"num_bits_per_copy": 32} if "Universal" in type(op).__name__ else {}
                atom = cute.make_copy_atom(op, dtype, **bits)
                for letter, make in (("A", cute.make_tiled_copy_A), ("B", cute.make_tiled_copy_B)):
                    if spec.operands()[letter].values % read_object(atom).D.values:
                        continue
                    live, ours = read_object(make(atom, mma)), tiled_copy(read_object(atom), spec.operands()[letter], letter)
                    assert live.tile == ours.tile
                    assert np.array_equal(live.S.tv, ours.S.tv), (op, letter, tile)
                    assert np.array_equal(live.D.tv, ours.D.tv), (op, letter, tile)
                    checked += 1
    assert checked > 40


@pytest.mark.dsl
def test_live_objects_and_what_the_dsl_partitions():
    cutlass = pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    cute = pytest.importorskip("cutlass.cute", reason="needs nvidia-cutlass-dsl")
    from cutlass.cute.nvgpu import warp

    from texgen.sources.atoms_dsl import set_arch, tracing

    set_arch("sm_80")
    with tracing():
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
        drawing = texgen.chain(cute.make_tiled_copy_B(atom, mma), mma, smem="S<3,4,3> o 0 o (32,64):(64,1)")
        both = texgen.chain({"copy": cute.make_tiled_copy_A(atom, mma), "mma": mma})
    assert drawing.spec.operand == "B" and first_wrong(drawing.spec) is None
    assert both.spec.operand == "A" and both.spec.name == f"{X4} → A of {M16}"
    assert drawing.spec.copy.S.tv.tolist() == read_chain([X4, M16], operand="B", atom_layout="2,2,1", tile="32,32,16").copy.S.tv.tolist()


# In a page


def test_a_page_of_chains(tmp_path):
    pytest.importorskip("sphinx")
    from sphinx_site import Site

    site = Site(tmp_path / "site")
    both = f"   :mma: {M16}\n   :smem: "
    site.page(
        f".. texgen:chain:: {X4}\n{both}{SWIZZLED}\n   :no-caption:\n   :caption: One",
        f".. texgen:chain:: {T4}\n   :fill: {CP_ASYNC}\n   :mma: {M16}\n   :operand: B\n   :at: 0,16\n   :highlight: M1",
        f".. texgen:chain:: {X4}\n{both}(16,16):(1,16)\n   :wrong:",
    )
    built = site.build()
    assert built.warnings == "" and len(built.figures()) == 3
    assert "does not feed the MMA" in built.text("index.html")
    site.page(
        f".. texgen:chain:: {X4}\n{both}(16,16):(1,16)",
        f".. texgen:chain:: {X4}\n{both}{SWIZZLED}\n   :wrong:",
        f".. texgen:chain:: {X4}\n   :mma: {M16}\n   :operand: B",
        f".. texgen:chain:: {X4}",
        f".. texgen:chain:: {X4}\n   :mma: {M16}\n   :smem: nothing.py:layout",
    )
    said = site.build().warnings
    for part in ("224 of 256 values are wrong", "leave :wrong: out", "does not divide B", "a copy and the MMA that it feeds", "texgen_execute"):
        assert part in said, part
