"""The form of what a worker is asked and of what it answers.

An answer is one JSON object with `value` or `fault`; everything else is a fault of
the worker. Answers are decoded strictly, since pack code may have written them.
"""

from __future__ import annotations

from typing import Final

from harness.canonical import Json, type_tag
from harness.oracle.contracts import Operation, OracleFault
from harness.strict_json import StrictJsonError, decode

RESULT_DEPTH = 64
"""Deepest result or state; the root has depth 0."""
STATE_HASH: Final[dict[str, Json]] = {"op": "state_hash"}
CLOSE: Final[dict[str, Json]] = {"op": "close"}


def call_request(
    name: str, arguments: dict[str, Json], turn_index: int
) -> dict[str, Json]:
    """Return the request of one tool call."""
    return {
        "op": "call_tool",
        "name": name,
        "arguments": arguments,
        "turn_index": turn_index,
    }


def assertion_request(request: dict[str, Json]) -> dict[str, Json]:
    """Return the request of one assertion."""
    return {"op": "run_assertion", **request}


def no_object(operation: Operation, value: Json) -> OracleFault:
    """Return the fault of a whole answer that is no JSON object."""
    return OracleFault(
        operation,
        "malformed",
        f"a JSON object is expected, got {type_tag(value)}",
        value=value,
        value_type=type_tag(value),
    )


def value_of(operation: Operation, payload: bytes) -> Json:
    """Decode a reply strictly; raise OracleFault for a fault or a broken reply."""
    try:
        # The reply's envelope is one level above the value.
        reply = decode(payload.decode("utf-8"), max_depth=RESULT_DEPTH + 1)
    except (UnicodeDecodeError, StrictJsonError) as error:
        raise OracleFault(operation, "malformed", str(error)[:2000]) from None
    if isinstance(reply, dict) and reply.keys() == {"value"}:
        return reply["value"]
    fault = reply.get("fault") if isinstance(reply, dict) else None
    if not isinstance(fault, dict):
        raise OracleFault(operation, "malformed", "the reply has another shape")
    detail = str(fault.get("detail"))[:4000]
    if fault.get("kind") == "malformed":
        raise OracleFault(
            operation, "malformed", detail, value_type=str(fault.get("type"))[:200]
        )
    raise OracleFault(operation, "error", detail, sent="unsent" not in fault)
