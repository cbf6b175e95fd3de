"""The two nodes of our own. A figure is docutils' ``figure``, with a ``picture`` where an image would be."""

from __future__ import annotations

from docutils import nodes


class picture(nodes.General, nodes.Element):
    """One drawing. ``stem``: the name of its files; ``alt``; ``width`` and ``interactive`` (optional); ``source``, ``line``."""


class links(nodes.General, nodes.Element):
    """Links to the files of the drawings above it; ``stems`` names them. HTML alone shows it."""
