"""A killed writer loses no record that it was told was written."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.evidence.candidate_log import CANDIDATE_LOG, CandidateLog
from harness.evidence.episode_log import EPISODE_LOG, EpisodeLog
from tests.evidence.samples import attempt, completion, key, request

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.episode_log import EpisodeLog
from tests.evidence.samples import attempt, completion, episode, key, request
folder = Path(sys.argv[1])
episodes = EpisodeLog.open(folder / "tool_trace_cache.jsonl", writable=True)
with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=True) as log:
    turn = 0
    while True:
        asked = request(turn, text="x" * 5000)
        subject = key(turn)
        number = episodes.attempts(subject) + 1
        if episodes.lookup(subject) is None:
            episodes.begin(subject, number, {})
            if log.outcome_of(asked.request_hash) is None:
                log.request(asked)
                if not log.attempts_made(asked.request_hash):
                    log.attempt(asked.request_hash, attempt())
                log.outcome(completion(asked.request_hash, "y" * 5000))
            episodes.complete(subject, episode(number))
            print(turn, flush=True)
        turn += 1
"""


def run_until_killed(folder, rng):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = [process.stdout.readline() for _ in range(rng.randrange(1, 60))]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    return "".join([*told, rest])


@pytest.mark.slow
def test_a_run_killed_again_and_again_keeps_all_finished_work(tmp_path):
    rng = random.Random(20260101)
    told = -1
    for _ in range(6):
        turns = run_until_killed(tmp_path, rng)
        told = max([told, *map(int, turns.split())])
    with CandidateLog.open(tmp_path / CANDIDATE_LOG.file_name, writable=True) as log:
        answers = [
            log.outcome_of(request(turn, text="x" * 5000).request_hash)
            for turn in range(told + 1)
        ]
        open_requests = log.interrupted()
    with EpisodeLog.open(tmp_path / EPISODE_LOG.file_name, writable=True) as episodes:
        ends = [episodes.lookup(key(turn)) for turn in range(told + 1)]
        begun = episodes.interrupted()

    assert told > 0
    assert all(answer.response.text == "y" * 5000 for answer in answers)
    assert all(end is not None and end.replayed for end in ends)
    assert len(open_requests) <= 6
    assert len(begun) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_log_cut_anywhere_goes_on_and_ends_complete(tmp_path, seed):
    """A cut stands for a death in the middle of a write, which no test can time."""
    rng = random.Random(seed)
    path = tmp_path / CANDIDATE_LOG.file_name
    asked = [request(turn) for turn in range(8)]
    for _ in range(25):
        with CandidateLog.open(path, writable=True) as log:
            for each in asked:
                if log.outcome_of(each.request_hash) is None:
                    log.request(each)
                    if not log.attempts_made(each.request_hash):
                        log.attempt(each.request_hash, attempt())
                    log.outcome(completion(each.request_hash))
            answers = [log.outcome_of(each.request_hash) for each in asked]
        os.truncate(path, rng.randrange(path.stat().st_size))

        assert answers == [
            replace(completion(each.request_hash), replayed=True) for each in asked
        ]
