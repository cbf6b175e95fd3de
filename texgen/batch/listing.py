"""The list of a batch: TOML or JSON, checked whole before any work."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from texgen.batch.subjects import OWN, Parts, named, subject
from texgen.errors import TexgenError, UsageError
from texgen.figures.options import FigureOptions
from texgen.render.forms import check_slides, suffixes
from texgen.sources import ReadOptions
from texgen.sources.json_file import once

FIGURE = ("target", "chain", "timeline", *OWN, "output", "engine", "scale")
FAMILY = ("atoms", "targets", "output", "engine", "scale")
TABLES = ("defaults", "figure", "family")
FOLDER = ".texgen"
"""Where the stamps are, beneath the outputs' folder."""
KEYS = {
    "target": "What is drawn: all that `texgen render` takes as TARGET. Files are looked for beside the list.",
    "chain": "In place of target: `[COPY, MMA]`, a copy beside the MMA that it feeds.",
    "fill, smem, at": "With chain: what fills shared memory before, the operand's tile there, where the MMA's tile begins in it (`[0, 16]`).",
    "timeline": "In place of target: `true`, for the timeline of a cp.async pipeline.",
    "stages, k_tiles, k_blocks, fault, protocol, measured": "With timeline: as `texgen timeline` takes them.",
    "width": "Width in print: `84mm`, or `.9\\linewidth`; print_width in Python.",
    "output": "A file or a list of files; the suffix chooses the form. `{name}` stands for the target's name, `{n}` for the figure's number in the list.",
    "engine": "TeX engine: pdflatex, lualatex, xelatex or tectonic.",
    "scale": "Pixels of a PNG for one of the SVG; 2 if left out.",
    "atoms": "In a family: a part of the atoms' names or a glob, as `texgen atoms` takes it; one figure an atom.",
    "targets": "In a family: a list of targets; one figure each.",
}
"""The keys of an entry that are no option of reading or of the figure."""
ALIASES = {"width": "print_width"}
"""How the command line spells an option that has another name here."""
PLACE = re.compile(r"\{(\w*)\}")
LARGEST = 64 << 20
"""Bytes of a list."""


@dataclass(frozen=True)
class Item:
    """One figure of a list: what to read, how to draw it, and the files to make of it, relative and with ``/``."""

    number: int
    target: str
    outputs: tuple[str, ...]
    reading: tuple[tuple[str, Any], ...] = ()
    look: FigureOptions = field(default_factory=FigureOptions)
    engine: str | None = None
    scale: float = 2.0
    kind: str = "target"
    """Or chain, timeline: these have ``parts`` (``texgen.batch.subjects``), and a ``target`` that only names them."""
    parts: Parts = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The texts that may name files which the item depends on."""
        return named(self.kind, self.target, self.parts)

    @property
    def name(self) -> str:
        """The first output, by which an item is known."""
        return self.outputs[0]

    def __str__(self) -> str:
        target = " ".join(self.target.split())
        return f"{self.name} ({target if len(target) <= 80 else target[:77] + '...'})"


def read_list(path: Path, overrides: Mapping[str, Any] | None = None, templates: Sequence[str | Path] = ()) -> list[Item]:
    """The items of a list file. ``overrides`` are options that go before what the list says, ``templates`` the author's folders.

    Raises UsageError naming file, entry and key for anything that is not understood, for two entries with one output,
    and for an output outside of the folder.
    """
    forms = suffixes(templates)
    data = _load(path)
    _known(data, TABLES, str(path), "table")
    defaults = _table(data.get("defaults", {}), f"{path}, [defaults]")
    _known(defaults, _names(("output", "engine", "scale")), f"{path}, [defaults]", "key")
    given = _spelt(overrides or {})
    items: list[Item] = []
    for kind in ("figure", "family"):
        entries = data.get(kind, [])
        if not isinstance(entries, list):
            raise UsageError(f"{path}: write [[{kind}]] with two brackets, one for each {kind}.")
        for number, entry in enumerate(entries, 1):
            where = f"{path}, {kind} {number}"
            own = _spelt(_table(entry, where))
            merged = {**_spelt(defaults), **own, **given}
            _known(own, _names(FIGURE if kind == "figure" else FAMILY), where, "key")
            for drawn in [subject(own, where)] if kind == "figure" else _members(own, where):
                items.append(_item(len(items) + 1, drawn, merged, where, forms))
    if not items:
        raise UsageError(f"{path} lists no figure: give [[figure]] tables with target and output.")
    _distinct(items, path)
    return items


def shard(items: list[Item], text: str) -> list[Item]:
    """The part ``i/n`` of a list, i from 1: by a hash of the output's name, so that new entries move no others.

    Raises UsageError for a part that is none.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    i, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= i <= n:
        raise UsageError(f"--shard {text!r} is no part: write 3/16 for the third of sixteen.")
    return [item for item in items if int(hashlib.sha256(item.name.encode()).hexdigest()[:12], 16) % n == i - 1]


def option_names() -> tuple[str, ...]:
    """The options of reading and of the figure, in that order, as Python has them."""
    return tuple(dict.fromkeys(f.name for f in (*fields(ReadOptions), *fields(FigureOptions))))


def _names(special: tuple[str, ...]) -> tuple[str, ...]:
    return (*special, *option_names())


def _load(path: Path) -> Mapping[str, Any]:
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST:
            raise UsageError(f"{path} is larger than {LARGEST >> 20} MB.")
        text = raw.decode("utf-8-sig")
        data = json.loads(text, object_pairs_hook=once) if path.suffix.lower() == ".json" else _toml(text)
    except OSError as error:
        raise UsageError(f"The list {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"The list {path} is not UTF-8 text.") from None
    except RecursionError:
        raise UsageError(f"The list {path} is nested too deeply.") from None
    except ValueError as error:  # of tomllib and of json
        form = "JSON" if path.suffix.lower() == ".json" else "TOML"
        raise UsageError(f"The list {path} is no {form}: {str(error).rstrip('.')}.") from None
    return _table({"figure": data} if isinstance(data, list) else data, str(path))


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} is no table of keys and values.")
    return value


def _spelt(table: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with ``_``, as Python has them; ``no-legend = true`` is ``legend = false``."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        name = ALIASES.get(key, key).replace("-", "_")
        if name.startswith("no_") and name[3:] in option_names() and isinstance(value, bool):
            name, value = name[3:], not value
        out[name] = value
    return out


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str, what: str) -> None:
    for key in _spelt(table) if what == "key" else table:
        if key not in names:
            shown = [{python: written for written, python in ALIASES.items()}.get(n, n) for n in names]
            near = difflib.get_close_matches(key, shown, n=1)
            hint = f"did you mean {near[0]!r}? There" if near else "there"
            raise UsageError(f"{where}: there is no {what} {key!r}: {hint} are {', '.join(shown)}.")


def _members(entry: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Parts]]:
    if ("atoms" in entry) == ("targets" in entry):
        raise UsageError(f"{where}: give either atoms (a pattern of names) or targets (a list).")
    if "targets" in entry:
        targets = entry["targets"]
        if not isinstance(targets, list) or not all(isinstance(t, str) and t.strip() for t in targets):
            raise UsageError(f"{where}: targets must be a list of texts.")
        yield from (("target", target, ()) for target in targets)
        return
    from texgen.sources import catalog

    if not isinstance(entry["atoms"], str):
        raise UsageError(f"{where}: atoms must be a text, such as 'SM80_*'.")
    found = [e.name for e in catalog.search(entry["atoms"])]
    if not found:
        raise UsageError(f"{where}: no atom's name matches {entry['atoms']!r}: texgen atoms lists them.")
    yield from (("target", name, ()) for name in found)


def _item(number: int, drawn: tuple[str, str, Parts], options: dict[str, Any], where: str, forms: Sequence[str]) -> Item:
    """An item of the merged options. Raises UsageError led by the entry."""
    kind, target, parts = drawn
    options = {k: tuple(v) if isinstance(v, list) and k != "output" else v for k, v in options.items()}
    _types(options, where)
    try:
        look = FigureOptions.of(**{f.name: options[f.name] for f in fields(FigureOptions) if f.name in options})
        reading = {f.name: options[f.name] for f in fields(ReadOptions) if f.name in options}
        _ = ReadOptions(**reading).width
        from texgen.render.engine import ENGINES

        if options.get("engine") not in (None, *ENGINES):
            raise UsageError(f"the engine {options['engine']!r} must be one of {', '.join(ENGINES)}.")
    except TexgenError as error:
        raise UsageError(f"{where}: {error.message}") from None
    outputs = _outputs(options.get("output"), target, number, where, forms)
    try:
        for output in outputs:
            check_slides(PurePosixPath(output).suffix, look.slides)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from None
    return Item(
        number, target, outputs, tuple(sorted(reading.items())), look, options.get("engine"), float(options.get("scale", 2.0)), kind, parts,
    )  # fmt: skip


def _types(options: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a value of another type than its option has."""
    kinds = {f.name: str(f.type) for f in (*fields(ReadOptions), *fields(FigureOptions))} | {"engine": "str | None", "scale": "float"}
    for key, value in options.items():
        kind = kinds.get(key, "Any").removesuffix(" | None")
        wanted = {"str": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}.get(kind)
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool")):
            words = {"str": "a text in quotes", "bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
            raise UsageError(f"{where}: {key} = {value!r} must be {words}.")
        if key in ("scale", "timeout") and not 0 < value <= 86400:
            raise UsageError(f"{where}: {key} = {value!r} must be above 0.")


def _outputs(given: Any, target: str, number: int, where: str, forms: Sequence[str]) -> tuple[str, ...]:
    from texgen.api import file_part

    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n for n in names):
        raise UsageError(f"{where}: output is missing: name a file, such as {file_part(target) + '.svg'!r}, or a list of files.")
    out = []
    for name in names:
        for place in PLACE.findall(name):
            if place not in ("name", "n"):
                raise UsageError(f"{where}: output {name!r} has {{{place}}}: there are {{name}} and {{n}}.")
        full = PLACE.sub(lambda m: file_part(target) if m[1] == "name" else str(number), name).replace("\\", "/")
        path = PurePosixPath(full)
        if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", full) or any(c in "\0\n\r" or "\ud800" <= c <= "\udfff" for c in full):
            raise UsageError(f"{where}: output {name!r} leaves the folder: name a file inside it and choose the folder with --out.")
        if path.parts[:1] == (FOLDER,):
            raise UsageError(f"{where}: output {name!r} is in the folder of the batch's own stamps: name another.")
        if path.suffix.lower() not in forms:
            raise UsageError(f"{where}: texgen writes no {path.suffix or 'file without a suffix'} ({name}): end it with one of {', '.join(forms)}.")
        out.append(str(path))
    return tuple(out)


def _distinct(items: list[Item], path: Path) -> None:
    """Raise UsageError where two outputs are one file, also on a file system that knows no case."""
    seen: dict[str, Item] = {}
    for item in items:
        for output in item.outputs:
            if (other := seen.setdefault(output.casefold(), item)) is not item or item.outputs.count(output) > 1:
                raise UsageError(
                    f"{path}: figures {other.number} and {item.number} both write {output}: put {{name}} or {{n}} into the "
                    f"output, or give them different names."
                )
    for output, item in seen.items():
        for parent in PurePosixPath(output).parents:
            if (file := seen.get(str(parent))) is not None:
                raise UsageError(f"{path}: figure {file.number} writes the file {parent} and figure {item.number} a file inside a folder of that name: rename one.")
