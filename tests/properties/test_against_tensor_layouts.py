"""Our tables are ``tensor-layouts``' own evaluation, coordinate by coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np
import strategies as some
import tensor_layouts as tl
from hypothesis import given
from hypothesis import strategies as st

from texgen.layouts import ComposedLayout, Layout
from texgen.sources.smem import layout_spec


@given(some.layouts() | some.layouts(strides=st.integers(-50, 50)))
def test_layouts(layout: Layout) -> None:
    theirs = tl.Layout(layout.shape, layout.stride)
    expected = [theirs(i) for i in range(tl.size(theirs))]
    assert layout.offsets().tolist() == expected
    assert layout(np.arange(layout.size)).tolist() == expected
    if layout.rank <= 2:
        assert layout.table().reshape(-1, order="F").tolist() == expected


@given(some.shapes())
def test_compact_strides(shape: Any) -> None:
    theirs = tl.Layout(shape)
    assert Layout.of(shape).offsets().tolist() == [theirs(i) for i in range(tl.size(theirs))]


@given(some.composed())
def test_swizzled_layouts(layout: ComposedLayout) -> None:
    inner, outer = layout.inner, layout.outer
    theirs, plain = tl.Swizzle(inner.bits, inner.base, inner.shift), tl.Layout(outer.shape, outer.stride)
    expected = [theirs(layout.offset + plain(i)) for i in range(tl.size(plain))]
    if outer.rank <= 2:
        assert layout_spec(layout, unit="elements").offsets.reshape(-1, order="F").tolist() == expected
    else:
        assert inner(outer.offsets() + layout.offset).tolist() == expected
