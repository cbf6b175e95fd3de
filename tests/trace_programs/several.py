"""Two kernels of one host function, and names that are hard to find: properties, comprehensions, loops, keywords."""

from types import SimpleNamespace

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_compact_tensor
from several_parts import Base, both


class Several(Base):
    @cute.jit
    def __call__(self, a: cute.Tensor, c: cute.Tensor):
        layouts = dict(
            a=self.smem_layout(self.rows),
            b=self.smem_layout(self.columns),
        )
        (self.copy_a, self.copy_b), loads = both(self.load_atom), 2
        op = warp.MmaF16BF16Op(self.dtype, cutlass.Float32, (16, 8, 16))
        mmas = [cute.make_tiled_mma(op, (m, 2, 1)) for m in (2, 4)]
        p = SimpleNamespace(mma=cute.make_tiled_mma(op, (1, 4, 1)), loads=loads)
        grid = cute.ceil_div(c.shape, (self.rows, self.columns))
        self.kernel(a, c, mmas[0] if cutlass.const_expr(loads == 1) else mmas[-1], layouts["a"], layouts["b"]).launch(
            grid=(*grid, 1), block=256
        )
        tail(c, p.mma).launch(grid=(grid[0], 2), block=(32,))

    @cute.kernel
    def kernel(
        self, a: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, la: cute.ComposedLayout, lb: cute.ComposedLayout
    ):
        smem = utils.SmemAllocator()
        sA, sB = (smem.allocate_tensor(self.dtype, x, 16) for x in (la, lb))
        bias = smem.allocate_tensor(cutlass.Float32, cute.make_layout((64,)), 16)
        for _ in cutlass.range_constexpr(2):
            load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.dtype)
            if (feed := cute.make_tiled_copy_A(load, mma)) is not None:
                feed.get_slice(0).partition_S(sA)
        bias.fill(cute.size(sB))


@cute.kernel
def tail(c: cute.Tensor, mma: cute.TiledMma):
    padded = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 33)), 16)
    out = cute.make_tiled_copy_C(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32), mma)
    out.get_slice(0).partition_D(padded)


if __name__ == "__main__":
    a = make_fake_compact_tensor(cutlass.Float16, (256, 64), stride_order=(1, 0), assumed_align=16)
    c = make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(), 128), stride_order=(1, 0), assumed_align=16)
    cute.compile(Several(), a, c)
