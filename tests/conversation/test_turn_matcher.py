"""The memory of a matcher changes no verdict."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.conversation.matching import match_turn
from harness.conversation.turn_matcher import MOST_KEPT, TurnMatcher
from harness.json_schema import compile_tools
from tests.scoring.episodes import POLICY, gold, made, script, tool

TOOLS = (tool("f", {}, closed=False), tool("g", {"n": {"default": 1}}, closed=False))
SCRIPT = script(
    "ask", [gold("f", a=1), gold("g", b="x")], [gold("f", a=1.0)], "bye", tools=TOOLS
)
CATALOG = compile_tools(TOOLS)
SCALARS = st.sampled_from([0, 1, 1.0, True, None, "1", "x", ""])
CALLS = st.lists(
    st.builds(
        lambda name, values, kind: replace(made(name, **values), type=kind),
        st.sampled_from(["f", "g", "h"]),
        st.dictionaries(st.sampled_from(["a", "b", "n"]), SCALARS, max_size=2),
        st.sampled_from([None, "function", "other"]),
    ),
    max_size=3,
).map(tuple)
POLICIES = (
    POLICY,
    replace(POLICY, insert_declared_defaults=not POLICY.insert_declared_defaults),
    replace(POLICY, intermediate_text_matching="verbatim"),
    replace(POLICY, argument_matching="canonical_only"),
)
ASKED = st.fixed_dictionaries(
    {
        "turn": st.integers(0, 3),
        "text": st.sampled_from([None, "", "ask", "other", " "]),
        "calls": CALLS,
        "incomplete": st.booleans(),
        "policy": st.sampled_from(POLICIES),
        "issued": st.lists(st.sampled_from(["f", "g"]), max_size=2).map(tuple),
        "live": st.none() | SCALARS,
    }
)


def asked(match, of):
    """Ask a matcher, or the kernel through the same arguments."""
    turn = SCRIPT.turns[of["turn"]]
    expected = turn.calls
    if of["live"] is not None:
        # As a dependency does: a value that only the live run knows.
        expected = tuple(replace(c, arguments={"a": of["live"]}) for c in turn.calls)
    return match(
        turn,
        expected,
        text=of["text"],
        tool_calls=of["calls"],
        incomplete=of["incomplete"],
        policy=of["policy"],
        issued_names=of["issued"],
    )


def kernel(turn, expected, **more):
    return match_turn(turn, expected, catalog=CATALOG, script=SCRIPT, **more)


@given(st.lists(ASKED, min_size=1, max_size=12))
def test_remembered_verdict_is_the_kernels(questions):
    matcher = TurnMatcher(SCRIPT, CATALOG)

    for of in questions + questions:
        assert asked(matcher.match, of) == asked(kernel, of)


def test_ids_and_spelling_share_a_verdict():
    matcher = TurnMatcher(SCRIPT, CATALOG)
    call = made("f", a=1)
    question = {
        "turn": 2,
        "text": "",
        "calls": (call,),
        "incomplete": False,
        "policy": POLICY,
        "issued": (),
        "live": None,
    }
    respelled = replace(call, id="other", raw_arguments='{ "a": 1 }')

    first = asked(matcher.match, question)

    assert asked(matcher.match, {**question, "calls": (respelled,)}) is first


def test_number_of_kept_verdicts_is_bounded():
    matcher = TurnMatcher(SCRIPT, CATALOG)
    question = {"turn": 1, "text": "", "incomplete": False, "policy": POLICY}
    for number in range(2 * MOST_KEPT):
        of = {"calls": (made("f", a=number),), "issued": (), "live": None}
        asked(matcher.match, {**question, **of})

    assert len(matcher._verdicts) <= MOST_KEPT
