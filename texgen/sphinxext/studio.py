"""Where figures are read, drawn once and kept: files in the doctree folder, named by what they show.

A figure's name is a hash of its spec, its options, the templates and texgen itself, not of caption, alternative text or
label. Every form of it (SVG, TikZ, text, JSON) lies under that name; a PDF's name also holds engine and version.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.util import logging

from texgen.errors import TexgenError
from texgen.imports import local_files
from texgen.keys import HASH, digest, dsl_version, engine_version, spec_digest, version
from texgen.keys import sha as _sha
from texgen.render.environment import environments, fill, home
from texgen.render.files import write
from texgen.sphinxext.entries import Entry, ExecutionOff, MissingDsl, Request, Use

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from texgen.api import Drawing
    from texgen.figures import FigureOptions
    from texgen.specs import Spec

FOLDER = "_texgen"
"""Where the files lie in the output."""
SUFFIXES = {"svg": ".svg", "tikz": ".tikz", "txt": ".txt", "json": ".json", "pdf": ".pdf"}
NAME = re.compile(r"[^A-Za-z0-9.-]+")
logger = logging.getLogger(__name__)


STEM = re.compile(r"(.+-[0-9a-f]{16})\.")


class Studio:
    """One build's view of the cache. Reading and drawing happen in it; ``drawn`` counts what it has drawn."""

    def __init__(self, app: Sphinx) -> None:
        self.cache = Path(app.doctreedir) / "texgen"
        self.out = Path(app.outdir) / FOLDER
        self.source = Path(app.srcdir)
        self.config = app.config
        self.templates = _folders(app)
        environments.cache_clear()  # an author may have changed a template since the last build of this process
        self.digest = digest(self.templates)
        self.forms = _forms(app)
        self.drawn = 0
        self.specs: dict[str, Any] = {}
        """Specs of names and texts, which pages often repeat."""
        self.failed: dict[str, TexgenError] = {}
        """Forms that could not be made, by stem."""
        self.named: set[str] = set()
        """Missing programs that a warning has named."""

    # Reading

    def read(self, request: Request) -> Any:
        """The spec or specs of a request.

        What runs Python or the DSL is kept, and run again only when a file, an option or a version has changed. Raises
        TexgenError, ExecutionOff where running is not allowed, MissingDsl.
        """
        if request.runs and not self.config.texgen_execute:
            raise ExecutionOff("This figure runs Python, and that is off here: set texgen_execute = True in conf.py to allow it.")
        if not request.needs_dsl:
            key = f"{request.target} {sorted(request.options.items(), key=str)}"
            if key not in self.specs or request.files():
                self.specs[key] = self._run(request)
            return self.specs[key]
        path = self.cache / f"{self.spec_name(request)}.spec"
        with contextlib.suppress(OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            return pickle.loads(path.read_bytes())
        if missing := _missing_dsl():
            raise MissingDsl(missing)
        specs = self._run(request)
        write(path, pickle.dumps(specs))
        return specs

    def spec_name(self, request: Request) -> str:
        """The name of what is kept of a request, empty where nothing is: a hash of all that its spec depends on."""
        if not request.needs_dsl:
            return ""
        contents = [(str(f), _sha(f.read_bytes())) for f in self.files(request) if f.is_file()]
        return _sha(repr((
            request.target, sorted(request.options.items(), key=str), request.program, str(request.folder), contents,
            self.digest, dsl_version(), os.environ.get("CUTE_DSL_ARCH"),
        )).encode())[:HASH]  # fmt: skip

    def _body_path(self, request: Request) -> Path:
        return self.cache / "body" / f"body_{_sha(request.program.encode())[:HASH]}.py"

    def files(self, request: Request) -> list[Path]:
        """The files whose change must bring the page back."""
        if not request.program:
            return request.files()
        path = self._body_path(request)
        if not path.is_file():
            write(path, request.program)
        return [f for f in local_files(path, [request.folder]) if f != path]

    def _run(self, request: Request) -> Any:
        from texgen.sources import read
        from texgen.sphinxext.body import RESULT

        target = f"{self._body_path(request)}:{RESULT}" if request.program else request.target
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), _on_path(request.folder if request.program else None):
                return read(target, **request.options)
        except TexgenError as error:
            message, detail = (self._readable(x, target, request) for x in (error.message, error.detail))
            raise type(error)(message, detail) from None
        finally:
            if said.getvalue().strip():
                logger.info("%s", said.getvalue().rstrip())

    def _readable(self, text: str, target: str, request: Request) -> str:
        """A message with the page's own names in place of absolute paths, the same on every machine."""
        for path in (target, str(self._body_path(request))):
            text = text.replace(path, request.shown) if path else text
        return text.replace(f"{self.source}{os.sep}", "")

    # Drawing

    def draw(self, spec: Spec, options: FigureOptions) -> Entry:
        """The figure in the forms that this build needs, drawn only if it is not there yet. Raises TexgenError."""
        from texgen.api import Drawing, file_part

        key = _sha(f"{spec_digest(spec)}{options!r}{self.digest}".encode())[:HASH]
        title = NAME.sub("_", file_part(spec.name or spec.kind)).strip("_.")[:60] or spec.kind
        stem = f"{title}-{key}"
        known = self.known(stem)
        if known is not None and not self.missing(stem):
            return known
        return self._make(stem, Drawing(spec, options, self.templates))

    def known(self, stem: str) -> Entry | None:
        """What the cache has under a stem."""
        try:
            with open(self.cache / f"{stem}.entry", "rb") as file:
                entry = pickle.load(file)  # the first of two: the second holds arrays
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            return None
        return entry if isinstance(entry, Entry) else None

    def missing(self, stem: str) -> list[str]:
        """The forms that this build needs and the cache lacks (PDFs aside)."""
        return [f for f in self.forms if f != "pdf" and not _whole(self.path(stem, f))]

    def path(self, stem: str, form: str) -> Path:
        """Where the cache keeps a form."""
        return self.cache / f"{stem}{SUFFIXES[form]}"

    def _make(self, stem: str, drawing: Drawing) -> Entry:
        from texgen.measure.stamp import spec_hash

        self.drawn += 1
        entry = Entry(stem, drawing.figure.alt, tuple(drawing.figure.warnings), spec_hash(drawing.spec))
        for form in self.missing(stem):
            write(self.path(stem, form), (drawing if form == "svg" else drawing.finished()).data(SUFFIXES[form]))
        write(self.cache / f"{stem}.entry", pickle.dumps(entry) + pickle.dumps((drawing.spec, drawing.options)))
        return entry

    def again(self, stem: str) -> Drawing:
        """The drawing of a stem, from what the cache has of it."""
        from texgen.api import Drawing

        with open(self.cache / f"{stem}.entry", "rb") as file:
            pickle.load(file)
            spec, options = pickle.load(file)
        return Drawing(spec, options, self.templates)

    def complete(self, stem: str) -> None:
        """Make the forms that are missing, another builder having drawn the figure. Raises TexgenError."""
        if self.missing(stem):
            self._make(stem, self.again(stem))

    # PDF

    def pdf_path(self, stem: str) -> Path:
        """Where the PDF of a figure is, or is to be; without an engine any that was made before is taken."""
        engine = self.engine()
        if engine is None and (kept := sorted(self.cache.glob(f"{stem}.*.pdf"))):
            return kept[0]
        tool = f"{engine} {engine_version(engine)}" if engine else f"vl-convert {version('vl-convert-python')}"
        return self.cache / f"{stem}.{_sha(tool.encode())[:8]}.pdf"

    def engine(self) -> str | None:
        """The TeX engine of this build, None where there is none. Never raises for one that is missing."""
        from texgen.render import engine as tex

        try:
            return tex.choose(self.config.texgen_engine)
        except TexgenError:
            return None

    def make_pdf(self, stem: str) -> list[str]:
        """Make the PDF of a figure and give the engine's warnings. Raises TexgenError."""
        from texgen.render import engine as tex
        from texgen.render import raster

        path, engine, said = self.pdf_path(stem), self.engine(), []  # type: ignore[var-annotated]
        if _whole(path):
            return []
        drawing = self.again(stem).finished()
        if engine is None:
            write(path, raster.svg_to_pdf(drawing.svg()))
            return []
        write(path, tex.compile_pdf(drawing.tex(), engine, [self.source], warnings=said))
        return said

    # Output

    def page_text(self, template: str, names: dict[str, Any]) -> str:
        """A part of a page. A mistake in an author's template is a warning, and texgen's own is used."""
        try:
            return fill(template, names, self.templates)
        except TexgenError as error:
            if not self.templates:
                raise
            if str(error) not in self.named:
                self.named.add(str(error))
                logger.warning("%s", error, type="texgen", subtype="template")
            return fill(template, names)

    def publish(self, stems: Iterable[str]) -> None:
        """Put the forms of this build into its output; a file that is there has the same content."""
        for stem in stems:
            for form in self.forms:
                source = self.pdf_path(stem) if form == "pdf" else self.path(stem, form)
                target = self.out / f"{stem}{SUFFIXES[form]}"
                if form != "txt" and source.is_file() and (form == "pdf" or not target.is_file()):
                    _copy(source, target)

    def keep_out_of_epub(self) -> None:
        """Doctrees lie inside the output unless ``-d`` says otherwise, and an EPUB takes every file that it finds there."""
        output = self.out.parent
        if self.cache.is_relative_to(output):
            files = [p.relative_to(output).as_posix() for p in self.cache.rglob("*") if p.is_file()]
            self.config.epub_exclude_files = [*self.config.epub_exclude_files, *files]

    def sweep(self, uses: Iterable[Use]) -> None:
        """Remove the files of figures that no page has any more, from the output and the cache."""
        uses = list(uses)
        stems, specs = {use.entry.stem for use in uses}, {use.spec for use in uses}
        for path in [*self.out.glob("*"), *self.cache.glob("*")]:
            name = STEM.match(path.name)
            if (name and name[1] not in stems) or (path.suffix == ".spec" and path.stem not in specs):
                path.unlink(missing_ok=True)


def page_digest() -> str:
    """A hash of the templates that write pages."""
    return _sha(b"".join(p.read_bytes() for p in sorted(home().glob("sphinx_*.j2"))))


def _folders(app: Sphinx) -> tuple[str, ...]:
    """The author's folders of templates; one that does not exist is a warning."""
    folders = [(Path(app.confdir) / t).resolve() for t in app.config.texgen_templates]
    for missing in (f for f in folders if not f.is_dir()):
        logger.warning("texgen_templates names a folder that does not exist: %s", missing, type="texgen", subtype="template")
    return tuple(str(f) for f in folders if f.is_dir())


def _missing_dsl() -> str:
    """What to do about a DSL that is not installed, empty where it is."""
    if importlib.util.find_spec("cutlass") is not None:
        return ""
    from texgen.doctor import explain_import

    return explain_import(ModuleNotFoundError("No module named 'cutlass'", name="cutlass"))


def each(made: Any) -> list[Any]:
    """The specs of a dict or list of them, or the one."""
    if isinstance(made, Mapping):
        return [x for v in made.values() for x in each(v)]
    return [x for v in made for x in each(v)] if isinstance(made, list | tuple) else [made]


def _forms(app: Sphinx) -> tuple[str, ...]:
    builder = app.builder
    if builder.name == "epub":
        return ("svg",)
    if builder.format == "html":
        return ("svg", *(f for f in SUFFIXES if f in app.config.texgen_links and f != "svg"))
    if builder.format == "latex":
        return (app.config.texgen_latex,)
    return ("txt",) if builder.format in ("text", "man", "texinfo") else ()


@contextlib.contextmanager
def _on_path(folder: Path | None) -> Iterator[None]:
    """A folder on Python's path for a moment; the child process gets the path with each request."""
    before = list(sys.path)
    if folder is not None:
        sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _whole(path: Path) -> bool:
    """True for a file with something in it: a loss of power can leave an empty one."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _copy(source: Path, target: Path) -> None:
    data = source.read_bytes()
    if not target.is_file() or target.read_bytes() != data:
        write(target, data)
