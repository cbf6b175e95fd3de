"""``.. generated:: WHAT``: the parts of the reference that are made from the code, so that they cannot differ from it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from catalogue import text_of
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import texgen
from texgen import cli
from texgen.batch.listing import KEYS as BATCH_KEYS
from texgen.render import context as contexts
from texgen.render.environment import home
from texgen.render.svg import svg_context
from texgen.sources import atoms_diff
from texgen.sphinxext.directives import MmaDirective
from texgen.sphinxext.settings import SETTINGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
OLD, NEW = DOCS / "data" / "atoms-4.5.3.json.gz", Path(texgen.__file__).parent / "sources" / "atoms.json"
SAMPLE = "SM80_16x8x16_F32F16F16F32_TN"
SHOWN = 12

FIGURE = {
    "kind": "mma, copy, layout, tv, chain or timeline", "name": "the target's name", "title": "the line above the panels, may be empty",
    "alt": "the alternative text", "aspect": "width of a cell over its height", "label_size": "height of a label's font, in cells",
    "text_size": "height of the font of titles and axes, in cells", "palette": "fills, as six hexadecimal digits each",
    "theme": "light, dark or auto", "print_width": "width for print, empty for its own",
    "legend_title": "what the colours mean", "x0": "left edge, in cells", "y0": "top edge, in cells", "width": "in cells", "width_cells": "width in heights of a cell",
    "height": "in cells", "cell_mm": "height of a cell in millimetres", "left": "where titles and lines begin, in cells",
    "title_y": "base line of the title", "legend_y": "base line of the legend",
    "extents": "[(width, height) of panels, title, legend, caption], in heights of a cell", "label_room": "how many times larger labels would still fit their cells", "title_room": "the same of titles of panels", "tick_room": "and of numbers and names along panels", "name_room": "and of names of rows where the numbers across are left out", "tick_width": "width of the longest number or name left of the panels, and of its place, in heights of a cell", "less": "what to draw less of, in words", "legend_height": "height of the legend's rows, in cells", "ink": "colour of labels", "dim": "fill of greyed cells",
    "dim_ink": "colour of greyed labels", "memory": "fill of operands that are read from memory",
}  # fmt: skip
PANEL = {
    "key": "A, B, C, S, D, or another short name, also the name of its coordinates in TikZ", "title": "the line above it",
    "x": "left edge, in cells of the figure", "y": "top edge", "scale": "how many times larger its cells are",
    "text_size": "height of its titles' font, in its own cells", "width": "columns", "height": "rows", "row_axis": "letter of the rows",
    "column_axis": "letter of the columns", "origin": "(column, row) of the cell of index 0, negative in a cropped panel",
    "row_step": "(column, row) that one more row moves", "column_step": "(column, row) that one more column moves",
    "fills": "[(name of a fill, [(row, column, height, width), …]), …]: rectangles of one colour",
    "marks": "cells that several threads hold, row by row, [[(row, column), …], …]",
    "label_rows": "row → line → [(label, greyed), …]", "bars": "parts of a row in colour, with their names", "blocks": "outlined groups with their names",
    "label_run": "(rows, columns) of labels that TeX can set in one piece", "tick_run": "the same of the numbers beside and above",
    "lined": "whether the grid is drawn", "down": "row → its number, empty where none is shown", "across": "column → its number, empty where none is shown",
    "down_ticks": "[(row, number), …]", "across_ticks": "[(column, number), …]", "corner": "where the letters of the axes stand",
    "title_y": "base line of the title", "note_size": "font of a note in that of the panel's text", "note_lines": "[(words across a panel without labels, base line), …]",
}  # fmt: skip
TOP = {
    "figure": "the whole figure, see below", "panels": "list of panels, see below",
    "legend": "[{fill, text}, …]", "lines": "[(line, base line in cells), …]; a line has text and code (whether it is a layout)",
    "version": "texgen's version",
}  # fmt: skip
SVG_TOP = {
    "id": "begins every id, ends in a hash of the figure", "fonts": "text and code: lists of fonts", "cw": "width of a cell in pixels",
    "ch": "height of a cell in pixels", "px_width": "width of the picture", "px_height": "height of the picture",
    "svg_width": "width that the file names, as print_width has it", "svg_height": "height to it",
    "text_px": "height of the font of titles", "label_px": "height of the font of labels", "left_px": "where titles begin",
    "title_px": "base line of the title", "legend_base": "base line of the legend", "legend_start": "where the legend begins",
}  # fmt: skip
SVG_PANEL = {
    "text_px": "height of the font of its titles", "px": "left edge", "py": "top edge", "pw": "width", "ph": "height",
    "paths": "[(name of a fill, colour, path), …]", "grid": "path of the grid", "mark_path": "path of the marks",
    "labels": "[(y, [(x, escaped label, greyed), …]), …]",
}  # fmt: skip
CSS = {
    "texgen": "the SVG itself", "txg-page": "the ground", "txg-ink": "all text outside cells", "txg-panel": "a panel; data-panel names it",
    "txg-labels": "labels of cells", "txg-grid": "the grid", "txg-frame": "the frame of a panel", "txg-shared": "marks of shared cells",
    "txg-block": "outline of a block", "txg-block-name": "name of a block", "txg-legend": "the legend", "txg-axis": "numbers along the axes",
    "txg-title": "titles", "txg-caption": "lines of facts", "txg-code": "layouts among them", "txg-note": "words across a panel",
}  # fmt: skip
MACRO = re.compile(r"\\providecommand\*(\\txg\w+)(\[1\])?\{(.*)\}% ?(.*)$", re.MULTILINE)


def commands() -> dict[str, Any]:
    """Every command with its arguments and options, from click."""
    made = []
    for name, command in cli.app.commands.items():
        context = click.Context(command, info_name=f"texgen {name}")
        options = [(_flags(o), _help(o)) for o in command.params if isinstance(o, click.Option)]
        usage = command.get_usage(context).removeprefix("Usage: ")
        made.append({"name": name, "usage": " ".join(usage.split()), "help": _sentence(command.help or ""), "options": options})
    return {"commands": made, "target": " ".join(cli.TARGET_HELP.split()), "about": cli.app.help}


def _flags(option: click.Option) -> str:
    names = ", ".join(option.opts) + "".join(f" / {o}" for o in option.secondary_opts)
    if option.is_flag:
        return names
    return f"{names} {option.make_metavar(click.Context(cli.app))}"


def _help(option: click.Option) -> str:
    default = f" Default: {option.default}." if option.show_default and option.default is not None else ""
    return _sentence((option.help or "") + default)


def _sentence(text: str) -> str:
    return " ".join(text.split()).replace("\\", r"\\").replace("*", r"\*").replace("|", r"\|").replace("_", r"\_")


@cache
def option_help() -> dict[str, str]:
    """Help of the command line's options by their names in directives."""
    found = {}
    for decorator in (*cli.READ_OPTIONS, *cli.FIGURE_OPTIONS):
        option = next(p for p in decorator(click.Command("x", callback=lambda: None)).params if isinstance(p, click.Option))
        for opt in (*option.opts, *option.secondary_opts, (option.name or "").replace("_", "-")):
            found[opt.lstrip("-")] = _sentence(option.help or "")
    return found


FRAME = {
    "caption": "Caption of the figure; roles and mathematics work in it.", "name": "Label for ``:numref:`` and ``:ref:``.",
    "alt": "Alternative text in place of the one made from the figure.", "width": "Width: ``80%``, ``12cm``, ``400`` (pixels).",
    "align": "left, center or right.", "class": "Classes for the figure.",
    "no-caption": "Leave out the lines of facts inside the picture.", "no-swizzle": "Draw a swizzled layout after the swizzle alone.",
    "animate": "Build the figure up in the page, as ``slides``: thread, value, warp, k or offset. LaTeX shows it finished.",
    "stamp": "Say also that a figure was not executed, and why.", "no-stamp": "Do not say that it was executed.",
    "interactive": "Make the figure one that can be pointed at, in HTML.", "no-interactive": "Leave it static where texgen_interactive is True.",
}  # fmt: skip


def directives() -> dict[str, Any]:
    """The options of the directives."""
    known = option_help()
    rows = [(name, FRAME.get(name) or known.get(name, "")) for name in MmaDirective.option_spec]
    return {"rows": [row for row in rows if row[0] not in FRAME], "frame": [row for row in rows if row[0] in FRAME]}


def settings() -> dict[str, Any]:
    return {"settings": [(s.name, repr(s.default), s.type_names, _sentence(s.help)) for s in SETTINGS]}


def template_names() -> dict[str, Any]:
    """What templates get, with the keys that ``texgen.render.context`` really gives."""
    figure = texgen.figure(SAMPLE).figure
    plain, svg = contexts.context(figure), svg_context(figure)
    tables = [
        ("Every template", _described(TOP, plain)),
        ("figure", _described(FIGURE, plain["figure"])),
        ("Each of panels", _described(PANEL, plain["panels"][0])),
        ("In figure.svg.j2 also", _described(SVG_TOP, {k: v for k, v in svg.items() if k not in plain})),
        ("Each of panels, in figure.svg.j2 also", _described(SVG_PANEL, {k: v for k, v in svg["panels"][0].items() if k not in plain["panels"][0]})),
    ]  # fmt: skip
    return {"tables": tables}


def _described(known: dict[str, str], given: dict[str, Any]) -> list[tuple[str, str]]:
    """The names that are really given; a test holds that none lacks its description."""
    return [(name, known[name]) for name in given if name in known]


def macros() -> dict[str, Any]:
    """The macros that an author may set, from ``macros.tikz.j2``, with the defaults of a figure."""
    text = texgen.figure(SAMPLE).tikz()
    found = [(name, default, about) for name, arguments, default, about in MACRO.findall(text) if not arguments]
    colors = re.findall(r"\\providecolor\{(txg\w+)\}\{HTML\}\{(\w+)\}", text)
    return {"macros": found, "colors": colors, "css": list(CSS.items())}


def templates() -> dict[str, Any]:
    """The templates that draw figures and parts of pages, with the comment that each begins with."""
    rows = []
    for path in sorted(home().glob("*.j2")):
        about = ABOUT_TEMPLATES.get(path.name, "")
        if not about and (comment := re.match(r"(?:\{#-?|<#-?)(.*?)(?:-?#\}|-?#>)", path.read_text(encoding="utf-8"), re.DOTALL)):
            about = re.split(r"(?<=\.) |: ", " ".join(comment[1].split()))[0].rstrip(".") + "."
        if about and not path.name.startswith("site_"):
            rows.append((path.name, about))
    return {"templates": rows}


ABOUT_TEMPLATES = {
    "document.tex.j2": "A standalone LaTeX document around a figure.", "figure.svg.j2": "A figure as SVG.",
    "figure.html.j2": "A page with one figure that can be pointed at.",
    "interactive.css.j2": "The style of figures that can be pointed at.", "interactive.js.j2": "Their script.",
    "figure.tikz.j2": "A figure as TikZ.", "figure.txt.j2": "A figure as plain text.",
    "sphinx_failure.html.j2": "The box in place of a figure that failed, in HTML.",
    "sphinx_failure.tex.j2": "The same in LaTeX.", "sphinx_links.html.j2": "The links under a figure.",
    "sphinx_picture.html.j2": "A picture in a page.", "sphinx_picture.tex.j2": "A picture in LaTeX.",
    "sphinx_preamble.tex.j2": "What LaTeX needs before the first picture.", "sphinx_style.css.j2": "The style sheet of figures.",
    "sphinx_chart.html.j2": "A chart of results in a page.", "sphinx_chart.tex.j2": "The same with pgfplots, in LaTeX.",
    "macros.tikz.j2": "Sizes, fonts and colours of TikZ.", "texgen.sty.j2": "The LaTeX package with keys and presets.",
}  # fmt: skip
EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "mma": ("SM61_DP4A", {}), "copy": ("UniversalCopy<uint64_t>", {}),
    "layout": ("S<1,0,1> o 0 o (2,2):(2,1)", {"bits": 16}), "tv": ("(2,2):(2,1)", {"tv": True, "tile": "2,2"}),
}  # fmt: skip
KEYS = {
    "schema": "version of this form, 1", "kind": "mma, copy, tv or layout", "name": "what it is called", "arch": "architecture, may be empty",
    "source": "where the layouts come from", "tile_mnk": "M, N, K of the whole tile", "atom_mnk": "M, N, K of one atom",
    "thr_layout_vmnk": "the layout of threads over (V, M, N, K)", "permutation_mnk": "the permutation, one entry a mode",
    "A": "operand A: index m + M*k", "B": "operand B: index n + N*k", "C": "operand C: index m + M*n",
    "S": "source: index row + rows*column", "D": "destination: the same", "tiler": "the tiler in text", "tile": "rows and columns",
    "layout": "the layout in text", "dtype": "type of an element", "memory": "rmem (left out), smem, tmem or gmem",
    "tv": "tv[thread][value] → index in the tile, columns first", "shape": "shape of the layout", "bits": "width of an element",
    "swizzle": "B, M, S", "unit": "what the swizzle counts in: elements or bytes", "offsets": "offsets[row][column], the true places",
    "plain": "offsets before the swizzle", "coords": "one array a coordinate, for a layout that gives coordinates",
    "notes": "remarks", "warnings": "what is odd about it",
}  # fmt: skip


def schema() -> dict[str, Any]:
    """The JSON form: keys by kind, with an example of each."""
    kinds = []
    for kind, (target, options) in EXAMPLES.items():
        text = texgen.figure(target, **options).json()
        data = json.loads(text)
        names = list(data) + [k for value in data.values() if isinstance(value, dict) for k in value]
        rows = [(key, KEYS[key]) for key in dict.fromkeys(names)]
        kinds.append({"kind": kind, "target": target, "rows": rows, "text": text.rstrip().splitlines()})
    return {"kinds": kinds}


def differences() -> dict[str, Any]:
    """The catalogue of an older DSL beside the one of this site."""
    found = atoms_diff.diff(OLD, NEW)
    groups: dict[str, list[int]] = {}
    for name, count in found.added:
        groups.setdefault(re.sub(r"_\d+x(\d+|N)x\d+", "", name), []).append(count)
    return {"found": found, "groups": [(name, len(c), sum(c)) for name, c in groups.items()], "old": OLD.name}


def signatures() -> dict[str, Any]:
    """The functions of the package's face with their signatures, for the page that explains them."""
    return {"rows": [(name, str(inspect.signature(getattr(texgen, name)))) for name in ("read", "figure", "render_tikz")]}


def batch() -> dict[str, Any]:
    """The keys of a batch's list that are no option of a figure."""
    return {"rows": [(name, help_text.replace("`", "``")) for name, help_text in BATCH_KEYS.items()]}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "commands": commands, "directives": directives, "settings": settings, "context": template_names, "macros": macros,
    "batch": batch, "templates": templates, "schema": schema, "differences": differences,
}  # fmt: skip


class Generated(SphinxDirective):
    """``.. generated:: commands``: the text of ``templates/site_commands.rst.j2`` filled from the code."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        what = self.arguments[0]
        text = text_of(f"site_{what}.rst.j2", **MAKERS[what]())
        for file in (cli.__file__, str(home() / f"site_{what}.rst.j2"), __file__):
            self.env.note_dependency(file)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
