"""Never half a file, tried: a full disk, a killed engine, a killed batch, Ctrl-C in a site, two builds into one cache."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

import texgen
from texgen.render.files import write

TEXGEN = [sys.executable, "-m", "texgen"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


def start(command: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A program in a process group of its own, which a test can send Ctrl-C."""
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def list_of(folder: Path, count: int) -> None:
    entries = (f'[[figure]]\ntarget = "(8,{4 + i}):({4 + i},1)"\noutput = "f/{i}.svg"\n' for i in range(count))
    (folder / "list.toml").write_text("".join(entries))


def assert_whole(folder: Path) -> int:
    """Every file below the folder is one that can be used; how many there are."""
    count = 0
    for path in (p for p in folder.rglob("*") if p.is_file()):
        assert not path.name.startswith("."), f"{path} was left over"
        if path.suffix == ".svg":
            ElementTree.parse(path)
        elif path.suffix in (".entry", ".spec", ".pickle"):
            pickle.loads(path.read_bytes())
        elif path.suffix == ".json":
            assert path.read_text().rstrip().endswith("}")
        elif path.suffix == ".tikz":
            assert path.read_text().rstrip().endswith("\\endgroup")
        count += 1
    return count


BATCH = [*TEXGEN, "render", "--batch", "list.toml", "-j", "2", "--out", "out"]


def test_a_full_disk(tmp_path):
    """A file system of 200 KB that fills up, first under a single figure, then under a batch; then it gets larger."""
    script = tmp_path / "run.sh"
    texgen_ = f"{sys.executable} -m texgen render"
    script.write_text(
        "mount -t tmpfs -o size=200k none disk || exit 77\n"
        "head -c 190000 /dev/zero > disk/filler\n"
        f"{texgen_} SM80_16x8x16_F32F16F16F32_TN -o disk/one.svg; echo single $?\n"
        "cp -a disk one; rm disk/filler\n"
        f"{texgen_} --batch list.toml -j 2 --out disk; echo batch $?\n"
        "cp -a disk full; mount -o remount,size=20m disk\n"
        f"{texgen_} --batch list.toml -j 2 --out disk; echo again $?\n"
        "cp -a disk after\n"
    )
    (tmp_path / "disk").mkdir()
    list_of(tmp_path, 40)
    made = subprocess.run(["unshare", "-rm", "sh", "run.sh"], cwd=tmp_path, capture_output=True, text=True, check=False) if shutil.which("unshare") else None  # fmt: skip
    if made is None or made.returncode == 77 or "single" not in made.stdout:
        pytest.skip("no small file system can be mounted here (unshare -rm, mount -t tmpfs)")
    assert "single 1\n" in made.stdout and "batch 1\n" in made.stdout and "again 0\n" in made.stdout
    assert made.stderr.count("No space left on device") == 2 and "Traceback" not in made.stderr
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["filler"]
    full = [p for p in (tmp_path / "full").rglob("*.svg")]
    assert 0 < len(full) < 40
    for path in full:
        ElementTree.parse(path)
    assert assert_whole(tmp_path / "after" / "f") == 40
    assert "40 figures: 40 drawn" not in made.stdout and " as they were\n" in made.stdout


def test_a_killed_batch_goes_on_where_it_was(tmp_path):
    list_of(tmp_path, 64)
    process = start(BATCH, tmp_path)
    wait_for(lambda: len(list((tmp_path / "out").glob("f/*.svg"))) >= 10 or process.poll() is not None)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not any(_alive(int(pid)) for pid in children), 60)  # the workers end with it
    before = {p.name: p.read_bytes() for p in (tmp_path / "out/f").glob("*.svg")}
    assert 10 <= len(before) < 64
    for path in (tmp_path / "out/f").glob("*.svg"):
        ElementTree.parse(path)
    again = subprocess.run(BATCH, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0
    skipped = int(again.stdout.split(" drawn, ")[1].split()[0])
    assert len(before) - 1 <= skipped <= len(before)  # at most the one whose stamp was not written yet
    assert all((tmp_path / "out/f" / n).read_bytes() == data for n, data in before.items())


@pytest.mark.parametrize("call", ["open", "fdopen", "replace"])
def test_ctrl_c_as_a_call_of_the_system_comes_back_leaves_nothing(call, tmp_path, monkeypatch):
    done = getattr(os, call)

    def interrupted(*arguments, **named):
        done(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "figure.svg", "whole")
    assert [p.name for p in tmp_path.iterdir()] == ["figure.svg"] * (call == "replace")


def test_ctrl_c_in_a_batch(tmp_path):
    list_of(tmp_path, 64)
    process = start(BATCH, tmp_path)
    wait_for(lambda: len(list((tmp_path / "out").glob("f/*.svg"))) >= 10 or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors, errors
    assert "texgen: stopped with" in errors and "Run the same command to draw the other" in errors
    done = int(errors.split("stopped with ")[1].split()[0])
    assert_whole(tmp_path / "out" / "f")
    again = subprocess.run(BATCH, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.stdout == f"64 figures: {64 - done} drawn, {done} as they were\n"


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


SLOW = """#!/bin/sh
case "$1" in --version) echo slow; exit 0;; esac
sleep {0} &
wait
"""


@pytest.fixture
def slow_engine(tmp_path, monkeypatch) -> str:
    """A ``pdflatex`` on the PATH that starts a child and never ends; gives the child's argument, by which it is known."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "pdflatex"
    seconds = f"300.{os.getpid()}{time.monotonic_ns()}"
    script.write_text(SLOW.format(seconds))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return seconds


def running(argument: str) -> tuple[int, int] | None:
    """(the parent's number, its own) of the process that sleeps so long."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", argument.encode()]:
                return int((path / "stat").read_text().rpartition(")")[2].split()[1]), int(path.name)
        except OSError:
            continue
    return None


@pytest.mark.parametrize("how", ["engine", "us", "ctrl-c", "limit"])
def test_an_engine_that_is_killed_leaves_nothing(how, slow_engine, tmp_path):
    """The engine killed from outside, texgen ended, Ctrl-C, the time limit: no output, no child goes on."""
    folder = tmp_path / "out"
    command = [*TEXGEN, "render", "(4,4):(4,1)", "-o", "out/a.pdf"]
    if how == "limit":
        command = [sys.executable, "-c", "from texgen.render import engine\ntry: engine.compile_pdf('x', 'pdflatex', time_limit=4)\nexcept engine.TexFailure as e: print(e)"]
    process = start(command, tmp_path)
    wait_for(lambda: running(slow_engine) is not None or process.poll() is not None)
    engine, child = running(slow_engine) or pytest.fail(str(process.communicate()))
    if how == "engine":
        os.kill(engine, signal.SIGKILL)
    elif how == "us":
        os.kill(process.pid, signal.SIGTERM)
    elif how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    wait_for(lambda: not _alive(engine) and not _alive(child), 20)
    assert not (folder / "a.pdf").exists() and "Traceback" not in errors
    if how == "engine":
        assert process.returncode == 1 and "pdflatex was ended from outside (SIGKILL" in errors
    elif how == "limit":
        assert "did not finish within 4 s" in said
    else:
        assert process.returncode == (143 if how == "us" else 130)


def site(folder: Path, figures: int) -> Path:
    """A Sphinx project of so many pages, two figures each."""
    pytest.importorskip("sphinx")
    folder.mkdir()
    (folder / "conf.py").write_text('project = "site"\nextensions = ["texgen.sphinxext"]\ntexgen_links = ["svg", "tikz", "json"]\n')
    names = [f"p{i}" for i in range(figures)]
    (folder / "index.rst").write_text("Site\n====\n\n.. toctree::\n\n" + "".join(f"   {n}\n" for n in names))
    for i, name in enumerate(names):
        (folder / f"{name}.rst").write_text(
            f"{name}\n====\n\n.. texgen:layout:: (16,{16 + i}):({16 + i},1)\n\n.. texgen:mma:: SM80_16x8x16_F32F16F16F32_TN\n   :highlight: T{i}\n"
        )
    return folder


def built(folder: Path, out: str, cache: str) -> list[str]:
    return [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", cache, str(folder), out]


def pictures(out: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((out / "_texgen").iterdir())}


def test_ctrl_c_in_the_middle_of_a_site_leaves_no_broken_entry(tmp_path):
    folder = site(tmp_path / "site", 12)
    subprocess.run(built(folder, "clean", "cache0"), cwd=tmp_path, check=True)
    process = start(built(folder, "out", "cache"), tmp_path)
    wait_for(lambda: len(list((tmp_path / "cache").glob("texgen/*.svg"))) >= 5 or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0 and 5 <= len(list((tmp_path / "cache/texgen").glob("*.svg"))) < 24
    assert_whole(tmp_path / "cache" / "texgen")
    again = subprocess.run(built(folder, "out", "cache"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and not again.stderr
    assert pictures(tmp_path / "out") == pictures(tmp_path / "clean")


def test_two_builds_at_once_into_one_cache_give_whole_files(tmp_path):
    folder = site(tmp_path / "site", 8)
    both = [start(built(folder, out, "cache"), tmp_path) for out in ("one", "two")]
    said = [p.communicate(timeout=240)[1] for p in both]
    assert [p.returncode for p in both] == [0, 0], said
    assert assert_whole(tmp_path / "cache" / "texgen") >= 16 * 4
    assert pictures(tmp_path / "one") == pictures(tmp_path / "two") and len(pictures(tmp_path / "one")) == 16 * 3


def test_two_batches_at_once_into_one_folder_give_whole_files(tmp_path):
    list_of(tmp_path, 24)
    both = [start(BATCH, tmp_path) for _ in range(2)]
    said = [p.communicate(timeout=240)[1] for p in both]
    assert [p.returncode for p in both] == [0, 0], said
    assert assert_whole(tmp_path / "out" / "f") == 24
    drawing = texgen.figure("(8,4):(4,1)")
    assert (tmp_path / "out/f/0.svg").read_text() == drawing.svg()
    again = subprocess.run(BATCH, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.stdout == "24 figures: 0 drawn, 24 as they were\n"


def test_an_empty_file_in_a_cache_counts_as_none(tmp_path):
    """What a loss of power can leave."""
    folder = site(tmp_path / "site", 1)
    command = built(folder, "out", "cache")
    subprocess.run(command, cwd=tmp_path, check=True)
    kept = pictures(tmp_path / "out")
    for path in (tmp_path / "cache/texgen").glob("*.svg"):
        path.write_bytes(b"")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "cache" / "environment.pickle").unlink()
    subprocess.run(command, cwd=tmp_path, check=True)
    assert pictures(tmp_path / "out") == kept
