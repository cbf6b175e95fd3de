"""The site's settings. ``make site`` builds it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE)]
os.environ.setdefault("SOURCE_DATE_EPOCH", "1767225600")  # the same bytes every time

import texgen  # noqa: E402
from texgen.pages import pages  # noqa: E402

project = "texgen"
author = "the texgen authors"
release = version = texgen.__version__
language = "en"
copyright = "the texgen authors, Apache-2.0"

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "texgen.sphinxext", "catalogue", "reference", "original", "gallery",
]  # fmt: skip
root_doc = "index"
exclude_patterns = ["_ext", "**/.*", "programs"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "substitution"]
numfig = True
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!texgen(\.|$)).*"), ("py:.*", r"texgen\.(figures|specs|layouts|handout|trace)\..*")]
suppress_warnings = ["epub.unknown_project_files"]
highlight_language = "none"
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

numbers = {"atoms": sum(len(p.entries) for p in pages()), "catalogue-pages": len(pages())}
rst_prolog = "".join(f".. |{name}| replace:: {n:,}\n" for name, n in numbers.items())
myst_substitutions = {name.replace("-", "_"): f"{n:,}" for name, n in numbers.items()}

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "texgen"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b57a4", "color-brand-content": "#0b57a4", "color-foreground-muted": "#5a5c63",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fb4f5", "color-brand-content": "#7fb4f5", "color-foreground-muted": "#a0a2a8",
    },
}  # fmt: skip
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

texgen_execute = True  # the pages' own Python: the programs in docs/programs
texgen_links = ("tikz", "svg")

latex_documents = [("index", "texgen.tex", "texgen", author, "manual")]
letters = {"230A": r"\lfloor", "230B": r"\rfloor", "2192": r"\rightarrow", "2193": r"\downarrow", "00D7": r"\times", "00B7": r"\cdot", "1D40": r"^{\mathsf{T}}"}
latex_elements = {
    "papersize": "a4paper", "extraclassoptions": "openany,oneside", "fontpkg": r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}", "fncychap": "",
    "preamble": "".join(rf"\DeclareUnicodeCharacter{{{code}}}{{\ensuremath{{{tex}}}}}" + "\n" for code, tex in letters.items()),
}  # fmt: skip
latex_show_urls = "footnote"
epub_basename = "texgen"
epub_show_urls = "no"
text_sectionchars = "=-~^"
