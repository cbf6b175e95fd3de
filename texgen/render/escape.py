"""Text into TeX: whatever a title holds is shown, never acted on."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from texgen.visible import one_line

__all__ = ["one_line", "to_tex", "unknown_characters"]

_PLAIN = re.compile(r"[A-Za-z0-9 .,:;()+=/*!?@-]*")
_OWN = {
    "×": r"$\times$", "·": r"$\cdot$", "–": "--", "—": "---", "…": r"\ldots{}", "→": r"$\rightarrow$", "←": r"$\leftarrow$",
    "↓": r"$\downarrow$", "∘": r"$\circ$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "⊕": r"$\oplus$", "-": "-", '"': "''",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "'": "'", "`": r"\textasciigrave{}",
}  # fmt: skip
CYRILLIC = range(0x0400, 0x0530)


def to_tex(text: object) -> str:
    """Text as LaTeX that prints it; characters without a LaTeX form become ``\\txgU{HEX}``, acting ones ``[U+HEX]``.

    >>> to_tex("a_b & 50% #1")
    'a\\\\_b \\\\& 50\\\\% \\\\#1'
    """
    text = str(text)
    if _PLAIN.fullmatch(text):
        return text
    return str(_encoder().unicode_to_latex(one_line(text)))


def unknown_characters(text: str) -> str:
    """Those characters of a TeX source that only lualatex and xelatex can print (``\\txgU`` in it)."""
    codes = re.findall(r"\\txgU\{([0-9A-F]+)\}", text)
    return "".join(dict.fromkeys(chr(int(code, 16)) for code in codes))


@cache
def _encoder() -> Any:
    """pylatexenc's encoder, our own table first."""
    from pylatexenc.latexencode import RULE_DICT, UnicodeToLatexConversionRule, UnicodeToLatexEncoder

    # pylatexenc writes Cyrillic as \\CYRA, which only the encoding T2A defines
    table = {code: f"\\txgU{{{code:04X}}}" for code in CYRILLIC} | {ord(k): v for k, v in _OWN.items()}
    own = UnicodeToLatexConversionRule(RULE_DICT, table, replacement_latex_protection="none")
    return UnicodeToLatexEncoder(
        conversion_rules=[own, "defaults"],
        replacement_latex_protection="braces-after-macro",
        unknown_char_policy=lambda c: f"\\txgU{{{ord(c):04X}}}",
        unknown_char_warning=False,
    )
