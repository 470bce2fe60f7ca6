"""One tool list: its envelope, its names and the calls it judges."""

import pytest

from harness.json_schema import SchemaDefinitionError, compile_tools

FIND = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Find a book.",
        "strict": True,
        "x-mutates": True,
        "parameters": {
            "type": "object",
            "properties": {"title": {"type": "string"}},
            "required": ["title"],
        },
    },
}


def changed(**function):
    return {"type": "function", "function": {**FIND["function"], **function}}


BROKEN = {
    "tool_not_object": ("find", "tools[0]"),
    "tool_type_not_function": ({**FIND, "type": None}, "tools[0].type"),
    "tool_function_not_object": ({"type": "function"}, "tools[0].function"),
    "tool_name_not_nonempty_string": (changed(name=""), "tools[0].function.name"),
    "tool_description_not_string": (
        changed(description=None),
        "tools[0].function.description",
    ),
    "tool_strict_not_boolean": (changed(strict="yes"), "tools[0].function.strict"),
    "parameters_not_object": (
        changed(parameters=None),
        "tools[0].function.parameters",
    ),
    "parameters_type_not_object": (
        changed(parameters={}),
        "tools[0].function.parameters.type",
    ),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken_tool_is_refused_with_its_one_reason(reason):
    tool, path = BROKEN[reason]
    with pytest.raises(SchemaDefinitionError) as caught:
        compile_tools([tool])

    assert caught.value.failures == ({"reason": reason, "path": path},)


def test_failures_of_all_tools_are_reported_at_once():
    with pytest.raises(SchemaDefinitionError) as caught:
        compile_tools([1, changed(name=None, strict=1), FIND, FIND])

    assert [f["reason"] for f in caught.value.failures] == [
        "tool_not_object",
        "tool_name_not_nonempty_string",
        "tool_strict_not_boolean",
        "duplicate_tool_name",
    ]


def test_names_keep_their_declared_order():
    assert compile_tools([changed(name="z"), changed(name="a")]).names == ("z", "a")


def test_undeclared_tool_is_unknown():
    assert compile_tools([FIND]).failures("lose", {}) == (
        {"reason": "unknown_tool", "argument": "$", "tool": "lose"},
    )
    assert compile_tools([FIND]).schema("lose") is None


def test_call_is_judged_by_its_own_tool():
    catalog = compile_tools([FIND])

    assert catalog.failures("find", {"title": "x"}) == ()
    assert catalog.failures("find", {}) == (
        {"reason": "missing_required_argument", "argument": "title"},
    )


def test_equal_tool_lists_are_compiled_once():
    assert compile_tools([FIND]) is compile_tools([dict(FIND)])
