"""The Jinja environments: one with TeX's delimiters (``<< >>``, ``<% %>``), one with autoescaping for SVG and HTML."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from texgen.errors import TexgenError
from texgen.render import escape
from texgen.visible import visible


def number(value: float, decimals: int = 3) -> str:
    """A number in fixed notation, at most three decimals or so many: neither TeX nor SVG gets ``1e-06``."""
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def home() -> Path:
    """The folder of the templates: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "templates", package.parent / "templates"):
        if folder.is_dir():
            return folder
    raise TexgenError(
        "texgen's templates are missing: install the package again with pip install --force-reinstall texgen."
    )


class _CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Jinja's cache of compiled templates (a tenth of a second a process); a full disk is no error."""

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def _bytecode_cache() -> jinja2.BytecodeCache | None:
    """In the user's cache folder; None where that cannot be made.

    Jinja knows a compiled template by its source alone, and what it compiles to depends on the settings below too (with
    those of another version markup would go unescaped): each state of this file has a folder of its own.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or str(Path.home() / ".cache")
    settings = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    folder = Path(base) / "texgen" / "templates" / settings
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return _CompiledTemplates(str(folder)) if os.access(folder, os.W_OK) else None


@cache
def environments(folders: tuple[str, ...]) -> tuple[jinja2.Environment, jinja2.Environment]:
    """(for TeX, for markup). Templates in ``folders`` go before texgen's own of the same name.

    An author's template runs in Jinja's sandbox; ``texgen/figure.svg.j2`` is always texgen's own, to be extended.
    """
    kind = jinja2.Environment
    if folders:
        from jinja2.sandbox import SandboxedEnvironment

        kind = SandboxedEnvironment
    own = jinja2.FileSystemLoader(str(home()))
    loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(folders), own, jinja2.PrefixLoader({"texgen": own})])
    common: dict[str, Any] = {
        "loader": loader, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True,
        "keep_trailing_newline": True, "auto_reload": False, "bytecode_cache": None if folders else _bytecode_cache(),
    }  # fmt: skip
    tex = kind(
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", **common,
    )  # fmt: skip
    markup = kind(autoescape=lambda name: not (name or "").endswith((".txt.j2", ".rst.j2")), **common)
    tex.filters |= {"n": number, "tex": escape.to_tex, "comment": escape.one_line}
    markup.filters |= {"n": number}
    return tex, markup


def fill(template: str, context: dict[str, Any], folders: tuple[str, ...] = ()) -> str:
    """The text of a template, with no character in it that acts (``texgen.visible``).

    Raises TexgenError with file and line for a mistake in a template.
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise TexgenError(f"The template folder {folder} does not exist.")
    tex, markup = environments(folders)
    environment = tex if template.endswith((".tikz.j2", ".tex.j2", ".sty.j2")) else markup
    try:
        return visible(environment.get_template(template).render(context))
    except jinja2.TemplateSyntaxError as error:
        raise _explained(error.filename or template, error.lineno, error.message or "syntax error") from None
    except jinja2.TemplateNotFound as error:
        raise TexgenError(f"There is no template {error.name}.") from None
    except RecursionError:
        raise TexgenError(
            f"The template {template} extends or includes itself without end: texgen's own is called texgen/{template}."
        ) from None
    except UnicodeDecodeError as error:
        raise TexgenError(f"The template {template}, or one that it takes in, is not UTF-8 text ({error.reason}).") from None
    except (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        import traceback

        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
        if not frames:
            raise
        said = f"{type(error).__name__} {error}".strip() if isinstance(error, LookupError | MemoryError) else str(error)
        raise _explained(frames[-1].filename, frames[-1].lineno or 0, said) from error


def _explained(filename: str, line: int, what: str) -> TexgenError:
    path = Path(filename)
    source = ""
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        source = f"  {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
    return TexgenError(f"The template {filename}, line {line}, cannot be filled: {what.rstrip('.')}.", source)
