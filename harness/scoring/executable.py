"""Gates 8 to 12: what the oracle and the assertions say (spec 3.11).

A broken oracle is not a wrong answer: its faults are class infrastructure. A call
that was refused before it ran is the candidate's. An assertion that could not run
beside a candidate's own failure leaves the gate without evidence under `wire-1`,
because the candidate's failure already decides the episode; and so does a stop that
cut the conversation short, for then the state is not what the candidate would have
left.
"""

from __future__ import annotations

from typing import Final

from harness.conversation.task import ExecutablePart
from harness.evidence.episode import AssertionOutcome, Execution, ExecutionEvidence
from harness.scoring.gates import evidence_missing, failed, inapplicable, passed
from harness.scoring.reading import Reading
from harness.scoring.records import Gate, GateName

SUCCEEDED: Final = frozenset({"completed", "business_rejection"})
"""Execution statuses of an exchange that worked."""

_PRECEDENCE: Final = (
    "unknown_commit_state",
    "malformed_result",
    "timeout",
    "tool_error",
    "infrastructure_error",
)
"""Which oracle fault names the gate when an episode has several (spec 3.9)."""

ORACLE_DEAD: Final = frozenset(
    {
        "oracle_reset_failed",
        "unknown_commit_state",
        "oracle_timeout",
        "oracle_call_failed",
        "oracle_result_malformed",
        "dependency_resolution_failed",
    }
)
"""Fatal stops after which neither final state nor assertions can be trusted."""


def executable_gates(
    reading: Reading, part: ExecutablePart, evidence: ExecutionEvidence
) -> tuple[Gate, ...]:
    """Return gates 8 to 12 in order."""
    return (
        _oracle_execution(reading, evidence),
        _dependency_resolution(reading, part, evidence),
        _commit_state_known(reading, part, evidence),
        _assertions(reading, part, evidence),
        _executable_completion(reading),
    )


def _oracle_execution(reading: Reading, evidence: ExecutionEvidence) -> Gate:
    gate: GateName = "oracle_execution"
    if not evidence.executions:
        unreached = any(turn.match is None for turn in reading.call_turns)
        if unreached and reading.withholds_evidence:
            return evidence_missing(gate)
        return inapplicable(gate)
    for status in _PRECEDENCE:
        for execution in evidence.executions:
            if execution.status == status:
                reason = f"executable.oracle_{status}"
                return _execution_failed(gate, execution, reason, infrastructure=True)
    for execution in evidence.executions:
        if execution.status not in SUCCEEDED:
            reason = "executable.call_not_executed"
            return _execution_failed(gate, execution, reason, infrastructure=False)
    return passed(gate, "executable.oracle_execution_passed")


def _execution_failed(
    gate: GateName, execution: Execution, reason_code: str, *, infrastructure: bool
) -> Gate:
    return failed(
        gate,
        "infrastructure" if infrastructure else "candidate",
        reason_code=reason_code,
        turn_index=execution.turn_index,
        execution_index=execution.execution_index,
        detail=execution.reason_code,
    )


def _dependency_resolution(
    reading: Reading, part: ExecutablePart, evidence: ExecutionEvidence
) -> Gate:
    gate: GateName = "dependency_resolution"
    if not part.dependencies:
        return inapplicable(gate)
    if not evidence.dependencies:
        missing = reading.withholds_evidence
        return evidence_missing(gate) if missing else inapplicable(gate)
    for outcome in evidence.dependencies:
        if outcome.status != "resolved":
            return failed(
                gate,
                "infrastructure",
                reason_code=f"executable.dependency.{outcome.status}",
                turn_index=outcome.consumer_turn_index,
                detail=outcome.detail,
            )
    return passed(gate, "executable.dependencies_resolved")


def _commit_state_known(
    reading: Reading, part: ExecutablePart, evidence: ExecutionEvidence
) -> Gate:
    gate: GateName = "commit_state_known"
    mutating = frozenset(p.function_name for p in part.tool_policies if p.mutates)
    ran = [
        execution
        for execution in evidence.executions
        if execution.function_name in mutating and execution.status != "not_executed"
    ]
    for execution in ran:
        if execution.state_commit == "unknown":
            reason = "executable.commit_state_unknown"
            return _execution_failed(gate, execution, reason, infrastructure=True)
    if ran:
        return passed(gate, "executable.commit_state_known")
    unreached = any(
        call.function_name in mutating
        for turn in reading.unjudged
        for call in turn.scripted.calls
    )
    if unreached and reading.withholds_evidence:
        return evidence_missing(gate)
    return inapplicable(gate)


def _assertions(
    reading: Reading, part: ExecutablePart, evidence: ExecutionEvidence
) -> Gate:
    gate: GateName = "assertions"
    if not part.assertions:
        return inapplicable(gate)
    if reading.withholds_evidence and reading.cut_short:
        return evidence_missing(gate)
    outcomes = evidence.assertions
    broken = next((o for o in outcomes if o.status == "infrastructure_error"), None)
    wrong = next((o for o in outcomes if o.status == "failed"), None)
    decided = reading.policy.attribution == "wire-1" and not reading.booking.is_stop
    if broken is not None and not decided:
        return _assertion_failed(gate, broken, infrastructure=True)
    if wrong is not None:
        return _assertion_failed(gate, wrong, infrastructure=False)
    if broken is not None:
        return evidence_missing(gate)
    if len(outcomes) < len(part.assertions):
        return _unrun(gate, reading, len(outcomes))
    if all(outcome.status == "not_applicable" for outcome in outcomes):
        return inapplicable(gate)
    return passed(gate, "executable.assertions_passed")


def _assertion_failed(
    gate: GateName, outcome: AssertionOutcome, *, infrastructure: bool
) -> Gate:
    reason = "assertion_infrastructure_error" if infrastructure else "assertion_failed"
    return failed(
        gate,
        "infrastructure" if infrastructure else "candidate",
        reason_code=f"executable.{reason}",
        assertion_index=outcome.assertion_index,
        detail=f"{outcome.name}: {outcome.detail}",
    )


def _unrun(gate: GateName, reading: Reading, index: int) -> Gate:
    if reading.policy.attribution == "wire-1":
        return evidence_missing(gate)
    if reading.booking.status in ORACLE_DEAD:
        return inapplicable(gate)
    return failed(
        gate,
        "infrastructure",
        reason_code="executable.assertion_state_unavailable",
        assertion_index=index,
        detail="the final state could not be read, so no assertion ran",
    )


def _executable_completion(reading: Reading) -> Gate:
    gate: GateName = "executable_completion"
    if reading.booking.status == "completed":
        return passed(gate, "executable.episode_completed")
    return failed(
        gate,
        "infrastructure" if reading.booking.is_stop else "candidate",
        reason_code="executable.episode_incomplete",
        detail=reading.booking.cause.summary,
    )
