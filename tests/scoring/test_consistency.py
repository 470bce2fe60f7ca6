"""Evidence that disagrees with its task, its plan or itself is refused."""

from dataclasses import replace

import pytest

from harness.errors import ScoringError
from harness.scoring.score import score_episode
from tests.scoring.episodes import (
    CONFIG,
    HASH,
    PLAN,
    POLICY,
    STRICT_002,
    End,
    Evidence,
    calls,
    dependency,
    gold,
    made,
    malformed,
    part,
    rescore,
    resolved,
    says,
    script,
    task,
    unavailable,
)
from tests.scoring.episodes import episode as play

LENT = dependency(consumer=1, turn=1, path="book_id", producer=0)
SCRIPT = script([gold("find", title="x")], [gold("status", book_id="b")], "done")
TRACE = task(SCRIPT)
LIVE = task(SCRIPT, executable=part("held", "said", dependencies=(LENT,)))
GOOD = (calls(made("find", title="x")), calls(made("status", book_id="b")), says("ok"))
EVIDENCE = Evidence(("passed", "passed"), (resolved(LENT, "b"),))
WHOLE = play(TRACE, *GOOD)
EXECUTED = play(LIVE, *GOOD, evidence=EVIDENCE)


def refusal(episode, spec=TRACE, **more):
    with pytest.raises(ScoringError) as caught:
        rescore(episode, spec, **more)
    return caught.value


def with_turn(episode, index, **changes):
    turns = list(episode.turns)
    turns[index] = replace(turns[index], **changes)
    return replace(episode, turns=tuple(turns))


def with_execution(**changes):
    return replace(EXECUTED, execution=replace(EXECUTED.execution, **changes))


def with_call(index=0, **changes):
    executions = list(EXECUTED.execution.executions)
    executions[index] = replace(executions[index], **changes)
    return with_execution(executions=tuple(executions))


def test_untouched_evidence_scores():
    assert rescore(WHOLE, TRACE).task_success
    assert rescore(EXECUTED, LIVE).task_success


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "other"},
        {"script_hash": CONFIG},
        {"source_verification_identity": CONFIG},
        {"scope": "trace_and_executable"},
        {"execution": EXECUTED.execution},
    ],
)
def test_episode_of_another_task_script_source_or_scope(change):
    assert refusal(replace(WHOLE, **change)).code in (
        "eval_trace_evidence_mismatch",
        "eval_executable_evidence_mismatch",
    )


def test_episode_of_another_plan():
    with pytest.raises(ScoringError, match="plan_identity"):
        score_episode(
            WHOLE,
            TRACE,
            POLICY,
            eval_config_hash=CONFIG,
            scoring_policy_hash=HASH,
            plan_identity=CONFIG,
        )

    assert WHOLE.plan_identity == PLAN


def test_executed_episode_of_a_task_without_executable_part():
    error = refusal(EXECUTED, TRACE)

    assert error.code == "eval_executable_evidence_mismatch"
    assert "without executable part" in str(error)


@pytest.mark.parametrize(
    "change", [{"task_spec_hash": CONFIG}, {"oracle_verification_identity": CONFIG}]
)
def test_execution_under_another_spec_or_oracle(change):
    assert refusal(with_execution(**change), LIVE)


def test_trace_episode_of_an_executable_task_scores_by_its_trace():
    assert len(rescore(play(LIVE, *GOOD), LIVE).gates) == 7


class TestWalk:
    @pytest.mark.parametrize("status", ["completed", "max_turns_exceeded"])
    def test_turn_that_did_not_advance_before_the_end(self, status):
        torn = with_turn(WHOLE, 1, advanced=False)

        assert refusal(replace(torn, status=status, reason_code=f"episode.{status}"))

    @pytest.mark.parametrize(
        ("status", "detail"),
        [
            ("candidate_mismatch", None),
            ("malformed_response", None),
            ("unusable_tool_call_ids", None),
            ("candidate_call_failed", "timeout"),
            ("max_turns_exceeded", None),
            ("episode_timeout", None),
        ],
    )
    def test_whole_conversation_cannot_have_ended_early(self, status, detail):
        assert refusal(
            replace(
                WHOLE,
                status=status,
                reason_code=f"episode.{status}",
                cause_detail=detail,
            )
        )

    def test_completed_episode_has_every_turn(self):
        assert refusal(replace(WHOLE, turns=WHOLE.turns[:2]))

    def test_more_turns_than_the_script_has(self):
        more = (*WHOLE.turns, replace(WHOLE.turns[2], turn_index=3))

        assert refusal(replace(WHOLE, turns=more))

    def test_turns_out_of_their_order(self):
        assert refusal(with_turn(WHOLE, 1, turn_index=2))

    def test_reset_failure_with_turns(self):
        failed = replace(
            EXECUTED,
            status="oracle_reset_failed",
            reason_code="episode.oracle_reset_failed",
        )

        assert refusal(failed, LIVE)

    def test_trace_episode_with_a_status_of_the_oracle(self):
        failed = replace(
            WHOLE,
            status="oracle_session_failed",
            reason_code="episode.oracle_session_failed",
        )

        assert "a trace status" in str(refusal(failed))

    def test_failed_call_that_has_an_answer(self):
        answered = play(TRACE, calls(made("find", title="z")))
        failed = replace(
            answered,
            status="candidate_call_failed",
            reason_code="episode.candidate_call_failed",
            cause_detail="timeout",
        )

        assert "unanswered" in str(refusal(failed))

    def test_mismatch_without_an_answer(self):
        silent = play(TRACE, unavailable(), end=End("candidate_mismatch"))

        assert refusal(silent)

    def test_end_that_the_cause_table_does_not_have(self):
        unknown = play(TRACE, unavailable("no_such_detail"))

        assert "cause table" in str(refusal(unknown))


class TestConclusions:
    def test_recorded_match_is_derived_again(self):
        lied = with_turn(play(TRACE, calls(made("find", title="z"))), 0, matched=True)

        assert "matched" in str(refusal(lied))

    def test_recorded_pairs_are_derived_again(self):
        assert "paired" in str(refusal(with_turn(WHOLE, 0, paired_call_indexes=(1,))))

    def test_answer_that_was_changed_afterwards(self):
        assert refusal(with_turn(WHOLE, 2, text=""))

    def test_unmatched_turn_that_advanced(self):
        missed = play(TRACE, calls(made("find", title="z")))
        advanced = with_turn(missed, 0, advanced=True)

        assert refusal(
            replace(
                advanced,
                status="max_turns_exceeded",
                reason_code="episode.max_turns_exceeded",
            )
        )

    def test_matching_turn_that_ended_as_a_mismatch(self):
        stopped = play(TRACE, calls(made("find", title="x")))
        held = with_turn(stopped, 0, advanced=False)

        assert refusal(
            replace(
                held,
                status="candidate_mismatch",
                reason_code="episode.candidate_mismatch",
            )
        )

    @pytest.mark.parametrize("answer", [unavailable(), malformed()])
    def test_conclusion_about_a_turn_without_a_usable_message(self, answer):
        ended = play(TRACE, answer)

        assert refusal(with_turn(ended, 0, matched=False))

    def test_unjudged_turn_that_the_ids_do_not_excuse(self):
        missed = play(TRACE, calls(made("find", title="z")))

        assert refusal(with_turn(missed, 0, matched=None))

    def test_other_policy_than_the_one_it_was_run_under(self):
        spelled = play(TRACE, calls(made("find", title="x", limit=50)), *GOOD[1:])

        assert refusal(spelled, policy=replace(POLICY, insert_declared_defaults=False))


class TestExecutionEvidence:
    @pytest.mark.parametrize(
        "change",
        [
            {"execution_index": 1},
            {"turn_index": 1},
            {"position_in_turn": 1},
            {"call_id": "other"},
            {"function_name": "status"},
            {"parsed_arguments": {"title": "y"}},
            {"status": "not_executed"},
        ],
    )
    def test_execution_that_is_not_the_call_of_its_turn(self, change):
        assert refusal(with_call(**change), LIVE)

    def test_arguments_that_differ_only_in_type(self):
        proposed = calls(made("find", title="x", limit=1))
        ran = play(LIVE, proposed, *GOOD[1:], evidence=EVIDENCE)
        first, *rest = ran.execution.executions
        changed = replace(first, parsed_arguments={"title": "x", "limit": True})

        assert refusal(
            replace(
                ran,
                execution=replace(ran.execution, executions=(changed, *rest)),
            ),
            LIVE,
        )

    def test_execution_that_no_turn_asked_for(self):
        more = (*EXECUTED.execution.executions, EXECUTED.execution.executions[0])

        assert refusal(with_execution(executions=more), LIVE)

    def test_execution_that_is_missing(self):
        assert refusal(
            with_execution(executions=EXECUTED.execution.executions[:1]), LIVE
        )

    def test_turn_that_points_at_another_execution(self):
        assert refusal(with_turn(EXECUTED, 1, execution_indexes=(0,)), LIVE)

    def test_call_without_its_execution(self):
        assert refusal(with_turn(EXECUTED, 1, execution_indexes=()), LIVE)


class TestDependencies:
    OUTCOME = EXECUTED.execution.dependencies[0]

    def test_dependency_that_was_not_resolved_ends_the_episode(self):
        open_ = replace(self.OUTCOME, status="producer_missing")

        assert refusal(with_execution(dependencies=(open_,)), LIVE)

    def test_dependency_of_an_asked_turn_is_recorded(self):
        assert refusal(with_execution(dependencies=()), LIVE)

    def test_dependency_is_recorded_once(self):
        assert refusal(with_execution(dependencies=(self.OUTCOME,) * 2), LIVE)

    @pytest.mark.parametrize(
        "change",
        [
            {"consumer_call_index": 0},
            {"consumer_turn_index": 2},
            {"producer_call_index": 1},
            {"dependency_index": 7},
        ],
    )
    def test_dependency_is_the_declared_one(self, change):
        other = replace(self.OUTCOME, **change)

        assert refusal(with_execution(dependencies=(other,)), LIVE)


class TestAssertions:
    @pytest.mark.parametrize(
        "change", [{"name": "other"}, {"assertion_index": 1}, {"category": "path"}]
    )
    def test_assertion_is_the_declared_one(self, change):
        first, second = EXECUTED.execution.assertions

        assert refusal(
            with_execution(assertions=(replace(first, **change), second)), LIVE
        )

    def test_more_assertions_than_declared(self):
        first, second = EXECUTED.execution.assertions

        assert refusal(with_execution(assertions=(first, second, second)), LIVE)

    def test_assertion_without_a_final_state(self):
        assert refusal(with_execution(final_state_hash=None), LIVE)


def test_rebooked_answer_needs_its_broken_turn():
    broken = play(TRACE, unavailable("envelope_malformed"))
    answered = replace(broken, turns=play(TRACE, calls(made("find", title="z"))).turns)

    assert refusal(answered, policy=STRICT_002)


def test_refusal_says_where_and_what():
    report = refusal(replace(WHOLE, task_id="other")).as_report()["violations"][0]

    assert report["where"] == "candidate model-a, task other, trial 0, task_id"
    assert (report["expected"], report["actual"]) == ("task-1", "other")
    assert report["recovery"]
