"""From a decoded object to an action, in the one order in which problems are found.

The decision decides which fields there must be; absent fields come before unknown
ones. The first problem is the only one reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from harness.canonical import Json
from harness.scoring.action_ir.action import (
    DECISIONS,
    MODES,
    Action,
    Call,
    Decision,
    Mode,
    abstain,
    act,
    clarify,
)
from harness.scoring.action_ir.decode import decode_action_object
from harness.scoring.action_ir.tools import Tool
from harness.scoring.action_ir.values import canonical_members, refuse

_ACT_FIELDS: Final = frozenset({"decision", "calls", "mode"})
_FIELDS: Final = {
    "CALL": _ACT_FIELDS,
    "CONFIRM": _ACT_FIELDS,
    "CLARIFY": frozenset({"decision", "missing"}),
    "ABSTAIN": frozenset({"decision"}),
}
_CALL_FIELDS: Final = frozenset({"tool", "args"})


def read_action(text: object, tools: Mapping[str, Tool]) -> Action:
    """Decode and validate one action text; raise InvalidActionError."""
    return validate_action(decode_action_object(text), tools)


def validate_action(payload: dict[str, Json], tools: Mapping[str, Tool]) -> Action:
    """Validate a decoded object whose strings are in NFC; raise InvalidActionError."""
    decision = _decision(payload)
    _check_fields(payload, _FIELDS[decision], "$")
    if decision == "ABSTAIN":
        return abstain()
    if decision == "CLARIFY":
        return clarify(_missing(payload["missing"]))
    mode = _mode(payload["mode"])
    calls = payload["calls"]
    if not isinstance(calls, list):
        refuse("type_mismatch", "$.calls", "expected an array")
    if not calls:
        refuse("empty_calls", "$.calls", "no call")
    if mode == "SINGLE" and len(calls) != 1:
        refuse("invalid_call_count", "$.calls", f"SINGLE with {len(calls)} calls")
    return act(
        decision,
        mode,
        tuple(
            _call(call, tools, f"$.calls[{index}]") for index, call in enumerate(calls)
        ),
    )


def _decision(payload: dict[str, Json]) -> Decision:
    decision = payload.get("decision")
    if not isinstance(decision, str):
        refuse("type_mismatch", "$.decision", "expected a string")
    if decision not in DECISIONS:
        refuse("invalid_decision", "$.decision", f"none of {', '.join(DECISIONS)}")
    return cast(Decision, decision)


def _mode(mode: Json) -> Mode:
    if not isinstance(mode, str):
        refuse("type_mismatch", "$.mode", "expected a string")
    if mode not in MODES:
        refuse("invalid_mode", "$.mode", f"none of {', '.join(MODES)}")
    return cast(Mode, mode)


def _check_fields(payload: dict[str, Json], names: frozenset[str], path: str) -> None:
    if payload.keys() == names:
        return
    absent = names - payload.keys()
    if absent:
        refuse("missing_field", path, f"without {sorted(absent)}")
    refuse("unknown_field", path, f"unknown {sorted(payload.keys() - names)}")


def _missing(items: Json) -> tuple[str, ...]:
    path = "$.missing"
    if not isinstance(items, list):
        refuse("type_mismatch", path, "expected an array")
    if not items:
        refuse("empty_missing", path, "nothing is missing")
    for index, item in enumerate(items):
        if not isinstance(item, str):
            refuse("type_mismatch", f"{path}[{index}]", "expected a string")
        if not item:
            refuse("empty_missing_item", f"{path}[{index}]", "an empty name")
    if len(set(items)) != len(items):
        refuse("duplicate_missing", path, "a name repeats")
    if items != sorted(items):
        refuse("unsorted_missing", path, "not in the order of code points")
    return tuple(items)


def _call(call: Json, tools: Mapping[str, Tool], path: str) -> Call:
    if not isinstance(call, dict):
        refuse("type_mismatch", path, "expected an object")
    _check_fields(call, _CALL_FIELDS, path)
    name = call["tool"]
    if not isinstance(name, str):
        refuse("type_mismatch", f"{path}.tool", "expected a string")
    tool = tools.get(name)
    if tool is None:
        refuse("unknown_tool", f"{path}.tool", f"{name!r} is not declared")
    args = call["args"]
    path = f"{path}.args"
    if not isinstance(args, dict):
        refuse("type_mismatch", path, "expected an object")
    canonical = canonical_members(
        args, tool.arguments, tool.required, path, is_open=tool.additional_arguments
    )
    return Call(name, canonical)
