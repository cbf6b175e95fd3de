"""Figure → TikZ fragment or standalone LaTeX document."""

from __future__ import annotations

import re

from texgen.figures.model import Figure
from texgen.render.context import context
from texgen.render.environment import fill


def tikz(figure: Figure, templates: tuple[str, ...] = ()) -> str:
    """The fragment for ``\\input``: needs only ``\\usepackage{tikz}``."""
    return _tidy(fill("figure.tikz.j2", context(figure), templates))


def document(figure: Figure, templates: tuple[str, ...] = ()) -> str:
    """A standalone document around the fragment."""
    return wrap_document(tikz(figure, templates), figure.title or figure.name, templates)


def wrap_document(body: str, title: str = "", templates: tuple[str, ...] = ()) -> str:
    """A standalone document around any TikZ source."""
    names = {"figure": {"title": title}, "body": body, "raw_unicode": "\\txgU{" in body}
    return fill("document.tex.j2", names, templates)


def _tidy(text: str) -> str:
    return re.sub(r"\n{2,}", "\n", text)
