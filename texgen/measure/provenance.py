"""Where a result comes from: the machine, the versions, the day, and the hash of the source that ran."""

from __future__ import annotations

import datetime
import hashlib
import platform
import subprocess
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

from texgen import __version__
from texgen.kernels import KERNELS


def source_files(kernel: str) -> list[Path]:
    """The files of a kernel's sources. Imports nothing of them."""
    files = []
    for name in KERNELS[kernel].sources:
        # find_spec imports the parents only
        spec = util.find_spec(name)
        assert spec is not None and spec.origin is not None
        files.append(Path(spec.origin))
    return files


@cache
def source_hash(kernel: str) -> str:
    """A hash of the sources that decide what a kernel does. Imports nothing: pages compare it without the DSL."""
    digest = hashlib.sha256()
    for name, file in zip(KERNELS[kernel].sources, source_files(kernel), strict=True):
        digest.update(name.encode() + b"\0" + file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def dsl_version() -> str:
    """The installed DSL's version, or ``unknown``."""
    for package in ("nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-base"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


QUERY = {
    "driver": "driver_version",
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "sm_max_mhz": "clocks.max.sm",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
}


def device_state() -> dict[str, Any]:
    """What nvidia-smi says of the first GPU now: driver, clocks, power. Empty where it is missing; changes nothing."""
    command = ["nvidia-smi", f"--query-gpu={','.join(QUERY.values())}", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values = (v.strip() for v in answer.splitlines()[0].split(","))
    return {k: v if k == "driver" else _number(v) for k, v in zip(QUERY, values, strict=False)}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def header() -> dict[str, Any]:
    """The head of a result file. Needs torch and a GPU."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    state = device_state()
    return {
        "schema": 1,
        "gpu": properties.name,
        "driver": state.pop("driver", "unknown"),
        "dsl": dsl_version(),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "texgen": __version__,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "clocks": {"before": state},
    }


def folder_name(gpu: str) -> str:
    """``NVIDIA H200`` -> ``nvidia-h200``: the folder of a GPU's results."""
    return "-".join("".join(c if c.isalnum() else " " for c in gpu.lower()).split())
