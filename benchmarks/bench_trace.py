"""What tracing costs: a whole trace against the plain run, and the recorder inside one compile.

Both sides run in turn and the best of several counts, since machines are shared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import row

PROGRAM = Path(__file__).parents[1] / "tests" / "trace_programs" / "attention.py"
ROUNDS = 5

INSIDE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import attention, texgen

attention.compile_fakes()
plain, traced = [], []
for _ in range(int(sys.argv[2])):
    start = time.process_time(); attention.compile_fakes(); plain.append(time.process_time() - start)
    with texgen.recording() as r:
        start = time.process_time(); attention.compile_fakes(); traced.append(time.process_time() - start)
print(min(plain), min(traced), len(r.objects))
"""


def _run(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the two ratios."""
    environment = {**os.environ, "CUTE_DSL_ARCH": "sm_80", "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as folder:
        plain = [sys.executable, str(PROGRAM), "--fake"]
        traced = [sys.executable, "-m", "texgen", "trace", str(PROGRAM), "-o", folder, "--", "--fake"]
        least = [float("inf"), float("inf")]
        for _ in range(ROUNDS):
            for i, command in enumerate((plain, traced)):
                least[i] = min(least[i], _run(command, environment))
    row("trace", "texgen trace of an attention program, figures included", least[1], least[0], "its plain run", goal=3.0, shown=True)
    command = [sys.executable, "-c", INSIDE, str(PROGRAM.parent), str(2 * ROUNDS)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    before, after, objects = (float(x) for x in done.stdout.split()[-3:])
    goal = 1.05 + 0.001 * objects / before
    row("trace", f"recording() in one compile of it, {objects:.0f} objects", after, before, "without", goal=round(goal, 3))


if __name__ == "__main__":
    main()
