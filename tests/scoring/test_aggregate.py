"""One candidate's run: both rates, counts, ledger, bounds, and what is refused."""

import json
from dataclasses import replace

import pytest

from harness.canonical import canonical_bytes, content_hash
from harness.causes import CAUSES
from harness.errors import ScoringError
from harness.scoring.aggregate import (
    Aggregate,
    Aggregator,
    RunIdentity,
    stop_share_exceeded,
)
from tests.scoring.episodes import (
    CONFIG,
    POLICY,
    STRICT_002,
    End,
    Evidence,
    calls,
    gold,
    made,
    malformed,
    part,
    rescore,
    says,
    script,
    task,
    unavailable,
)
from tests.scoring.episodes import episode as play

FIND = script([gold("find", title="x")], "done")
RIGHT = (calls(made("find", title="x")), says("ok"))
WRONG = (calls(made("find", title="z")),)
STOPPED = (unavailable(),)


def scored(index, answers, *, trial=0, executable=None, policy=POLICY, **more):
    spec = task(FIND, task_id=f"task-{index}", executable=executable)
    return rescore(
        play(spec, *answers, trial=trial, policy=policy, **more), spec, policy
    )


def run(*answers, **more):
    """Score one episode for each of `answers` and aggregate them."""
    return gathered([scored(i, a, **more) for i, a in enumerate(answers)])


def gathered(scores, trials=1, task_ids=None):
    ids = task_ids or list(dict.fromkeys(score.task_id for score in scores))
    return feed(Aggregator(RunIdentity.of(scores[0]), ids, trials), scores)


def feed(aggregator, scores):
    for score in scores:
        aggregator.add(score)
    return aggregator.result()


def counts(aggregate, name):
    metric = aggregate.metric(name)
    return metric.numerator, metric.denominator


class TestBothRates:
    def test_b36_six_right_two_wrong_two_stopped(self):
        of = run(*[RIGHT] * 6, *[WRONG] * 2, *[STOPPED] * 2)

        assert counts(of, "task_success_rate") == (6, 10)
        assert counts(of, "task_success_rate_without_stops") == (6, 8)
        assert counts(of, "arguments_pass_rate") == (6, 8)
        assert of.companions.stops == of.non_candidate_stops == 2
        assert (of.task_count, of.successful_tasks) == (10, 6)

    def test_b37_one_survivor_of_a_hundred(self):
        of = run(RIGHT, *[STOPPED] * 99)

        assert counts(of, "task_success_rate") == (1, 100)
        assert counts(of, "task_success_rate_without_stops") == (1, 1)
        assert stop_share_exceeded(of, 0.05)

    def test_b38_nothing_to_count_is_null_with_a_reason(self):
        of = run(STOPPED, STOPPED)
        without = of.metric("task_success_rate_without_stops")
        ordering = of.metric("call_ordering_pass_rate")

        assert (without.value, without.not_applicable_reason) == (
            None,
            "metric.no_applicable_task",
        )
        assert ordering.not_applicable_reason == "metric.no_applicable_task"
        assert "NaN" not in json.dumps(of.semantic_payload())

    def test_bounds_count_every_stop_as_failed_or_as_passed(self):
        bounds = run(*[RIGHT] * 6, *[WRONG] * 2, *[STOPPED] * 2).success_bounds

        assert (bounds.lowest_numerator, bounds.highest_numerator) == (6, 8)
        assert bounds.denominator == 10

    @pytest.mark.parametrize(
        ("cap", "over"), [(0.2, False), (0.19, True), (1.0, False)]
    )
    def test_cap_is_passed_only_above_its_decimal(self, cap, over):
        of = run(*[RIGHT] * 8, *[STOPPED] * 2)

        assert stop_share_exceeded(of, cap) is over


class TestCompanions:
    def test_marks_count_episodes(self):
        twice = (
            calls(made("find", title="x"), companions=("arguments_empty",)),
            says(
                "<tool_call>", companions=("suspected_call_markup", "arguments_empty")
            ),
        )
        of = run(twice, RIGHT)

        assert of.companions.planned == 2
        assert of.companions.arguments_empty == 1
        assert of.companions.suspected_call_markup == 1
        assert of.companions.serving_parse_loss == 0

    def test_time_and_turn_limits_are_counted_where_a_weak_model_could_hide(self):
        scores = [
            scored(0, (), end=End("episode_timeout", "episode.timeout")),
            scored(1, RIGHT[:1], end=End("max_turns_exceeded")),
            scored(2, RIGHT),
        ]
        companions = gathered(scores).companions

        assert (companions.timeouts, companions.turn_limit_stops) == (1, 1)
        assert companions.stops == 2


class TestLedger:
    def test_every_episode_without_success_has_one_owner_and_cause(self):
        of = run(
            RIGHT, WRONG, STOPPED, (malformed(),), (unavailable("timeout", "timeout"),)
        )

        assert [(e.owner, e.cause, e.is_stop, e.count) for e in of.ledger] == [
            ("candidate", "episode.candidate_mismatch", False, 1),
            ("candidate", "episode.malformed_response", False, 1),
            (
                "provider",
                "episode.candidate_call_failed.provider_unavailable",
                True,
                1,
            ),
            ("transport", "episode.candidate_call_failed.timeout", True, 1),
        ]
        assert sum(of.stops_by_cause.values()) == of.non_candidate_stops
        assert of.stops_by_cause.keys() <= CAUSES.keys()

    def test_completed_episode_names_its_failed_gate(self):
        failed = scored(
            0, RIGHT, executable=part("held"), evidence=Evidence(("failed",))
        )

        (entry,) = gathered([failed]).ledger

        assert (entry.owner, entry.cause) == (
            "candidate",
            "executable.assertion_failed",
        )

    @pytest.mark.parametrize(
        ("evidence", "owner", "cause"),
        [
            (
                Evidence(("infrastructure_error",)),
                "assertion",
                "episode.assertion_infrastructure_failed",
            ),
            (Evidence(state=None), "oracle", "episode.oracle_state_failed"),
        ],
    )
    def test_what_broke_after_a_mismatch_owns_the_seeds_stop(
        self, evidence, owner, cause
    ):
        score = scored(
            0, WRONG, executable=part("held"), evidence=evidence, policy=STRICT_002
        )

        (entry,) = gathered([score]).ledger

        assert (entry.owner, entry.cause, entry.is_stop) == (owner, cause, True)


def test_gates_are_counted_with_missing_evidence_apart():
    gates = {g.gate: g for g in run(RIGHT, WRONG, STOPPED).gates}
    arguments = gates["arguments"]
    ordering = gates["call_ordering"]

    assert (arguments.passed, arguments.failed, arguments.evidence_missing) == (1, 1, 1)
    assert ordering.not_applicable == 3
    assert "assertions" not in gates


def test_executable_metrics_are_summed_over_calls():
    executable = part("held", ("kept", "state"))
    scores = [
        scored(
            0, RIGHT, executable=executable, evidence=Evidence(("passed", "passed"))
        ),
        scored(
            1, WRONG, executable=executable, evidence=Evidence(("failed", "passed"))
        ),
    ]
    of = gathered(scores)

    assert counts(of, "argument_accuracy") == (1, 2)
    assert counts(of, "assertion_success_rate") == (3, 4)
    assert of.metric("call_order_accuracy").not_applicable_reason == (
        "metric.gate_not_applicable"
    )
    with pytest.raises(KeyError):
        of.metric("arguments_pass_rate")


def test_hash_and_text_in_pieces_are_those_of_the_whole():
    of = gathered([scored(index, RIGHT) for index in range(3)])
    whole = replace(of, task_score_hashes=tuple(of.task_score_hashes))

    assert of.aggregate_hash == content_hash(of.identity_payload())
    assert whole.aggregate_hash == of.aggregate_hash
    assert b"".join(of.semantic_pieces()) == canonical_bytes(of.semantic_payload())
    assert Aggregate.from_payload(of.semantic_payload()) == whole


class TestPlanOrder:
    def test_trials_of_a_task_come_together(self):
        scores = [scored(i, RIGHT, trial=t) for i in (0, 1) for t in (0, 1, 2)]
        of = gathered(scores, trials=3)

        assert (of.trials, of.task_count) == (3, 6)
        assert of.task_ids == ("task-0", "task-1")
        assert [*of.task_score_hashes] == [score.score_hash for score in scores]

    @pytest.mark.parametrize(
        "order", [[1, 0], [0, 0], [1], [0, 1, 1], [0], []], ids=str
    )
    def test_reordered_repeated_or_partial_scores_are_refused(self, order):
        scores = [scored(i, RIGHT) for i in (0, 1)]
        aggregator = Aggregator(RunIdentity.of(scores[0]), ["task-0", "task-1"], 1)

        with pytest.raises(ScoringError) as caught:
            feed(aggregator, [scores[index] for index in order])

        assert caught.value.code == "eval_trace_aggregation_invalid"

    def test_trials_out_of_order_are_refused(self):
        scores = [scored(0, RIGHT, trial=t) for t in (1, 0)]

        with pytest.raises(ScoringError, match="trial 0"):
            gathered(scores, trials=2)

    @pytest.mark.parametrize("field", RunIdentity.__slots__)
    def test_score_of_another_run_is_refused(self, field):
        own, foreign = scored(0, RIGHT), scored(1, RIGHT)
        value = "trace_and_executable" if field == "scope" else CONFIG + "0"

        with pytest.raises(ScoringError, match=f"another {field}"):
            gathered([own, replace(foreign, **{field: value})])

    @pytest.mark.parametrize(
        ("task_ids", "trials"), [([], 1), (["a", "a"], 1), (["a"], 0)]
    )
    def test_plan_needs_tasks_and_trials(self, task_ids, trials):
        with pytest.raises(ScoringError):
            Aggregator(RunIdentity.of(scored(0, RIGHT)), task_ids, trials)


class TestRecord:
    def test_reads_back_as_itself(self):
        of = run(RIGHT, WRONG, STOPPED)
        again = Aggregate.from_payload(json.loads(json.dumps(of.semantic_payload())))

        assert again == of
        assert again.aggregate_hash == of.aggregate_hash

    def test_same_scores_give_the_same_hash_and_others_another(self):
        assert run(RIGHT, WRONG).aggregate_hash == run(RIGHT, WRONG).aggregate_hash
        assert run(RIGHT, WRONG).aggregate_hash != run(WRONG, RIGHT).aggregate_hash
