"""Validation finds the first problem in the contract's order, with its place."""

import json

import pytest

from harness.scoring.action_ir.problem import SCHEMA_CODES, InvalidActionError
from harness.scoring.action_ir.validate import read_action
from tests.scoring.action_ir.tool_sets import TOOLS, act, call

TIMER = call("set_timer", minutes=5)
ORDERED = [
    ({}, "type_mismatch", "$.decision"),
    ({"decision": None, "calls": 5}, "type_mismatch", "$.decision"),
    ({"decision": "call"}, "invalid_decision", "$.decision"),
    ({"decision": "ABSTAIN", "x": 1}, "unknown_field", "$"),
    ({"decision": "CALL", "calls": [], "x": 1}, "missing_field", "$"),
    (act(TIMER) | {"x": 1}, "unknown_field", "$"),
    ({"decision": "CLARIFY", "missing": "x"}, "type_mismatch", "$.missing"),
    ({"decision": "CLARIFY", "missing": []}, "empty_missing", "$.missing"),
    ({"decision": "CLARIFY", "missing": ["", 1]}, "empty_missing_item", "$.missing[0]"),
    ({"decision": "CLARIFY", "missing": ["b", 1]}, "type_mismatch", "$.missing[1]"),
    (
        {"decision": "CLARIFY", "missing": ["b", "a", "b"]},
        "duplicate_missing",
        "$.missing",
    ),
    ({"decision": "CLARIFY", "missing": ["a", "B"]}, "unsorted_missing", "$.missing"),
    (act(TIMER) | {"mode": None, "calls": 1}, "type_mismatch", "$.mode"),
    (act(TIMER) | {"mode": "single", "calls": 1}, "invalid_mode", "$.mode"),
    (act(TIMER) | {"calls": {}}, "type_mismatch", "$.calls"),
    (act(mode="SINGLE"), "empty_calls", "$.calls"),
    (act(1, 2, mode="SINGLE"), "invalid_call_count", "$.calls"),
    (act(TIMER, 5), "type_mismatch", "$.calls[1]"),
    (act({"tool": 1, "x": 2}), "missing_field", "$.calls[0]"),
    (act(TIMER | {"x": 2}), "unknown_field", "$.calls[0]"),
    (act({"tool": 1, "args": 1}), "type_mismatch", "$.calls[0].tool"),
    (act({"tool": "nope", "args": 1}), "unknown_tool", "$.calls[0].tool"),
    (act({"tool": "set_timer", "args": []}), "type_mismatch", "$.calls[0].args"),
    (act(call("send_message", x=1, to=2)), "missing_argument", "$.calls[0].args"),
    (act(call("set_timer", minutes="5", x=1)), "extra_argument", "$.calls[0].args"),
    (
        act(call("send_message", to=1, body=2)),
        "type_mismatch",
        "$.calls[0].args.body",
    ),
    (act(call("set_timer", minutes=True)), "type_mismatch", "$.calls[0].args.minutes"),
    (act(call("set_timer", minutes=1.0)), "type_mismatch", "$.calls[0].args.minutes"),
    (act(call("set_level", level=True)), "type_mismatch", "$.calls[0].args.level"),
    (
        act(call("set_level", level=10**309)),
        "non_finite_number",
        "$.calls[0].args.level",
    ),
    (
        act(call("tag_note", tags=[1, "a"])),
        "type_mismatch",
        "$.calls[0].args.tags[1]",
    ),
    (act(call("configure", mode="ON")), "enum_mismatch", "$.calls[0].args.mode"),
    (
        act(call("configure", settings={"y": 1})),
        "missing_argument",
        "$.calls[0].args.settings",
    ),
    (
        act(call("configure", settings={"name": 1, "y": 1})),
        "extra_argument",
        "$.calls[0].args.settings",
    ),
    (
        act(call("configure", settings={"name": 1, "x": None})),
        "type_mismatch",
        "$.calls[0].args.settings.name",
    ),
]


@pytest.mark.parametrize(("payload", "code", "path"), ORDERED, ids=str)
def test_first_problem_is_the_one_reported(payload, code, path):
    with pytest.raises(InvalidActionError) as found:
        read_action(json.dumps(payload), TOOLS)

    problem = found.value
    assert (problem.stage, problem.code, problem.path) == ("schema", code, path)


def test_every_schema_code_is_met():
    assert {code for _, code, _ in ORDERED} == SCHEMA_CODES


@pytest.mark.parametrize(
    "payload",
    [
        {"decision": "ABSTAIN"},
        {"decision": "CLARIFY", "missing": [" ", "B", "a", "arg10", "arg9"]},
        act(TIMER),
        act(TIMER, mode="SERIAL"),
        act(TIMER, mode="PARALLEL"),
        act(TIMER, decision="CONFIRM"),
        act(call("anything", x=[{"y": None}], z=1.0)),
        act(call("configure")),
    ],
    ids=str,
)
def test_valid_action_keeps_its_canonical_text(payload):
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))

    found = read_action(text, TOOLS)

    assert (found.text, found.as_json()) == (text, payload)


def test_mode_of_an_action_without_calls_is_none():
    found = read_action('{"decision":"ABSTAIN"}', TOOLS)

    assert (found.mode, found.calls, found.tools) == (None, (), frozenset())
