"""``python tests/fuzz/replay.py TARGET MUTATIONS``: the corpus, the tests' own inputs and seeded mutations of both, without atheris.

Prints JSON: how many inputs ran, the slowest one's processor time, the most memory in MB, and every input that failed.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import mutate  # noqa: E402
import seeds  # noqa: E402
import targets  # noqa: E402

HANGS = 20.0
"""Seconds of processor time after which an input is given up."""


def large(name: str) -> Iterator[bytes]:
    """Inputs too large to be kept in files, one at a time."""
    if name == "json":
        many = b'{"tile": [2, 2], "tv": ['
        yield b"[" * 50_000_000
        yield b"[" * 2000 + b"]" * 2000
        yield b'{"a":' * 2000
        yield b"[" + b"[0," * 5_000 + b"0" + b"]" * 5_001
        yield b"[" + b"[]," * 12_000_000 + b"[]]"
        yield b"[" + b"0," * 30_000_000 + b"0]"
        yield b'"' + "😀".encode() * 12_000_000 + b'"'
        yield b'{"kind":"' + b"x" * 60_000_000 + b'"}'
        yield b'{"name":"' + b"x" * 60_000_000 + b'", "offsets": [[0]]}'
        yield b"9" * 1_000_000
        yield many + b"[0,1,2,3]," * 900_000 + b"[0,1,2,3]]}"
        yield many + b"[" + b"0," * 6_000_000 + b"3]]}"
        yield many + b"[" + b"100000," * 4_000_000 + b"3]]}"
        yield b'{"offsets": [[0]], "shape": [' + b"4611686018427387903," * 100_000 + b"1]}"
        yield b'{"' + b"k" * 5_000_000 + b'": [], "\\ud800": {}}'
    elif name == "options":
        yield from (b"T0," * 20_000, b"\n" + b"0:4," * 20_000, b"\n\n\ncolumn:" + b"9" * 5000, b"\n" * 10 + b"x" * 100_000)
    else:
        yield from (b"make_layout(" + b"a" * 19_900, b"(" * 19_900, b"<" * 19_900, b"1" * 5_000_000, b"a" * 5_000_000)


class Hang(BaseException):
    """An input took too long."""


def hang(*_: object) -> None:
    raise Hang


def peak_memory() -> float:
    """The most memory this program has held, MB. Linux counts into ru_maxrss what the program held that started this one."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))


def main() -> None:
    name, count = sys.argv[1], int(sys.argv[2])
    target, chance = targets.TARGETS[name], random.Random(5)
    inputs = seeds.seeds(name)
    words = mutate.tokens((HERE / "tokens.dict").read_text())
    target(inputs[0])  # imports are no part of an input's time
    signal.signal(signal.SIGPROF, hang)
    failed, slowest, done = [], 0.0, 0

    def once(data: bytes) -> None:
        nonlocal slowest, done
        began = time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, HANGS)
            target(data)
        except (Exception, Hang):
            failed.append({"input": repr(data[:300]), "said": traceback.format_exc()[-600:]})
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        took, done = time.process_time() - began, done + 1
        if took > slowest:
            slowest = took
            print(f"{took:.3f} s: {data[:80]!r}", file=sys.stderr)

    for data in itertools.chain(inputs, large(name)):
        once(data)
    for _ in range(count):
        data = chance.choice(inputs)
        once(mutate.json_bytes(data, chance) if name == "json" and chance.randrange(4) else mutate.text_bytes(data, words, chance))
    print(json.dumps({"inputs": done, "slowest": slowest, "megabytes": peak_memory(), "failed": failed}))


main()
