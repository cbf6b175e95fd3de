"""Python in a directive's body becomes a file whose last expression is the object to draw."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from texgen.errors import TexgenError

RESULT = "texgen_figure"
"""The name under which the file holds the object."""


def program(lines: Sequence[str]) -> str:
    """The body with its last expression given a name; line numbers stay.

    Raises TexgenError for a mistake in its syntax and for a body that does not end in an expression.
    """
    source = "\n".join(lines).rstrip() + "\n"
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 0
        shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        what = getattr(error, "msg", str(error))
        raise TexgenError(f"The Python in the body cannot be read: {what} (its line {line}).", f"  {shown}".rstrip()) from None
    last = statements[-1] if statements else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        raise TexgenError("The Python in the body must end in an expression, the object to draw: write its name as the last line.")
    rows = [row.encode() for row in source.splitlines()]
    end, begin = last.end_lineno - 1, last.lineno - 1
    rows[end] = rows[end][: last.end_col_offset] + b")" + rows[end][last.end_col_offset :]
    rows[begin] = rows[begin][: last.col_offset] + f"{RESULT} = (".encode() + rows[begin][last.col_offset :]
    return b"\n".join(rows).decode() + "\n"
