# mypy: disable-error-code="untyped-decorator"
"""Clock stamps inside a pipelined kernel: when each warp of one block copied, waited, passed a barrier, began a k block.

A kernel calls ``mark(clock, slot)`` and ``barrier(clock, slot)``; where it was compiled without a clock (``None``) the first
is nothing at all and the second ``bar.sync``. With one, lane 0 of every warp of the chosen block stores the multiprocessor's
cycle counter (``%clock64``) into its warp's row of a buffer. The slots of a kernel are numbered by ``Slots``, which a result
file's reader uses too: importing this needs no DSL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GLOBALTIMER, SMID = 0, 4
"""The first slots: (nanoseconds, cycles) at the start, (nanoseconds, cycles) at the end, and the multiprocessor's number."""
HEAD = 5


@dataclass(frozen=True)
class Slots:
    """The slots of one warp: the head, then those of each k tile.

    Past the last k tile the kernel copies the last again, into stages that nobody reads: those copies have slots of their
    own, as k tiles ``k_tiles`` and on. The wait of "k tile" ``k_tiles`` is that of the last round, of the one after it the drain.
    """

    stages: int
    k_tiles: int
    k_blocks: int

    @property
    def round(self) -> int:
        """Slots of one k tile: its copy (2), the wait for it (3), its k blocks."""
        return 5 + self.k_blocks

    @property
    def count(self) -> int:
        return HEAD + (self.k_tiles + self.stages) * self.round

    def copy(self, tile: Any) -> Any:
        """Before the first ``cp.async`` of a k tile."""
        return HEAD + tile * self.round

    def commit(self, tile: Any) -> Any:
        """After its commit."""
        return self.copy(tile) + 1

    def wait(self, tile: Any) -> Any:
        """Before the ``wait_group`` after which it must have landed."""
        return self.copy(tile) + 2

    def landed(self, tile: Any) -> Any:
        """After that ``wait_group``."""
        return self.copy(tile) + 3

    def passed(self, tile: Any) -> Any:
        """After the barrier that follows."""
        return self.copy(tile) + 4

    def block(self, tile: Any, block: int) -> Any:
        """Where the multiplication of a k block of it begins."""
        return self.copy(tile) + 5 + block


def begin(buffer: Any, block: Any, chosen: tuple[int, int], thread: Any, slots: Slots) -> Any:
    """A clock for this thread: (address of its warp's row, whether it stores), or None without a buffer."""
    if buffer is None:
        return None
    import cutlass

    from texgen.kernels.stamps import head

    stores = (block[0] == chosen[0]) & (block[1] == chosen[1]) & (thread % 32 == 0)
    row = buffer.iterator.toint() + cutlass.Int64(thread // 32) * (8 * slots.count)
    clock = (row, cutlass.Int32(stores))
    head(*clock, GLOBALTIMER)
    return clock


def mark(clock: Any, slot: Any) -> None:
    """Store the cycle counter in a slot."""
    if clock is not None:
        import cutlass

        from texgen.kernels.stamps import stamp

        row, stores = clock
        stamp(row + cutlass.Int64(slot) * 8, stores)


def barrier(clock: Any, slot: Any) -> None:
    """The block's barrier, and the cycle counter after it in a slot."""
    if clock is None:
        import cutlass.cute as cute

        cute.arch.sync_threads()
    else:
        import cutlass

        from texgen.kernels.stamps import barrier_stamp

        row, stores = clock
        barrier_stamp(row + cutlass.Int64(slot) * 8, stores)


def end(clock: Any) -> None:
    """The second reading of both counters, and the multiprocessor's number."""
    if clock is not None:
        from texgen.kernels.stamps import head, smid

        head(*clock, GLOBALTIMER + 2)
        smid(*clock, SMID)
