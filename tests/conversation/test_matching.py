"""The comparison kernel: text turns, call turns, pairing, order, defaults."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.conversation.matching import TurnMatch, match_turn
from harness.json_schema import compile_tools
from tests.scoring.episodes import POLICY, gold, made, script, tool

OPEN = (
    tool("f", {}, closed=False),
    tool("g", {}, closed=False),
)


def match(of, *proposed, turn=0, text="", incomplete=False, policy=POLICY, issued=()):
    scripted = of.turns[turn]
    return match_turn(
        scripted,
        scripted.calls,
        text=text,
        tool_calls=tuple(proposed),
        incomplete=incomplete,
        catalog=compile_tools(of.tools),
        policy=policy,
        script=of,
        issued_names=tuple(issued),
    )


def pairs(of):
    return of.paired_call_indexes


class TestTextTurn:
    @pytest.mark.parametrize("text", ["yes", " a ", "どうぞ"])
    def test_words_match(self, text):
        assert match(script("hello"), text=text).matched

    @pytest.mark.parametrize("text", [None, "", " \n\t"])
    def test_silence_does_not(self, text):
        result = match(script("hello"), text=text)

        assert (result.matched, result.text_matched) == (False, False)

    def test_call_does_not_even_beside_words(self):
        result = match(script("hello"), made("find", title="x"), text="hello")

        assert not result.text_matched
        assert pairs(result) == (None,)
        assert result.calls[0].schema_failures == ()

    def test_incomplete_answer_does_not(self):
        result = match(script("hello"), text="hel", incomplete=True)

        assert (result.matched, result.incomplete_finish) == (False, True)

    @pytest.mark.parametrize(("text", "matched"), [("ask", True), ("ask?", False)])
    def test_verbatim_compares_turns_that_go_on(self, text, matched):
        verbatim = replace(POLICY, intermediate_text_matching="verbatim")
        asks = script("ask", "bye")

        assert match(asks, text=text, policy=verbatim).matched is matched

    def test_verbatim_leaves_the_last_turn_free(self):
        verbatim = replace(POLICY, intermediate_text_matching="verbatim")

        assert match(script("ask", "bye"), turn=1, text="x", policy=verbatim).matched


class TestCallTurn:
    one = script([gold("find", title="x")])
    pair = script([gold("find", title="x"), gold("status", book_id="b")])

    def test_equal_call_matches(self):
        result = match(self.one, made("find", title="x"))

        assert result.matched
        assert pairs(result) == (0,)

    def test_words_beside_the_call_change_nothing(self):
        assert match(self.one, made("find", title="x"), text="Let me see").matched

    def test_no_call_does_not_match(self):
        result = match(self.one, text="I will look")

        assert (result.matched, result.group_size_matched) == (False, False)
        assert "made none" in result.detail

    @pytest.mark.parametrize("grouped", [True, False])
    def test_count_must_equal_the_group_even_with_grouping_relaxed(self, grouped):
        policy = replace(POLICY, respect_call_group=grouped)
        twice = match(
            self.one, made("find", title="x"), made("find", title="x"), policy=policy
        )

        assert not twice.matched
        assert pairs(twice) == (0, None)
        assert "extra call" in twice.calls[1].detail

    def test_incomplete_answer_with_the_right_call_does_not_match(self):
        result = match(self.one, made("find", title="x"), incomplete=True)

        assert not result.matched
        assert result.calls[0].arguments_matched

    @pytest.mark.parametrize("kind", ["custom", ""])
    def test_call_of_another_type_matches_nothing(self, kind):
        result = match(self.one, made("find", kind=kind, title="x"))

        assert pairs(result) == (None,)
        assert "no function call" in result.calls[0].detail

    def test_absent_type_means_function(self):
        assert match(self.one, made("find", kind=None, title="x")).matched

    def test_call_without_a_name_matches_nothing(self):
        result = match(self.one, made(None, title="x"))

        assert pairs(result) == (None,)
        assert [f["reason"] for f in result.calls[0].schema_failures] == [
            "unknown_tool"
        ]

    def test_undeclared_tool_violates_every_schema(self):
        result = match(self.one, made("lose"))

        assert [f["reason"] for f in result.calls[0].schema_failures] == [
            "unknown_tool"
        ]
        assert "the gold call left is find" in result.calls[0].detail

    @pytest.mark.parametrize(
        "status", ["invalid_json", "json_not_object", "missing", "wrong_type"]
    )
    def test_broken_arguments_match_the_name_only(self, status):
        result = match(self.one, made("find", status=status))
        (call,) = result.calls

        assert (call.name_matched, call.arguments_matched) == (True, False)
        assert [f["reason"] for f in call.schema_failures] == ["arguments_not_object"]
        assert call.missing == ()
        assert status in call.detail

    def test_diff_names_missing_unexpected_and_differing(self):
        of = script([gold("f", a=1, b=2, c=3)], tools=OPEN)
        (call,) = match(of, made("f", b=9, c=3, d=4)).calls

        assert (call.missing, call.unexpected, call.differing) == (
            ("a",),
            ("d",),
            ("b",),
        )
        assert call.detail == "the arguments differ from gold"

    def test_result_is_a_record_that_reads_back(self):
        result = match(self.pair, made("status", book_id="z"), made("find", title=1))

        assert TurnMatch.from_payload(result.semantic_payload()) == result


class TestTypes:
    @pytest.mark.parametrize("value", [12, 12.0, "12", True, None, [12], {"v": 12}])
    @pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"k": [v]}])
    def test_only_the_same_type_and_value_is_equal(self, value, wrap):
        of = script([gold("f", a=wrap(12))], tools=OPEN)
        matched = match(of, made("f", a=wrap(value))).matched

        assert matched is (type(value) is int)

    def test_integers_beyond_double_precision_differ(self):
        of = script([gold("f", a=2**53 + 1)], tools=OPEN)

        assert not match(of, made("f", a=2**53)).matched

    def test_schema_step_refuses_what_canonical_comparison_would_pass(self):
        broken = tool("f", {"a": {"type": "string"}})
        of = script([gold("f", a=1)], tools=(broken,))
        canonical = replace(POLICY, argument_matching="canonical_only")

        assert not match(of, made("f", a=1)).matched
        assert "schema" in match(of, made("f", a=1)).calls[0].detail
        assert match(of, made("f", a=1), policy=canonical).matched
        assert (
            match(of, made("f", a=1), policy=canonical).calls[0].schema_failures == ()
        )


class TestDefaults:
    without = replace(POLICY, insert_declared_defaults=False)

    @pytest.mark.parametrize("limit", [10, 50])
    def test_default_that_gold_states_nowhere_is_unconstrained(self, limit):
        of = script([gold("find", title="x")])

        assert match(of, made("find", title="x", limit=limit)).matched
        assert not match(
            of, made("find", title="x", limit=limit), policy=self.without
        ).matched

    def test_unconstrained_parameter_must_still_fit_its_schema(self):
        of = script([gold("find", title="x")])

        assert not match(of, made("find", title="x", limit="50")).matched

    @pytest.mark.parametrize(
        ("insertion", "matched"), [(POLICY, True), (without, False)]
    )
    def test_stated_default_may_be_left_out_with_insertion(self, insertion, matched):
        of = script([gold("find", title="x", limit=10)])

        assert match(of, made("find", title="x"), policy=insertion).matched is matched

    def test_stated_other_value_may_not_be_left_out(self):
        of = script([gold("find", title="x", limit=5)])

        assert match(of, made("find", title="x")).calls[0].differing == ("limit",)

    def test_parameter_that_another_gold_call_states_is_constrained(self):
        of = script([gold("find", title="x")], [gold("find", title="y", limit=5)])

        assert match(of, made("find", title="x", limit=10)).matched
        assert not match(of, made("find", title="x", limit=50)).matched

    def test_nested_defaults_are_filled_on_both_sides(self):
        nested = tool(
            "f",
            {"page": {"type": "object", "properties": {"size": {"default": 5}}}},
        )
        of = script([gold("f", page={})], tools=(nested,))

        assert match(of, made("f", page={"size": 5})).matched
        assert not match(of, made("f", page={"size": 6})).matched

    def test_tool_without_a_schema_has_no_defaults(self):
        of = script([gold("ghost", a=1)])
        canonical = replace(POLICY, argument_matching="canonical_only")

        assert match(of, made("ghost", a=1), policy=canonical).matched

    def test_required_parameter_with_a_default_must_be_stated(self):
        of = script([gold("checkout", book_id="b", days=14)])
        (call,) = match(of, made("checkout", book_id="b")).calls

        assert not call.arguments_matched
        assert [f["reason"] for f in call.schema_failures] == [
            "missing_required_argument"
        ]


class TestPairing:
    def test_full_matches_are_taken_before_names(self):
        of = script([gold("f", a=1), gold("f", a=2)], order="any", tools=OPEN)
        result = match(of, made("f", a=9), made("f", a=1))

        assert pairs(result) == (1, 0)
        assert result.calls[0].differing == ("a",)

    def test_wrong_tool_stays_unpaired(self):
        of = script([gold("f"), gold("g")], tools=OPEN)
        result = match(of, made("f"), made("f"))

        assert pairs(result) == (0, None)
        assert result.order_respected is True

    def test_swapped_pair_breaks_strict_order_only(self):
        of = script([gold("f"), gold("g")], tools=OPEN)
        result = match(of, made("g"), made("f"))

        assert (result.matched, result.order_respected) == (False, False)
        assert all(call.arguments_matched for call in result.calls)
        assert "gold call 0" in result.order_detail

    @pytest.mark.parametrize("order", ["any", "strict"])
    def test_swapped_pair_is_fine_where_order_does_not_count(self, order):
        of = script([gold("f"), gold("g")], order=order, tools=OPEN)
        policy = replace(POLICY, respect_call_order=order == "any")

        result = match(of, made("g"), made("f"), policy=policy)

        assert (result.matched, result.order_respected) == (True, None)


class TestPrefix:
    of = script(
        [gold("a"), gold("b")],
        [gold("c"), gold("d")],
        order="prefix",
        prefix=3,
        tools=tuple(tool(name, {}) for name in "abcd"),
    )

    @pytest.mark.parametrize(
        ("turn", "issued", "names", "respected"),
        [
            (0, "", "ab", True),
            (0, "", "ba", False),
            (1, "ab", "cd", True),
            (1, "ab", "dc", False),
            (1, "ba", "cd", False),
            (1, "aba", "cd", True),
        ],
    )
    def test_first_appearances_follow_the_first_required_tools(
        self, turn, issued, names, respected
    ):
        result = match(
            self.of, *(made(name) for name in names), turn=turn, issued=issued
        )

        assert result.order_respected is respected
        assert result.matched is respected

    def test_beyond_the_prefix_order_is_free(self):
        free = replace(self.of, call_order_prefix=2)

        assert match(free, made("d"), made("c"), turn=1, issued="ab").matched

    def test_names_that_are_not_required_do_not_count(self):
        fewer = replace(self.of, required_tools=("b",))

        assert match(fewer, made("a"), made("b")).matched


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)
GROUPS = st.lists(
    st.tuples(st.sampled_from(["f", "g"]), ARGUMENTS), min_size=1, max_size=4
)


@given(GROUPS, st.sampled_from(["strict", "any"]))
def test_gold_matches_itself(group, order):
    of = script(group, order=order, tools=OPEN)

    assert match(of, *(as_call(name, arguments) for name, arguments in group)).matched


def as_call(name, arguments):
    return replace(made(name), parsed_arguments=arguments)


@given(GROUPS, st.randoms(use_true_random=False))
def test_any_order_matches_where_order_is_free(group, random):
    of = script([*group, group[0]], order="any", tools=OPEN)
    proposed = [as_call(name, arguments) for name, arguments in [*group, group[0]]]
    random.shuffle(proposed)

    assert match(of, *proposed).matched


def test_all_permutations_of_four_calls_with_two_duplicates_match():
    group = [gold("f", a=1), gold("f", a=1), gold("f", a=2), gold("g", a=1)]
    of = script(group, order="any", tools=OPEN)

    for order in itertools.permutations(group):
        assert match(of, *(as_call(*call) for call in order)).matched


@pytest.mark.parametrize("dropped", range(4))
def test_dropping_or_replacing_one_of_them_fails(dropped):
    group = [gold("f", a=1), gold("f", a=1), gold("f", a=2), gold("g", a=1)]
    of = script(group, order="any", tools=OPEN)
    left = [as_call(*call) for i, call in enumerate(group) if i != dropped]

    assert not match(of, *left).matched
    assert not match(of, *left, as_call("f", {"a": 3})).matched
    assert not match(of, *(as_call(*call) for call in group), left[0]).matched


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def other(value):
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return "other"
    if isinstance(value, str):
        return value + "x"
    return str(value) if isinstance(value, float) else float(value % 1000)


def mutated(value, path):
    if not path:
        return other(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = mutated(value[path[0]], path[1:])
    return copy


@given(ARGUMENTS.filter(bool))
def test_every_leaf_of_a_gold_call_counts(arguments):
    of = script([("f", arguments)], tools=OPEN)

    for path in leaves(arguments):
        assert not match(of, as_call("f", mutated(arguments, path))).matched
    assert not match(of, as_call("f", {**arguments, "longer key": 1})).matched
