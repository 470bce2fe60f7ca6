"""Outages: never an answer, never a zero, always counted."""

import json

import pytest

from harness.causes import EXIT_OVER_CAP
from harness.errors import CandidateError, StopLimitError
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.folder import FolderState, RunFolder
from harness.evidence.task_table import read_task_rows
from tests.run.gold_server import CountingControl
from tests.servers import Reply, json_reply

BROKEN = json_reply({"error": {"message": "later"}}, status=503)
QUICK = {"max_retries": 0, "max_parallel_tasks": 1}


def completions_in(folder):
    """How many requests of a run have a completion; each was answered once."""
    with CandidateLog.open(folder / "candidate_io_cache.jsonl", writable=False) as log:
        return sum(entry.record_type == "completion" for entry in log.log.entries())


def test_share_of_stops_over_the_cap_publishes_no_score(bench, benchmark):
    control = CountingControl(benchmark, lambda n: BROKEN if n <= 10 else None)
    with control.served() as server:
        finished = bench.run(bench.config("gold", base_url=server.url, limits=QUICK))

    candidate = finished.report["candidates"][0]
    planned = candidate["task_count"]

    assert finished.exit_status == EXIT_OVER_CAP
    assert "stops.share_over_cap" in finished.report["non_publication_reasons"]
    assert not finished.report["publication_allowed"]
    assert candidate["companions"]["stops"] == 10
    assert candidate["metrics"]["task_success_rate"]["numerator"] == planned - 10
    assert candidate["metrics"]["task_success_rate"]["denominator"] == planned
    without = candidate["metrics"]["task_success_rate_without_stops"]
    assert (without["numerator"], without["denominator"]) == (planned - 10,) * 2
    assert candidate["stops_by_cause"] == {
        "episode.candidate_call_failed.provider_unavailable": 10
    }


def test_endpoint_that_stays_down_ends_the_run_at_its_limit_of_stops(bench, benchmark):
    control = CountingControl(benchmark, lambda _: BROKEN)
    with control.served() as server:
        config = bench.config(
            "gold", base_url=server.url, limits={**QUICK, "max_stops": 3}
        )

        with pytest.raises(StopLimitError) as caught:
            bench.run(config)

    assert caught.value.code == "eval_candidate_stop_limit"
    assert RunFolder(bench.output()).state() is FolderState.UNFINISHED


def test_run_that_gave_up_goes_on_when_the_endpoint_is_back(bench, benchmark):
    control = CountingControl(benchmark, lambda n: BROKEN if 5 < n <= 9 else None)
    with control.served() as server:
        config = bench.config(
            "gold", base_url=server.url, limits={**QUICK, "max_stops": 3}
        )
        with pytest.raises(StopLimitError):
            bench.run(config)

        finished = bench.run(config, resume=True)

    candidate = finished.report["candidates"][0]

    assert candidate["non_candidate_stops"] == 0
    assert candidate["successful_tasks"] == candidate["task_count"]
    assert control.answered == completions_in(bench.output())


@pytest.mark.parametrize("executable", [True, False], ids=["executable", "trace"])
@pytest.mark.parametrize("status", [402, 404])
def test_run_that_gave_up_asks_every_stop_again(bench, benchmark, status, executable):
    """An account that was empty is filled, a model that was missing is loaded."""
    refusal = json_reply({"error": {"message": "no"}}, status=status)
    control = CountingControl(benchmark, lambda n: refusal if 2 < n <= 4 else None)
    with control.served() as server:
        config = bench.config(
            "gold",
            executable=executable,
            base_url=server.url,
            limits={**QUICK, "max_stops": 1},
        )
        with pytest.raises(StopLimitError):
            bench.run(config)
        assert control.number == 4

        finished = bench.run(config, resume=True)

    candidate = finished.report["candidates"][0]
    assert candidate["non_candidate_stops"] == 0
    assert candidate["successful_tasks"] == candidate["task_count"]
    assert control.answered == completions_in(bench.output())


def test_stop_that_did_not_end_the_run_stays_one(bench, benchmark):
    refusal = json_reply({"error": {"message": "no"}}, status=404)
    down = json_reply({"error": {"message": "no"}}, status=401)
    control = CountingControl(benchmark, {3: refusal, 5: down}.get)
    with control.served() as server:
        config = bench.config("gold", base_url=server.url, limits=QUICK)
        with pytest.raises(CandidateError):
            bench.run(config)

        finished = bench.run(config, resume=True)

    assert finished.report["candidates"][0]["non_candidate_stops"] == 1


@pytest.mark.parametrize("executable", [True, False], ids=["executable", "trace"])
def test_refused_key_stops_the_run_and_keeps_what_was_answered(
    bench, benchmark, executable
):
    refusal = json_reply({"error": {"message": "no"}}, status=401)
    control = CountingControl(benchmark, lambda n: refusal if n > 5 else None)
    with control.served() as server:
        config = bench.config(
            "gold",
            executable=executable,
            base_url=server.url,
            limits={"max_parallel_tasks": 1},
        )

        with pytest.raises(CandidateError) as caught:
            bench.run(config)
        assert caught.value.code == "eval_candidate_authentication_failed"
        assert control.number == 6
        control.disturb = lambda _: None

        finished = bench.run(config, resume=True)

    assert finished.report["candidates"][0]["non_candidate_stops"] == 0
    assert control.answered == completions_in(bench.output())


def test_broken_messages_are_the_candidates_and_never_an_outage(bench, benchmark):
    broken = json_reply(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "tool_calls": "none"},
                }
            ]
        }
    )
    control = CountingControl(benchmark, lambda _: broken)
    with control.served() as server:
        finished = bench.run(bench.config("gold", base_url=server.url))

    rows = list(read_task_rows(bench.output() / "eval_task_results.parquet"))

    assert finished.exit_status == 0
    assert {row.episode_status for row in rows} == {"malformed_response"}
    assert not any(row.non_candidate_stop for row in rows)
    assert control.number == len(rows)


def test_stopped_run_replays_to_the_same_hashes(bench, benchmark):
    control = CountingControl(
        benchmark,
        lambda n: Reply(fault="close_before_response") if n % 7 == 0 else None,
    )
    with control.served() as server:
        config = bench.config("gold", base_url=server.url, limits=QUICK)
        first = bench.run(config)

    again = bench.run(config)

    assert again.replayed
    assert json.dumps(again.report) == json.dumps(first.report)
    assert first.report["candidates"][0]["non_candidate_stops"] > 0


def test_run_killed_before_its_manifest_goes_on_with_an_endpoint_that_is_back(
    bench, benchmark
):
    down = True
    control = CountingControl(
        benchmark,
        lambda n: Reply(fault="close_before_response") if down and n % 7 == 0 else None,
    )
    with control.served() as server:
        config = bench.config("gold", base_url=server.url, limits=QUICK)
        first = bench.run(config)
        # What a process leaves that dies right before its last file.
        (bench.output() / "eval_manifest.json").unlink()
        down = False
        second = bench.run(config, resume=True)

    assert first.report["candidates"][0]["non_candidate_stops"] > 0
    assert second.report["candidates"][0]["non_candidate_stops"] == 0
    assert bench.run(config).report == second.report
