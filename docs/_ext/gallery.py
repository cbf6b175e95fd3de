"""``.. gallery:: two-columns``: a LaTeX document of ``docs/gallery`` beside its first page.

The pictures are made by the build where a TeX engine and pdftocairo are on the PATH, once for each change of a source, of
``texgen.sty`` or of a figure (``build/gallery`` keeps them); elsewhere they are those of ``docs/images/gallery``, which
``python docs/_ext/gallery.py`` makes anew and a test holds against their sources.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from click.core import ParameterSource
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import texgen
from texgen import cli
from texgen.errors import TexgenError
from texgen.render import engine
from texgen.render.files import write
from texgen.render.raster import pdf_to_png
from texgen.render.sty import sty

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
SOURCES, COMMITTED, KEPT = DOCS / "gallery", DOCS / "images" / "gallery", DOCS.parent / "build" / "gallery"
LIST = "made.json"
ENGINES = ("pdflatex", "lualatex")
DPI = 192
SHRUNK = {"poster": 0.36}
"""How much smaller than its medium a page is shown."""
log = logging.getLogger(__name__)


def names() -> list[str]:
    return sorted(p.stem for p in SOURCES.glob("*.tex"))


def source(name: str) -> str:
    return (SOURCES / f"{name}.tex").read_text(encoding="utf-8")


def prepare(name: str, folder: Path) -> str:
    """Put ``texgen.sty``, the document and the fragments that its first lines order in a folder; gives a hash of them all."""
    write(folder / "texgen.sty", sty())
    write(folder / f"{name}.tex", source(name))
    for line in re.findall(r"^% texgen render (.*)$", source(name), re.MULTILINE):
        *arguments, output = shlex.split(line)
        write(folder / output, fragment(arguments))
    made = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def fragment(arguments: list[str]) -> str:
    """What ``texgen render`` with these arguments writes."""
    context = cli.render.make_context("texgen render", [a for a in arguments if a != "-o"])
    given = {k: v for k, v in context.params.items() if context.get_parameter_source(k) == ParameterSource.COMMANDLINE}
    return str(texgen.figure(given.pop("target"), **given).tikz())


def draw(name: str, folder: Path, program: str) -> bytes:
    """The PNG of the first page of a prepared document. Raises TexgenError where TeX or poppler fail."""
    command = [program, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    again = re.search(r"\\ref|texgenoverlay", source(name))
    for _ in range(2 if again else 1):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=engine.TIME_LIMIT, check=False)
        if done.returncode:
            raise TexgenError(f"{program} failed on docs/gallery/{name}.tex: see {name}.log.", done.stdout.decode("utf-8", "replace")[-800:])
    png = pdf_to_png((folder / f"{name}.pdf").read_bytes(), DPI * SHRUNK.get(name, 1.0))
    if png is None:
        raise TexgenError("pdftocairo is not on the PATH: install poppler-utils.")
    return png


def keep(name: str, program: str | None) -> None:
    """Bring ``build/gallery`` up to date for one document; its ``.json`` says what made the picture."""
    note = KEPT / f"{name}.json"
    with tempfile.TemporaryDirectory(prefix="texgen-gallery-") as temporary:
        wanted = {"hash": prepare(name, Path(temporary)), "engine": program or ""}
        if note.is_file() and (KEPT / f"{name}.png").is_file() and json.loads(note.read_text(encoding="utf-8")) == wanted:
            return
        png = draw(name, Path(temporary), program) if program else (COMMITTED / f"{name}.png").read_bytes()
    write(KEPT / f"{name}.png", png)
    write(note, json.dumps(wanted))


def program() -> str | None:
    """The engine to use, None where that or pdftocairo is missing."""
    found = [p for p in engine.available() if p in ENGINES]
    return found[0] if found and shutil.which("pdftocairo") else None


def bring_up_to_date(app: Sphinx | None = None) -> None:
    """All documents, side by side. A failure of TeX warns and leaves the committed picture."""

    def one(name: str) -> str:
        try:
            keep(name, program())
        except (TexgenError, OSError, subprocess.SubprocessError) as error:
            keep(name, None)
            return f"{name}: {error}"
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for trouble in filter(None, pool.map(one, names())):
            log.warning(trouble)


class Gallery(SphinxDirective):
    """The source and the picture of a document; its content is the caption."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        note = KEPT / f"{name}.json"
        for file in (SOURCES / f"{name}.tex", note, Path(__file__)):
            self.env.note_dependency(str(file))
        made_by = json.loads(note.read_text(encoding="utf-8"))["engine"]
        picture = nodes.image(
            uri=Path(os.path.relpath(KEPT / f"{name}.png", Path(self.env.doc2path(self.env.docname)).parent)).as_posix(),
            alt=self.options["alt"], width=f"{_width(name):.0f}px", classes=["gallery-page"],
        )  # fmt: skip
        said = f" Made by {made_by} when this site was built." if made_by else " The picture that came with the sources: this build had no TeX."
        caption = nodes.caption("", "", *self.parse_inline(" ".join(self.content) + said)[0])
        figure = nodes.figure("", picture, caption, classes=["gallery"])
        text = source(name)
        code = nodes.literal_block(text, text, language="latex", classes=["gallery-source"])
        self.set_source_info(code)
        return [figure, code]


def _width(name: str) -> float:
    """The width at which a page is shown, in CSS pixels: that of its medium, shrunk where SHRUNK says so."""
    data = (KEPT / f"{name}.png").read_bytes()
    return int.from_bytes(data[16:20], "big") * 96 / DPI


def remake() -> None:
    """Make the committed pictures anew; needs TeX and poppler."""
    tool = program()
    if tool is None:
        raise SystemExit("pdflatex and pdftocairo must be on the PATH.")
    hashes = {}
    for name in names():
        with tempfile.TemporaryDirectory(prefix="texgen-gallery-") as temporary:
            hashes[name] = prepare(name, Path(temporary))
            print(write(COMMITTED / f"{name}.png", draw(name, Path(temporary), tool)))
    write(COMMITTED / LIST, json.dumps(hashes, indent=1) + "\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", bring_up_to_date)
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    remake()
