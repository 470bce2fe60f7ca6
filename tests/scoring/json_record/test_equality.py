"""The comparer of JSON records: an equivalence with stated blind spots."""

import copy
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import json_equal
from harness.scoring.json_record.equality import values_equal

NAN = float("nan")
BAG = {"x-unordered": True}
SPACES = st.text("\u0020\u00a0\u2003\u3000\t\n\x0c\x1c\x1f\x85", max_size=3)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.sampled_from("abcé"), below, max_size=3)
    ),
    max_leaves=12,
)
NODES = st.recursive(
    st.sampled_from([None, True, False, {}, BAG]),
    lambda below: st.builds(
        lambda mark, items, members: {
            "x-unordered": mark,
            "items": items,
            "properties": members,
        },
        st.booleans(),
        below,
        st.dictionaries(st.sampled_from("abcé"), below, max_size=3),
    ),
    max_leaves=4,
)


def written_otherwise(draw, value, node):
    """Return the value in another spelling that the contract takes for the same."""
    node = node if isinstance(node, dict) else {}
    if isinstance(value, str):
        form = draw(st.sampled_from(["NFC", "NFD"]))
        return draw(SPACES) + unicodedata.normalize(form, value) + draw(SPACES)
    if isinstance(value, dict):
        under = node.get("properties", {})
        items = [
            (name, written_otherwise(draw, member, under.get(name)))
            for name, member in value.items()
        ]
        return dict(draw(st.permutations(items)))
    if isinstance(value, list):
        items = [written_otherwise(draw, item, node.get("items")) for item in value]
        return draw(st.permutations(items)) if node.get("x-unordered") else items
    if type(value) is int and float(value if abs(value) < 2**53 else 0) == value:
        return draw(st.sampled_from([value, float(value)]))
    return value


@given(VALUES, NODES)
def test_value_equals_itself(value, node):
    assert values_equal(value, copy.deepcopy(value), node)


@given(VALUES, VALUES, NODES)
def test_order_of_the_sides_is_nothing(left, right, node):
    assert values_equal(left, right, node) == values_equal(right, left, node)


@given(st.data(), VALUES, NODES)
def test_spelling_that_the_contract_ignores_is_ignored(data, value, node):
    other = written_otherwise(data.draw, value, node)

    assert values_equal(value, other, node)
    assert values_equal(other, value, node)


@given(VALUES, VALUES, VALUES, NODES)
def test_equal_to_one_is_equal_to_all(first, second, third, node):
    if values_equal(first, second, node) and values_equal(second, third, node):
        assert values_equal(first, third, node)


@given(VALUES, VALUES)
def test_typed_equality_is_never_contradicted(left, right):
    if json_equal(left, right):
        assert values_equal(left, right)


@given(st.data(), st.lists(VALUES, min_size=1, max_size=5))
def test_multiset_matching_sees_a_changed_count(data, items):
    other = data.draw(st.permutations(items))
    other = [*other[:-1], {"never": "in there"}]

    assert not values_equal(items, other, BAG)


@given(VALUES, VALUES, NODES)
def test_bag_of_one_compares_like_its_item(left, right, node):
    bag = BAG | {"items": node}

    assert values_equal([left], [right], bag) == values_equal(left, right, node)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (0, None),
        (0, ""),
        ("", None),
        (False, None),
        ([], {}),
        ([], None),
        ({}, None),
        (1, "1"),
        (2**53 + 1, 2**53),
        (2**53 + 1, float(2**53)),
        (0.3, 0.1 + 0.2),
        (NAN, NAN),
        ([NAN], [NAN]),
        ("a", "A"),
        ("a b", "a  b"),
        ("ﬃ", "ffi"),
        ("a", "a\u200b"),
        ("a", "\ufeffa"),
        ({"a": 1}, {"A": 1}),
        ({"é": 1}, {"e\u0301": 1}),
        ({"a": 1}, {"a ": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
    ],
)
def test_values_that_differ(left, right):
    assert not values_equal(left, right)
    assert not values_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (0, -0.0),
        (1e400, float("inf")),
        (10**30, 1e30) if 10**30 == 1e30 else (10**22, 1e22),
        ("Å", "\u212b"),
        (" a", "a\u0085"),
        ("\ud800", "\ud800"),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    ],
)
def test_values_that_are_equal(left, right):
    assert values_equal(left, right)


@pytest.mark.parametrize("mark", [True, 1, "true", "false", [0], {"a": 1}])
def test_any_truthy_mark_makes_a_multiset(mark):
    assert values_equal([1, 2], [2, 1], {"x-unordered": mark})


@pytest.mark.parametrize("mark", [False, 0, "", [], {}, None])
def test_falsy_mark_keeps_the_order(mark):
    assert not values_equal([1, 2], [2, 1], {"x-unordered": mark})


@pytest.mark.parametrize(
    "node",
    [
        {"$ref": "#/$defs/bag", "$defs": {"bag": BAG}},
        {"allOf": [BAG]},
        {"anyOf": [BAG]},
        {"prefixItems": [BAG, BAG]},
        {"additionalProperties": BAG},
        True,
        False,
    ],
)
def test_mark_is_followed_through_properties_and_items_alone(node):
    assert not values_equal([[1, 2]], [[2, 1]], node)


def test_nan_in_a_multiset_has_no_partner():
    assert not values_equal([NAN, 1], [1, NAN], BAG)


def test_bool_and_number_are_apart_in_a_multiset():
    assert not values_equal([1, True], [1, 1], BAG)


def test_deep_values_compare_without_recursion():
    deep = json.loads("[" * 900 + "]" * 900)
    for _ in range(4000):
        deep = [deep]
    other = deep
    for _ in range(3):
        other = [other]

    assert values_equal(deep, deep)
    assert not values_equal(deep, other)
    assert values_equal([1, deep], [deep, 1], BAG)


def test_large_multisets_match_in_linear_steps():
    left = [{"n": number} for number in range(20_000)]

    assert values_equal(left, left[::-1], BAG)
