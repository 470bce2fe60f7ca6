"""The engine agrees with the jsonschema package wherever their rules are the same.

Left out on purpose: integral floats (an `integer` to jsonschema, none here), and
values of `multipleOf` that are no exact binary fractions.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.json_schema import SchemaDefinitionError, compile_parameters

HALVES = st.integers(-8, 8).map(lambda n: n + 0.5)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | HALVES
    | st.text(alphabet="ab1", max_size=3)
)
NAMES = st.sampled_from(["p", "q", "r"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(
    ["null", "boolean", "integer", "number", "string", "array", "object"]
)
LEAST = st.integers(0, 1)
MOST = st.integers(1, 3)
CONSTANTS = st.fixed_dictionaries(
    {},
    optional={
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
    },
)
TYPED = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "pattern": st.sampled_from(["^a", "b$", "1", "^[ab]*$"]),
        "minLength": LEAST,
        "maxLength": MOST,
        "minimum": st.integers(-4, 0) | st.just(-1.5),
        "maximum": st.integers(1, 4),
        "exclusiveMinimum": st.integers(-4, 0),
        "exclusiveMaximum": st.just(2.5) | st.integers(1, 4),
        "multipleOf": st.sampled_from([1, 2, 0.5, 0.25]),
        "minItems": LEAST,
        "maxItems": MOST,
        "minProperties": LEAST,
        "maxProperties": MOST,
        "uniqueItems": st.booleans(),
        "additionalProperties": st.booleans(),
    },
)
LEAF = TYPED | CONSTANTS
SCHEMAS = st.recursive(
    LEAF | st.just({"$ref": "#/$defs/shared"}),
    lambda inner: st.tuples(
        LEAF,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(NAMES, inner, max_size=3),
                "items": inner,
                "allOf": st.lists(inner, min_size=1, max_size=2),
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner, min_size=1, max_size=2),
                "not": inner,
            },
        ),
    ).map(lambda parts: parts[0] | parts[1]),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(SCHEMAS, LEAF, VALUES)
def test_verdicts_agree(schema, shared, value):
    parameters = {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
        "$defs": {"shared": shared},
    }
    try:
        compiled = compile_parameters(parameters)
    except SchemaDefinitionError:
        return
    theirs = Draft202012Validator(parameters).is_valid({"a": value})

    assert (compiled.failures({"a": value}) == ()) is theirs
