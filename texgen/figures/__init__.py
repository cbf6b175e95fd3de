"""Spec → Figure."""

from __future__ import annotations

from dataclasses import replace

from texgen.errors import UsageError
from texgen.figures.model import Figure
from texgen.figures.options import FigureOptions
from texgen.pipeline.spec import TimelineSpec
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, Spec, TVSpec

__all__ = ["Figure", "FigureOptions", "draw"]


def draw(spec: Spec, options: FigureOptions | None = None) -> Figure:
    """The figure of a spec.

    Raises TexgenError for a picture of more than a million cells and UsageError for options that do not fit the spec.
    """
    options = options or FigureOptions()
    return replace(_draw(spec, options), theme=options.theme, print_width=options.print_width)


def _draw(spec: Spec, options: FigureOptions) -> Figure:
    if options.color_by == "matrix" and spec.kind != "chain":
        raise UsageError("--color-by matrix is of a copy beside its MMA (--chain): take thread, value, warp or quad.")
    if options.banks and not isinstance(spec, LayoutSpec):
        raise UsageError(
            "--banks is of a layout in shared memory: give its layout text with --bits, not threads and values."
        )
    if isinstance(spec, MmaSpec):
        from texgen.figures.mma import draw_mma

        return draw_mma(spec, options)
    if isinstance(spec, CopySpec):
        from texgen.figures.copy import draw_copy

        return draw_copy(spec, options)
    if isinstance(spec, TVSpec):
        from texgen.figures.tv import draw_tv

        return draw_tv(spec, options)
    if isinstance(spec, LayoutSpec):
        from texgen.figures.layout import draw_layout

        return draw_layout(spec, options)
    if isinstance(spec, TimelineSpec):
        from texgen.figures.timeline import draw_timeline

        return draw_timeline(spec, options)
    if spec.kind == "chain":
        from texgen.figures.chain import draw_chain

        return draw_chain(spec, options)
    raise TypeError(f"no figure for {type(spec).__name__}")
