"""The child process that builds and reads DSL objects by name: one JSON request a line in, JSON replies out.

The DSL can abort or crash its process, so this one is expendable. Run as ``python -m texgen.sources.worker``; the
parent side is ``child.py``. Replies go to a private copy of standard output; what the user's code prints goes to
standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import inspect
import json
import linecache
import os
import re
import site
import sys
import sysconfig
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError
from texgen.several import plain_warnings
from texgen.sources import dsl
from texgen.sources.atoms_dsl import build_live, set_arch, tracing
from texgen.sources.wire import pack, unpack

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
WANTS = re.compile(r"expects arch to be (?:one of \[([^\]]*)\]|at least (\S+?)|(\S+?))(?:,| but)")
DEFAULT_ARCH = "sm_80"
OUR_FOLDER = str(Path(__file__).resolve().parents[1])

Reply = dict[str, Any]
STREAMS: list[int] = []
"""Private copies of what file descriptors 0, 1 and 2 are to be for the user's code."""


def main() -> None:
    """Answer requests until standard input ends."""
    requests, replies, log = os.dup(0), os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_RDONLY)
    STREAMS[:] = null, log, log  # the user's code must neither read our requests nor write into our replies
    plain_warnings()
    faulthandler.enable(file=log, all_threads=False)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()

    def send(reply: Reply) -> None:
        data = memoryview((json.dumps(reply) + "\n").encode())
        while data:
            data = data[os.write(replies, data) :]

    with open(requests, encoding="utf-8", closefd=False) as lines:
        for line in lines:
            send(answer(json.loads(line), lambda stage: send({"stage": stage})))
    # Not the interpreter's own end: DSL objects and the user's threads may crash or block it.
    os._exit(0)


def _watch_parent(parent: int) -> None:
    """End with the parent, even in the middle of the user's endless loop."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def answer(request: Reply, stage: Callable[[str], None] = lambda _: None) -> Reply:
    """The reply to one request: ``{"ok": true, ...}``, or ``{"ok": false, "error": ..., "detail": ...}``."""
    try:
        with _sandbox(request):
            stage("import")
            import_dsl()
            stage("read")
            return {"ok": True, **OPS[request["op"]](request)}
    except TexgenError as e:
        return {"ok": False, "error": e.message, "detail": e.detail}
    except BaseException as e:
        text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        return {"ok": False, "error": f"texgen's own fault: {type(e).__name__}: {e}", "detail": text}


@contextlib.contextmanager
def _sandbox(request: Reply) -> Iterator[None]:
    """The process as the user's code expects it, and as it was again afterwards, modules of theirs forgotten."""
    environ, path, modules = dict(os.environ), list(sys.path), set(sys.modules)
    bytecode = sys.dont_write_bytecode
    for fd, stream in enumerate(STREAMS):
        os.dup2(stream, fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(fd, "w", 1, "utf-8", "replace", closefd=False) for fd in (1, 2))  # noqa: SIM115
    try:
        if cwd := request.get("cwd"):
            os.chdir(cwd)
        for name, value in request.get("env", {}).items():
            os.environ[name] = value
        sys.path += [p for p in request.get("path", []) if p and p not in sys.path]
        importlib.invalidate_caches()
        linecache.checkcache()
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = bytecode
        os.environ.clear()
        os.environ.update(environ)
        for name in set(sys.modules) - modules:
            if _is_users(sys.modules[name]):
                del sys.modules[name]


def _is_users(module: Any) -> bool:
    """True for pure Python modules from outside of the standard library and the installed packages."""
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", []))
    if not places or not isinstance(places[0], str) or str(getattr(module, "__name__", "")).split(".")[0] == "cutlass":
        return False
    where = os.path.abspath(places[0])
    return not where.startswith(_installed()) and not where.endswith((".so", ".pyd"))


def _installed() -> tuple[str, ...]:
    folders = [sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), OUR_FOLDER]
    return tuple(str(f) + os.sep for f in folders if f)


def import_dsl() -> None:
    """Import the DSL; TexgenError with what to install where that fails."""
    try:
        importlib.import_module("cutlass.cute")
    except BaseException as e:
        from texgen.doctor import explain_import

        missing = isinstance(e, ModuleNotFoundError) and str(e.name).startswith("cutlass")
        raise TexgenError(explain_import(e), "" if missing else _own_traceback(e)) from None


# Architecture


def architectures() -> list[str]:
    """The names that the DSL knows: ``sm_80``, ``sm_90a`` and so on; empty where it does not list them."""
    with contextlib.suppress(ImportError):
        from cutlass.base_dsl.arch import Arch

        return [a.name for a in Arch]
    return []


def known_arch(name: str, origin: str) -> str:
    """``name`` as the DSL spells it (``90a`` and ``sm90a`` become ``sm_90a``); TexgenError where it knows none such."""
    spelt = re.sub(r"^(sm_?)?", "sm_", name.strip().lower())
    valid = architectures()
    if valid and spelt not in valid:
        raise TexgenError(f"{origin} says {name!r}, which the DSL does not know: give one of {', '.join(valid)}.")
    return spelt


def wanted_archs(error: BaseException | None) -> list[str]:
    """The architectures that an operation asked for when it refused the current one; empty for another error."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        with contextlib.suppress(Exception):
            if found := WANTS.search(ANSI.sub("", str(error))):
                return re.findall(r"sm_\w+", next(g for g in found.groups() if g))
        error = error.__cause__ or error.__context__
    return []


def under_arch(request: Reply, attempt: Callable[[], Any]) -> Any:
    """``attempt()`` under the architecture it needs: ``request["arch"]``, or the first that its operations accept."""
    explicit = request.get("arch")
    if explicit:
        arch = known_arch(explicit, "--arch")
    elif default := request.get("default_arch"):
        arch = known_arch(default, "CUTE_DSL_ARCH")
    else:
        arch = DEFAULT_ARCH
    what, tried = request["what"], [arch]
    while True:
        set_arch(arch)
        try:
            return attempt()
        except BaseException as e:
            wanted = wanted_archs(e)
            if not wanted:
                raise
            if explicit:
                also = f" (or {', '.join(wanted[1:])})" if wanted[1:] else ""
                raise TexgenError(
                    f"{what} needs {wanted[0]}{also} and --arch says {arch}: leave --arch out, or give {wanted[0]}."
                ) from None
            arch = next((a for a in wanted if a not in tried), "")
            if not arch:
                raise TexgenError(
                    f"{what} needs several architectures at once, {tried[-1]} and {wanted[0]}: "
                    f"return the objects of each from a function of its own.",
                    _user_traceback(e),
                ) from None
            tried.append(arch)


# The user's callable


def read_callable(request: Reply) -> Reply:
    """Load ``request["target"]``, call it in a tracing context and read what it returns."""
    target = request["target"]
    before = set(sys.modules)

    def attempt() -> Any:
        for name in set(sys.modules) - before:
            if _is_users(sys.modules[name]):
                del sys.modules[name]
        with tracing():
            found = _user(lambda: load(target), target, "cannot be loaded:")
            made = _user(lambda: found(), target, "raised") if _to_call(found, target) else found
            return _read(made, target, request)

    return {"specs": pack(under_arch(request, attempt))}


def _user(action: Callable[[], Any], target: str, verb: str) -> Any:
    """``action()``, with what it raises turned into a TexgenError that shows the user's traceback."""
    sys.dont_write_bytecode = True  # so that a file changed within a second is read again
    try:
        return action()
    except TexgenError as e:
        raise TexgenError(f"{target}: {e.message}", e.detail) from None
    except SyntaxError as e:
        where = f" (line {e.lineno})" if e.lineno else ""
        what = f"{type(e).__name__}: {e.msg}{where}"
        raise TexgenError(f"{target} cannot be loaded: {what}.", _user_traceback(e)) from None
    except BaseException as e:
        if wanted_archs(e):
            raise
        raise TexgenError(f"{target} {verb} {_one_line(e)}", _user_traceback(e)) from None


def _to_call(found: Any, target: str) -> bool:
    """True for a function to call, False for an object to read as it is."""
    if getattr(found, "_decorator_kind", "") == "kernel":
        raise TexgenError(
            f"{target} is a @cute.kernel function: give the @cute.jit function that launches it, or a plain one that "
            f"returns the TiledMma or TiledCopy."
        )
    if dsl.is_dsl_object(found) or not callable(found):
        return False
    needed = []
    with contextlib.suppress(TypeError, ValueError):
        needed = [
            p.name for p in inspect.signature(found).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]  # fmt: skip
    if needed:
        raise TexgenError(
            f"{target} takes arguments ({', '.join(needed)}) and texgen calls it with none: "
            f"give a function without parameters that calls it with the values you want."
        )
    return True


def _read(made: Any, target: str, request: Reply) -> Any:
    if not isinstance(made, dsl.SPECS) and not dsl.is_dsl_object(made) and not _holds(made):
        raise TexgenError(f"{target} returned {_kind(made)}: it must return {dsl.ACCEPTED}.")
    try:
        return dsl.read_any(
            made, name=request.get("label", ""), bits=request.get("bits", 0), swizzle_unit=request.get("swizzle_unit", "")
        )
    except TexgenError as e:
        raise TexgenError(f"{target}: {e.message}", e.detail) from None
    except BaseException as e:
        if wanted_archs(e):
            raise
        raise TexgenError(f"{target}: the DSL could not say the layout: {_one_line(e)}", _own_traceback(e)) from None


def _holds(made: Any) -> bool:
    """True for a non-empty dict, list or tuple (its entries are looked at one by one)."""
    return isinstance(made, (dict, list, tuple)) and bool(made)


def _kind(made: Any) -> str:
    if made is None:
        return "None"
    if isinstance(made, (dict, list, tuple)) and not made:
        return f"an empty {type(made).__name__}"
    name = type(made).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def load(target: str) -> Any:
    """The object that ``module:name`` or ``file.py:name`` names; the name may have dots."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TexgenError("give module:callable or file.py:callable.")
    module = _load_file(place) if place.endswith(".py") else _load_module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise TexgenError(f"there is no {name!r} in {place}: it has {_names(found)}.")
        found = getattr(found, part)
    return found


def _names(module: Any) -> str:
    """The functions of a module that could have been meant."""
    own = [
        n for n, x in vars(module).items()
        if not n.startswith("_") and callable(x) and getattr(x, "__module__", None) == getattr(module, "__name__", "")
    ]  # fmt: skip
    return ", ".join(own[:12]) + (", …" if len(own) > 12 else "") if own else "no functions"


def _load_file(place: str) -> types.ModuleType:
    path = os.path.abspath(os.path.expanduser(place))
    if not os.path.isfile(path):
        raise TexgenError(f"there is no file {place}.")
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.basename(path)[: -len(".py")]
    if name in sys.modules or not name.isidentifier():
        name = f"_texgen_file_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"
    module = types.ModuleType(name)
    module.__file__ = path
    module.__spec__ = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


def _load_module(place: str) -> types.ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as e:
        if e.name and (place == e.name or place.startswith(e.name + ".")):
            raise TexgenError(
                f"there is no module {e.name!r} in {os.getcwd()} or on Python's path: "
                f"give the file instead, path/to/file.py:callable."
            ) from None
        raise


# Texts of errors


def _one_line(e: BaseException) -> str:
    """``ValueError: its message's first line``, without colours."""
    try:
        lines = [x.strip() for x in ANSI.sub("", str(e)).splitlines() if x.strip()]
    except Exception:
        lines = []
    first = lines[0].removeprefix("error: ").removeprefix(f"{type(e).__name__}: ") if lines else ""
    return f"{type(e).__name__}: {first}" if first else type(e).__name__


def _user_traceback(e: BaseException) -> str:
    """The traceback of ``e`` in the user's files alone: our frames, Python's import system and the DSL's cut."""
    return _traceback(e, _is_theirs)


def _own_traceback(e: BaseException) -> str:
    return _traceback(e, lambda file: not file.startswith("<frozen importlib"))


def _is_theirs(file: str) -> bool:
    return not file.startswith((OUR_FOLDER + os.sep, "<frozen ")) and "nvidia_cutlass_dsl" not in file and file not in (
        "<string>",
    )


def _traceback(e: BaseException, keep: Callable[[str], bool]) -> str:
    report = traceback.TracebackException.from_exception(e)
    part: traceback.TracebackException | None = report
    seen: set[int] = set()
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        kept = [frame for frame in part.stack if keep(frame.filename)]
        part.stack = traceback.StackSummary.from_list(kept)
        part = part.__cause__ or (None if part.__suppress_context__ else part.__context__)
    return ANSI.sub("", "".join(report.format())).rstrip()


# Other requests


def read_atom(request: Reply) -> Reply:
    """An atom of the catalogue, built by the installed DSL."""
    from texgen.sources import catalog

    entry = catalog.find(request["name"])
    build = entry.build
    if build is None:
        raise TexgenError(f"{entry.name} is not in the CuTe DSL ({entry.origin} has it): leave --live out.")
    atom_layout, tile = unpack(request["atom_layout"]), unpack(request["tile"])

    def attempt() -> Any:
        with tracing():
            try:
                made = build_live(build, atom_layout, tile)
            except BaseException as e:
                if wanted_archs(e):
                    raise
                raise _refused(entry.name, e) from None
            return _read(made, entry.name, {"label": entry.name, **request})

    return {"specs": pack(under_arch(request, attempt))}


def _refused(name: str, e: BaseException) -> TexgenError:
    """Why the installed DSL does not build an atom: it is older than the atom, or its own reason."""
    from importlib.metadata import version

    if isinstance(e, AttributeError) and (missing := re.search(r"no attribute '(\w+)'", str(e))):
        installed = version("nvidia-cutlass-dsl")
        return TexgenError(
            f"nvidia-cutlass-dsl {installed} has no {missing[1]}, which {name} needs: install a newer one, or leave --live out and take the catalogue's."
        )
    return TexgenError(f"The DSL refuses {name} so tiled: {_one_line(e)}")


def probe(request: Reply) -> Reply:
    """What ``texgen doctor`` asks: where the DSL lies, and whether an MMA of each generation can be built."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.nvgpu import OperandMajorMode, tcgen05, warp, warpgroup

    k = OperandMajorMode.K
    f16, f32 = cutlass.Float16, cutlass.Float32
    builders: dict[str, Callable[[], Any]] = {
        "sm_80": lambda: warp.MmaF16BF16Op(f16, f32, (16, 8, 16)),
        "sm_90a": lambda: warpgroup.MmaF16BF16Op(f16, f32, (64, 64, 16), warpgroup.OperandSource.SMEM, k, k),
        "sm_100a": lambda: tcgen05.MmaF16BF16Op(
            f16, f32, (128, 64, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, k, k
        ),
    }
    built: dict[str, str] = {}
    for arch, build in builders.items():
        try:
            set_arch(arch)
            with tracing():
                dsl.read_any(cute.make_tiled_mma(build()))
            built[arch] = ""
        except BaseException as e:
            built[arch] = _one_line(e)
    from cutlass.cutlass_dsl import CuTeDSL

    return {
        "version": str(getattr(cutlass, "__version__", "")),
        "file": str(cutlass.__file__),
        "built": built,
        "viz": importlib.util.find_spec("cutlass.cute.viz") is not None,
        "hooks": hasattr(CuTeDSL._get_dsl(), "_trace_finalize_hooks"),
        "archs": architectures(),
    }


OPS: dict[str, Callable[[Reply], Reply]] = {"callable": read_callable, "atom": read_atom, "probe": probe}

if __name__ == "__main__":
    main()
