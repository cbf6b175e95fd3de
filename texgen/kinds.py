"""The kinds of spec there are: a new kind is one line here.

``read`` names the function that makes the spec of a JSON object, ``(data, where, common) -> spec``; ``draw`` the one that
makes its figure, ``(spec, options) -> Figure``. Both are imported when first used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Kind:
    """Where a kind is read and drawn, as ``module:function``."""

    read: str
    draw: str


KINDS = {
    "mma": Kind("texgen.spec_json:mma_from_dict", "texgen.figures.mma:draw_mma"),
    "copy": Kind("texgen.spec_json:copy_from_dict", "texgen.figures.copy:draw_copy"),
    "tv": Kind("texgen.spec_json:tv_from_dict", "texgen.figures.tv:draw_tv"),
    "layout": Kind("texgen.spec_json:layout_from_dict", "texgen.figures.layout:draw_layout"),
    "chain": Kind("texgen.chains.spec:chain_from_dict", "texgen.figures.chain:draw_chain"),
    "timeline": Kind("texgen.pipeline.spec:timeline_from_dict", "texgen.figures.timeline:draw_timeline"),
}


def is_spec(target: object) -> bool:
    """True for a spec of one of the kinds (an entry of the catalogue has a kind too, and no JSON form)."""
    kind = getattr(target, "kind", None)
    return isinstance(kind, str) and kind in KINDS and hasattr(target, "to_dict")


def function(place: str) -> Any:
    """The function that ``module:function`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
