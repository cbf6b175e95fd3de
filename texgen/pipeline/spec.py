"""``TimelineSpec``: a pipeline's program and what is wrong with it, and its JSON form (kind ``timeline``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from texgen.errors import TexgenError
from texgen.pipeline.hazards import Hazard, hazards
from texgen.pipeline.measured import Measured, measured_from_dict
from texgen.pipeline.program import FAULTS, MOST_STAGES, Event, events, kernel_program
from texgen.pipeline.steps import LETTERS, Cell, cells, steps

if TYPE_CHECKING:
    from texgen.specs import TVMap

SCHEMA = 1


@dataclass(frozen=True)
class TimelineSpec:
    """A program of every warp over a ring of ``stages``, for ``k_tiles`` k tiles of ``k_blocks`` k blocks.

    ``fault`` names the planted one. ``measured`` has the clock stamps of a real run.
    """

    name: str
    stages: int
    k_tiles: int
    k_blocks: int
    program: tuple[Event, ...]
    fault: str = ""
    measured: Measured | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "timeline"
    arch = ""
    threads = 0

    @cached_property
    def steps(self) -> list[int]:
        """The step of each event."""
        return steps(self.program)

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """[stage][step]: what the stage is."""
        return cells(self.program, self.stages)

    @cached_property
    def hazards(self) -> tuple[Hazard, ...]:
        """What is wrong, by event."""
        return hazards(self.program, self.steps.__getitem__, self.k_tiles)

    def tile(self, tile: int) -> str:
        """A k tile's label: ``3``, or ``7*`` for the last one copied once more."""
        return str(tile) if tile < self.k_tiles else f"{self.k_tiles - 1}*"

    def operands(self) -> dict[str, TVMap]:
        """No tables."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; ``derived`` is what follows from the rest and is not read back."""
        out: dict[str, Any] = {"schema": SCHEMA, "kind": self.kind, "name": self.name, "source": self.source}
        out |= {"stages": self.stages, "k_tiles": self.k_tiles, "k_blocks": self.k_blocks}
        out |= {k: v for k in ("fault",) if (v := getattr(self, k))}
        out |= {k: list(v) for k in ("notes", "warnings") if (v := getattr(self, k))}
        out["program"] = [event.to_list() for event in self.program]
        out["derived"] = {
            "steps": self.steps[-1] + 1,
            "states": [[f"{c.tile}{LETTERS[c.state]}" if c.state else "" for c in row] for row in self.cells],
            "hazards": [[h.kind, self.steps[h.event], h.stage, h.tile, h.text] for h in self.hazards],
        }
        return out | ({"measured": self.measured.to_dict()} if self.measured is not None else {})


def timeline_of(stages: int, k_tiles: int, k_blocks: int, fault: str = "", name: str = "") -> TimelineSpec:
    """The kernels' own protocol, with a planted fault or none. Raises UsageError."""
    program = kernel_program(stages, k_tiles, k_blocks, fault)
    notes = (f"Planted fault: {FAULTS[fault]}.",) if fault else ()
    return TimelineSpec(name, stages, k_tiles, k_blocks, program, fault, notes=notes)


def timeline_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> TimelineSpec:
    """The spec of a JSON object of kind ``timeline``; ``common`` has its name, source, notes and warnings.

    Raises TexgenError that names the key at fault.
    """
    numbers = []
    for key, most in (("stages", MOST_STAGES), ("k_tiles", 4096), ("k_blocks", 256)):
        value = data.get(key)
        if type(value) is not int or not 1 <= value <= most:
            raise TexgenError(f"{where}: {key!r} must be a whole number from 1 to {most}.")
        numbers.append(value)
    stages, k_tiles, k_blocks = numbers
    fault = data.get("fault", "")
    if fault not in ("", *FAULTS):
        raise TexgenError(f"{where}: 'fault' must be one of {', '.join(FAULTS)}.")
    measured = measured_from_dict(data["measured"], f"{where}, measured") if "measured" in data else None
    program = events(data.get("program", ()), stages, where)
    return TimelineSpec(program=program, stages=stages, k_tiles=k_tiles, k_blocks=k_blocks, fault=fault, measured=measured, **common)
