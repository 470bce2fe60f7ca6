"""The two rules, and which of them a conversation is under."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.mlperf_agentic.coding import overlap
from harness.scoring.mlperf_agentic.conversation_ids import (
    Domain,
    conversation_of,
    domain_of,
)
from harness.scoring.mlperf_agentic.turns import answer_of, truth_of, turn_score
from harness.scoring.mlperf_agentic.workflow import model_intent, truth_intents

names = st.lists(st.sampled_from(["ls", "cat", "git", "python"]), max_size=6)


@given(names, names)
def test_overlap_is_that_of_multisets(truth, model):
    left, right = Counter(truth), Counter(model)

    assert overlap(truth, model) == ((left & right).total(), (left | right).total())


@given(names.filter(bool), st.randoms())
def test_order_never_matters_to_the_coding_rule(truth, order):
    shuffled = list(truth)
    order.shuffle(shuffled)

    assert overlap(truth, shuffled).score == 1.0


@pytest.mark.parametrize(
    ("reasoning", "content", "intent"),
    [
        ("I111", "intent: I222", "I222"),
        ("I001", "I042", "I001"),
        (None, "intent: I043 I042", "I043"),
        (None, "I042 then I043", "I043"),
        (None, "reintent: i042", None),
        (5, ["I042"], None),
        ("\u0131ntent:\u2003i007", None, "I007"),
    ],
)
def test_intent_of_a_turn(reasoning, content, intent):
    assert model_intent(reasoning, content) == intent


@pytest.mark.parametrize(
    ("codes", "truth"),
    [
        (["i002", "I001", "I002", "", None], ("I001", "I002")),
        ("I001", ()),
        ([], ()),
        (None, ()),
        ([" i1"], (" I1",)),
    ],
)
def test_right_codes_are_upper_case_and_sorted(codes, truth):
    assert truth_intents(codes) == truth


@pytest.mark.parametrize(
    ("name", "is_workflow"),
    [
        ("sim_1", True),
        ("sim_\u0661\u0662", True),
        ("sim_1\n", True),
        ("sim_", False),
        ("Sim_1", False),
        ("sim_1x", False),
        ("xsim_1", False),
        ("sim_1\n\n", False),
    ],
)
def test_domain_follows_from_the_source_id(name, is_workflow):
    assert domain_of(name) is (Domain.WORKFLOW if is_workflow else Domain.CODING)


@pytest.mark.parametrize(
    ("logged", "conversation"),
    [
        ("a", ("a", 1)),
        ("a__repeat_1", ("a", 1)),
        ("a__repeat_03", ("a", 3)),
        ("a__repeat_2__repeat_5", ("a__repeat_2", 5)),
        ("a__repeat_", ("a__repeat_", 1)),
        ("a__repeat_x", ("a__repeat_x", 1)),
        ("a__repeat_" + "9" * 5000, ("a__repeat_" + "9" * 5000, 1)),
    ],
)
def test_last_repeat_suffix_is_cut(logged, conversation):
    assert conversation_of(logged) == conversation


@given(
    st.text("sim_1 ", max_size=6),
    st.lists(st.text("Ii012 ", max_size=5), max_size=3),
    st.text("ls cat|intent: I012", max_size=30),
)
def test_score_lies_between_zero_and_one(source_id, codes, text):
    function = {"name": "bash", "arguments": {"command": text}}
    turn = {"intent_codes": codes, "tool_calls": [{"function": function}]}
    truth = truth_of(source_id, turn)
    if not truth.names:
        return

    score = turn_score(truth, answer_of(truth.domain, {**turn, "content": text}))

    assert 0.0 <= score <= 1.0
    assert truth.domain is Domain.WORKFLOW or score == 1.0
