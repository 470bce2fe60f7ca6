"""A small drill over all kinds of rounds: every fault lands in its cell."""

import json

import pytest

from harness.drill.sabotage import OracleRecord
from harness.evidence.task_table import read_task_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_every_fault_lands_in_its_cell(drilled):
    report = drilled.report

    assert report["entries_off_the_diagonal"] == []
    assert report["contradictions"] == []
    assert report["off_the_diagonal"] == 0
    assert drilled.status == 0


def test_every_planned_fault_was_met(drilled):
    assert drilled.report["unreached"] == []
    assert drilled.report["unplaceable"] == []
    assert drilled.report["injected"] >= 60


def test_gold_succeeds_wherever_it_met_no_fault(drilled):
    report = drilled.report

    assert report["disturbed_controls"] == []
    assert report["undisturbed_successes"] == report["undisturbed"] > 0


def test_faults_of_many_owners_were_injected(drilled):
    owners = {owner for owner, row in drilled.report["matrix"].items() if row}

    assert {"candidate", "provider", "transport", "oracle", "nobody"} <= owners


def test_whole_runs_were_stopped_and_damaged(drilled):
    kinds = drilled.report["kinds"]

    assert kinds["connections refused"] == 1
    assert kinds["key refused"] == 1
    assert kinds["torn: candidate_io_cache.jsonl"] == 1
    assert kinds["damaged: tool_trace_cache.jsonl"] == 1


def test_lost_reply_is_never_sent_again(drilled):
    """The oracle's own record: after the call whose reply is lost comes no other."""
    rows = {
        row.task_id: row
        for row in read_task_rows(drilled.round_folder(0) / "eval_task_results.parquet")
    }
    record = OracleRecord.read(drilled.folder / "round-000.oracle.jsonl")
    lost = [t for t, r in rows.items() if r.episode_status == "unknown_commit_state"]
    calls = {
        task_id: [
            line["index"]
            for line in record.lines
            if line["event"] == "call" and line["task"] == task_id
        ]
        for task_id in lost
    }

    assert lost
    assert all(seen == list(range(len(seen))) for seen in calls.values())
    assert all(rows[task_id].assertions_passed is None for task_id in lost)


def test_no_run_holds_a_stop_that_was_credited(drilled):
    for number in range(drilled.report["rounds"]):
        table = drilled.round_folder(number) / "eval_task_results.parquet"
        rows = list(read_task_rows(table))
        report = json.loads(
            (drilled.round_folder(number) / "eval_report.json").read_text()
        )
        candidate = report["candidates"][0]

        assert not any(r.non_candidate_stop and r.task_success for r in rows)
        assert candidate["non_candidate_stops"] == sum(
            r.non_candidate_stop for r in rows
        )
        assert candidate["task_count"] == len(rows)


def test_report_shows_who_answered(drilled):
    report = json.loads((drilled.round_folder(0) / "eval_report.json").read_text())

    served = report["candidates"][0]["served_by"]
    assert served[0]["server"].startswith("fairtrial-drill; control-")
    assert served[0]["served_model"] == "gold"
    assert served[0]["responses"] > 0
