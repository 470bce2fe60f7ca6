"""What of an execution cannot stand beside the rest of it."""

import pytest

from harness.evidence.episode import Execution
from harness.run.call_record import contradiction

HASH = "sha256:" + "0" * 64
FAILED = ({"reason": "x"},)


def executed(**members):
    known = {
        "execution_index": 0,
        "turn_index": 0,
        "position_in_turn": 0,
        "provider_call_index": 0,
        "call_id": "a",
        "function_name": "f",
        "parsed_arguments": {},
        "schema_valid": True,
        "schema_failures": (),
        "status": "completed",
        "state_commit": "not_applicable",
        "state_before_hash": None,
        "state_after_hash": None,
        "result": {},
        "result_hash": HASH,
        "released_to_model": True,
        "malformed_result": None,
        "malformed_result_type": None,
        "reason_code": "tool_execution.completed",
        "detail": "",
        "duration_s": None,
    }
    return Execution(**{**known, **members})


def states(before, after):
    return {"state_before_hash": before, "state_after_hash": after}


def returned(status, result, **members):
    known = {"result": result, "reason_code": f"tool_execution.{status}"}
    return executed(status=status, **{**known, **members})


def broken(status, commit, **members):
    none = {"result": None, "result_hash": None, "state_commit": commit}
    return executed(
        status=status, reason_code=f"tool_execution.{status}", **none, **members
    )


def refused(reason, **members):
    none = {"result": None, "result_hash": None, "state_commit": "not_started"}
    reason = f"tool_execution.{reason}"
    return executed(status="not_executed", reason_code=reason, **none, **members)


@pytest.mark.parametrize(
    ("call", "mutates"),
    [
        (executed(), False),
        (executed(state_commit="committed", **states("a", "b")), True),
        (executed(state_commit="not_committed", **states("a", "a")), True),
        (returned("business_rejection", {"error": {"code": "full"}}), False),
        (returned("tool_error", {"error": {"message": "no"}}), False),
        (broken("timeout", "not_applicable"), False),
        (broken("infrastructure_error", "not_started", **states("a", "b")), True),
        (broken("unknown_commit_state", "unknown", **states("a", None)), True),
        (refused("undeclared_tool", schema_valid=None), False),
        (
            refused("schema_invalid", schema_valid=False, schema_failures=FAILED),
            False,
        ),
    ],
)
def test_what_the_driver_writes_is_sound(call, mutates):
    assert contradiction(call, mutates=mutates) == ""


@pytest.mark.parametrize(
    "members",
    [
        {"schema_valid": False},
        {"schema_valid": None},
        {"reason_code": "tool_execution.tool_error"},
        {"state_before_hash": "a"},
        {"state_commit": "committed", "state_before_hash": "a"},
        {
            "state_commit": "committed",
            "state_before_hash": "a",
            "state_after_hash": "a",
        },
        {
            "state_commit": "not_committed",
            "state_before_hash": "a",
            "state_after_hash": "b",
        },
        {"state_commit": "unknown", "state_after_hash": "b"},
        {"schema_failures": ({"reason": "x"},)},
    ],
)
def test_call_that_contradicts_itself_is_told(members):
    for mutates in (False, True):
        assert contradiction(executed(**members), mutates=mutates) != ""


@pytest.mark.parametrize(
    ("call", "mutates"),
    [
        (executed(), True),
        (executed(state_commit="committed", **states("a", "b")), False),
        (returned("completed", {"error": {"code": "full"}}), False),
        (returned("infrastructure_error", {}), False),
        (returned("completed", {}, result_hash=None), False),
        (returned("completed", {}, state_commit="not_started"), True),
        (broken("timeout", "unknown", **states("a", None)), True),
        (refused("undeclared_tool", schema_valid=None, **states("a", None)), False),
    ],
)
def test_forged_call_is_told(call, mutates):
    assert contradiction(call, mutates=mutates) != ""
