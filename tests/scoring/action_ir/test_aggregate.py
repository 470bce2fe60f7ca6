"""Aggregates over small populations whose figures can be counted by hand."""

import dataclasses
import json

import pytest

from harness.scoring.action_ir.aggregate import Aggregator, aggregate
from harness.scoring.action_ir.mobile import equals_gold
from harness.scoring.action_ir.refusal import ActionIrError
from harness.scoring.action_ir.sample import score_sample
from tests.scoring.action_ir.tool_sets import TOOLS, act, call

ABSTAIN = json.dumps({"decision": "ABSTAIN"})
TIMER = json.dumps(act(call("set_timer", minutes=5)))
LATER = json.dumps(act(call("set_timer", minutes=6)))
ASK = json.dumps({"decision": "CLARIFY", "missing": ["to"]})


def score(sample_id, gold, prediction, **fields):
    return score_sample(
        sample_id,
        gold=gold,
        tools=TOOLS,
        prediction_raw=prediction,
        hook=equals_gold,
        **fields,
    )


def messages(*pairs, mode="SERIAL"):
    return json.dumps(
        act(*(call("send_message", to=to, body=body) for to, body in pairs), mode=mode)
    )


def share(part, whole):
    return {"numerator": part, "denominator": whole, "value": part / whole}


def test_shares_count_rows():
    found = aggregate(
        [
            score("a", TIMER, TIMER, scenario="one"),
            score("b", TIMER, TIMER, truncated=True, scenario="one"),
            score("c", ASK, ASK),
            score("d", ABSTAIN, TIMER),
            score("e", ABSTAIN, None, generation_failure="oom"),
            score("f", TIMER, "x"),
            score("g", TIMER, ABSTAIN),
        ]
    )

    assert found["sample_count"] == 7
    assert found["policy_safe_executable_success"] == share(2, 7)
    assert found["ast_exact_match"] == share(3, 7)
    assert found["parse_valid"] == found["schema_valid"] == share(5, 7)
    assert found["truncation"] == share(1, 7)
    assert found["missing_prediction"] == share(1, 7)
    assert found["parse_failure"] == share(1, 7)
    assert found["decision_accuracy"] == share(3, 7)
    assert found["false_action"] == share(1, 3)
    assert found["call_simulator_assessment"] == share(3, 3)
    assert found["clarification_accuracy"] == share(1, 1)
    assert found["abstention"] == {
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
        "true_positive": 0,
        "false_positive": 1,
        "false_negative": 2,
    }
    assert found["per_scenario_success"] == {
        "one": share(1, 2),
        "unspecified": share(1, 5),
    }
    assert found["per_gold_tool_success"] == {"set_timer": share(1, 4)}
    assert found["failure_counts"] == {
        "ast_mismatch": 2,
        "false_action": 1,
        "generation_failure": 1,
        "invalid_json": 1,
        "missing_prediction": 1,
        "mobile_actions_ast_mismatch": 1,
        "oom": 1,
        "parse_failure": 1,
        "simulator_failure": 1,
        "truncated": 1,
    }
    assert found["risk_coverage"] == []


def test_row_without_facts_on_either_side_has_full_row_f1():
    found = aggregate([score("a", ABSTAIN, "x"), score("b", TIMER, "x")])

    assert found["argument_key_macro_f1"] == found["argument_value_macro_f1"] == 0.5
    assert found["argument_key_micro"]["false_negative"] == 1


def test_swapped_serial_values_keep_keys_and_lose_values():
    gold = messages(("Asha", "one"), ("Bela", "two"))
    swapped = messages(("Bela", "two"), ("Asha", "one"))

    found = aggregate([score("a", gold, swapped)])

    assert found["argument_key_micro"]["f1"] == 1.0
    assert found["argument_value_micro"]["f1"] == 0.0


def test_parallel_calls_are_numbered_in_canonical_order():
    gold = messages(("Bela", "b"), ("Asha", "c"), mode="PARALLEL")
    more = messages(("Asha", "c"), ("Bela", "b"), ("Zoe", "a"), mode="PARALLEL")

    found = aggregate([score("a", gold, gold), score("b", gold, more)])

    micro = found["argument_value_micro"]
    assert (micro["true_positive"], micro["false_positive"]) == (4, 6)


def test_facts_of_two_rows_never_meet():
    found = aggregate([score("a", TIMER, LATER), score("b", LATER, TIMER)])

    assert found["argument_value_micro"]["true_positive"] == 0


def test_tools_count_rows_and_classes_that_occur():
    both = json.dumps(act(call("set_timer", minutes=5), call("set_timer", minutes=6)))
    look = json.dumps(act(call("look_up", query="x")))

    found = aggregate([score("a", both, both), score("b", TIMER, look)])

    assert found["per_tool"]["set_timer"] == {
        "precision": 1.0,
        "recall": 0.5,
        "f1": 2 / 3,
        "true_positive": 1,
        "false_positive": 0,
        "false_negative": 1,
        "true_negative": 0,
        "balanced_accuracy": 0.5,
    }
    assert found["per_tool"]["look_up"]["balanced_accuracy"] == 0.5
    assert found["tool_macro_balanced_accuracy"] == 0.5
    assert list(found["per_tool"]) == ["look_up", "set_timer"]


def test_curve_needs_a_confidence_on_every_row():
    rows = [
        score("a", TIMER, TIMER, confidence=0.9),
        score("b", TIMER, LATER, confidence=0.5),
        score("c", ABSTAIN, TIMER, confidence=0.5),
    ]

    assert aggregate(rows)["risk_coverage"] == [
        {
            "threshold": 0.9,
            "coverage": 1 / 3,
            "risk": 0.0,
            "false_action_rate": 0.0,
            "accepted": 1,
        },
        {
            "threshold": 0.5,
            "coverage": 1.0,
            "risk": 1 - 1 / 3,
            "false_action_rate": 1.0,
            "accepted": 3,
        },
    ]
    assert aggregate([*rows, score("d", TIMER, TIMER)])["risk_coverage"] == []


def test_nothing_scored_is_all_zero():
    found = aggregate([])

    assert found["sample_count"] == 0
    assert found["tool_macro_f1"] == found["argument_key_macro_f1"] == 0.0
    assert found["per_tool"] == found["failure_counts"] == {}
    assert found["risk_coverage"] == []


def test_repeated_id_is_refused():
    with pytest.raises(ActionIrError, match="repeated_sample_id"):
        aggregate([score("a", TIMER, TIMER), score("a", ABSTAIN, TIMER)])


def test_score_of_another_version_is_refused():
    other = dataclasses.replace(
        score("a", TIMER, TIMER), evaluator_version="action-ir-v2"
    )

    with pytest.raises(ActionIrError, match="mixed_evaluator_versions"):
        Aggregator().add(other)
