"""The parent's side of the child process that reads DSL objects by name.

The DSL can abort, crash or hang its process. Here that costs one figure and one sentence: the child is kept for the
next target, and replaced when it has died.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from texgen.errors import TexgenError
from texgen.layouts import Layout
from texgen.sources.dsl import Specs
from texgen.sources.wire import pack, unpack
from texgen.specs import Spec

ROOT = str(Path(__file__).resolve().parents[2])
TIMEOUT = 120.0

# The working folder must not shadow the standard library while the child starts; texgen itself may lie outside of
# the installed packages.
START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append({root!r}); "
    "from texgen.sources.worker import main; main()"
)


class _Died(Exception):
    """The child ended in the middle of a request."""


class _Child:
    """One running worker. Not thread-safe: callers hold the module's lock."""

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in ``end``
        self.read = 0
        env = {k: v for k, v in os.environ.items() if k != "CUTE_DSL_ARCH"}  # sent with each request instead
        self.process = subprocess.Popen(
            [sys.executable, "-c", START.format(root=ROOT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env, start_new_session=True,
        )  # fmt: skip
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self.process.stdout:
                self.replies.put(line)
        self.replies.put(None)

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The reply. Raises _Died, or queue.Empty after ``timeout`` seconds, with the stage it was in as argument."""
        assert self.process.stdin is not None
        stage, end = "start", time.monotonic() + timeout
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise _Died(stage) from None
        while True:
            try:
                line = self.replies.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise queue.Empty(stage) from None
            if line is None:
                raise _Died(stage)
            reply = cast("dict[str, Any]", json.loads(line))
            if "stage" not in reply:
                return reply
            stage = reply["stage"]

    def said(self) -> str:
        """What it has written to standard error since the last call."""
        self.log.seek(self.read)
        data = self.log.read()
        self.read += len(data)
        return data.decode(errors="replace")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self, gently: bool = False) -> int:
        """End the process and whatever it has started; its exit code."""
        if gently and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.log.close()
        return code


_lock = threading.RLock()
_child: _Child | None = None


def _forget() -> None:
    """In a forked process: the child belongs to the parent, and the lock may be held by a thread that is not here."""
    global _lock, _child
    _lock = threading.RLock()
    if _child is not None:
        _child.process.returncode = 0  # not ours to wait for
        for stream in (_child.process.stdin, _child.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    os.close(stream.fileno())
    _child = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def close() -> None:
    """End the kept child, if there is one. The next reading starts another."""
    global _child
    with _lock:
        if _child is not None:
            _child.end(gently=True)
            _child = None


atexit.register(close)


def request(op: str, what: str, *, timeout: float = TIMEOUT, **options: Any) -> dict[str, Any]:
    """Send one request to the kept child and return its reply.

    ``what`` names the target in messages. Raises TexgenError where the reply is an error, the child dies, or
    ``timeout`` seconds pass.
    """
    global _child
    message = {
        "op": op, "what": what, "cwd": os.getcwd(), "path": [p for p in sys.path if isinstance(p, str)],
        "default_arch": os.environ.get("CUTE_DSL_ARCH"), **options,
    }  # fmt: skip
    with _lock:
        if _child is None or not _child.alive:
            close()
            _child = _Child()
        child = _child
        finished = False
        try:
            reply = child.ask(message, timeout)
            finished = True
        except queue.Empty as e:
            raise TexgenError(_late(what, str(e), timeout), _where(_ended(child)[1])) from None
        except _Died as e:
            code, said = _ended(child)
            raise TexgenError(_death(what, str(e), code), _where(said)) from None
        finally:
            if not finished:
                _child = None
                if child.alive:  # interrupted from the keyboard
                    child.end()
        if said := child.said():
            sys.stderr.write(said)
    if not reply["ok"]:
        raise TexgenError(reply["error"], reply.get("detail", ""))
    return reply


def _ended(child: _Child) -> tuple[int, str]:
    """(exit code, last words) of a child that is dead or to be killed."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if not child.replies.empty() or not child.alive:
            child.process.wait(timeout=5)
    if child.alive and child.process.stdout is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(timeout=0.2)
    said = child.said()
    return child.end(), said


def _late(what: str, stage: str, timeout: float) -> str:
    doing = "importing the CuTe DSL" if stage == "import" else f"reading {what}"
    return f"{doing[0].upper()}{doing[1:]} took more than {timeout:g} s and was stopped; nothing else was lost."


def _death(what: str, stage: str, code: int) -> str:
    if code < 0:
        try:
            how = f"with {signal.Signals(-code).name}"
            how += " (often the system's answer when memory runs out)" if -code == signal.SIGKILL else ""
        except ValueError:
            how = f"with signal {-code}"
    else:
        how = f"with exit code {code}"
    if stage in ("start", "import"):
        return f"Importing the CuTe DSL ended its process {how}: try python -c 'import cutlass.cute' and texgen doctor."
    who = "The DSL" if code < 0 else "The code"
    return f"{who} ended the process {how} while reading {what}; this target has no figure, nothing else was lost."


_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def _where(said: str) -> str:
    """The user's frames, innermost last, out of what Python's fault handler wrote; else the last lines written."""
    before, fatal, after = said.partition("Fatal Python error")
    frames = [m for m in map(_FRAME.match, after.splitlines()) if m]
    theirs = [
        m[0] for m in frames
        if "nvidia_cutlass_dsl" not in m[1] and not m[1].startswith((ROOT + "/texgen/", "<frozen "))
        and m[1] != "<string>" and f"{os.sep}contextlib.py" not in m[1]
    ]  # fmt: skip
    words = [x for x in before.strip().splitlines() if x][-5:]
    return "\n".join([*words, *(["Where it was:"] if theirs else []), *reversed(theirs)]) if fatal or words else ""


def read_callable(
    target: str, *, arch: str | None = None, bits: int = 0, swizzle_unit: str = "", timeout: float = TIMEOUT
) -> Specs:
    """What the zero-argument function ``module:callable`` or ``file.py:callable`` returns, as Specs.

    A dict or list of objects gives a dict or list of Specs. ``arch`` (``sm_90a``) is chosen automatically when None;
    ``bits`` and ``swizzle_unit`` are as for ``dsl.read_object``; ``timeout`` is in seconds. Files are read anew every
    time, relative to the working folder. Raises TexgenError for a target that cannot be found or loaded, that raises
    (``detail`` is the user's own traceback), returns something else, takes too long or ends its process.
    """
    place, _, name = target.rpartition(":")
    if not place or not name.replace(".", "").isidentifier():
        raise TexgenError(f"{target!r} names no function: give module:callable or file.py:callable.")
    if place.endswith(".py") and not os.path.isfile(os.path.expanduser(place)):
        raise TexgenError(f"There is no file {place} (in {os.getcwd()}).")
    reply = request(
        "callable", target, target=target, arch=arch, bits=bits, swizzle_unit=swizzle_unit, timeout=timeout
    )
    return cast("Specs", unpack(reply["specs"]))


def read_live_atom(
    name: str,
    *,
    atom_layout: Layout | None = None,
    tile: Sequence[Any] | None = None,
    arch: str | None = None,
    timeout: float = TIMEOUT,
) -> Spec:
    """An atom of the catalogue by its name, built and tiled by the installed DSL.

    ``atom_layout`` and ``tile`` (ints, Layouts or None) are as for ``tiling.tile_mma``. Raises TexgenError for an atom
    that the DSL lacks or a tiling that it refuses, and as ``read_callable`` does.
    """
    reply = request(
        "atom", name, name=name, arch=arch, timeout=timeout,
        atom_layout=pack(atom_layout), tile=pack(None if tile is None else list(tile)),
    )  # fmt: skip
    return cast("Spec", unpack(reply["specs"]))
