"""``ChainSpec``: shared memory, the copy that reads it and the MMA's operand, and its JSON form (kind ``chain``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from texgen.errors import TexgenError
from texgen.spec_json import from_dict
from texgen.specs import SCHEMA, CopySpec, LayoutSpec, MmaSpec, Spec, TVMap


@dataclass(frozen=True)
class ChainSpec:
    """A copy from shared memory into the registers that an MMA reads.

    ``copy`` covers ``copy.tile`` (rows M or N, columns K), a whole number of the MMA's operands; its source reads
    ``smem`` from element ``at`` on, ``vector`` elements at each address, and its destination is registers. None: the
    MMA's threads read each element themselves. ``write`` fills ``smem`` from global memory (cp.async), where that is
    told too.
    """

    name: str
    operand: str
    mma: MmaSpec
    smem: LayoutSpec
    copy: CopySpec | None = None
    write: CopySpec | None = None
    at: tuple[int, int] = (0, 0)
    vector: int = 1
    arch: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    kind = "chain"

    @property
    def threads(self) -> int:
        return self.mma.threads

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the operand that the picture shows."""
        return self.copy.tile if self.copy is not None else self.mma.operands()[self.operand].tile

    @property
    def bits(self) -> int:
        return self.smem.bits

    def operands(self) -> dict[str, TVMap]:
        """The tables that must cover their tile: the MMA's operand and those of the copies."""
        out = {self.operand: self.mma.operands()[self.operand]}
        for prefix, copy in (("copy ", self.copy), ("write ", self.write)):
            if copy is not None:
                out |= {prefix + k: v for k, v in copy.operands().items()}
        return out

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; ``derived`` is what follows from the rest (``texgen.chains.delivery``) and is not read back."""
        from texgen.chains.delivery import derived

        out: dict[str, Any] = {"schema": SCHEMA, "kind": self.kind, "name": self.name, "arch": self.arch, "source": self.source}
        out |= {"operand": self.operand, "at": list(self.at), "vector": self.vector}
        out |= {k: list(v) for k in ("notes", "warnings") if (v := getattr(self, k))}
        out |= {"derived": derived(self), "smem": self.smem.to_dict()}
        out |= {k: v.to_dict() for k, v in (("write", self.write), ("copy", self.copy)) if v is not None}
        return out | {"mma": self.mma.to_dict()}


def chain_from_dict(data: Mapping[str, Any], where: str, common: Mapping[str, Any]) -> ChainSpec:
    """The spec of a JSON object of kind ``chain``; ``common`` has its name, notes and warnings.

    Raises TexgenError that names the key at fault.
    """

    def part(key: str, kind: type[Any], needed: bool = True) -> Any:
        if key not in data and not needed:
            return None
        spec: Spec = from_dict(data.get(key), f"{where}, {key}")
        if not isinstance(spec, kind):
            raise TexgenError(f"{where}: {key!r} must be of kind {kind.kind!r}, not {spec.kind!r}.")
        return spec

    arch = data.get("arch", "")
    if not isinstance(arch, str):
        raise TexgenError(f"{where}: 'arch' must be a string.")
    operand, at, vector = data.get("operand"), data.get("at", [0, 0]), data.get("vector", 1)
    if operand not in ("A", "B"):
        raise TexgenError(f"{where}: 'operand' must be \"A\" or \"B\", the operand that the copy feeds.")
    if not isinstance(at, list) or len(at) != 2 or not all(type(x) is int and 0 <= x < 1 << 31 for x in at):
        raise TexgenError(f"{where}: 'at' must be a list of two whole numbers, where the operand begins in shared memory.")
    if type(vector) is not int or not 1 <= vector <= 1024:
        raise TexgenError(f"{where}: 'vector' must be the number of elements that a lane reads at one address.")
    smem = part("smem", LayoutSpec)
    spec = ChainSpec(
        name=common["name"], operand=operand, mma=part("mma", MmaSpec), smem=smem, copy=part("copy", CopySpec, False),
        write=part("write", CopySpec, False), at=(at[0], at[1]), vector=vector, arch=arch, source=common["source"],
        notes=common["notes"], warnings=common["warnings"],
    )  # fmt: skip
    from texgen.chains.build import check_parts

    return check_parts(spec, where)
