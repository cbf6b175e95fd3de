"""What ``several.py`` takes from beside it: a base class with helpers, and a function that builds in a loop."""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync


class Base:
    rows, columns, depth, stages = 128, 64, 32, 3
    dtype = cutlass.Float16

    def smem_layout(self, rows):
        atom = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))
        return cute.tile_to_shape(atom, (rows, self.depth, self.stages), (0, 1, 2))

    @property
    def load_atom(self):
        return cute.make_copy_atom(cpasync.CopyG2SOp(), self.dtype, num_bits_per_copy=128)


def both(atom):
    made = {}
    for name, rows in (("A", 32), ("B", 16)):
        made[name] = cute.make_tiled_copy_tv(atom, cute.make_layout((rows, 4), stride=(4, 1)), cute.make_layout((1, 8)))
    return made["A"], made["B"]
