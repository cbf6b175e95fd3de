"""Characters that act on a page or a terminal instead of showing: how every output writes them.

Control characters move a terminal's cursor and are no XML, bidirectional overrides turn the text behind them around, and
zero-width ones hide in names. Figures, messages and files show each by its number, ``[U+202E]``.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_ACTING = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff\ud800-\udfff"
)
ACTING = re.compile(
    f"[{_ACTING}]"
    # The joiners of emoji, Persian and Indic scripts stay where they join something.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_SPACE = re.compile(r"\r\n|[\t\n\r\f\v\x85\u2028\u2029]")


def visible(text: str) -> str:
    """The text with each acting character as its number; line feeds and tabs stay.

    >>> visible("a\\x1b[31mb")
    'a[U+001B][31mb'
    """
    if text.replace("\n", "").isprintable():  # what nearly every text is; the expression would take ten times as long
        return text
    return ACTING.sub(lambda c: f"[U+{ord(c[0]):04X}]", text)


def json_text(value: Any, **form: Any) -> str:
    """``json.dumps(value, **form)`` with no character escaped but those that act: the file may be shown on a terminal."""
    return ACTING.sub(lambda c: json.dumps(c[0])[1:-1], json.dumps(value, ensure_ascii=False, **form))


def say(message: str) -> None:
    """A remark for the user, one line on stderr."""
    print(f"texgen: {one_line(message)}", file=sys.stderr)


def one_line(text: str) -> str:
    """As ``visible``, with a space for each line break and tab.

    >>> one_line("a\\nb")
    'a b'
    """
    return text if text.isprintable() else visible(_SPACE.sub(" ", text))
