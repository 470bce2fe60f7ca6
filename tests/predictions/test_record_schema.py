"""Draft 2020-12 through the library, with a verdict where the library has none."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.errors import UsageError
from harness.predictions.record_schema import (
    MAX_SCHEMA_DEPTH,
    MAX_UNIQUE_DEPTH,
    compile_schema,
)
from harness.scoring.json_record.record import score_record

NAN, INFINITY = float("nan"), float("inf")
LIST = {"$ref": "#/$defs/list"}
TREES = {
    "items": {"items": LIST},
    "any of": {"anyOf": [{"type": "string"}, {"type": "array", "items": LIST}]},
    "not not": {"not": {"not": {"items": LIST}}},
    "if": {"if": {"items": LIST}, "else": False},
    "unevaluated": {"unevaluatedItems": False, "items": LIST},
}
ENDLESS = {
    "itself": LIST,
    "all of": {"allOf": [LIST]},
    "not": {"not": LIST},
    "if": {"if": LIST},
    "evaluated": {"unevaluatedItems": False, **LIST},
    "dynamic": {"$dynamicRef": "#here", "$dynamicAnchor": "here"},
    "other dialect": {"$schema": "http://json-schema.org/draft-07/schema#", **LIST},
}
NOWHERE = {
    "pointer": {"$ref": "#/nowhere"},
    "anchor": {"$ref": "#nowhere"},
    "network": {"$ref": "https://example.invalid/schema.json"},
    "no schema": {"$ref": "#/$defs/list/x-text", "x-text": "words"},
    "list": {"$ref": "#/$defs/list/x-list", "x-list": [1]},
    "bad type": {"$ref": "#/$defs/list/x-node", "x-node": {"type": 5}},
    "unknown type": {"$ref": "#/$defs/list/x-node", "x-node": {"type": "text"}},
    "bad pattern": {"$ref": "#/$defs/list/x-node", "x-node": {"pattern": "("}},
}


def schema_of(node):
    return compile_schema({"properties": {"d": LIST}, "$defs": {"list": node}})


def verdict(node, text):
    return score_record(f'{{"d": {text}}}', {}, schema_of(node)).schema


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("node", TREES.values(), ids=TREES)
def test_recursive_schema_follows_a_hundred_levels(node):
    assert verdict(node, nested(80)) == "valid"


@pytest.mark.parametrize("node", TREES.values(), ids=TREES)
def test_recursive_schema_is_undecided_past_its_steps(node):
    assert verdict(node, nested(950)) == "undecided"


@pytest.mark.parametrize("node", ENDLESS.values(), ids=ENDLESS)
def test_endless_schema_is_undecided(node):
    assert verdict(node, "[]") == "undecided"


@pytest.mark.parametrize("node", NOWHERE.values(), ids=NOWHERE)
def test_reference_to_nowhere_is_undecided_where_it_is_met(node):
    assert verdict(node, '"words"') == "undecided"
    assert score_record("{}", {}, schema_of(node)).schema == "valid"


def test_reference_to_the_meta_schema_needs_no_network():
    node = {"$ref": "https://json-schema.org/draft/2020-12/schema"}

    assert verdict(node, '{"type": "object"}') == "valid"
    assert verdict(node, '{"type": 5}') == "invalid"


@pytest.mark.parametrize("levels", [900, 955])
def test_deep_answer_is_judged_where_the_schema_stays_above(levels):
    assert verdict({"type": "array"}, nested(levels)) == "valid"
    assert verdict({"not": {"type": "string"}}, nested(levels)) == "valid"
    assert verdict({"type": ["string"], "not": False}, nested(levels)) == "invalid"


def test_unique_items_are_compared_to_a_depth():
    for levels, expected in (
        (MAX_UNIQUE_DEPTH - 1, "invalid"),
        (MAX_UNIQUE_DEPTH, "undecided"),
    ):
        pair = f"[{nested(levels)}, {nested(levels)}]"
        assert verdict({"uniqueItems": True}, pair) == expected


@pytest.mark.parametrize("divisor", [3, 0.5, 5e-324])
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_number_that_is_not_finite_is_a_multiple_of_nothing(divisor, text):
    assert verdict({"multipleOf": divisor}, text) == "invalid"
    assert verdict({"not": {"multipleOf": divisor}}, text) == "valid"


@pytest.mark.parametrize(("number", "expected"), [(10**400, "valid"), (1, "invalid")])
def test_multiple_past_a_double_is_exact(number, expected):
    assert verdict({"multipleOf": 2.5}, str(number)) == expected


@given(st.integers(-(10**6), 10**6), st.sampled_from([1, 2, 5, 0.5, 0.25, 8.0]))
def test_multiple_is_that_of_the_library(number, divisor):
    exact = (Fraction(number) / Fraction(divisor)).denominator == 1

    found = compile_schema({"multipleOf": divisor}).judge(number)

    assert found == ("valid" if exact else "invalid")


def test_format_asserts_nothing():
    document = {"properties": {"d": {"format": "date", "not": False}}}

    assert compile_schema(document).judge({"d": "no date"}) == "valid"


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"type": "text"}, "$.type"),
        ({"properties": {"a": {"minLength": -1}}}, "$.properties.a.minLength"),
        ({"pattern": "("}, "$.pattern"),
        ({"items": [{}]}, "$.items"),
        ({"required": "a"}, "$.required"),
        (5, "$"),
    ],
)
def test_schema_that_breaks_the_meta_schema_is_refused(document, where):
    with pytest.raises(UsageError) as refused:
        compile_schema(document)

    assert [each.where for each in refused.value.violations] == [where]


def test_every_violation_is_named():
    with pytest.raises(UsageError) as refused:
        compile_schema({"minLength": -1, "maxLength": "x"})

    assert len(refused.value.violations) == 2


def test_schema_nested_too_deep_is_refused():
    deep = json.loads('{"not": ' * MAX_SCHEMA_DEPTH + "{}" + "}" * MAX_SCHEMA_DEPTH)

    with pytest.raises(UsageError, match="nested past"):
        compile_schema(deep)

    assert compile_schema(deep["not"]).judge({}) in ("valid", "invalid")


def test_pattern_that_python_warns_about_is_used():
    assert compile_schema({"pattern": "[[a]"}).judge("a") == "valid"


def test_order_of_the_hash_seed_is_nothing():
    program = (
        "from harness.predictions.record_schema import compile_schema\n"
        "node = {'if': {'type': 'string'}, 'then': {'$ref': '#/nowhere'}, "
        "'else': False}\n"
        "schema = compile_schema({'additionalProperties': node})\n"
        "print(schema.judge({'a': 'x', 'b': 1}), schema.judge({'b': 1, 'a': 'x'}))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in range(2)
    }

    assert printed == {"undecided invalid\n"}


NODES = st.recursive(
    st.sampled_from(
        [
            {"type": "integer"},
            {"multipleOf": 0.5},
            {"uniqueItems": True},
            {"const": [1, {"a": 1.0}]},
            {"enum": [1, True, [True]]},
            {"minProperties": 1},
            {"propertyNames": {"maxLength": 1}},
            {"patternProperties": {"^a": False}, "additionalProperties": {}},
            {"dependentRequired": {"a": ["b"]}},
            {"contains": {"type": "integer"}, "maxContains": 1},
            {"$ref": "#/$defs/leaf"},
        ]
    ),
    lambda below: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(below, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(below, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": below}),
        st.fixed_dictionaries({"if": below, "then": below, "else": below}),
        st.fixed_dictionaries({"prefixItems": st.lists(below, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"properties": st.dictionaries(st.just("a"), below)}),
        st.fixed_dictionaries(
            {"additionalProperties": below, "properties": st.just({"b": {}})}
        ),
        st.fixed_dictionaries({"allOf": st.lists(below, min_size=1, max_size=2)}).map(
            lambda node: node | {"unevaluatedProperties": False}
        ),
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 1, 1.0, 1.5, "a", "ab"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "aa"]), below, max_size=3)
    ),
    max_leaves=6,
)


@given(NODES, VALUES)
def test_verdict_is_that_of_the_bare_library(node, value):
    document = node | {"$defs": {"leaf": {"type": ["integer", "object"]}}}

    bare = Draft202012Validator(document).is_valid(value)

    assert compile_schema(document).judge(value) == ("valid" if bare else "invalid")
