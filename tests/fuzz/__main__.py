"""``python tests/fuzz TARGET SECONDS``: atheris (libFuzzer) on one target, from the corpus and the tests' own inputs.

An input that crashes, takes over a second of processor time or over 500 MB is kept as ``build/fuzz/TARGET/found-*``; once
it is mended it belongs into ``tests/fuzz/corpus/TARGET``.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
with atheris.instrument_imports(include=["texgen", "parsy"]):
    import targets

import mutate  # noqa: E402
import seeds  # noqa: E402

SECOND = 1.0


def main() -> None:
    name, seconds = sys.argv[1], sys.argv[2]
    target = targets.TARGETS[name]
    folder = HERE.parent.parent / "build" / "fuzz" / name
    for part in ("seeds", "queue"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(seeds.seeds(name)):
        (folder / "seeds" / f"{i:03}").write_bytes(data)
    target(b"")  # imports count for nothing

    def once(data: bytes) -> None:
        began = time.process_time()
        target(data)
        assert (took := time.process_time() - began) < SECOND, f"{took:.1f} s"

    flags = [
        f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=500", "-max_len=3000", f"-dict={HERE / 'tokens.dict'}",
        f"-artifact_prefix={folder}/found-", "-print_final_stats=1",
    ]  # fmt: skip
    def changed(data: bytes, most: int, seed: int) -> bytes:
        made = mutate.json_bytes(data, random.Random(seed)) if seed % 4 else atheris.Mutate(data, most)
        return made[:most]

    more = {"custom_mutator": changed} if name == "json" else {}
    atheris.Setup([sys.argv[0], *flags, *sys.argv[3:], str(folder / "queue"), str(folder / "seeds")], once, **more)
    atheris.Fuzz()


main()
