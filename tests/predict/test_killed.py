"""A run that is killed asks nothing again that was answered."""

import os
import signal
import subprocess
import sys

import pytest

from harness.evidence.candidate_log import CandidateLog
from harness.predict.folder import PredictFolder
from tests.predict.asking import (
    Workspace,
    asked,
    label_rows,
    right,
    right_or_vectors,
    server,
)


@pytest.fixture
def endpoint():
    with server(right_or_vectors) as running:
        yield running


@pytest.fixture
def space(tmp_path, endpoint):
    return Workspace(tmp_path, url=endpoint.url)


@pytest.mark.slow
def test_killed_run_asks_nothing_again_that_was_answered(tmp_path):
    killed_at = iter((3, 9, 17, 10_000))
    state = {"limit": next(killed_at), "process": None, "since": 0}

    def answer(received):
        state["since"] += 1
        if state["since"] > state["limit"]:
            os.kill(state["process"].pid, signal.SIGKILL)
            state["process"].wait()
        return right(received)

    with server(answer) as running:
        space = Workspace(tmp_path, url=running.url, rows=label_rows(40))
        space.document["engines"]["main"]["max_in_flight"] = 2
        config = space.write()
        command = [
            *(sys.executable, "-c", "from harness.cli.main import console; console()"),
            *("predict", str(config), "--output", str(space.output), "--resume"),
        ]
        for number in range(4):
            state["since"] = 0
            kept, before = answered_rows(space), len(running.requests)
            state["process"] = subprocess.Popen(command, stderr=subprocess.PIPE)
            _, shown = state["process"].communicate(timeout=50)
            status = state["process"].returncode
            texts = {asked(each) for each in running.requests[before:]}
            assert not kept & texts
            if number < 3:
                assert status == -signal.SIGKILL, shown
                state["limit"] = next(killed_at)

    assert status == 0, shown
    assert [line["raw"] for line in space.lines()] == [r["gold"] for r in space.rows]
    assert PredictFolder(space.output).state() == "finished"


def answered_rows(space):
    """The prompts of rows whose completion a killed run has recorded."""
    log = space.output / "candidate_io_cache.jsonl"
    if not log.exists():
        return set()
    with CandidateLog.open(log, writable=False) as records:
        completed = {
            entry.key
            for entry in records.log.entries()
            if entry.record_type == "completion"
        }
        bodies = [records.request_of(key)["body"] for key in completed]
    return {body["messages"][-1]["content"] for body in bodies}
