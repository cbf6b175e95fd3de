"""``texgen bench`` on the command line."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--only", default="", metavar="NAME", help="Only kernels whose name begins so: sgemm, hgemm_sm90, ...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder of result files, such as docs/results: writes <gpu>/bench.json."
)
@click.option("--samples", type=click.IntRange(1, 1000), default=20, show_default=True, help="Samples a measurement.")
def bench(only: str, output: Path | None, samples: int) -> None:
    """Time texgen's kernels beside torch on a GPU, after a check against float64. Exit status 1 where one is wrong."""
    from texgen.errors import UsageError
    from texgen.kernels import KERNELS
    from texgen.measure import bench as own

    cases = [case for case in own.CASES if case.kernel.startswith(only)]
    if not cases:
        raise UsageError(f"No kernel's name begins with {only!r}: there are {', '.join(KERNELS)}.")
    result = own.bench(cases, samples, progress=lambda line: click.echo(line, err=True))
    for line in own.table(result):
        click.echo(line)
    if output is not None:
        click.echo(str(own.save(result, output)))
    raise click.exceptions.Exit(0 if all(entry["correct"] for entry in result["entries"]) else 1)
