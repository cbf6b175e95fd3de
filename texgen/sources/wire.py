"""Specs as JSON between the parent and its child process: tables as base64, since a wgmma tile has 400,000 integers."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import Any

import numpy as np

from texgen.layouts import Basis, Layout
from texgen.specs import CopySpec, LayoutSpec, MmaSpec, TVMap, TVSpec

KINDS: dict[str, Any] = {c.__name__: c for c in (MmaSpec, CopySpec, TVSpec, LayoutSpec, TVMap, Layout, Basis)}


def pack(x: Any) -> Any:
    """Specs and layouts, and dicts, lists and tuples of them, as JSON values."""
    if type(x).__name__ in KINDS:
        return {"is": type(x).__name__, "of": [pack(getattr(x, f.name)) for f in fields(x)]}
    if isinstance(x, np.ndarray):
        small = x.astype("<i4") if x.size and abs(x).max() < 1 << 31 else x.astype("<i8")
        data = base64.b64encode(small.tobytes()).decode()
        return {"is": "array", "of": [small.dtype.str, list(small.shape), data]}
    if isinstance(x, tuple):
        return {"is": "tuple", "of": [pack(i) for i in x]}
    if isinstance(x, dict):
        return {"is": "dict", "of": [[k, pack(v)] for k, v in x.items()]}
    if isinstance(x, list):
        return {"is": "list", "of": [pack(i) for i in x]}
    return x.item() if isinstance(x, np.generic) else x


def unpack(x: Any) -> Any:
    """The inverse of ``pack``."""
    if not isinstance(x, dict):
        return x
    kind, of = x["is"], x["of"]
    if kind == "array":
        dtype, shape, data = of
        return np.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).astype(np.int64)
    if kind == "dict":
        return {k: unpack(v) for k, v in of}
    items = [unpack(i) for i in of]
    if kind in KINDS:
        return KINDS[kind](*items)
    return tuple(items) if kind == "tuple" else items
