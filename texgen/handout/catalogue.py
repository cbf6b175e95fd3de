"""The sentences of a handout: TOML files of strings by key, one a language.

A string may be a list: its forms by number, chosen by ``{n}`` through the catalogue's ``language.plural``, the C
expression that gettext's ``Plural-Forms`` takes. Placeholders are bare names, ``{row}``; what stands between backticks is
set in a typewriter face.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from gettext import c2py
from pathlib import Path
from typing import Any, TypeAlias

from texgen.errors import TexgenError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent / "strings"
FALLBACK = "en"
LIMIT = 1 << 20
"""The largest catalogue that is read, in bytes."""
PLACEHOLDER = re.compile(r"\{(\w+)\}")
Forms: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """A placeholder's value that is itself a string of the catalogue."""

    name: str


@dataclass(frozen=True)
class Catalogue:
    """``strings`` has the forms of every key (``question.owner.ask``)."""

    where: str
    strings: Mapping[str, Forms]
    code: str
    plural: Callable[[int], int]
    fonts: tuple[str, ...] = ()
    """Fonts for characters that TeX's own lack, the first that is there is taken; empty: pdflatex will do."""
    babel: str = ""
    """The language's name in babel, for its line breaks; lualatex alone."""
    untranslated: tuple[str, ...] = ()
    """Keys that stand in English here."""

    def say(self, key: str, **values: Any) -> str:
        """The string of a key with its placeholders filled; in lists, entries are joined by the catalogue's separator."""
        forms = self.strings[key]
        form = forms[self.plural(values["n"])] if len(forms) > 1 else forms[0]
        return PLACEHOLDER.sub(lambda m: self._text(values[m[1]]) if m[1] in values else m[0], form)

    def _text(self, value: Any) -> str:
        if isinstance(value, Key):
            return self.strings[value.name][0]
        if isinstance(value, list | tuple):
            return self.strings["list.separator"][0].join(map(str, value))
        return str(value).replace("-", "−") if isinstance(value, int) else str(value)


def load(language: str = FALLBACK, path: Path | None = None) -> Catalogue:
    """The catalogue of a language, or of a file; what it lacks stands in English.

    Raises UsageError for a language that texgen lacks, TexgenError for a file that is no catalogue: no TOML, keys that
    do not exist, placeholders that the English string has not.
    """
    english = _read(FOLDER / f"{FALLBACK}.toml")
    if path is None and language not in languages():
        raise UsageError(
            f"There is no catalogue for --lang {language!r}: there are {', '.join(languages())}; give your own with --strings FILE."
        )
    chosen = _read(path or FOLDER / f"{language}.toml")
    where = str(path or f"{language}.toml")
    if unknown := sorted(set(chosen.strings) - set(english.strings)):
        raise TexgenError(f"{where}: there is no string {unknown[0]!r}: the keys are those of {FOLDER / 'en.toml'}.")
    for key, forms in chosen.strings.items():
        known = placeholders(english.strings[key])
        if odd := sorted(placeholders(forms) - known):
            has = f"it has {', '.join(f'{{{k}}}' for k in sorted(known))}" if known else "it has none"
            raise TexgenError(f"{where}: {key} has no placeholder {{{odd[0]}}}: {has}.")
    missing = tuple(k for k in english.strings if k not in chosen.strings)
    # An English string that stands in takes its last form, the one for many, since the plural rule is another language's.
    strings = {k: chosen.strings.get(k) or forms[-1:] for k, forms in english.strings.items()}
    return Catalogue(where, strings, chosen.code, chosen.plural, chosen.fonts, chosen.babel, missing)


def languages() -> list[str]:
    """The languages that texgen has, by their codes."""
    return sorted(p.stem for p in FOLDER.glob("*.toml"))


def placeholders(forms: Forms) -> set[str]:
    """The names between braces in any of a string's forms."""
    return {name for form in forms for name in PLACEHOLDER.findall(form)}


@cache
def _read(path: Path) -> Catalogue:
    try:
        if path.stat().st_size > LIMIT:
            raise TexgenError(f"{path} is larger than {LIMIT >> 20} MB: that is no catalogue.")
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TexgenError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise TexgenError(f"{path} is not in UTF-8: save it with that encoding.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TexgenError(f"{path} is no catalogue of strings in TOML: {error}.") from None
    head = data.pop("language", {})
    if not isinstance(head, dict):
        raise TexgenError(f"{path}: [language] must be a table with code and plural.")
    fonts = head.get("fonts", [])
    if not isinstance(fonts, list) or not all(isinstance(f, str) and is_font_name(f) for f in fonts):
        raise TexgenError(f"{path}: language.fonts must be a list of font names.")
    babel = head.get("babel", "")
    if not isinstance(babel, str) or not re.fullmatch(r"[a-z-]*", babel):
        raise TexgenError(f"{path}: language.babel must be a name that babel knows, such as chinese-simplified.")
    code = head.get("code", "")
    if not isinstance(code, str) or not re.fullmatch(r"[A-Za-z-]*", code):
        raise TexgenError(f"{path}: language.code must be a language's code, such as zh.")
    rule = str(head.get("plural", "n != 1"))
    try:
        plural = c2py(rule)
        count = 1 + max(plural(n) for n in range(200))
    except (ValueError, ArithmeticError, RecursionError):
        raise TexgenError(f"{path}: language.plural {rule!r} is no plural rule: write it as gettext has it, n != 1.") from None
    strings = dict(_flat(data, "", path))
    for key, forms in strings.items():
        if len(forms) not in (1, count):
            raise TexgenError(f"{path}: {key} has {len(forms)} forms, and language.plural {rule!r} chooses among {count}.")
    return Catalogue(str(path), strings, code, plural, tuple(fonts), babel)


def is_font_name(text: str) -> bool:
    """Whether a text can be a font's name: no character that TeX or luaotfload would act on."""
    return re.fullmatch(r"[\w .()-]{1,80}", text) is not None


def _flat(data: Mapping[str, Any], prefix: str, path: Path) -> list[tuple[str, Forms]]:
    out: list[tuple[str, Forms]] = []
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            out += _flat(value, f"{name}.", path)
        elif isinstance(value, str):
            out.append((name, (value,)))
        elif isinstance(value, list) and value and all(isinstance(x, str) for x in value):
            out.append((name, tuple(value)))
        else:
            raise TexgenError(f"{path}: {name} must be a string, or a list of its forms.")
    return out
