"""What of an execution cannot stand beside the rest of it."""

import pytest

from harness.evidence.episode import Execution
from harness.run.episode_end import contradiction


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
        "result_hash": None,
        "released_to_model": True,
        "malformed_result": None,
        "malformed_result_type": None,
        "reason_code": "tool_execution.completed",
        "detail": "",
        "duration_s": None,
    }
    return Execution(**{**known, **members})


def test_call_that_came_out_is_sound():
    assert contradiction(executed()) == ""


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
    assert contradiction(executed(**members)) != ""
