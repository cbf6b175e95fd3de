"""CONTRIBUTING.md typed in: its recipes are applied to a copy of the checkout, its commands print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED = ("texgen", "templates")
pytestmark = pytest.mark.skipif(not all((ROOT / name).is_dir() for name in COPIED), reason="these tests are of a checkout")
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"\b(Write|In)\s+`([\w./-]+)`:\s*$")
RECIPES = {"An atom source": (2, 2), "A kind of figure": (4, 1), "A template": (2, 0)}
"""How many files each writes and how many edits it makes at least: a guard that the blocks are found."""


@dataclass(frozen=True)
class Block:
    """A block of code: ``path`` is the file that the text before it names, the last one for a further diff."""

    language: str
    text: str
    path: str


def blocks(recipe: str) -> list[Block]:
    """The blocks of ``## Example: an atom source`` and the like, in their order."""
    title = recipe[0].lower() + recipe[1:]
    start = TEXT.index(f"## Example: {title}\n")
    section = TEXT[start : end if (end := TEXT.find("\n## ", start + 1)) > 0 else None]
    out: list[Block] = []
    last = 0
    for found in FENCE.finditer(section):
        place = PLACE.search(section[last : found.start()])
        path = place[2] if place else out[-1].path if out and found[2] == "diff" else ""
        out.append(Block(found[2], textwrap.dedent(found[3]) if found[2] != "diff" else _dedented(found), path))
        last = found.end()
    return out


def _dedented(found: re.Match[str]) -> str:
    """A diff, whose lines begin with a space of their own."""
    return "".join(line[len(found[1]) :] for line in found[3].splitlines(keepends=True))


def apply(diff: str, text: str) -> str:
    """The text after an edit whose place must be found once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"{text.count(before)} places for\n{diff}"
    return text.replace(before, after)


def matches(shown: str, printed: str) -> bool:
    """Whether output is what the text shows; ``…`` stands for anything, ends of lines are not compared."""
    pattern = r".*?".join(re.escape(part) for part in "\n".join(x.rstrip() for x in shown.strip().splitlines()).split("…"))
    return re.fullmatch(pattern, "\n".join(x.rstrip() for x in printed.strip().splitlines()), re.DOTALL) is not None


def commands(console: str) -> list[tuple[str, str]]:
    """(command, what it prints) of a console block."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    return [(command.strip(), rest) for command, _, rest in (part.partition("\n") for part in parts)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a recipe touches; ``texgen`` and ``python`` are ours, and import the copy."""
    copy = tmp_path / "checkout"
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests").mkdir()
    shutil.copy(ROOT / "pyproject.toml", copy)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("python", ""), ("texgen", "-m texgen ")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (programs / name).chmod(0o755)
    return copy


def run(command: str, checkout: Path) -> str:
    environment = os.environ | {
        "PATH": f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(checkout), "NO_COLOR": "1",
        "XDG_CACHE_HOME": str(checkout.parent / "cache"), "COLUMNS": "160", "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }  # fmt: skip
    done = subprocess.run(["sh", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe(recipe: str, checkout: Path) -> None:
    """Typed in block by block, every command prints what the text shows."""
    assert run('python -c "import texgen; print(texgen.__file__)"', checkout).strip() == str(checkout / "texgen" / "__init__.py")
    written, edits, ran = [], 0, 0
    for block in blocks(recipe):
        path = checkout / block.path
        if block.language == "diff":
            path.write_text(apply(block.text, path.read_text(encoding="utf-8")), encoding="utf-8")
            edits += 1
        elif block.language == "console":
            for command, shown in commands(block.text):
                printed = run(command, checkout)
                assert matches(shown, printed), f"{command}\nshown:\n{shown}\nprinted:\n{printed}"
                ran += 1
        else:
            assert block.path and not path.exists(), f"a block of {block.language} names no new file:\n{block.text}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            written.append(block.path)
    files, least = RECIPES[recipe]
    assert len(written) == files and edits >= least and ran >= 3
    run(f"python -m ruff check {' '.join(p for p in written if p.endswith('.py'))}", checkout)


def test_outputs_are_compared() -> None:
    """The comparison of outputs and the edits can fail."""
    assert matches("a\n…\nc\n", "a  \nb\nb\nc") and not matches("a\nc", "a\nb\nc") and not matches("a\n…", "b\na\n")
    assert apply(" a\n+b\n", "a\nc\n") == "a\nb\nc\n"
    with pytest.raises(AssertionError, match="2 places"):
        apply(" a\n+b\n", "a\na\n")


def test_paths_and_targets_exist() -> None:
    """Each file and folder that the general part names is there, and each make target."""
    general = TEXT[: TEXT.index("## Example:")]
    paths = set(re.findall(r"`((?:texgen|tests|docs|templates|benchmarks|\.ci)/[\w./]*)`|(tests/\w+\.py)", general))
    assert len(paths) > 15
    for path in (a or b for a, b in paths):
        assert (ROOT / path).exists(), path
    targets = sorted(set(re.findall(r"^\$ make ([\w./]+)", general, re.MULTILINE)))
    assert len(targets) == 3
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
