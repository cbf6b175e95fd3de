"""Bank conflicts and coalescing: predictions, the kernels that are counted, and the committed counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from texgen.measure import conflicts
from texgen.measure.conflicts import PAIRS, REQUESTS, Pair, Request, sectors, together

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "docs" / "results").glob("*/conflicts.json"))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def problems(result: dict) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(conflicts.SCHEMA.read_text()))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(result)]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_predicted_is_counted_or_the_difference_is_explained(file):
    result = conflicts.load(file)
    assert problems(result) == []
    assert len(result["entries"]) == len(PAIRS)
    agreeing = 0
    for pair, entry in zip(PAIRS, result["entries"], strict=True):
        assert (entry["layout"], entry["lanes"], entry["op"], entry["bits"]) == (pair.layout, pair.lanes, pair.op, pair.bits)
        assert entry["predicted"] == pair.predicted.wavefronts
        assert entry["agree"] == (entry["counted"] == entry["predicted"])
        assert entry["counted"] == entry["counters"][conflicts.counter(pair.op)]
        assert entry["reason"] == conflicts.explanation(pair, entry["counted"])
        assert entry["agree"] or entry["counted"] == together(pair.addresses, pair.width)
        agreeing += entry["agree"]
    assert agreeing >= 30
    ways = {(e["way"], e["width"], e["op"].split(".")[0]) for e in result["entries"] if e["agree"]}
    assert {(w, n, "ld") for w in ("plain", "padded", "swizzled") for n in (4, 8, 16)} <= ways
    assert {(w, 16, "ldmatrix") for w in ("plain", "padded", "swizzled")} <= ways


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_sectors_are_counted_as_predicted(file):
    result = conflicts.load(file)
    assert len(result["global"]) == len(REQUESTS)
    for request, entry in zip(REQUESTS, result["global"], strict=True):
        assert (entry["name"], entry["requests"]) == (request.name, 1)
        assert entry["predicted"] == request.predicted == entry["counted"]


def test_there_is_a_result():
    assert [f.parent.name for f in FILES] == ["nvidia-h200"]


def test_conflict_counters_are_the_excess():
    """ncu's conflicts are wavefronts above the ideal, where lanes share no words."""
    for file in FILES:
        for entry in conflicts.load(file)["entries"]:
            found = entry["counters"]["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" + ("st" if entry["op"] == "st" else "ld")]
            if entry["agree"]:
                assert found == entry["counted"] - entry["ideal"], entry


@pytest.mark.parametrize(
    ("addresses", "width", "count"),
    [
        ([4 * x for x in range(32)], 4, 4),
        ([4 * x + 4 for x in range(32)], 4, 5),
        ([128 * x for x in range(32)], 4, 32),
        ([16 * x for x in range(32)], 16, 16),
        ([0] * 32, 4, 1),
        ([31], 2, 2),
    ],
)
def test_sectors(addresses, width, count):
    assert sectors(addresses, width) == count


def test_a_tiled_copy_gives_its_own_addresses():
    """Warp 0's ldmatrix of docs/programs/copy_a.json: rows 0-15 by halves of 8 columns."""
    pair = next(p for p in PAIRS if p.lanes.endswith(".json") and p.way == "plain")
    assert pair.width == 16
    assert pair.access.rows[:, 0].tolist() == [x % 16 for x in range(32)]
    assert pair.access.columns[:, 0].tolist() == [8 * (x // 16) for x in range(32)]
    assert (pair.predicted.wavefronts, pair.predicted.ideal) == (8, 4)


def test_neighbours_that_share_words():
    shared = Pair("plain", "(1,128):(128,1)", 32, "(4,8):(0,4)@16")
    assert (shared.predicted.wavefronts, together(shared.addresses, 16)) == (4, 2)
    apart = Pair("plain", "(1,128):(128,1)", 32, "(8,4):(4,0)@16")
    assert together(apart.addresses, 16) is None
    assert conflicts.explanation(shared, 3) == ""
    assert conflicts.explanation(shared, 2).startswith("Lanes l and l^1 want the same words")


def test_ncu_s_page_is_read():
    page = [
        '"ID","Kernel Name","l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum","smsp__x.sum"',
        '"","","",""',
        f'"0","probe_shared","{32 * conflicts.BLOCKS:,}","{conflicts.BLOCKS // 2}"',
        f'"1","probe_global","{conflicts.BLOCKS}","n/a"',
    ]
    assert conflicts.parse(page) == [
        {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld": 32.0, "smsp__x": 0.5},
        {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld": 1.0},
    ]


def test_a_count_that_differs_for_no_known_reason_shows():
    entry = conflicts.pair_entry(PAIRS[0], {conflicts.counter("ld"): 31.0})
    assert (entry["counted"], entry["agree"], entry["reason"]) == (31, False, "")
    assert conflicts.request_entry(REQUESTS[0], {})["agree"] is False


@pytest.mark.dsl
@pytest.mark.parametrize("case", [*PAIRS, *REQUESTS], ids=lambda c: f"{c.lanes} {c.layout if isinstance(c, Pair) else c.name}")
def test_probes_compile_without_a_gpu(case):
    from texgen.measure import probes

    assert probes.compiled(case) is not None
    assert isinstance(case, Pair | Request)
