"""Figures of a page that can be pointed at: their tables beside their SVG, and the one script that serves them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from texgen.errors import TexgenError
from texgen.render.files import write
from texgen.sphinxext.nodes import picture

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from texgen.sphinxext.studio import Studio

SCRIPT = "texgen.js"
MARK = "data-txg-figure="
"""What a page has where one of its figures needs the script."""


def wanted(node: picture, builder: Any) -> bool:
    """Whether a picture of a page is to be interactive: what its directive says, or else ``texgen_interactive``."""
    own = node.get("interactive")
    return builder.name != "epub" and bool(builder.config.texgen_interactive if own is None else own)


def data_of(studio: Studio, stem: str) -> str:
    """A figure's panels and tables as JSON that is safe in a page, kept beside its SVG; empty where it has none.

    A figure whose tables are too large for a page stays static, and so does one that builds itself up.
    """
    path = studio.cache / f"{stem}.data"
    if not path.is_file():
        from texgen.figures.pointing import pointing
        from texgen.render.html import content, data

        drawing = studio.again(stem)
        try:
            found = pointing(drawing.spec, drawing.figure, drawing.options)
            moves = bool(drawing.options.slides)  # its cells come and go
            text = "" if moves or not content(drawing.figure, found)["panels"] else str(data(drawing.figure, found))
        except TexgenError:
            text = ""
        write(path, text)
    return path.read_text(encoding="utf-8")


def name_of(node: picture, translator: Any) -> str:
    """What the page's address calls a figure: the name that its directive has, or its hash; no two of a page are the same."""
    ids = node.parent.get("ids") if node.parent is not None else None
    name = str(ids[0]) if ids else str(node["stem"])[-10:]
    seen = translator.__dict__.setdefault("texgen_names", {})
    count = seen[name] = seen.get(name, 0) + 1
    return name if count == 1 else f"{name}-{count}"


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """html-page-context: the script, for a page that needs it."""
    if MARK not in context.get("body", ""):
        return
    from texgen.sphinxext.steps import domain_of

    path = Path(app.outdir) / "_static" / SCRIPT
    text = domain_of(app.env).open_studio.page_text("interactive.js.j2", {})
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write(path, text)
    app.add_js_file(SCRIPT, loading_method="defer")
