"""The command line: each command is a few lines over the library, heavy imports happen inside."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from texgen.errors import TexgenError, UsageError

app = typer.Typer(
    name="texgen", rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True,
    help="Figures you can trust of the layouts in CuTe DSL kernels.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip

# click's ClickException; newer releases of typer carry their own copy of click, which has no public name.
WrongUsage: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

TARGET_HELP = (
    "An atom's name (SM80_16x8x16_F32F16F16F32_TN), a C++ type (TiledMMA<...>), layout text ('(8,8):(8,1)'), "
    "module:callable, file.py:callable, or a .json spec."
)
Target = Annotated[str, typer.Argument(help=TARGET_HELP, show_default=False)]
AtomLayout = Annotated[Optional[str], typer.Option(help="Atoms in M,N,K: 2,2,1 or (2,2,1):(2,1,0). For a copy: the thread layout.", show_default=False)]  # noqa: UP045
Tile = Annotated[Optional[str], typer.Option(help="Permutation of the tile: 32,32,16 or (32,(8,2,2):(1,16,8),16); with --tv the tile.", show_default=False)]  # noqa: UP045
ValLayout = Annotated[Optional[str], typer.Option(help="What CUTLASS before 3.4 called ValLayoutMNK: 1,2,1. For a copy: the value layout.", show_default=False)]  # noqa: UP045
Tv = Annotated[bool, typer.Option("--tv", help="The layout text is a thread-value layout over --tile M,N.")]
Bits = Annotated[int, typer.Option(help="Width of an element in bits (16 for f16); places swizzles of bytes.", show_default=False)]
Dtype = Annotated[str, typer.Option(help="Type of an element (f16, f32, e4m3, ...), in place of --bits.", show_default=False)]
SwizzleUnit = Annotated[str, typer.Option(help="What a swizzle counts in: elements or bytes.", show_default=False)]
Arch = Annotated[Optional[str], typer.Option(help="Architecture for a callable (sm_80, sm_90a, ...); chosen from the op if left out.", show_default=False)]  # noqa: UP045
Live = Annotated[bool, typer.Option("--live", help="Build a named atom with the installed DSL instead of the catalogue.")]
AllowHoles = Annotated[bool, typer.Option("--allow-holes", help="Draw a table that leaves cells without an owner, or has uneven owners.")]
Timeout = Annotated[float, typer.Option(help="Seconds that a callable may take.")]


@app.command()
def render(
    target: Target,
    output: Annotated[list[Path], typer.Option("-o", "--output", help="Where to: the suffix .tikz .tex .pdf .svg .png .txt .json chooses the form; may be repeated. Without it the figure is shown as text.", show_default=False)] = [],  # noqa: B006
    atom_layout: AtomLayout = None,
    tile: Tile = None,
    val_layout: ValLayout = None,
    operand: Annotated[str, typer.Option(help="Operands to draw: A, B, C, AB, ... (S, D for a copy).", show_default=False)] = "",
    highlight: Annotated[str, typer.Option(help="Owners to keep in colour: T5,T37 or V0 or T5V2 or T0-T3 or W1.", show_default=False)] = "",
    rows: Annotated[str, typer.Option(help="Rows of the picture to draw: 0:16.", show_default=False)] = "",
    cols: Annotated[str, typer.Option(help="Columns of the picture to draw: 0:16.", show_default=False)] = "",
    palette: Annotated[str, typer.Option(help="default, cute, grey, okabe-ito or white.")] = "default",
    color_by: Annotated[str, typer.Option(help="thread, value, warp or quad.", show_default=False)] = "",
    title: Annotated[Optional[str], typer.Option(help="Title in place of the target's name.", show_default=False)] = None,  # noqa: UP045
    label: Annotated[str, typer.Option(help="auto, full, thread, value, warp, quad or none.")] = "auto",
    overview: Annotated[bool, typer.Option("--overview", help="The whole tile by warps, and one block in full.")] = False,
    swizzle: Annotated[Optional[bool], typer.Option("--swizzle/--no-swizzle", help="A swizzled layout as before beside after.", show_default=False)] = None,  # noqa: UP045
    caption: Annotated[bool, typer.Option("--caption/--no-caption", help="The lines of facts around the panels.")] = True,
    tv: Tv = False,
    bits: Bits = 0,
    dtype: Dtype = "",
    swizzle_unit: SwizzleUnit = "",
    arch: Arch = None,
    live: Live = False,
    allow_holes: AllowHoles = False,
    engine: Annotated[Optional[str], typer.Option(help="TeX engine: pdflatex, lualatex, xelatex or tectonic.", show_default=False)] = None,  # noqa: UP045
    templates: Annotated[list[Path], typer.Option(help="Folder of templates that go before texgen's own; may be repeated.", show_default=False)] = [],  # noqa: B006
    timeout: Timeout = 120.0,
) -> None:
    """Draw a target and write it as TikZ, LaTeX, PDF, SVG, PNG, text or JSON."""
    from texgen.api import SUFFIXES, drawings
    from texgen.figures import FigureOptions

    for path in output:  # before any work
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"texgen writes no {path.suffix or 'file without a suffix'} ({path}): end the name with one of {', '.join(SUFFIXES)}.")
    options = FigureOptions.of(
        operand=operand, highlight=highlight, rows=rows, cols=cols, palette=palette, color_by=color_by, title=title,
        label=label, overview=overview, swizzle=swizzle, caption=caption,
    )  # fmt: skip
    specs = _read(
        target, atom_layout=atom_layout, tile=tile, val_layout=val_layout, tv=tv, bits=bits, dtype=dtype,
        swizzle_unit=swizzle_unit, arch=arch, live=live, allow_holes=allow_holes, timeout=timeout,
    )  # fmt: skip
    made = drawings(specs, options, templates)
    if not output:
        _show(made)
    for path in output:
        written = made.save(path, engine)
        for one in written if isinstance(written, list) else [written]:
            typer.echo(str(one))


@app.command()
def table(
    target: Target,
    output: Annotated[Optional[Path], typer.Option("-o", "--output", help="A file instead of the screen.", show_default=False)] = None,  # noqa: UP045
    atom_layout: AtomLayout = None,
    tile: Tile = None,
    val_layout: ValLayout = None,
    tv: Tv = False,
    bits: Bits = 0,
    dtype: Dtype = "",
    swizzle_unit: SwizzleUnit = "",
    arch: Arch = None,
    live: Live = False,
    allow_holes: AllowHoles = False,
    timeout: Timeout = 120.0,
) -> None:
    """Print a target's tables as JSON: which element each (thread, value) holds."""
    from texgen.render.files import write
    from texgen.specs import to_json

    specs = _read(
        target, atom_layout=atom_layout, tile=tile, val_layout=val_layout, tv=tv, bits=bits, dtype=dtype,
        swizzle_unit=swizzle_unit, arch=arch, live=live, allow_holes=allow_holes, timeout=timeout,
    )  # fmt: skip
    if isinstance(specs, dict):
        inner = ",\n".join(f"{_quoted(k)}: {to_json(v).rstrip()}" for k, v in specs.items())
        text = "{\n" + inner + "\n}\n"
    elif isinstance(specs, list):
        text = "[\n" + ",\n".join(to_json(v).rstrip() for v in specs) + "\n]\n"
    else:
        text = to_json(specs)
    if output is None:
        sys.stdout.write(text)
    else:
        typer.echo(str(write(output, text)))


@app.command()
def atoms(
    pattern: Annotated[str, typer.Argument(help="Part of a name, or a glob: 'SM80_*F64*'.", show_default=False)] = "",
    every: Annotated[bool, typer.Option("--all", help="One line a name; otherwise atoms that differ in N alone share a line.")] = False,
    save: Annotated[Optional[Path], typer.Option(help="Make the catalogue's data file anew from the installed DSL and tensor-layouts.", show_default=False)] = None,  # noqa: UP045
) -> None:
    """List the atoms that can be named, with architecture and source."""
    if save is not None:
        from texgen.sources.atoms_save import save as make

        typer.echo(f"{make(save)} atoms written to {save}")
        return
    from texgen.sources import catalog

    rows = [(e.name, e.arch, e.origin, "") for e in catalog.search(pattern)] if every else [
        (name, entries[0].arch, entries[0].origin, f"{len(entries)} atoms" if len(entries) > 1 else "")
        for name, entries in catalog.families(pattern)
    ]  # fmt: skip
    if not rows:
        raise TexgenError(f"No atom's name holds {pattern!r}: texgen atoms without a pattern lists all.")
    width = max(len(row[0]) for row in rows)
    for name, architecture, origin, count in rows:
        typer.echo(f"{name.ljust(width)}  {architecture.ljust(8)}  {origin}{'  ' + count if count else ''}".rstrip())


@app.command()
def doctor() -> None:
    """Say what is installed, what each gap costs and the command that mends it."""
    from texgen.doctor import examine

    faults = 0
    for item in examine():
        mark = {"ok": "ok   ", "gap": "gap  ", "fault": "FAULT"}[item.status]
        typer.echo(f"{mark}  {item.name}: {item.text}")
        if item.cost:
            typer.echo(f"         costs: {item.cost}")
        if item.command:
            typer.echo(f"         mend:  {item.command}")
        faults += item.status == "fault"
    raise typer.Exit(1 if faults else 0)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False) -> None:
    if version:
        from texgen import __version__

        typer.echo(f"texgen {__version__}")
        raise typer.Exit


def _read(target: str, **options: Any) -> Any:
    """Read, and say every warning once on stderr."""
    from texgen.sources import read

    specs = read(target, **options)
    listed = list(specs.values()) if isinstance(specs, dict) else specs if isinstance(specs, list) else [specs]
    for spec in listed:
        for warning in spec.warnings:
            print(f"texgen: warning: {warning}", file=sys.stderr)
    return specs


def _show(made: Any) -> None:
    from texgen.render.text import print_colored

    for drawing in made.values() if hasattr(made, "values") else [made]:
        print_colored(drawing.figure)


def _quoted(name: str) -> str:
    import json

    return json.dumps(name)


def main() -> None:
    """Run the command line. Exit status 0, 1 for a failure that is explained, 2 for wrong usage."""
    try:
        status = app(standalone_mode=False)
        code = status if isinstance(status, int) else 0
    except typer.Exit as error:
        code = error.exit_code
    except WrongUsage as error:
        error.show()
        code = 2
    except UsageError as error:
        code = _complain(error, 2)
    except TexgenError as error:
        code = _complain(error, 1)
    except (KeyboardInterrupt, typer.Abort):
        print("texgen: stopped.", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # `texgen table ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except MemoryError:
        code = _complain(TexgenError("There is not enough memory for this target: draw a part of it with --rows and --cols."), 1)
    except Exception as error:
        if os.environ.get("TEXGEN_DEBUG"):
            raise
        code = _complain(TexgenError(f"texgen itself failed ({type(error).__name__}: {error}): please report it; TEXGEN_DEBUG=1 shows where."), 1)
    sys.exit(code)


def _complain(error: TexgenError, code: int) -> int:
    print(f"texgen: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
