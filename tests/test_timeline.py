"""Pipelines: the simulator's verdict against every interleaving of two warps, the planted faults, the kernels' own PTX, and
what is drawn, read back out of SVG and TikZ."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from readback import SVG, from_svg, from_tikz

import texgen
from texgen import TexgenError
from texgen.cli import main
from texgen.errors import UsageError
from texgen.kernels.clock import HEAD, Slots
from texgen.measure import timeline as stamps
from texgen.pipeline.build import timeline_spec
from texgen.pipeline.hazards import hazards
from texgen.pipeline.measured import read_measured
from texgen.pipeline.program import FAULTS, events, kernel_program
from texgen.pipeline.steps import steps
from texgen.spec_json import from_dict, to_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted(ROOT.glob("docs/results/*/timeline.json"))
GRID = [(s, k, b) for s in range(1, 6) for k in range(1, 8) for b in range(1, 4)]

# A second route: every interleaving ---------------------------------------------------------------------------------------


def some_interleaving_goes_wrong(program, stages: int) -> str:
    """What can happen to two warps that run ``program`` on a machine that lets a copy land as late as it may.

    A warp's part of a stage holds a tile, or is torn from a copy's issue to its own wait. Depth-first over all
    interleavings; barriers let nobody past until both have come. Returns the first thing that is wrong, empty where
    nothing can be. Knows nothing of phases.
    """
    start = (((0, 0, (), (), ()),) * 2, (("none",) * stages,) * 2)
    seen, todo = {start}, [start]

    while todo:
        warps, parts = todo.pop()
        moves = [w for w in range(2) if warps[w][0] < len(program)]
        if not moves and any(flight for *_, flight in (warps[0], warps[1])):
            return "copies in flight at the end"
        for w in moves:
            at, passed, opened, groups, flight = warps[w]
            event = program[at]
            other = warps[1 - w]
            mine = list(parts[w])
            if event.op == "barrier" and not (other[1] > passed or (other[0] < len(program) and program[other[0]].op == "barrier" and other[1] == passed)):
                continue  # waits for the other
            if event.op == "copy":
                if event.stage in dict(flight):
                    return f"event {at}: a second copy into stage {event.stage}"
                opened, flight = (*opened, event.stage), (*flight, (event.stage, event.tile))
                mine[event.stage] = "torn"
            elif event.op == "commit":
                opened, groups = (), (*groups, opened)
            elif event.op == "wait":
                kept = groups[len(groups) - event.n :] if event.n else ()
                over = [s for group in groups[: len(groups) - len(kept)] for s in group]
                for stage, tile in flight:
                    if stage in over:
                        if mine[stage] == "reused":
                            return "lands in reused memory"
                        mine[stage] = tile
                flight = tuple(x for x in flight if x[0] not in over)
                groups = kept
            elif event.op == "read":
                if any(p[event.stage] != event.tile for p in parts):
                    return f"event {at}: warp {w} reads {[p[event.stage] for p in parts]} for {event.tile}"
            elif event.op == "reuse":
                if flight or other[4]:
                    return f"event {at}: reuse with copies in flight"
                mine = ["reused"] * stages
                parts = tuple(("reused",) * stages for _ in range(2))
            elif event.op == "barrier":
                passed += 1
            new = (at + 1, passed, opened, groups, flight)
            state = (
                tuple(new if i == w else warps[i] for i in range(2)),
                tuple(tuple(mine) if i == w else parts[i] for i in range(2)),
            )
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return ""


def verdict(program) -> list[str]:
    """The simulator's hazards of memory (not of registers and sums)."""
    at = steps(program)
    return [h.kind for h in hazards(program, at.__getitem__, 1) if h.kind not in ("fragment", "sum")]


def mutated(program, choose: random.Random, stages: int):
    """One event moved, dropped, doubled or changed."""
    items = [e.to_list() for e in program]
    for _ in range(choose.choice((1, 1, 2))):
        i = choose.randrange(len(items))
        what = choose.choice(("drop", "move", "swap", "wait", "stage"))
        if what == "drop":
            del items[i]
        elif what == "move":
            items.insert(max(0, min(len(items), i + choose.choice((-3, -2, -1, 1, 2, 3)))), items.pop(i))
        elif what == "swap" and i:
            items[i - 1], items[i] = items[i], items[i - 1]
        elif what == "wait" and items[i][0] == "wait":
            items[i] = ["wait", max(0, items[i][1] + choose.choice((-1, 1)))]
        elif what == "stage" and items[i][0] in ("copy", "read"):
            items[i] = [*items[i][:-1], choose.randrange(stages)]
        if not items:
            items = [["barrier"]]
    return events(items, stages)


@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_is_that_of_all_interleavings(seed):
    choose = random.Random(seed)
    wrong = 0
    for _ in range(40):
        stages, k_tiles, k_blocks = choose.choice((1, 2, 2, 3, 4)), choose.randint(1, 4), choose.randint(1, 2)
        program = kernel_program(stages, k_tiles, k_blocks)
        if choose.random() < 0.9:
            program = mutated(program, choose, stages)
        found = some_interleaving_goes_wrong(program, stages)
        assert bool(verdict(program)) == bool(found), (found, verdict(program), [e.to_list() for e in program])
        wrong += bool(found)
    assert 5 < wrong < 39


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_planted_fault_goes_wrong_in_some_interleaving(fault):
    for stages, k_tiles, k_blocks in itertools.product((2, 3), (2, 4), (1, 2)):
        assert bool(some_interleaving_goes_wrong(kernel_program(stages, k_tiles, k_blocks, fault), stages)) == bool(fault)


# The kernels' protocol and its faults -------------------------------------------------------------------------------------


def test_the_kernels_protocol_is_clean_for_any_depth_k_tiles_and_k_blocks():
    for stages, k_tiles, k_blocks in [*GRID, (8, 3, 2), (3, 40, 8)]:
        spec = timeline_spec(stages, k_tiles, k_blocks)
        assert spec.hazards == (), (stages, k_tiles, k_blocks)
        computed = [(e.tile, e.block) for e in spec.program if e.op == "compute"]
        assert computed == list(itertools.product(range(k_tiles), range(k_blocks)))
        assert {e.tile for e in spec.program if e.op == "copy"} >= set(range(k_tiles))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_for_any_depth_k_tiles_and_k_blocks(fault):
    for stages, k_tiles, k_blocks in GRID:
        if (stages == 1 and fault in ("advance", "drain")) or (stages > 1 and k_tiles == 1 and fault == "barrier"):
            with pytest.raises(UsageError, match="needs"):  # no index to advance, nothing left to drain; no next copy
                timeline_spec(stages, k_tiles, k_blocks, fault=fault)
            continue
        kinds = {h.kind for h in timeline_spec(stages, k_tiles, k_blocks, fault=fault).hazards}
        expected = {"wait": {"raw"}, "barrier": {"war"}, "advance": {"tile"}, "drain": {"drain", "war"} if stages > 2 else {"war"}}[fault]
        assert kinds & expected and (kinds <= expected or fault == "advance" or stages == 1), (stages, k_tiles, k_blocks, kinds)


def outlined(drawing) -> dict[str, set[tuple[int, int]]]:
    """The cells inside thick outlines, by panel, out of SVG and out of TikZ, which must agree."""
    found: dict[str, set[tuple[int, int]]] = {}
    height, width = 24.0, 24.0 * drawing.figure.aspect
    for group in ET.fromstring(drawing.svg()).iter(f"{SVG}g"):
        if group.get("class") == "txg-panel":
            found[group.get("data-panel")] = {
                (round(float(b.get("y")) / height) + r, round(float(b.get("x")) / width) + c)
                for b in group.iter(f"{SVG}rect") if b.get("class") == "txg-block" and b.get("stroke-width") == "4"
                for r in range(round(float(b.get("height")) / height)) for c in range(round(float(b.get("width")) / width))
            }  # fmt: skip
    parts = re.split(r"(?=\\coordinate \(txg-\w+\) at)", drawing.tikz())[1:]
    for part in parts:
        draws = re.findall(r"line width=4\*\\txgFrameWidth\] \((\d+),(\d+)\) rectangle \+\((\d+),(\d+)\)", part)
        cells = {(int(y) + r, int(x) + c) for x, y, w, h in draws for r in range(int(h)) for c in range(int(w))}
        assert cells == found[re.match(r"\\coordinate \(txg-(\w+)\)", part)[1]]
    return found


def labels(drawing, panel: str) -> dict[tuple[int, int], list[str]]:
    """What stands in each cell, the same in SVG and TikZ."""
    svg, tikz = from_svg(drawing.svg(), drawing.figure.aspect)[panel].labels, from_tikz(drawing.tikz())[panel].labels
    assert {at: "".join(t) for at, t in svg.items()} == {at: "".join(t) for at, t in tikz.items()}
    return svg


def test_the_three_stage_protocol_drawn_is_the_ring_of_its_definition():
    """Tile t lives in stage t mod 3: issued two k tiles before it is read, read in its own two k blocks, free between."""
    drawing = texgen.timeline(stages=3, k_tiles=8, k_blocks=2)
    assert outlined(drawing) == {"stages": set(), "operations": set()}
    drawn = labels(drawing, "stages")
    for tile in range(8):
        issued = tile if tile < 2 else 3 + 2 * (tile - 2)  # a step each in the prologue, then every second
        assert drawn[tile % 3, issued] == [str(tile), "W"]
        first = 2 + 2 * tile  # the first fragments come in the step before the first multiplication
        assert drawn[tile % 3, first] == drawn[tile % 3, first + 1] == [str(tile), "R"]
        for step in range(issued + 1, first):
            assert drawn[tile % 3, step] == [str(tile), "F"]
        if tile < 6:
            assert (tile % 3, first + 2) not in drawn
    assert "No hazards" in drawing.figure.alt


def test_a_wait_that_is_too_weak_is_drawn_at_the_reads_and_at_the_wait():
    drawing = texgen.timeline(fault="wait")
    marked, rows = outlined(drawing), [p.row_names for p in drawing.figure.panels][1]
    reads = {at for at, text in labels(drawing, "stages").items() if text[1][0] == "R"}
    assert marked["stages"] == reads and len(reads) == 17
    assert all(labels(drawing, "stages")[at][1] == "R!" for at in reads)
    waits = {at for at, text in labels(drawing, "operations").items() if text == ["2!"]}
    assert {at for at in marked["operations"] if rows[at[0]] == "wait"} == waits and len(waits) == 9
    assert all("wait_group 2 in step" in h.text and "too weak" in h.text for h in drawing.spec.hazards)


READ_1 = [["barrier"], ["read", 1, 0, 1], ["compute", 1, 0]]


@pytest.mark.parametrize(
    ("program", "said", "blamed"),
    [
        ([["copy", 0, 0], ["commit"], ["wait", 0], ["barrier"], ["copy", 1, 1], ["commit"], *READ_1], "no wait_group stands between its commit", None),
        ([["copy", 1, 1], ["wait", 0], *READ_1], "no commit stands between it and wait_group 0 in step 1", None),
        ([["copy", 1, 1], *READ_1], "no commit and no wait_group stand between", None),
        ([["copy", 1, 1], ["commit"], ["wait", 1], *READ_1], "wait_group 1 in step 1 is too weak", 1),
        ([["copy", 1, 1], ["commit"], ["wait", 1], *READ_1, ["wait", 0]], "wait_group 1 in step 1 is too weak", 1),
    ],
)
def test_a_wait_is_blamed_only_where_it_could_have_waited(program, said, blamed):
    drawing = texgen.timeline(2, 2, 1, protocol=program)
    hazard = next(h for h in drawing.spec.hazards if h.kind == "raw")
    assert said in hazard.text
    panel = next(p for p in drawing.figure.panels if p.key == "operations")
    waits = panel.lines[0][panel.row_names.index("wait")] if "wait" in panel.row_names else []
    marked = [step for step, label in enumerate(waits) if label.endswith("!")]
    assert marked == ([] if blamed is None else [blamed])


def test_k_tiles_that_the_loop_leaves_to_a_drain_are_missed_without_one():
    """A loop that ends when nothing is left to copy leaves depth - 1 k tiles; what is multiplied is counted by itself."""
    program = [e.to_list() for e in kernel_program(3, 8, 2)]
    cut = next(i for i, e in enumerate(program) if e[:3] == ["compute", 5, 1]) + 1
    short = texgen.timeline(3, 8, 2, protocol=[*program[:cut], ["wait", 0], ["barrier"], ["reuse"]])
    assert [(h.kind, h.tile, h.text) for h in short.spec.hazards] == [
        ("sum", t, f"The program ends and k tile {t} was never multiplied.") for t in (6, 7)
    ]
    rows, end = short.figure.panels[1].row_names, short.spec.steps[cut - 1]
    assert outlined(short) == {"stages": set(), "operations": {(rows.index("compute"), end)}} and "wrong sum" in short.figure.alt
    twice = texgen.timeline(3, 8, 2, protocol=[*program[:cut], ["compute", 5, 1], *program[cut:]])
    assert [(h.kind, h.tile) for h in twice.spec.hazards] == [("sum", 5)] and "k block 1 of k tile 5" in twice.spec.hazards[0].text
    part = [e for e in program if e[:3] != ["compute", 2, 0]]
    assert [h.text for h in texgen.timeline(3, 8, 2, protocol=part).spec.hazards] == ["The program ends and k block 0 of k tile 2 was never multiplied."]


def test_on_the_command_line_a_kind_of_hazard_takes_a_line(run):
    status, _, said = run("--fault", "wait", "-o", "wrong.svg")
    lines = said.strip().splitlines()
    count = len(timeline_spec(fault="wait").hazards)
    assert status == 0 and len(lines) == 1 and count > 10
    assert lines[0].startswith("texgen: warning: read too early (RAW): Step 2:") and lines[0].endswith(f"And {count - 1} more.")
    run("--fault", "wait", "-o", "wrong.json")
    assert run("wrong.json", "-o", "wrong.tikz", command="render")[::2] == (0, said)


def test_a_copy_before_the_barrier_is_drawn_at_the_copy_and_at_the_reads_it_overwrites():
    drawing = texgen.timeline(fault="barrier")
    marked, drawn = outlined(drawing)["stages"], labels(drawing, "stages")
    # all but the last k tile are overwritten while they may be read: two reads and a copy each
    assert len(marked) == 7 * 3
    assert {tuple(drawn[at]) for at in marked} == {
        *((str(t), "R!") for t in range(7)), *((str(t), "W!") for t in range(3, 8)), ("7*", "W!")
    }  # fmt: skip
    assert {(h.kind, h.tile, h.stage) for h in drawing.spec.hazards} == {("war", t, t % 3) for t in range(7)}


def test_a_ring_advanced_too_early_is_drawn_where_the_wrong_stage_is_read():
    drawing = texgen.timeline(fault="advance")
    marked, drawn = outlined(drawing)["stages"], labels(drawing, "stages")
    assert marked == {((t + 1) % 3, 3 + 2 * t) for t in range(8)}  # the second k block of tile t, from the next tile's stage
    assert [drawn[(t + 1) % 3, 3 + 2 * t] for t in range(7)] == [[str(t + 1), "R!"] for t in range(7)]
    assert "stage 1 is read for k tile 0, and k tile 1 is in flight" in drawing.spec.hazards[0].text


def test_a_missing_drain_is_drawn_where_shared_memory_is_reused():
    drawing = texgen.timeline(fault="drain")
    marked, drawn = outlined(drawing), labels(drawing, "stages")
    last = drawing.spec.steps[-1]
    assert {tuple(drawn[at]) for at in marked["stages"]} == {("7*", "F!"), ("7*", "R!")}
    assert {step for _, step in marked["stages"] | marked["operations"]} == {last}
    assert {h.kind for h in drawing.spec.hazards} == {"war", "drain"}


@pytest.mark.parametrize("palette", ["default", "grey", "white", "okabe-ito", "cute"])
def test_states_can_be_told_without_colour(palette):
    drawing = texgen.timeline(fault="wait", palette=palette)
    assert {t[1].rstrip("!") for t in labels(drawing, "stages").values()} == {"W", "F", "R"}


def test_the_text_form_has_marks_and_names_of_rows():
    said = texgen.timeline(fault="drain").text()
    assert re.search(r"^stage 0 .*7\*F!$", said, re.M) and re.search(r"^ +reuse .*all!$", said, re.M)


# The protocol is the kernels' own -----------------------------------------------------------------------------------------

PTX = re.compile(r"cp\.async\.c[ag]|cp\.async\.commit_group|cp\.async\.wait_group\s+(\d+)|bar\.sync|bar\.red|clock64|^\$L__BB0_2:", re.M)


def happenings(ptx: str) -> list[str]:
    """Copies (a run of them is one), commits, waits, barriers, stamps and the main loop's head, up to the drain's barrier."""
    out: list[str] = []
    for match in PTX.finditer(ptx):
        text = match[0]
        name = (
            "copy" if re.match(r"cp\.async\.c[ag]", text) else "commit" if "commit" in text else f"wait {match[1]}" if "wait" in text
            else "loop" if text.startswith("$") else "stamp" if text == "clock64" else "barrier"
        )  # fmt: skip
        if name != "copy" or not out or out[-1] != "copy":
            out.append(name)
        if name == "barrier" and "wait 0" in out[-3:] and "loop" in out and out.count("barrier") >= 3:
            return out
    raise AssertionError("no drain")


def expected(stages: int, k_blocks: int) -> list[str]:
    """The same of the default program, its main loop once."""
    program = kernel_program(stages, 2, k_blocks)
    names = [f"wait {e.n}" if e.op == "wait" else e.op for e in program if e.op in ("copy", "commit", "wait", "barrier")]
    prologue, body = 2 * (stages - 1) + 2, names[2 * (stages - 1) + 2 :]
    once = body[: (len(body) - 2) // 2]
    assert once * 2 == body[:-2]
    return [*names[:prologue], "loop", *once, *body[-2:]]


@pytest.mark.dsl
@pytest.mark.parametrize(("kernel", "stages"), [("sgemm", 4), ("hgemm_sm80", 0)])
def test_the_default_protocol_is_the_order_of_the_kernels_ptx(kernel, stages, tmp_path):
    from importlib import import_module

    module = import_module(f"texgen.kernels.{kernel}")
    keep = f"--keep-ptx --dump-dir {tmp_path}"
    if kernel == "sgemm":
        cfg = module.Config(stages=stages)
        made = module.compiled("pipelined", "sm_90a", cfg=cfg, options=keep)
        blocks = cfg.bk
    else:
        cfg = module.DEFAULT
        made = module.compiled("sm_90a", options=keep)
        blocks = cfg.bk // 16
    found = happenings(made.__ptx__)
    assert found == expected(cfg.stages, blocks)
    assert "clock64" not in made.__ptx__


@pytest.mark.dsl
def test_stamps_stand_where_they_say_in_the_same_protocol(tmp_path):
    case = stamps.Case(2, k_tiles=5)
    made, slots, cfg = stamps.compiled("sm_90a", case, f"--keep-ptx --dump-dir {tmp_path}")
    found = happenings(made.__ptx__)[1:]  # the first is the head's
    assert [x for x, _ in itertools.groupby(x for x in found if x != "stamp")] == expected(2, cfg.bk)
    loop = found[found.index("loop") + 1 :]
    around = " ".join(loop)
    assert loop.count("stamp") == slots.round + 2  # once round the loop, and about the wait of the drain
    assert "stamp copy stamp copy commit stamp" in around and "stamp wait 0 stamp barrier" in around
    assert re.search(r"bar\.red\.popc\.u32 n, 0, q; setp\.ne\.and\.u32 q, n, 0, p; @q mov\.u64 t, %clock64", made.__ptx__)


# Measured -----------------------------------------------------------------------------------------------------------------


def synthetic(stages: int = 3, k_tiles: int = 4, k_blocks: int = 2, warps: int = 2, early: bool = False):
    """A result file as a run would write it, of a machine with round numbers: 100 cycles a k block, warps 3 cycles apart."""
    slots = Slots(stages, k_tiles, k_blocks)
    raw = np.full((warps, slots.count), stamps.NOT_STAMPED, dtype=np.int64)
    raw[:, :HEAD] = [5000, 1000, 5500, 2000, 7]
    for w in range(warps):
        now = 1000 + 3 * w

        def hand_over(tile: int, w: int = w, now: int = 0) -> int:
            raw[w, slots.wait(tile)], raw[w, slots.landed(tile)] = now, now + 10
            raw[w, slots.passed(tile)] = now + (11 if early else 20)
            return now + 20

        for stage in range(stages - 1):
            raw[w, slots.copy(stage)], raw[w, slots.commit(stage)] = now, now + 5
            now += 8
        now = hand_over(0, now=now)
        for tile in range(k_tiles):
            for block in range(k_blocks):
                if block == k_blocks - 1:
                    now = hand_over(tile + 1, now=now)
                if block == 0:
                    raw[w, slots.copy(tile + stages - 1)], raw[w, slots.commit(tile + stages - 1)] = now, now + 5
                raw[w, slots.block(tile, block)] = now
                now += 100
        hand_over(k_tiles + 1, now=now)
    entry = {
        "kernel": "sgemm_pipelined", "m": 256, "n": 512, "k": 16 * k_tiles, "stages": stages, "k_tiles": k_tiles, "k_blocks": k_blocks,
        "block": [0, 1], **stamps.head(raw), "error": 1e-7, "tolerance": 1e-6, "correct": True, "stamped_median_s": 1.1e-5,
        "plain_median_s": 1e-5, "source_hash": "0" * 16, "events": stamps.events(raw, slots),
    }  # fmt: skip
    head = {"schema": 1, "gpu": "A GPU", "driver": "1.2", "dsl": "4.8.1", "torch": "2", "date": "2026-01-02T03:04:05Z"}
    return head | {"entries": [entry]}


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text(stamps.text(synthetic()))
    return path


def test_stamps_become_events_and_a_file_that_fits_its_schema(result):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(stamps.__file__).parent / "schema/timeline.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    data = json.loads(result.read_text())
    validator.validate(data)
    for file in RESULTS:
        validator.validate(json.loads(file.read_text()))
    del data["entries"][0]["events"]["wait"]
    assert not validator.is_valid(data)


def test_a_slot_that_was_never_written_is_refused():
    slots = Slots(3, 4, 2)
    with pytest.raises(TexgenError, match="never written"):
        stamps.events(np.full((2, slots.count), stamps.NOT_STAMPED), slots)
    places = [slots.copy(t) + i for t in range(6) for i in range(slots.round)]
    assert len(set(places)) == len(places) and max(places) < slots.count


def test_measured_bars_stand_at_their_cycles(result):
    """Read back from the SVG: a bar's place is its time in cells, the first tick being cycle 0."""
    drawing = texgen.timeline(measured=result)
    assert drawing.spec.k_tiles == 4  # those of the run
    panel = next(p for p in drawing.figure.panels if p.key == "measured")
    unit = next(int(t.replace(",", "")) / i for i, t in enumerate(panel.column_names) if i and t)
    width = 24 * drawing.figure.aspect
    group = next(g for g in ET.fromstring(drawing.svg()).iter(f"{SVG}g") if g.get("data-panel") == "measured")
    found = {}
    for bar in group.iter(f"{SVG}rect"):
        if "txg-bar" in bar.get("class"):
            begin, end = (float(bar.get("x")), float(bar.get("x")) + float(bar.get("width")))
            found[bar.find(f"{SVG}title").text] = [round((x / width - 0.5) * unit) for x in (begin, end)]
    events = json.loads(result.read_text())["entries"][0]["events"]
    for tile in range(4):
        begin, end = events["passed"][0][tile], events["wait"][0][tile + 1]
        assert found[f"k tile {tile} read {begin:,}–{end:,}"] == pytest.approx([begin, end], abs=1)
        begin, end = events["commit"][0][tile], events["passed"][0][tile]
        assert found[f"k tile {tile} in flight {begin:,}–{end:,}"] == pytest.approx([begin, end], abs=1)
    begin, end = events["passed"][0][4], events["wait"][0][5]
    assert f"k tile 3* read {begin:,}–{end:,}" in found  # a k block is read of it, as the model above has it
    said = " ".join(drawing.text().split())
    assert "The model above" not in said  # it has as many k blocks a k tile
    other = " ".join(texgen.timeline(k_blocks=3, measured=result).text().split())
    assert "The model above has k tiles of 3 k blocks, the run's have 2" in other
    assert "the stamps cost 10.0% of the run" in said and "2.00 cycles a nanosecond" in said
    assert drawing.spec.hazards == () and "not to be trusted" not in said


def test_stamps_that_pass_a_barrier_too_early_are_not_trusted(tmp_path):
    path = tmp_path / "early.json"
    path.write_text(stamps.text(synthetic(early=True)))
    assert "6 barriers" in texgen.timeline(measured=path).text()
    assert "EARLY" in stamps.line(synthetic(early=True)["entries"][0])


@pytest.mark.parametrize("file", RESULTS, ids=lambda f: f.parent.name)
def test_committed_stamps_are_of_a_correct_run_whose_barriers_held(file):
    data = json.loads(file.read_text())
    assert {e["stages"] for e in data["entries"]} >= {2, 3, 4} and all(e["correct"] for e in data["entries"])
    for entry in data["entries"]:
        run = read_measured(file, entry["stages"])
        assert run.early == 0
        for warp in range(run.warps):
            order = [[run.events[n][warp][t] for n in ("wait", "landed", "passed")] for t in range(run.k_tiles + 2)]
            flat = [x for three in order for x in three]
            assert flat == sorted(flat)
            # The page says so: waits of two sorts, alike at every depth, and little beside the work.
            waits = [b - a for t in range(1, run.k_tiles) for w in range(run.warps) for a, b in [(run.events["wait"][w][t], run.events["landed"][w][t])]]
            long = [w for w in waits if w > 3 * np.median(waits)]
            assert 0.2 < len(long) / len(waits) < 0.5
            assert max(waits) < 0.05 * (run.events["wait"][0][3] - run.events["wait"][0][2])
            for tile, blocks in enumerate(run.events["block"][warp]):
                assert blocks == sorted(blocks) and order[tile][2] <= blocks[0] and blocks[-2] <= order[tile + 1][0] <= blocks[-1]


# What a user gives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_json_is_read_back_as_it_was(fault, result):
    for spec in (timeline_spec(3, 5, 2, fault=fault), timeline_spec(fault=fault, measured=result, name="a name")):
        again = from_dict(json.loads(to_json(spec)))
        assert again == spec and to_json(again) == to_json(spec) and hash(again) == hash(spec)
    derived = json.loads(to_json(spec))["derived"]
    assert len(derived["hazards"]) == len(spec.hazards) and len(derived["states"]) == 3


GOOD = {"kind": "timeline", "stages": 2, "k_tiles": 2, "k_blocks": 1, "program": [["copy", 0, 0], ["commit"]]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stages": 0}, "'stages' must be"), ({"stages": True}, "'stages' must be"), ({"k_tiles": "8"}, "'k_tiles' must be"),
        ({"k_blocks": 10**9}, "'k_blocks' must be"), ({"program": []}, "no program"), ({"program": "copy"}, "no program"),
        ({"program": [["copy"]]}, 'event 0 is .*write .*tile'), ({"program": [["copy", 0, 2]]}, "names stage 2, and the ring has 2"),
        ({"program": [["jump"]]}, "begins with one of"), ({"program": [{}]}, "begins with one of"), ({"program": [[]]}, "begins with one of"),
        ({"program": [["wait", -1]]}, "numbers from 0"), ({"program": [["wait", 1.5]]}, "numbers from 0"),
        ({"program": [["advance", "both"]]}, "advance"), ({"program": [["barrier"]] * 5_001}, "at most 5,000"),
        ({"fault": "none"}, "'fault' must be"), ({"measured": []}, "must be an object"), ({"measured": {"gpu": "x"}}, "'driver' must be"),
        ({"schema": 2}, "schema 2"),
    ],
)  # fmt: skip
def test_what_is_no_timeline_is_refused_in_a_sentence(change, said):
    with pytest.raises(TexgenError, match=said):
        from_dict(GOOD | change)


def test_indices_of_the_ring_give_the_stages_that_are_not_named():
    program = events([["copy", 0], ["advance", "write"], ["copy", 1], ["advance", "write"], ["copy", 2], ["read", 0, 0]], 2)
    assert [e.stage for e in program if e.op in ("copy", "read")] == [0, 1, 0, 0]


WRONG = """
def protocol(stages, k_tiles, k_blocks):
    print("this goes to stderr")
    for tile in range(stages - 1):
        yield "copy", tile
        yield ("commit",)
        yield "advance", "write"
    for tile in range(k_tiles):
        if tile + stages - 1 < k_tiles:
            yield "copy", tile + stages - 1
        yield ("commit",)
        yield "advance", "write"
        yield "wait", stages - 1
        yield ("barrier",)
        for block in range(k_blocks):
            yield "read", tile, block
            yield "compute", tile, block
        yield "advance", "read"
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command in a folder of its own: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, command: str = "timeline") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["texgen", command, *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return call


def test_a_protocol_of_ones_own_is_judged(run, tmp_path):
    """The textbook loop with its copy before the barrier: right with a barrier more, which the file adds."""
    (tmp_path / "mine.py").write_text(WRONG)
    status, out, said = run("--protocol", "mine.py:protocol", "--k-tiles", 5, "-o", "mine.svg", "-o", "mine.json")
    assert status == 0 and out.split() == ["mine.svg", "mine.json"]
    assert "Step 5: k tile 3 is copied into stage 0 while another warp may still read k tile 0" in said
    right = json.loads((tmp_path / "mine.json").read_text())
    assert right["derived"]["hazards"] and {h[0] for h in right["derived"]["hazards"]} == {"war"}
    program = []
    for event in right["program"]:
        program += [event, ["barrier"]] if event == ["advance", "read"] else [event]
    (tmp_path / "right.json").write_text(json.dumps({"stages": 3, "k_tiles": 5, "k_blocks": 2, "program": program}))
    status, out, said = run("--protocol", "right.json")
    assert status == 0 and said == "" and "No hazards" in out
    assert texgen.timeline(3, 5, 2, protocol=program).spec.hazards == ()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--fault", "nope"], 2, "must be one of wait, barrier, advance, drain"),
        (["--stages", "65"], 2, "between 1 and 64"),
        (["--stages", "1", "--fault", "drain"], 2, "two --stages or more"),
        (["--k-tiles", "4000", "--k-blocks", "200"], 2, "fewer --k-tiles"),
        (["--protocol", "missing.json"], 1, "cannot be read"),
        (["--protocol", "bad.py:function"], 1, "ZeroDivisionError"),
        (["--protocol", "bad.py:other"], 1, "no function other"),
        (["--protocol", "bad.py"], 2, "file.py:function"),
        (["--protocol", "bad.json"], 1, "no JSON"),
        (["--protocol", "empty.json"], 1, "empty.json has no program: give a list of events"),
        (["--protocol", "advances.json"], 1, "only advances the ring's indices"),
        (["--measured", "bad.json"], 1, "no JSON"),
        (["--measured", "timeline.json", "--stages", "5"], 1, "no run with 5 stages: there are runs with 3"),
        (["-o", "x.gif"], 2, "writes no .gif"),
        (["--cols", "90"], 2, "leaves nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said_in_a_sentence(arguments, code, said, run, tmp_path, result):
    (tmp_path / "bad.py").write_text("def function(*numbers):\n    return 1 / 0\n")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "advances.json").write_text('[["advance", "read"]]')
    status, _, heard = run(*arguments)
    assert status == code and said in heard and "texgen/pipeline" not in heard, heard


@pytest.mark.parametrize("option", [{"highlight": "T0"}, {"overview": True}, {"rows": "0:2"}, {"operand": "A"}, {"slides": "thread"}])
def test_options_of_layouts_are_refused(option):
    with pytest.raises(UsageError):
        texgen.timeline(**option)


def test_steps_can_be_cropped():
    whole, part = texgen.timeline(fault="wait"), texgen.timeline(fault="wait", cols="4:8")
    drawn = labels(whole, "stages")
    assert labels(part, "stages") == {(r, c - 4): t for (r, c), t in drawn.items() if 4 <= c < 8}
    assert outlined(part)["stages"] == {(r, c - 4) for r, c in outlined(whole)["stages"] if 4 <= c < 8}


@pytest.mark.parametrize(
    ("fault", "cols", "said", "hidden"),
    [
        ("", "0:12", ["No hazards"], ["7*", "once more"]),
        ("", "15:16", ["7*: the last k tile once more"], []),
        ("wait", "0:2", ["17 hazards, none in the steps drawn: read too early", "Step 2:"], ["marked with !", "7*"]),
        ("wait", "4:8", ["17 hazards, 4 in the steps drawn, outlined and marked", "Step 4:", "Step 6:", "and 15 more"], ["Step 2:"]),
        ("wait", "2", ["17 hazards, 2 in the steps drawn", "Step 2:"], ["Step 4:"]),  # k blocks 0 and 1 by one wait
    ],
)  # fmt: skip
def test_the_lines_of_a_cropped_timeline_are_about_the_steps_drawn(fault, cols, said, hidden):
    figure = texgen.timeline(fault=fault, cols=cols).figure
    lines = " ".join(line.text for line in figure.lines)
    assert all(text in lines for text in said) and not any(text in lines for text in hidden), lines
    letters = {text[1][:1] for text in labels(texgen.timeline(fault=fault, cols=cols), "stages").values() if text[0]}
    assert {item.text[0] for row in figure.legend for item in row} == letters


@pytest.mark.chromium
def test_a_page_keeps_the_size_of_a_long_timeline_and_follows_the_reader(run):
    """Nothing there can be pointed at, so nothing enlarges it: in the window's width its labels would be a pixel high."""
    playwright = pytest.importorskip("playwright.sync_api")
    assert run("--k-tiles", 64, "--k-blocks", 8, "-o", "long.html")[0] == 0
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto((Path.cwd() / "long.html").as_uri())
        for scheme, ground in {"dark": "rgb(21, 24, 29)", "light": "rgb(255, 255, 255)"}.items():
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == ground
        natural = page.evaluate("+document.querySelector('svg.texgen').getAttribute('width')")
        shown = page.evaluate("document.querySelector('svg.texgen').getBoundingClientRect().width")
        browser.close()
    assert shown == pytest.approx(natural, abs=0.1) and natural > 10_000


def test_names_of_rows_fit_their_rows_in_a_long_timeline():
    assert texgen.timeline(2, 500, 1).figure.text_size <= 0.9 and texgen.timeline().figure.text_size == 0.42


def test_output_is_the_same_every_time(result):
    first, second = (texgen.timeline(measured=result, fault="barrier") for _ in range(2))
    assert (first.svg(), first.tikz(), first.json()) == (second.svg(), second.tikz(), second.json())


def test_the_directive_draws_faults_without_warnings(tmp_path, result):
    pytest.importorskip("sphinx")
    from sphinx_site import Site

    site = Site(tmp_path / "site")
    site.write("runs/timeline.json", result.read_text())
    site.write("mine.py", WRONG)
    site.page(
        ".. texgen:timeline::\n   :stages: 4\n   :k-tiles: 3\n   :caption: Clean.",
        ".. texgen:timeline::\n   :fault: drain\n   :no-caption:",
        ".. texgen:timeline::\n   :measured: /runs/timeline.json\n   :palette: grey",
        ".. texgen:timeline::\n   :protocol: mine.py:protocol",
        ".. texgen:timeline::\n   :k-tiles: 1\n   :fault: barrier",
    )
    built = site.build()
    assert len(built.figures()) == 5 and built.drawn == 3 and built.warnings.count("WARNING") == 2
    assert "texgen_execute = True" in built.warnings and ":fault: barrier needs two :k-tiles: or more" in built.warnings and "4 stages, 3 k tiles" in built.text("index.html")
    assert {Path(d).name for d in built.app.env.dependencies["index"]} == {"timeline.json"}
    built = site.build(texgen_execute=True)
    assert built.warnings.count("WARNING") == 1 and ":k-tiles: or more" in built.warnings and "overwritten while read (WAR)" in built.text("index.html")


@pytest.mark.pdflatex
def test_a_timeline_compiles(result, tmp_path):
    assert texgen.timeline(measured=result, fault="wait").save(tmp_path / "t.pdf").read_bytes()[:5] == b"%PDF-"


def test_a_function_gives_events_or_is_told_what_to_give():
    """A spec's own events are taken as they are; anything else is a sentence."""
    spec = texgen.timeline(3, 5, 2).spec
    assert texgen.timeline(3, 5, 2, protocol=lambda *_: spec.program).spec.program == spec.program
    for wrong in (None, 5, "copy"):
        with pytest.raises(TexgenError, match="must give a list of events"):
            texgen.timeline(protocol=lambda *_, wrong=wrong: wrong)
    for wrong, said in {
        "stages": "stages 0 must be between 1 and 64", "k_tiles": "k_tiles 0 must be", "fault": "fault 'no' must be one of wait,", "cols": "cols '99' leaves nothing",
        "print_width": "print_width 'no' is no length", "color_by": "color_by is of layouts; a timeline has stages and steps: cols crops",
    }.items():  # fmt: skip
        value = {"fault": "no", "cols": "99", "print_width": "no", "color_by": "warp"}.get(wrong, 0)
        with pytest.raises(UsageError, match=f"^{re.escape(said)}") as raised:
            texgen.timeline(**{wrong: value})
        assert "--" not in str(raised.value)
    with pytest.raises(UsageError, match="between 1 and 64"):
        texgen.timeline("3")
