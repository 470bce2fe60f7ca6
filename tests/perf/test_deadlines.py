"""The measure of lateness plays real packs and counts every call."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PERF = Path(__file__).parent.parent.parent / "perf"


@pytest.mark.slow
def test_deadlines_prints_how_late_each_pack_was_over():
    command = [sys.executable, str(PERF / "deadlines.py"), "-n", "2", "--parallel", "2"]
    options = ["--levels", "process", "--packs", "sleeps", "spins", "--json"]

    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)

    assert [(each["pack"], each["calls"]) for each in found] == [
        ("sleeps", 2),
        ("spins", 2),
    ]
    assert all(0 < each["median_ms"] <= each["max_ms"] for each in found)
