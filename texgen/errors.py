"""What texgen says when something is wrong: one sentence and what to do."""

from __future__ import annotations

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


class TexgenWarning(UserWarning):
    """Something that deserves a look but does not stop a figure."""
