"""Anything → Spec. ``read`` looks at the target and chooses the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from texgen.checks import check
from texgen.errors import TexgenError, UsageError
from texgen.kinds import is_spec
from texgen.layouts import AnyLayout, Layout
from texgen.several import several
from texgen.spec_json import from_dict
from texgen.specs import WIDTHS, CopySpec, LayoutSpec, Spec, TVMap, TVSpec

if TYPE_CHECKING:
    from texgen.copy_tiling import CopyAtom

CALLABLE = re.compile(r"(?P<place>.+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
LAYOUT_TEXT = re.compile(
    r"\s*(?:[(\[\d?]|_\d|(?:S|Sw)\s*<|Swizzle\s*(?:\(|<[^>]*>\s*(?:o|∘|_))|(?:[gsrt]mem_)?ptr\s*\[|!cute\.)"
    r"|\s*(?:cute\.)?(?:Layout|make_layout)\s*\((?!.*(?:\{\}|make_shape|Shape|Int|\w\s*<))",
    re.DOTALL,
)
"""What layout text begins with; ``make_layout(`` of C++ (``Shape<``, ``_4{}``) goes to the other grammar."""
IDENTITY_TEXT = re.compile(r"\s*\((?:0\s*,\s*)*0\)\s*(?:o|∘)\s*(?=\S.*@)", re.DOTALL)
"""The zero coordinate before an identity or TMA tensor's layout, as the DSL prints it."""
DSL_SWIZZLE = re.compile(r"\s*S\s*<")
"""How the DSL prints a swizzle (CuTe C++ prints ``Sw<``)."""


LONGEST = 20_000
"""The longest target in characters."""


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading; which of them a target takes depends on its kind.

    ``arch``: the architecture to build for (``sm_90a``), None: what the op asks for. ``atom_layout``, ``tile``,
    ``val_layout``: as ``make_tiled_mma`` has them, text, tuples or Layouts. ``tv``: the layout text is a thread-value
    layout over ``tile``. ``bits`` or ``dtype``: the element's width. ``swizzle_unit``: what a swizzle counts in, elements
    or bytes. ``live``: build a named atom with the installed DSL. ``name``: the spec's name. ``allow_holes``: draw
    tables that do not cover their tile evenly. ``timeout``: seconds for a callable.
    """

    arch: str | None = None
    atom_layout: Any = None
    tile: Any = None
    val_layout: Any = None
    tv: bool = False
    bits: int = 0
    dtype: str = ""
    swizzle_unit: str = ""
    live: bool = False
    name: str = ""
    allow_holes: bool = False
    timeout: float = 120.0

    @property
    def width(self) -> int:
        """The element's width in bits, from ``bits`` or ``dtype``; 0 if neither is given."""
        if self.bits or not self.dtype:
            return self.bits
        if self.dtype not in WIDTHS:
            raise UsageError(f"--dtype {self.dtype!r} is not known: take one of {', '.join(WIDTHS)}, or give --bits.")
        return WIDTHS[self.dtype]


def read(target: Any, **options: Any) -> Any:
    """The spec of a target, checked: every operand's table covers its tile evenly.

    A target is a live object of the CuTe DSL (``TiledMma``, ``TiledCopy``, ``MmaAtom``, ``CopyAtom``, ``Layout``,
    ``ComposedLayout``, a tensor) inside a tracing context, ``module:callable`` or ``file.py:callable``, an atom's CuTe C++
    name, a C++ type, layout text, a ``.json`` file, an explicit table ``{"tile": [M, N], "tv": [[...], ...]}``, a texgen
    Layout, or a dict or list of these, which gives a dict or list of specs. ``options`` are those of ``ReadOptions``.

    Raises TexgenError for anything that cannot be read, UsageError for options that do not fit.
    """
    if unknown := sorted(set(options) - set(ReadOptions.__dataclass_fields__)):
        raise UsageError(
            f"There is no option {unknown[0]!r} for reading: there are {', '.join(ReadOptions.__dataclass_fields__)}."
        )
    chosen = ReadOptions(**{k: v for k, v in options.items() if v is not None})
    return _each(_read(target, chosen), lambda spec: check(_named(spec, chosen), chosen.allow_holes))


def _each(specs: Any, action: Callable[[Spec], Spec]) -> Any:
    """``action`` of every spec in a nested dict or list."""
    if isinstance(specs, Mapping):
        return several(specs, lambda _, v: _each(v, action))
    if isinstance(specs, list | tuple):
        return [_each(v, action) for v in specs]
    return action(specs)


def _named(spec: Spec, options: ReadOptions) -> Spec:
    return replace(spec, name=options.name) if options.name else spec


def _read(target: Any, options: ReadOptions) -> Any:
    if is_spec(target):
        return target
    if isinstance(target, Path):
        target = str(target)
    if isinstance(target, str):
        return _read_text(target, options)
    from texgen.layouts import ComposedLayout

    if isinstance(target, Layout | ComposedLayout):
        return _read_layout(target, options)
    if isinstance(target, Mapping) and ({"kind", "tv", "offsets", "coords"} & set(target)):
        from texgen.sources.json_file import noted

        return noted(from_dict(dict(target), "the table"))
    from texgen.sources.dsl import is_dsl_object, read_any

    if is_dsl_object(target):
        made = read_any(target, name=options.name, bits=options.width, swizzle_unit=options.swizzle_unit)
        return _over_tile(made, options, "an object of the DSL")
    if isinstance(target, Mapping):
        return several(target, lambda k, v: _read(v, replace(options, name=k)))
    if isinstance(target, list | tuple):
        return [_read(v, options) for v in target]
    raise TexgenError(
        f"texgen cannot read a {type(target).__module__}.{type(target).__qualname__}: give an object of the CuTe DSL, "
        f"module:callable, an atom's name, a C++ type, layout text or a spec."
    )


def _read_text(target: str, options: ReadOptions) -> Any:
    text = target.strip()
    if not text:
        raise TexgenError(
            "The target is empty: give an atom's name, layout text, a C++ type, module:callable or a .json file."
        )
    if text.endswith(".json"):
        from texgen.sources.json_file import read_json

        return read_json(Path(text))
    if len(text) > LONGEST:
        raise TexgenError(f"The target is {len(text):,} characters long, and at most {LONGEST:,} are read.")
    if re.match(r"_?\d", text):
        return _read_layout_text(text, options)
    if CALLABLE.fullmatch(text):
        from texgen.sources.child import read_callable

        _refuse(options, "a callable", "atom_layout", "val_layout", "tv")
        made = read_callable(
            text, arch=options.arch, bits=options.width, swizzle_unit=options.swizzle_unit, timeout=options.timeout
        )
        return _over_tile(made, options, "a callable")
    if text.endswith(".py"):
        raise TexgenError(f"{text} is a program: name the function that returns the object to draw, {text}:function.")
    if "\n" in text:
        from texgen.sources.printout import is_printout, read_printout

        if is_printout(text):
            _refuse(options, "a print-out", "atom_layout", "tile", "val_layout", "tv", "live")
            return read_printout(text)
    if LAYOUT_TEXT.match(text):
        return _read_layout_text(text, options)
    if any(c in text for c in "<({"):
        return _read_cpp(text, options)
    return _read_atom(text, options)


def _read_layout_text(text: str, options: ReadOptions) -> Spec:
    from texgen.sources.smem import implied_bits
    from texgen.sources.text import parse_layout_text

    parsed = parse_layout_text(IDENTITY_TEXT.sub("", text))
    if (
        DSL_SWIZZLE.match(text)
        and not parsed.bits
        and not options.width
        and not options.swizzle_unit
        and not options.tv
    ):
        spec = _read_layout(parsed.layout, options)
        return implied_bits(spec, parsed.layout) if isinstance(spec, LayoutSpec) else spec
    return _read_layout(parsed.layout, options, parsed.bits)


def _over_tile(specs: Any, options: ReadOptions, what: str) -> Any:
    """Tiled copies repeated over ``--tile M,N``; other objects have their own tile. Raises UsageError for those."""
    if options.tile is None:
        return specs
    from texgen.copy_tiling import over_tile

    def repeat(spec: Spec) -> Spec:
        if not isinstance(spec, CopySpec):
            _refuse(options, f"{what} that is no copy", "tile")
            return spec
        return over_tile(spec, as_tile(options.tile))

    return _each(specs, repeat)


def _refuse(options: ReadOptions, what: str, *names: str) -> None:
    for name in names:
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with {what}: the object has its own.")


def _read_layout(layout: AnyLayout, options: ReadOptions, bits: int = 0) -> Spec:
    if options.tv:
        return _read_tv(layout, options)
    _refuse(options, "a plain layout (add --tv for a thread-value layout)", "tile")
    _refuse(options, "layout text", "atom_layout", "val_layout", "live")
    from texgen.sources.smem import layout_spec

    unit = options.swizzle_unit or ("bytes" if bits and not options.width else "")
    return layout_spec(layout, bits=options.width or bits, unit=unit)


def _read_tv(layout: AnyLayout, options: ReadOptions) -> TVSpec:
    """A TV layout over ``--tile M,N``, or over a tiler whose modes are layouts."""
    import numpy as np

    from texgen.copy_tiling import tiler_places
    from texgen.layouts import tv_table

    if options.tile is None:
        raise UsageError("A thread-value layout needs the tile that it covers: give --tile M,N.")
    tile, places, text = tiler_places(as_tile(options.tile))
    table = tv_table(layout)
    if table.min() < 0 or table.max() >= len(places):
        raise TexgenError(
            f"{layout} reaches index {int(table.max())} and the tile {text} has {len(places)} cells: give a larger --tile."
        )
    plain = bool((places == np.arange(len(places))).all())
    tv = TVMap(tile, table if plain else places[table], str(layout) if plain else "", options.dtype)
    return TVSpec("", tv, notes=() if plain else (f"TV layout {layout}, tiler {text}",))


def _read_atom(name: str, options: ReadOptions) -> Any:
    from texgen.copy_tiling import CopyAtom
    from texgen.sources import catalog

    atom_layout, tile, val_layout = as_layout(options.atom_layout), as_tile(options.tile), as_layout(options.val_layout)
    if not options.live:
        if isinstance(atom := catalog.find(name).atom(), CopyAtom):
            return _read_copy(atom, options)
        return catalog.read(name, atom_layout, tile, val_layout)
    from texgen.sources.child import read_live_atom
    from texgen.tiling import MmaAtom, val_layout_tile

    entry = catalog.find(name)
    atom = entry.atom()
    if entry.build is None:
        raise TexgenError(f"{entry.name} is not in the CuTe DSL ({entry.origin} has it): leave --live out.")
    if val_layout is not None and isinstance(atom, MmaAtom):
        tile = val_layout_tile(atom, atom_layout, val_layout)
    return read_live_atom(entry.name, arch=options.arch, atom_layout=atom_layout, tile=tile, timeout=options.timeout)


def _read_copy(atom: CopyAtom, options: ReadOptions) -> Any:
    """A copy atom alone, or over a thread and a value layout, repeated over a larger tile."""
    from texgen.copy_tiling import copy_atom, copy_from_thr_val

    thr, val = as_layout(options.atom_layout), as_layout(options.val_layout)
    if options.width:
        atom = replace(atom.of_bits(options.width), name=atom.name)
    if thr is None and val is None:
        _refuse(options, "a copy atom alone", "tile")
        made = copy_atom(atom)
    elif thr is None or val is None:
        raise UsageError(
            f"{atom.name} is a copy: a tiled one needs both a thread layout (--atom-layout) and a value layout (--val-layout)."
        )
    else:
        made = copy_from_thr_val(atom, thr, val)
    if options.dtype:
        made = replace(made, S=replace(made.S, dtype=options.dtype), D=replace(made.D, dtype=options.dtype))
    return _over_tile(made, options, "a copy")


def _read_cpp(text: str, options: ReadOptions) -> Any:
    from texgen.copy_tiling import copy_from_thr_val, copy_from_tv
    from texgen.sources import cpp
    from texgen.sources.blackwell import catalogue_name
    from texgen.sources.copies import cpp_copy
    from texgen.sources.grammar import ParsedLayout

    found = cpp.parse_cpp(text)
    if isinstance(found, ParsedLayout):
        return _read_layout(found.layout, options, found.bits)
    if isinstance(found, cpp.CppMmaAtom):
        return _read_atom(catalogue_name(found.atom, found.op_args), options)
    if isinstance(found, cpp.CppTiledMma):
        _refuse(options, "a TiledMMA", "atom_layout", "tile", "val_layout")
        own = replace(options, atom_layout=found.atom_layout, tile=found.tile, val_layout=found.val_layout)
        return _read_atom(catalogue_name(found.atom, found.op_args), own)
    atom = cpp_copy(found.op, found.dtype, found.op_args)
    if isinstance(found, cpp.CppCopyAtom):
        return _read_copy(atom, options)
    if found.tv_layout is not None and found.tiler is not None:
        made = copy_from_tv(atom, found.tv_layout, [x for x in found.tiler if x is not None])
    else:
        made = copy_from_thr_val(atom, found.thr_layout or Layout.of(1), found.val_layout or Layout.of(1))
    return _over_tile(made, options, "a copy")


def as_layout(value: Any) -> Layout | None:
    """An atom or value layout from text, a tuple of ints or a Layout."""
    if value is None or isinstance(value, Layout):
        return value
    from texgen.sources.text import parse_atom_layout

    if isinstance(value, int | tuple | list):
        value = str(tuple(value) if not isinstance(value, int) else (value,))
    return parse_atom_layout(str(value))


def as_tile(value: Any) -> Any:
    """A permutation or tiler from text or a tuple of ints, Layouts and None."""
    if value is None:
        return None
    from texgen.sources.text import parse_tile

    if isinstance(value, str):
        return parse_tile(value)
    if isinstance(value, tuple | list) and all(v is None or isinstance(v, int | Layout) for v in value):
        return tuple(value)
    raise UsageError(
        f"The tile {value!r} is not understood: give (32, 32, 16), with layouts or None as entries, or text."
    )
