"""The test oracle of spec 6.1, as far as a scorer can see it, by its numbers."""

from dataclasses import replace

import pytest

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
    rescore,
    resolved,
    says,
    score,
    script,
    task,
    unavailable,
)
from tests.scoring.episodes import episode as play

FIND = task(script([gold("find", title="x")], "done"))
PAIR = task(script([gold("find", title="x"), gold("status", book_id="b")], "done"))
LIMIT = task(script([gold("find", title="x", limit=1)], "done"))
HIDDEN = task(script("which book?", [gold("status", book_id="b")], "done"))
DECLINE = task(script("I cannot do that."))
CONFIRM = task(
    script("Shall I?", [gold("checkout", book_id="b", days=7, confirm=True)], "done"),
    executable=part("held", confirmed=(1,)),
)
LIVE = task(
    script([gold("status", book_id="b")], "done"),
    executable=part(("held", "state"), ("path", "path"), ("said", "final_answer")),
)
GOOD = Evidence(("passed", "passed", "passed"))


def test_01_text_for_an_integer():
    result = score(LIMIT, calls(made("find", title="x", limit="1")))

    assert failing(result) == ["arguments", "schema_valid", "trace_completion"]


def test_02_default_that_gold_states_nowhere():
    answers = (calls(made("find", title="x", limit=10)), says("ok"))

    assert score(FIND, *answers).task_success


@pytest.mark.parametrize("insertion", [True, False])
def test_03_stated_default_left_out(insertion):
    stated = task(script([gold("find", title="x", limit=10)], "done"))
    policy = replace(POLICY, insert_declared_defaults=insertion)
    answers = [calls(made("find", title="x")), says("ok")][: 1 + insertion]

    result = score(stated, *answers, policy=policy)

    assert failing(result) == ([] if insertion else ["arguments", "trace_completion"])


def test_04_required_parameter_with_a_default_left_out():
    due = task(script([gold("checkout", book_id="b", days=14)], "done"))
    result = score(due, calls(made("checkout", book_id="b")))

    assert failing(result) == ["arguments", "schema_valid", "trace_completion"]


def test_05_strict_pair_swapped():
    result = score(PAIR, calls(made("status", book_id="b"), made("find", title="x")))

    assert failing(result) == ["call_ordering", "trace_completion"]


def test_06_wrong_tool_in_a_pair():
    wrong = made("checkout", book_id="b", days=1)
    result = score(PAIR, calls(made("find", title="x"), wrong))

    assert failing(result) == ["tool_selection", "arguments", "trace_completion"]


def test_07_pair_spread_over_two_turns():
    result = score(PAIR, calls(made("find", title="x")))

    assert "call_grouping" in failing(result)
    assert len(result.turns) == 1


def test_08_hidden_slot_guessed():
    result = score(HIDDEN, calls(made("status", book_id="b")))

    assert failing(result) == [
        "tool_selection",
        "arguments",
        "text_turn",
        "trace_completion",
    ]


def test_09_irrelevant_declined_in_words():
    result = score(DECLINE, says("No, sorry."))

    assert result.task_success
    assert outcomes(result)["tool_selection"] == "passed"
    assert reasons(result)["arguments"] == "arguments.not_applicable"


def test_10_irrelevant_answered_with_a_call():
    result = score(DECLINE, calls(made("find", title="x")))

    assert failing(result) == ["tool_selection", "text_turn", "trace_completion"]


def test_11_neither_text_nor_call_on_a_text_turn():
    result = score(DECLINE, says(None))

    assert failing(result) == ["text_turn", "trace_completion"]


def test_12_cut_generation_with_the_right_call():
    cut = calls(made("find", title="x"), wire_class="truncated")
    result = score(FIND, cut)

    assert result.episode_status == "candidate_mismatch"
    assert reasons(result)["trace_completion"] == "trace_completion.mismatch"
    assert result.cause == "episode.incomplete_finish"


def test_12_cut_generation_in_an_episode_that_claims_completion():
    answers = (calls(made("find", title="x")), says("ok"))
    whole = play(FIND, *answers)
    claimed = replace(
        whole,
        turns=(replace(whole.turns[0], wire_class="truncated"), whole.turns[1]),
    )
    result = rescore(claimed, FIND)

    assert failing(result) == ["trace_completion"]
    gate = result.gate("trace_completion")
    assert gate.reason_code == "trace_completion.incomplete_finish_reason"
    assert (gate.failure_class, gate.turn_index) == ("candidate", 0)


def test_13_duplicate_call_ids():
    twice = calls(
        made("find", call_id="c", title="x"),
        made("status", call_id="c", book_id="b"),
        wire_class="candidate_malformed",
        detail_code="unusable_tool_call_ids",
        executions=("not_executed", "not_executed"),
    )
    spec = task(PAIR.script, executable=part("held"))
    result = score(spec, twice, evidence=Evidence(("failed",)))

    assert result.episode_status == "unusable_tool_call_ids"
    assert failing(result) == [
        "trace_completion",
        "oracle_execution",
        "assertions",
        "executable_completion",
    ]
    assert reasons(result)["oracle_execution"] == "executable.call_not_executed"
    assert not result.non_candidate_stop


def test_14_endpoint_unavailable_forever():
    result = score(FIND, unavailable())

    assert result.non_candidate_stop
    assert not result.task_success
    assert reasons(result) == {
        "tool_selection": "tool_selection.evidence_missing",
        "arguments": "arguments.evidence_missing",
        "schema_valid": "schema_valid.evidence_missing",
        "call_grouping": "call_grouping.evidence_missing",
        "call_ordering": "call_ordering.not_applicable",
        "text_turn": "text_turn.evidence_missing",
        "trace_completion": "trace_completion.mismatch",
    }
    assert result.gate("trace_completion").failure_class == "infrastructure"


def test_14_endpoint_unavailable_forever_as_the_seed_books_it():
    result = score(FIND, unavailable(), policy=STRICT_002)

    assert failing(result) == [
        "tool_selection",
        "arguments",
        "call_grouping",
        "trace_completion",
    ]
    assert {g.failure_class for g in result.gates} == {None, "infrastructure"}


def test_16_confirmation_before_its_answer():
    early = calls(
        made("checkout", book_id="b", days=7, confirm=True),
        executions=(
            (
                "not_executed",
                {"reason_code": "tool_execution.confirmation_not_earned"},
            ),
        ),
    )
    result = score(CONFIRM, early, evidence=Evidence(("failed",)))

    assert result.episode_status == "confirmation_not_earned"
    assert result.attempted_calls == 0
    assert result.gate("oracle_execution").failure_class == "candidate"


def test_17_probe_without_confirmation_executes():
    probe = calls(made("checkout", book_id="b", days=7, confirm=False))
    result = score(CONFIRM, probe, evidence=Evidence(("failed",)))

    assert result.episode_status == "candidate_mismatch"
    assert result.successful_executions == 1
    assert outcomes(result)["oracle_execution"] == "passed"


def test_18_mutating_tool_hangs():
    spec = task(
        script([gold("checkout", book_id="b", days=7)], "done"),
        executable=part(("path", "path")),
    )
    hanging = calls(
        made("checkout", book_id="b", days=7), executions=("unknown_commit_state",)
    )
    result = score(spec, hanging, evidence=Evidence(state=None))

    assert result.non_candidate_stop
    assert metric(result, "path_success_rate") == "metric.path_evidence_incomplete"
    assert reasons(result)["commit_state_known"] == "executable.commit_state_unknown"
    assert reasons(result)["assertions"] == "assertions.evidence_missing"


@pytest.mark.parametrize(
    ("number", "status", "ended"),
    [
        (19, "timeout", "oracle_timeout"),
        (20, "malformed_result", "oracle_result_malformed"),
        (22, "tool_error", "oracle_call_failed"),
    ],
)
def test_19_20_22_read_only_tool_breaks(number, status, ended):
    broken = calls(made("status", book_id="b"), executions=(status,))
    result = score(LIVE, broken, evidence=Evidence(state=None))

    assert result.episode_status == ended
    gate = result.gate("oracle_execution")
    assert gate.reason_code == f"executable.oracle_{status}"
    assert (gate.failure_class, gate.execution_index) == ("infrastructure", 0)
    assert outcomes(result)["arguments"] == "passed"


def test_21_business_rejection_is_a_good_exchange():
    rejected = calls(made("status", book_id="b"), executions=("business_rejection",))
    result = score(LIVE, rejected, says("It is gone."), evidence=GOOD)

    assert result.task_success
    assert metric(result, "tool_execution_success_rate") == (1, 1)


LENT = dependency(consumer=1, turn=1, path="book_id", producer=0)
DEPENDENT = task(
    script([gold("find", title="x")], [gold("status", book_id="gold-id")], "done"),
    executable=part("held", dependencies=(LENT,)),
)


@pytest.mark.parametrize(("book_id", "right"), [("live-id", True), ("gold-id", False)])
def test_23_dependent_value_must_be_the_live_one(book_id, right):
    evidence = Evidence(("passed",), (resolved(LENT, "live-id"),))
    answers = [
        calls(made("find", title="x")),
        calls(made("status", book_id=book_id)),
        says("ok"),
    ][: 2 + right]
    result = score(DEPENDENT, *answers, evidence=evidence)

    assert result.task_success is right
    assert (outcomes(result)["arguments"] == "passed") is right


def test_24_producer_path_missing_live():
    evidence = Evidence(
        dependencies=(resolved(LENT, None, "result_path_missing"),), state=None
    )
    result = score(
        DEPENDENT,
        calls(made("find", title="x")),
        end=End(
            "dependency_resolution_failed", "episode.dependency.result_path_missing"
        ),
        evidence=evidence,
    )

    gate = result.gate("dependency_resolution")
    assert gate.reason_code == "executable.dependency.result_path_missing"
    assert (gate.failure_class, gate.turn_index) == ("infrastructure", 1)
    assert result.non_candidate_stop


def test_25_26_broken_assertion_is_infrastructure():
    result = score(
        LIVE,
        calls(made("status", book_id="b")),
        says("ok"),
        end=End("assertion_infrastructure_failed"),
        evidence=Evidence(("passed", "infrastructure_error")),
    )

    gate = result.gate("assertions")
    assert gate.reason_code == "executable.assertion_infrastructure_error"
    assert (gate.failure_class, gate.assertion_index) == ("infrastructure", 1)
    assert result.non_candidate_stop


def test_27_all_assertions_not_applicable():
    result = score(
        LIVE,
        calls(made("status", book_id="b")),
        says("ok"),
        evidence=Evidence(("not_applicable",) * 3),
    )

    assert reasons(result)["assertions"] == "executable.assertions.not_applicable"
    assert result.task_success
    assert (
        metric(result, "assertion_success_rate")
        == "metric.all_assertions_not_applicable"
    )


def test_29_replayed_episode_has_the_same_score():
    first = play(FIND, calls(made("find", title="x")), says("ok"))
    again = replace(first, replayed=True, attempt=2, duration_s=9.0, detail="cached")

    assert rescore(again, FIND).score_hash == rescore(first, FIND).score_hash


def test_35_single_call_row_lists_its_ordering_gate():
    result = score(FIND, calls(made("find", title="x")), says("ok"))

    assert reasons(result)["call_ordering"] == "call_ordering.not_applicable"


@pytest.mark.parametrize(
    ("case", "answer", "success"),
    [
        ("B39 legacy call", malformed("legacy_function_call", "Sure."), False),
        (
            "B39 broken arguments",
            calls(
                made("find", raw='{"a": "P', status="invalid_json"),
                wire_class="candidate_malformed",
            ),
            False,
        ),
        (
            "B39 markup in words",
            says("<tool_call>{}</tool_call>", companions=("suspected_call_markup",)),
            True,
        ),
    ],
)
def test_broken_call_is_no_abstention(case, answer, success):
    result = score(DECLINE, answer)

    assert result.task_success is success
    assert ("text_turn" in failing(result)) is not success
    assert ("suspected_call_markup" in result.companions) is success


def test_b45_arguments_fail_while_the_assertion_passes():
    result = score(
        LIVE,
        calls(made("status", book_id="other")),
        evidence=GOOD,
    )

    assert outcomes(result)["arguments"] == "failed"
    assert outcomes(result)["assertions"] == "passed"
    assert not result.task_success
