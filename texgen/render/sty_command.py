"""``texgen sty`` on the command line."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Folder beside the paper, or a file: . writes ./texgen.sty. Without it the text is printed.",
)  # fmt: skip
def sty(output: Path | None) -> None:
    """Write texgen.sty, the LaTeX package with keys, presets and palettes for figures in a document."""
    from texgen.render.files import write
    from texgen.render.sty import sty as text

    if output is None:
        click.echo(text(), nl=False)
        return
    click.echo(str(write(output if output.suffix == ".sty" and not output.is_dir() else output / "texgen.sty", text())))
