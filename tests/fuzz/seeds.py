"""Inputs to start from: the committed corpus, and the good and bad inputs of the tests' own tables."""

from __future__ import annotations

import json
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
F16 = "SM80_16x8x16_F32F16F16F32_TN"


def seeds(name: str) -> list[bytes]:
    """All inputs of a target, the committed ones first."""
    return corpus(name) + [x.encode("utf-8", "surrogateescape") for x in OWN[name]()]


def corpus(name: str) -> list[bytes]:
    """What a fuzzer found once, and what was thought of."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def _layout_text() -> list[str]:
    from test_text import LAYOUTS, MISTAKES

    tiles = ["32,32,16", "(32,(8,2,2):(1,16,8),_)", "16x8", "Sw<3,4,3>", "2,2,1"]
    return [*LAYOUTS, *(x[0] for x in MISTAKES), *tiles]


def _cpp() -> list[str]:
    from test_cpp import MMAS

    return [*MMAS, f"SM75_U32x4_LDSM_N, {F16}", "TiledCopy<Copy_Atom<UniversalCopy<uint128_t>, half_t>, Layout<Shape<_32,_8>>, Tile<_16,_16>>"]


def _printout() -> list[str]:
    from test_printout import CPP_MMA, DSL_MMA

    copy = "Tiled Copy\n  Tiler MN: (16:1,16:1)\n  TV Layout tiled: ((4,8),2):((32,1),16)\nCopy Atom\n  ThrID: 32:1\n"
    copy += "  TV Layout Src: (32,8):(8,1)\n  TV Layout Dst: (32,(2,4)):(2,(1,64))\n  Value type: f16\n"
    return [DSL_MMA, CPP_MMA, copy]


def _json() -> list[str]:
    import texgen

    specs = [texgen.read(F16), texgen.read("SM75_U32x4_LDSM_N"), texgen.read("(4,8):(8,1)"), texgen.read("(2,2):(1@0,1@1)")]
    specs.append(texgen.read("S<1,0,1> o 0 o (4,4)", bits=16))
    from texgen.spec_json import to_json

    tables = [{"tile": [2, 2], "tv": [[0, 1], [2, 3]]}, {"tile": [2, 2], "tv": [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]},
              {"offsets": [[0, 1], [2, 3]]}, {"offsets": [[[0, 0], [0, 1]]]}]  # fmt: skip
    return [*map(to_json, specs), *map(json.dumps, [*tables, tables, {"a": tables[0], "b": {"c": tables[1]}}])]


def _options() -> list[str]:
    return [
        "T5,T37 V0\n0:2,3\n:4\ncolumn:0@4\nA\nthread\nfull\ngrey\n84mm\nauto\na title", "T0-T3V1;W0;Q3\n1\n2:\n(4,2):(1,8)@16\n\nwarp\nnone\nwhite\n.9\\linewidth\ndark\nx",
        "\n\n\nldmatrix.trans:0,0", "\n\n\nrow:3", "\n0:8\n0:8\nldmatrix",
    ]  # fmt: skip


OWN = {"layout_text": _layout_text, "cpp": _cpp, "printout": _printout, "json": _json, "options": _options}
