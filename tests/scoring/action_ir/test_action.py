"""Equality of actions: what it looks at, and what it may not look at."""

import json
import random
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.scoring.action_ir.action import Action
from harness.scoring.action_ir.validate import read_action
from tests.scoring.action_ir.tool_sets import TOOLS, act, call

texts = st.text(
    st.characters(exclude_categories=["Cs"], max_codepoint=0x2FFF), max_size=8
)
words = st.text("abcé́Åﬁ ", min_size=1, max_size=4)
integers = st.integers(-(2**70), 2**70)
doubles = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | integers | doubles | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            texts.map(lambda t: unicodedata.normalize("NFC", t)), inner, max_size=3
        )
    ),
    max_leaves=6,
)
calls = st.one_of(
    st.builds(lambda m: call("set_timer", minutes=m), integers),
    st.builds(lambda b, t: call("send_message", body=b, to=t), texts, texts),
    st.builds(lambda x: call("set_level", level=x), doubles),
    st.builds(lambda x: call("tag_note", tags=x), st.lists(doubles, max_size=4)),
    st.builds(lambda x: call("anything", payload=x), values),
)
acting = st.builds(
    lambda made, decision, mode: act(*made, decision=decision, mode=mode),
    st.lists(calls, min_size=1, max_size=3),
    st.sampled_from(["CALL", "CONFIRM"]),
    st.sampled_from(["SERIAL", "PARALLEL"]),
)
asking = st.sets(words.map(lambda w: unicodedata.normalize("NFC", w)), min_size=1).map(
    lambda names: {"decision": "CLARIFY", "missing": sorted(names)}
)
payloads = acting | asking | st.just({"decision": "ABSTAIN"})


def read(payload, **options):
    return read_action(json.dumps(payload, **options), TOOLS)


def shuffled(node, order):
    """Return the same JSON value with the keys of every object in another order."""
    if isinstance(node, list):
        return [shuffled(item, order) for item in node]
    if isinstance(node, dict):
        keys = list(node)
        order.shuffle(keys)
        return {key: shuffled(node[key], order) for key in keys}
    return node


def decomposed(node):
    """Return the same JSON value with every string in NFD."""
    if isinstance(node, str):
        return unicodedata.normalize("NFD", node)
    if isinstance(node, list):
        return [decomposed(item) for item in node]
    if isinstance(node, dict):
        return {decomposed(key): decomposed(item) for key, item in node.items()}
    return node


@given(payloads)
def test_equality_is_reflexive(payload):
    assert read(payload) == read(payload)
    assert hash(read(payload)) == hash(read(payload))


@given(payloads, payloads)
def test_equality_is_symmetric(left, right):
    assert (read(left) == read(right)) == (read(right) == read(left))


@given(payloads, st.integers(0, 99))
def test_order_of_keys_and_whitespace_are_ignored(payload, seed):
    other = shuffled(payload, random.Random(seed))

    assert read(payload) == read(other, indent=3, ensure_ascii=False)


@given(payloads)
def test_canonical_text_reads_as_the_same_action(payload):
    action = read(payload)

    assert read_action(action.text, TOOLS).text == action.text


@given(acting)
def test_normal_form_of_strings_is_ignored(payload):
    assert read(payload) == read(decomposed(payload))


@given(acting, st.integers(0, 99))
def test_order_of_calls_is_ignored_in_parallel_alone(payload, seed):
    turned = payload | {"calls": payload["calls"][:]}
    random.Random(seed).shuffle(turned["calls"])
    left, right = read(payload), read(turned)

    if payload["mode"] == "PARALLEL":
        assert left == right
    else:
        in_order = [call.as_json() for call in left.calls]
        assert (left == right) == (
            json.dumps(in_order) == json.dumps([c.as_json() for c in right.calls])
        )


@given(acting)
def test_a_call_more_is_seen_even_where_it_repeats_one(payload):
    more = payload | {"calls": [*payload["calls"], payload["calls"][0]]}

    assert read(payload) != read(more)


@given(acting)
def test_mode_and_decision_are_seen(payload):
    other_mode = {"SERIAL": "PARALLEL", "PARALLEL": "SERIAL"}[payload["mode"]]
    other_decision = {"CALL": "CONFIRM", "CONFIRM": "CALL"}[payload["decision"]]

    assert read(payload) != read(payload | {"mode": other_mode})
    assert read(payload) != read(payload | {"decision": other_decision})


@given(texts, texts)
def test_strings_are_equal_exactly_when_their_nfc_is(left, right):
    same = unicodedata.normalize("NFC", left) == unicodedata.normalize("NFC", right)

    found = read(act(call("look_up", query=left))) == read(
        act(call("look_up", query=right))
    )

    assert found == same


@given(integers)
def test_declared_number_is_a_double_however_it_is_spelled(value):
    as_integer = read(act(call("set_level", level=value)))

    assert as_integer == read(act(call("set_level", level=float(value))))


@given(integers, integers)
def test_declared_integer_stays_exact(left, right):
    found = read(act(call("set_timer", minutes=left))) == read(
        act(call("set_timer", minutes=right))
    )

    assert found == (left == right)


@given(st.integers(-(2**53), 2**53))
def test_undeclared_number_keeps_its_kind(value):
    assert read(act(call("anything", x=value))) != read(
        act(call("anything", x=float(value)))
    )


@given(st.lists(doubles, max_size=5), st.integers(0, 99))
def test_set_ignores_order_and_repetition(members, seed):
    other = [*members, *members[:2]]
    random.Random(seed).shuffle(other)

    assert read(act(call("tag_note", tags=members))) == read(
        act(call("tag_note", tags=other))
    )


@given(st.lists(integers, max_size=4), integers)
def test_set_sees_a_member_more(members, member):
    assume(float(member) not in map(float, members))

    assert read(act(call("tag_note", tags=members))) != read(
        act(call("tag_note", tags=[*members, member]))
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("[0.0]", "[-0.0]"),
        ("1", "true"),
        ("0", "false"),
        ("null", "[]"),
        ("[]", "{}"),
        ('"1"', "1"),
        ('"a"', '"A"'),
        ('"a"', '"a "'),
        ('"\ufb01"', '"fi"'),
        ("[1,2]", "[2,1]"),
    ],
)
def test_undeclared_values_that_differ_are_seen(left, right):
    actions = [
        read(act(call("anything", x=json.loads(text)))) for text in (left, right)
    ]

    assert actions[0] != actions[1]


def test_action_is_no_text():
    action = read({"decision": "ABSTAIN"})

    assert isinstance(action, Action)
    assert action != action.text
