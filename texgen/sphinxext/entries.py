"""What a page asks for and what it got: small records, some of them kept in Sphinx's environment.

Nothing heavy is imported here, so that a build with nothing to draw loads neither NumPy nor the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.imports import called, target_files


class MissingDsl(TexgenError):
    """A figure needs the CuTe DSL, which is not installed."""


class ExecutionOff(TexgenError):
    """A page wants to run Python and ``texgen_execute`` does not allow it."""


@dataclass(frozen=True)
class Entry:
    """A drawn figure: the stem of its files, and what is known of it without drawing it again."""

    stem: str
    alt: str
    warnings: tuple[str, ...] = ()
    spec_hash: str = ""


@dataclass(frozen=True)
class Use:
    """A figure in a page. ``dsl`` is the version of the DSL that it was read with, empty where none was needed; ``spec``
    the name of the file that keeps what was read."""

    entry: Entry
    location: str
    dsl: str = ""
    spec: str = ""


@dataclass(frozen=True)
class Request:
    """What a directive asks for. ``target`` has absolute file names; ``program`` is the Python of its body, if any."""

    target: str
    options: Mapping[str, Any]
    folder: Path
    program: str = ""
    shown: str = ""

    @property
    def callable(self) -> tuple[str, str] | None:
        """(file or module, name) of a target to be called."""
        return called(self.target)

    @property
    def runs(self) -> bool:
        """True if Python of the page's author is run."""
        return bool(self.program) or self.callable is not None

    @property
    def needs_dsl(self) -> bool:
        """True if the DSL is asked."""
        return self.runs or bool(self.options.get("live"))

    def files(self) -> list[Path]:
        """The files that the target names, and what they import."""
        return target_files(self.target)
