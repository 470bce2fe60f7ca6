"""Canonical JSON has one text per value, and equality looks at the type first."""

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import (
    canonical_bytes,
    canonical_json,
    content_hash,
    hash_bytes,
    hash_file,
    is_content_hash,
    json_equal,
    type_tag,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)))
)
KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def test_text_has_sorted_keys_no_spaces_and_plain_characters():
    value = {"b": [1, 2.5, None], "a": {"ü": True}, "": "\u2028"}

    assert canonical_json(value) == '{"":"\u2028","a":{"ü":true},"b":[1,2.5,null]}'


def test_keys_sort_by_code_point():
    assert canonical_json({"ä": 0, "z": 0, "Z": 0, "😀": 0, "\uffff": 0}) == (
        '{"Z":0,"z":0,"ä":0,"\uffff":0,"😀":0}'
    )


@given(VALUES)
def test_text_reads_back_as_an_equal_value(value):
    assert json_equal(json.loads(canonical_json(value)), value)


@given(VALUES)
def test_text_is_a_fixed_point(value):
    text = canonical_json(value)

    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(KEYS, SCALARS, max_size=8))
def test_key_order_does_not_matter(value):
    turned = dict(reversed(value.items()))

    assert content_hash(turned) == content_hash(value)


@given(VALUES, VALUES)
def test_equal_values_have_equal_text(left, right):
    if json_equal(left, right):
        # -0.0 equals 0.0 and keeps its own text: the one exception.
        same = canonical_json(left) == canonical_json(right)

        assert same or "-0.0" in canonical_json([left, right])
    else:
        assert canonical_json(left) != canonical_json(right)


@given(VALUES)
def test_equality_is_reflexive(value):
    assert json_equal(value, value)


@given(VALUES, VALUES)
def test_equality_is_symmetric(left, right):
    assert json_equal(left, right) == json_equal(right, left)


def test_one_one_point_zero_text_and_true_are_four_values():
    values = [1, 1.0, "1", True]

    assert [[json_equal(left, right) for right in values] for left in values] == [
        [left is right for right in values] for left in values
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": 1, "b": None}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([], {}),
        (None, False),
        ("\u00e9", "e\u0301"),
        ({"a": [True]}, {"a": [1]}),
    ],
)
def test_near_misses_are_different(left, right):
    assert not json_equal(left, right)


def test_tuple_is_an_array():
    assert json_equal((1, 2), [1, 2])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_non_finite_numbers_have_no_text(number):
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"x": number})


@pytest.mark.parametrize("value", [b"", {1}, object()])
def test_what_is_not_json_is_a_type_error(value):
    with pytest.raises(TypeError):
        canonical_json(value)
    with pytest.raises(TypeError, match="not a JSON value"):
        type_tag(value)


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        (None, "null"),
        (True, "bool"),
        (0, "int"),
        (0.0, "float"),
        ("", "str"),
        ([], "array"),
        ((), "array"),
        ({}, "object"),
    ],
)
def test_type_tags(value, tag):
    assert type_tag(value) == tag


def test_hash_is_sha256_over_the_canonical_bytes():
    value = {"b": "ä", "a": 1}
    digest = hashlib.sha256('{"a":1,"b":"ä"}'.encode()).hexdigest()

    assert canonical_bytes(value) == '{"a":1,"b":"ä"}'.encode()
    assert content_hash(value) == f"sha256:{digest}"
    assert hash_bytes(canonical_bytes(value)) == content_hash(value)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_file_hash_equals_hash_of_its_bytes(tmp_path, size):
    path = tmp_path / "data"
    path.write_bytes(b"x" * size)

    assert hash_file(path) == hash_bytes(b"x" * size)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sha256:" + "0" * 64, True),
        ("sha256:" + "0" * 63, False),
        ("sha256:" + "A" * 64, False),
        ("0" * 64, False),
        ("sha256:" + "0" * 64 + "\n", False),
        (None, False),
        (7, False),
    ],
)
def test_content_hash_form(text, expected):
    assert is_content_hash(text) is expected
