"""The command line: each command is a few lines over the library, heavy imports happen inside."""

from __future__ import annotations

import difflib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from texgen.batch.command import BATCH_OPTIONS, check_alone, overrides, run_batch
from texgen.batch.command import NAMES as BATCH_NAMES
from texgen.chains.command import CHAIN_OPTIONS, take_chain
from texgen.errors import TexgenError, UsageError
from texgen.handout.command import handout
from texgen.measure.bench_command import bench
from texgen.measure.command import verify
from texgen.pipeline.command import timeline
from texgen.ranges import FloatRange
from texgen.render.sty_command import sty
from texgen.several import plain_warnings
from texgen.trace.command import trace
from texgen.visible import say

TARGET_HELP = """TARGET is an atom's name (SM80_16x8x16_F32F16F16F32_TN), a C++ type ('TiledMMA<...>'), layout text
('(8,8):(8,1)'), module:callable, file.py:callable, or a .json spec."""
PATH = click.Path(path_type=Path)

READ_OPTIONS = (
    click.option("--atom-layout", help="Atoms in M,N,K: 2,2,1 or (2,2,1):(2,1,0). For a copy: the thread layout."),
    click.option("--tile", help="Permutation of the tile: 32,32,16 or (32,(8,2,2):(1,16,8),16); with --tv the tile."),
    click.option(
        "--val-layout", help="What CUTLASS before 3.4 called ValLayoutMNK: 1,2,1. For a copy: the value layout."
    ),
    click.option("--tv", is_flag=True, help="The layout text is a thread-value layout over --tile M,N."),
    click.option(
        "--bits",
        type=click.IntRange(0, 1024),
        default=0,
        help="Width of an element in bits (16 for f16); places swizzles of bytes.",
    ),
    click.option("--dtype", default="", help="Type of an element (f16, f32, e4m3, ...), in place of --bits."),
    click.option(
        "--swizzle-unit", type=click.Choice(["elements", "bytes"]), default=None, help="What a swizzle counts in."
    ),
    click.option("--arch", help="Architecture for a callable (sm_80, sm_90a, ...); chosen from the op if left out."),
    click.option("--live", is_flag=True, help="Build a named atom with the installed DSL instead of the catalogue."),
    click.option(
        "--allow-holes", is_flag=True, help="Take a table that leaves cells without an owner, or has uneven owners."
    ),
    click.option(
        "--timeout",
        type=FloatRange(0, 86400, min_open=True),
        default=120.0,
        show_default=True,
        help="Seconds that a callable may take.",
    ),
)
FIGURE_OPTIONS = (
    click.option("--operand", default="", help="Operands to draw: A, B, C, AB, ... (S, D for a copy)."),
    click.option("--highlight", default="", help="Owners to keep in colour: T5,T37 or V0 or T5V2 or T0-T3 or W1."),
    click.option("--rows", default="", help="Rows of the picture to draw: 0:16."),
    click.option("--cols", default="", help="Columns of the picture to draw: 0:16."),
    click.option("--palette", default="default", show_default=True, help="default, cute, grey, okabe-ito or white."),
    click.option("--color-by", default="", help="thread, value, warp or quad; of a chain also matrix."),
    click.option("--title", help="Title in place of the target's name."),
    click.option("--label", default="auto", show_default=True, help="auto, full, thread, value, warp, quad or none."),
    click.option("--overview", is_flag=True, help="The whole tile by warps, and one block in full."),
    click.option("--swizzle/--no-swizzle", default=None, help="A swizzled layout as before beside after."),
    click.option(
        "--banks",
        default="",
        help="Shared-memory banks of a layout under one access: column:0, row:0@16 (16 bytes a lane), ldmatrix, ldmatrix.trans:8,0, or lanes as a layout.",
    ),
    click.option("--legend/--no-legend", default=True, help="The row of colours."),
    click.option(
        "--width", "print_width", default="", help="Width in print: 84mm, or '.9\\linewidth' (TikZ and LaTeX)."
    ),
    click.option("--theme", default="", help="light, dark, or auto: an SVG or page that follows the reader's setting [pages: auto; the rest: light]."),
    click.option(
        "--slides",
        default="",
        help="Build it up step by step: thread, value, warp, k (of an MMA) or offset (of a layout); as frames of beamer (.tikz .tex .pdf), as an animation (.svg).",
    ),
    click.option(
        "--steps", type=click.IntRange(0), default=0, help="How many steps at most; threads share them. 0 is up to 64."
    ),
    click.option("--caption/--no-caption", default=True, help="The lines of facts around the panels."),
)


def with_options(options: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Several click options as one decorator, in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Commands(click.Group):
    """Unknown commands that look like targets get the command that draws them."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.commands, n=1)
            hint = f"texgen {near[0]}" if near else f"texgen render {args[0]!r} -o figure.svg"
            raise click.UsageError(f"There is no command {args[0]!r}. Did you mean: {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="texgen", prog_name="texgen")
def app() -> None:
    """Figures you can trust of the layouts in CuTe DSL kernels."""


@app.command(epilog=TARGET_HELP)
@click.argument("target", required=False)
@click.option(
    "-o",
    "--output",
    type=PATH,
    multiple=True,
    help="Where to: the suffix .tikz .tex .pdf .svg .html .png .txt .json chooses the form; may be repeated. Without it the figure is shown as text.",
)
@with_options(FIGURE_OPTIONS)
@with_options(READ_OPTIONS)
@with_options(CHAIN_OPTIONS)
@click.option(
    "--scale",
    type=FloatRange(0.05, 20),
    default=2.0,
    show_default=True,
    help="Pixels of a PNG for one of the SVG.",
)
@click.option("--engine", help="TeX engine: pdflatex, lualatex, xelatex or tectonic.")
@click.option(
    "--templates", type=PATH, multiple=True, help="Folder of templates that go before texgen's own; may be repeated."
)
@with_options(BATCH_OPTIONS)
@click.pass_context
def render(
    context: click.Context, /, target: str | None, output: tuple[Path, ...], engine: str | None, scale: float,
    templates: tuple[Path, ...], **options: Any,
) -> None:  # fmt: skip
    """Draw a target and write it as TikZ, LaTeX, PDF, SVG, HTML that can be pointed at, PNG, text or JSON."""
    chain = take_chain(options, target)
    batch = {name: options.pop(name) for name in BATCH_NAMES}
    if batch["batch"] is not None:
        if chain is not None:
            raise UsageError("--chain does not go with --batch: give an entry of the list chain = [COPY, MMA], with fill, smem and at.")
        if target is not None or output:
            raise UsageError("--batch takes targets and outputs from its list: leave TARGET and -o out.")
        given = overrides(context, (*options, "engine", "scale"))
        raise click.exceptions.Exit(run_batch(batch, given, templates))
    check_alone(context)
    if target is None and chain is None:
        raise click.UsageError("Missing argument 'TARGET'.", context)
    from texgen.api import drawings
    from texgen.figures import FigureOptions
    from texgen.render.forms import check_suffixes

    check_suffixes(output, templates, options["slides"])  # before any work
    if options["slides"] and not output:
        raise UsageError("--slides needs a file that shows steps: -o talk.pdf (.tikz, .tex, .pdf or .svg).")
    look = FigureOptions.of(**{k: options.pop(k) for k in FigureOptions.__dataclass_fields__ if k in options})
    found = _read(target, **options) if chain is None else _read(chain.spec(look.operand, options))
    made = drawings(found, look, templates)
    if not output:
        _show(made)
    for path in output:
        written = made.save(path, engine, scale)
        for one in written if isinstance(written, list) else [written]:
            click.echo(str(one))


@app.command(epilog=TARGET_HELP)
@click.argument("target")
@click.option("-o", "--output", type=PATH, help="A file instead of the screen.")
@with_options(READ_OPTIONS)
def table(target: str, output: Path | None, **options: Any) -> None:
    """Print a target's tables as JSON: which element each (thread, value) holds."""
    from texgen.render.files import write
    from texgen.spec_json import all_to_json

    text = all_to_json(_read(target, **options))
    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(str(write(output, text)))


@app.command()
@click.argument("pattern", default="")
@click.option(
    "--all", "every", is_flag=True, help="One line a name; otherwise atoms that differ in N alone share a line."
)
@click.option(
    "--save", type=PATH, help="Make the catalogue's data file anew from the installed DSL and tensor-layouts."
)
@click.option("--source", multiple=True, help="With --save: make only this source's atoms anew and keep the file's others; may be repeated.")
@click.option("--diff", type=PATH, nargs=2, metavar="A B", help="What changed between two saved catalogues.")
def atoms(pattern: str, every: bool, save: Path | None, source: tuple[str, ...], diff: tuple[Path, Path] | None) -> None:
    """List the atoms that can be named, with architecture and source. PATTERN is a part of a name, or a glob ('SM80_*F64*')."""
    if diff is not None:
        from texgen.sources import atoms_diff

        for line in atoms_diff.lines(atoms_diff.diff(*diff)):
            click.echo(line)
        return
    if source and save is None:
        raise UsageError("--source goes with --save FILE: it says which of the file's atoms are made anew.")
    if save is not None:
        from texgen.sources.atoms_save import save as make

        click.echo(f"{make(save, source)} families of atoms written to {save}")
        return
    from texgen.sources import catalog

    if every:
        rows = [(e.name, e.arch, e.origin, "") for e in catalog.search(pattern)]
    else:
        rows = [
            (name, entries[0].arch, entries[0].origin, f"{len(entries)} atoms" if len(entries) > 1 else "")
            for name, entries in catalog.families(pattern)
        ]
    if not rows:
        raise TexgenError(f"No atom's name holds {pattern!r}: texgen atoms without a pattern lists all.")
    width = max(len(row[0]) for row in rows)
    for name, architecture, origin, count in rows:
        click.echo(f"{name.ljust(width)}  {architecture.ljust(8)}  {origin}{'  ' + count if count else ''}".rstrip())


@app.command()
def doctor() -> None:
    """Say what is installed, what each gap costs and the command that mends it."""
    from texgen.doctor import examine

    faults = 0
    for item in examine():
        mark = {"ok": "ok   ", "gap": "gap  ", "fault": "FAULT"}[item.status]
        click.echo(f"{mark}  {item.name}: {item.text}")
        if item.cost:
            click.echo(f"         costs: {item.cost}")
        if item.command:
            click.echo(f"         mend:  {item.command}")
        faults += item.status == "fault"
    raise click.exceptions.Exit(1 if faults else 0)


app.add_command(trace)
app.add_command(verify)
app.add_command(bench)
app.add_command(with_options(READ_OPTIONS[::-1])(handout))  # a finished command takes its options in reverse
app.add_command(sty)
app.add_command(timeline)


def _read(target: Any, **options: Any) -> Any:
    """Read, and say every warning once on stderr."""
    from texgen.sources import read
    from texgen.specs import flat

    specs = read(target, **options)
    for warning in dict.fromkeys(w for _, spec in flat(specs) for w in (*spec.warnings, *_hazards(spec))):
        say(f"warning: {warning}")
    return specs


def _hazards(spec: Any) -> Iterator[str]:
    """What is wrong with a timeline, by kind."""
    if spec.kind == "timeline":
        from texgen.pipeline.hazards import by_kind

        yield from by_kind(spec.hazards)


def _show(made: Any) -> None:
    from texgen.render.text import print_colored

    for drawing in made.values() if hasattr(made, "values") else [made]:
        print_colored(drawing.figure)


def main() -> None:
    """Run the command line. Exit status 0, 1 for a failure that is explained, 2 for wrong usage."""
    plain_warnings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets its escape
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = app(standalone_mode=False)
        code = status if isinstance(status, int) else 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except UsageError as error:
        code = _complain(error, 2)
    except TexgenError as error:
        code = _complain(error, 1)
    except (KeyboardInterrupt, click.Abort):
        print("texgen: stopped.", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # `texgen table ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except MemoryError:
        code = _complain(
            TexgenError("There is not enough memory for this target: draw a part of it with --rows and --cols."), 1
        )
    except Exception as error:
        if os.environ.get("TEXGEN_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            sys.exit(_complain(TexgenError("The disk of the output is full: give another place with -o."), 1))
        code = _complain(
            TexgenError(
                f"texgen itself failed ({type(error).__name__}: {error}): please report it; TEXGEN_DEBUG=1 shows where."
            ),
            1,
        )
    sys.exit(code)


def _terminated(number: int, frame: object) -> None:
    """SIGTERM (make, a CI's time limit) ends us as Ctrl-C does, so that programs we started end too."""
    raise SystemExit(128 + number)


def _complain(error: TexgenError, code: int) -> int:
    print(f"texgen: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
