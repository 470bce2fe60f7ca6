"""A zero over nothing is shown as not measured, a zero over something is not."""

import json

from harness.scoring.action_ir.aggregate import aggregate
from harness.scoring.action_ir.mobile import equals_gold
from harness.scoring.action_ir.sample import score_sample
from harness.scoring.action_ir.unmeasured import measures, not_measured
from tests.scoring.action_ir.tool_sets import TOOLS, act, call

TIMER = json.dumps(act(call("set_timer", minutes=5)))
ABSTAIN = json.dumps({"decision": "ABSTAIN"})


def total(*pairs):
    return aggregate(
        score_sample(
            str(number),
            gold=gold,
            tools=TOOLS,
            prediction_raw=prediction,
            scenario="true_positive",
            hook=equals_gold,
        )
        for number, (gold, prediction) in enumerate(pairs)
    )


def test_population_of_calls_measures_no_gate():
    found = not_measured(total((TIMER, TIMER), (TIMER, "x")))

    assert found == [
        "abstention.f1",
        "abstention.precision",
        "abstention.recall",
        "clarification_accuracy",
        "confirmation_accuracy",
        "false_action",
    ]


def test_nothing_scored_measures_nothing():
    found = measures(total())

    assert set(found.values()) == {None}
    assert "tool_macro_f1" in found


def test_zero_over_something_is_a_figure():
    found = measures(total((TIMER, ABSTAIN)))

    assert found["ast_exact_match"] == 0.0
    assert found["abstention.precision"] == 0.0
    assert found["abstention.recall"] is None
    assert found["argument_key_micro.precision"] is None
    assert found["argument_key_micro.f1"] == 0.0
    assert found["per_tool.set_timer.balanced_accuracy"] == 0.0
    assert found["per_scenario_success.true_positive"] == 0.0
    assert found["tool_macro_f1"] == 0.0


def test_counts_are_no_measures():
    found = measures(total((TIMER, "x")))

    assert not any(place.startswith("failure_counts") for place in found)
    assert "sample_count" not in found
