"""Spec → Figure: ``texgen.kinds.KINDS`` has the function that draws each kind of spec."""

from __future__ import annotations

from dataclasses import replace

from texgen.errors import UsageError
from texgen.figures.model import Figure
from texgen.figures.options import FigureOptions
from texgen.kinds import KINDS, function
from texgen.specs import LayoutSpec, Spec

__all__ = ["Figure", "FigureOptions", "draw"]


def draw(spec: Spec, options: FigureOptions | None = None) -> Figure:
    """The figure of a spec.

    Raises TexgenError for a picture of more than a million cells and UsageError for options that do not fit the spec.
    """
    options = options or FigureOptions()
    return replace(_draw(spec, options), theme=options.theme or "light", print_width=options.print_width)


def _draw(spec: Spec, options: FigureOptions) -> Figure:
    if options.color_by == "matrix" and spec.kind != "chain":
        raise UsageError("--color-by matrix is of a copy beside its MMA (--chain): take thread, value, warp or quad.")
    if options.banks and not isinstance(spec, LayoutSpec):
        raise UsageError(
            "--banks is of a layout in shared memory: give its layout text with --bits, not threads and values."
        )
    made: Figure = function(KINDS[spec.kind].draw)(spec, options)
    return made
