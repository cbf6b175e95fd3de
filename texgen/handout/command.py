"""``texgen handout``: the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from texgen.visible import say

PATH = click.Path(path_type=Path)


@click.command(name="handout")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("-o", "--output", type=PATH, required=True, help="The sheet, .pdf or .tex; the key is written beside it, sheet-key.pdf.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another sheet; the same seed, the same bytes.")
@click.option("--questions", type=click.IntRange(0, 40), default=8, show_default=True, help="Questions for each target.")
@click.option("--blanks", type=click.IntRange(0, 60), default=6, show_default=True, help="Cells to fill in, with letters, for each target.")
@click.option("--difficulty", default="mixed", show_default=True, help="easy, medium, hard or mixed.")
@click.option("--lang", default="en", show_default=True, help="Language of the sentences: en or zh.")
@click.option("--strings", type=PATH, help="Your own catalogue of sentences (TOML, the keys of en.toml).")
@click.option("--print-strings", is_flag=True, is_eager=True, expose_value=False, callback=lambda c, _, v: _print_strings(c, v),
              help="Print the English catalogue, to translate it, and end.")  # fmt: skip
@click.option("--font", default="", help="Font for characters that TeX's own lack, such as Chinese.")
@click.option("--paper", default="a4", show_default=True, help="a4 or letter.")
@click.option("--title", help="Title of the sheet.")
@click.option("--operand", default="", help="Operands to draw: A, B, C, AB, ... (S, D for a copy).")
@click.option("--engine", help="TeX engine: pdflatex, lualatex, xelatex or tectonic.")
@click.option("--templates", type=PATH, multiple=True, help="Folder of templates that go before texgen's own; may be repeated.")
def handout(
    targets: tuple[str, ...], output: Path, engine: str | None, templates: tuple[Path, ...], seed: int, questions: int, blanks: int,
    difficulty: str, lang: str, strings: Path | None, font: str, paper: str, title: str | None, operand: str, **reading: Any,
) -> None:  # fmt: skip
    """Make a sheet of exercises about TARGETs, and its key.

    Each target has a figure with cells left blank and questions made from its tables; the key has the same figure filled
    in and every answer worked.
    """
    from texgen.handout.api import make, save
    from texgen.handout.sheet import SheetOptions

    options = SheetOptions(seed, questions, blanks, difficulty, lang, strings, paper, title, operand, font)
    made = make(targets, options, **reading)
    for warning in made.warnings:
        say(f"warning: {warning}")
    for path in save(made, output, engine, templates):
        click.echo(str(path))


def _print_strings(context: click.Context, wanted: bool) -> None:
    if wanted:
        from texgen.handout.catalogue import FALLBACK, FOLDER

        click.echo((FOLDER / f"{FALLBACK}.toml").read_text(encoding="utf-8"), nl=False)
        context.exit()
