"""Hostile input: what a fuzzer found once, huge inputs and seeded mutations end in an answer or in one explained sentence.

Each target runs in a process of its own, where time and memory are measured. Atheris finds new ones: ``make fuzz``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPLAY = Path(__file__).parent / "fuzz" / "replay.py"
MUTATIONS = {"layout_text": 200, "cpp": 120, "printout": 120, "json": 300, "options": 300}
MOST_MB = 500
MOST_SECONDS = 5.0
"""Of processor time, which the largest file that is read at all takes some of; small inputs take milliseconds."""


@pytest.mark.parametrize("target", MUTATIONS)
def test_hostile_input(target: str) -> None:
    command = [sys.executable, str(REPLAY), target, str(MUTATIONS[target])]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["failed"] == []
    assert found["megabytes"] < MOST_MB
    assert found["slowest"] < MOST_SECONDS, run.stderr[-2000:]
    assert found["inputs"] > MUTATIONS[target]
