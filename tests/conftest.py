"""Tests that need an outside program are marked by its name and skip with it where it is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess

import pytest
from site_build import built_site, site_folder  # noqa: F401  (fixtures for all)

PROGRAMS = ("pdflatex", "lualatex", "xelatex", "pdftotext", "pdftocairo", "chromium")
NEVER_SKIPPED_IN_CI = ("pdflatex",)


def has_gpu() -> bool:
    smi = shutil.which("nvidia-smi")
    return smi is not None and subprocess.run([smi, "-L"], capture_output=True, check=False).returncode == 0


def missing(mark: str) -> str:
    """What is missing for a marker, empty where nothing is."""
    if mark == "lualatex" and shutil.which("lualatex"):  # Debian has the program in another package than its fonts
        found = subprocess.run(
            ["kpsewhich", "-progname=lualatex", "luaotfload-main.lua"], capture_output=True, check=False
        )
        return "" if found.returncode == 0 else "lualatex lacks luaotfload"
    if mark in PROGRAMS:
        return "" if shutil.which(mark) else f"{mark} is not on the PATH"
    if mark == "dsl":
        return "" if importlib.util.find_spec("nvidia_cutlass_dsl") else "nvidia-cutlass-dsl is not installed"
    if mark == "torch":
        return "" if importlib.util.find_spec("torch") else "torch is not installed"
    if mark == "gpu":
        return "" if has_gpu() else "no CUDA device"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known: dict[str, str] = {}
    for item in items:
        for mark in {m.name for m in item.iter_markers()}:
            if mark not in known:
                known[mark] = missing(mark)
            if not known[mark]:
                continue
            if mark in NEVER_SKIPPED_IN_CI and os.environ.get("CI") == "true":
                pytest.exit(f"CI=true and {known[mark]}: its tests must not be skipped", returncode=3)
            item.add_marker(pytest.mark.skip(reason=known[mark]))
