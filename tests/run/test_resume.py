"""A killed run goes on where it was and ends as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys

import pytest

from harness.errors import ArtifactError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.episode_log import EpisodeLog
from tests.run.gold_server import CountingControl

COMMAND = [sys.executable, "-m", "harness.cli", "run"]


def start(config_file, *words):
    """Start the command; what it prints goes to `<config>.log`."""
    with config_file.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            [*COMMAND, str(config_file), *words], stdout=log, stderr=log
        )


def aggregate_hashes(folder):
    manifest = json.loads((folder / "eval_manifest.json").read_text())
    return manifest["candidate_aggregates"]


class Assassin:
    """Kills the process under test when its n-th request arrives."""

    def __init__(self, at):
        self.at = at
        self.victim = None

    def __call__(self, number):
        if number == self.at and self.victim is not None:
            os.kill(self.victim.pid, signal.SIGKILL)
            self.victim.wait()


@pytest.mark.slow
@pytest.mark.parametrize("executable", [True, False], ids=["executable", "trace"])
@pytest.mark.parametrize("at", [1, 23, 60])
def test_killed_run_resumes_to_the_hashes_of_an_undisturbed_one(
    bench, benchmark, executable, at
):
    assassin = Assassin(at)
    control = CountingControl(benchmark, assassin)
    with control.served() as server:
        parts = {"executable": executable, "base_url": server.url}
        bench.run(bench.config("mixture", name="calm", **parts))
        control.number = 0
        bench.config("mixture", name="killed", **parts)
        file = bench.folder / "killed.yaml"

        assassin.victim = start(file)
        assert assassin.victim.wait(30) == -signal.SIGKILL
        assassin.victim = None
        done = start(file, "--resume")
        status = done.wait(50)

    assert status == 0, file.with_suffix(".log").read_text()
    assert aggregate_hashes(bench.output("killed")) == aggregate_hashes(
        bench.output("calm")
    )
    recorded = sent_and_completed(bench.output("killed"))
    assert all(count == 1 for count in recorded.values())


def sent_and_completed(folder):
    """How many attempts each completed request took, by request hash."""
    with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=False) as log:
        return {
            entry.key: log.attempts_made(entry.key)
            for entry in log.log.entries()
            if entry.record_type == "completion"
        }


@pytest.mark.slow
def test_interrupted_episodes_stay_visible_as_crash_evidence(bench, benchmark):
    assassin = Assassin(30)
    control = CountingControl(benchmark, assassin)
    with control.served() as server:
        bench.config("gold", base_url=server.url)
        assassin.victim = start(bench.folder / "eval.yaml")
        assassin.victim.wait(30)

    with EpisodeLog.open(
        bench.output() / "tool_trace_cache.jsonl", writable=True
    ) as log:
        begun = log.interrupted()

    assert begun
    assert all(episode.attempt == 1 for episode in begun)


def test_unfinished_folder_without_resume_is_refused(bench, benchmark):
    down = CountingControl(benchmark)
    with down.served() as server:
        config = bench.config("gold", base_url=server.url)
        folder = bench.output()
        folder.mkdir()
        (folder / "candidate_io_cache.jsonl").touch()

        with pytest.raises(ArtifactError) as caught:
            bench.run(config)

    assert caught.value.code == "eval_run_unfinished"
    assert down.number == 0


def cut_behind_first_attempt(folder):
    """Leave a run as a kill between an attempt and its completion leaves it."""
    (folder / "eval_manifest.json").unlink()
    path = folder / "candidate_io_cache.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines]
    first = next(r for r in records if r["record_type"] == "attempt")
    path.write_bytes(b"".join(lines[: records.index(first) + 1]))
    return first["request_hash"]


@pytest.mark.parametrize("executable", [True, False], ids=["executable", "trace"])
def test_received_completion_is_not_sampled_again_after_a_kill(
    bench, benchmark, executable
):
    control = CountingControl(benchmark)
    with control.served() as server:
        config = bench.config(
            "gold",
            executable=executable,
            base_url=server.url,
            limits={"max_parallel_tasks": 1},
        )
        bench.run(config)
        before = aggregate_hashes(bench.output())
        for name in ("eval_report.json", "report.html", "eval_task_results.parquet"):
            (bench.output() / name).unlink()
        (bench.output() / "tool_trace_cache.jsonl").unlink(missing_ok=True)
        request_hash = cut_behind_first_attempt(bench.output())
        asked_before = len(server.requests)
        bench.run(config, resume=True)

    recorded = sent_and_completed(bench.output())
    assert aggregate_hashes(bench.output()) == before
    assert len(server.requests) - asked_before == len(recorded) - 1
    assert recorded[request_hash] == 1


@pytest.mark.slow
def test_candidate_log_that_lost_its_end_is_asked_again_where_it_is_needed(
    bench, benchmark
):
    control = CountingControl(benchmark)
    with control.served() as server:
        config = bench.config("gold", base_url=server.url)
        bench.run(config)
        folder = bench.output()
        before = aggregate_hashes(folder)
        asked = control.number
        for name in (
            "eval_manifest.json",
            "report.html",
            "eval_report.json",
            "eval_task_results.parquet",
        ):
            (folder / name).unlink()
        log = folder / "candidate_io_cache.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])

        bench.run(config, resume=True)

    assert aggregate_hashes(folder) == before
    assert control.number == asked + 1


@pytest.mark.slow
def test_torn_end_of_a_log_is_kept_and_reported(bench, benchmark):
    assassin = Assassin(25)
    control = CountingControl(benchmark, assassin)
    with control.served() as server:
        bench.config("gold", base_url=server.url)
        file = bench.folder / "eval.yaml"
        assassin.victim = start(file)
        assassin.victim.wait(30)
        assassin.victim = None
        log = bench.output() / "candidate_io_cache.jsonl"
        with log.open("ab") as stream:
            stream.write(b'{"payload":{"half')

        status = start(file, "--resume").wait(50)

    manifest = json.loads((bench.output() / "eval_manifest.json").read_text())
    printed = file.with_suffix(".log").read_text()

    assert status == 0, printed
    assert manifest["torn_tails"] == {"candidate_io_cache.jsonl.torn-1": 17}
    assert "candidate_io_cache.jsonl.torn-1: 17 bytes" in printed
    assert "Set aside" in (bench.output() / "report.html").read_text()
