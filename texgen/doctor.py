"""What this machine has and lacks for texgen: the CuTe DSL and its traps, the driver, TeX, and what each gap costs.

``survey`` looks (in child processes, for the DSL and the driver's library can crash), ``diagnose`` judges what was seen
and is a pure function, ``examine`` is both. Nothing here prints, and nothing here imports the DSL.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError

ENGINES = ("pdflatex", "lualatex", "xelatex", "tectonic")
DSL, LIBS, OLD = "nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-", "nvidia-cutlass"
CUDA13_DRIVER = 580
PROBE_TIMEOUT = 60.0
INSTALL = f"pip install {DSL}"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report.

    ``status`` is ``ok``, ``gap`` (something cannot be done here) or ``fault`` (something is wrong and will fail).
    ``cost`` says what the gap costs and ``command`` mends it; both may be empty.
    """

    name: str
    status: str
    text: str
    cost: str = ""
    command: str = ""


@dataclass(frozen=True)
class Installed:
    """Where the DSL lies, by metadata and folders alone (see ``installed``).

    ``distributions`` maps the names of installed distributions that matter to their versions. ``folder`` is the DSL's
    own package folder (empty: none), ``modules`` the folder in it that holds ``cutlass`` (empty: none), ``cutlass`` the
    place that ``import cutlass`` would use (empty: none), ``flavours`` the CUDA libraries found, ``cu12`` and ``cu13``.
    """

    distributions: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    modules: str = ""
    cutlass: str = ""
    flavours: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """Everything that ``diagnose`` judges. ``probe`` is the child's reply, or its error under ``error``."""

    installed: Installed = Installed()
    python: tuple[int, int] = (3, 10)
    system: str = "Linux"
    environ: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    gpus: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    tikz: bool = True
    vl_convert: str = ""
    probe: Mapping[str, Any] = field(default_factory=dict)


def examine() -> list[Check]:
    """Look at this machine. Takes seconds, never raises."""
    return diagnose(survey())


# Judging


def diagnose(machine: Machine) -> list[Check]:
    """The checks for a machine as ``survey`` describes it."""
    found = machine.installed
    checks = [_python(machine), *dsl_checks(found, machine.system)]
    if any(n == DSL for n in found.distributions) or found.modules:
        checks += [_arch(machine), *_probe_checks(machine)]
    return [*checks, *_driver_checks(machine), *_tex_checks(machine), _vl_convert(machine)]


def _python(machine: Machine) -> Check:
    version = ".".join(map(str, machine.python))
    if machine.python < (3, 10):
        return Check(
            "Python", "fault", f"Python {version}; texgen and the DSL need 3.10 or newer",
            "the DSL has no wheels for it", "install Python 3.12",
        )  # fmt: skip
    if machine.python > (3, 14):
        return Check("Python", "gap", f"Python {version}; the DSL has wheels for 3.10 to 3.14", "no live DSL objects")
    return Check("Python", "ok", f"Python {version}")


def dsl_checks(found: Installed, system: str = "Linux") -> list[Check]:
    """The traps of installing the DSL, from what is installed alone."""
    dists = found.distributions
    version = dists.get(DSL, "")
    missing = explain_missing(found, system)
    if missing:
        text, command = missing
        status = "fault" if version or OLD in dists else "gap"
        cost = "no live DSL objects (module:callable, --live); names, C++ types and layout text work"
        return [Check("CuTe DSL", status, text, cost, command)]
    where = found.modules or found.cutlass
    checks = [Check("CuTe DSL", "ok", f"{DSL} {version or '(no metadata)'} in {where}")]
    libs = {n.removeprefix(LIBS): v for n, v in dists.items() if n.startswith(LIBS)}
    odd = {n: v for n, v in libs.items() if version and v != version}
    if odd:
        named = ", ".join(f"{LIBS}{n} {v}" for n, v in sorted(odd.items()))
        checks.append(
            Check(
                "DSL wheels", "fault", f"{DSL} is {version} and {named}: the wheels must have one version",
                "imports fail or layouts come from another release", _reinstall(version, libs),
            )
        )  # fmt: skip
    elif libs:
        checks.append(Check("DSL wheels", "ok", f"{', '.join(sorted(libs))} of one version"))
    if OLD in dists:
        checks.append(
            Check(
                "nvidia-cutlass", "fault" if found.cutlass and not _inside(found) else "gap",
                f"{OLD} {dists[OLD]} is installed beside {DSL}, and both have a package called cutlass",
                "import cutlass may take the wrong one", f"pip uninstall {OLD}",
            )
        )  # fmt: skip
    elif found.cutlass and not _inside(found):
        checks.append(
            Check(
                "cutlass", "fault", f"import cutlass takes {found.cutlass}, which is not the DSL's package",
                "no live DSL objects", "remove it from Python's path",
            )
        )  # fmt: skip
    if _release(version) >= (4, 6) and not found.flavours:
        checks.append(
            Check(
                "CUDA libraries", "fault", "neither the CUDA 12 nor the CUDA 13 libraries of the DSL are installed",
                "the DSL says 'No CTK flavor installed'", f"pip install '{DSL}=={version}'",
            )
        )  # fmt: skip
    elif found.flavours:
        both = "; with both, CUDA 13 wins" if len(found.flavours) > 1 else ""
        checks.append(Check("CUDA libraries", "ok", f"{' and '.join(found.flavours)}{both}"))
    return checks


def explain_missing(found: Installed, system: str = "Linux") -> tuple[str, str] | None:
    """(why ``import cutlass.cute`` cannot work, the command that mends it), or None where it should."""
    dists = found.distributions
    version = dists.get(DSL, "")
    if not found.modules:
        if version:
            libs = {n.removeprefix(LIBS): v for n, v in dists.items() if n.startswith(LIBS)}
            lacking = f"{LIBS}base" if "base" not in libs else f"{LIBS}core"
            return (
                f"{DSL} {version} is installed as metadata alone: the wheel with the package itself, {lacking}, "
                f"is missing",
                _reinstall(version, libs),
            )
        if OLD in dists:
            return (
                f"{OLD} {dists[OLD]} is installed, which is CUTLASS's older Python interface without the CuTe DSL; "
                f"the DSL is the package {DSL}",
                f"pip uninstall {OLD} && {INSTALL}",
            )
        where = "" if system == "Linux" else f" (it has no wheels for {_system(system)})"
        return f"the CuTe DSL ({DSL}) is not installed{where}", INSTALL
    if not found.cutlass and not version:
        return f"the DSL lies in {found.modules}, which is not on Python's path", f"export PYTHONPATH={found.modules}"
    if not found.cutlass:
        return (
            f"{DSL} {version} lies in {found.modules}, but the .pth file that puts it on Python's path is missing "
            f"(an upgrade can delete it)",
            _reinstall(version, {n.removeprefix(LIBS): v for n, v in dists.items() if n.startswith(LIBS)}),
        )
    return None


def explain_import(error: BaseException, found: Installed | None = None) -> str:
    """One sentence on why importing the DSL failed with ``error``, and what to do."""
    found = installed() if found is None else found
    if missing := explain_missing(found, platform.system()):
        text, command = missing
        return f"{text if text.startswith(OLD) else text[0].upper() + text[1:]}: {command}."
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if found.cutlass and not _inside(found):
        other = f" (uninstall {OLD})" if OLD in found.distributions else ""
        return f"import cutlass takes {found.cutlass}, which is not the CuTe DSL{other}, and failed: {said}."
    if "libcuda" in said:
        return f"Importing the CuTe DSL failed for want of the driver's library ({said}): pip install -U {DSL}."
    if "CTK flavor" in said:
        return f"The CuTe DSL lacks its CUDA libraries ({said}): {INSTALL}."
    return f"Importing the CuTe DSL failed ({said}): see texgen doctor."


def _inside(found: Installed) -> bool:
    return "nvidia_cutlass_dsl" in found.cutlass or bool(found.modules and found.cutlass.startswith(found.modules))


def _reinstall(version: str, libs: Mapping[str, str]) -> str:
    """pip has to be told to write wheels again whose metadata is there already."""
    names = sorted({"base", *libs} - {"cu13"}) if _release(version) >= (4, 4) else []
    extra = "[cu13]" if "cu13" in libs else ""
    pinned = " ".join(f"{LIBS}{n}=={version}" for n in names)
    return f"pip install --force-reinstall '{DSL}{extra}=={version}' {pinned}".rstrip()


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(x) for x in re.findall(r"\d+", version)[:2])


def _system(system: str) -> str:
    return "macOS" if system == "Darwin" else system


def _arch(machine: Machine) -> Check:
    value = machine.environ.get("CUTE_DSL_ARCH")
    if value is None:
        return Check("CUTE_DSL_ARCH", "ok", "not set: texgen picks the architecture that each object needs")
    valid = machine.probe.get("archs") or ()
    if value in valid if valid else re.fullmatch(r"sm_\d+[af]?", value):
        return Check("CUTE_DSL_ARCH", "ok", value)
    known = f": it must be one of {', '.join(valid)}" if valid else ": it must look like sm_90a"
    text = f"CUTE_DSL_ARCH is {value!r}{known}" if value else f"CUTE_DSL_ARCH is set and empty{known}"
    return Check("CUTE_DSL_ARCH", "fault", text, "the DSL ends in a bare KeyError", "unset CUTE_DSL_ARCH")


def _probe_checks(machine: Machine) -> list[Check]:
    probe = machine.probe
    if not probe:
        return []
    if error := probe.get("error"):
        return [Check("DSL in a child process", "fault", str(error), "no live DSL objects", INSTALL)]
    checks = []
    for arch, problem in probe.get("built", {}).items():
        if problem:
            cost = f"no live {arch} objects; catalogue names work"
            checks.append(Check(f"MMA for {arch}", "gap", f"cannot be built: {problem}", cost, f"pip install -U {DSL}"))
        else:
            checks.append(Check(f"MMA for {arch}", "ok", "built and read with no GPU"))
    has = [f"cute.viz {'present' if probe.get('viz') else 'absent'}"]
    has.append(f"trace hooks {'present' if probe.get('hooks') else 'absent'}")
    if probe.get("viz") and probe.get("hooks"):
        checks.append(Check("DSL features", "ok", ", ".join(has)))
    else:
        cost = "no print_latex_tv" if probe.get("hooks") else "recording programs wraps constructors instead of hooks"
        checks.append(Check("DSL features", "gap", ", ".join(has), cost, f"pip install -U {DSL}"))
    return checks


def _driver_checks(machine: Machine) -> list[Check]:
    dists = machine.installed.distributions
    name = next((n for n in ("cuda-python", "cuda-bindings") if n in dists), "")
    cuda = _release(dists.get(name, ""))
    checks = []
    if name and cuda >= (13,) and (0,) < _release(dists.get(DSL, "")) < (4, 3):
        checks.append(
            Check(
                name, "fault", f"{name} {dists[name]} with {DSL} {dists[DSL]} crashes when a CUDA context is made",
                "kernels cannot run; figures work", f'pip install "{name}==12.9.*"',
            )
        )  # fmt: skip
    if not machine.driver:
        text = "no NVIDIA driver found: figures need none"
        return [*checks, Check("NVIDIA driver", "gap", text, "kernels cannot be run or measured here")]
    gpus = f" ({', '.join(machine.gpus)})" if machine.gpus else ""
    major = int(re.match(r"\d*", machine.driver)[0] or 0)  # type: ignore[index]
    needs = [f"{name} {dists[name]}"] if name and cuda >= (13,) else []
    needs += ["the DSL's CUDA 13 libraries"] if "cu13" in machine.installed.flavours else []
    if needs and 0 < major < CUDA13_DRIVER:
        verb = "needs" if needs == [needs[0]] and name and needs[0].startswith(name) else "need"
        pin = f'pip install "{name}==12.9.*"' if name else f"pip uninstall {LIBS}cu13"
        text = f"driver {machine.driver}{gpus}; {' and '.join(needs)} {verb} {CUDA13_DRIVER} or newer"
        cost = "kernels fail with cudaErrorInsufficientDriver (35); figures need no driver"
        return [*checks, Check("NVIDIA driver", "fault", text, cost, pin)]
    return [*checks, Check("NVIDIA driver", "ok", f"driver {machine.driver}{gpus}")]


DEBIAN = "apt-get install texlive-latex-base texlive-pictures texlive-latex-recommended texlive-latex-extra"


def _tex_checks(machine: Machine) -> list[Check]:
    engines = {n: v for n in ENGINES if (v := machine.programs.get(n, ""))}
    if not engines:
        checks = [Check("TeX", "gap", "no TeX engine", "PDF is made from the SVG, without TeX's own fonts", DEBIAN)]
    elif not machine.tikz and set(engines) != {"tectonic"}:
        text = f"{next(iter(engines))} is there, but not tikz.sty or standalone.cls"
        checks = [Check("TeX", "fault", text, "TeX fails on every figure", DEBIAN)]
    else:
        checks = [Check("TeX", "ok", "; ".join(f"{n}: {v}" for n, v in engines.items()))]
    if version := machine.programs.get("pdftocairo", ""):
        return [*checks, Check("pdftocairo", "ok", version)]
    cost = "TeX's PDF cannot be turned into PNG or SVG"
    return [*checks, Check("pdftocairo", "gap", "not found", cost, "apt-get install poppler-utils")]


def _vl_convert(machine: Machine) -> Check:
    if machine.vl_convert:
        return Check("vl-convert", "ok", f"vl-convert-python {machine.vl_convert}")
    cost = "no PDF or PNG without TeX"
    return Check("vl-convert", "gap", "not installed", cost, "pip install vl-convert-python")


# Looking


def survey() -> Machine:
    """What ``diagnose`` needs to know about this machine. Never raises; the slow questions run side by side."""
    with ThreadPoolExecutor(max_workers=10) as pool:
        probe = pool.submit(_safely, _ask_child, {})
        driver = pool.submit(_safely, _driver, ("", ()))
        tikz = pool.submit(_safely, _has_tikz, True)
        asked = {n: pool.submit(_safely, partial(_version, n), "") for n in (*ENGINES, "pdftocairo")}
        version, gpus = driver.result()
        return Machine(
            installed=_safely(installed, Installed()), python=sys.version_info[:2], system=platform.system(),
            environ=dict(os.environ), driver=version, gpus=gpus, programs={n: f.result() for n, f in asked.items()},
            tikz=tikz.result(), vl_convert=_safely(_vl_version, ""), probe=probe.result(),
        )  # fmt: skip


def _safely(look: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return look()
    except Exception:
        return otherwise


def installed() -> Installed:
    """Where the DSL lies in this Python, without importing any of it."""
    dists: dict[str, str] = {}
    for dist in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(dist.metadata["Name"] or "")).lower()
        if name.startswith(OLD) or name in ("cuda-python", "cuda-bindings"):
            dists.setdefault(name, dist.version)
    folder, modules = "", ""
    for entry in sys.path:
        place = Path(entry or ".") / "nvidia_cutlass_dsl"
        if place.is_dir():
            folder = folder or str(place)
            for inner in ("dsl_packages", "python_packages"):
                if (place / inner / "cutlass").is_dir():
                    modules = modules or str(place / inner)
    cutlass = ""
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        spec = importlib.machinery.PathFinder.find_spec("cutlass")
        if spec is not None:
            cutlass = spec.origin or str(next(iter(spec.submodule_search_locations or ()), ""))
    if cutlass and not modules and (Path(cutlass).parent / "cute").is_dir():
        modules = str(Path(cutlass).parent.parent)  # unpacked by hand, on PYTHONPATH
    flavours = tuple(c for c in ("cu12", "cu13") if f"{LIBS}{c}" in dists or (folder and (Path(folder) / c).is_dir()))
    return Installed(dists, folder, modules, cutlass, flavours)


def _ask_child() -> Mapping[str, Any]:
    from texgen.sources import child

    if not installed().modules:
        return {}
    try:
        return child.request("probe", "the DSL", timeout=PROBE_TIMEOUT)
    except TexgenError as e:
        return {"error": e.message}


def _run(command: list[str], timeout: float = 5.0) -> str:
    """Standard output of a command, empty where it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _version(program: str) -> str:
    """The first line of what a program says of itself, empty where there is none."""
    path = shutil.which(program)
    if path is None:
        return ""
    flag = "-v" if program == "pdftocairo" else "--version"
    return next((x.strip() for x in _run([path, flag]).splitlines() if x.strip()), path)


def _has_tikz() -> bool:
    finder = shutil.which("kpsewhich")
    return finder is None or all(_run([finder, name]).strip() for name in ("tikz.sty", "standalone.cls"))


# In a process of its own: the driver's library has crashed on a mismatch.
CUDA_PROBE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
assert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
print(version.value)
"""


def _driver() -> tuple[str, tuple[str, ...]]:
    """(the driver's version, names of GPUs), empty where there is none."""
    if smi := shutil.which("nvidia-smi"):
        rows = [
            [x.strip() for x in line.split(",", 1)]
            for line in _run([smi, "--query-gpu=driver_version,name", "--format=csv,noheader"]).splitlines()
        ]
        good = [row for row in rows if len(row) == 2 and re.match(r"\d", row[0])]
        if good:
            return good[0][0], tuple(row[1] for row in good)
    said = _run([sys.executable, "-c", CUDA_PROBE]).strip()
    if not said.isdigit() or said == "0":
        return "", ()
    # The library tells the newest CUDA that it can run. CUDA 13 came with driver 580, 12.x with 525 to 575.
    cuda = int(said) // 1000
    return ("580 or newer" if cuda >= 13 else "525 or newer, below 580"), ()


def _vl_version() -> str:
    return importlib.metadata.version("vl-convert-python") if importlib.util.find_spec("vl_convert") else ""
