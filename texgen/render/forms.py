"""The forms of output, by suffix. A template ``figure.X.j2`` makes a form ``.X``: one of texgen's own folder or of an author's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from texgen.errors import TexgenError, UsageError
from texgen.render.environment import home

OWN = (".tikz", ".tex", ".pdf", ".svg", ".html", ".png", ".txt", ".json")
"""Forms that take more than a template."""
BUILT_UP = (".tikz", ".tex", ".pdf", ".svg")
"""Forms that show the steps of ``--slides``."""
TEMPLATE = re.compile(r"figure(\.[a-z0-9]+)\.j2")


def suffixes(folders: Sequence[str | Path] = ()) -> tuple[str, ...]:
    """Every suffix that can be written with these folders of templates. Raises TexgenError for a folder that is not there."""
    for folder in (f for f in folders if not Path(f).is_dir()):
        raise TexgenError(f"The template folder {folder} does not exist.")
    found = (TEMPLATE.fullmatch(p.name) for folder in (home(), *folders) for p in sorted(Path(folder).glob("figure.*.j2")))
    return tuple(dict.fromkeys((*OWN, *(m[1] for m in found if m))))


def check_suffixes(paths: Iterable[Path], folders: Sequence[str | Path] = (), slides: str = "") -> None:
    """Raise UsageError for a path whose form nothing makes, and with ``slides`` for one that cannot show steps."""
    known = suffixes(folders)
    for path in paths:
        if path.suffix.lower() not in known:
            raise UsageError(
                f"texgen writes no {path.suffix or 'file without a suffix'} ({path}): end the name with one of {', '.join(known)}."
            )
        check_slides(path.suffix, slides)


def check_slides(suffix: str, slides: str) -> None:
    """Raise UsageError where a form would show nothing of ``slides``; JSON has what is drawn, however it is drawn."""
    if slides and suffix.lower() not in (*BUILT_UP, ".json"):
        raise UsageError(f"A {suffix} shows no steps: with --slides end the output's name with one of {', '.join(BUILT_UP)}, or leave --slides out.")
