"""A recording written line by line as it grows, so that a process which dies leaves what it had built."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from texgen.trace.naming import Place
from texgen.trace.records import Event, Launch, Recording


class JournalRecording(Recording):
    """A recording that appends every event to a file, whole lines at a time, from forked processes too."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def say(self, **line: Any) -> None:
        """Append one line."""
        os.write(self._file, (json.dumps({"pid": os.getpid(), **line}) + "\n").encode())

    def add_launch(self, made: Launch) -> Launch:
        known = super().add_launch(made)
        self.say(op="launch", id=self._number(known), launch=asdict(known))
        return known

    def _number(self, thing: Any) -> int:
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(self._numbers) + 1
            self._kept.append(thing)
        return number

    def _note(self, event: Event) -> None:
        new = id(event) not in self._numbers
        line: dict[str, Any] = {
            "op": "event", "id": self._number(event), "sightings": event.sightings, "payload": event.payload,
            "launch": self._number(event.launch) if event.launch is not None else 0,
        }  # fmt: skip
        if new:
            line |= {
                "kind": event.kind, "text": event.text, "trace": event.trace, "callee": event.callee,
                "places": [[p.file, p.line, p.column, p.end_line, p.end_column] for p in event.places],
                "call": list(event.call),
            }  # fmt: skip
        self.say(**line)


def read(path: Path) -> tuple[Recording, list[dict[str, Any]]]:
    """(the recording that a journal holds, its other lines). A line cut short by the process's end is left out."""
    made, others = Recording(), []
    events: dict[tuple[int, int], Event] = {}
    launches: dict[tuple[int, int], Launch] = {}
    names = {f.name for f in fields(Launch)}
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        key = (line.get("pid", 0), line.get("id", 0))
        if line["op"] == "launch":
            launch = launches.get(key)
            if launch is None:
                launches[key] = made.add_launch(Launch(**{k: v for k, v in line["launch"].items() if k in names}))
            else:
                launch.sightings = line["launch"]["sightings"]
        elif line["op"] == "event":
            launch = launches.get((key[0], line["launch"]))
            event = events.get(key)
            if event is not None:
                event.sightings, event.payload = line["sightings"], _tuples(line["payload"])
                event.launch = launch or event.launch
            elif "kind" in line:
                event = events[key] = Event(
                    line["kind"], (), line["text"], _tuples(line["payload"]), line["trace"], launch, line["callee"],
                    len(events), line["sightings"], [Place(*p) for p in line["places"]], (key[0], *line["call"]),
                )  # fmt: skip
                made._events[key] = event
                made._count += 1
        else:
            others.append(line)
    return made, others


def _tuples(payload: dict[str, Any]) -> dict[str, Any]:
    if "fields" in payload:
        payload["fields"] = [(str(n), int(size), int(at)) for n, size, at in payload["fields"]]
    return payload
