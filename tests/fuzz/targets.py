"""What is fuzzed: each target takes any bytes, and whatever they are it gives back an answer or one explained error.

The targets read and draw, but run no program: what ``texgen.read`` would take for ``module:callable`` is passed over.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from texgen.api import Drawing
from texgen.checks import check
from texgen.errors import TexgenError
from texgen.figures import FigureOptions
from texgen.sources import CALLABLE, LONGEST, ReadOptions, _read_text, cpp, json_file, printout
from texgen.sources import text as layouts
from texgen.spec_json import all_to_json, from_dict
from texgen.specs import Spec, flat

DRAWN = 600
"""The most cells that a target draws: beyond it only reading is tried."""


def explained(action: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What ``action`` gives; None where it raises a TexgenError, whose sentence must be one that a terminal can show."""
    try:
        return action(*arguments, **options)
    except TexgenError as error:
        assert "\n" not in error.message, error.message
        for line in str(error).split("\n"):
            acting = [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
            assert not acting, (acting, line)
        return None


def drawn(specs: Any) -> None:
    """Every form that needs no TeX, of every small spec that passes the checks."""
    for _, spec in flat(specs):
        if explained(check, spec) is None:
            continue
        if sum(x.size for x in tables(spec)) <= DRAWN:
            drawing = explained(Drawing, spec, FigureOptions())
            for form in ("tikz", "svg", "text", "json"):
                if drawing is not None:
                    getattr(drawing, form)().encode()


def as_target(text: str) -> None:
    """The text as a user gives it, unless it names a program, a file or an atom (to name the nearest ones takes its time)."""
    if len(text) > LONGEST or (not (CALLABLE.fullmatch(text.strip()) or text.strip().endswith((".py", ".json"))) and any(c in text for c in "<({:")):
        drawn(explained(_read_text, text, ReadOptions()) or [])


def tables(spec: Spec) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [spec.offsets] if spec.kind == "layout" else [x.tv for x in spec.operands().values()]


def layout_text(data: bytes) -> None:
    text = as_text(data)
    for parse in (layouts.parse_tile, layouts.parse_atom_layout, layouts.parse_dims, layouts.parse_swizzle):
        explained(parse, text)
    explained(layouts.parse_layout_text, text)
    as_target(text)


def cpp_types(data: bytes) -> None:
    text = as_text(data)
    explained(cpp.parse_cpp, text)
    as_target(text)


def printouts(data: bytes) -> None:
    text = as_text(data)
    if printout.is_printout(text):
        drawn(explained(printout.read_printout, text) or [])
    as_target(text)


def json_specs(data: bytes) -> None:
    specs = explained(json_file.from_bytes, data, "in.json")
    if specs is None:
        return
    drawn(specs)
    if isinstance(specs, dict | list) or sum(x.size for x in tables(specs)) > DRAWN:
        return
    again = json_file.from_bytes(all_to_json(specs).encode(), "again.json")
    assert again == specs


TABLE = {"tile": [4, 4], "tv": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]}
OPTIONS = ("highlight", "rows", "cols", "banks", "operand", "color_by", "label", "palette", "print_width", "theme", "title")


def figure_options(data: bytes) -> None:
    """One option a line, in the order of ``OPTIONS``."""
    given = {k: v for k, v in zip(OPTIONS, as_text(data).split("\n"), strict=False) if v}
    options = explained(FigureOptions.of, **given)
    if options is None:
        return
    for target in (TABLE, {"offsets": [[8 * r + c for c in range(8)] for r in range(8)], "bits": 16}):
        drawing = explained(Drawing, from_dict(target), options)
        for form in ("tikz", "svg", "text", "json"):
            if drawing is not None:
                getattr(drawing, form)().encode()


def as_text(data: bytes) -> str:
    """UTF-8, and lone surrogates for what is none, as the command line hands it over."""
    return data.decode("utf-8", "surrogateescape")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "layout_text": layout_text, "cpp": cpp_types, "printout": printouts, "json": json_specs, "options": figure_options,
}  # fmt: skip
