"""How each writer shows a picture and its links. The words and tags are in ``templates/sphinx_*.j2``."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from docutils import nodes
from markupsafe import Markup

from texgen.sphinxext.interactive import data_of, name_of, wanted
from texgen.sphinxext.nodes import links, picture
from texgen.sphinxext.steps import domain_of
from texgen.sphinxext.studio import FOLDER, SUFFIXES, Studio

ID = re.compile(r"txg-[0-9a-f]{10}")
OPENING = re.compile(r"<svg\b([^>]*)>")
ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')


def _studio(translator: Any) -> Studio:
    return domain_of(translator.builder.env).open_studio


# HTML and EPUB


def html_picture(self: Any, node: picture) -> None:
    """The SVG inside the page, or an image of it."""
    studio, config = _studio(self), self.builder.config
    width = node.get("width", "")
    names: dict[str, Any] = {"alt": node["alt"], "width": width + "px" if width.isdigit() else width, "svg": None, "data": ""}
    path = studio.path(node["stem"], "svg")
    if node["stem"] in studio.failed and not path.is_file():
        self.body.append(_failure(studio, node, "sphinx_failure.html.j2"))
        raise nodes.SkipNode
    inline = config.texgen_svg == "inline" and self.builder.name != "epub" and path.stat().st_size <= config.texgen_inline_limit
    live = wanted(node, self.builder) and (inline or node.get("interactive")) and data_of(studio, node["stem"])
    if inline or live:
        names |= _inlined(path.read_text(encoding="utf-8"), self)
    if live:
        names |= {"data": Markup(live), "id": name_of(node, self)}
    names["href"] = _href(self, node["stem"], "svg")
    self.body.append(studio.page_text("sphinx_picture.html.j2", names))
    raise nodes.SkipNode


def _inlined(svg: str, translator: Any) -> dict[str, Any]:
    """The SVG in two parts, its opening tag's attributes and the rest, with ids that no other on the page has."""
    found = ID.search(svg)
    if found is not None:
        seen = translator.__dict__.setdefault("texgen_seen", {})
        count = seen[found[0]] = seen.get(found[0], 0) + 1
        if count > 1:
            svg = svg.replace(found[0], f"{found[0]}-{count}")
    opening = OPENING.search(svg)
    if opening is None:
        return {"svg": svg, "attributes": {}}
    ours = ("role", "aria-label", "aria-labelledby", "aria-describedby", "style")
    attributes = {k: v for k, v in ATTRIBUTE.findall(opening[1]) if k not in ours}
    return {"svg": svg[opening.end() :], "attributes": attributes}


def _href(translator: Any, stem: str, form: str) -> str:
    """The URI of a form, from the page."""
    return posixpath.join(posixpath.dirname(translator.builder.imgpath), FOLDER, stem + SUFFIXES[form])


def html_links(self: Any, node: links) -> None:
    """Links to the figure's files."""
    studio = _studio(self)
    wanted = [] if self.builder.name == "epub" else self.builder.config.texgen_links
    rows = [
        [(form, _href(self, stem, form)) for form in wanted if form in SUFFIXES and (studio.out / f"{stem}{SUFFIXES[form]}").is_file()]
        for stem in node["stems"]
    ]
    if any(rows):
        self.body.append(studio.page_text("sphinx_links.html.j2", {"rows": rows}))
    raise nodes.SkipNode


# LaTeX


def latex_picture(self: Any, node: picture) -> None:
    """The TikZ, or the PDF, kept inside the page."""
    from sphinx.writers.latex import rstdim_to_latexdim

    studio, form = _studio(self), self.builder.config.texgen_latex
    if not (studio.out / f"{node['stem']}{SUFFIXES[form]}").is_file() or node["stem"] in studio.failed:
        self.body.append(_failure(studio, node, "sphinx_failure.tex.j2"))
        raise nodes.SkipNode
    width = ""
    if "width" in node:
        try:
            width = rstdim_to_latexdim(node["width"])
        except ValueError:
            width = ""
    names = {"file": f"{FOLDER}/{node['stem']}{SUFFIXES[form]}", "form": form, "width": width}
    self.body.append(studio.page_text("sphinx_picture.tex.j2", names))
    raise nodes.SkipNode


def _failure(studio: Studio, node: picture, template: str) -> str:
    error = studio.failed.get(node["stem"])
    names = {"message": error.message if error else "", "detail": error.detail if error else ""}
    return studio.page_text(template, names)


# Text, man, Texinfo


def text_picture(self: Any, node: picture) -> None:
    """The plain-text form, as a literal block of that writer."""
    path = _studio(self).path(node["stem"], "txt")
    text = path.read_text(encoding="utf-8").rstrip() if path.is_file() else node["alt"]
    block = nodes.literal_block(text, text, language="none")
    block.document = self.document
    block.parent = node.parent
    block.walkabout(self)
    raise nodes.SkipNode


def skip(self: Any, node: nodes.Element) -> None:
    """Nothing of this node in this form."""
    raise nodes.SkipNode


def _depart(self: Any, node: nodes.Element) -> None:
    pass


PICTURE: dict[str, Any] = {
    "html": (html_picture, _depart), "latex": (latex_picture, _depart),
    "text": (text_picture, _depart), "man": (text_picture, _depart), "texinfo": (text_picture, _depart),
}  # fmt: skip
LINKS: dict[str, Any] = {
    "html": (html_links, _depart), **{form: (skip, _depart) for form in ("latex", "text", "man", "texinfo")},
}  # fmt: skip
