"""texgen: figures you can trust of the layouts of GPU kernels written in NVIDIA's CuTe DSL.

The public names are ``read``, ``figure``, ``chain``, ``timeline``, ``render_tikz`` and the two exceptions; they are imported when first used, so
that ``import texgen`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from texgen.errors import TexgenError, TexgenWarning

if TYPE_CHECKING:
    from texgen.api import chain, figure, render_tikz, timeline
    from texgen.sources import read
    from texgen.sources.recorder import recording

__version__ = "0.1.0"
__all__ = ["TexgenError", "TexgenWarning", "__version__", "chain", "figure", "read", "recording", "render_tikz", "timeline"]

_HOMES = {"read": "texgen.sources", "figure": "texgen.api", "chain": "texgen.api", "timeline": "texgen.api", "render_tikz": "texgen.api",
          "recording": "texgen.sources.recorder"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'texgen' has no attribute {name!r}")
