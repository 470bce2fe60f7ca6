"""How a gate says what it found; the gates themselves are in `trace`, `executable`.

Blame follows one rule. A failure seen on a turn that the candidate answered is the
candidate's. In a stop, what no answered turn could show is under `wire-1` missing
evidence, so the gate does not apply and stays outside the denominators; under
`strict-002` the gate fails with class infrastructure (spec 3.11, interfaces 5).
A gate that says nothing of its episode is one object for all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Final, get_args

from harness.scoring.records import FailureClass, Gate, GateName

GATE_NAMES: Final[tuple[GateName, ...]] = get_args(GateName)
TRACE_GATES: Final = GATE_NAMES[:7]
EXECUTABLE_GATES: Final = GATE_NAMES[7:]


@cache
def passed(gate: GateName, reason_code: str | None = None) -> Gate:
    """Return a passed gate."""
    return Gate(
        gate, "passed", reason_code or f"{gate}.matched", None, None, None, None, ""
    )


def failed(
    gate: GateName,
    failure_class: FailureClass,
    *,
    reason_code: str | None = None,
    turn_index: int | None = None,
    execution_index: int | None = None,
    assertion_index: int | None = None,
    detail: str = "",
) -> Gate:
    """Return a failed gate with the place to look at."""
    return Gate(
        gate,
        "failed",
        reason_code or f"{gate}.mismatch",
        failure_class,
        turn_index,
        execution_index,
        assertion_index,
        detail,
    )


@cache
def inapplicable(gate: GateName) -> Gate:
    """Return a gate that has nothing to judge on this row."""
    layer = "" if gate in TRACE_GATES else "executable."
    code = f"{layer}{gate}.not_applicable"
    return Gate(gate, "not_applicable", code, None, None, None, None, "")


@cache
def evidence_missing(gate: GateName) -> Gate:
    """Return a gate whose evidence a stop prevented."""
    code = f"{gate}.evidence_missing"
    return Gate(gate, "not_applicable", code, None, None, None, None, "")


def is_evidence_missing(gate: Gate) -> bool:
    """Tell a gate that a stop left without evidence from one with nothing to do."""
    return gate.reason_code == f"{gate.gate}.evidence_missing"
