"""The one place that runs a TeX engine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from texgen.errors import TexgenError, UsageError

ENGINES = ("pdflatex", "lualatex", "xelatex", "tectonic")
TIME_LIMIT = 120.0
"""Seconds for one run of an engine."""

LOST = re.compile(r"^(?:Missing character: .*|LaTeX Font Warning: Font shape .*|Overfull .*)$", re.MULTILINE)
"""What a log says of a run that made a PDF and yet lost something."""

BIG = 20_000_000
INSTALL = "apt-get install texlive-latex-extra texlive-pictures"


class TexFailure(TexgenError):
    """A run of TeX that made no PDF; ``capacity`` says that TeX's memory ran out."""

    def __init__(self, message: str, detail: str = "", capacity: bool = False) -> None:
        super().__init__(message, detail)
        self.capacity = capacity


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

    Shell escape is off, files outside the folder are not written, and the engine's whole process group ends at the time
    limit. ``inputs`` are folders that ``\\input`` and ``\\includegraphics`` may read. ``warnings`` takes the lines of the
    log that tell of something lost: a character or a font that is missing, text that runs over. Raises TexFailure with
    the first error of the log and the source line.
    """
    with tempfile.TemporaryDirectory(prefix="texgen-") as folder:
        path = Path(folder)
        (path / "figure.tex").write_text(source, encoding="utf-8")
        if engine == "tectonic":
            command = ["tectonic", "--untrusted", "--keep-logs", "figure.tex"]
        else:
            command = [
                engine,
                "-no-shell-escape",
                "-interaction=nonstopmode",
                "-halt-on-error",
                "-file-line-error",
                "figure.tex",
            ]
        output, timed_out = _run(command, path, _environment(inputs), time_limit)
        pdf = path / "figure.pdf"
        log = path / "figure.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else output
        if timed_out:
            raise TexFailure(
                f"{engine} did not finish within {time_limit:g} s and was ended.", _first_error(text, source)[1]
            )
        if not pdf.exists() or not pdf.stat().st_size or re.search(r"^(?:!|[^\s:]+:\d+:) ", text, re.MULTILINE):
            message, detail = _first_error(text, source)
            raise TexFailure(f"{engine} failed: {message}", detail, capacity="capacity exceeded" in text)
        if warnings is not None:
            warnings += dict.fromkeys(LOST.findall(text))
        return pdf.read_bytes()


def _run(command: list[str], folder: Path, environment: dict[str, str], time_limit: float) -> tuple[str, bool]:
    """(what the program printed, whether it was ended at its time limit)."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=time_limit)
        return output.decode("utf-8", "replace"), False
    except subprocess.TimeoutExpired:
        end_group(process)
        output, _ = process.communicate()
        return output.decode("utf-8", "replace"), True
    except BaseException:
        end_group(process)
        process.wait()
        raise


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program that we started, with its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError, AttributeError):
        process.kill()


def _environment(inputs: Sequence[Path]) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TEXMF", "TEXINPUTS", "max_print"))}
    folders = "".join(f"{p}{os.pathsep}" for p in inputs)
    # 'p'(aranoid): nothing outside the folder is written, no absolute path is read; extra memory is for large pictures.
    confined = {
        "openout_any": "p",
        "shell_escape": "f",
        "max_print_line": "1000",
        "error_line": "254",
        "half_error_line": "238",
    }
    if not inputs:
        confined["openin_any"] = "p"
    return keep | confined | {
        "TEXINPUTS": f".{os.pathsep}{folders}", "extra_mem_top": str(BIG), "extra_mem_bot": str(BIG),
    }  # fmt: skip


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
