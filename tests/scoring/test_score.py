"""One score as a record: counts, failure list, policies, identity."""

from dataclasses import replace

import pytest

from harness.errors import ScoringError
from harness.scoring.reading import ScorableTask
from harness.scoring.records import TaskScore
from harness.scoring.score import score_episode
from tests.scoring.episodes import (
    CONFIG,
    HASH,
    PLAN,
    POLICY,
    End,
    Evidence,
    calls,
    failing,
    gold,
    made,
    metric,
    outcomes,
    part,
    reasons,
    rescore,
    says,
    score,
    script,
    task,
)
from tests.scoring.episodes import episode as play

PAIR = script([gold("find", title="x"), gold("status", book_id="b")], "done")
LIVE = task(
    PAIR,
    executable=part(
        ("held", "state"), ("way", "path"), ("said", "final_answer"), ("rest", "result")
    ),
)
GOOD = (calls(made("find", title="x"), made("status", book_id="b")), says("ok"))
PASSED = Evidence(("passed",) * 4)


def test_success_has_no_failure_record():
    result = score(task(PAIR), *GOOD)

    assert result.failure_records == ()
    assert result.cause == "episode.completed"


def test_failure_list_names_the_episode_and_then_each_failed_gate():
    result = score(LIVE, says("hm"), evidence=Evidence(("failed",) * 4))

    assert [
        (r.layer, r.code, r.attribution, r.subject) for r in result.failure_records
    ] == [
        ("episode", "episode.candidate_mismatch", "candidate", "episode"),
        ("gate", "tool_selection.mismatch", "candidate", "tool_selection"),
        ("gate", "arguments.mismatch", "candidate", "arguments"),
        ("gate", "call_grouping.mismatch", "candidate", "call_grouping"),
        ("gate", "trace_completion.mismatch", "candidate", "trace_completion"),
        ("gate", "executable.assertion_failed", "candidate", "assertions"),
        ("gate", "executable.episode_incomplete", "candidate", "executable_completion"),
    ]


def test_failed_assertion_of_a_completed_episode_is_the_only_failure():
    evidence = Evidence(("passed", "passed", "failed", "passed"))
    result = score(LIVE, *GOOD, evidence=evidence)

    assert result.failure_codes == ("executable.assertion_failed",)
    assert result.gate("assertions").assertion_index == 2


def test_counts_of_an_executed_episode():
    result = score(LIVE, *GOOD, evidence=PASSED)

    assert (
        result.expected_calls,
        result.observed_calls,
        result.matched_calls,
        result.attempted_calls,
        result.successful_executions,
        result.expected_dependencies,
        result.required_assertions,
    ) == (2, 2, 2, 2, 2, 0, 4)


def test_executable_metrics_in_their_order():
    result = score(LIVE, *GOOD, evidence=PASSED)

    assert [(m.metric, m.numerator, m.denominator) for m in result.metrics] == [
        ("schema_valid_rate", 1, 1),
        ("tool_name_accuracy", 2, 2),
        ("argument_accuracy", 2, 2),
        ("call_group_accuracy", 1, 1),
        ("call_order_accuracy", 1, 1),
        ("required_call_subset_accuracy", 1, 1),
        ("milestone_accuracy", 1, 1),
        ("turn_success_rate", 2, 2),
        ("tool_execution_success_rate", 2, 2),
        ("assertion_success_rate", 4, 4),
        ("state_match_rate", 1, 1),
        ("path_success_rate", 1, 1),
        ("final_answer_success_rate", 1, 1),
        ("task_success_rate", 1, 1),
    ]


def test_trace_metrics_are_the_gates_and_the_verdict():
    result = score(task(PAIR), *GOOD)

    assert [m.metric for m in result.metrics] == [
        "tool_selection_pass_rate",
        "arguments_pass_rate",
        "schema_valid_pass_rate",
        "call_grouping_pass_rate",
        "call_ordering_pass_rate",
        "text_turn_pass_rate",
        "trace_completion_pass_rate",
        "task_success_rate",
    ]


@pytest.mark.parametrize(
    ("spec", "answers", "name", "reason"),
    [
        (script("no"), (says("x"),), "tool_name_accuracy", "metric.no_expected_call"),
        (script("no"), (says("x"),), "argument_accuracy", "metric.no_expected_call"),
        (
            script([gold("find", title="x")]),
            (calls(made("find", title="x")),),
            "milestone_accuracy",
            "metric.no_text_milestone",
        ),
        (
            script("no"),
            (says("x"),),
            "tool_execution_success_rate",
            "metric.no_attempted_call",
        ),
        (
            script("no"),
            (says("x"),),
            "call_group_accuracy",
            "metric.gate_not_applicable",
        ),
        (script("no"), (says("x"),), "state_match_rate", "metric.no_state_assertion"),
        (
            script("no"),
            (says("x"),),
            "final_answer_success_rate",
            "metric.no_final_answer_assertion",
        ),
    ],
)
def test_metric_without_anything_to_count_says_why(spec, answers, name, reason):
    executed = task(spec, executable=part("held"))

    assert (
        metric(score(executed, *answers, evidence=Evidence(("passed",))), name)
        == reason
    )


def test_task_without_assertions_has_none_to_judge():
    executed = task(PAIR, executable=part())
    result = score(executed, *GOOD, evidence=Evidence())

    assert result.task_success
    assert reasons(result)["assertions"] == "executable.assertions.not_applicable"
    assert metric(result, "assertion_success_rate") == "metric.no_declared_assertion"


def test_failed_path_assertion_fails_the_path_alone():
    evidence = Evidence(("passed", "failed", "passed", "passed"))
    result = score(LIVE, *GOOD, evidence=evidence)

    assert metric(result, "path_success_rate") == (0, 1)
    assert metric(result, "assertion_success_rate") == (3, 4)


def test_path_ignores_assertions_of_other_kinds():
    evidence = Evidence(("failed", "not_applicable", "failed", "failed"))

    assert metric(score(LIVE, *GOOD, evidence=evidence), "path_success_rate") == (1, 1)


class TestPolicies:
    def test_canonical_only_takes_no_interest_in_schemas(self):
        policy = replace(POLICY, argument_matching="canonical_only")
        result = score(task(PAIR), *GOOD, policy=policy)

        assert reasons(result)["schema_valid"] == "schema_valid.not_applicable"

    def test_order_and_group_can_be_left_out(self):
        policy = replace(POLICY, respect_call_order=False, respect_call_group=False)
        swapped = calls(made("status", book_id="b"), made("find", title="x"))
        result = score(task(PAIR), swapped, says("ok"), policy=policy)

        assert result.task_success
        for gate in ("call_ordering", "call_grouping"):
            assert reasons(result)[gate] == f"{gate}.not_applicable"

    def test_free_order_has_no_ordering_gate(self):
        result = score(task(replace(PAIR, call_order="any")), *GOOD)

        assert reasons(result)["call_ordering"] == "call_ordering.not_applicable"

    @pytest.mark.parametrize(
        ("assertions", "success"), [("passed", True), ("failed", False)]
    )
    def test_assertions_only_forgives_the_candidates_path(self, assertions, success):
        policy = replace(POLICY, task_success="assertions_only")
        result = score(
            LIVE, says("hm"), policy=policy, evidence=Evidence((assertions,) * 4)
        )

        assert result.task_success is success

    def test_assertions_only_does_not_forgive_the_run(self):
        policy = replace(POLICY, task_success="assertions_only")
        result = score(
            LIVE,
            *GOOD,
            policy=policy,
            end=End("oracle_session_failed"),
            evidence=PASSED,
        )

        assert outcomes(result)["assertions"] == "passed"
        assert not result.task_success

    @pytest.mark.parametrize(
        ("spec", "evidence", "mode"),
        [
            (task(PAIR), None, "trace"),
            (task(PAIR, executable=part()), Evidence(), "executable"),
        ],
    )
    def test_assertions_only_needs_an_assertion(self, spec, evidence, mode):
        policy = replace(POLICY, task_success="assertions_only")
        with pytest.raises(ScoringError) as caught:
            score(spec, *GOOD, policy=policy, evidence=evidence)

        assert caught.value.code == f"eval_{mode}_scoring_policy_unsupported"


class TestRecord:
    def test_reads_back_as_itself(self):
        result = score(LIVE, *GOOD, evidence=PASSED)

        again = TaskScore.from_payload(result.semantic_payload())

        assert again == result
        assert again.score_hash == result.score_hash

    def test_wording_is_outside_the_identity(self):
        result = score(task(PAIR), says("hm"))
        reworded = replace(
            result,
            detail="other",
            gates=tuple(replace(gate, detail="other") for gate in result.gates),
            turns=tuple(
                replace(
                    turn,
                    detail="other",
                    order_detail="other",
                    calls=tuple(replace(c, detail="other") for c in turn.calls),
                )
                for turn in result.turns
            ),
        )

        assert reworded.score_hash == result.score_hash

    @pytest.mark.parametrize(
        "change", [{"trial": 1}, {"canonical_model_identity": "b"}]
    )
    def test_whose_and_which_episode_is_inside_it(self, change):
        one = play(task(PAIR), *GOOD)

        assert (
            rescore(replace(one, **change), task(PAIR)).score_hash
            != rescore(one, task(PAIR)).score_hash
        )

    def test_call_shows_both_sides(self):
        result = score(task(PAIR), calls(made("find", title="z"), made("lose")))
        paired, alone = result.turns[0].calls

        assert (paired.gold_function_name, paired.differing) == ("find", ("title",))
        assert (alone.gold_function_name, alone.predicted_function_name) == (
            None,
            "lose",
        )

    def test_gate_of_the_other_scope_is_not_there(self):
        with pytest.raises(KeyError):
            score(task(PAIR), *GOOD).gate("assertions")


def test_prepared_task_gives_the_same_score():
    one = play(task(PAIR), *GOOD)
    prepared = ScorableTask.of(task(PAIR))
    identities = {
        "eval_config_hash": CONFIG,
        "scoring_policy_hash": HASH,
        "plan_identity": PLAN,
    }

    assert score_episode(one, prepared, POLICY, **identities) == rescore(
        one, task(PAIR)
    )


def test_gates_come_in_order():
    assert failing(score(task(PAIR), *GOOD)) == []
    assert list(outcomes(score(LIVE, *GOOD, evidence=PASSED))) == [
        "tool_selection",
        "arguments",
        "schema_valid",
        "call_grouping",
        "call_ordering",
        "text_turn",
        "trace_completion",
        "oracle_execution",
        "dependency_resolution",
        "commit_state_known",
        "assertions",
        "executable_completion",
    ]
