"""A layout's offsets, and a swizzle as before beside after."""

from __future__ import annotations

import numpy as np

from texgen.errors import UsageError
from texgen.figures import caption as words
from texgen.figures.model import Figure, LegendItem, Line, Panel
from texgen.figures.options import FigureOptions, crop
from texgen.figures.palette import palette
from texgen.figures.panels import FULL_LIMIT, check_size
from texgen.figures.place import assemble
from texgen.layouts import IntArray
from texgen.sources.smem import element_swizzle as element_swizzle
from texgen.specs import LayoutSpec


def draw_layout(spec: LayoutSpec, options: FigureOptions) -> Figure:
    """The figure of a Layout or ComposedLayout.

    Raises TexgenError for more than a million cells, UsageError for options that need threads.
    """
    for option in ("highlight", "operand"):
        if getattr(options, option):
            raise UsageError(f"--{option} needs threads, and {spec.layout or 'this layout'} is a layout of offsets.")
    if options.overview:
        raise UsageError(
            "--overview needs threads, and this is a layout of offsets: draw a part of it with --rows and --cols."
        )
    both = spec.plain is not None and options.swizzle is not False
    if not (options.rows or options.cols):
        check_size((2 if both else 1) * spec.offsets.size, spec.layout or "this layout", "--rows 0:64 --cols 0:64")
    if options.banks:
        return _draw_banks(spec, options, both)
    panels: list[Panel | None] = []
    if both and spec.plain is not None:
        panels.append(_panel("before", "Before the swizzle", spec.plain, spec, options))
    panels.append(
        _panel(
            "after" if both else "offsets",
            "After the swizzle" if both else _panel_title(spec),
            spec.offsets,
            spec,
            options,
        )
    )
    rows, columns = spec.offsets.shape
    stacked = both and columns > 1.5 * rows
    legend, legend_title = _legend(spec, options)
    return assemble(
        "layout", spec.name, _title(spec, options), [[p] for p in panels] if stacked else [panels], palette(options.palette),
        legend, legend_title, _caption(spec) if options.caption else [], _alt(spec), spec.warnings,
    )  # fmt: skip


def _draw_banks(spec: LayoutSpec, options: FigureOptions, both: bool) -> Figure:
    """Every cell with its bank, the cells of one access in colour; without the swizzle beside with it."""
    from texgen.figures import banks

    last, found = banks.bank_panel(
        "after" if both else "banks", "After the swizzle" if both else "Banks", spec, options
    )
    panels: list[Panel | None] = [last]
    lines = banks.lines_of(found, "After the swizzle" if both else "")
    if both:
        first, without = banks.bank_panel("before", "Before the swizzle", banks.before(spec), options)
        panels, lines = [first, last], banks.lines_of(without, "Before the swizzle") + lines
    rows, columns = spec.offsets.shape
    legend, legend_title = banks.legend(options)
    title = options.title if options.title is not None else f"{spec.name or spec.layout}  {found.name}"
    return assemble(
        "layout", spec.name, title, [[p] for p in panels] if both and columns > 1.5 * rows else [panels], palette(options.palette),
        legend, legend_title, [banks.key_line(found), *lines, *_caption(spec)] if options.caption else [],
        banks.alternative_text(found, _alt(spec)), spec.warnings,
    )  # fmt: skip


def _panel(key: str, title: str, offsets: IntArray, spec: LayoutSpec, options: FigureOptions) -> Panel:
    rows, columns = crop(options.rows, offsets.shape[0], "rows"), crop(options.cols, offsets.shape[1], "cols")
    shown = offsets[np.ix_(rows, columns)]
    fill = color_key(spec, shown) % len(palette(options.palette))
    lines: tuple[list[list[str]], ...] = ()
    if options.label != "none" and (options.label != "auto" or max(shown.shape) <= FULL_LIMIT):
        if spec.coords:
            parts = [c[np.ix_(rows, columns)] for c in spec.coords]
            text = np.array(
                [f"({','.join(map(str, p))})" for p in zip(*(x.reshape(-1).tolist() for x in parts), strict=True)],
                dtype=object,
            )
            lines = (text.reshape(shown.shape).tolist(),)
        else:
            lines = ([[str(x) for x in row] for row in shown.tolist()],)
    return Panel(key, title, rows, columns, "i", "j", fill, lines)


def chunk(spec: LayoutSpec) -> int:
    """Elements that a swizzle moves together, ``2^M`` (1 without a swizzle)."""
    swizzle = element_swizzle(spec)
    return 1 << swizzle.base if swizzle else 1


def color_key(spec: LayoutSpec, offsets: IntArray) -> IntArray:
    """The chunk of an offset: neighbours of one colour stay together under the swizzle."""
    return offsets // chunk(spec)


def _legend(spec: LayoutSpec, options: FigureOptions) -> tuple[list[LegendItem], str]:
    colors = len(palette(options.palette))
    if colors == 1 or not options.legend:
        return [], ""
    unit = chunk(spec)
    items = [LegendItem(int(i), str(i)) for i in np.unique(color_key(spec, spec.offsets) % colors)]
    if spec.coords:
        return items, f"Colour: first coordinate modulo {colors}"
    if unit == 1:
        return items, f"Colour: offset modulo {colors}"
    width = f" = {unit * spec.bits // 8} bytes" if spec.bits and unit * spec.bits % 8 == 0 else ""
    return items, f"Colour: chunk of {unit} elements{width}, modulo {colors}"


def _panel_title(spec: LayoutSpec) -> str:
    return "Coordinates" if spec.coords else "Offsets" + (f" ({spec.bits}-bit elements)" if spec.bits else "")


def _title(spec: LayoutSpec, options: FigureOptions) -> str:
    if options.title is not None:
        return options.title
    return spec.name or spec.layout


def _caption(spec: LayoutSpec) -> list[Line]:
    rows, columns = spec.offsets.shape
    lines = [Line(spec.layout, code=True)] if spec.layout and spec.name and spec.name != spec.layout else []
    count = f"{rows} × {columns} = {words.plural(spec.offsets.size, 'cell')}"
    lines.append(Line(count if spec.coords else f"{count}, {words.offsets_text(spec.offsets)}"))
    swizzle = element_swizzle(spec)
    if swizzle:
        bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
        moved = int((spec.offsets != spec.plain).sum()) if spec.plain is not None else 0
        low, high = (base, base + shift) if shift >= 0 else (base - shift, base)
        lines += words.note_lines(spec)
        text = f"Bits {high} to {high + bits - 1} of an element's offset are xored into bits {low} to {low + bits - 1}"
        if spec.bits >= 8 and spec.bits & (spec.bits - 1) == 0:
            byte = spec.bits.bit_length() - 4
            text += f" (of its byte address bits {high + byte} to {high + byte + bits - 1} into {low + byte} to {low + byte + bits - 1})"
        return [*lines, Line(f"{text}; {moved} of {spec.offsets.size} elements move"), *words.origin_line(spec)]
    return lines + words.origin_line(spec) + words.note_lines(spec)


def _alt(spec: LayoutSpec) -> str:
    rows, columns = spec.offsets.shape
    what = f"The layout {spec.layout or spec.name} as a grid of {rows} by {columns} cells"
    if spec.coords:
        return f"{what}, each with its coordinate."
    first = ", ".join(map(str, spec.offsets[0, :4].tolist()))
    more = " and so on" if columns > 4 else ""
    end = f"{what}, each with its offset. Row 0 holds {first}{more}"
    if spec.plain is not None and rows > 1:
        second = ", ".join(map(str, spec.offsets[1, :4].tolist()))
        end += f"; after the swizzle row 1 begins {second}"
    return end + "."
