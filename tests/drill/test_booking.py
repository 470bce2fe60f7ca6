"""A wrong booking is seen, whatever part of it is wrong."""

from collections import Counter
from dataclasses import replace

import pytest

from harness.drill import cells
from harness.drill.booking import (
    Findings,
    book_controls,
    book_round,
    cell_of,
    check_ledger,
)
from harness.drill.endpoint import DrillEndpoint
from harness.drill.layout import OraclePlace
from harness.drill.oracle_faults import oracle_faults
from harness.drill.sabotage import OracleRecord
from harness.drill.schedule import OracleHit, Round, ServingHit
from harness.drill.serving_faults import serving_faults
from harness.evidence.task_table import read_task_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
KINDS = {fault.name: fault for fault in (*serving_faults(), *oracle_faults())}
EMPTY_LEDGER = {"ledger": []}


@pytest.fixture(scope="session")
def success(drilled):
    """The row of an episode that met no fault."""
    rows = read_task_rows(drilled.round_folder(1) / "eval_task_results.parquet")
    return next(row for row in rows if row.task_success)


def stopped(row, cell, **changes):
    return replace(
        row,
        episode_status=cell.status,
        cause=cell.cause,
        owner=cell.owner,
        task_success=False,
        non_candidate_stop=True,
        assertions_passed=None,
        **changes,
    )


def booked_serving(row, name, *, times=1):
    hit = ServingHit(row.task_id, KINDS[name], 0)
    endpoint = DrillEndpoint(None, {}, injected=Counter({row.task_id: times}))
    findings = Findings()
    plan = Round(0, "episodes", serving=(hit,))
    book_round(plan, [row], EMPTY_LEDGER, endpoint, OracleRecord(()), findings)
    return findings


def booked_lost_change(row, *, calls):
    fault = KINDS["changing call, done: exit"]
    hit = OracleHit(row.task_id, fault, OraclePlace("call", 0, call=0))
    lines = [{"event": "injected", "task": row.task_id, "fault": fault.name}]
    lines += [{"event": "call", "task": row.task_id, "index": 0}] * calls
    findings = Findings()
    plan = Round(0, "episodes", oracle=(hit,))
    record = OracleRecord(tuple(lines))
    book_round(plan, [row], EMPTY_LEDGER, DrillEndpoint(None, {}), record, findings)
    return findings


def test_fault_in_its_cell_is_right(success):
    row = stopped(success, cells.REJECTED)

    assert booked_serving(row, "400").entries[0].is_right


def test_fault_with_another_owner_is_off_the_diagonal(success):
    row = replace(stopped(success, cells.REJECTED), owner="candidate")

    findings = booked_serving(row, "400")

    assert not findings.entries[0].is_right
    assert findings.matrix()["provider"]["candidate"] == 1


def test_fault_that_was_credited_is_off_the_diagonal(success):
    findings = booked_serving(success, "400")

    assert not findings.entries[0].is_right
    assert findings.matrix()["provider"]["nobody"] == 1


def test_refusal_that_was_asked_again_is_off_the_diagonal(success):
    entry = booked_serving(stopped(success, cells.REJECTED), "400", times=2).entries[0]

    assert "sent 2 times" in entry.problem
    assert not entry.is_right


def test_companion_that_was_not_counted_is_off_the_diagonal(success):
    findings = booked_serving(success, "as many tokens as were allowed")

    assert "suspected_truncation" in findings.entries[0].problem


def test_cured_fault_without_its_attempts_is_off_the_diagonal(success):
    entry = booked_serving(success, "429 storm, once").entries[0]

    assert "attempts are recorded" in entry.problem


def test_planned_fault_that_nobody_met_is_named(success):
    findings = booked_serving(success, "400", times=0)

    assert findings.entries == []
    assert len(findings.unreached) == 1


def test_lost_change_that_was_sent_once_is_right(success):
    row = stopped(success, cells.UNKNOWN_COMMIT)

    assert booked_lost_change(row, calls=1).entries[0].is_right


def test_lost_change_that_was_sent_again_is_off_the_diagonal(success):
    row = stopped(success, cells.UNKNOWN_COMMIT)

    entry = booked_lost_change(row, calls=2).entries[0]

    assert "called 2 times" in entry.problem


def test_assertion_judged_after_a_lost_change_is_off_the_diagonal(success):
    row = replace(stopped(success, cells.UNKNOWN_COMMIT), assertions_passed=False)

    assert booked_lost_change(row, calls=1).off_the_diagonal > 0


def test_control_that_did_not_succeed_is_counted(success):
    findings = Findings()

    book_controls(0, [stopped(success, cells.TIMEOUT), success], findings)

    assert (findings.undisturbed, len(findings.disturbed_controls)) == (2, 1)
    assert findings.off_the_diagonal == 1


def test_ledger_that_says_something_else_is_a_contradiction():
    findings = Findings()
    entry = {"owner": "oracle", "cause": cells.RESET.cause, "count": 2}

    check_ledger(0, [cells.RESET], {"ledger": [entry]}, findings)

    assert len(findings.contradictions) == 1
    assert "counts 2" in findings.contradictions[0]


def test_success_is_nobodys(success):
    assert cell_of(success) == cells.SUCCESS
