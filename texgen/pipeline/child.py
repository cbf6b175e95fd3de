"""A process of its own for a user's protocol: ``python -m texgen.pipeline.child file.py:function 3 8 2`` prints its events."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any


def load(target: str) -> Any:
    """The function that ``file.py:name`` or ``module:name`` names."""
    place, _, name = target.rpartition(":")
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        return getattr(importlib.import_module(place), name)
    sys.path.insert(0, str(Path(place).resolve().parent))
    spec = importlib.util.spec_from_file_location("protocol", place)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise LookupError(f"{place} has no function {name}")
    return getattr(module, name)


def main(target: str, *numbers: str) -> int:
    """0 where the function gave events; what it prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            made = [list(event) for event in load(target)(*map(int, numbers))]
            text = json.dumps(made)
        except FileNotFoundError as error:
            print(f"there is no file {error.filename}", file=sys.stderr)
            return 1
        except BaseException as error:
            if own := [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__ and "importlib" not in f.filename]:
                print("".join(traceback.format_list(own)), end="", file=sys.stderr)
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
