"""Every gate is explained, in the order in which scores list it."""

from harness.scoring.gate_rules import GATE_RULES
from harness.scoring.gates import EXECUTABLE_GATES, GATE_NAMES


def test_rules_are_the_gates_in_order():
    assert tuple(GATE_RULES) == GATE_NAMES


def test_scope_says_which_gates_need_a_live_oracle():
    executable = [name for name, rule in GATE_RULES.items() if rule.scope != "trace"]

    assert tuple(executable) == EXECUTABLE_GATES


def test_questions_are_questions():
    assert [
        r.question for r in GATE_RULES.values() if not r.question.endswith("?")
    ] == []
