"""A killed run goes on where it was and ends as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys

import pytest

from harness.evidence.candidate_log import CandidateLog
from tests.run.teacher_forced.conversations import ASKED, Teacher

COMMAND = [sys.executable, "-m", "harness.cli", "run"]


class Assassin:
    """Kills the process under test when its n-th request arrives."""

    def __init__(self, at):
        self.at = at
        self.victim = None

    def __call__(self, _, __, number):
        if number == self.at and self.victim is not None:
            os.kill(self.victim.pid, signal.SIGKILL)
            self.victim.wait()


def start(turns, *words):
    with (turns.folder / "run.log").open("a") as log:
        return subprocess.Popen(
            [*COMMAND, str(turns.file), *words], stdout=log, stderr=log
        )


def completed(turns):
    """Attempts of each completed request, by conversation and client turn."""
    path = turns.output / "candidate_io_cache.jsonl"
    with CandidateLog.open(path, writable=False) as records:
        found = {}
        for entry in records.log.entries():
            if entry.record_type == "completion":
                request = records.request_of(entry.key)
                key = (request["task_id"], request["trial"], request["turn_index"])
                found[key] = records.attempts_made(entry.key)
        return found


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 9])
def test_killed_run_resumes_without_sending_again_what_was_answered(turns, at):
    assassin = Assassin(at)
    teacher = Teacher(bend=assassin)
    with teacher.served() as server:
        turns.base_url = server.url
        turns.config(asking={"repeats": 2}, limits={"max_parallel_conversations": 2})
        assassin.victim = start(turns)
        assert assassin.victim.wait(30) == -signal.SIGKILL
        assassin.victim = None
        answered = completed(turns)
        asked = dict(teacher.asked)

        assert start(turns).wait(30) == 7
        assert start(turns, "--resume").wait(30) == 0

    scores = json.loads((turns.output / "scores.json").read_text())
    assert scores["score"] == 1.0
    assert scores["turns"]["missing"] == 0
    assert len(completed(turns)) == 2 * ASKED
    for name, trial, turn in answered:
        suffix = f"__repeat_{trial + 1}" if trial else ""
        assert teacher.asked[name + suffix, turn] == asked[name + suffix, turn] == 1


def cut_behind_first_attempt(turns):
    """Leave a run as a kill between an attempt and its completion leaves it."""
    for name in ("events.jsonl", "sample_idx_map.json", "scores.json"):
        (turns.output / name).unlink()
    for name in ("diagnostics.json", "eval_report.json", "eval_manifest.json"):
        (turns.output / name).unlink()
    (turns.output / "eval_record.json").unlink()
    path = turns.output / "candidate_io_cache.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["record_type"] for line in lines]
    path.write_bytes(b"".join(lines[: kinds.index("attempt") + 1]))


def test_received_answer_is_not_sampled_again_after_a_kill(turns):
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config(limits={"max_parallel_conversations": 1})
        turns.run(config)
        before = (turns.output / "scores.json").read_bytes()
        cut_behind_first_attempt(turns)
        turns.run(config, resume=True)

    assert teacher.asked["repo-a", 1] == 1
    assert teacher.number == 2 * ASKED - 1
    assert (turns.output / "scores.json").read_bytes() == before


@pytest.mark.parametrize("lost", ["eval_manifest.json", "scores.json"])
def test_run_killed_while_it_wrote_its_result_writes_the_rest(turns, lost):
    teacher = Teacher()
    order = ("events.jsonl", "sample_idx_map.json", "scores.json", "diagnostics.json")
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config()
        report = turns.run(config).report
        names = [*order, "eval_report.json", "eval_record.json", "eval_manifest.json"]
        for name in names[names.index(lost) :]:
            (turns.output / name).unlink()
        again = turns.run(config, resume=True)

    assert again.report == report
    assert teacher.number == ASKED
    assert turns.run(config).replayed


def test_torn_end_of_the_log_is_kept_and_the_run_goes_on(turns):
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config(limits={"max_parallel_conversations": 1})
        turns.run(config)
        cut_behind_first_attempt(turns)
        with (turns.output / "candidate_io_cache.jsonl").open("ab") as stream:
            stream.write(b'{"payload":{"half')
        finished = turns.run(config, resume=True)

    assert finished.report["scores"]["score"] == 1.0
    assert turns.json("eval_manifest.json")["torn_tails"] == {
        "candidate_io_cache.jsonl.torn-1": 17
    }


def test_nothing_is_waited_for_before_a_turn_that_was_answered(turns):
    """A delay longer than the test may take shows it."""
    teacher = Teacher()
    with teacher.served() as server:
        turns.base_url = server.url
        config = turns.config()
        turns.run(config)
        for path in turns.output.iterdir():
            if path.name != "candidate_io_cache.jsonl":
                path.unlink()
        slow = turns.config(asking={"inter_turn_delay_s": 3600.0})
        again = turns.run(slow, resume=True)

    assert again.report["scores"]["score"] == 1.0
    assert teacher.number == ASKED


class Interrupter(Assassin):
    """Asks the process to end, as a scheduler does."""

    def __call__(self, _, __, number):
        if number == self.at and self.victim is not None:
            self.victim.terminate()
            self.victim.wait()


@pytest.mark.slow
def test_terminated_run_ends_with_130_and_goes_on(turns):
    interrupter = Interrupter(3)
    teacher = Teacher(bend=interrupter)
    with teacher.served() as server:
        turns.base_url = server.url
        turns.config(limits={"max_parallel_conversations": 1})
        interrupter.victim = start(turns)
        assert interrupter.victim.wait(30) == 130
        interrupter.victim = None
        assert start(turns, "--resume").wait(30) == 0

    report = json.loads((turns.output / "eval_report.json").read_text())
    assert report["scores"]["score"] == 1.0
    assert "--resume" in (turns.folder / "run.log").read_text()
