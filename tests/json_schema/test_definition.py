"""What a pack may not declare, one reason each."""

import pytest

from harness.json_schema import SchemaDefinitionError, compile_parameters


def failures(parameters):
    with pytest.raises(SchemaDefinitionError) as caught:
        compile_parameters(parameters)
    return [(f["reason"], f["path"]) for f in caught.value.failures]


def holding(schema):
    return {"type": "object", "properties": {"a": schema}}


A = "$.properties.a"
BROKEN_PROPERTY = {
    "unsupported_schema_keyword": ({"if": {}}, f"{A}.if"),
    "invalid_schema_type": ({"type": "float"}, f"{A}.type"),
    "duplicate_schema_type": ({"type": ["string", "string"]}, f"{A}.type"),
    "schema_value_violates_type": (
        {"type": "string", "enum": ["x", 1]},
        f"{A}.enum[1]",
    ),
    "schema_enum_not_array": ({"enum": "x"}, f"{A}.enum"),
    "schema_enum_empty": ({"enum": []}, f"{A}.enum"),
    "duplicate_schema_enum_value": ({"enum": [1, 1.0]}, f"{A}.enum"),
    "invalid_schema_default": ({"type": "string", "default": 1}, f"{A}.default"),
    "schema_additional_properties_not_boolean": (
        {"type": "object", "additionalProperties": {}},
        f"{A}.additionalProperties",
    ),
    "invalid_schema_bound": ({"minLength": -1}, f"{A}.minLength"),
    "schema_pattern_not_string": ({"pattern": 1}, f"{A}.pattern"),
    "invalid_schema_pattern": ({"pattern": "(?=a)"}, f"{A}.pattern"),
    "inconsistent_schema_bounds": ({"minimum": 2, "maximum": 1}, f"{A}.minimum"),
    "schema_ref_not_local": ({"$ref": "http://x/y"}, f"{A}.$ref"),
    "cyclic_schema_ref": ({"$ref": "#"}, f"{A}.$ref"),
    "unresolvable_schema_ref": ({"$ref": "#/$defs/none"}, f"{A}.$ref"),
    "schema_all_of_not_nonempty_array": ({"allOf": []}, f"{A}.allOf"),
    "all_of_schema_not_object": ({"allOf": [1]}, f"{A}.allOf[0]"),
    "schema_definitions_not_object": ({"$defs": []}, f"{A}.$defs"),
    "definition_schema_not_object": ({"definitions": {"x": 1}}, f"{A}.definitions.x"),
    "schema_properties_not_object": ({"properties": []}, f"{A}.properties"),
    "schema_required_not_string_array": ({"required": [1]}, f"{A}.required"),
    "duplicate_required_property": (
        {"properties": {"x": {}}, "required": ["x", "x"]},
        f"{A}.required",
    ),
    "required_property_not_declared": ({"required": ["x"]}, f"{A}.required"),
    "property_schema_not_object": (
        {"properties": {"x": True}},
        f"{A}.properties.x",
    ),
    "items_schema_not_object": ({"items": []}, f"{A}.items"),
    "schema_any_of_not_nonempty_array": ({"anyOf": {}}, f"{A}.anyOf"),
    "any_of_schema_not_object": ({"anyOf": [1]}, f"{A}.anyOf[0]"),
    "schema_one_of_not_nonempty_array": ({"oneOf": []}, f"{A}.oneOf"),
    "one_of_schema_not_object": ({"oneOf": [None]}, f"{A}.oneOf[0]"),
    "not_schema_not_object": ({"not": True}, f"{A}.not"),
    "schema_unique_items_not_boolean": ({"uniqueItems": 1}, f"{A}.uniqueItems"),
}


@pytest.mark.parametrize("reason", BROKEN_PROPERTY)
def test_broken_schema_is_refused_with_its_one_reason(reason):
    schema, path = BROKEN_PROPERTY[reason]

    assert failures(holding(schema)) == [(reason, path)]


@pytest.mark.parametrize("parameters", [None, [], "x", True])
def test_parameters_are_an_object(parameters):
    assert failures(parameters) == [("parameters_not_object", "$")]


@pytest.mark.parametrize("parameters", [{}, {"type": "array"}, {"type": ["object"]}])
def test_parameters_describe_an_object(parameters):
    assert failures(parameters) == [("parameters_type_not_object", "$.type")]


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"minItems": True}, "minItems"),
        ({"maxProperties": 1.0}, "maxProperties"),
        ({"minimum": "1"}, "minimum"),
        ({"exclusiveMaximum": None}, "exclusiveMaximum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"multipleOf": True}, "multipleOf"),
    ],
)
def test_bound_of_a_wrong_kind_is_refused(schema, keyword):
    assert failures(holding(schema)) == [("invalid_schema_bound", f"{A}.{keyword}")]


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"minLength": 2, "maxLength": 1}, "minLength"),
        ({"minItems": 2, "maxItems": 1}, "minItems"),
        ({"minProperties": 2, "maxProperties": 1}, "minProperties"),
        ({"exclusiveMinimum": 1, "maximum": 1}, "exclusiveMinimum"),
        ({"minimum": 1, "exclusiveMaximum": 1}, "minimum"),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 1}, "exclusiveMinimum"),
    ],
)
def test_bounds_that_admit_nothing_are_refused(schema, keyword):
    assert failures(holding(schema)) == [
        ("inconsistent_schema_bounds", f"{A}.{keyword}")
    ]


def test_bounds_that_admit_one_value_are_fine():
    compile_parameters(holding({"minimum": 1, "maximum": 1.0}))


def test_all_failures_are_reported_at_once():
    found = failures(
        {
            "type": "object",
            "properties": {"a": {"oneOf": 1, "enum": []}, "b": 3},
            "required": ["c"],
        }
    )

    assert found == [
        ("schema_enum_empty", "$.properties.a.enum"),
        ("schema_one_of_not_nonempty_array", "$.properties.a.oneOf"),
        ("property_schema_not_object", "$.properties.b"),
        ("required_property_not_declared", "$.required"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": "x"},
        {"type": ["string", 1], "enum": [1], "const": 1, "default": 3},
        {"properties": [], "allOf": 1, "required": ["x"]},
        {"$ref": 1, "default": 1},
    ],
)
def test_broken_schema_never_breaks_the_check_itself(schema):
    assert failures(holding(schema))


def test_const_of_another_type_is_refused():
    schema = {"type": ["integer", "null"], "const": 1.0}

    assert failures(holding(schema)) == [("schema_value_violates_type", f"{A}.const")]


def test_unused_definition_is_checked_too():
    parameters = {"type": "object", "$defs": {"x": {"type": "none"}}}

    assert failures(parameters) == [("invalid_schema_type", "$.$defs.x.type")]


def test_definition_that_only_points_at_itself_is_cyclic():
    parameters = {"type": "object", "$defs": {"x": {"$ref": "#/$defs/x"}}}

    assert failures(parameters) == [("cyclic_schema_ref", "$.$defs.x.$ref")]


@pytest.mark.parametrize(
    "node",
    [
        {"properties": {"next": {"$ref": "#/$defs/node"}}},
        {"items": {"$ref": "#/$defs/node"}},
        {"anyOf": [{"$ref": "#/$defs/node"}]},
        {"not": {"$ref": "#/$defs/node"}},
    ],
)
def test_recursion_through_any_keyword_is_cyclic(node):
    parameters = {"type": "object", "$defs": {"node": node}}

    assert [reason for reason, _ in failures(parameters)] == ["cyclic_schema_ref"]


MANY_TIMES = {
    "allOf": lambda next_one: {"allOf": [next_one] * 10},
    "anyOf": lambda next_one: {"anyOf": [next_one, {"not": next_one}]},
    "properties": lambda next_one: {"properties": {"x": next_one, "y": next_one}},
    "items": lambda next_one: {"items": next_one, "not": next_one},
}


@pytest.mark.parametrize("keyword", MANY_TIMES)
def test_references_that_multiply_are_refused_at_once(keyword):
    definitions = {
        f"a{n}": MANY_TIMES[keyword]({"$ref": f"#/$defs/a{n + 1}"}) for n in range(40)
    }
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a0"}},
        "$defs": {**definitions, "a40": {"default": "x"}},
    }

    assert {reason for reason, _ in failures(parameters)} == {"schema_too_large"}


def chained(length, *, backwards):
    """Parameters with a chain of references."""
    names = [f"a{n}" for n in range(length)]
    chain = {
        name: {"$ref": f"#/$defs/{target}"}
        for name, target in zip(names, [*names[1:], "end"], strict=True)
    }
    definitions = {**chain, "end": {"type": "string"}}
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a0"}},
        "$defs": dict(reversed(definitions.items())) if backwards else definitions,
    }


@pytest.mark.parametrize("backwards", [False, True])
def test_chain_of_references_has_an_end(backwards):
    schema = compile_parameters(chained(95, backwards=backwards))
    too_long = failures(chained(3000, backwards=backwards))

    assert schema.failures({"x": "text"}) == ()
    assert {reason for reason, _ in too_long} == {"schema_too_deep"}


def test_many_plain_properties_are_not_too_many():
    wide = {f"p{n}": {"type": "string"} for n in range(9000)}

    schema = compile_parameters({"type": "object", "properties": wide})

    assert schema.failures({"p8999": "text"}) == ()


def test_definition_may_be_shared():
    schema = compile_parameters(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/n"},
                "b": {"allOf": [{"$ref": "#/$defs/n"}]},
            },
            "$defs": {"n": {"type": "integer"}},
        }
    )

    assert schema.failures({"a": 1, "b": 2}) == ()


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/a~1b%20c~0", "#/properties/x/allOf/0"],
)
def test_pointer_escapes_and_list_indexes_are_followed(reference):
    schema = compile_parameters(
        {
            "type": "object",
            "properties": {
                "p": {"$ref": reference},
                "x": {"allOf": [{"type": "integer"}]},
            },
            "$defs": {"a/b c~": {"type": "integer"}},
        }
    )

    assert [f["reason"] for f in schema.failures({"p": "1"})] == [
        "argument_type_mismatch"
    ]


@pytest.mark.parametrize(
    "reference",
    [
        "#/properties/x/allOf/00",
        "#/properties/x/allOf/1",
        "#/properties/x/allOf/-1",
        "#/properties/x/allOf/9999999999999",
        "#/required/0",
        "#/properties/x/type",
    ],
)
def test_pointer_to_no_schema_is_unresolvable(reference):
    parameters = {
        "type": "object",
        "properties": {
            "p": {"$ref": reference},
            "x": {"allOf": [{}], "type": "string"},
        },
        "required": ["x"],
    }

    assert failures(parameters) == [("unresolvable_schema_ref", "$.properties.p.$ref")]


@pytest.mark.parametrize("reference", ["#anchor", "other.json#/a", 3])
def test_anything_but_a_local_pointer_is_not_local(reference):
    assert failures(holding({"$ref": reference})) == [
        ("schema_ref_not_local", f"{A}.$ref")
    ]


def test_branch_may_require_what_its_parent_declares():
    compile_parameters(
        {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
    )


def test_required_name_may_be_declared_through_references():
    compile_parameters(
        {
            "type": "object",
            "required": ["a", "b"],
            "$ref": "#/$defs/x",
            "allOf": [{"properties": {"b": {}}}],
            "$defs": {"x": {"properties": {"a": {}}}},
        }
    )


def test_name_behind_a_broken_reference_is_not_declared():
    parameters = {
        "type": "object",
        "required": ["a"],
        "allOf": [{"$ref": "#/$defs/none"}],
    }

    assert failures(parameters) == [
        ("unresolvable_schema_ref", "$.allOf[0].$ref"),
        ("required_property_not_declared", "$.required"),
    ]


def test_default_is_checked_through_references():
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x", "default": "one"}},
        "$defs": {"x": {"type": "integer"}},
    }

    assert failures(parameters) == [("invalid_schema_default", f"{A}.default")]


def test_default_of_a_broken_schema_is_not_judged():
    parameters = holding({"type": "integer", "default": "x", "enum": []})

    assert failures(parameters) == [("schema_enum_empty", f"{A}.enum")]


def test_pattern_with_a_lone_surrogate_is_refused():
    assert failures(holding({"pattern": "\ud800"})) == [
        ("invalid_schema_pattern", f"{A}.pattern")
    ]


def test_refusal_names_reason_and_path():
    with pytest.raises(SchemaDefinitionError, match=r"schema_enum_empty at \$"):
        compile_parameters(holding({"enum": []}))
