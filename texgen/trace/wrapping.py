"""Replacing functions and methods of a package for a while, under every name that modules have them by."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

WRAPPERS = "cutlass.cute._texgen_recorder"
"""The module name of the wrappers: the DSL takes frames of its own modules out of an operation's location."""


class Patches:
    """Attributes and module names replaced, and how they were."""

    def __init__(self) -> None:
        self.undone: list[Callable[[], None]] = []
        self.functions: dict[int, tuple[Any, Any]] = {}

    def attribute(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute that a class or module has itself."""
        if name not in vars(owner):
            return
        original = vars(owner)[name]
        setattr(owner, name, make(original))
        self.undone.append(lambda: setattr(owner, name, original))

    def function(self, module: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a function under every name that any module has it by."""
        original = vars(module).get(name)
        if original is None or not callable(original) or id(original) in self.functions:
            return
        self.functions[id(original)] = (original, make(original))

    def apply(self) -> None:
        rename({key: new for key, (_, new) in self.functions.items()})

    def undo(self) -> None:
        while self.undone:
            self.undone.pop()()
        rename({id(new): old for old, new in self.functions.values()})
        self.functions.clear()


def rename(swap: dict[int, Any]) -> None:
    if not swap:
        return
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict:
            continue
        for name, value in list(names.items()):
            new = swap.get(id(value))
            if new is not None:
                names[name] = new


_TEMPLATE = """
def make(original, enter, leave):
    def wrapper(*args, **kwargs):
        token = enter(args, kwargs)
        result = missing
        try:
            result = original(*args, **kwargs)
        finally:
            leave(token, result, args, kwargs)
        return result
    return wrapper
"""
MISSING = object()


def wrapped(original: Any, enter: Callable[..., Any], leave: Callable[..., None]) -> Any:
    """A wrapper that counts as a frame of the DSL: ``leave`` gets MISSING where ``original`` raised."""
    names: dict[str, Any] = {"__name__": WRAPPERS, "missing": MISSING}
    exec(compile(_TEMPLATE, WRAPPERS, "exec"), names)
    function = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
    made = names["make"](function, enter, leave)
    return functools.wraps(function)(made)
