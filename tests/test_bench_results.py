"""Result files: each fits the schema, is what a run of today's harness would write, and never a number typed in."""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
from pathlib import Path

import numpy as np
import pytest

from texgen.kernels import KERNELS
from texgen.measure import bench, provenance

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = Path(bench.__file__).parent / "schema" / "bench.schema.json"
FILES = sorted((ROOT / "docs" / "results").glob("*/bench.json"))


def problems(result: dict) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(result)]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.parent.name)
def test_committed_results_fit_the_schema(file):
    result = json.loads(file.read_text())
    assert problems(result) == []
    assert file.parent.name == provenance.folder_name(result["gpu"])
    for entry in result["entries"]:
        assert entry["kernel"] in KERNELS
        assert entry["dtype"] == KERNELS[entry["kernel"]].dtype  # R02
        assert entry["median_s"] == statistics.median(entry["samples_s"])
        assert entry["torch_median_s"] == statistics.median(entry["torch_samples_s"])
        assert entry["ratio_to_torch"] == pytest.approx(entry["torch_median_s"] / entry["median_s"])
        assert entry["tolerance"] == pytest.approx(bench.tolerance(entry["dtype"], entry["k"]))
        assert entry["correct"] and entry["error"] <= entry["tolerance"]


def test_there_is_a_result():
    assert [f.parent.name for f in FILES] == ["nvidia-h200"]


def example() -> dict:
    entry = {
        "kernel": "sgemm_tiled", "m": 4, "n": 4, "k": 4, "dtype": "float32", "layout": "", "samples_s": [1e-3], "median_s": 1e-3,
        "spread": 0.0, "torch_samples_s": [1e-3], "torch_median_s": 1e-3, "torch_precision": "float32 (TF32 off)",
        "ratio_to_torch": 1.0, "error": 0.0, "max_abs_error": 0.0, "tolerance": 1e-6, "correct": True, "input_sets": 2,
        "source_hash": "0" * 16,
    }  # fmt: skip
    head = {"schema": 1, "gpu": "G", "driver": "1", "dsl": "4", "torch": "2", "date": "2026-01-01T00:00:00Z"}
    return {**head, "clocks": {"before": {}, "after": {}}, "entries": [entry]}


def test_the_schema_refuses_what_is_not_a_result():
    assert problems(example()) == []
    for change in ({"dtype": "float64"}, {"samples_s": []}, {"source_hash": "x"}, {"median_s": 0}, {"note": "by hand"}):
        result = example()
        result["entries"][0].update(change)
        assert problems(result), change
    result = example()
    del result["date"]
    assert problems(result)


def test_a_kernels_hash_follows_its_sources_alone(monkeypatch, tmp_path):
    assert provenance.source_hash("sgemm_tiled") == provenance.source_hash("sgemm_naive")  # one file
    assert len({provenance.source_hash(k) for k in KERNELS}) == 4
    for kernel in KERNELS.values():
        for module in kernel.sources:
            assert importlib.util.find_spec(module)


def test_hashes_import_no_dsl():
    import subprocess
    import sys

    code = (
        "import sys; from texgen.measure import provenance as p; p.source_hash('hgemm_sm90'); "
        "sys.exit(any(m in sys.modules for m in ('cutlass', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_work_is_counted_as_published():
    """R02: 640x480x320 in 0.872562 ms are 225.32 GFLOP/s."""
    assert bench.flops(640, 480, 320) == 196_608_000
    assert round(bench.flops(640, 480, 320) / 0.872562e-3 / 1e9, 2) == 225.32


def tf32(x: np.ndarray) -> np.ndarray:
    """float32 rounded to TF32's ten bits, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def test_the_tolerance_knows_tf32_from_float32():
    """R04: at 1024^3 on uniform [0,1) TF32 is 0.01 off, float32 0.0002; the bound lets the one through and not the other."""
    rng = np.random.default_rng(4)
    for draw in (rng.random, rng.standard_normal):
        a, b = draw((1024, 1024)).astype(np.float32), draw((1024, 1024)).astype(np.float32)
        exact = a.astype(float) @ b.astype(float)
        norm = np.linalg.norm(exact)
        plain, short = a @ b, tf32(a).astype(float) @ tf32(b).astype(float)
        bound = bench.tolerance("float32", 1024)
        assert np.linalg.norm(plain - exact) / norm < bound < np.linalg.norm(short - exact) / norm
        if draw == rng.random:
            assert 0.005 < np.abs(short - exact).max() < 0.05
            assert np.abs(plain - exact).max() < 0.001
    assert bench.tolerance("float32", 4096) < bench.tolerance("float16", 4096) < 1e-3
    assert bench.tolerance("float32", 4096) == pytest.approx(2 * bench.tolerance("float32", 1024))
    assert math.isfinite(bench.tolerance("float16", 1))


def test_the_table_has_a_line_an_entry():
    result = example()
    result["skipped"] = [{"kernel": "hgemm_sm90", "reason": "made for sm_90a; this GPU is sm_80"}]
    lines = list(bench.table(result))
    assert len(lines) == 4
    assert "sgemm_tiled" in lines[2] and "1.000" in lines[2]
    assert "made for sm_90a" in lines[3]


def test_saving_is_whole_or_not_at_all(tmp_path):
    result = dict(example(), gpu="NVIDIA H200")
    path = bench.save(result, tmp_path)
    assert path == tmp_path / "nvidia-h200" / "bench.json"
    assert json.loads(path.read_text()) == result
    assert [p.name for p in path.parent.iterdir()] == ["bench.json"]


@pytest.mark.torch
def test_without_a_gpu_it_says_so(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert bench.main(["--out", "/nonexistent"]) == 1
    assert "needs a CUDA device" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.dsl
def test_a_run_fits_the_schema():
    cases = [bench.Case("vector_add", 4099), bench.Case("sgemm_pipelined", 256, 264, 40, ("k", "mn"))]
    result = bench.bench(cases, samples=2)
    assert problems(json.loads(json.dumps(result))) == []
    assert all(e["correct"] for e in result["entries"])
