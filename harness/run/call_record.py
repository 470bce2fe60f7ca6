"""What of one executed call cannot stand beside the rest of its record.

A call that ran was valid and is named by its outcome; what its result means follows
from the result, and whether the state moved from the two hashes around it. States of
different calls are not compared: a backend may move by itself.
"""

from __future__ import annotations

from typing import Final

from harness.canonical import Json
from harness.evidence.episode import Execution

_RETURNED: Final = frozenset({"completed", "business_rejection", "tool_error"})


def contradiction(call: Execution, *, mutates: bool) -> str:
    """Return what cannot be so, "" for nothing; `mutates` is what the tool declares."""
    valid = call.schema_valid
    if valid is not None and valid == bool(call.schema_failures):
        return f"schema_valid {valid} with {list(call.schema_failures)}"
    if (call.result is not None) != (call.result_hash is not None):
        return f"a result and result_hash {call.result_hash}"
    if call.status == "not_executed":
        left = (call.state_before_hash, call.state_after_hash, call.result_hash)
        sound = call.state_commit == "not_started" and left == (None, None, None)
        return "" if sound else f"a refused call with {call.state_commit}, {left}"
    if valid is not True or call.reason_code != f"tool_execution.{call.status}":
        return f"{call.status} with {call.reason_code} and schema_valid {valid}"
    if call.status in _RETURNED and call.status != _meaning(call.result):
        return f"{call.status} with a result that means {_meaning(call.result)}"
    broken = call.status not in _RETURNED and call.status != "unknown_commit_state"
    if broken and call.result is not None:
        return f"{call.status} with a result"
    if not _state_agrees(call, mutates=mutates):
        before, after = call.state_before_hash, call.state_after_hash
        return f"{call.status} with {call.state_commit}, from {before} to {after}"
    return ""


def _meaning(result: Json) -> str:
    """Classify what a tool returned (spec 1.5, 3.9)."""
    if not isinstance(result, dict):
        return "malformed_result"
    error = result.get("error")
    if not isinstance(error, dict):
        return "completed"
    code = error.get("code")
    return "business_rejection" if isinstance(code, str) and code else "tool_error"


def _state_agrees(call: Execution, *, mutates: bool) -> bool:
    before, after = call.state_before_hash, call.state_after_hash
    commit = call.state_commit
    if (commit == "unknown") != (call.status == "unknown_commit_state"):
        return False
    if commit == "not_started":
        # A fault alone comes to this; a state may have been read all the same.
        return call.status not in _RETURNED
    if not mutates:
        return commit == "not_applicable" and before is None and after is None
    if commit == "unknown":
        return before is not None and after is None
    if before is None or after is None:
        return False
    return commit == ("not_committed" if before == after else "committed")
