"""What an interrupted demo leaves behind: its own folder and nothing else."""

import os
import select
import signal
import subprocess
import sys

import pytest

from harness.causes import EXIT_INTERRUPTED


def wait_for_episodes(demo, log):
    """Wait until an episode is recorded; end with the process if it ends first."""
    while demo.poll() is None and not (log.exists() and log.stat().st_size):
        select.select([demo.stderr], [], [], 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_closes_what_it_opened(tmp_path, number):
    scratch, output = tmp_path / "scratch", tmp_path / "demo"
    scratch.mkdir()
    words = [sys.executable, "-m", "harness.cli", "demo", "--output", str(output)]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(scratch)}
    ) as demo:
        wait_for_episodes(demo, output / "run" / "tool_trace_cache.jsonl")
        demo.send_signal(number)
        _, told = demo.communicate(timeout=20)

    assert demo.returncode == EXIT_INTERRUPTED
    assert told.decode().splitlines()[-1] == "interrupted"
    assert list(scratch.iterdir()) == []
    assert not (output / "run" / "eval_report.json").exists()
