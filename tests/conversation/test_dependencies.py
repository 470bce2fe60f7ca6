"""Arguments from live results: resolved before the turn, compared in its place."""

import pytest

from harness.conversation.dependencies import resolve, substitute
from harness.conversation.script import ScriptedCall, ScriptedTurn
from harness.conversation.task import Dependency
from harness.json_schema import compile_tools

TOOL = {
    "type": "function",
    "function": {
        "name": "pay",
        "parameters": {
            "type": "object",
            "properties": {
                "order": {
                    "type": "object",
                    "properties": {
                        "lines": {"type": "array", "items": {"type": "string"}}
                    },
                },
                "id": {"type": "string", "pattern": "^o-"},
            },
        },
    },
}


def dependency(path=("id",), expected="string", result_path=("order", "0", "id")):
    return Dependency(0, 1, 1, 0, path, 0, 0, result_path, expected)


def turn(arguments):
    call = ScriptedCall(1, 0, "pay", arguments, None)
    return ScriptedTurn(1, 0, 1, (call,), None, None, is_terminal=True)


def outcome(results, *, declared=None, arguments=None):
    (one,) = resolve(
        [declared or dependency()],
        turn(arguments or {"id": "o-gold"}),
        results,
        compile_tools([TOOL]),
    )
    return one


def test_live_value_takes_the_gold_values_place():
    one = outcome({0: [{"order": [{"id": "o-live"}]}]})

    calls = substitute(turn({"id": "o-gold"}).calls, [dependency()], [one])

    assert one.status == "resolved"
    assert calls[0].arguments == {"id": "o-live"}


def test_value_is_placed_deep_and_nothing_beside_it_changes():
    declared = dependency(("order", "lines", "1"), result_path=("id",))
    arguments = {"order": {"lines": ["a", "b", "c"]}, "id": "o-1"}
    one = outcome({0: [{"id": "live"}]}, declared=declared, arguments=arguments)

    calls = substitute(turn(arguments).calls, [declared], [one])

    assert calls[0].arguments == {
        "order": {"lines": ["a", "live", "c"]},
        "id": "o-1",
    }
    assert arguments["order"]["lines"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ({}, "producer_missing"),
        ({0: []}, "producer_missing"),
        ({0: [{}, {}]}, "producer_ambiguous"),
        ({0: [["no", "object"]]}, "result_unavailable"),
        ({0: [{"order": []}]}, "result_path_missing"),
        ({0: [{"order": [{"id": 7}]}]}, "result_type_mismatch"),
        ({0: [{"order": [{"id": "x-1"}]}]}, "consumer_schema_invalid"),
    ],
)
def test_every_way_to_fail_has_its_status(results, status):
    one = outcome(results)

    assert one.status == status
    assert one.reason_code == f"dependency.{status}"


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (None, {"null"}),
        (True, {"bool"}),
        (3, {"integer", "number"}),
        (3.5, {"number"}),
        ("3", {"string"}),
        ([], set()),
    ],
)
def test_types_are_json_types_and_a_bool_is_no_number(value, fits):
    found = {
        name
        for name in ("null", "bool", "integer", "number", "string")
        if outcome(
            {0: [{"v": value}]},
            declared=dependency(("other",), name, ("v",)),
            arguments={"other": None},
        ).status
        == "resolved"
    }

    assert found == fits


def test_dependencies_of_other_turns_are_left_alone():
    other = Dependency(0, 5, 4, 0, ("id",), 0, 0, ("id",), "string")

    assert resolve([other], turn({"id": "o-1"}), {}, compile_tools([TOOL])) == ()
