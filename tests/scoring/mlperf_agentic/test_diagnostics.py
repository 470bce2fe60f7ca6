"""What stands beside the score: causes, baselines, coverage, means."""

from collections import Counter

import pytest

from harness.scoring.mlperf_agentic.diagnostics import (
    LineCounts,
    diagnostics,
    unanswered_rows,
)
from harness.scoring.mlperf_agentic.skips import LineSkip
from tests.scoring.mlperf_agentic.events_of_runs import (
    empty,
    event,
    failed,
    issued,
    ran,
    recorded,
    said,
    scored,
)

TRUTH = recorded(
    a=["ls", "ls; cd x", "cat y"], b=["git log"], sim_1=[["I001"], ["I001", "I002"]]
)


def found(*events, lines=None):
    return diagnostics(scored(TRUTH, *events), lines or LineCounts())


@pytest.mark.parametrize(
    ("error_type", "cause"),
    [
        ("TurnTimeout", "timeout"),
        ("ServerTimeoutError", "timeout"),
        ("httpx.ReadTimeout", "timeout"),
        ("TurnAbortedByPriorFailure", "aborted_by_earlier_failure"),
        ("ConnectionRefusedError", "connection"),
        ("ClientConnectorError", "connection"),
        ("ServerDisconnectedError", "connection"),
        ("HTTPStatusError", "server_error"),
        ("ClientResponseError", "server_error"),
        ("KeyError", "other_error"),
    ],
)
def test_error_record_names_the_cause(error_type, cause):
    run = scored(
        TRUTH, issued("u", "a", 1), failed("u", error_type), empty("u", "a", 1)
    )

    assert list(unanswered_rows(run)) == [
        {
            "conversation_id": "a",
            "repeat": 1,
            "turn": 2,
            "cause": cause,
            "error_type": error_type,
        }
    ]


def test_without_an_error_record_the_completion_tells():
    run = scored(TRUTH, issued("u", "a", 1), empty("u", "a", 1), issued("v", "a", 3))

    causes = [row["cause"] for row in unanswered_rows(run)]
    assert causes == ["completed_without_output", "not_completed"]


def test_error_of_an_answered_turn_is_no_cause():
    run = scored(
        TRUTH, issued("u", "a", 1), failed("u", "TurnTimeout"), ran("u", "a", 1, "ls")
    )

    assert list(unanswered_rows(run)) == []


def test_score_over_answered_turns_leaves_outages_out():
    details = found(
        issued("u", "a", 1),
        ran("u", "a", 1, "ls"),
        issued("v", "a", 3),
        failed("v", "TurnTimeout"),
    )

    assert details["answered_only"]["score"] == 1.0
    assert details["headline"] == {"score": None, "refused": ["turns_missing"]}
    assert details["unanswered"] == {
        "turns": 1,
        "causes": {"timeout": 1},
        "error_types": {"TurnTimeout": 1},
    }


def test_whole_run_has_a_headline():
    details = found(issued("u", "b", 1), ran("u", "b", 1, "git diff"))

    assert details["headline"] == {"score": 1.0, "refused": []}


def test_run_without_a_scorable_turn_has_none():
    assert found()["headline"] == {"score": None, "refused": ["nothing_scorable"]}


def test_turns_that_were_never_issued_are_counted():
    details = found(
        issued("u", "a", 1),
        issued("v", "a__repeat_2", 1),
        issued("w", "a__repeat_2", 3),
    )

    assert details["never_issued"] == {
        "in_started_conversations": 3,
        "in_conversations_never_started": 3,
    }


def test_stages_that_map_to_no_action_are_counted():
    stages = found(issued("u", "a", 1), ran("u", "a", 1, "ls; cd x; pwd"))[
        "command_stages"
    ]

    assert stages == {
        "recorded": {"stages": 5, "mapped_to_an_action": 4, "share": 0.8},
        "model": {"stages": 3, "mapped_to_an_action": 1, "share": 0.3333},
    }


def test_skipped_calls_and_lines_are_counted_by_name():
    data = ["TextModelOutput", "", None, [[None]]]
    counts = LineCounts(7, Counter({LineSkip.NOT_JSON: 2}))

    details = found(
        issued("u", "a", 1),
        event("sample.complete", "u", "a", 1, data),
        issued("v", "nobody", 1),
        lines=counts,
    )

    assert details["calls_skipped"] == {"delta_not_object": 1}
    assert details["lines"] == {
        "read": 7,
        "skipped": {"line_not_json": 2},
        "of_no_expected_turn": 1,
    }


def test_baselines_are_scored_on_the_same_turns():
    """Of a: ls, ls, cat. Of sim_1: I001, then I001 or I002."""
    places = [("a", 1), ("a", 3), ("a", 5), ("sim_1", 1), ("sim_1", 3)]

    lines = found(*(issued(str(place), *place) for place in places))["baselines"]

    assert lines["repeat_previous"] == 0.4
    assert lines["coding"] == {
        "constant": [
            {"actions": ["ls"], "score": 0.6667},
            {"actions": ["cat"], "score": 0.3333},
            {"actions": ["cat", "ls"], "score": 0.5},
        ],
        "repeat_previous": 0.3333,
    }
    assert lines["workflow"] == {
        "constant": [
            {"intent": "I001", "score": 1.0},
            {"intent": "I002", "score": 0.5},
        ],
        "repeat_previous": 0.5,
    }


def test_baselines_weigh_turns_by_their_repeats():
    lines = found(
        issued("u", "a", 1), issued("v", "b", 1), issued("w", "b__repeat_2", 1)
    )["baselines"]

    assert lines["coding"]["constant"][:2] == [
        {"actions": ["git"], "score": 0.6667},
        {"actions": ["ls"], "score": 0.3333},
    ]


def test_means_are_given_for_each_repeat_and_conversation():
    details = found(
        issued("u", "a", 1),
        ran("u", "a", 1, "ls"),
        issued("v", "a", 3),
        issued("w", "sim_1__repeat_2", 1),
        said("w", "sim_1", 1, "I001"),
    )

    assert details["repeats"] == {
        "mean_of_means": 0.75,
        "rows": [
            {"repeat": 1, "score": 0.5, "scored": 2, "missing": 1},
            {"repeat": 2, "score": 1.0, "scored": 1, "missing": 0},
        ],
    }
    assert details["conversations"]["mean_of_means"] == 0.75
    assert details["conversations"]["rows"][1] == {
        "conversation_id": "sim_1",
        "domain": "workflow",
        "repeats": 1,
        "score": 1.0,
        "scored": 1,
        "missing": 0,
    }
