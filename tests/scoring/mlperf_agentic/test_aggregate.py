"""Means, counts and rows of the score file."""

from harness.scoring.mlperf_agentic.aggregate import (
    excluded_rows,
    rounded_mean,
    score_file_head,
    score_rows,
)
from tests.scoring.mlperf_agentic.events_of_runs import (
    empty,
    issued,
    ran,
    recorded,
    said,
    scored,
)

TRUTH = recorded(a=["ls; cat", "echo"], sim_1=[["I001", "I002"], []])


def test_mean_is_exact_before_it_is_rounded():
    assert rounded_mean([0.1] * 10) == 0.1
    assert rounded_mean([1e16, 1.0, -1e16]) == 0.3333
    assert rounded_mean([]) is None


def test_turn_without_truth_is_issued_and_not_expected():
    run = scored(TRUTH, issued("u", "a", 3), ran("u", "a", 3, "ls"))

    assert score_file_head(run) == {
        "score": None,
        "turns": {"issued": 1, "expected": 0, "observed": 0, "missing": 0, "scored": 0},
        "domains": {},
    }
    assert run.repeats == {1}


def test_empty_answer_is_observed_and_null_is_missing():
    run = scored(
        TRUTH,
        issued("u", "a", 1),
        said("u", "a", 1, ""),
        issued("v", "sim_1", 1),
        empty("v", "sim_1", 1),
    )

    assert list(score_rows(run)) == [
        {
            "conversation_id": "a",
            "repeat": 1,
            "turn": 2,
            "domain": "coding",
            "gt_actions": ["ls", "cat"],
            "model_actions": [],
            "score": 0.0,
        },
        {
            "conversation_id": "sim_1",
            "repeat": 1,
            "turn": 2,
            "domain": "workflow",
            "missing": True,
            "gt_intents": ["I001", "I002"],
            "model_intent": None,
            "score": 0.0,
        },
    ]
    assert (run.observed, run.missing) == (1, 1)


def test_excluded_turns_are_listed_once_and_without_being_issued():
    run = scored(TRUTH)

    assert [(row["conversation_id"], row["turn"]) for row in excluded_rows(run)] == [
        ("a", 4),
        ("sim_1", 4),
    ]


def test_mean_is_over_turns_of_all_repeats():
    run = scored(
        TRUTH,
        issued("u", "a", 1),
        ran("u", "a", 1, "ls"),
        issued("v", "a__repeat_2", 1),
        issued("w", "sim_1", 1),
        said("w", "sim_1", 1, "I002"),
    )

    head = score_file_head(run)
    assert head["score"] == 0.5
    assert head["domains"] == {
        "coding": {"score": 0.25, "scored": 2},
        "workflow": {"score": 1.0, "scored": 1},
    }
    assert run.repeats == {1, 2}
