"""Small Sphinx projects for the tests: written, built, looked at."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sphinx.testing.util import SphinxTestApp

PROJECTS = Path(__file__).parent / "sphinx_projects"
ATOM = "SM80_16x8x16_F32F16F16F32_TN"


@dataclass
class Built:
    """What one build gave."""

    app: SphinxTestApp
    out: Path
    said: str
    warnings: str
    files: list[str]
    """The names of the figures' files in the output."""

    @property
    def drawn(self) -> int:
        """How many figures it drew."""
        return int(self.app.env.get_domain("texgen").drawn)

    def text(self, name: str) -> str:
        """A file of the output."""
        return (self.out / name).read_text(encoding="utf-8")

    def figures(self, name: str = "index.html") -> list[str]:
        """The figure elements of a page."""
        return re.findall(r"<figure.*?</figure>", self.text(name), re.DOTALL)


@dataclass
class Site:
    """A project in a folder, whose builders share their doctrees."""

    folder: Path
    conf: str = ""
    apps: list[SphinxTestApp] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write("conf.py", f'project = "site"\nextensions = ["texgen.sphinxext"]\nshow_warning_types = True\n{self.conf}\n')

    def write(self, name: str, text: str) -> Path:
        """A source file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def page(self, *directives: str, name: str = "index.rst") -> Path:
        """A page of reStructuredText with a title and those blocks."""
        return self.write(name, "Page\n====\n\n" + "\n\n".join(directives) + "\n")

    def build(self, builder: str = "html", parallel: int = 0, **settings: Any) -> Built:
        """Run a builder."""
        app = SphinxTestApp(
            builder, srcdir=self.folder, builddir=self.folder / "_build", confoverrides=settings, parallel=parallel
        )
        self.apps.append(app)
        try:
            app.build()
        finally:
            app.cleanup()
        out = Path(app.outdir)
        files = sorted(p.name for p in (out / "_texgen").glob("*"))
        return Built(app, out, plain(app.status.getvalue()), plain(app.warning.getvalue()), files)


def copied(name: str, folder: Path) -> Site:
    """A project of ``tests/sphinx_projects``, copied."""
    shutil.copytree(PROJECTS / name, folder)
    site = Site.__new__(Site)
    site.folder, site.conf, site.apps = folder, "", []
    return site


def plain(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
