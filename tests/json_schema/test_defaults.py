"""Declared defaults, filled in recursively and only once."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.json_schema import compile_parameters

NESTED = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "default": 10},
        "filter": {
            "type": "object",
            "properties": {"open": {"type": "boolean", "default": True}},
        },
        "page": {"$ref": "#/$defs/page"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/page"}},
        "box": {"type": "object", "default": {}, "allOf": [{"$ref": "#/$defs/page"}]},
        "free": {"type": "string"},
    },
    "$defs": {
        "page": {
            "type": "object",
            "properties": {"size": {"type": "integer", "default": 5}},
        }
    },
}


def filled(parameters, arguments):
    return compile_parameters(parameters).with_defaults(arguments)


def test_top_level_defaults_are_known_by_name():
    assert compile_parameters(NESTED).defaulted == {"limit", "box"}


def test_absent_parameter_gets_its_default():
    assert filled(NESTED, {"free": "x"}) == {
        "free": "x",
        "limit": 10,
        "box": {"size": 5},
    }


def test_stated_parameter_keeps_its_value():
    assert filled(NESTED, {"limit": None, "box": {"size": 1}}) == {
        "limit": None,
        "box": {"size": 1},
    }


@pytest.mark.parametrize(
    ("name", "given_value", "expected"),
    [
        ("filter", {}, {"open": True}),
        ("page", {"other": 1}, {"other": 1, "size": 5}),
        ("rows", [{}, {"size": 1}, 3], [{"size": 5}, {"size": 1}, 3]),
        ("filter", "not an object", "not an object"),
        ("rows", "not a list", "not a list"),
    ],
)
def test_defaults_reach_into_what_is_stated(name, given_value, expected):
    assert filled(NESTED, {name: given_value})[name] == expected


def test_optional_object_is_not_invented_for_a_default_inside_it():
    assert "filter" not in filled(NESTED, {})


def test_default_may_come_through_a_reference_and_the_nearest_wins():
    parameters = {
        "type": "object",
        "properties": {
            "near": {"$ref": "#/$defs/x", "default": 1},
            "far": {"allOf": [{"$ref": "#/$defs/x"}]},
        },
        "$defs": {"x": {"type": "integer", "default": 2}},
    }

    assert filled(parameters, {}) == {"near": 1, "far": 2}


def test_branches_insert_nothing():
    parameters = {
        "type": "object",
        "anyOf": [{"properties": {"x": {"default": 1}}}],
        "oneOf": [{"properties": {"y": {"default": 1}}}],
    }

    assert filled(parameters, {}) == {}


def test_schemas_of_one_place_are_merged_before_filling():
    parameters = {
        "type": "object",
        "properties": {
            "x": {"type": "object", "properties": {"inner": {"default": 1}}}
        },
        "allOf": [{"properties": {"x": {"default": {}}}}],
    }

    assert filled(parameters, {}) == {"x": {"inner": 1}}


def test_inserted_default_is_nobodys_but_the_callers():
    schema = compile_parameters(
        {"type": "object", "properties": {"x": {"type": "array", "default": []}}}
    )
    schema.with_defaults({})["x"].append(1)

    assert schema.with_defaults({}) == {"x": []}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["size", "open", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from([*NESTED["properties"], "unknown"]), VALUES, max_size=6
)


@given(ARGUMENTS)
def test_filling_twice_changes_nothing(arguments):
    once = filled(NESTED, arguments)

    assert filled(NESTED, once) == once


@given(ARGUMENTS)
def test_filling_leaves_the_arguments_alone(arguments):
    before = copy.deepcopy(arguments)
    filled(NESTED, arguments)

    assert arguments == before
