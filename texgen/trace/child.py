"""The child's side of ``texgen trace``: runs the user's program as Python would, under recording.

What it is to do comes in an environment variable; what was recorded goes line by line into a journal. The program has
standard input, output and error to itself.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import json
import os
import sys
import types
from typing import Any

from texgen.trace import standins

VARIABLE = "TEXGEN_TRACE"


class LaunchReached(SystemExit):
    """Ends the program at its last wanted launch. A ``SystemExit``, so that ``except Exception`` lets it through."""

    def __init__(self) -> None:
        super().__init__(0)


class NoTarget(Exception):
    """The module or function that was named is not there."""


class _Run:
    """What this process is doing."""

    launches = 1
    seen = 0
    reached = False
    device = False
    journal: Any = None


run = _Run()


def main() -> None:
    """Run the program of ``TEXGEN_TRACE`` and end with its exit status."""
    config = json.loads(os.environ[VARIABLE])
    status = _main(config)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    # Not the interpreter's own end: DSL objects that outlive their context may crash it.
    os._exit(status)


def _main(config: dict[str, Any]) -> int:
    from texgen.sources.recorder import recording

    journal = attach(config)
    crash = open(config["crash"], "w")  # noqa: SIM115 - for as long as the process lives
    faulthandler.enable(file=crash, all_threads=False)
    hook = sys.excepthook
    with recording(journal):
        how, status, error, place = _program(config, hook)
    from texgen.sources.sightings import faults

    journal.say(
        op="ended", how="launch" if run.reached and how == "end" else how, status=status, error=error, seen=run.seen,
        faults=list(faults), wanted=_wanted, place=place,
    )  # fmt: skip
    _finish()
    return status


def _finish() -> None:
    """What Python does at the end of a program: other threads are waited for, exit functions run."""
    import atexit
    import threading

    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()


def attach(config: dict[str, Any]) -> Any:
    """Import the DSL, put the stand-ins in place where there is no device, and open the journal."""
    from texgen.trace.journal import JournalRecording

    journal = run.journal = JournalRecording(config["journal"])
    run.launches, run.device = config["launches"], config["device"]
    importlib.import_module("cutlass.cute")
    standins.note.append(lambda name: journal.say(op="replaced", name=name))
    if not run.device:
        device = standins.Device(config["arch"])
        standins.patch_bindings(device)
        standins.patch_dsl(device)
        standins.patch_torch_when_imported(device)
    _watch_launches()
    _follow_spawned()
    return journal


def spawned() -> None:
    """The first thing that a process started by multiprocessing's ``spawn`` does."""
    from texgen.sources import recorder

    journal = attach(json.loads(os.environ[VARIABLE]))
    context = recorder.recording(journal)
    context.__enter__()
    run.kept = context  # type: ignore[attr-defined]


def _follow_spawned() -> None:
    from multiprocessing import spawn

    original = spawn.get_command_line

    @functools.wraps(original)
    def get_command_line(**kwds: Any) -> list[str]:
        line: list[str] = original(**kwds)
        if "-c" in line:
            at = line.index("-c") + 1
            line[at] = f"import sys; sys.path.append({config_root()!r}); from texgen.trace.child import spawned; spawned(); {line[at]}"
        return line

    spawn.get_command_line = get_command_line


def config_root() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# Launches


def _watch_launches() -> None:
    """Count launches of compiled functions; without a device they do not happen."""
    from cutlass.base_dsl import jit_executor

    for path in ("cutlass.cutlass_dsl.cuda_jit_executor", "cutlass.cutlass_dsl.cutlass_function", "cutlass.cutlass_dsl.tvm_ffi_provider"):
        with contextlib.suppress(Exception):
            importlib.import_module(path)
    classes = [jit_executor.JitCompiledFunction, jit_executor.JitExecutor]
    todo = list(classes)
    while todo:
        found = todo.pop().__subclasses__()
        classes += found
        todo += found
    for cls in classes:
        own = vars(cls)
        if "run_compiled_program" in own:
            cls.run_compiled_program = _launching(own["run_compiled_program"])
        if "__call__" in own and "FFI" in cls.__name__:
            cls.__call__ = _launching(own["__call__"])
        if "to" in own and not run.device:
            cls.to = _bound(own["to"])


def _bound(original: Any) -> Any:
    """``compiled.to(device)`` without a device is the function itself; host-only ones are bound as they are."""

    @functools.wraps(original)
    def to(self: Any, device: Any = None) -> Any:
        if getattr(self, "has_gpu_module", True):
            standins.meet("JitCompiledFunction.to")
            return self
        return original(self, device)

    return to


_depth = [0]


def _launching(original: Any) -> Any:
    @functools.wraps(original)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        from texgen.sources.sightings import state

        if not getattr(self, "has_gpu_module", True) or _depth[0]:
            return original(self, *args, **kwargs)  # host code alone, or the inner of two
        if state.auxiliary:
            if run.device:
                return original(self, *args, **kwargs)
            return None  # a helper of the DSL's own
        run.seen += 1
        result = None
        if run.device:
            _depth[0] += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                _depth[0] -= 1
        else:
            standins.meet("launch (compiled, not run)")
            standins.launches_skipped[0] += 1
        if run.launches and run.seen >= run.launches:
            run.reached = True
            run.journal.say(op="reached")
            raise LaunchReached
        return result

    return launch


# The program


_wanted: list[str] = []


def _program(config: dict[str, Any], hook: Any) -> tuple[str, int, str, list[Any]]:
    """(end or error, exit status, the error in one line, file and line that it comes from or nothing)."""
    try:
        _execute(config)
        return "end", 0, "", []
    except LaunchReached:
        return "end", 0, "", []
    except SystemExit as e:
        status = _status(e)
        return "end", status, "", _place(e) if status else []
    except NoTarget as e:
        return "missing", 1, str(e), []
    except BaseException as e:
        from texgen.sources.worker import _one_line, wanted_archs

        _wanted[:] = wanted_archs(e)
        line, place = _one_line(e), _place(e)
        if _wanted and config["chosen"]:
            return "error", 1, line, place  # the parent tries again
        _show(e, sys.excepthook)
        return "error", 130 if isinstance(e, KeyboardInterrupt) else 1, line, place


def _place(error: BaseException) -> list[Any]:
    """File and line of the program's own innermost frame; of what the DSL raises, those of what made it do so."""
    from texgen.sources.sightings import is_inner

    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return [error.filename, error.lineno]
    part: BaseException | None = error
    seen: set[int] = set()
    found: list[Any] = []
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        trace = _theirs(part.__traceback__)
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if not file.startswith("<") and not is_inner(file) and "site-packages" not in file:
                found = [os.path.abspath(file), trace.tb_lineno]
            trace = trace.tb_next
        part = (part.__cause__ or part.__context__) if type(part).__module__.startswith("cutlass") else None
    return found


def _status(error: SystemExit) -> int:
    """The exit status, as Python takes it: None is 0, text is printed and means 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException, hook: Any) -> None:
    """The traceback as Python prints it, our own frames cut."""
    part: BaseException | None = error
    seen: set[int] = set()
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        part.__traceback__ = _theirs(part.__traceback__)
        part = part.__cause__ or part.__context__
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit:  # the DSL's hook ends the process itself
        pass
    except BaseException:
        sys.__excepthook__(type(error), error, error.__traceback__)


def _theirs(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this file and of the recorder's wrappers."""
    from texgen.sources.sightings import OURS
    from texgen.trace.wrapping import WRAPPERS

    ours = (os.path.abspath(__file__), *OURS)
    kept: list[types.TracebackType] = []
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != WRAPPERS and os.path.abspath(file) not in ours:
            kept.append(trace)
        trace = trace.tb_next
    out: types.TracebackType | None = None
    for one in reversed(kept):
        out = types.TracebackType(out, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return out


def _execute(config: dict[str, Any]) -> None:
    target, arguments = config["target"], config["args"]
    place, colon, name = target.rpartition(":")
    if colon and not os.path.exists(target):
        if place.endswith(".py"):
            sys.argv[:] = [place, *arguments]
            sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
            found: Any = _load(place, os.path.splitext(os.path.basename(place))[0])
        else:
            sys.path.insert(0, os.getcwd())
            sys.argv[:] = [place, *arguments]
            found = _module(place)
        for part in name.split("."):
            if not hasattr(found, part):
                raise NoTarget(f"There is no {name!r} in {place}.")
            found = getattr(found, part)
        if not callable(found):
            raise NoTarget(f"{target} is no function: give one that texgen can call without arguments.")
        found()
        return
    sys.argv[:] = [target, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
    _load(target, "__main__")


def _module(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name and (name == e.name or name.startswith(e.name + ".")):
            raise NoTarget(f"There is no module {e.name!r} in {os.getcwd()} or on Python's path: give the file instead, path/to/file.py:callable.") from None
        raise


def _load(path: str, name: str) -> types.ModuleType:
    path = os.path.abspath(path)
    module = types.ModuleType(name)
    module.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules[name] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module
