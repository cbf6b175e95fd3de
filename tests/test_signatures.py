"""What the documentation says of the public names, against the code: signatures, options, defaults, errors, types."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from sphinx import addnodes
from sphinx_site import Site

import texgen
from texgen import cli
from texgen.api import Drawing, Drawings, TikzPicture
from texgen.figures import FigureOptions
from texgen.sources import ReadOptions

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*") if p.suffix in (".rst", ".md") and "catalogue" not in p.parts)]
SETTINGS = {
    "extensions": ["sphinx.ext.autodoc"], "nitpicky": True, "autodoc_typehints": "signature", "autodoc_member_order": "bysource",
    "autodoc_typehints_format": "short",
}  # fmt: skip


def target(name: str) -> Any:
    """The object of a dotted name: ``texgen.api.Drawing.save``."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            found = getattr(found, part) if not dataclasses.is_dataclass(found) else getattr(found, part, None)
        return found
    raise AssertionError(name)


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> dict[str, addnodes.desc_signature]:
    """The signatures of the Python reference by their full names, from a build of that page alone."""
    conf = (ROOT / "docs" / "conf.py").read_text()
    for name in ("autodoc_typehints", "autodoc_member_order", "autodoc_typehints_format"):
        assert f'{name} = "{SETTINGS[name]}"' in conf  # as the site is built
    site = Site(tmp_path_factory.mktemp("reference"))
    site.write("index.rst", (ROOT / "docs" / "reference" / "python.rst").read_text())
    built = site.build("text", **SETTINGS)
    doctree = built.app.env.get_doctree("index")
    out = {f"{s['module']}.{s['fullname']}": s for s in doctree.findall(addnodes.desc_signature)}
    assert len(out) > 50
    return out


def shown_parameters(signature: addnodes.desc_signature) -> list[str]:
    """Each parameter as it is printed: ``scale: float = 2.0``."""
    return [" ".join(p.astext().split()) for p in signature.findall(addnodes.desc_parameter)]


def described(name: str, signature: addnodes.desc_signature) -> Callable[..., Any] | None:
    """The function that a signature describes, a class's constructor for a class; None for attributes."""
    if not list(signature.findall(addnodes.desc_parameterlist)):
        return None
    found = target(name)
    return found if callable(found) else None


def test_signatures_are_the_codes(documented: dict[str, addnodes.desc_signature]) -> None:
    """Names, order, kinds, defaults and presence of types, parameter by parameter."""
    seen = 0
    for name, signature in documented.items():
        if (function := described(name, signature)) is None:
            continue
        wanted = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
        shown = shown_parameters(signature)
        if wanted and any(p.kind is p.KEYWORD_ONLY for p in wanted) and not any(p.kind is p.VAR_POSITIONAL for p in wanted):
            first = next(i for i, p in enumerate(wanted) if p.kind is p.KEYWORD_ONLY)
            assert shown.pop(first) == "*", name
        assert len(shown) == len(wanted), (name, shown)
        for text, parameter in zip(shown, wanted, strict=True):
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            assert re.match(rf"{re.escape(stars + parameter.name)}: \S", text), (name, text)
            default = re.search(r" ?= ?(.*)$", text)
            assert (default is None) == (parameter.default is parameter.empty), (name, text)
            if default and default[1] != "<factory>":
                assert default[1] == repr(parameter.default), (name, text)
            seen += 1
        returned = [r.astext() for r in signature.findall(addnodes.desc_returns)]
        assert inspect.isclass(function) or returned, f"{name} shows no type of what it returns"
    assert seen > 120


def test_every_public_name_is_documented(documented: dict[str, addnodes.desc_signature]) -> None:
    names = set(texgen.__all__) - {"__version__"}
    said = {n.rsplit(".", 1)[1]: target(n) for n in documented if n.count(".") <= 2 or n.startswith("texgen.errors")}
    assert len(names) >= 8
    for name in names:
        assert said.get(name) is getattr(texgen, name), f"docs/reference/python.rst lacks texgen.{name}"
    for class_ in (Drawing, Drawings, TikzPicture):
        methods = {n for n, f in vars(class_).items() if inspect.isfunction(f) and not n.startswith("_")}
        shown = {n.rsplit(".", 1)[1] for n in documented if n.startswith(f"texgen.api.{class_.__name__}.")}
        assert methods and methods <= shown, (class_, methods - shown)


def test_every_public_function_is_typed(documented: dict[str, addnodes.desc_signature]) -> None:
    seen = 0
    for name, signature in documented.items():
        function = described(name, signature)
        if function is None or inspect.isclass(function):
            continue
        made = inspect.signature(function)
        assert made.return_annotation is not made.empty, name
        assert all(p.annotation is not p.empty for p in made.parameters.values() if p.name != "self"), name
        assert inspect.getdoc(function), f"{name} has no docstring"
        seen += 1
    assert seen > 30
    assert (Path(texgen.__file__).parent / "py.typed").is_file()


def _raised(function: Callable[..., Any]) -> set[str]:
    """Names of the errors that a function's own body raises."""
    body = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    calls = [n.exc for n in ast.walk(body) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    return {c.func.id for c in calls if isinstance(c.func, ast.Name)}


def test_docstrings_name_the_errors(documented: dict[str, addnodes.desc_signature]) -> None:
    """What a documented function raises itself stands in its docstring, and each error named there exists."""
    seen = 0
    for name, signature in documented.items():
        function = described(name, signature)
        if function is None or inspect.isclass(function):
            continue
        text = " ".join((inspect.getdoc(function) or "").split())
        for error in _raised(function):
            assert f"{error}" in text and "Raises" in text, f"{name} raises {error}, and its docstring does not say so"
            seen += 1
        for error in re.findall(r"\b([A-Z]\w+(?:Error|Warning))\b", text):
            assert hasattr(sys.modules["texgen.errors"], error) or hasattr(sys.modules["builtins"], error), (name, error)
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("options", [FigureOptions, ReadOptions])
def test_options_are_described_once_and_exist(options: Any) -> None:
    """Each field leads an entry of the docstring, ``name``: what it is, and each such entry is a field."""
    text = " ".join((options.__doc__ or "").split())
    fields = {f.name for f in dataclasses.fields(options)}
    for name in fields:
        assert f"``{name}``" in text, f"{options.__name__}.{name} is not described"
    led = {n for group in re.findall(r"(?:^|[.:)]|or|,) ((?:``\w+``(?:, | or )?)+): ", text) for n in re.findall(r"``(\w+)``", group)}
    assert led <= fields and len(led) >= 8, led - fields


def _defaults(options: tuple[Any, ...]) -> dict[str, Any]:
    """What the command line gives where nothing is said."""
    command = cli.with_options(options)(click.Command("x", callback=lambda: None))
    return dict(command.make_context("x", []).params)


def test_defaults_of_the_command_line_are_the_librarys() -> None:
    figure = {f.name: f.default for f in dataclasses.fields(FigureOptions)}
    read = {f.name: f.default for f in dataclasses.fields(ReadOptions)}
    seen = 0
    for given, known in ((_defaults(cli.FIGURE_OPTIONS), figure), (_defaults(cli.READ_OPTIONS), read)):
        for name, default in given.items():
            assert name in known, name
            assert (default or None) == (known[name] or None) or default == known[name], (name, default, known[name])
            seen += 1
    assert seen > 25
    render = {p.name: p.default for p in cli.app.commands["render"].params}
    assert render["scale"] == inspect.signature(Drawing.save).parameters["scale"].default


# --- calls and commands that the pages show ------------------------------------------------------------------------------


def _code(path: Path, language: str) -> Iterator[str]:
    """The blocks of a language in a page of either kind."""
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(rf"^( *)```\{{?(?:code-block\}} )?{language}\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        yield _without_options(textwrap.dedent(found[2]))
    for found in re.finditer(rf"^( *)\.\. code-block:: {language}\n((?:\1 +.*\n|\s*\n)*)", text, re.MULTILINE):
        yield _without_options(textwrap.dedent(found[2]))


def _without_options(block: str) -> str:
    """A block without the ``:caption:`` and the like that stand before it."""
    return re.sub(r"^(?::\w+:.*\n)+", "", block.lstrip("\n"))


def _bind(call: ast.Call, function: Any) -> None:
    """Raise TypeError where a call does not fit; options that are taken as ``**options`` must exist."""
    signature = inspect.signature(function)
    owner = [None] if "self" in signature.parameters else []
    signature.bind(*owner, *[None] * len(call.args), **{k.arg: None for k in call.keywords if k.arg})
    known = {f.name for o in (FigureOptions, ReadOptions) for f in dataclasses.fields(o)} | set(signature.parameters)
    unknown = [k.arg for k in call.keywords if k.arg and k.arg not in known]
    assert not unknown, unknown


def test_calls_in_the_pages_fit() -> None:
    """``texgen.figure(...)``, ``.save(...)`` and the like in Python blocks bind to the functions as they are."""
    seen = 0
    for path in PAGES:
        for block in _code(path, "python"):
            for call in (n for n in ast.walk(ast.parse(block)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
                assert isinstance(call.func, ast.Attribute)
                of_texgen = isinstance(call.func.value, ast.Name) and call.func.value.id == "texgen"
                name = call.func.attr
                if of_texgen:
                    assert name in texgen.__all__, (path.name, name)
                    _bind(call, getattr(texgen, name))
                elif "texgen" in block and name in ("save", "html", "svg", "tikz", "slides", "png"):
                    _bind(call, getattr(Drawing, name))
                else:
                    continue
                seen += 1
    assert seen >= 8


def test_options_of_commands_in_the_pages_exist() -> None:
    """Every ``texgen COMMAND --option`` in a console block is one that click knows."""
    seen = 0
    for path in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for block in (*_code(path, "console"), *_code(path, "bash")):
            for line in re.findall(r"^\$ (?:.*?[;&|] )?(texgen .*)$", block.replace("\\\n", " "), re.MULTILINE):
                words = shlex.split(line, comments=True)
                words = words[: words.index("--")] if "--" in words else words
                command = cli.app.commands.get(words[1])
                assert command is not None or words[1].startswith("-"), line
                known = {o for p in (command.params if command else ()) for o in (*p.opts, *p.secondary_opts)} | {"--help", "--version"}
                for word in words[2:]:
                    if re.match(r"--?[a-z]", word):
                        assert word.split("=")[0] in known, f"{path.name}: {line}"
                        seen += 1
    assert seen > 60


# --- types ---------------------------------------------------------------------------------------------------------------

PROGRAM = '''
from pathlib import Path

import texgen
from texgen.api import Drawing, Drawings, TikzPicture
from texgen.figures import FigureOptions
from texgen.handout.api import make, save
from texgen.handout.sheet import SheetOptions
from texgen.sources.catalog import Entry, families, find, search
from texgen.specs import LayoutSpec, MmaSpec


def draw(folder: Path) -> list[Path]:
    spec: MmaSpec = texgen.read("SM80_16x8x16_F32F16F16F32_TN", atom_layout="2,1,1")
    drawing: Drawing = texgen.figure(spec, operand="C", highlight="T5")
    several: Drawings = texgen.figure({"a": spec, "b": "(8,8):(8,1)"})
    paths = [drawing.save(folder / f"c{suffix}", scale=1.0) for suffix in (".svg", ".tikz", ".html", ".json")]
    paths += several.save(folder / "all.svg")
    built = drawing.slides("thread", steps=8)
    text: str = built.finished().tikz() + built.svg() + drawing.html(element=True) + drawing.text()
    raw: bytes = drawing.png(scale=1.0) + drawing.pdf(engine=None) + drawing.data(".txt")
    chained = texgen.chain("SM75_U32x4_LDSM_N", spec, smem="S<3,4,3> o 0 o (16,64):(64,1)", operand="A", at=(0, 0))
    line = texgen.timeline(3, 8, 2, fault="wait", cols="0:8")
    picture: TikzPicture = texgen.render_tikz(text)
    owners = [owner.thread for owner in spec.C.owners(0, 0)]
    print(len(raw), chained.figure.cells, line.figure.title, picture.tex(), owners, FigureOptions.of(rows="0:8"))
    return paths


def catalogue() -> list[Entry]:
    return [find("SM61_DP4A"), *search("SM90*"), *(e for _, group in families() for e in group)]


def sheet(folder: Path) -> list[Path]:
    return save(make(["(8,8):(8,1)"], SheetOptions(seed=3, questions=4), dtype="f16"), folder / "sheet.tex")


def layout(text: str) -> LayoutSpec | None:
    try:
        made: LayoutSpec = texgen.read(text)
    except texgen.TexgenError as error:
        print(error.message, error.detail)
        return None
    return made


with texgen.recording() as r:
    names: list[str] = [o.name for o in r.objects]
'''
MISTAKES = {
    "drawing.save(1)": "arg-type", "drawing.slides()": "call-arg", "texgen.timeline('3')": "arg-type", "drawing.svg() + 1": "operator",
    "texgen.chain(1).nothing": "attr-defined", "find(3)": "arg-type",
}  # fmt: skip


def test_a_users_program_is_typed(tmp_path: Path) -> None:
    """mypy --strict takes a program that uses all of it, and sees each mistake in another: the names are not all Any."""
    pytest.importorskip("mypy")
    wrong = PROGRAM[: PROGRAM.index("def draw")] + "drawing: Drawing = texgen.chain()\n" + "\n".join(MISTAKES) + "\n"
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(wrong)
    done = subprocess.run(  # the settings are the project's, so that the cache of make lint serves
        [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "right.py"), str(tmp_path / "wrong.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert not [line for line in lines if "right.py" in line], done.stdout
    found = [(line.split(":")[1], line.rsplit("[", 1)[1].rstrip("]")) for line in lines if "wrong.py" in line]
    first = wrong.splitlines().index(next(iter(MISTAKES))) + 1
    assert found == [(str(first + i), code) for i, code in enumerate(MISTAKES.values())], done.stdout + done.stderr
