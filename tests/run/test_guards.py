"""What is looked at while a run goes on, and what a refusing disk does to it."""

import os

import pytest

from harness.benchmark.source import VerifiedSource
from harness.config import load_config
from harness.errors import ConfigError, EvidenceError, SourceError
from harness.evidence.folder import FolderState, RunFolder
from harness.run.evaluate import evaluate
from harness.run.replay import replay_run
from tests.run.gold_server import CountingControl

ONE_BY_ONE = {"max_parallel_tasks": 1}


def run(config, *, resume=False, watch=lambda _: None):
    return evaluate(config, resume=resume, watch=watch, render_page=lambda _: "x\n")


def test_table_that_changes_under_a_run_stops_it_before_the_next_task(
    bench, benchmark, tmp_path
):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in benchmark.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    bench.publication = copy

    def touch(number):
        if number == 3:
            with (copy / "benchmark_raw.parquet").open("ab") as stream:
                stream.write(b"x")

    control = CountingControl(benchmark, touch)
    with control.served() as server:
        config = bench.config(
            "gold", executable=False, base_url=server.url, limits=ONE_BY_ONE
        )
        done = []
        with pytest.raises(SourceError) as caught:
            run(config, watch=done.append)

    assert caught.value.code == "eval_source_changed_during_eval"
    assert caught.value.violations[0].where == "benchmark_raw.parquet"
    assert len(done) <= 3


def test_source_is_hashed_whole_at_start_and_end_and_looked_at_between(
    bench, monkeypatch
):
    seen = []
    for name in ("assert_unchanged", "assert_stat_unchanged"):
        original = getattr(VerifiedSource, name)

        def counted(self, name=name, original=original):
            seen.append(name)
            original(self)

        monkeypatch.setattr(VerifiedSource, name, counted)

    bench.run(bench.config("gold"))

    planned = bench.report()["candidates"][0]["task_count"]
    looks = ["assert_stat_unchanged"] * planned
    assert seen == ["assert_unchanged", *looks, "assert_unchanged"]


def test_sync_that_fails_ends_the_run_as_evidence_error(bench, monkeypatch):
    failing = {"on": False}
    fsync = os.fsync

    def refuse(descriptor):
        if failing["on"]:
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    # No disk that fails to sync can be had for a test.
    monkeypatch.setattr(os, "fsync", refuse)
    config = bench.config("gold", limits=ONE_BY_ONE, eval={"trials": 20})

    with pytest.raises(EvidenceError) as caught:
        run(config, watch=lambda _: failing.update(on=True))
    failing["on"] = False

    assert caught.value.code == "eval_cli_runtime_failed"
    assert RunFolder(bench.output()).state() is FolderState.UNFINISHED


def test_run_without_a_task_table_is_finished_and_replays(bench):
    config = bench.config("words", outputs={"write_task_results": False})

    finished = bench.run(config)
    again = replay_run(bench.output())

    assert not (bench.output() / "eval_task_results.parquet").exists()
    assert "outputs.write_task_results" in finished.report["non_publication_reasons"]
    assert again.is_equal


def test_task_table_that_is_gone_is_a_difference(bench):
    bench.run(bench.config("words"))
    (bench.output() / "eval_task_results.parquet").unlink()

    again = replay_run(bench.output())

    assert [d.where for d in again.differences] == ["eval_task_results.parquet"]


def test_run_without_evidence_is_refused_before_anything_is_read(bench):
    bench.config("gold")
    file = bench.folder / "eval.yaml"
    text = file.read_text()
    assert "cache_candidate_responses: true" in text
    file.write_text(
        text.replace(
            "cache_candidate_responses: true", "cache_candidate_responses: false"
        )
    )

    with pytest.raises(ConfigError) as caught:
        load_config(file)

    assert "neither resumed nor replayed" in str(caught.value)
