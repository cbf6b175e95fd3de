"""``texgen render --chain COPY MMA``: its options, and the spec that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from texgen.errors import UsageError
from texgen.visible import say

if TYPE_CHECKING:
    from texgen.chains.spec import ChainSpec

CHAIN_OPTIONS = (
    click.option(
        "--chain",
        nargs=2,
        metavar="COPY MMA",
        help="In place of TARGET: a copy (ldmatrix, cp.async, a TiledCopy) beside the MMA it feeds, both as TARGET is given.",
    ),
    click.option("--fill", metavar="COPY", help="With --chain: what fills shared memory before: 'SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>'."),
    click.option(
        "--smem", metavar="LAYOUT", help="With --chain: the operand's tile in shared memory, 'S<3,4,3> o 0 o (16,64):(64,1)'."
    ),
    click.option("--at", metavar="ROW,K", help="With --chain: where in shared memory the MMA's tile begins: 0,16."),
)
NAMES = ("chain", "fill", "smem", "at")


@dataclass(frozen=True)
class ChainRequest:
    """The options of one chain as they were given."""

    chain: tuple[str, str]
    fill: str | None = None
    smem: str | None = None
    at: str | None = None

    def spec(self, operand: str, options: Mapping[str, Any]) -> ChainSpec:
        """The chain; ``options`` are those of reading. Raises TexgenError where the copy cannot feed the MMA at all."""
        from texgen.chains.build import read_chain

        fill = [self.fill] if self.fill else []
        spec = read_chain([*fill, *self.chain], smem=self.smem, operand=operand, at=self.at, **options)
        for note in spec.smem.notes:
            if " is repeated " in note:  # meant for an atom, and a mistake for a buffer
                say(f"note: {note}")
        return spec


def take_chain(options: dict[str, Any], target: str | None) -> ChainRequest | None:
    """Takes the chain's options out of ``options``; None without ``--chain``. Raises UsageError for options without one."""
    given = {name: value for name in NAMES if (value := options.pop(name, None)) not in (None, ())}
    if not given:
        return None
    if "chain" not in given:
        raise UsageError(f"--{next(iter(given))} goes with --chain COPY MMA, a copy beside the MMA that it feeds.")
    if target is not None:
        raise UsageError("--chain takes its two targets, COPY and MMA: leave TARGET out (--fill names what fills shared memory before).")
    return ChainRequest(**given)
