"""The settings of ``conf.py``, in one table: the code registers them from it and the reference page prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sphinx.config import ENUM

LINKS = ("tikz", "svg", "pdf", "json")
"""What ``texgen_links`` may name."""


@dataclass(frozen=True)
class Setting:
    """One name in ``conf.py``: its default, its types (or the strings that it may be), what a change rebuilds, its meaning."""

    name: str
    default: Any
    types: tuple[type, ...] | tuple[str, ...]
    rebuild: Literal["", "env", "html"]
    help: str

    @property
    def type_names(self) -> str:
        """``bool``, or ``'inline' or 'file'``."""
        return " or ".join(repr(t) if isinstance(t, str) else "None" if t is type(None) else t.__name__ for t in self.types)

    @property
    def accepted(self) -> Any:
        """The types as Sphinx wants them."""
        strings = [t for t in self.types if isinstance(t, str)]
        return ENUM(*strings) if strings else self.types


SETTINGS = (
    Setting("texgen_execute", False, (bool,), "env",
            "Whether pages may run Python: module:callable and file.py:callable targets, and code in a directive's body. "
            "Where it is False such a figure is a warning and a box that says so."),
    Setting("texgen_svg", "inline", ("inline", "file"), "html",
            "HTML: SVG inside the page, whose lines and text follow the theme's colours, or a file shown as an image on a "
            "light card."),
    Setting("texgen_inline_limit", 400_000, (int,), "html",
            "Bytes up to which an SVG goes inside the page; a larger one is a file."),
    Setting("texgen_interactive", False, (bool,), "html",
            "HTML: figures inside the page can be pointed at (:interactive: and :no-interactive: decide for one figure)."),
    Setting("texgen_links", ("tikz", "svg"), (tuple, list), "html",
            "Links under each figure, out of tikz, svg, pdf and json; empty for none. pdf runs TeX once for every "
            "figure that has changed."),
    Setting("texgen_latex", "tikz", ("tikz", "pdf"), "",
            "LaTeX: the TikZ itself, in the document's fonts, or a PDF of each figure."),
    Setting("texgen_engine", None, (str, type(None)), "",
            "TeX engine of the PDFs: pdflatex, lualatex, xelatex or tectonic; None takes the first that is installed."),
    Setting("texgen_templates", (), (tuple, list), "env",
            "Folders of templates that go before texgen's own, relative to conf.py."),
    Setting("texgen_options", {}, (dict,), "env",
            "Options for every figure that its directive does not give, by their names in Python: "
            "{'palette': 'okabe-ito'}."),
    Setting("texgen_results", "results", (str,), "env",
            "Folder of the result files, one folder a GPU, relative to conf.py."),
    Setting("texgen_stamps", True, (bool,), "env",
            "Whether a figure that texgen verify has executed says so, where there is a verify.json."),
)  # fmt: skip
