"""``make`` reads targets into a handout, ``save`` writes sheet and key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError, UsageError
from texgen.handout.sheet import Handout, SheetOptions, handout

SUFFIXES = (".pdf", ".tex")
UNICODE_ENGINES = {
    "lualatex": "apt-get install texlive-luatex fonts-droid-fallback",
    "xelatex": "apt-get install texlive-xetex texlive-lang-chinese fonts-droid-fallback",
}
"""Engines that set every character, and what Debian and Ubuntu install for a Chinese sheet."""
NO_FONT = "no font for this language"
"""What the template says where none of the catalogue's fonts is there."""


def make(targets: Sequence[Any], options: SheetOptions | None = None, **reading: Any) -> Handout:
    """The handout of targets, each anything that ``texgen.read`` takes; ``reading`` are the options of reading.

    Raises TexgenError and UsageError as ``texgen.read`` and ``handout`` do.
    """
    from texgen.sources import read
    from texgen.specs import flat

    named = []
    for target in targets:
        for name, spec in flat(read(target, **reading)):
            named.append((name, spec))
    return handout(named, options)


def key_path(sheet: Path) -> Path:
    """Where the key of a sheet goes: ``sheet-key.pdf`` beside ``sheet.pdf``."""
    return sheet.with_name(f"{sheet.stem}-key{sheet.suffix}")


def save(made: Handout, path: str | Path, engine: str | None = None, templates: Sequence[str | Path] = ()) -> list[Path]:
    """Write sheet and key, or neither: ``.tex``, or ``.pdf`` through a TeX engine. Gives their paths.

    Raises UsageError for another suffix and for an engine that the catalogue's language cannot be set with, TexgenError
    where there is no TeX, where it fails, and where characters are lost.
    """
    from texgen.render.files import write

    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"A handout is written as .pdf or .tex, not {path.suffix or 'a file without a suffix'} ({path}): end the name with one of these.")
    folders = [str(t) for t in templates]
    texts = [made.tex(key, folders) for key in (False, True)]
    if path.suffix.lower() == ".tex":
        contents: list[str | bytes] = list(texts)
    else:
        chosen = _engine(made, texts, engine)
        contents = [_pdf(made, text, chosen) for text in texts]
    paths = [path, key_path(path)]
    before = path.read_bytes() if path.is_file() else None
    write(path, contents[0])
    try:
        write(paths[1], contents[1])
    except TexgenError:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            write(path, before)
        raise
    return paths


def _engine(made: Handout, texts: Sequence[str], wanted: str | None) -> str:
    from texgen.render import engine as tex
    from texgen.render.escape import one_line, unknown_characters

    if made.unicode:
        if wanted is not None and wanted not in UNICODE_ENGINES:
            raise UsageError(f"--engine {wanted}: {made.catalogue.where} needs lualatex or xelatex: leave --engine out.")
        found = [e for e in tex.available() if e in UNICODE_ENGINES and wanted in (None, e)]
        if not found:
            missing = wanted or "lualatex"
            raise TexgenError(f"{made.catalogue.where} needs {missing}, which is not on the PATH: install it (on Debian and Ubuntu: {UNICODE_ENGINES[missing]}), or write a .tex.")
        return found[0]
    if lost := unknown_characters("".join(texts)):
        raise TexgenError(f"No TeX font has a part of the sheet's text ({one_line(lost[:20])}): name one that has it with --font, or in the catalogue's language.fonts.")
    chosen = tex.choose(wanted)
    if chosen is None:
        raise TexgenError(f"A handout's PDF needs TeX and none is on the PATH: install it (on Debian and Ubuntu: {tex.INSTALL}), or write a .tex.")
    return chosen


def _pdf(made: Handout, text: str, engine: str) -> bytes:
    from texgen.render import engine as tex

    lost: list[str] = []
    try:
        pdf = tex.compile_pdf(text, engine, warnings=lost)
    except tex.TexFailure as error:
        if engine == "xelatex" and re.search(r"File `(xeCJK|ctexhook)\.sty' not found", error.message):
            raise TexgenError(f"xelatex lacks xeCJK: install it (on Debian and Ubuntu: {UNICODE_ENGINES[engine]}), or take --engine lualatex, which does without.") from None
        if NO_FONT not in error.message:
            raise
        what = f"The font {made.options.font} is not" if made.options.font else f"None of the fonts of {made.catalogue.where} is"
        raise TexgenError(f"{what} installed: install one (on Debian and Ubuntu: {UNICODE_ENGINES[engine]}), or name one that is with --font.") from None
    if missing := [line for line in lost if line.startswith("Missing character")]:
        raise TexgenError(f"{engine} has no character for a part of the text ({missing[0]}): name a font that has it with --font.")
    return pdf
