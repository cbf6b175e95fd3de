"""``texgen trace``: the command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from texgen.trace.records import Recording
    from texgen.trace.report import Drawer


@click.command(name="trace", epilog="What stands after -- is the program's: texgen trace gemm.py -o report -- --mnk 512,512,256")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=None, help="Folder of the report; PROGRAM-trace if left out.")
@click.option("--arch", help="Architecture to build for (sm_80, sm_90a, ...); chosen from the program if left out.")
@click.option("--launches", type=click.IntRange(0), default=None, help="End at this launch (1); 0 goes on to the program's end.")
@click.option("--partitions", is_flag=True, help="Show every partition_S/D/A/B/C, retile and local_tile result as a table.")
@click.option("--timeout", type=float, default=None, help="Seconds that the program may take; no limit if left out.")
@click.option("--templates", type=click.Path(path_type=Path), multiple=True, help="Folder of templates that go before texgen's own; may be repeated.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(
    program: str, arguments: tuple[str, ...], output: Path | None, arch: str | None, launches: int | None,
    partitions: bool, timeout: float | None, templates: tuple[Path, ...],
) -> None:  # fmt: skip
    """RUN a CuTe DSL program and write a report of every tiled object that it builds.

    Tracing runs PROGRAM (program.py, module:callable or file.py:callable) with ARGUMENTS, so trace only what you would
    run. With no CUDA device its kernels are compiled and not launched, and it ends at the first launch. Its output and
    its exit status are those of the program. The report is index.html, report.tex and trace.json.
    """
    from texgen.trace.run import trace as run

    drawer: list[Drawer] = []

    def watch(recording: Recording) -> None:
        from texgen.trace.report import Drawer

        if not drawer:
            drawer.append(Drawer(tuple(str(t) for t in templates)))
        drawer[0].watch(recording)

    made = run(program, list(arguments), arch=arch, launches=launches, timeout=timeout, watch=watch)
    from texgen.trace.report import Drawer, write_report

    folder = output or Path(Path(program.rpartition(":")[0] or program).stem + "-trace")
    written = write_report(made, folder, partitions, drawer[0] if drawer else Drawer(tuple(str(t) for t in templates)))
    count = len(made.recording.objects)
    ending = {"launch": "ended at its launch", "end": "ran to its end", "error": "ended with an error"}[made.ended]
    print(
        f"texgen: {program} {ending} (exit status {made.status}); {count} object{'' if count == 1 else 's'} in "
        f"{written[2]}",
        file=sys.stderr,
    )  # fmt: skip
    if not count and made.ended == "end":
        print(
            "texgen: it built no CuTe object. Give it the arguments with which it does, or draw what one of its functions returns: "
            "texgen render file.py:function",
            file=sys.stderr,
        )
    if made.error and made.ended == "error":
        print(f"texgen: {made.error}", file=sys.stderr)
    raise click.exceptions.Exit(made.status)
