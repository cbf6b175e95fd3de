"""The library's face: ``texgen.figure(target, **options)`` and ``texgen.render_tikz(source)``."""

from __future__ import annotations

import difflib
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

from texgen.errors import TexgenError, UsageError, for_keywords
from texgen.figures import Figure, FigureOptions, draw
from texgen.figures.caption import less
from texgen.several import several
from texgen.spec_json import to_json
from texgen.specs import Spec, flat
from texgen.visible import say

_FIGURE_OPTIONS = tuple(FigureOptions.__dataclass_fields__)


SMALLEST_PRINT_PT = 4.0
LONG = 400
"""Heights of a cell."""
_UNIT_PT = {"mm": 72.27 / 25.4, "cm": 72.27 / 2.54, "in": 72.27, "pt": 1.0, "bp": 72.27 / 72}


def print_size_remark(figure: Figure) -> str:
    """A remark where labels will be too small to read at the print width that was asked for, otherwise empty."""
    match = re.fullmatch(r"([\d.]+)\s*(mm|cm|in|pt|bp)", figure.print_width)
    if not match or not any(p.lines for p in figure.panels):
        return ""
    points = float(match[1]) * _UNIT_PT[match[2]] / (figure.width * figure.aspect) * figure.label_size
    if points >= SMALLEST_PRINT_PT:
        return ""
    return f"labels print at {points:.1f} pt in a width of {figure.print_width}: draw {less(figure)}"


class Drawing:
    """One figure, ready in every form. In Jupyter it shows itself."""

    def __init__(self, spec: Spec, options: FigureOptions, templates: str | Path | Sequence[str | Path] = ()) -> None:
        self.spec = spec
        self.options = options
        self.figure: Figure = draw(spec, options)
        self.templates = (str(templates),) if isinstance(templates, str | Path) else tuple(str(t) for t in templates)
        self.printed: bytes | None = None
        """The PDF, where a run of TeX for several figures has made it already."""
        self._steps: dict[str, Any] = {}
        if options.slides:
            self.figure = replace(self.figure, alt=self._slides().figure.alt)
        if options.slides and (each := self._slides().each) > 1:
            say(f"{each} {'values of k' if options.slides == 'k' else options.slides + 's'} a step")
        if remark := print_size_remark(self.figure):
            say(remark)

    def slides(self, by: str, steps: int = 0) -> Drawing:
        """The same figure built up step by step: ``by`` thread, value, warp, k (of an MMA) or offset (of a layout).

        Its TikZ, LaTeX and PDF are frames of beamer, its SVG is animated. ``steps`` is how many at most (0: 64). Raises
        UsageError, naming those that fit, where the figure has no such steps.
        """
        return Drawing(self.spec, replace(self.options, slides=by, steps=steps), self.templates)

    def finished(self) -> Drawing:
        """The figure without its steps."""
        return Drawing(self.spec, replace(self.options, slides=""), self.templates) if self.options.slides else self

    def _slides(self, frame: str = "") -> Any:
        """The steps in a page; without the lines of facts in a whole ``frame`` of 16:9, or in one of a ``talk`` below its title."""
        from texgen.figures.frame import FRAME_MM, TALK_MM
        from texgen.figures.steps import slides

        if frame not in self._steps:
            sizes = {"": None, "frame": FRAME_MM, "talk": TALK_MM}
            self._steps[frame] = made = slides(self.spec, self.figure, self.options, sizes[frame])
            if made.remark:
                say(made.remark)
        return self._steps[frame]

    def tikz(self) -> str:
        """The fragment for ``\\input``; needs only ``\\usepackage{tikz}``. Of slides: to ``\\input`` in a frame of beamer."""
        if self.options.slides:
            from texgen.render import slides

            return slides.tikz(self._slides("talk"), self.templates)
        from texgen.render.tex import tikz

        return tikz(self.figure, self.templates)

    def tex(self) -> str:
        """A standalone LaTeX document; of slides a document of beamer."""
        if self.options.slides:
            from texgen.render import slides

            return slides.document(self._slides("frame"), self.templates)
        from texgen.render.tex import document

        return document(self.figure, self.templates)

    def svg(self) -> str:
        """SVG, made without TeX; of slides animated."""
        if self.options.slides:
            from texgen.render import slides

            return slides.svg(self._slides(), self.templates)
        from texgen.render.svg import svg

        return svg(self.figure, self.templates)

    def html(self, element: bool = False) -> str:
        """A page whose cells can be pointed at, whole in itself; with ``element`` the figure alone, for a page of one's own.

        A page follows its reader's light or dark setting where ``theme`` names none; an element is light like an SVG.

        Raises TexgenError for tables of more than 16 million entries.
        """
        from texgen.figures.pointing import pointing
        from texgen.render import html

        make, whole = html.element if element else html.page, self.finished()
        figure = whole.figure if element or self.options.theme else replace(whole.figure, theme="auto")
        return make(figure, pointing(self.spec, whole.figure, whole.options), self.templates)

    def text(self) -> str:
        """Plain text, one row of cells a line."""
        from texgen.render.text import text

        return text(self.figure, self.templates)

    def json(self) -> str:
        """The spec as JSON."""
        return to_json(self.spec)

    def pdf(self, engine: str | None = None) -> bytes:
        """PDF through a TeX engine; where there is none, or its memory ends, from the SVG, saying so.

        Raises TexgenError with the first error of TeX's log.
        """
        return self._pdf(engine)[0]

    def png(self, engine: str | None = None, scale: float = 2.0) -> bytes:
        """PNG through TeX and pdftocairo, otherwise from the SVG. ``scale`` multiplies the SVG's pixels. Raises UsageError for one that is
        not above 0."""
        if not scale > 0:
            raise UsageError(f"The scale of a PNG, {scale!r}, must be above 0.")
        if self.options.slides:
            return self.finished().png(engine, scale)
        from texgen.render import engine as tex
        from texgen.render import raster
        from texgen.render.svg import CELL_PX

        longest = max(self.figure.width * self.figure.aspect, self.figure.height) * CELL_PX
        scale = min(scale, raster.MOST_PIXELS / longest)
        if (engine or tex.available()) and which("pdftocairo"):
            pdf, by_tex = self._pdf(engine)
            if by_tex:
                from texgen.render.context import context

                dpi = scale * CELL_PX / context(self.figure)["figure"]["cell_mm"] * 25.4
                image = raster.pdf_to_png(pdf, dpi)
                if image is not None:
                    return image
        elif engine is None:
            say("no TeX engine with pdftocairo is on the PATH, the PNG is drawn from the SVG (texgen doctor says more)")
        return raster.svg_to_png(self.svg(), scale)

    def _pdf(self, engine: str | None) -> tuple[bytes, bool]:
        """(PDF, whether TeX made it)."""
        from texgen.render import engine as tex
        from texgen.render.escape import unknown_characters

        if self.printed is not None:
            return self.printed, True
        chosen = tex.choose(engine)
        if chosen is None and self.options.slides:
            raise TexgenError(
                f"Frames need a TeX engine with beamer and none is on the PATH: install one (on Debian and Ubuntu: {tex.INSTALL}), or write an .svg."
            )
        if chosen is None:
            say("no TeX engine is on the PATH, the PDF is drawn from the SVG (texgen doctor says more)")
            return self._pdf_without_tex(), False
        source = self.tex()
        if chosen == "pdflatex" and (unknown := unknown_characters(source)):
            say(
                f"pdflatex cannot print {unknown}: the PDF shows their numbers (--engine lualatex with a font that has them does)"
            )
        try:
            return tex.compile_pdf(source, chosen), True
        except tex.TexFailure as failure:
            if failure.too_long and self._is_long() and not self.options.slides:  # a label's place is measured at 10 pt
                say(f"this picture is longer than {chosen} can measure, the PDF is drawn from the SVG")
                return self._pdf_without_tex(), False
            if not failure.capacity:
                raise
            if engine is None and chosen != "lualatex" and "lualatex" in tex.available():
                with suppress(tex.TexFailure):
                    pdf = tex.compile_pdf(source, "lualatex")
                    say(f"{chosen}'s memory ended at this picture, lualatex drew it")
                    return pdf, True
            if self.options.slides:
                raise
            say(f"{chosen}'s memory ended at this picture, the PDF is drawn from the SVG")
            return self._pdf_without_tex(), False

    def _pdf_without_tex(self) -> bytes:
        """The SVG as a PDF, on no larger a page than readers take."""
        from texgen.render import raster
        from texgen.render.context import WIDEST_MM
        from texgen.render.svg import CELL_PX, svg

        wide = self.figure.width * self.figure.aspect
        longest = max(wide, self.figure.height)
        inches = WIDEST_MM / 25.4
        if self.figure.print_width or longest * CELL_PX / 96 <= inches:
            return raster.svg_to_pdf(self.svg())
        return raster.svg_to_pdf(svg(replace(self.figure, print_width=f"{inches * wide / longest:.3f}in"), self.templates))

    def _is_long(self) -> bool:
        """True where TeX may not be able to measure the picture: of a short one a template has a wrong length."""
        return max(self.figure.width * self.figure.aspect, self.figure.height) > LONG

    def data(self, suffix: str, engine: str | None = None, scale: float = 2.0) -> bytes:
        """The bytes of a file with that suffix; of another than ours from the template ``figure.SUFFIX.j2``.

        Raises UsageError for a suffix that nothing makes, or that shows no steps where there are ``slides``.
        """
        from texgen.render.forms import check_slides

        check_slides(suffix, self.options.slides)
        makers: dict[str, Any] = {
            ".tikz": self.tikz, ".tex": self.tex, ".svg": self.svg, ".html": self.html, ".txt": self.text, ".json": self.json,
            ".pdf": lambda: self.pdf(engine), ".png": lambda: self.png(engine, scale),
        }  # fmt: skip
        made = makers[suffix.lower()]() if suffix.lower() in makers else self._from_template(suffix.lower())
        return made if isinstance(made, bytes) else made.encode("utf-8")

    def _from_template(self, suffix: str) -> str:
        from texgen.render.context import context
        from texgen.render.environment import fill
        from texgen.render.forms import suffixes

        if suffix not in (known := suffixes(self.templates)):
            raise UsageError(
                f"texgen writes no {suffix or 'file without a suffix'}: name the output with one of {', '.join(known)}."
            )
        return fill(f"figure{suffix}.j2", context(self.figure), self.templates)

    def save(self, path: str | Path, engine: str | None = None, scale: float = 2.0) -> Path:
        """Write the form that the suffix names, whole or not at all.

        A failing TeX run leaves its source as ``NAME.failed.tex`` beside the output. Raises UsageError for a suffix that
        nothing makes, TexgenError where TeX fails or the place cannot be written.
        """
        from texgen.render.files import write

        path = Path(path)
        if path.suffix.lower() not in (".pdf", ".png"):
            return write(path, self.data(path.suffix))
        from texgen.render.engine import TexFailure

        try:
            return write(path, self.data(path.suffix, engine, scale))
        except TexFailure as failure:
            kept = write(path.with_name(path.stem + ".failed.tex"), self.tex())
            raise TexgenError(
                failure.message, "\n".join(filter(None, [failure.detail, f"  its source is kept in {kept}"]))
            ) from None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": self.text()}

    def __repr__(self) -> str:
        return (
            f"<texgen {self.figure.kind} figure {self.figure.name or self.figure.title!r}, {self.figure.cells:,} cells>"
        )


class Drawings(Mapping[str, Drawing]):
    """Several figures by name, from a dict or a list of targets: one file each, none lost."""

    def __init__(self, drawings: dict[str, Drawing]) -> None:
        self._drawings = drawings

    def __getitem__(self, name: str) -> Drawing:
        return self._drawings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawings)

    def __len__(self) -> int:
        return len(self._drawings)

    def paths(self, path: str | Path) -> dict[Path, Drawing]:
        """``figure-A.pdf``, ``figure-B.pdf`` … for ``figure.pdf``, by the names of the dict or 0, 1, …"""
        path = Path(path)
        parts = unique([file_part(n) for n in self])
        return {
            path.with_name(f"{path.stem}-{part}{path.suffix}"): d for part, d in zip(parts, self.values(), strict=True)
        }

    def save(self, path: str | Path, engine: str | None = None, scale: float = 2.0) -> list[Path]:
        """Write every figure to its path; see ``paths``. Raises as ``Drawing.save`` does."""
        return [d.save(p, engine, scale) for p, d in self.paths(path).items()]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": "\n".join(d.svg() for d in self.values()), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<texgen figures {', '.join(self)}>"


def file_part(name: str) -> str:
    """A name as part of a file name: letters, digits, ``.``, ``_``, ``-``, at most 120 bytes of UTF-8 (file systems take 255)."""
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in unicodedata.normalize("NFC", name[:1000]))
    short = kept.strip("._").encode()[:120].decode(errors="ignore")
    return short.rstrip("._") or "figure"


def figure(target: Any, *, templates: str | Path | Sequence[str | Path] = (), **options: Any) -> Any:
    """A ``Drawing`` of a target (``Drawings`` for a dict or list of them).

    ``target`` is all that ``texgen.read`` takes, or a spec that it gave. Options of reading (``atom_layout``, ``tile``,
    ``arch``, …) and of the figure (``highlight``, ``rows``, ``palette``, …) go together; ``templates`` are folders that go
    before texgen's own. Raises TexgenError, and UsageError for options that do not exist or do not fit.
    """
    from texgen.sources import ReadOptions, read

    readable = set(ReadOptions.__dataclass_fields__)
    if unknown := sorted(set(options) - readable - set(_FIGURE_OPTIONS)):
        known = sorted(readable | set(_FIGURE_OPTIONS))
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]!r}? There" if near else "there"
        raise UsageError(f"There is no option {unknown[0]!r}: {hint} are {', '.join(known)}.")
    look = {k: options.pop(k) for k in list(options) if k in _FIGURE_OPTIONS and k not in readable}
    return drawings(read(target, **options), FigureOptions.of(**look), templates)


def chain(*targets: Any, smem: Any = None, operand: str = "", at: Any = None, templates: str | Path | Sequence[str | Path] = (), **options: Any) -> Drawing:
    """A ``Drawing`` of a copy beside the MMA that it feeds: ``chain(copy, mma)``, or ``chain(fill, copy, mma)``.

    Each target is all that ``texgen.read`` takes. ``smem``: the layout of the operand's tile in shared memory; ``operand``:
    A or B; ``at``: where the tile begins there, ``(row, k)``. Options of reading (``atom_layout`` and ``tile`` go to the
    MMA) and of the figure go together. Raises TexgenError where the copy cannot feed the MMA at all, UsageError for an
    option that there is not.
    """
    from texgen.chains.build import read_chain
    from texgen.sources import ReadOptions

    if unknown := sorted(set(options) - set(ReadOptions.__dataclass_fields__) - set(_FIGURE_OPTIONS)):
        raise UsageError(f"There is no option {unknown[0]!r} of a chain: there are smem, operand, at and those of texgen.figure.")
    look = {k: options.pop(k) for k in list(options) if k in _FIGURE_OPTIONS}
    return Drawing(read_chain(targets, smem=smem, operand=operand, at=at, **options), FigureOptions.of(**look), templates)


def timeline(
    stages: int | None = None, k_tiles: int | None = None, k_blocks: int | None = None, *, fault: str = "", protocol: Any = None,
    measured: str | Path | None = None, name: str = "", templates: str | Path | Sequence[str | Path] = (), **options: Any,
) -> Drawing:  # fmt: skip
    """A ``Drawing`` of a cp.async pipeline: 3 stages, 8 k tiles of 2 k blocks, unless said otherwise.

    ``fault``: wait, barrier, advance or drain, planted in the kernels' protocol. ``protocol``: events of your own, a function
    of (stages, k_tiles, k_blocks) that gives them, ``file.py:function``, or a ``.json`` file. ``measured``: a
    ``timeline.json`` with clock stamps. ``options`` are those of the figure. ``drawing.spec.hazards`` has what is wrong.
    Raises TexgenError.
    """
    from texgen.pipeline.build import timeline_spec

    with for_keywords():
        look = FigureOptions.of(**options)
        spec = timeline_spec(stages, k_tiles, k_blocks, fault=fault, protocol=protocol, measured=measured, name=name)
        return Drawing(spec, look, templates)


def unique(names: Sequence[str]) -> list[str]:
    """The names, numbered from the second on where they are the same (without regard to case, as some file systems).

    >>> unique(["a_b", "c", "A_b"])
    ['a_b', 'c', 'A_b-2']
    """
    seen: set[str] = set()
    out = []
    for name in names:
        count, free = 1, name
        while free.lower() in seen:
            count += 1
            free = f"{name}-{count}"
        seen.add(free.lower())
        out.append(free)
    return out


def drawings(specs: Any, options: FigureOptions, templates: str | Path | Sequence[str | Path] = ()) -> Any:
    """Drawing(s) of what ``texgen.read`` gave; a nested dict or list gives names such as ``a-0``."""
    if isinstance(specs, Mapping | list | tuple):
        named = flat(specs)
        entries = dict(zip(unique([k for k, _ in named]), (v for _, v in named), strict=True))
        return Drawings(several(entries, lambda _, spec: Drawing(spec, options, templates)))
    return Drawing(specs, options, templates)


class TikzPicture:
    """A TikZ source that TeX has drawn; ``source`` is the picture, ``tex()`` the document, ``pdf()`` and ``png()`` its bytes."""

    def __init__(self, source: str, engine: str | None = None, inputs: Sequence[Path] = ()) -> None:
        self.source = source
        self._engine = engine
        self._inputs = inputs
        self._pdf: bytes | None = None

    def tex(self) -> str:
        """A standalone document around the picture."""
        from texgen.render.tex import wrap_document

        return wrap_document(self.source.rstrip() + "\n")

    def pdf(self) -> bytes:
        """The PDF. Raises TexgenError where no TeX engine is on the PATH or the source does not compile."""
        from texgen.render import engine as tex

        if self._pdf is None:
            chosen = tex.choose(self._engine)
            if chosen is None:
                raise TexgenError(
                    f"A TikZ source needs a TeX engine and none is on the PATH: install one (on Debian and Ubuntu: {tex.INSTALL})."
                )
            self._pdf = tex.compile_pdf(self.tex(), chosen, self._inputs)
        return self._pdf

    def png(self, dpi: float = 144.0) -> bytes:
        """A PNG through pdftocairo. Raises TexgenError where that is missing."""
        from texgen.render.raster import pdf_to_png

        image = pdf_to_png(self.pdf(), dpi)
        if image is None:
            raise TexgenError("A PNG of a TikZ source needs pdftocairo: install poppler-utils.")
        return image

    def save(self, path: str | Path) -> Path:
        """Write ``.tex``, ``.tikz``, ``.pdf`` or ``.png``. Raises UsageError for another suffix, TexgenError where TeX fails."""
        from texgen.render.files import write

        path = Path(path)
        made: dict[str, Any] = {".tikz": lambda: self.source, ".tex": self.tex, ".pdf": self.pdf, ".png": self.png}
        if path.suffix not in made:
            raise UsageError(f"A TikZ source is written as .tikz, .tex, .pdf or .png, not {path.suffix!r}.")
        return write(path, made[path.suffix]())

    def _repr_png_(self) -> bytes:
        return self.png()


def render_tikz(source: str, engine: str | None = None) -> TikzPicture:
    """The picture of a TikZ source; usable as ``render_func`` of the DSL's ``cute.viz.print_latex_tv``.

    In a notebook the picture is displayed at once. Raises TexgenError where TeX is missing or fails.
    """
    picture = TikzPicture(source, engine)
    picture.pdf()
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        sys.modules["IPython"].display.display(picture)
    return picture
