"""Faults of installing the DSL, reported in public: what the doctor and the error texts say of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_doctor import dists, machine, troubles, whole

import texgen
from texgen.doctor import DSL, LIBS, Installed, diagnose, explain_import

ROOT = Path(__file__).parent.parent

COVERED = {
    "V08": "tests/test_dsl.py::test_equivalent_spellings_are_equal",
    "D01": "tests/test_doctor.py::test_driver_too_old",
    "D02": "tests/test_doctor.py::test_context_crash_of_old_releases",
    "D03": "tests/test_doctor.py::test_traps_of_installing",
    "D04": "tests/test_doctor.py::test_traps_of_installing",
    "D07": "tests/test_doctor.py::test_driver_too_old",
    "2-E02": "tests/test_dsl.py::test_universal_mma_counts_threads",
    "2-E10": "tests/test_worker.py::test_an_import_that_dies",
    "2-E11": "tests/test_worker.py::test_an_import_that_dies",
    "2-E12": "tests/test_doctor.py::test_traps_of_installing",
    "2-E13": "tests/test_doctor.py::test_traps_of_installing",
    "2-E17": "tests/test_worker.py::test_kernels_get_a_hint",
    "2-E18": "tests/test_dsl.py::test_outside_of_a_trace",
    "2-E21": "tests/test_doctor.py::test_traps_of_installing",
    "2-E23": "tests/test_worker.py::test_architecture_is_chosen",
    "2-B36": "tests/test_worker.py::test_an_abort_costs_one_figure",
}


@pytest.mark.parametrize("case", COVERED)
def test_what_stands_elsewhere_is_there(case):
    file, _, name = COVERED[case].partition("::")
    text = (ROOT / file).read_text()
    assert re.search(rf"^def {name}\(", text, re.MULTILINE)
    if name == "test_traps_of_installing":
        assert f"{case}:" in text or f"{case}, " in text or f", {case}:" in text


def test_D01_D07_figures_need_no_driver():
    """NVIDIA/cutlass#2804, #2866 and #2356."""
    check = troubles(machine(whole(dists(cuda_python="13.1.0")), driver="570.124.06"))["NVIDIA driver"]
    assert "580 or newer" in check.text and "figures need no driver" in check.cost and "12.9" in check.command
    none = troubles(machine(driver="", gpus=()))["NVIDIA driver"]
    assert none.status == "gap" and "figures need none" in none.text


def test_D03_the_package_is_named():
    """NVIDIA/cutlass#2762 and #2801."""
    text = explain_import(ModuleNotFoundError("No module named 'cutlass.cute'"), Installed({"nvidia-cutlass": "4.2.0.0"}))
    assert f"pip install {DSL}" in text and "nvidia-cutlass 4.2.0.0 is installed" in text


def test_D04_2E12_the_missing_wheel_is_named():
    """NVIDIA/cutlass#3001 and #3034: 4.4.0 installs and 'cutlass' is missing."""
    missing = ModuleNotFoundError("No module named 'cutlass'", name="cutlass")
    for found, wheel in ((Installed({DSL: "4.4.0"}), "base"), (Installed({DSL: "4.8.1", f"{LIBS}base": "4.8.1"}), "core")):
        text = explain_import(missing, found)
        assert f"{LIBS}{wheel}" in text and "metadata alone" in text and "pip install --force-reinstall" in text


def test_D05_wheels_are_what_we_tell_people_to_install():
    """NVIDIA/cutlass#3416: the editable script copies no files and says success."""
    for check in diagnose(machine(Installed())):
        assert "setup-editable" not in check.command and "pip install -e" not in check.command
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")):
        assert "setup-editable" not in page.read_text(encoding="utf-8")


def test_2E13_both_packages_are_warned_of():
    """NVIDIA/cutlass#2801."""
    check = troubles(machine(whole(dists(nvidia_cutlass="4.2.0.0"))))["nvidia-cutlass"]
    assert "both have a package called cutlass" in check.text and check.command == "pip uninstall nvidia-cutlass"


def test_2E21_the_missing_pth():
    """sgl-project/sglang#21182: 4.3.5 to 4.4.1."""
    check = troubles(machine(whole(dists("4.4.1"), cutlass="")))["CuTe DSL"]
    assert ".pth" in check.text and "--force-reinstall" in check.command and "4.4.1" in check.command


def test_2E10_names_are_drawn_without_the_dsl(monkeypatch):
    """NVIDIA/cutlass#3083 and #3110: its import dies on machines without a driver."""
    import sys

    monkeypatch.setitem(sys.modules, "cutlass", None)
    assert texgen.figure("SM90_64x64x16_F32F16F16_SS").svg() and texgen.figure("SM75_U32x4_LDSM_N").tikz()


@pytest.mark.dsl
def test_2E02_threads_are_the_objects_own(tmp_path):
    """A 16x16 universal MMA has 256 threads: 128 rows in 4 steps are 32 rows of 8 threads."""
    (tmp_path / "p.py").write_text(
        "import cutlass, cutlass.cute as cute\n"
        "def mma():\n"
        "    op = cute.nvgpu.MmaUniversalOp(cutlass.Float32)\n"
        "    return cute.make_tiled_mma(op, cute.make_layout((16, 16, 1), stride=(16, 1, 0)))\n"
    )
    drawing = texgen.figure(f"{tmp_path}/p.py:mma")
    assert drawing.spec.threads == 256
    assert any("C (m,n): 256 threads × 1 value = 256 cells" in line.text for line in drawing.figure.lines)


@pytest.mark.dsl
def test_2E23_each_figure_states_its_architecture(tmp_path, monkeypatch):
    """NVIDIA/cutlass#2431: without CUTE_DSL_ARCH a Hopper operation is refused for sm_100a."""
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    (tmp_path / "p.py").write_text(
        "import cutlass, cutlass.cute as cute\n"
        "from cutlass.cute.nvgpu import warpgroup\n"
        "K = cute.nvgpu.OperandMajorMode.K\n"
        "def mma():\n"
        "    op = warpgroup.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, K, K)\n"
        "    return cute.make_tiled_mma(op)\n"
    )
    drawing = texgen.figure(f"{tmp_path}/p.py:mma")
    assert drawing.spec.arch == "sm_90a"
    assert any(line.text.startswith("sm_90a · nvidia-cutlass-dsl") for line in drawing.figure.lines)
    assert texgen.figure("SM90_64x64x16_F32F16F16_SS").figure.lines
