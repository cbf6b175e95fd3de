"""``texgen render --batch``: its options, its progress, and what it says at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from texgen.errors import TexgenError, UsageError
from texgen.ranges import FloatRange
from texgen.visible import json_text, say

if TYPE_CHECKING:
    from texgen.batch.run import Summary

PATH = click.Path(path_type=Path)
BATCH_OPTIONS = (
    click.option("--batch", type=PATH, metavar="LIST", help="Draw every figure of a list (.toml or .json) in place of one TARGET."),
    click.option("-j", "--jobs", type=click.IntRange(1, 1024), help="With --batch: processes; one a core if left out."),
    click.option("--out", type=PATH, help="With --batch: folder of the outputs; that of the list if left out."),
    click.option("--shard", default="", metavar="I/N", help="With --batch: only the I-th of N parts of the list (3/16)."),
    click.option("--dask", default="", metavar="ADDRESS", help="With --batch: work on a dask scheduler (tcp://host:8786)."),
    click.option("--item-limit", type=FloatRange(0, 86400, min_open=True), default=600.0, show_default=True, help="With --batch: seconds for one figure."),
    click.option("--share/--no-share", default=True, help="With --batch: several small TeX figures in one run of the engine."),
    click.option("--report", type=PATH, help="With --batch: write what failed and what was remarked to a .json file."),
)  # fmt: skip
NAMES = ("batch", "jobs", "out", "shard", "dask", "item_limit", "share", "report")
SHOWN_NAMES = 3
EVERY = 2.0
"""Seconds between two lines of progress where there is no terminal."""


def run_batch(given: dict[str, Any], overrides: dict[str, Any], templates: tuple[Path, ...]) -> int:
    """The command: draws the list, reports, and gives the exit status, 1 if any figure failed.

    ``given`` has the values of BATCH_OPTIONS, ``overrides`` the options of figures that stand on the command line.
    """
    from texgen.batch.listing import read_list, shard
    from texgen.batch.pool import Dask, Local, Pool
    from texgen.batch.run import Summary, run
    from texgen.batch.stamps import Stamps

    listing: Path = given["batch"]
    items = read_list(listing, overrides, [f for f in templates if f.is_dir()])
    whole = len(items)
    if given["shard"]:
        items = shard(items, given["shard"])
    for folder in (f for f in templates if not f.is_dir()):
        raise TexgenError(f"The template folder {folder} does not exist.")
    folders = tuple(str(t.resolve()) for t in templates)
    base = listing.resolve().parent
    stamps = Stamps(given["out"].resolve() if given["out"] else base, base, folders)
    jobs = given["jobs"] or _cores()
    made = Summary(total=len(items))
    pool: Pool = Dask(given["dask"]) if given["dask"] else Local(jobs)
    try:
        with _shown(made) as progress:
            run(
                items, stamps, pool, templates=folders, limit=given["item_limit"], share=given["share"], summary=made,
                progress=progress,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit) as error:
        left = made.total - made.done - len(made.failed)
        print(
            f"texgen: stopped with {made.done:,} of {made.total:,} figures done; each is whole. Run the same command to draw "
            f"the other {left + len(made.failed):,}.", file=sys.stderr,
        )  # fmt: skip
        return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 130
    finally:
        pool.close()
        if given["report"]:
            _report(made, given["report"])
    _say_end(made, f" (part {given['shard']} of {whole:,})" if given["shard"] else "")
    return 1 if made.failed else 0


def check_alone(context: click.Context) -> None:
    """Raise UsageError for options of a batch without --batch."""
    for name in NAMES[1:]:
        if _given(context, name):
            raise UsageError(f"--{name.replace('_', '-')} goes with --batch LIST.")


def overrides(context: click.Context, names: tuple[str, ...]) -> dict[str, Any]:
    """Those options that stand on the command line."""
    return {name: context.params[name] for name in names if _given(context, name)}


def _given(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _shown(made: Summary) -> Iterator[Callable[[Summary], None]]:
    """A progress bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("figures", total=made.total)

        def advance(now: Summary) -> None:
            failed = f", {len(now.failed):,} failed" if now.failed else ""
            bar.update(task, completed=now.done + len(now.failed), total=now.total, description=f"figures{failed}")

        yield advance


def _lines() -> Callable[[Summary], None]:
    last = time.monotonic()

    def say(now: Summary) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            failed = f", {len(now.failed):,} failed" if now.failed else ""
            print(f"texgen: {now.done + len(now.failed):,} of {now.total:,} figures{failed}", file=sys.stderr)

    return say


def _say_end(made: Summary, part: str) -> None:
    for remark, names in made.remarks.items():
        more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
        say(f"{', '.join(names[:SHOWN_NAMES])}{more}: {remark}")
    for outcome in made.failed:
        say(f"failed: {outcome.item}: {outcome.error}")
    parts = [f"{made.drawn:,} drawn", f"{made.current:,} as they were", *([f"{len(made.failed):,} failed"] if made.failed else [])]
    click.echo(f"{made.total:,} figure{'' if made.total == 1 else 's'}{part}: {', '.join(parts)}")


def _report(made: Summary, path: Path) -> None:
    from texgen.render.files import write

    failed = [
        {"output": o.item.name, "target": o.item.target, "error": o.error, **({"detail": o.detail} if o.detail else {})}
        for o in made.failed
    ]
    data = {"total": made.total, "drawn": made.drawn, "current": made.current, "failed": failed, "remarks": made.remarks}
    write(path, json_text(data, indent=1) + "\n")
