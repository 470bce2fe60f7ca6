"""A wrong tool definition is refused when it is made."""

import pytest

from harness.scoring.action_ir.tools import (
    Tool,
    ToolDefinitionError,
    ToolSet,
    ValueSchema,
    tool_from_json,
)

TEXT = ValueSchema("string")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "date"},
        {"type": ["string"]},
        {"type": "array"},
        {"type": "string", "items": TEXT},
        {"type": "string", "set_semantics": True},
        {"type": "array", "items": TEXT, "set_semantics": 1},
        {"type": "string", "properties": {"a": TEXT}},
        {"type": "array", "items": TEXT, "required": frozenset({"a"})},
        {"type": "string", "additional_properties": True},
        {"type": "object", "additional_properties": None},
        {"type": "object", "required": frozenset({"a"})},
        {"type": "object", "properties": {"": TEXT}},
        {"type": "object", "properties": {"e\u0301": TEXT}},
        {"type": "string", "enum": (1,)},
        {"type": "integer", "enum": (True,)},
        {"type": "integer", "enum": (1.0,)},
        {"type": "number", "enum": (1, 1.0)},
        {"type": "number", "enum": (10**400,)},
        {"type": "number", "enum": (float("nan"),)},
        {"type": "string", "enum": ("é", "e\u0301")},
        {"type": "array", "items": TEXT, "enum": (["a"],)},
    ],
    ids=str,
)
def test_value_schema_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ToolDefinitionError):
        ValueSchema(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "e\u0301"},
        {"name": 5},
        {"name": "f", "arguments": {"": TEXT}},
        {"name": "f", "required": frozenset({"a"})},
        {"name": "f", "additional_arguments": "yes"},
        {"name": "f", "side_effecting": 0},
    ],
    ids=str,
)
def test_tool_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ToolDefinitionError):
        Tool(**fields)


@pytest.mark.parametrize(
    "definition",
    [
        None,
        {},
        {"name": "f", "description": "x"},
        {"name": "f", "arguments": []},
        {"name": "f", "required": "a"},
        {"name": "f", "required": [["a"]]},
        {"name": "f", "arguments": {"a": {"type": "string", "enum": "x"}}},
        {"name": "f", "arguments": {"a": {"items": {"type": "string"}}}},
    ],
    ids=str,
)
def test_json_definition_of_another_form_is_refused(definition):
    with pytest.raises(ToolDefinitionError):
        tool_from_json(definition)


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ToolDefinitionError, match="twice"):
        ToolSet([Tool("f"), Tool("f", side_effecting=False)])


def test_json_definition_is_the_tool_it_describes():
    found = tool_from_json(
        {
            "name": "f",
            "arguments": {
                "a": {"type": "array", "items": {"type": "number", "enum": [1, 2.5]}},
                "b": {"type": "object", "properties": {"c": {"type": "null"}}},
            },
            "required": ["a"],
        }
    )

    assert found == Tool(
        "f",
        {
            "a": ValueSchema("array", items=ValueSchema("number", enum=(1, 2.5))),
            "b": ValueSchema("object", properties={"c": ValueSchema("null")}),
        },
        frozenset({"a"}),
    )
    assert found.side_effecting


def test_tools_are_found_by_name():
    tools = ToolSet([Tool("b"), Tool("a")])

    assert (list(tools), len(tools), tools["a"].name) == (["b", "a"], 2, "a")
