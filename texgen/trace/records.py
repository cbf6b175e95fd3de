"""What a recording holds: objects, launches, shared memory and partitions, out of the events that were seen."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from texgen.errors import TexgenError
from texgen.specs import Spec
from texgen.trace import naming, reading
from texgen.trace.naming import Function, Place, Sighted

KINDS = ("tiled_mma", "tiled_copy", "mma_atom", "copy_atom", "smem_layout", "tma_atom")

Frames = tuple[tuple[CodeType, int, int], ...]


@dataclass
class Launch:
    """One ``kernel(...).launch(...)`` in the source: sizes that are known only at run time are the source's text."""

    kernel: str
    file: str
    line: int
    grid: list[int | str]
    block: list[int | str]
    cluster: list[int | str]
    smem: int | None = None
    call_file: str = ""
    call_line: int = 0
    trace: int = 0
    arch: str = ""
    sightings: int = 1
    takes: list[str] = field(default_factory=list)
    """The types of the objects and layouts among the kernel's arguments."""


@dataclass
class Allocation:
    """Shared memory that a kernel takes: ``fields`` of a struct are (name, bytes, offset)."""

    name: str
    file: str
    line: int
    code: str
    size: int
    dtype: str = ""
    layout: str = ""
    fields: list[tuple[str, int, int]] = field(default_factory=list)
    launch: Launch | None = None


@dataclass
class Partition:
    """One tensor that DSL code partitions or tiles: ``call`` is ``partition_S``, ``local_tile``, …"""

    name: str
    call: str
    file: str
    line: int
    code: str
    function: str
    type: str
    layout: str
    owner: str = ""
    """The type of the tiled copy or MMA that partitions."""
    of: str = ""
    """The type of the whole tensor."""
    launch: Launch | None = None
    sightings: int = 1


@dataclass
class Recorded:
    """One object that the source builds. ``spec`` is made when it is first asked for and None where ``error`` says why."""

    name: str
    kind: str
    file: str
    line: int
    code: str
    function: str
    sightings: int
    text: str
    trace: int = 0
    launch: Launch | None = None
    tensors: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    function_line: int = 0
    order: int = 0
    alias: str = ""
    """What the caller of the helper that builds and returns it calls it."""
    _read: Callable[[], Spec] | None = field(default=None, repr=False)
    _spec: Spec | None = field(default=None, repr=False)
    _error: str | None = field(default=None, repr=False)

    @property
    def spec(self) -> Spec | None:
        """The spec; None where the object cannot be drawn."""
        if self._spec is None and self._error is None:
            try:
                self._spec = self._read() if self._read is not None else None
                self._error = "" if self._spec is not None else "There is nothing to draw."
            except TexgenError as e:
                self._error = e.message
            except Exception as e:  # another version's types: the program's trace must not suffer
                self._error = f"texgen cannot read it ({type(e).__name__}: {e})."
        return self._spec

    @property
    def error(self) -> str:
        """Why there is no spec, empty where there is one."""
        return "" if self.spec is not None else (self._error or "")

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``trace.json``."""
        return {
            "name": self.name, "kind": self.kind, "file": self.file, "line": self.line, "code": self.code,
            "function": self.function, "sightings": self.sightings,
            "spec": None if self.spec is None else self.spec.to_dict(),
        }  # fmt: skip


@dataclass
class Event:
    """What a wrapper saw, before names are asked for."""

    kind: str
    frames: Frames
    text: str
    payload: dict[str, Any]
    trace: int
    launch: Launch | None
    callee: str
    order: int
    sightings: int = 1
    known: list[Place] | None = None
    call: tuple[int, ...] = ()

    @property
    def places(self) -> list[Place]:
        """Where the frames stand, innermost first."""
        if self.known is None:
            self.known = places_at(self.frames)
        return self.known


class Recording:
    """What was built since ``recording()`` was entered, in the order of the first sighting.

    ``objects``, ``launches``, ``allocations`` and ``partitions`` may be read during the recording and after it.
    """

    def __init__(self) -> None:
        self._events: dict[Any, Event] = {}
        self._lock = threading.Lock()
        self._made: tuple[int, list[Recorded]] | None = None
        self._parts: tuple[int, list[Partition]] | None = None
        self._count = 0
        self._launches: dict[Any, Launch] = {}

    def add(self, event: Event) -> None:
        key = (event.kind, event.call, event.text, event.trace if event.kind == "allocation" else 0)
        with self._lock:
            self._count += 1
            known = self._events.get(key)
            if known is None:
                self._events[key] = event
            else:
                known.sightings += event.sightings
                known.payload.update({k: v for k, v in event.payload.items() if v})
                if known.launch is None:
                    known.launch = event.launch
            self._note(known or event)

    def add_launch(self, made: Launch) -> Launch:
        key = (made.kernel, made.file, made.call_file, made.call_line, str(made.grid), str(made.block), str(made.cluster))
        with self._lock:
            self._count += 1
            known = self._launches.get(key)
            if known is None:
                self._launches[key] = made
            else:
                known.sightings += 1
            return known or made

    def _note(self, event: Event) -> None:
        """Called under the lock with every event that is new or has changed."""

    def _of(self, *kinds: str) -> list[Event]:
        with self._lock:
            return [e for e in self._events.values() if e.kind in kinds]

    @property
    def objects(self) -> list[Recorded]:
        """Every tiled object, each once."""
        if self._made is None or self._made[0] != self._count:
            self._made = (self._count, _objects(self))
        return self._made[1]

    @property
    def launches(self) -> list[Launch]:
        """Every launch in the source, each once."""
        with self._lock:
            return list(self._launches.values())

    @property
    def allocations(self) -> list[Allocation]:
        """The shared memory that kernels take, in the order of their source."""
        out = []
        for e in self._of("allocation"):
            seen = naming.sighted(e.places)
            out.append(Allocation(
                seen.name, seen.file, seen.line, seen.code, e.payload["size"] or reading.bytes_of(e.payload["layout"], e.payload["bits"]), e.payload.get("dtype", ""),
                e.payload.get("layout", ""), e.payload.get("fields", []), e.launch,
            ))  # fmt: skip
        return out

    @property
    def tensors(self) -> list[Allocation]:
        """The tensors in shared memory, with their layouts."""
        out = []
        for e in self._of("tensor"):
            seen, p = naming.sighted(e.places), e.payload
            size = reading.bytes_of(p["layout"], p["bits"])
            out.append(Allocation(
                seen.name, seen.file, seen.line, seen.code, size, p["dtype"], reading.bare(p["layout"]), launch=e.launch
            ))  # fmt: skip
        return out

    @property
    def partitions(self) -> list[Partition]:
        """The tensors that ``partition_S/D/A/B/C``, ``retile``, ``local_tile`` and the like gave."""
        if self._parts is None or self._parts[0] != self._count:
            self._parts = (self._count, _partitions(self))
        return self._parts[1]

    def to_list(self) -> list[dict[str, Any]]:
        """``objects`` as in ``trace.json``."""
        return [o.to_dict() for o in self.objects]


def identity(frames: Frames) -> tuple[int, ...]:
    """Which frames these are; hashing code objects by their content would cost more than all the rest."""
    return tuple(n for code, lasti, _ in frames for n in (id(code), lasti))


# From events to objects


_places_of: dict[tuple[int, int], tuple[CodeType, Place]] = {}


def places_at(frames: Frames) -> list[Place]:
    out = []
    for code, lasti, line in frames:
        known = _places_of.get((id(code), lasti))
        if known is None or known[0] is not code:
            known = _places_of[id(code), lasti] = (code, naming.place_of(code, lasti, line))
        out.append(known[1])
    return out


def _partitions(recording: Recording) -> list[Partition]:
    out: dict[Any, Partition] = {}
    for e in recording._of("partition"):
        seen = naming.sighted(e.places, e.payload.get("index"))
        made = Partition(
            seen.name, e.payload["call"], seen.file, seen.line, seen.code, seen.function, e.text,
            e.payload["layout"], e.payload["owner"], e.payload["of"], e.launch, e.sightings,
        )  # fmt: skip
        key = (made.file, made.line, made.name, made.call, made.type)
        if key in out:
            out[key].sightings += e.sightings
        else:
            out[key] = made
    return list(out.values())


def _objects(recording: Recording) -> list[Recorded]:
    tiled = {(e.call, e.kind[-4:] == "copy") for e in recording._of("tiled_mma", "tiled_copy")}
    found: list[tuple[Event, Sighted]] = []
    for e in recording._of(*KINDS):
        is_atom = e.kind in ("mma_atom", "copy_atom")
        if is_atom and (e.call, e.kind == "copy_atom") in tiled:
            continue  # made by the DSL on the way to the tiled object
        if e.kind == "smem_layout" and not e.payload.get("used"):
            continue
        seen = naming.sighted(e.places, 0 if e.kind == "tma_atom" else None)
        if is_atom and (e.callee in _USES_ATOMS or (seen.discarded and not e.callee.startswith("make_"))):
            continue  # inside of cute.copy, cute.autovec_copy and the like
        found.append((e, seen))
    outer: dict[Any, set[str]] = {}
    for e, seen in found:
        outer.setdefault((e.kind, seen.file, seen.line, seen.name), set()).add(seen.outer)
    merged: dict[Any, Recorded] = {}
    for e, seen in found:
        if seen.outer and len(outer[e.kind, seen.file, seen.line, seen.name]) > 1:
            seen = replace(seen, name=seen.outer)  # a helper called several times: its caller tells them apart
        key = (e.kind, seen.file, seen.line, e.places[0].column, seen.name, e.text)
        if key in merged:
            merged[key].sightings += e.sightings
        else:
            merged[key] = _recorded(e, seen, naming.function_of(e.places))
    _join_allocations(recording, merged)
    _assign_launches(recording, list(merged.values()))
    return sorted(merged.values(), key=lambda o: o.order)


_USES_ATOMS = {"copy", "basic_copy", "autovec_copy", "gemm", "prefetch", "basic_copy_if", "convert", "copy_tensor"}


def _recorded(e: Event, seen: Sighted, function: Function) -> Recorded:
    p = e.payload
    read: Callable[[], Spec]
    if e.kind in ("tiled_mma", "mma_atom"):
        read = functools.partial(reading.mma_spec, p["op"], e.text, p["parts"], p["source"])
    elif e.kind in ("tiled_copy", "copy_atom"):
        read = functools.partial(reading.copy_spec, p["op"], e.text, p["parts"], p["value_type"], p["source"])
    else:
        read = functools.partial(_read_layout, p)
    return Recorded(
        seen.name, e.kind, seen.file, seen.line, seen.code, seen.function, e.sightings, e.text, e.trace, e.launch,
        details={k: v for k, v in p.items() if k in ("bits", "dtype", "arch", "tma", "layout", "op_name", "tensor")},
        function_line=function.line, order=e.order, alias=seen.outer if seen.outer != seen.name else "", _read=read,
    )  # fmt: skip


def _read_layout(payload: dict[str, Any]) -> Spec:
    if not payload.get("layout"):
        raise TexgenError("The TMA atom's shared-memory layout was not seen, and the atom has no thread-value layout.")
    return reading.smem_spec(payload["layout"], payload.get("bits", 0), payload["source"], payload.get("for_mma", False))


def _join_allocations(recording: Recording, merged: dict[Any, Recorded]) -> None:
    """A tensor made with a recorded layout belongs to it; one with a layout of its own is an object."""
    layouts = [o for o in merged.values() if o.kind == "smem_layout"]
    for e in recording._of("tensor"):
        places = e.places
        seen = naming.sighted(places)
        wanted = e.payload["layout"]
        fits = [o for o in layouts if same_layout(o.details.get("layout", ""), wanted)]
        if fits:
            argument = naming.layout_argument(places[0])
            chosen = _closest(fits, argument)
            if seen.name and seen.name not in chosen.tensors:
                chosen.tensors.append(seen.name)
            continue
        if not e.payload.get("own"):
            continue
        key = ("smem_layout", seen.file, seen.line, places[0].column, seen.name, wanted)
        if key in merged:
            merged[key].sightings += e.sightings
            continue
        made = _recorded(e, seen, naming.function_of(places))
        made.kind = "smem_layout"
        merged[key] = made


def same_layout(known: str, wanted: str) -> bool:
    """A tensor's layout is a recorded one, or its part without the swizzle."""
    known, wanted = reading.bare(known), reading.bare(wanted)
    return known == wanted or known.endswith(f" o {wanted}")


def _closest(layouts: list[Recorded], argument: str) -> Recorded:
    """Of several equal layouts the one whose name the tensor was given."""
    last = argument.removesuffix(".outer").removesuffix(".inner").split(".")[-1]
    for o in layouts:
        if o.name and o.name.split(".")[-1] == last:
            return o
    return layouts[0]


def _assign_launches(recording: Recording, objects: list[Recorded]) -> None:
    """What the host function builds belongs to the first launch in the same trace that takes it, otherwise to the first."""
    by_trace: dict[int, list[Launch]] = {}
    for launch in recording.launches:
        by_trace.setdefault(launch.trace, []).append(launch)
    for o in objects:
        there = by_trace.get(o.trace, [])
        if o.launch is None and there:
            o.launch = next((launch for launch in there if o.text in launch.takes), there[0])
