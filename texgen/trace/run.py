"""Tracing a program: it RUNS, in a process of its own, and what it builds is written down while it does."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from texgen.errors import TexgenError, UsageError
from texgen.trace import journal, standins
from texgen.trace.records import Recording

ROOT = str(Path(__file__).resolve().parents[2])
START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append({root!r}); "
    "from texgen.trace.child import main; main()"
)
DEFAULT_ARCH = "sm_80"
POLL = 0.1
HINTS = (
    ("sm_120a", re.compile(r"(?i)^(sm_?12[01]\w*|blackwell_geforce\w*|\w*MXF4\w*NVF4\w*|MmaMX\w+)$")),
    ("sm_100a", re.compile(r"(?i)^(tcgen05|blackwell_helpers|sm_?100\w*|\w*sm100\w*|\w*tcgen05\w*|\w*umma\w*)$")),
    ("sm_90a", re.compile(r"(?i)^(warpgroup|hopper_helpers|sm_?90\w*|\w*sm90\w*|wgmma\w*|\w*hopper\w*|CopyBulk\w+|PipelineTma\w+|make_tiled_tma_atom)$")),
)  # fmt: skip


@dataclass
class Trace:
    """What a program did under ``texgen trace``."""

    program: str
    arguments: list[str]
    recording: Recording
    ended: str
    """``launch``, ``end`` or ``error``."""
    status: int
    """The program's own exit status."""
    error: str = ""
    place: tuple[str, int] = ("", 0)
    """File and line that the error comes from."""
    replaced: list[str] = field(default_factory=list)
    arch: str = ""
    seconds: float = 0.0
    launches: int = 0
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """``trace.json``."""
        return {
            "schema": 1, "program": self.program, "replaced": self.replaced, "ended": self.ended,
            "objects": self.recording.to_list(),
        }  # fmt: skip


def trace(
    target: str, arguments: list[str] | None = None, *, arch: str | None = None, launches: int | None = None,
    timeout: float | None = None, watch: Callable[[Recording], None] | None = None, folder: Path | None = None,
    output: IO[bytes] | None = None,
) -> Trace:  # fmt: skip
    """Run ``target`` (``program.py``, ``module:callable`` or ``file.py:callable``) and record what it builds.

    The program runs in ``folder`` (None: this process's) with this process's standard streams, or with nothing to read
    and its output in the file ``output``. With no CUDA device it compiles but does not launch, and
    ends at the launch ``launches`` (1; 0 goes on to its end). ``arch`` is chosen from the program when None. ``watch``
    is called with what there is so far while the program runs, so that figures can be drawn meanwhile. Raises
    TexgenError for a target that is not there and where the DSL is missing; whatever the program does is in the result.
    """
    arguments = list(arguments or [])
    if launches is not None and launches < 0:
        raise UsageError(f"--launches {launches} must be 0 (to the program's end) or more.")
    file = _check(target)
    _need_dsl()
    device = standins.device_count() > 0
    if arch is not None:
        chosen, automatic = _spelt(arch, "--arch"), False
    elif given := os.environ.get("CUTE_DSL_ARCH"):
        chosen, automatic = given, False
    elif device:
        chosen, automatic = "", False
    else:
        chosen, automatic = guess_arch(file) if file else DEFAULT_ARCH, True
    tried = [chosen]
    notes: list[str] = []
    while True:
        made, wanted = _once(target, arguments, chosen, automatic, launches, device, timeout, watch, folder, output)
        following = next((a for a in wanted if a not in tried), "") if automatic else ""
        if not following:
            break
        notes.append(f"An operation refused {chosen}, so the program ran again for {following}.")
        chosen = following
        tried.append(chosen)
        if len(tried) > 3:
            automatic = False
    made.notes = notes + made.notes
    return made


def _check(target: str) -> str:
    """The file that a target names, empty for a module. Raises TexgenError where there is none."""
    place, colon, name = target.rpartition(":")
    if os.path.isfile(target):
        return target
    if not colon or not name.replace(".", "").isidentifier():
        if os.path.isdir(target):
            raise TexgenError(f"{target} is a folder: give one of its programs, {target}/program.py.")
        raise TexgenError(f"There is no file {target} (in {os.getcwd()}): give program.py, module:callable or file.py:callable.")
    if place.endswith(".py"):
        if not os.path.isfile(place):
            raise TexgenError(f"There is no file {place} (in {os.getcwd()}).")
        return place
    return ""


def _need_dsl() -> None:
    import importlib.util

    if importlib.util.find_spec("cutlass") is None or importlib.util.find_spec("cutlass.cute") is None:
        from texgen.doctor import explain_import

        raise TexgenError(explain_import(ModuleNotFoundError("No module named 'cutlass'", name="cutlass")))


def _spelt(arch: str, origin: str) -> str:
    spelt = re.sub(r"^(sm_?)?", "sm_", arch.strip().lower())
    if not re.fullmatch(r"sm_\d{2,3}[af]?", spelt):
        raise UsageError(f"{origin} {arch!r} is no architecture: write sm_80, sm_90a or sm_100a.")
    return spelt


def guess_arch(file: str) -> str:
    """The architecture that the names in a program and in what it imports from its folder speak of; otherwise sm_80."""
    words: Counter[str] = Counter()
    todo, seen = [Path(file)], {Path(file)}
    while todo:
        path = todo.pop()
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Name):
                names = [node.id]
            elif isinstance(node, ast.Attribute):
                names = [node.attr]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [part for a in node.names for part in (*a.name.split("."), a.asname or "")]
                names += (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
                beside = [f for n in names if n and (f := path.parent / f"{n}.py").is_file() and f not in seen]
                todo += beside
                seen.update(beside)
            for name in names:
                words.update(itertools.islice((arch for arch, pattern in HINTS if pattern.match(name)), 1))
    return words.most_common(1)[0][0] if words else DEFAULT_ARCH


def _once(
    target: str, arguments: list[str], arch: str, chosen: bool, launches: int | None, device: bool,
    timeout: float | None, watch: Callable[[Recording], None] | None, where: Path | None, output: IO[bytes] | None,
) -> tuple[Trace, list[str]]:
    with tempfile.TemporaryDirectory(prefix="texgen-trace-") as folder:
        lines, crash = Path(folder) / "journal", Path(folder) / "crash"
        config = {
            "target": target, "args": arguments, "arch": arch, "chosen": chosen, "device": device,
            "launches": launches if launches is not None else 0 if device else 1, "journal": str(lines), "crash": str(crash),
        }  # fmt: skip
        environment = {**os.environ, "TEXGEN_TRACE": json.dumps(config), "PYTHONUNBUFFERED": "1"}
        if arch:
            environment["CUTE_DSL_ARCH"] = arch
        streams: dict[str, Any] = {} if output is None else {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-c", START.format(root=ROOT)], env=environment, cwd=where, **streams)
        code, late = _wait(process, timeout, lines, watch)
        seconds = time.monotonic() - began
        recording, others = journal.read(lines)
        words = crash.read_text(errors="replace") if crash.exists() else ""
    replaced = list(dict.fromkeys(line["name"] for line in others if line["op"] == "replaced"))
    last = next((line for line in reversed(others) if line["op"] == "ended"), None)
    made = Trace(target, arguments, recording, "end", code, replaced=replaced, arch=arch, seconds=seconds)
    made.arch = arch or next((launch.arch for launch in recording.launches), "")
    if late:
        made.ended, made.error, made.status = "error", f"It took more than {timeout:g} s and was stopped.", 124
    elif last is not None and last["how"] == "missing":
        raise TexgenError(last["error"])
    elif last is not None:
        made.ended, made.error, made.launches = last["how"], last["error"], last["seen"]
        made.place = (str(last["place"][0]), int(last["place"][1])) if last.get("place") else ("", 0)
        if made.error.startswith("AssertionError") and made.launches and not device:
            made.notes.append("The error came after a launch that was not run: a check of results that were never computed fails.")
        made.notes += [f"texgen's recorder: {fault}" for fault in dict.fromkeys(last["faults"])]
        return made, list(last["wanted"])
    elif code < 0:
        made.ended, made.error, made.status = "error", f"The process ended with {_signal(code)}{_where(words)}.", 128 - code
        made.place = _crashed_at(words)
    elif any(line["op"] == "reached" for line in others):
        made.ended = "launch"
    elif code:
        made.error = f"The process ended by itself with exit status {code}."
    return made, []


def _wait(
    process: subprocess.Popen[bytes], timeout: float | None, lines: Path, watch: Callable[[Recording], None] | None
) -> tuple[int, bool]:
    """(exit code, whether it was stopped for its time). Ctrl-C is the program's; a second one ends it."""
    interrupts, read = 0, 0
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            try:
                return process.wait(POLL if end is None else max(0.0, min(POLL, end - time.monotonic()))), False
            except subprocess.TimeoutExpired:
                if end is not None and time.monotonic() >= end:
                    process.kill()
                    return process.wait(), True
            size = lines.stat().st_size if lines.exists() else 0
            if watch is not None and size != read:
                read = size
                watch(journal.read(lines)[0])
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                process.kill()


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _where(words: str) -> str:
    """`` at line 12 of program.py`` from what Python's fault handler wrote."""
    file, line = _crashed_at(words)
    return f" at line {line} of {file}" if file else ""


def _crashed_at(words: str) -> tuple[str, int]:
    """The innermost frame outside the DSL, of what Python's fault handler wrote."""
    for file, line in re.findall(r'File "(.*)", line (\d+) in', words):
        if "nvidia_cutlass_dsl" not in file and not file.startswith((ROOT + "/texgen/", "<")):
            return file, int(line)
    return "", 0
