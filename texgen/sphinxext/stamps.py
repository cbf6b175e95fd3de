"""The line under a figure that says where it was executed, and links to its row among the results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

from texgen.sphinxext.entries import Entry

if TYPE_CHECKING:
    from pathlib import Path

    from sphinx.environment import BuildEnvironment
    from sphinx.util.docutils import SphinxDirective

NEVER = "not executed: no result of texgen verify has this figure"


def results_folder(env: BuildEnvironment) -> Path:
    """The folder of result folders."""
    from pathlib import Path

    return Path(env.srcdir) / str(env.config.texgen_results)


def stamps_digest(env: BuildEnvironment) -> str:
    """A hash of every ``verify.json``, empty where there is none or stamps are off."""
    if not env.config.texgen_stamps:
        return ""
    files = sorted(results_folder(env).glob("*/verify.json"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest() if files else ""


def stamps(directive: SphinxDirective, entries: Sequence[Entry]) -> list[nodes.Node]:
    """A line for each machine that has executed one of the figures; with ``:stamp:`` one also where none has."""
    from texgen.measure.stamp import executed_hash

    env, wanted = directive.env, "stamp" in directive.options
    if "no-stamp" in directive.options or not (wanted or env.config.texgen_stamps):
        return []
    lines: dict[str, str] = {}
    for entry in entries:
        try:
            found = executed_hash(entry.spec_hash, results_folder(env))
        except (OSError, ValueError, KeyError, TypeError):  # no result file: texgen:results says so
            found = []
        for stamp in found:
            if wanted or stamp.status != "skip":
                lines.setdefault(str(stamp), entry.spec_hash)
        if wanted and not found:
            lines.setdefault(NEVER, "")
    out: list[nodes.Node] = []
    for text, digest in lines.items():
        inside: nodes.Node = nodes.inline("", text)
        if digest:
            inside = addnodes.pending_xref(
                "", inside, refdomain="texgen", reftype="result", reftarget=digest, refdoc=env.docname, refexplicit=True
            )
        out.append(nodes.paragraph("", "", inside, classes=["texgen-stamp"]))
    return out
