"""Which files a Python program depends on: itself and what it imports from outside of the installed packages.

Found by reading the source, so that a program that fails has its dependencies too.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

OWN = ("texgen", "texgen.kernels")
"""Imports of the package itself count only below the second name: the rest is in ``keys.digest``."""


def called(target: str) -> tuple[str, str] | None:
    """(file or module, name) of a target that is a function to be called, otherwise None."""
    if not target.rpartition(":")[2][:1].isidentifier():  # spares most targets the import
        return None
    from texgen.sources import CALLABLE

    found = CALLABLE.fullmatch(target)
    return (found["place"], found["name"]) if found else None


def target_files(target: str) -> list[Path]:
    """The files that a target names, and what they import."""
    if target.endswith(".json"):
        return [Path(target)]
    found = called(target)
    if found is None:
        return []
    start = Path(found[0]) if found[0].endswith(".py") else module_file(found[0])
    return local_files(start) if start is not None else []


def local_files(start: Path, also: Sequence[Path] = ()) -> list[Path]:
    """``start`` and every file that it imports, directly or not; names are looked for beside each file, in ``also``, and
    on Python's path."""
    found: dict[Path, None] = {start: None}
    todo = [start]
    while todo:
        path = todo.pop()
        for level, name in _imports(str(path), _mtime(path)):
            for file in _files(path, level, name, also):
                if file not in found:
                    found[file] = None
                    todo.append(file)
    return sorted(found)


def module_file(name: str) -> Path | None:
    """The file of a module by its dotted name, or None where it is not found outside of the installed packages."""
    return next(iter(_resolve(name, _roots([Path.cwd()]))[::-1]), None)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _imports(path: str, mtime: float) -> tuple[tuple[int, str], ...]:
    """(level of a relative import or 0, dotted name) of a file's imports; empty for a file that is no Python."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    out: dict[tuple[int, str], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {(0, alias.name): None for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            out |= {(node.level, ".".join(filter(None, (node.module, alias.name)))): None for alias in node.names}
    return tuple(out)


def _files(importer: Path, level: int, name: str, also: Sequence[Path]) -> Iterable[Path]:
    if level:
        return _resolve(name, [importer.parents[level - 1]] if level <= len(importer.parents) else [])
    parts = name.split(".")
    if parts[0] in sys.stdlib_module_names or (parts[0] == OWN[0] and ".".join(parts[:2]) not in OWN[1:]):
        return ()
    return _resolve(name, _roots([importer.parent, *also]))


def _resolve(name: str, roots: Iterable[Path]) -> list[Path]:
    """The files that importing ``a.b.c`` runs, in that order; the last part may be a name inside ``a.b``."""
    parts = name.split(".")
    for root in roots:
        files = list(_below(root, parts))
        if files:
            return files
    where = _installed_elsewhere(parts[0])
    return list(_below(where, parts)) if where else []


def _below(root: Path, parts: Sequence[str]) -> Iterator[Path]:
    for count in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:count])
        if (base / "__init__.py").is_file():
            yield base / "__init__.py"
        elif base.with_name(base.name + ".py").is_file():
            yield base.with_name(base.name + ".py")
            return


@cache
def _installed_elsewhere(name: str) -> Path | None:
    """The folder that holds a top-level module found by an import hook (an editable installation)."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.origin or _is_installed(spec.origin):
        return None
    path = Path(spec.origin)
    return path.parent.parent if path.name == "__init__.py" else path.parent


def _roots(first: Sequence[Path]) -> Iterator[Path]:
    yield from first
    for entry in sys.path:
        if entry and not _is_installed(entry):
            yield Path(entry)


def _is_installed(place: str) -> bool:
    path = os.path.abspath(place)
    return bool({"site-packages", "dist-packages"} & set(Path(path).parts)) or (path + os.sep).startswith(_packages())


@cache
def _packages() -> tuple[str, ...]:
    folders = [sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(str(f) + os.sep for f in folders if f)
