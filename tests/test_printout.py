"""Pasted print-outs of the DSL and of CuTe C++ give the tables of the objects themselves."""

from __future__ import annotations

import pytest

import texgen
from texgen.errors import TexgenError

DSL_MMA = """Tiled MMA
  Thr Layout VMNK: (32,2,2,1):(1,32,64,0)
  Permutation MNK: (32:1,32:1,16:1)
MMA Atom
  ThrID:           32:1
  Shape MNK:       (16,8,16)
  TV Layout A:     ((4,8),(2,2,2)):((32,1),(16,8,128))
  TV Layout B:     ((4,8),(2,2)):((16,1),(8,64))
  TV Layout C:     ((4,8),(2,2)):((32,1),(16,8))"""
CPP_MMA = """TiledMMA
  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)
  PermutationMNK: (_32,_32,_16)
MMA_Atom
  ThrID:      _32:_1
  Shape_MNK:  (_16,_8,_16)
  LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))
  LayoutB_TV: ((_4,_8),(_2,_2)):((_16,_1),(_8,_64))
  LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
"""


@pytest.mark.parametrize("text", [DSL_MMA, CPP_MMA], ids=["DSL", "C++"])
def test_tiled_mma(text):
    pasted = texgen.read(text)
    named = texgen.read("SM80_16x8x16_F32F16F16F32_TN", atom_layout="2,2,1", tile="32,32,16")
    assert pasted.tile_mnk == named.tile_mnk
    for operand, other in zip(pasted.operands().values(), named.operands().values(), strict=True):
        assert (operand.tv == other.tv).all()


def test_an_atom_alone_and_what_is_missing():
    atom = DSL_MMA[DSL_MMA.index("MMA Atom") :]
    assert texgen.read(atom).tile_mnk == (16, 8, 16)
    with pytest.raises(TexgenError, match="paste it whole"):
        texgen.read("MMA Atom\n  ThrID: 32:1\n")


@pytest.mark.dsl
def test_the_dsl_prints_what_is_read():
    cutlass = pytest.importorskip("cutlass")
    import cutlass.cute as cute
    from cutlass._mlir import ir
    from cutlass.cute.nvgpu import warp

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
            mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
            load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16)
            store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128)
            copies = [
                cute.make_tiled_copy_B(load, mma),
                cute.make_tiled_copy_tv(store, cute.make_layout((8, 16)), cute.make_layout((8, 1))),
            ]
            for copy in copies:
                live, pasted = texgen.read(copy), texgen.read(str(copy))
                assert pasted.tile == live.tile
                for name in "SD":
                    assert (pasted.operands()[name].tv == live.operands()[name].tv).all()
