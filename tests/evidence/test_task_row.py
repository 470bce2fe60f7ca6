"""A row says what the score says, and null where nobody could judge."""

from dataclasses import replace

import pytest

from harness.evidence.task_row import Traffic, sum_traffic, task_row
from harness.scoring.gates import failed, inapplicable, passed
from harness.scoring.metric import not_applicable, verdict
from harness.scoring.records import FailureRecord, TaskScore
from tests.evidence.samples import (
    POLICY,
    completion,
    episode,
    failure,
    key,
    task,
)

SCORE = TaskScore(
    schema_version="1.0",
    scope="trace_and_executable",
    task_id="t0",
    trial=1,
    candidate_alias="gold",
    canonical_model_identity="local:m@x",
    plan_identity=key(1),
    eval_config_hash=key(2),
    scoring_policy_hash=key(3),
    scoring_contract_hash=key(4),
    scoring_policy=POLICY,
    source_verification_identity=key(5),
    oracle_verification_identity=None,
    task_spec_hash=None,
    script_hash=key(6),
    episode_hash=key(7),
    episode_status="candidate_mismatch",
    booked_status="candidate_mismatch",
    cause="episode.candidate_mismatch",
    non_candidate_stop=False,
    expected_calls=2,
    observed_calls=3,
    matched_calls=1,
    attempted_calls=1,
    successful_executions=1,
    expected_dependencies=0,
    required_assertions=0,
    turns=(),
    gates=(
        passed("tool_selection"),
        failed("arguments", "candidate"),
        passed("schema_valid"),
        inapplicable("call_grouping"),
        inapplicable("call_ordering"),
        passed("text_turn"),
        inapplicable("assertions"),
    ),
    metrics=(
        verdict("tool_name_accuracy", passed=False),
        verdict("milestone_accuracy", passed=True),
        not_applicable("tool_execution_success_rate", "metric.no_attempted_call"),
    ),
    task_success=False,
    failure_records=(
        FailureRecord("gate", "arguments.mismatch", "candidate", "arguments"),
    ),
    companions=("arguments_empty",),
    detail="",
)
TRAFFIC = Traffic(1, 2, 500, 5, None)


def test_gates_become_true_false_or_null():
    row = task_row(SCORE, SCORE.score_hash, task(), episode(), TRAFFIC)

    assert (row.required_subset_correct, row.arguments_correct) == (True, False)
    assert (row.call_group_correct, row.call_order_correct) == (None, None)
    assert (row.assertions_passed, row.execution_success) == (None, None)
    assert (row.milestones_correct, row.final_answer_passed) == (True, None)


@pytest.mark.parametrize(
    ("scope", "mode", "expected"),
    [("trace_and_executable", "executable", False), ("trace", "trace", True)],
)
def test_tool_name_column_follows_the_mode(scope, mode, expected):
    row = task_row(
        replace(SCORE, scope=scope), SCORE.score_hash, task(), episode(), TRAFFIC
    )

    assert (row.mode, row.tool_name_correct) == (mode, expected)


def test_identities_failures_and_marks_are_taken_over():
    row = task_row(SCORE, SCORE.score_hash, task(), episode(), TRAFFIC)

    assert (row.trial, row.template_id, row.turn_policy) == (1, "status", "irrelevant")
    assert (row.cause, row.owner) == ("episode.candidate_mismatch", "candidate")
    assert row.failure_codes == ("arguments.mismatch",)
    assert (row.arguments_empty, row.suspected_truncation) == (True, False)
    assert (row.score_hash, row.episode_hash) == (SCORE.score_hash, key(7))


def test_traffic_sums_attempts_and_usage():
    outcomes = [completion(key(n)) for n in range(2)]

    assert sum_traffic(2, [0.25] * 4, outcomes) == Traffic(2, 4, 1000, 10, 4)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None},
        {"prompt_tokens": "5"},
        {"prompt_tokens": True},
    ],
)
def test_tokens_are_null_unless_every_response_has_them(usage):
    known = completion(key(1))
    other = replace(known, response=replace(known.response, usage=usage))

    assert sum_traffic(2, (), [known, other]).prompt_tokens is None


def test_failures_have_no_usage_to_sum():
    assert sum_traffic(1, (), [failure(key(1))]) == Traffic(1, 0, 0, None, None)
