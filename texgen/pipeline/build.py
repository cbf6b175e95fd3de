"""A ``TimelineSpec`` out of what a user gives: numbers, a planted fault, a protocol of their own, a result file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from texgen.errors import TexgenError, UsageError
from texgen.pipeline.measured import read_measured
from texgen.pipeline.program import Event, events
from texgen.pipeline.spec import TimelineSpec, timeline_from_dict, timeline_of

STAGES, K_TILES, K_BLOCKS = 3, 8, 2
"""What is drawn where nothing is said."""
TIMEOUT = 60.0


def timeline_spec(
    stages: int | None = None, k_tiles: int | None = None, k_blocks: int | None = None, *, fault: str = "",
    protocol: Any = None, measured: str | Path | None = None, name: str = "",
) -> TimelineSpec:  # fmt: skip
    """The timeline of a pipeline: the kernels' own, or ``protocol``'s.

    ``protocol`` is a list of events (``texgen.pipeline.program``), a function of (stages, k_tiles, k_blocks) that gives
    one, ``file.py:function`` (run in a process of its own), or a ``.json`` file: a list, or an object with ``program`` and,
    where they are not given here, ``stages``, ``k_tiles`` and ``k_blocks``. ``measured`` is a ``timeline.json`` whose run
    of that depth is drawn beneath. Raises TexgenError, UsageError.
    """
    if fault and protocol is not None:
        raise UsageError("--fault is planted in the kernels' own protocol: leave it out, or leave out --protocol.")
    given = {"stages": stages, "k_tiles": k_tiles, "k_blocks": k_blocks}
    written = _read(Path(protocol)) if isinstance(protocol, str | Path) and str(protocol).endswith(".json") else protocol
    own = written if isinstance(written, Mapping) else {}
    chosen = {k: own.get(k) if v is None else v for k, v in given.items()}
    run = read_measured(Path(measured), chosen["stages"] or STAGES) if measured else None
    defaults: dict[str, Any] = {"stages": STAGES, "k_tiles": run.k_tiles if run else K_TILES, "k_blocks": K_BLOCKS}
    numbers: dict[str, Any] = {k: defaults[k] if v is None else v for k, v in chosen.items()}
    if written is None:
        spec = timeline_of(**numbers, fault=fault, name=name)
    elif isinstance(written, Mapping):
        texts = {k: own.get(k, "") for k in ("name", "source")}
        if not all(isinstance(v, str) for v in texts.values()):
            raise TexgenError(f"{protocol}: 'name' and 'source' must be strings.")
        common = texts | {"notes": (), "warnings": ()} | ({"name": name} if name else {})
        spec = timeline_from_dict({**own, **numbers}, str(protocol) if isinstance(protocol, str | Path) else "the protocol", common)
    else:
        items = list(written) if isinstance(written, list | tuple) else _called(written, numbers)
        bounds = timeline_of(**numbers)
        program = events(items, numbers["stages"], str(protocol) if isinstance(protocol, str | Path) else "the protocol")
        spec = replace(bounds, name=name or _named(protocol), program=program)
    return replace(spec, measured=run) if run is not None else spec


def _read(path: Path) -> Any:
    try:
        made = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise TexgenError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except (ValueError, RecursionError) as error:
        raise TexgenError(f"{path} is no JSON: {error}.") from None
    if not isinstance(made, list | dict):
        raise TexgenError(f'{path} is no protocol: write a list of events, or an object with "program".')
    return made


def _called(protocol: Any, numbers: Mapping[str, int]) -> list[Any]:
    """What a function gives, or ``file.py:function`` in a process of its own."""
    if callable(protocol):
        function: Callable[..., Any] = protocol
        made = function(*numbers.values())
        if not isinstance(made, Iterable) or isinstance(made, str | Mapping):
            raise TexgenError(f"The protocol's function gave {made!r}: it must give a list of events.")
        return [e.to_list() if isinstance(e, Event) else e for e in made]
    if not isinstance(protocol, str) or ":" not in protocol:
        raise UsageError(f"--protocol {protocol!r} is none: give a .json file, or file.py:function.")
    code = [sys.executable, "-m", "texgen.pipeline.child", protocol, *map(str, numbers.values())]
    try:
        done = subprocess.run(code, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise TexgenError(f"{protocol} did not end in {TIMEOUT:.0f} seconds.") from None
    if done.returncode or not done.stdout.strip():
        said = done.stderr.strip().splitlines()
        raise TexgenError(f"{protocol} gave no protocol: {said[-1] if said else 'it ended without one'}", done.stderr.rstrip() if len(said) > 1 else "")
    made = json.loads(done.stdout.splitlines()[-1])
    if not isinstance(made, list):
        raise TexgenError(f'{protocol} must return a list of events such as ["copy", 0].')
    return made


def _named(protocol: Any) -> str:
    if isinstance(protocol, str | Path):
        return Path(str(protocol).partition(":")[0]).stem if str(protocol).endswith(".json") else str(protocol).rpartition(":")[2]
    return str(getattr(protocol, "__name__", ""))
