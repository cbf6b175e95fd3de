"""Several named targets in one call: what cannot be drawn is named in a warning and the rest is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from texgen.errors import TexgenError, TexgenWarning, UsageError
from texgen.visible import say


def several(entries: Mapping[str, Any], action: Callable[[str, Any], Any]) -> dict[str, Any]:
    """``action(name, entry)`` of every entry, by name.

    An entry that fails is left out with a TexgenWarning that names it. Raises UsageError at once, and the first
    TexgenError, led by its name, where every entry fails.
    """
    done: dict[str, Any] = {}
    failed: dict[str, TexgenError] = {}
    for name, entry in entries.items():
        try:
            done[str(name)] = action(str(name), entry)
        except UsageError:
            raise
        except TexgenError as e:
            failed[str(name)] = e
    if failed and not done:
        name, error = next(iter(failed.items()))
        led = error.message if error.message.startswith(f"{name}:") else f"{name}: {error.message}"
        raise TexgenError(led, error.detail)
    for name, error in failed.items():
        warnings.warn(f"{name} is left out: {error.message.removeprefix(f'{name}: ')}", TexgenWarning, stacklevel=3)
    return done


def plain_warnings() -> None:
    """Show every TexgenWarning as one line on stderr, ``texgen: warning: …``; others as they were."""
    shown = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, TexgenWarning):
            say(f"warning: {message}")
        else:
            shown(message, category, *place, **more)

    warnings.showwarning = show
    warnings.simplefilter("always", TexgenWarning)
