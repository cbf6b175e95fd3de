"""The site built once for all tests of a run, and the console blocks of its pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PATIENCE = 900.0


def sphinx(builder: str, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run sphinx-build as ``make site`` does."""
    command = [
        sys.executable, "-m", "sphinx", "-W", "-n", "--keep-going", "-b", builder, "-d", str(out.with_name(out.name + "-doctrees")),
        *options, str(DOCS), str(out),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


@contextmanager
def only_one(folder: Path):  # type: ignore[no-untyped-def]
    """One of pytest-xdist's workers at a time."""
    lock = folder / "lock"
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            assert time.monotonic() < deadline, f"{lock} is held for too long"
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.unlink()


def built(folder: Path, builder: str, name: str, *options: str) -> tuple[Path, str]:
    """(output, what the build said); built by whoever comes first."""
    folder.mkdir(exist_ok=True)
    out, log = folder / name, folder / f"{name}.log"
    with only_one(folder):
        if not log.is_file():
            done = sphinx(builder, out, *options)
            log.write_text(f"{done.returncode}\n{done.stdout}\n{done.stderr}")
    text = log.read_text()
    assert text.startswith("0\n"), text[-4000:]
    return out, text


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where this run builds, the same for all workers."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "site"


@pytest.fixture(scope="session")
def built_site(site_folder: Path) -> Path:
    return built(site_folder, "html", "html", "-j", "2")[0]


@dataclass(frozen=True)
class Block:
    """A code block of a page: its language, its caption (a file's name) or class (a program that it needs), its lines."""

    language: str
    caption: str
    needs: str
    lines: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page in reStructuredText or MyST, in order."""
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^(?:\.\. code-block:: (\w+)\n((?:   [^\n]*\n|\n)*)|```\{code-block\} (\w+)\n(.*?)^```$)", re.M | re.S)
    found = []
    for match in fence.finditer(text):
        language = match[1] or match[3]
        body = [line.removeprefix("   ") if match[1] else line for line in (match[2] or match[4]).splitlines()]
        options = dict(re.findall(r"^:(\w+): ?(.*)$", "\n".join(body), re.M))
        lines = [line for line in body if not re.match(r":(caption|class|emphasize-lines):", line)]
        while lines and not lines[0].strip():
            lines.pop(0)
        while lines and not lines[-1].strip():
            lines.pop()
        found.append(Block(language, options.get("caption", ""), options.get("class", ""), tuple(lines)))
    return found
