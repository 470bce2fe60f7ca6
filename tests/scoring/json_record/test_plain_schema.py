"""The short way and the library give one verdict on every schema that has both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.predictions.record_schema import compile_schema
from harness.scoring.json_record.plain_schema import (
    BOUNDS,
    LIBRARY_ONLY,
    plain_check,
)

SHORT = {
    "additionalProperties",
    "const",
    "enum",
    "items",
    "pattern",
    "properties",
    "required",
    "type",
    *BOUNDS,
}
IGNORED = {"format"}
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -0.0, 1e300, float("nan"), float("inf")])
    | st.sampled_from(["", "a", "ab", " a", "b1", "😀", "\ud800"])
)
NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3)
    ),
    max_leaves=8,
)
FINITE = SCALARS.filter(lambda value: value == value and value != float("inf"))
COUNTS = st.integers(0, 3)
LIMITS = st.sampled_from([-1, 0, 1, 1.0, 1.5, 2])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES)
        | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(FINITE, min_size=1, max_size=4),
        "const": FINITE,
        "pattern": st.sampled_from(["a", "^a$", "\\d", "^.?$"]),
        "format": st.sampled_from(["date", "email"]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "minimum": LIMITS,
        "maximum": LIMITS,
        "exclusiveMinimum": LIMITS,
        "exclusiveMaximum": LIMITS,
        "x-unordered": st.booleans(),
        "description": st.just("words"),
    },
)
SCHEMAS = st.recursive(
    LEAVES | st.booleans(),
    lambda below: st.builds(
        lambda leaf, members: {**leaf, **members},
        LEAVES,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(NAMES, below, max_size=3),
                "required": st.lists(NAMES, max_size=2, unique=True),
                "additionalProperties": below,
                "items": below,
            },
        ),
    ),
    max_leaves=6,
)


def test_every_asserting_keyword_is_short_or_left_to_the_library():
    assert Draft202012Validator.VALIDATORS.keys() == LIBRARY_ONLY | SHORT | IGNORED


@given(SCHEMAS, VALUES)
def test_short_way_agrees_with_the_library(document, value):
    check = plain_check(document, pytest.fail)
    verdict = compile_schema(document).judge_by_library(value)

    assert ("valid" if check(value) else "invalid") == verdict


def left_to_the_library(document):
    nodes = []

    def library(node):
        nodes.append(node)
        return bool

    plain_check(document, library)
    return nodes


@pytest.mark.parametrize("keyword", sorted(LIBRARY_ONLY))
def test_node_with_another_keyword_goes_whole_to_the_library(keyword):
    node = {keyword: {}, "properties": {"a": {}}}

    assert left_to_the_library(node) == [node]
    assert left_to_the_library({"properties": {"a": {"items": node}}}) == [node]
    assert left_to_the_library({"additionalProperties": node}) == [node]


@pytest.mark.parametrize("node", [{"const": [1]}, {"enum": [1, {"a": 1}]}])
def test_whole_values_are_left_to_the_library(node):
    assert left_to_the_library({"properties": {"a": node}}) == [node]
