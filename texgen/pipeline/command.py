"""``texgen timeline`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from texgen.ranges import FloatRange
from texgen.visible import say

PATH = click.Path(path_type=Path)


@click.command(name="timeline")
@click.option("--stages", type=click.IntRange(1), help="Stages of the ring.  [default: 3]")
@click.option("--k-tiles", type=click.IntRange(1), help="K tiles.  [default: 8, or those of --measured]")
@click.option("--k-blocks", type=click.IntRange(1), help="K blocks of a k tile.  [default: 2]")
@click.option("--fault", default="", help="A planted fault: wait, barrier, advance or drain.")
@click.option("--protocol", metavar="FILE", help="A protocol of your own: a .json file, or file.py:function (which is run).")
@click.option("--measured", type=PATH, metavar="FILE", help="Clock stamps to draw beneath: a timeline.json of python -m texgen.measure.timeline.")
@click.option("-o", "--output", type=PATH, multiple=True, help="Where to: the suffix chooses the form, as for render; may be repeated. Without it the figure is shown as text.")
@click.option("--cols", default="", help="Steps to draw: 0:16.")
@click.option("--palette", default="default", show_default=True, help="default, cute, grey, okabe-ito or white.")
@click.option("--title", help="Title in place of the figure's own.")
@click.option("--label", type=click.Choice(["auto", "none"]), default="auto", show_default=True, help="Whether cells are labelled.")
@click.option("--legend/--no-legend", default=True, help="The row of colours.")
@click.option("--caption/--no-caption", default=True, help="The lines of facts below the panels.")
@click.option("--width", "print_width", default="", help="Width in print: 84mm, or '.9\\linewidth' (TikZ and LaTeX).")
@click.option("--theme", default="", help="light, dark, or auto: an SVG or page that follows the reader's setting [pages: auto; the rest: light].")
@click.option("--scale", type=FloatRange(0.05, 20), default=2.0, show_default=True, help="Pixels of a PNG for one of the SVG.")
@click.option("--engine", help="TeX engine: pdflatex, lualatex, xelatex or tectonic.")
@click.option("--templates", type=PATH, multiple=True, help="Folder of templates that go before texgen's own; may be repeated.")
def timeline(
    stages: int | None, k_tiles: int | None, k_blocks: int | None, fault: str, protocol: str | None, measured: Path | None,
    output: tuple[Path, ...], scale: float, engine: str | None, templates: tuple[Path, ...], **look: Any,
) -> None:  # fmt: skip
    """Draw a cp.async pipeline: the stages of its ring down, time across, hazards marked and said on stderr.

    Without --protocol it is that of texgen's sgemm and hgemm kernels.
    """
    from texgen.api import Drawing
    from texgen.figures import FigureOptions
    from texgen.pipeline.build import timeline_spec
    from texgen.pipeline.hazards import by_kind
    from texgen.render.forms import check_suffixes

    check_suffixes(output, templates)  # before any work
    spec = timeline_spec(stages, k_tiles, k_blocks, fault=fault, protocol=protocol, measured=measured)
    drawing = Drawing(spec, FigureOptions.of(**look), templates)
    for line in by_kind(spec.hazards):
        say(f"warning: {line}")
    if not output:
        from texgen.render.text import print_colored

        print_colored(drawing.figure)
    for path in output:
        click.echo(str(drawing.save(path, engine, scale)))
