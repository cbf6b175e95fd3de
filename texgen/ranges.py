"""Ranges of numbers on the command line."""

from __future__ import annotations

from typing import Any

import click


class FloatRange(click.FloatRange):
    """As click's, which lets ``nan`` through: it is neither below nor above anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is no number.", param, ctx)
        return number
