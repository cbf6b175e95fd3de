"""Recording what DSL code builds, while it builds it: ``with texgen.recording() as r: ...``.

The DSL's classes and functions are wrapped for the time of the recording and put back after it (``hooks.py``). A wrapper
keeps the texts of the object's types and where the source's frames stand (``sightings.py``), which costs a fraction of a
millisecond; names come from the syntax tree and specs from the texts when they are asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from texgen.errors import TexgenError
from texgen.sources.hooks import install
from texgen.sources.sightings import active, lock
from texgen.trace.records import Recording
from texgen.trace.wrapping import Patches

_patches: Patches | None = None


@contextlib.contextmanager
def recording(into: Recording | None = None) -> Iterator[Recording]:
    """``with texgen.recording() as r:`` records every tiled object, shared-memory layout, TMA atom, launch and partition built inside.

    Works on any thread and nests (an outer recording sees what an inner one does). Nothing stays patched afterwards.
    Raises TexgenError where the DSL is not installed.
    """
    global _patches
    made = Recording() if into is None else into
    with lock:
        if _patches is None:
            _patches = Patches()
            try:
                install(_patches)
            except ModuleNotFoundError as e:
                _patches = None
                from texgen.doctor import explain_import

                raise TexgenError(explain_import(e)) from None
            except BaseException:
                _patches.undo()
                _patches = None
                raise
        active.append(made)
    try:
        yield made
    finally:
        with lock:
            active.remove(made)
            if not active and _patches is not None:
                _patches.undo()
                _patches = None
