"""What arguments can violate, one reason each, and the typed rules."""

import pytest

from harness.json_schema import compile_parameters


def failures(schema, value):
    parameters = {"type": "object", "properties": {"a": schema}}
    return compile_parameters(parameters).failures({"a": value})


def reasons(schema, value):
    return [failure["reason"] for failure in failures(schema, value)]


VIOLATIONS = {
    "argument_type_mismatch": ({"type": "string"}, 1),
    "argument_not_in_enum": ({"enum": ["x"]}, "y"),
    "argument_not_equal_const": ({"const": 1}, 2),
    "string_too_short": ({"minLength": 2}, "a"),
    "string_too_long": ({"maxLength": 1}, "ab"),
    "string_pattern_mismatch": ({"pattern": "^a"}, "ba"),
    "number_below_minimum": ({"minimum": 1}, 0.5),
    "number_above_maximum": ({"maximum": 1}, 2),
    "number_not_above": ({"exclusiveMinimum": 1}, 1),
    "number_not_below": ({"exclusiveMaximum": 1}, 1.0),
    "not_a_multiple": ({"multipleOf": 3}, 4),
    "array_too_short": ({"minItems": 1}, []),
    "array_too_long": ({"maxItems": 1}, [1, 2]),
    "array_items_repeat": ({"uniqueItems": True}, [1, 2, 1]),
    "missing_required_argument": ({"properties": {"b": {}}, "required": ["b"]}, {}),
    "unknown_argument": ({"additionalProperties": False}, {"b": 1}),
    "too_few_properties": ({"minProperties": 1}, {}),
    "too_many_properties": ({"maxProperties": 0}, {"b": 1}),
    "no_branch_matched": ({"anyOf": [{"type": "null"}, {"const": 1}]}, 2),
    "several_branches_matched": ({"oneOf": [{}, {"const": 1}]}, 1),
    "forbidden_schema_matched": ({"not": {"const": 1}}, 1),
}


@pytest.mark.parametrize("reason", VIOLATIONS)
def test_violation_has_its_one_reason(reason):
    schema, value = VIOLATIONS[reason]

    assert reasons(schema, value) == [reason]


@pytest.mark.parametrize("arguments", [None, [], "x", 1, True])
def test_arguments_are_an_object(arguments):
    schema = compile_parameters({"type": "object"})

    assert schema.failures(arguments) == (
        {"reason": "arguments_not_object", "argument": "$"},
    )


TYPED = [
    ("integer", 1, True),
    ("integer", 1.0, False),
    ("integer", True, False),
    ("integer", "1", False),
    ("number", 1, True),
    ("number", 1.5, True),
    ("number", True, False),
    ("boolean", True, True),
    ("boolean", 0, False),
    ("null", None, True),
    ("null", "null", False),
    ("string", "1", True),
    ("string", 1, False),
    ("array", [], True),
    ("array", {}, False),
    ("object", {}, True),
    ("object", [], False),
    (["integer", "null"], None, True),
    (["integer", "null"], 1.0, False),
]


@pytest.mark.parametrize(("word", "value", "valid"), TYPED)
def test_types_are_strict(word, value, valid):
    assert (reasons({"type": word}, value) == []) is valid


EQUALITY = [
    (1, 1.0, True),
    (1, True, False),
    (0, False, False),
    ("1", 1, False),
    (None, "null", False),
    ([1, [2]], [1.0, [2.0]], True),
    ([1], [True], False),
    ([1, 2], [2, 1], False),
    ({"x": 1, "y": 2}, {"y": 2.0, "x": 1}, True),
    ({"x": 1}, {"x": True}, False),
    ({}, [], False),
    (2**53 + 1, float(2**53), False),
]


@pytest.mark.parametrize(("declared", "value", "equal"), EQUALITY)
def test_enum_and_const_compare_numbers_by_value_and_booleans_apart(
    declared, value, equal
):
    assert (reasons({"enum": [declared]}, value) == []) is equal
    assert (reasons({"const": declared}, value) == []) is equal


@pytest.mark.parametrize(("one", "other", "equal"), EQUALITY)
def test_unique_items_use_the_equality_of_enum(one, other, equal):
    assert (reasons({"uniqueItems": True}, [one, other]) == []) is not equal


def test_repeating_items_are_named_by_position():
    assert failures({"uniqueItems": True}, ["a", 1, 1.0]) == (
        {"reason": "array_items_repeat", "argument": "a", "positions": [1, 2]},
    )


@pytest.mark.parametrize(
    ("factor", "value", "valid"),
    [
        (0.1, 0.3, True),
        (0.01, 19.99, True),
        (0.1, 0.35, False),
        (2, 4.0, True),
        (2.0, 5, False),
        (3, 10**30, False),
        (1e-300, 1e300, True),
    ],
)
def test_multiples_are_exact_decimals(factor, value, valid):
    assert (reasons({"multipleOf": factor}, value) == []) is valid


def test_pattern_is_searched_and_its_end_is_the_very_end():
    assert reasons({"pattern": "b"}, "abc") == []
    assert reasons({"pattern": "c$"}, "abc\n") == ["string_pattern_mismatch"]


def test_pattern_that_explodes_elsewhere_is_linear():
    assert reasons({"pattern": "^(a+)+$"}, "a" * 5000 + "b") == [
        "string_pattern_mismatch"
    ]


def test_keywords_of_other_types_do_not_apply():
    schema = {"minLength": 5, "minimum": 5, "minItems": 5, "minProperties": 5}

    assert reasons(schema, None) == []
    assert reasons(schema, True) == []


def test_length_counts_code_points():
    assert reasons({"maxLength": 1}, "🙂") == []


def test_wrong_type_is_reported_once_and_alone():
    schema = {"type": "string", "enum": ["x"], "minLength": 1}

    assert failures(schema, 5) == (
        {
            "reason": "argument_type_mismatch",
            "argument": "a",
            "expected": ["string"],
            "actual": "integer",
        },
    )


def test_failures_do_not_depend_on_the_order_of_the_arguments():
    schema = compile_parameters(
        {
            "type": "object",
            "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "additionalProperties": False,
        }
    )

    forth = schema.failures({"x": 1, "y": 1, "p": 1, "o": 1})
    back = schema.failures({"o": 1, "p": 1, "y": 1, "x": 1})

    assert forth == back
    assert [f["argument"] for f in forth] == ["x", "y", "o", "p"]


def test_nested_places_are_named_from_the_top():
    schema = {
        "type": "object",
        "properties": {"b": {"type": "array", "items": {"type": "string"}}},
    }

    assert [f["argument"] for f in failures(schema, {"b": ["x", 1]})] == ["a.b[1]"]


def test_same_failure_through_reference_and_all_of_is_told_once():
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x", "allOf": [{"$ref": "#/$defs/x"}]}},
        "$defs": {"x": {"type": "string"}},
    }

    assert len(compile_parameters(parameters).failures({"a": 1})) == 1


def test_branches_say_why_each_of_them_failed():
    (failure,) = failures({"oneOf": [{"type": "null"}, {"minimum": 3}]}, 2)

    assert failure["keyword"] == "oneOf"
    assert [[f["reason"] for f in branch] for branch in failure["branches"]] == [
        ["argument_type_mismatch"],
        ["number_below_minimum"],
    ]


def test_one_matching_branch_of_several_is_enough():
    assert reasons({"oneOf": [{"type": "null"}, {"minimum": 3}]}, 4) == []
    assert reasons({"anyOf": [{"type": "null"}, {"minimum": 3}]}, 4) == []
    assert reasons({"not": {"type": "null"}}, 4) == []


def test_undeclared_arguments_are_fine_unless_forbidden():
    schema = compile_parameters({"type": "object", "properties": {}})

    assert schema.failures({"x": 1}) == ()
