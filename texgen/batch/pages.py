"""Many small documents in one run of TeX: the pages of one document, taken apart after."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from texgen.render import engine as tex
from texgen.render.environment import fill
from texgen.render.escape import unknown_characters

SHARED_BY = ("pdflatex",)
"""Engines whose pages were compared with single runs, pixel by pixel."""
LARGEST = 200_000
"""Characters of a document that is compiled with others: for a larger one the engine's start is no cost to speak of."""
BEGIN, END = "\\begin{document}\n", "\\end{document}\n"


def shared(documents: Mapping[int, str], engine: str) -> dict[int, bytes]:
    """PDFs of those documents that one run of ``engine`` can make together, the same pictures as from runs of their own.

    Documents with the same preamble become pages of one. What is left out is for the caller to compile alone: large
    documents, one without a like, and every document of a run that failed, so that a mistake stays with its own figure.
    """
    separate = shutil.which("pdfseparate")
    if engine not in SHARED_BY or separate is None:
        return {}
    groups: dict[str, dict[int, str]] = {}
    for key, document in documents.items():
        if parts := _parts(document):
            groups.setdefault(parts[0], {})[key] = parts[1]
    made: dict[int, bytes] = {}
    for preamble, bodies in groups.items():
        if len(bodies) > 1:
            made |= dict(zip(bodies, _run(preamble, list(bodies.values()), engine, separate), strict=False))
    return made


def _parts(document: str) -> tuple[str, str] | None:
    """(preamble, body), None for a document that is to be compiled alone."""
    if len(document) > LARGEST or unknown_characters(document):
        return None
    preamble, begin, rest = document.partition(BEGIN)
    body, end, after = rest.rpartition(END)
    if not (begin and end) or after.strip() or BEGIN in body:
        return None
    lines = [line for line in preamble.splitlines(keepends=True) if not line.startswith("%")]  # the title is a comment
    return "".join(lines), body.rstrip() + "\n"


def _run(preamble: str, bodies: list[str], engine: str, separate: str) -> list[bytes]:
    """The pages of one run, empty where it failed or gave another number of them."""
    try:
        pdf = tex.compile_pdf(fill("pages.tex.j2", {"preamble": preamble, "bodies": bodies}), engine)
    except tex.TexFailure:
        return []
    with tempfile.TemporaryDirectory(prefix="texgen-") as folder:
        path = Path(folder)
        (path / "all.pdf").write_bytes(pdf)
        done = subprocess.run(
            [separate, "all.pdf", "page%d.pdf"], cwd=path, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False
        )
        pages = [path / f"page{i}.pdf" for i in range(1, len(bodies) + 2)]
        if done.returncode or pages[-1].exists() or not all(p.exists() for p in pages[:-1]):
            return []
        return [_without_id(p.read_bytes()) for p in pages[:-1]]


def _without_id(pdf: bytes) -> bytes:
    """The file without the identifier that pdfseparate makes of the time; it stands after the table of offsets."""
    body, trailer, rest = pdf.rpartition(b"trailer")
    return body + trailer + re.sub(rb"/ID\s*\[.*?\]\s*(?=/Root|/Size|/Info|>>)", b"", rest, flags=re.DOTALL)
