"""``python -m tests.versions [FOLDER]``: builds the wheel and tests it in clean environments.

=========  ======================  =============================================================================
oldest     oldest Python and DSL   the tests of live objects, and the tables and pictures of the test set
plain      newest Python, no DSL   every test that needs none (as on macOS)
newest     newest Python and DSL   as oldest; every table and picture that both releases give must be equal
=========  ======================  =============================================================================

The tests run from a copy without ``texgen/``, so that the wheel is what they import. ``--only`` takes one environment;
``--quick`` leaves out of plain what draws with TeX, a browser or Sphinx, and of newest what ``make test`` has run with the same
DSL. The DSL of newest goes into the environment of plain where that was made.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""For which both the project and the newest DSL have wheels."""
NAMES = ("oldest", "plain", "newest")
OLDEST_DSL, NEWEST_DSL = "4.5.3", "4.8.1"
LIVE = ("test_dsl.py", "test_oracle.py", "test_cases_layouts.py", "test_copies_live.py")
QUICK = ("-m", "not dsl and not pdflatex and not lualatex and not xelatex and not chromium", "--ignore-glob=tests/test_s[pi][ht]*", "--ignore=tests/test_batch.py",
         "--ignore=tests/test_never_half.py", "--ignore=tests/properties")  # fmt: skip
COPIED = ("tests", "docs", "templates", "benchmarks", "README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "LICENSE")


@dataclass(frozen=True)
class Environment:
    name: str
    python: str
    dsl: str = ""
    onto: str = ""
    """The environment that becomes this one by the DSL, where it was made."""


def pythons() -> list[str]:
    """Interpreters on the machine, oldest first: ``python3.N`` on the PATH or under pyenv; at least this one."""
    found = []
    for minor in PYTHONS:
        places = [shutil.which(f"python{minor}"), *map(str, sorted(Path.home().glob(f".pyenv/versions/{minor}.*/bin/python")))]
        found += [p for p in places if p and _runs(p, minor)][:1]
    return found or [sys.executable]


def _runs(python: str, minor: str) -> bool:
    """Whether it starts: a pyenv shim of a version that is not chosen does not."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == minor


def wheel(folder: Path) -> Path:
    """The wheel of the checkout."""
    out = folder / "dist"
    shutil.rmtree(out, ignore_errors=True)
    _call([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(out), str(ROOT)])
    return next(out.glob("texgen-*.whl"))


def install(environment: Environment, built: Path, folder: Path) -> Path:
    """The Python of a clean environment that holds the wheel; ``uv`` is not needed."""
    home = folder / (environment.onto or environment.name)
    python, what = home / "bin" / "python", []
    if not environment.onto:
        shutil.rmtree(home, ignore_errors=True)
        _call([environment.python, "-m", "venv", str(home)])
        what = [f"{built}[docs]", "pytest", "pytest-xdist", "hypothesis", "jsonschema", "playwright"]
    if environment.dsl:
        what.append(f"nvidia-cutlass-dsl=={environment.dsl}")
    _call([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *what])
    return python


def copy(folder: Path) -> Path:
    """The tests and what they read, without the package."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*cache"))
        elif source.exists():
            shutil.copy(source, tree / name)
    return tree


def compare(old: Path, new: Path) -> list[str]:
    """Where two releases of the DSL give different tables or pictures; too few in common is a fault as well."""
    a, b = (json.loads(f.read_text(encoding="utf-8")) for f in (old, new))
    common = [n for n, e in a["entries"].items() if "absent" not in e and "absent" not in b["entries"][n]]
    faults = [f"{n}: {', '.join(k for k in a['entries'][n] if a['entries'][n][k] != b['entries'][n][k])} differ" for n in common if a["entries"][n] != b["entries"][n]]
    gone = [n for n, e in b["entries"].items() if "absent" in e]
    print(f"DSL {a['dsl']} and {b['dsl']}: {len(common)} objects in both, {len(common) - len(faults)} with equal tables and pictures")
    if len(common) < 150:
        faults.append(f"only {len(common)} objects are in both releases")
    return faults + [f"{n}: DSL {b['dsl']} does not build it: {b['entries'][n]['absent']}" for n in gone]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "versions")
    parser.add_argument("--only", choices=NAMES, action="append")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = pythons()
    only = options.only or NAMES
    onto = "plain" if "plain" in only else ""
    environments = (Environment("oldest", found[0], OLDEST_DSL), Environment("plain", found[-1]), Environment("newest", found[-1], NEWEST_DSL, onto))
    chosen = [e for e in environments if e.name in only]
    built, tree = wheel(folder), copy(folder)
    faults: list[str] = []
    for environment in chosen:
        print(f"--- {environment.name}: {environment.python}, DSL {environment.dsl or 'not installed'}", flush=True)
        python = install(environment, built, folder)
        where = subprocess.run([python, "-P" if environment.name != "oldest" else "-I", "-c", "import texgen; print(texgen.__file__)"], cwd=tree, capture_output=True, text=True, check=True)
        assert "site-packages" in where.stdout, f"not the wheel: {where.stdout}"
        pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        if environment.dsl:
            if subprocess.run([str(python), "-W", "ignore", "-m", "tests.versions.tables", str(folder / f"{environment.name}.json")], cwd=tree, check=False).returncode:
                faults.append(f"{environment.name}: the tables could not be read")
            live = LIVE[:1] if options.quick and environment.name == "newest" else LIVE
            tests = ["-n", "auto", *(f"tests/{f}" for f in live if (tree / "tests" / f).exists())]
        else:
            tests = ["-n", "auto", *(QUICK if options.quick else ("-m", "not dsl"))]
        if subprocess.run([*pytest, *tests], cwd=tree, check=False).returncode:
            faults.append(f"{environment.name}: tests failed")
    old, new = folder / "oldest.json", folder / "newest.json"
    if old.exists() and new.exists():
        faults += compare(old, new)
    for fault in faults:
        print(f"FAULT  {fault}")
    return 1 if faults else 0


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
