"""``.. original-figures::``: the eight figures of ``mma_tile_tex``, with what the original itself draws in them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from catalogue import text_of
from checked import ORACLE
from docutils import nodes
from reference_figures import FIGURES
from sphinx.util.docutils import SphinxDirective

import texgen
from texgen.errors import TexgenError
from texgen.figures.caption import plural

if TYPE_CHECKING:
    from sphinx.application import Sphinx


@cache
def drawn_by_original() -> dict[tuple[str, str, str], dict[str, Any]]:
    """(atom, atom layout, value layout) → what the original drew, in the five figures that were kept."""
    found = json.loads((ORACLE / "mma_tile_tex.json").read_text(encoding="utf-8"))
    return {(c["name"], _shape(c["AtomLayoutMNK"]), _shape(c["ValLayoutMNK"])): c for c in found}


def _shape(text: str) -> str:
    return text.split(":")[0].strip("()").replace("_", "")


def figures() -> list[dict[str, Any]]:
    """A row for each figure: ours counted, and the original's where its table is there."""
    out = []
    for number, (atom, atoms, values) in enumerate(FIGURES, 1):
        spec = texgen.read(atom, atom_layout=atoms, val_layout=values)
        theirs = drawn_by_original().get((atom, atoms, values))
        out.append({
            "number": number, "atom": atom, "atom_layout": atoms, "val_layout": values, "mnk": "×".join(map(str, spec.tile_mnk)),
            "rows": [(letter, *_beside(letter, operand, theirs)) for letter, operand in spec.operands().items()],
            "has_original": theirs is not None,
        })  # fmt: skip
    return out


def _beside(letter: str, operand: Any, theirs: dict[str, Any] | None) -> tuple[str, str]:
    """(threads and owners of a cell in ours, the same in the original's). Raises TexgenError if the original names an
    owner that is not among ours."""
    ours = f"{plural(operand.threads, 'thread')}, {plural(int(operand.owner_counts.max()), 'owner')} a cell"
    if theirs is None:
        return ours, "—"
    cells = np.asarray(theirs[letter])
    for row, column in np.ndindex(*operand.tile):
        if tuple(cells[row, column]) not in {(o.thread, o.value) for o in operand.owners(row, column)}:
            raise TexgenError(f"{letter}({row},{column}): the original's owner is not among ours.")
    return ours, f"{plural(len(np.unique(cells[..., 0])), 'thread')}, 1 owner a cell"


class OriginalFigures(SphinxDirective):
    """All eight, one under another."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text_of("site_original.rst.j2", figures=figures()), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("original-figures", OriginalFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
