"""``.. texgen:program:: path.py``: what a program of the CuTe DSL builds, traced and embedded in a page.

Tracing runs the program. It runs only where ``texgen_execute`` allows it, once for its content, that of its local
imports, its arguments, the architecture and the DSL's version.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging

from texgen.errors import TexgenError, UsageError
from texgen.imports import local_files
from texgen.keys import HASH, dsl_version
from texgen.keys import sha as _sha
from texgen.render.files import write
from texgen.sphinxext.directives import FigureDirective
from texgen.sphinxext.entries import Entry, ExecutionOff, MissingDsl, Use
from texgen.sphinxext.options import split
from texgen.sphinxext.studio import _missing_dsl

if TYPE_CHECKING:
    from texgen.figures import FigureOptions
    from texgen.specs import Spec
    from texgen.sphinxext.studio import Studio
    from texgen.trace.records import Launch, Recorded
    from texgen.trace.run import Trace

logger = logging.getLogger(__name__)
TIMEOUT = 300.0
TAIL = 12
"""Lines of a failing program's output that its box shows."""


@dataclass(frozen=True)
class Item:
    """One object of a program as a page shows it."""

    name: str
    kind: str
    file: str
    line: int
    code: str
    function: str
    sightings: int
    alias: str
    error: str
    spec: Spec | None

    def answers(self, word: str) -> bool:
        """True for its name, the last part of that, its caller's name for it, and its kind."""
        return word in (self.name, self.name.split(".")[-1], self.alias, self.kind)


@dataclass(frozen=True)
class Kernel:
    """One launch and its objects; without a name what is built outside of any."""

    name: str
    facts: dict[str, Any]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Traced:
    """What is kept of a trace."""

    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...] = ()
    failure: str = ""
    """What went wrong, with file and line; empty for a program that ended well."""
    output: str = ""
    """The end of a failing program's output."""


@dataclass(frozen=True)
class Asked:
    """A program, how it is run and where it is."""

    path: Path
    arguments: tuple[str, ...] = ()
    arch: str = ""
    timeout: float = TIMEOUT
    files: tuple[Path, ...] = field(default=())

    def key(self, studio: Studio) -> str:
        """The name of what is kept of it: a hash of all that it depends on."""
        contents = [(str(f), _sha(f.read_bytes())) for f in self.files if f.is_file()]
        return _sha(repr((
            "program", str(self.path), self.arguments, self.arch, contents, studio.digest, dsl_version(),
            os.environ.get("CUTE_DSL_ARCH"),
        )).encode())[:HASH]  # fmt: skip


def traced(studio: Studio, asked: Asked) -> Traced:
    """The trace of a program, kept until something changes that it depends on; a failing one is run again.

    Raises ExecutionOff where running is not allowed, MissingDsl, TexgenError for a program that is not there.
    """
    if not studio.config.texgen_execute:
        raise ExecutionOff("This traces a program, which runs it, and that is off here: set texgen_execute = True in conf.py to allow it.")
    path = studio.cache / f"{asked.key(studio)}.spec"
    with contextlib.suppress(OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
        kept = pickle.loads(path.read_bytes())
        if isinstance(kept, Traced):
            return kept
    if not asked.path.is_file():
        raise TexgenError(f"There is no file {_shown(str(asked.path), studio)}.")
    if missing := _missing_dsl():
        raise MissingDsl(missing)
    made = _trace(studio, asked)
    if not made.failure:
        write(path, pickle.dumps(made))
    return made


def _trace(studio: Studio, asked: Asked) -> Traced:
    from texgen.trace.run import trace

    with tempfile.TemporaryFile() as output:
        try:
            made = trace(
                str(asked.path), list(asked.arguments), arch=asked.arch or None, timeout=asked.timeout,
                folder=asked.path.parent, output=output,
            )  # fmt: skip
        except TexgenError as error:
            raise type(error)(_shown(error.message, studio), _shown(error.detail, studio)) from None
        output.seek(0)
        said = output.read().decode("utf-8", "replace").rstrip()
    if said:
        logger.debug("%s", said)
    failure = _failure(made)
    tail = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(said.splitlines()[-TAIL:])) if failure else ""
    return Traced(_kernels(made, studio), tuple(made.notes), _shown(failure, studio), _shown(tail, studio))


def _failure(made: Trace) -> str:
    file, line = made.place
    where = f"{file}:{line}: " if file else ""
    if made.ended == "error":
        return f"{where}{made.error or 'the program failed'}"
    return f"{where}the program ended with exit status {made.status}." if made.status else ""


def _shown(text: str, studio: Studio) -> str:
    """The same on every machine: no absolute paths below the source folder."""
    return text.replace(f"{studio.source}{os.sep}", "")


def _kernels(made: Trace, studio: Studio) -> tuple[Kernel, ...]:
    from texgen.trace import flow

    objects = made.recording.objects
    out = []
    for launch in made.recording.launches:
        items = tuple(_item(o, studio) for o in flow.used_objects(launch, objects))
        out.append(Kernel(launch.kernel, _launch(launch, studio), items))
    if rest := tuple(_item(o, studio) for o in objects if o.launch is None):
        out.append(Kernel("", {}, rest))
    return tuple(out)


def _launch(launch: Launch, studio: Studio) -> dict[str, Any]:
    from texgen.trace.report import dims

    return {
        **{k: dims(getattr(launch, k)) for k in ("grid", "block", "cluster")}, "arch": launch.arch,
        "place": f"{_shown(launch.file, studio)}:{launch.line}", "call": f"{_shown(launch.call_file, studio)}:{launch.call_line}",
    }  # fmt: skip


def _item(o: Recorded, studio: Studio) -> Item:
    spec = o.spec
    return Item(
        o.name, o.kind, _shown(o.file, studio), o.line, o.code, o.function, o.sightings, o.alias, _shown(o.error, studio), spec
    )


def _names(argument: str) -> tuple[str, ...]:
    return tuple(w for w in re.split(r"[,\s]+", argument or "") if w)


def _arguments(argument: str) -> tuple[str, ...]:
    return tuple(shlex.split(argument or ""))


def chosen(kernels: tuple[Kernel, ...], words: tuple[str, ...]) -> tuple[Kernel, ...]:
    """The kernels with the objects that ``:only:`` names. Raises UsageError for a word that names none."""
    if not words:
        return kernels
    items = [i for k in kernels for i in k.items]
    for word in words:
        if items and not any(i.answers(word) for i in items):
            there = ", ".join(dict.fromkeys([i.name for i in items if i.name] + [i.kind for i in items]))
            raise UsageError(f":only: has {word!r}, which the program does not build: there are {there}.")
    picked = (replace(k, items=tuple(i for i in k.items if any(i.answers(w) for w in words))) for k in kernels)
    return tuple(k for k in picked if k.items)


class ProgramDirective(FigureDirective):
    """``texgen:program``: what a program builds, with its lines, and a numbered figure of each object."""

    has_content = False
    required_arguments = 1
    optional_arguments = 0
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "args": _arguments, "only": _names, "arch": directives.unchanged, "timeout": float, "name": directives.unchanged,
        "class": directives.class_option,
    }  # fmt: skip

    def run(self) -> list[nodes.Node]:
        """Launches, tables and figures, or a box with what went wrong. Never raises."""
        try:
            return self._embedded()
        except TexgenError as error:
            return [self._box(error)]
        except Exception as error:
            logger.debug("texgen", exc_info=True)
            return [self._box(TexgenError(f"texgen itself failed ({type(error).__name__}: {error}): please report it."))]

    def _embedded(self) -> list[nodes.Node]:
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        files = tuple(local_files(path))
        for file in files:
            self.env.note_dependency(str(file))
        asked = Asked(path, self.options.get("args", ()), self.options.get("arch", ""), self.options.get("timeout", TIMEOUT), files)
        studio = self.domain.open_studio
        made = traced(studio, asked)
        out: list[nodes.Node] = []
        if made.failure:
            out.append(self._box(TexgenError(made.failure, made.output), "This program failed; what it had built until then follows."))
        for note in made.notes:
            logger.info("%s: %s", self.arguments[0], note)
        try:
            kernels = chosen(made.kernels, self.options.get("only", ()))
        except UsageError as error:
            return [*out, self._box(error)]
        if not any(k.items for k in kernels):
            if not made.failure:
                out.append(self._box(TexgenError(f"{self.arguments[0]} built no tiled object, no shared-memory layout and no TMA atom.")))
            return out
        before = studio.drawn
        shown: dict[str, nodes.figure] = {}
        for kernel in kernels:
            out += self._kernel(kernel, shown, asked.key(studio))
        self._count(studio.drawn - before)
        return out

    def _box(self, error: TexgenError, title: str = "This program could not be shown.") -> nodes.Node:
        box = self._failure(error)
        assert isinstance(box, nodes.Element)
        box.children[0] = nodes.paragraph("", "", nodes.strong("", title))
        return box

    # One kernel

    def _kernel(self, kernel: Kernel, shown: dict[str, nodes.figure], kept: str) -> list[nodes.Node]:
        """Its launch, the table of its objects and the figures that the page does not have yet."""
        text = self.domain.open_studio.page_text("sphinx_program.rst.j2", {"kernel": kernel.name, **kernel.facts})
        head = self.parse_text_to_nodes(text)
        figures: list[nodes.Node] = []
        anchors: list[str] = []
        for item in kernel.items:
            entry = self._entry(item, kept)
            figure = shown.get(entry.stem) if entry is not None else None
            if entry is not None and figure is None:
                figure = shown[entry.stem] = self._figure_of(item, entry)
                figures.append(figure)
            elif figure is not None:
                self._also(figure, item)
            anchors.append(figure["ids"][0] if figure is not None else "")
        return [*head, self._table(kernel.items, anchors), *figures]

    def _entry(self, item: Item, kept: str) -> Entry | None:
        if item.spec is None:
            return None
        entry = self.domain.open_studio.draw(item.spec, self._look(item.spec))
        self.domain.note_use(Use(entry, self.get_location(), dsl_version(), kept))
        return entry

    def _look(self, spec: Spec) -> FigureOptions:
        """``texgen_options``, and a large figure so that it can be read on a page."""
        from texgen.figures import FigureOptions
        from texgen.trace.report import options

        look, plain = split({}, self.config.texgen_options)[1], FigureOptions()
        wanted = options(spec)
        changes = {k: getattr(wanted, k) for k in ("rows", "cols", "overview") if getattr(look, k) == getattr(plain, k)}
        return replace(look, **changes)

    def _figure_of(self, item: Item, entry: Entry) -> nodes.figure:
        figure = nodes.figure("", self._picture(entry), self._links([entry]), align="default")
        self.set_source_info(figure)
        figure["classes"] += ["texgen", *self.options.get("class", [])]
        figure += nodes.caption("", "", *self._said(item))
        self.set_source_info(figure[-1])
        base = anchor = nodes.make_id(f"{self.options.get('name', 'texgen')}-{item.name or item.kind}")
        while anchor in self.state.document.ids:
            anchor = f"{base}-{self.env.new_serialno(base) + 2}"
        figure["ids"].append(anchor)
        self.state.document.set_id(figure)
        self._label(figure, item)
        return figure

    def _also(self, figure: nodes.figure, item: Item) -> None:
        """The same picture is that of another object too."""
        caption = figure[-1]
        assert isinstance(caption, nodes.caption)
        if "".join(n.astext() for n in self._said(item)) not in caption.astext():
            caption += [nodes.Text("; "), *self._said(item)]
        self._label(figure, item)

    def _label(self, figure: nodes.figure, item: Item) -> None:
        """``NAME-object`` for ``:numref:``, where the directive has a name."""
        if "name" in self.options and item.name:
            name, document = nodes.fully_normalize_name(f"{self.options['name']}-{item.name}"), self.state.document
            if name not in document.nameids:  # note_explicit_target would note a figure's earlier names again
                figure["names"].append(name)
                document.nameids[name], document.nametypes[name] = figure["ids"][0], True

    def _said(self, item: Item) -> list[nodes.Node]:
        from texgen.trace.report import KIND_NAMES

        kind = KIND_NAMES[item.kind]
        place = f"{os.path.basename(item.file)}:{item.line}"
        if not item.name:
            return [nodes.Text(f"{kind}, {place}")]
        return [nodes.literal("", item.name), nodes.Text(f": {kind[0].lower() if kind[:3] not in ('TMA', 'MMA') else kind[0]}{kind[1:]}, {place}")]

    def _table(self, items: tuple[Item, ...], anchors: list[str]) -> nodes.Node:
        from texgen.trace.report import KIND_NAMES

        widths = (26, 18, 56)
        table = nodes.table("", classes=["texgen-objects", "longtable", "colwidths-given"])
        self.set_source_info(table)
        group = nodes.tgroup("", *(nodes.colspec(colwidth=w) for w in widths), cols=len(widths))
        table += group
        head = nodes.row("", *(nodes.entry("", nodes.paragraph("", t)) for t in ("Object", "Line", "Code")))
        group += nodes.thead("", head)
        body = nodes.tbody()
        group += body
        for item, anchor in zip(items, anchors, strict=True):
            name: nodes.Node = nodes.literal("", item.name) if item.name else nodes.Text("(no name)")
            if anchor:
                name = nodes.reference("", "", name, refid=anchor, internal=True)
            times = f", built {item.sightings} times" if item.sightings > 1 else ""
            first = [nodes.paragraph("", "", name), nodes.paragraph("", f"{KIND_NAMES[item.kind]}{times}")]
            if item.error:
                first.append(nodes.paragraph("", item.error))
            where = [nodes.paragraph("", f"{os.path.basename(item.file)}:{item.line}"), *([nodes.paragraph("", "", nodes.literal("", item.function))] if item.function else [])]
            code = nodes.literal_block(item.code, item.code, language="python")
            body += nodes.row("", *(nodes.entry("", *cell) for cell in (first, where, [code])))
        return table


__all__ = ["Asked", "Item", "Kernel", "ProgramDirective", "Traced", "chosen", "traced"]
