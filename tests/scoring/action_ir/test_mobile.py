"""Joining rows: every refusal, and which of two comes first."""

import json

import pytest

from harness.scoring.action_ir.mobile import score_rows
from harness.scoring.action_ir.refusal import ActionIrError
from tests.scoring.action_ir.tool_sets import act, call

TOOL_LINES = "set_timer(minutes:integer!): Start a timer."
TARGET = json.dumps(act(call("set_timer", minutes=5)))


def prompt(lines=TOOL_LINES):
    return f"<system>\nTOOLS\n{lines}\n<user>\nhello\n"


def row(sample_id="a", **fields):
    return {"id": sample_id, "prompt": prompt(), "target": TARGET} | fields


def prediction(sample_id="a", **fields):
    return {"id": sample_id, "prediction_raw": TARGET, "truncated": False} | fields


BROKEN = [
    ([row()], [prediction(5)], "prediction_id_invalid"),
    ([row()], [prediction(""), prediction()], "prediction_id_invalid"),
    ([row(5)], [prediction(), prediction()], "duplicate_prediction_id"),
    ([row(None)], [prediction()], "manifest_id_invalid"),
    ([row(), row(prompt=5)], [prediction()], "duplicate_manifest_id"),
    (
        [row(prompt=5, metadata=5)],
        [prediction()],
        "manifest_prompt_or_target_invalid",
    ),
    ([row(target=None)], [prediction()], "manifest_prompt_or_target_invalid"),
    ([row(metadata=None)], [], "manifest_metadata_invalid"),
    ([row(prompt="x")], [], "missing_prediction_row"),
    ([row()], [prediction(prediction_raw=5, x=1)], "prediction_unsupported_fields"),
    ([row()], [prediction(prediction_raw=5, truncated=0)], "prediction_raw_type"),
    ([row()], [prediction(truncated=0, generation_failure=5)], "truncated_type"),
    ([row()], [prediction(truncated=None)], "truncated_type"),
    (
        [row(prompt="x")],
        [prediction(generation_failure=5)],
        "generation_failure_type",
    ),
    (
        [row(prompt="x", target="x", metadata={"call_names": [5]})],
        [prediction(generation_failure="")],
        "missing_tools_block",
    ),
    (
        [
            row(),
            row(
                "b",
                prompt=prompt("set_timer(minutes:string!): Start."),
                metadata={"call_names": [5]},
            ),
        ],
        [prediction(), prediction("b")],
        "tool_schema_changed",
    ),
    (
        [row(), row("b", prompt=prompt("set_timer(minutes:integer): Start."))],
        [prediction(), prediction("b")],
        "tool_schema_changed",
    ),
    (
        [row(target="x", metadata={"call_names": [5]})],
        [prediction()],
        "scenario_invalid",
    ),
    ([row(metadata={"call_names": [""]})], [prediction()], "scenario_invalid"),
    ([row(target="x")], [prediction(generation_failure="")], "invalid_gold"),
    ([row()], [prediction(generation_failure="a b")], "invalid_generation_failure"),
    (
        [row(), row("c", prompt="x")],
        [prediction(), prediction("b"), prediction("c")],
        "missing_tools_block",
    ),
    ([row()], [prediction(), prediction("b")], "unknown_prediction_id"),
]


@pytest.mark.parametrize(("manifest", "predictions", "reason"), BROKEN)
def test_first_problem_ends_the_scoring(manifest, predictions, reason):
    with pytest.raises(ActionIrError) as refused:
        score_rows(manifest, predictions)

    assert refused.value.reason == reason


def test_refusal_names_the_row():
    with pytest.raises(ActionIrError, match="row b") as refused:
        score_rows([row(), row("b", prompt="x")], [prediction(), prediction("b")])

    assert refused.value.violations[0].where == "row b"


@pytest.mark.parametrize(
    ("metadata", "scenario"),
    [
        ({"call_names": ["set_timer", 5]}, "set_timer"),
        ({"call_names": []}, "unspecified"),
        ({"call_names": "set_timer"}, "unspecified"),
        ({}, "unspecified"),
    ],
)
def test_scenario_is_the_first_call_name(metadata, scenario):
    (found,), _ = score_rows([row(metadata=metadata)], [prediction()])

    assert found.scenario == scenario


def test_order_and_words_of_tools_may_differ_between_rows():
    other = prompt("flash(): F.\nset_timer(minutes:integer!): Other words.")

    scores, total = score_rows(
        [row(), row("b", prompt=other, extra=1)],
        [prediction("b"), {"id": "a"}],
    )

    assert [score.sample_id for score in scores] == ["a", "b"]
    assert [score.ast_exact for score in scores] == [False, True]
    assert total["schema_version"] == "barun-mobile-actions-score-v1"
    assert total["missing_prediction"]["numerator"] == 1


def test_token_counts_are_not_looked_at():
    rows = [prediction(prompt_tokens="many", generated_tokens=None)]

    (found,), _ = score_rows([row()], rows)

    assert found.policy_safe_executable_success


def test_no_rows_are_legal():
    scores, total = score_rows([], [])

    assert (scores, total["sample_count"]) == ([], 0)
