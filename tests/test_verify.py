"""Figures executed: the emulation, what it refuses, the kernels compiled, and the committed results."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import texgen
from texgen.errors import TexgenError
from texgen.measure import emulate, stamp, verify
from texgen.measure.verify import Target
from texgen.sources import catalog, read
from texgen.specs import TVMap

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
FILES = sorted(RESULTS.glob("*/verify.json"))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


# The emulation -------------------------------------------------------------------------------------------------------------

REGISTER_ATOMS = [
    family for family, entries in catalog.families()
    if entries[0].kind == "mma" and "tmem" not in entries[0].line.get("mem", ()) and not family.startswith(("SM61", "UniversalFMA"))
]  # fmt: skip


@pytest.mark.parametrize("family", REGISTER_ATOMS)
def test_every_register_atom_emulated(family):
    """Those of tensor-layouts too: Volta's quad pairs, int4, bits, AMD's and Intel's."""
    spec = read(catalog.families(family.replace("xNx", "x64x"))[0][1][0].name if "xNx" in family else family)
    outcome = emulate.check(spec, emulate.Numpy())
    assert (outcome.status, outcome.mutation_caught) == ("pass", True), outcome.reason


@pytest.mark.parametrize("target", [*verify.TILINGS, *(t for t in verify.COPIES if not t.builder or t.live)], ids=str)
def test_tilings_and_copies_emulated(target):
    outcome = emulate.check(target.spec(), emulate.Numpy())
    assert (outcome.status, outcome.mutation_caught) == ("pass", True), outcome.reason
    assert outcome.mutations >= 3


@pytest.mark.dsl
@pytest.mark.parametrize("target", [t for t in (*verify.COPIES, *verify.KERNELS) if t.builder and not t.live], ids=str)
def test_live_objects_emulated(target):
    outcome = emulate.check(target.spec(), emulate.Numpy())
    assert (outcome.status, outcome.mutation_caught) == ("pass", True), outcome.reason


def test_many_copies_of_the_catalogue_are_covered():
    names = {e.name for e in catalog.search("LDSM") + catalog.search("STSM") if e.arch in verify.RUNS_ON}
    assert len(names) == 12
    assert names <= {t.text for t in verify.targets()}


@pytest.mark.parametrize("operand", "ABC")
def test_a_wrong_table_fails(operand):
    spec = read("SM80_16x8x16_F32F16F16F32_TN")
    tv = getattr(spec, operand).tv.copy()
    tv[3, 0], tv[9, 1] = tv[9, 1], tv[3, 0]
    wrong = dataclasses.replace(spec, **{operand: dataclasses.replace(getattr(spec, operand), tv=tv)})
    assert emulate.check(wrong, emulate.Numpy()).status == "fail"


def test_two_value_bits_swapped_fail():
    """A bijection test would pass it: tf32's low value bit moves along m."""
    spec = read("SM80_16x8x8_F32TF32TF32F32_TN")
    swapped = dataclasses.replace(spec, A=dataclasses.replace(spec.A, tv=spec.A.tv[:, [0, 2, 1, 3]]))
    assert emulate.check(spec, emulate.Numpy()).status == "pass"
    assert emulate.check(swapped, emulate.Numpy()).status == "fail"


def test_the_int4_table_that_tensor_layouts_has_wrong_fails():
    """CUTLASS #3140: lane stride 32 in place of 64."""
    spec = read("SM80_16x8x32_S32S4S4S32_TN")
    from texgen.layouts import Layout, tv_table

    bad = tv_table(Layout(((4, 8), 8), ((32, 1), 8)))
    assert emulate.check(spec, emulate.Numpy()).status == "pass"
    wrong = dataclasses.replace(spec, B=TVMap(spec.B.tile, bad, "", spec.B.dtype))
    assert emulate.check(wrong, emulate.Numpy()).status == "fail"


def test_a_wrong_copy_fails():
    spec = read("SM75_U32x4_LDSM_N")
    wrong = dataclasses.replace(spec, D=dataclasses.replace(spec.D, tv=read("SM75_U16x8_LDSM_T").D.tv))
    outcome = emulate.check(wrong, emulate.Numpy())
    assert outcome.status == "fail"
    assert "received the element of cell" in outcome.reason


def test_owners_that_disagree_are_no_result():
    table, copies = emulate.by_owner(np.array([[0, 1], [1, 0], [0, 1]]), 2)
    assert copies == 3
    assert sorted(table.reshape(-1).tolist()) == list(range(6))
    assert emulate.agreed(np.array([7, 8, 7, 8, 7, emulate.POISON]), (2, 1)).tolist() == [[7], [8]]
    assert emulate.agreed(np.array([7, 8, 7, 9]), (2, 1)).tolist() == [[7], [emulate.POISON]]


@pytest.mark.parametrize("name", ["SM100_128x32x16_F32F16F16_SS", "SM100_U8x8_LDSM_T", "SM50_Shuffle_U32_2x2Trans_XOR1"])
def test_what_cannot_be_emulated_says_so(name):
    entry = verify.emulated([Target(name)])[0]
    assert entry["status"] == "skip"
    assert entry["mutation_caught"] is None
    assert entry["reason"].endswith(".")


def test_a_single_thread_has_nothing_to_swap():
    assert verify.emulated([Target("UniversalFMA_F32")])[0]["status"] == "skip"


def test_a_target_that_is_not_there_fails_with_the_reason():
    entry = verify.emulated([Target("SM80_17x8x16")])[0]
    assert entry["status"] == "fail"
    assert "no atom named" in entry["reason"]
    with pytest.raises(TexgenError, match="only these can be executed"):
        Target("(8,8):(8,1)").spec()


# Targets and their hash ----------------------------------------------------------------------------------------------------


def test_targets_are_written_and_read_alike():
    for target in verify.targets():
        again = Target.parse(str(target))
        assert (again.text, again.atom_layout, again.tile, again.val_layout) == dataclasses.astuple(target)[:4]


def test_the_hash_is_of_what_is_executed():
    spec = read("SM80_16x8x16_F32F16F16F32_TN")
    digest = stamp.spec_hash(spec)
    assert len(digest) == 64
    noted = ("Atom SM80_16x8x16_F32F16F16F32_TN.", "mine")
    for same in (dataclasses.replace(spec, source="elsewhere"), dataclasses.replace(spec, name="my figure", notes=noted)):
        assert stamp.spec_hash(same) == digest
    tv = spec.A.tv.copy()
    tv[0, 0], tv[0, 1] = tv[0, 1], tv[0, 0]
    for other in (
        dataclasses.replace(spec, A=dataclasses.replace(spec.A, tv=tv)), dataclasses.replace(spec, arch="sm_81"),
        dataclasses.replace(spec, A=dataclasses.replace(spec.A, dtype="bf16")), read("SM80_16x8x16_F32BF16BF16F32_TN"),
    ):  # fmt: skip
        assert stamp.spec_hash(other) != digest


def test_the_stamp_needs_neither_the_dsl_nor_torch():
    import subprocess
    import sys

    code = "import sys, texgen.measure.stamp; sys.exit(bool({'cutlass', 'torch', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The result file -----------------------------------------------------------------------------------------------------------


def problems(result: dict) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(verify.SCHEMA.read_text()))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(result)]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_the_committed_result(file):
    result = json.loads(file.read_text())
    assert problems(result) == []
    entries = result["entries"]
    by_status = {s: [e for e in entries if e["status"] == s] for s in ("pass", "fail", "skip")}
    assert len(by_status["pass"]) >= 40
    assert by_status["fail"] == []
    assert all(e["mutation_caught"] is True for e in by_status["pass"])
    assert all(e["reason"] for e in by_status["skip"])
    assert [e["target"] for e in entries] == [str(t) for t in verify.targets()]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_the_committed_hashes_are_of_todays_figures(file):
    """Of atoms and tables; a kernel's own objects may have changed since, and a page then says so."""
    known = {str(t): t for t in verify.targets()}
    checked = 0
    for entry in json.loads(file.read_text())["entries"]:
        target = known[entry["target"]]
        if not target.builder or target.live:
            assert stamp.spec_hash(target.spec()) == entry["spec_hash"], entry["target"]
            checked += 1
    assert checked > 200


def test_there_is_a_result():
    assert [f.parent.name for f in FILES] == ["nvidia-h200"]


def test_a_page_finds_its_stamp():
    spec = texgen.read("SM80_16x8x16_F32F16F16F32_TN", atom_layout="2,2,1")
    found = stamp.executed(spec, RESULTS)
    assert found is not None
    assert str(found).startswith("executed on NVIDIA H200, DSL ")
    assert stamp.executed(texgen.read("SM100_128x32x16_F32F16F16_SS"), RESULTS) is None
    skipped = stamp.stamps(read("SM120_16x8x32_F32E4M3E4M3F32_UE8M0_VS32_TN"), RESULTS)
    assert "sm_120a" in str(skipped[0])


def test_a_result_that_lies_does_not_fit():
    head = {"schema": 1, "gpu": "G", "driver": "1", "dsl": "4", "torch": "2", "date": "2026-01-01T00:00:00Z"}
    good = {"target": "x", "spec_hash": "0" * 64, "status": "pass", "mutation_caught": True, "reason": ""}
    assert problems({**head, "entries": [good]}) == []
    for change in (
        {"mutation_caught": False}, {"mutation_caught": None}, {"status": "skip"}, {"status": "fail"}, {"spec_hash": ""}, {"note": 1},
        {"status": "skip", "mutation_caught": None},
    ):  # fmt: skip
        assert problems({**head, "entries": [{**good, **change}]}), change


# The command ---------------------------------------------------------------------------------------------------------------


def invoke(*arguments: str):
    from click.testing import CliRunner

    from texgen.cli import app

    return CliRunner().invoke(app, ["verify", *arguments])


def test_the_command_emulates_and_writes(tmp_path):
    done = invoke("--emulate", "SM80_16x8x16_F32F16F16F32_TN --atom-layout 2,2,1 --tile 32,32,16", "SM75_U16x8_LDSM_T", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "2 pass, every swap caught in 2" in done.output
    result = json.loads((tmp_path / "none-emulated" / "verify.json").read_text())
    assert problems(result) == []
    assert result["gpu"] == "none (emulated)"


def test_the_command_lists(capsys):
    assert "SM80_16x8x16_F32F16F16F32_TN --atom-layout 2,2,1" in invoke("--list").output.splitlines()


def test_the_command_fails_where_one_fails():
    assert invoke("--emulate", "SM80_nonsense").exit_code == 1


def test_without_a_gpu_it_says_what_to_do(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TexgenError, match="add --emulate"):
        verify.run([Target("SM75_U16x8_LDSM_T")], False, None)


def test_a_worker_that_dies_is_one_failure(monkeypatch):
    """A death is the failure of the target in hand; the others go on in a new process."""
    import sys

    script = (
        "import json, os, sys\n"
        "for i, f in json.load(sys.stdin):\n"
        "    if f['text'] == 'dies': os._exit(9)\n"
        "    print(json.dumps({'i': i, 'entry': {'target': f['text'], 'status': 'pass'}}), flush=True)\n"
        "os._exit(0)\n"
    )
    real = verify.subprocess.Popen
    monkeypatch.setattr(verify.subprocess, "Popen", lambda command, **kw: real([sys.executable, "-c", script], **kw))
    found = verify.executed([Target(x) for x in ("a", "dies", "b", "c")], jobs=1)
    assert [e["status"] for e in found] == ["pass", "fail", "pass", "pass"]
    assert "its process ended with 9" in found[1]["reason"]


# Numbers as bits, and the kernels ------------------------------------------------------------------------------------------


@pytest.mark.dsl
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "tf32", "f64", "e4m3", "e5m2", "s8", "u8", "s32"])
def test_small_integers_are_encoded_exactly(dtype):
    from texgen.measure.executed import encode

    numbers = np.arange(0 if dtype == "u8" else -4, 7)
    if dtype == "e5m2":
        numbers = numbers[numbers != 5]
    words = encode(numbers, dtype).astype(np.int64)
    exponent, mantissa = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "tf32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2), "f64": (11, 52)}.get(dtype, (0, 0))
    if not exponent:
        assert np.array_equal(encode(numbers, dtype).view({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[dtype]), numbers)
        return
    e, m = words >> mantissa & (1 << exponent) - 1, words & (1 << mantissa) - 1
    sign = np.where(words >> (exponent + mantissa) & 1, -1, 1)
    assert np.array_equal(np.where(e == 0, 0, sign * (1 + m / 2.0**mantissa) * 2.0 ** (e - (1 << exponent - 1) + 1)), numbers)


@pytest.mark.dsl
def test_decoding_knows_poison():
    from texgen.measure.executed import decode

    for dtype, word in (("f32", np.uint32), ("f16", np.uint16), ("f64", np.uint64)):
        assert decode(np.array([np.iinfo(word).max, 0], dtype=word), dtype).tolist() == [emulate.POISON, 0]
    assert decode(np.array([0xC0000000, 5], dtype=np.uint32), "s32").tolist() == [emulate.POISON, 5]


COMPILED = [
    *verify.TILINGS[4:8], *verify.TILINGS[-4:], *verify.COPIES[:3], *verify.COPIES[-4:], *verify.KERNELS,
    *(Target(x) for x in (
        "SM80_16x8x8_F32TF32TF32F32_TN", "SM89_16x8x32_F16E4M3E4M3F16_TN", "SM90_64x8x16_F32F16F16_SS", "SM90_64x256x32_F16E5M2E4M3_RS",
        "SM90_64x64x32_S32S8U8_RS", "SM90_64x64x32_S32U8U8_SS", "SM75_U32x1_LDSM_N", "SM75_U16x8_LDSM_T", "SM90_U32x2_STSM_N",
        "SM90_U16x8_STSM_T", "SM80_16x8x64_S32S4U4S32_TN", "SM80_16x8x256_S32U1U1S32_TN_XORPOPC", "SM90_16x8x16_F64F64F64F64_TN",
        "SM70_8x8x4_F16F16F16F16_NT", "SM89_16x8x32_F32E5M2E4M3F32_TN",
    )),
]  # fmt: skip


@pytest.mark.dsl
@pytest.mark.parametrize("target", COMPILED, ids=str)
def test_kernels_compile_without_a_gpu(target):
    from texgen.measure import executed, ptx

    spec = target.spec()
    assert target.cannot_run() == ""
    if target.is_ptx:
        assert ptx.compile_ptx(spec) is not None
    else:
        assert (executed.compile_mma if spec.kind == "mma" else executed.compile_copy)(spec, target.build) is not None


@pytest.mark.gpu
@pytest.mark.dsl
@pytest.mark.torch
def test_on_the_gpu():
    entries = verify.executed([Target("SM80_16x8x16_F32F16F16F32_TN", "2,2,1"), Target("SM75_U32x4_LDSM_N"), Target("SM80_8x8x4_F64F64F64F64_TN")])
    assert [e["status"] for e in entries] == ["pass"] * 3, entries
