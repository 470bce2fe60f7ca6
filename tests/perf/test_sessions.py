"""The meter of sessions tells apart who spent the time, at the level asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PERF = Path(__file__).parent.parent.parent / "perf"


@pytest.mark.slow
def test_sessions_prints_what_client_host_and_workers_spent():
    command = [sys.executable, str(PERF / "sessions.py"), "-n", "40", "--parallel", "2"]

    done = subprocess.run(
        [*command, "--levels", "process", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = json.loads(done.stdout)

    assert (found["level"], found["sessions"]) == ("process", 40)
    assert min(found["client_ms"], found["host_ms"], found["workers_ms"]) > 0
    assert found["workers_faults"] > 0
