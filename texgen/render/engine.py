"""The one place that runs a TeX engine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from texgen.errors import TexgenError, UsageError
from texgen.render import confine

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ENGINES = ("pdflatex", "lualatex", "xelatex", "tectonic")
TIME_LIMIT = 120.0
"""Seconds for one run of an engine."""

LOST = re.compile(r"^(?:Missing character: .*|LaTeX Font Warning: Font shape .*|Overfull .*)$", re.MULTILINE)
"""What a log says of a run that made a PDF and yet lost something."""

BIG = 20_000_000
LARGEST_FILE = 256 << 20
"""Bytes of a file that an engine may write."""
LONGEST_LOG = 4 << 20
PRINTED = "printed.txt"
OPTIONS = {"lualatex": ["-nosocket"], "xelatex": ["-output-comment=texgen"]}
"""What an engine of this name takes besides; xelatex would write the minute of its run into the PDF."""
EPOCH = "1767225600"
"""The date that PDFs bear, seconds since 1970, unless SOURCE_DATE_EPOCH gives another."""
KEPT = (
    "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
)  # fmt: skip
"""Variables of the environment that an engine gets."""
SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/opt", "/nix/store", "/gnu/store", "/var/lib/texmf", "/var/lib/texlive", "/var/cache/fontconfig",
    "/etc/texmf", "/etc/texlive", "/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/ld.so.preload", "/etc/localtime", "/etc/locale.alias", "/dev/null", "/dev/urandom", "/dev/zero",
)  # fmt: skip
"""What an engine may read besides its own trees, where the kernel can hold it to that; TEXGEN_TEX_FOLDERS has more."""
CPU_SPENT, FILE_TOO_LARGE = getattr(signal, "SIGXCPU", 0), getattr(signal, "SIGXFSZ", 0)
INSTALL = "apt-get install texlive-latex-extra texlive-pictures"


class TexFailure(TexgenError):
    """A run of TeX that made no PDF; ``capacity`` says that TeX's memory ran out, ``too_long`` that a length passed its 5.7 m."""

    def __init__(self, message: str, detail: str = "", capacity: bool = False, too_long: bool = False) -> None:
        super().__init__(message, detail)
        self.capacity = capacity
        self.too_long = too_long


def available() -> list[str]:
    """The engines on the PATH, in the order in which they are tried."""
    return [name for name in ENGINES if shutil.which(name)]


def choose(engine: str | None) -> str | None:
    """The engine to use, None where there is none. Raises UsageError/TexgenError for one that is asked for and missing."""
    if engine is None:
        return next(iter(available()), None)
    if engine not in ENGINES:
        raise UsageError(f"--engine {engine!r} must be one of {', '.join(ENGINES)}.")
    if not shutil.which(engine):
        raise TexgenError(
            f"{engine} is not on the PATH: install it (on Debian and Ubuntu: {INSTALL}) or leave --engine out."
        )
    return engine


def compile_pdf(
    source: str,
    engine: str,
    inputs: Sequence[Path] = (),
    time_limit: float = TIME_LIMIT,
    warnings: list[str] | None = None,
) -> bytes:
    """Compile a LaTeX document in a folder of its own and give the PDF.

    Shell escape is off; nothing outside of the folder is written, nothing but the TeX system and ``inputs`` (folders for
    ``\\input`` and ``\\includegraphics``) is read, which Linux itself
    sees to (see ``confine``) and elsewhere TeX's own settings; the user's own texmf tree and settings have no part in it; the engine's
    whole process group ends at the time limit and no file may outgrow LARGEST_FILE. ``warnings`` takes the lines of the
    log that tell of something lost: a character or a font that is missing, text that runs over. Raises TexFailure with
    the first error of the log and the source line.
    """
    with tempfile.TemporaryDirectory(prefix="texgen-") as folder:
        path = Path(folder)
        (path / "figure.tex").write_text(source, encoding="utf-8")
        if engine == "tectonic":
            command = ["tectonic", "--untrusted", "--keep-logs", "figure.tex"]
        else:
            program = shutil.which(engine) or engine
            options = ["-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "-file-line-error", "figure.tex"]
            options[:0] = OPTIONS.get(engine, [])
            writes = [folder, "/dev/null", _font_cache(folder)]
            command = confine.command(program, options, [*_system(program), *map(str, inputs)], writes)
        status = _run(command, path, _environment(engine, path, inputs), time_limit)
        pdf = path / "figure.pdf"
        log = path / "figure.log"
        text = _head(log if log.exists() else path / PRINTED)
        if status is None or (status < 0 and -status == CPU_SPENT):
            raise TexFailure(
                f"{engine} did not finish within {time_limit:g} s and was ended.", _first_error(text, source)[1]
            )
        if status < 0:
            raise TexFailure(_ended_by(engine, -status), _first_error(text, source)[1])
        if not pdf.exists() or not pdf.stat().st_size or re.search(r"^(?:!|[^\s:]+:\d+:) ", text, re.MULTILINE):
            message, detail = _first_error(text, source)
            raise TexFailure(f"{engine} failed: {message}", detail, "capacity exceeded" in text, "Dimension too large" in text)
        if warnings is not None:
            warnings += dict.fromkeys(LOST.findall(text))
        return pdf.read_bytes()


_running: dict[subprocess.Popen[bytes], Path] = {}
"""Engines that run now, with their folders."""


def _run(command: list[str], folder: Path, environment: dict[str, str], time_limit: float) -> int | None:
    """The program's exit status, None where it was ended at its time limit. What it prints goes into a file beside it,
    whose size is limited as that of every file it writes."""
    with open(folder / PRINTED, "wb") as printed:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    _running[process] = folder
    try:
        _limit(process, time_limit)
        return process.wait(time_limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_group(process)  # also what it left running
        process.wait()
        _running.pop(process, None)


def _limit(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Limits that hold even when we are killed: processor time, the size of a file, no core dump."""
    if not hasattr(resource, "prlimit"):  # Linux has it
        return
    for kind, most in (
        (resource.RLIMIT_CPU, int(seconds) + 5), (resource.RLIMIT_FSIZE, LARGEST_FILE), (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        with suppress(OSError, ValueError):  # it has ended, or our own limit is lower
            resource.prlimit(process.pid, kind, (most, most))


def _ended_by(engine: str, number: int) -> str:
    if number == FILE_TOO_LARGE:
        return f"{engine} wrote more than {LARGEST_FILE >> 20} MB and was ended."
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    also = ", often the system's answer when memory runs out" if name == "SIGKILL" else ""
    return f"{engine} was ended from outside ({name}{also}): nothing is written, try again."


def _head(path: Path) -> str:
    """The beginning of what an engine wrote, as much as anyone reads."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(LONGEST_LOG)
    except OSError:
        return ""


def end_all() -> None:
    """End every engine that this process has started, for a process that is about to end itself."""
    for process, folder in list(_running.items()):
        end_group(process)
        shutil.rmtree(folder, ignore_errors=True)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program that we started, with its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError, AttributeError):
        process.kill()


def _environment(engine: str, folder: Path, inputs: Sequence[Path]) -> dict[str, str]:
    """The engine's environment: what is listed here and nothing else, so that no setting or file of the user acts on TeX."""
    kept = {k: v for k, v in os.environ.items() if k.upper() in KEPT or k.startswith("LC_")}
    if engine == "tectonic":  # has its own cache of packages, and reads none of what follows
        return kept | {k: v for k, v in os.environ.items() if k == "HOME" or k.startswith(("XDG_", "TECTONIC_"))}
    nowhere = str(folder / "none")
    # 'p'(aranoid): nothing outside of the folder is written, no absolute path and no dot file is read.
    fonts = _font_cache(nowhere)
    confined = {
        "HOME": nowhere, "TEXMFHOME": nowhere, "TEXMFCONFIG": nowhere, "TEXMFVAR": fonts, "TEXMFCACHE": fonts,
        "VARTEXFONTS": os.path.join(fonts, "fonts"), "TMPDIR": str(folder),
        "openin_any": "p", "openout_any": "p", "shell_escape": "f", "TEXMFOUTPUT": str(folder),
    }  # fmt: skip
    layout = {"max_print_line": "1000", "error_line": "254", "half_error_line": "238"}
    memory = {"extra_mem_top": str(BIG), "extra_mem_bot": str(BIG)}
    folders = "".join(f"{p}{os.pathsep}" for p in inputs)
    # The date in a PDF is not that of the run: the same figure gives the same bytes.
    return {"SOURCE_DATE_EPOCH": EPOCH} | kept | confined | layout | memory | {"TEXINPUTS": f".{os.pathsep}{folders}"}


def _system(program: str) -> list[str]:
    """What a TeX engine reads: the system's programs and its own trees, also those of an installation elsewhere."""
    found = [*SYSTEM, *filter(None, os.environ.get("TEXGEN_TEX_FOLDERS", "").split(os.pathsep))]
    for path in {Path(os.path.abspath(program)), Path(os.path.realpath(program))}:
        found.append(str(path.parent))
        for prefix in path.parents[1:3]:  # bin/pdflatex, bin/x86_64-linux/pdflatex
            if (prefix / "share" / "texmf-dist").is_dir() or (prefix / "texmf-dist").is_dir():
                found += [str(prefix), str(prefix.parent / "texmf-local")]
    return sorted(set(found))


def _font_cache(otherwise: str) -> str:
    """A folder of ours for what engines make of fonts: lualatex's tables, pdflatex's bitmaps of those without an outline."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base) / "texgen" / "texmf-var"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return otherwise
    return str(folder)


def _first_error(log: str, source: str) -> tuple[str, str]:
    """(one sentence, the source line that it speaks of) from a TeX log."""
    match = re.search(r"^(?:!|[^\s:]+:(\d+):)\s+(.+)$", log, re.MULTILINE)
    if not match:
        last = [line for line in log.splitlines() if line.strip()][-3:]
        return "it left no PDF", "\n".join("  " + line for line in last)
    line = re.search(r"^l\.(\d+)", log[match.start() :], re.MULTILINE)
    number = int(match.group(1) or (line.group(1) if line else 0))
    lines = source.splitlines()
    detail = f"  line {number}: {lines[number - 1].strip()[:160]}" if 0 < number <= len(lines) else ""
    return match.group(2).strip().rstrip(".") + ".", detail
