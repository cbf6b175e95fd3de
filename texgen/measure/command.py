"""``texgen verify`` on the command line."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET ...]")
@click.option("--emulate", is_flag=True, help="Through NumPy, without a GPU.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder of result files, such as docs/results: writes <gpu>/verify.json."
)
@click.option("--list", "listed", is_flag=True, help="Print the targets that it runs without any named, and run nothing.")
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True, help="Processes that share the GPU.")
def verify(targets: tuple[str, ...], emulate: bool, output: Path | None, listed: bool, jobs: int) -> None:
    """Execute figures: load, run and store through their tables, and see that a swapped entry is noticed.

    TARGET is an atom's name with its tiling in one argument ('SM80_16x8x16_F32F16F16F32_TN --atom-layout 2,2,1'),
    module:callable, file.py:callable or a .json spec of a copy; without any, all that the site shows. Exit status 1 where
    one failed.
    """
    from texgen.measure import verify as own

    if listed:
        for target in own.targets():
            click.echo(str(target))
        return
    wanted = [own.Target.parse(t) for t in targets] or own.targets()
    raise click.exceptions.Exit(own.run(wanted, emulate, output, jobs, click.echo))
