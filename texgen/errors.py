"""What texgen says when something is wrong: one sentence and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from texgen.visible import one_line, visible


class TexgenError(Exception):
    """A failure that is explained.

    ``str(error)`` is the sentence a user reads; ``detail`` holds further lines (a caret under the place of a mistake,
    the user's own traceback, a piece of a TeX log) that the command line prints below it. Characters that would act on a
    terminal are written by their numbers: both quote what was given.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = one_line(message)
        self.detail = visible(detail)

    def __str__(self) -> str:
        return f"{self.message}\n{self.detail}" if self.detail else self.message

    def __reduce__(self) -> tuple[type[TexgenError], tuple[str, str]]:
        return type(self), (self.message, self.detail)


class UsageError(TexgenError):
    """The options contradict each other or do not fit the target (exit status 2)."""


def spelt(message: str, written: Callable[[str], str]) -> str:
    """A message whose options, ``--k-tiles`` as on the command line, are written as elsewhere; ``--width`` is ``print-width`` there."""
    return re.sub(r"--([a-z][a-z-]*)", lambda m: written("print-width" if m[1] == "width" else m[1]), message)


@contextmanager
def for_keywords() -> Iterator[None]:
    """Within it options stand in messages as Python has them. Raises each UsageError anew: ``k_tiles`` for ``--k-tiles``."""
    try:
        yield
    except UsageError as error:
        raise UsageError(spelt(error.message, lambda name: name.replace("-", "_")), error.detail) from error.__cause__


class TexgenWarning(UserWarning):
    """Something that deserves a look but does not stop a figure."""
