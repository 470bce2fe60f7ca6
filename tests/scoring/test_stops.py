"""Blame when something else than the candidate ended the episode."""

from dataclasses import replace

import pytest

from harness.scoring.gates import is_evidence_missing
from tests.scoring.episodes import (
    POLICY,
    STRICT_002,
    End,
    Evidence,
    calls,
    dependency,
    failing,
    gold,
    made,
    malformed,
    metric,
    outcomes,
    part,
    reasons,
    says,
    score,
    script,
    task,
    unavailable,
)

TALK = task(script([gold("find", title="x")], "more?", [gold("find", title="y")]))
FIRST = calls(made("find", title="x"))
SECOND = calls(made("find", title="y"))
LIVE = task(
    TALK.script,
    executable=part(("held", "state"), ("said", "final_answer")),
)
LOANS = task(
    script("sure?", [gold("checkout", book_id="b", days=7)]), executable=part("held")
)


class TestWithheldEvidence:
    def test_consistency_is_judged_on_what_was_answered(self):
        result = score(TALK, FIRST, unavailable())

        assert reasons(result) == {
            "tool_selection": "tool_selection.evidence_missing",
            "arguments": "arguments.evidence_missing",
            "schema_valid": "schema_valid.matched",
            "call_grouping": "call_grouping.matched",
            "call_ordering": "call_ordering.matched",
            "text_turn": "text_turn.evidence_missing",
            "trace_completion": "trace_completion.mismatch",
        }

    def test_stop_names_the_turn_that_was_not_answered(self):
        assert (
            score(TALK, FIRST, unavailable()).gate("trace_completion").turn_index == 1
        )

    def test_stop_between_turns_names_the_turn_that_was_not_asked(self):
        result = score(TALK, FIRST, says("ok"), end=End("max_turns_exceeded"))

        assert result.gate("trace_completion").turn_index == 2
        assert result.cause == "episode.max_turns_exceeded"

    @pytest.mark.parametrize("answers", [(), (unavailable(status="episode_deadline"),)])
    def test_episode_without_an_answer_can_time_out(self, answers):
        result = score(TALK, *answers, end=End("episode_timeout", "episode.timeout"))

        assert result.non_candidate_stop
        assert result.failure_codes[0] == "episode.episode_timeout"

    def test_rows_without_calls_lack_only_what_they_would_have(self):
        result = score(task(script("sorry")), unavailable())

        assert reasons(result)["arguments"] == "arguments.not_applicable"
        assert reasons(result)["schema_valid"] == "schema_valid.not_applicable"
        assert reasons(result)["tool_selection"] == "tool_selection.evidence_missing"

    def test_only_the_completion_gates_fail(self):
        result = score(LIVE, FIRST, unavailable(), evidence=Evidence(("failed",)))

        assert failing(result) == ["trace_completion", "executable_completion"]
        assert {g.failure_class for g in result.gates if g.outcome == "failed"} == {
            "infrastructure"
        }
        assert is_evidence_missing(result.gate("assertions"))

    def test_oracle_gates_without_a_call_have_no_evidence(self):
        result = score(LOANS, unavailable(), evidence=Evidence(("passed",)))

        for gate in ("oracle_execution", "commit_state_known", "assertions"):
            assert is_evidence_missing(result.gate(gate))

    def test_reset_that_fails_leaves_no_evidence_at_all(self):
        result = score(
            LIVE, end=End("oracle_reset_failed"), evidence=Evidence(state=None)
        )

        assert failing(result) == ["trace_completion", "executable_completion"]
        assert is_evidence_missing(result.gate("oracle_execution"))
        assert metric(result, "turn_success_rate") == "metric.no_evaluated_turn"

    def test_metrics_of_missing_evidence_have_no_value(self):
        result = score(LIVE, unavailable(), evidence=Evidence(("failed",)))

        assert {name: metric(result, name) for name in METRICS_OF_A_STOP} == (
            METRICS_OF_A_STOP
        )


METRICS_OF_A_STOP = {
    "schema_valid_rate": "metric.evidence_missing",
    "tool_name_accuracy": "metric.evidence_missing",
    "argument_accuracy": "metric.evidence_missing",
    "call_group_accuracy": "metric.evidence_missing",
    "call_order_accuracy": "metric.evidence_missing",
    "required_call_subset_accuracy": "metric.evidence_missing",
    "milestone_accuracy": "metric.evidence_missing",
    "turn_success_rate": "metric.no_evaluated_turn",
    "tool_execution_success_rate": "metric.no_attempted_call",
    "assertion_success_rate": "metric.assertion_evidence_incomplete",
    "state_match_rate": "metric.assertion_evidence_incomplete",
    "path_success_rate": "metric.path_evidence_incomplete",
    "final_answer_success_rate": "metric.assertion_evidence_incomplete",
    "task_success_rate": (0, 1),
}


class TestStopAfterAnswers:
    def test_oracle_fault_in_a_matched_turn_is_no_turn_of_the_candidate(self):
        broken = replace(FIRST, executions=("timeout",))
        result = score(LIVE, broken, evidence=Evidence(state=None))

        assert metric(result, "turn_success_rate") == "metric.no_evaluated_turn"
        assert result.companions == ()

    def test_oracle_fault_in_an_unmatched_turn_keeps_the_mismatch(self):
        wrong = calls(made("status", book_id="b"), executions=("timeout",))
        result = score(LIVE, wrong, evidence=Evidence(state=None))

        assert result.companions == ("stops_after_mismatch",)
        assert result.non_candidate_stop
        assert result.gate("tool_selection").failure_class == "candidate"
        assert metric(result, "tool_name_accuracy") == (0, 2)
        assert metric(result, "turn_success_rate") == (0, 1)

    def test_text_turns_that_were_answered_still_count(self):
        result = score(
            task(script("a", "b"), executable=part("held")),
            says("yes"),
            unavailable(),
            evidence=Evidence(("passed",)),
        )

        assert metric(result, "milestone_accuracy") == (1, 1)

    def test_unreadable_final_state_stops_a_completed_walk(self):
        result = score(
            LIVE,
            FIRST,
            says("ok"),
            SECOND,
            end=End("oracle_state_failed"),
            evidence=Evidence(state=None),
        )

        assert outcomes(result)["tool_selection"] == "passed"
        assert result.gate("trace_completion").turn_index is None
        assert is_evidence_missing(result.gate("assertions"))
        assert (
            metric(result, "state_match_rate") == "metric.assertion_evidence_incomplete"
        )

    def test_assertions_of_a_whole_walk_are_judged_though_closing_failed(self):
        result = score(
            LIVE,
            FIRST,
            says("ok"),
            SECOND,
            end=End("oracle_session_failed"),
            evidence=Evidence(("passed", "passed")),
        )

        assert outcomes(result)["assertions"] == "passed"
        assert metric(result, "assertion_success_rate") == (2, 2)
        assert not result.task_success


LENT = dependency(consumer=1, turn=2, path="title", producer=0)
BORROWER = task(TALK.script, executable=part("held", dependencies=(LENT,)))


class TestDependencyThatWasNotReached:
    def test_lacks_its_evidence_in_a_stop(self):
        result = score(BORROWER, FIRST, unavailable(), evidence=Evidence(("failed",)))

        assert is_evidence_missing(result.gate("dependency_resolution"))

    def test_does_not_apply_after_a_mismatch(self):
        wrong = calls(made("status", book_id="b"))
        result = score(BORROWER, wrong, evidence=Evidence(("failed",)))

        assert reasons(result)["dependency_resolution"] == (
            "executable.dependency_resolution.not_applicable"
        )


class TestCandidateFailureBesideABrokenOracle:
    WRONG = calls(made("status", book_id="b"))

    def test_broken_assertion_changes_no_blame(self):
        result = score(
            LIVE,
            self.WRONG,
            evidence=Evidence(("passed", "infrastructure_error")),
        )

        assert not result.non_candidate_stop
        assert is_evidence_missing(result.gate("assertions"))
        assert metric(result, "path_success_rate") == (0, 1)

    def test_failed_assertion_before_the_broken_one_is_the_candidates(self):
        result = score(
            LIVE, self.WRONG, evidence=Evidence(("failed", "infrastructure_error"))
        )

        gate = result.gate("assertions")
        assert (gate.failure_class, gate.assertion_index) == ("candidate", 0)

    def test_seed_calls_it_a_stop(self):
        result = score(
            LIVE,
            self.WRONG,
            evidence=Evidence(("passed", "infrastructure_error")),
            policy=STRICT_002,
        )

        assert result.non_candidate_stop
        assert result.gate("assertions").failure_class == "infrastructure"

    def test_seed_blames_an_unreadable_state_on_the_run(self):
        result = score(
            LIVE, self.WRONG, evidence=Evidence(state=None), policy=STRICT_002
        )

        gate = result.gate("assertions")
        assert gate.reason_code == "executable.assertion_state_unavailable"
        assert (gate.failure_class, gate.assertion_index) == ("infrastructure", 0)


class TestStrict002:
    @pytest.mark.parametrize(
        "detail", ["envelope_malformed", "multiple_choices", "oversize_body"]
    )
    def test_broken_200_is_the_candidates(self, detail):
        result = score(TALK, unavailable(detail), policy=STRICT_002)

        assert result.episode_status == "candidate_call_failed"
        assert result.booked_status == "malformed_response"
        assert not result.non_candidate_stop
        assert {g.failure_class for g in result.gates if g.failure_class} == {
            "candidate"
        }
        assert result.failure_codes[0] == "episode.malformed_response"

    def test_broken_200_stays_a_stop_under_the_wire_contract(self):
        assert score(TALK, unavailable("envelope_malformed")).non_candidate_stop

    def test_unanswered_turns_fail_on_the_run_and_answered_ones_stand(self):
        result = score(TALK, FIRST, unavailable(), policy=STRICT_002)

        assert {
            gate.gate: (gate.outcome, gate.failure_class, gate.turn_index)
            for gate in result.gates
        } == {
            "tool_selection": ("failed", "infrastructure", 2),
            "arguments": ("failed", "infrastructure", 2),
            "schema_valid": ("passed", None, None),
            "call_grouping": ("passed", None, None),
            "call_ordering": ("passed", None, None),
            "text_turn": ("failed", "infrastructure", 1),
            "trace_completion": ("failed", "infrastructure", 1),
        }

    def test_gates_without_anything_to_judge_do_not_apply(self):
        result = score(
            LOANS, unavailable(), evidence=Evidence(("passed",)), policy=STRICT_002
        )

        assert reasons(result)["schema_valid"] == "schema_valid.not_applicable"
        for gate in ("oracle_execution", "commit_state_known"):
            assert reasons(result)[gate] == f"executable.{gate}.not_applicable"
        assert metric(result, "turn_success_rate") == (0, 1)

    def test_assertions_that_a_dead_oracle_kept_from_running_do_not_apply(self):
        broken = replace(FIRST, executions=("timeout",))
        result = score(LIVE, broken, evidence=Evidence(state=None), policy=STRICT_002)

        assert reasons(result)["assertions"] == "executable.assertions.not_applicable"

    def test_whole_script_answered_passes_coverage_in_a_stop(self):
        result = score(
            LIVE,
            FIRST,
            says("ok"),
            SECOND,
            end=End("oracle_session_failed"),
            evidence=Evidence(("passed", "passed")),
            policy=STRICT_002,
        )

        assert failing(result) == ["trace_completion", "executable_completion"]


class TestMalformedMessage:
    def test_is_the_candidates_in_every_gate_it_leaves_unmet(self):
        result = score(TALK, FIRST, malformed(text="I think"))

        assert failing(result) == [
            "tool_selection",
            "arguments",
            "text_turn",
            "trace_completion",
        ]
        assert result.turns[1].text_matched is False
        assert result.cause == "episode.malformed_response"

    def test_broken_arguments_feed_the_call_gates(self):
        half = calls(
            made("find", title="x"),
            made("find", raw="{", status="invalid_json"),
            wire_class="candidate_malformed",
            executions=("completed", "not_executed"),
        )
        pair = task(
            script([gold("find", title="x"), gold("find", title="y")]),
            executable=part("held"),
        )
        result = score(pair, half, evidence=Evidence(("failed",)))

        assert outcomes(result)["tool_selection"] == "passed"
        assert metric(result, "argument_accuracy") == (1, 2)
        assert (result.attempted_calls, result.successful_executions) == (1, 1)


def test_repair_is_refused_whatever_it_would_do():
    from harness.errors import ScoringError

    with pytest.raises(ScoringError) as caught:
        score(TALK, FIRST, policy=replace(POLICY, allow_llm_repair=True))

    assert caught.value.code == "eval_trace_scoring_policy_unsupported"
