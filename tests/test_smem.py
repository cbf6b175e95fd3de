"""Swizzles in bytes and in elements, coordinate-valued layouts, recognising a swizzle: no DSL needed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texgen.errors import TexgenError
from texgen.layouts import Basis, ComposedLayout, Layout, Swizzle
from texgen.sources.smem import layout_spec, recognise_swizzle

ATOM = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1)))


def test_byte_swizzle_gives_true_places():  # V07
    spec = layout_spec(ATOM, bits=16)
    assert (spec.unit, spec.swizzle, spec.bits) == ("bytes", (3, 4, 3), 16)
    assert spec.offsets[1, 0] == 72
    assert spec.offsets[3, 9] == 209
    assert spec.offsets[0].tolist() == list(range(64))
    for row in range(8):
        chunks = spec.offsets[row].reshape(8, 8)[:, 0] // 8 - 8 * row
        assert chunks.tolist() == [j ^ row for j in range(8)]
    naive = layout_spec(ATOM, unit="elements")
    assert (naive.offsets[1, 0], naive.offsets[3, 9]) == (64, 217)
    assert (naive.offsets != spec.offsets).sum() == 256
    assert "S<3,3,3>" in spec.notes[0] and "byte" in spec.notes[0]


def test_32_bit_elements():  # 2-B21
    layout = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((32, 8), (1, 32)))
    assert layout_spec(layout, bits=32).offsets[0, 1] == 36
    assert layout_spec(layout).offsets[0, 1] == 32
    assert "--bits" in layout_spec(layout).warnings[0]


@pytest.mark.parametrize(
    ("swizzle", "bits", "unit"),
    [((3, 4, 3), 16, "bytes"), ((3, 4, 3), 0, "elements"), ((3, 3, 3), 16, "elements"), ((3, 4, 3), 8, "elements"),
     ((2, 5, 2), 4, "bytes")],
)  # fmt: skip
def test_default_unit(swizzle, bits, unit):
    layout = ComposedLayout(Swizzle(*swizzle), 0, Layout((8, 64), (64, 1)))
    assert layout_spec(layout, bits=bits).unit == unit


def test_unit_can_be_said():
    layout = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1)))
    assert np.array_equal(layout_spec(layout, bits=16, unit="elements").offsets, layout.table())
    with pytest.raises(TexgenError, match="--bits 16"):
        layout_spec(layout, unit="bytes")
    with pytest.raises(TexgenError, match="elements, bytes"):
        layout_spec(layout, unit="words")
    with pytest.raises(TexgenError, match="powers of two"):
        layout_spec(layout, bits=6, unit="bytes")


def test_offset_is_in_elements():
    layout = ComposedLayout(Swizzle(3, 4, 3), 64, Layout((8, 64), (64, 1)))
    assert layout_spec(layout, bits=16).offsets[0, 0] == 64 ^ 8


def test_rank_one_is_a_row_and_rank_three_an_error():
    assert layout_spec(Layout(8, 2)).offsets.tolist() == [[0, 2, 4, 6, 8, 10, 12, 14]]
    assert layout_spec(Layout(8, 2)).shape == (8,)
    with pytest.raises(TexgenError, match="rank 3"):
        layout_spec(Layout.of((2, 2, 2)))


def test_too_large():
    with pytest.raises(TexgenError, match="more than"):
        layout_spec(Layout.of((1 << 20, 1 << 20)))


def test_coordinates():
    spec = layout_spec(Layout((4, 8), (Basis(1, (1,)), Basis(1, (0,)))))
    assert len(spec.coords) == 2
    assert spec.coords[0][2].tolist() == list(range(8))
    assert spec.coords[1][:, 5].tolist() == list(range(4))


def test_recognises_a_swizzle():  # 2-A10
    assert recognise_swizzle([0, 1, 3, 2, 4, 5, 7, 6]) == Swizzle(1, 0, 1)
    assert recognise_swizzle(range(8)) is None
    assert recognise_swizzle([1, 0, 2, 3]) is None
    assert recognise_swizzle([]) is None
    assert recognise_swizzle([0, 2, 1, 3]) is None


@given(st.integers(1, 3), st.integers(0, 4), st.integers(0, 3), st.sampled_from([1, -1]))
def test_recognises_every_swizzle(bits, base, more, sign):
    swizzle = Swizzle(bits, base, sign * (bits + more))
    size = 1 << (2 * bits + base + more)
    assert recognise_swizzle(swizzle(np.arange(size))) == swizzle
