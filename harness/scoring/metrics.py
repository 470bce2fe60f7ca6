"""Per-episode metrics of both scopes (spec 3.13).

Trace scope reports gates as task rates, executable scope a taxonomy of its own with
other names, so that two different measurements never share one. Under `wire-1` a
metric whose gate lost its evidence to a stop has none either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.conversation.task import AssertionCategory, ExecutablePart
from harness.evidence.episode import ExecutionEvidence
from harness.scoring.executable import SUCCEEDED
from harness.scoring.gates import GATE_NAMES, TRACE_GATES, is_evidence_missing
from harness.scoring.metric import (
    NO_APPLICABLE_TASK,
    Metric,
    not_applicable,
    rate,
    verdict,
)
from harness.scoring.reading import Reading
from harness.scoring.records import Gate, GateName

TASK_SUCCESS_RATE: Final = "task_success_rate"
_EVIDENCE_MISSING: Final = "metric.evidence_missing"
_ASSERTIONS_INCOMPLETE: Final = "metric.assertion_evidence_incomplete"
_PATH_GATES: Final = tuple(
    name for name in GATE_NAMES if name not in ("commit_state_known", "assertions")
)

Gates = Mapping[GateName, Gate]


def trace_metrics(gates: Gates, success: bool) -> tuple[Metric, ...]:
    """Return each trace gate as 0 or 1 over the episodes where it applies."""
    rates = tuple(
        _gate_metric(f"{name}_pass_rate", gates[name], NO_APPLICABLE_TASK)
        for name in TRACE_GATES
    )
    return (*rates, verdict(TASK_SUCCESS_RATE, success))


def executable_metrics(
    reading: Reading,
    gates: Gates,
    success: bool,
    part: ExecutablePart,
    evidence: ExecutionEvidence,
) -> tuple[Metric, ...]:
    """Return the fourteen executable metrics of one episode, in the spec's order."""
    return (
        _gate_metric("schema_valid_rate", gates["schema_valid"]),
        _call_rate("tool_name_accuracy", reading, gates, by_name=True),
        _call_rate("argument_accuracy", reading, gates, by_name=False),
        _gate_metric("call_group_accuracy", gates["call_grouping"]),
        _gate_metric("call_order_accuracy", gates["call_ordering"]),
        _gate_metric("required_call_subset_accuracy", gates["tool_selection"]),
        _milestones(reading, gates["text_turn"]),
        _turns(reading),
        _executions(evidence),
        _assertions("assertion_success_rate", reading, part, evidence, None),
        _assertions("state_match_rate", reading, part, evidence, "state"),
        _path(reading, gates, part, evidence),
        _assertions(
            "final_answer_success_rate", reading, part, evidence, "final_answer"
        ),
        verdict(TASK_SUCCESS_RATE, success),
    )


def _gate_metric(
    metric: str, gate: Gate, otherwise: str = "metric.gate_not_applicable"
) -> Metric:
    if gate.outcome != "not_applicable":
        return verdict(metric, gate.outcome == "passed")
    missing = is_evidence_missing(gate)
    return not_applicable(metric, _EVIDENCE_MISSING if missing else otherwise)


def _call_rate(metric: str, reading: Reading, gates: Gates, *, by_name: bool) -> Metric:
    # Gate 2 tells whether every call turn was answered, or decided before the stop.
    if is_evidence_missing(gates["arguments"]):
        return not_applicable(metric, _EVIDENCE_MISSING)
    expected = len(reading.task.spec.script.gold_calls)
    matched = sum(
        call.name_matched if by_name else call.arguments_matched
        for turn in reading.judged
        for call in turn.calls
    )
    return rate(metric, matched, expected, "metric.no_expected_call")


def _milestones(reading: Reading, gate: Gate) -> Metric:
    metric = "milestone_accuracy"
    text_turns = [turn for turn in reading.turns if not turn.scripted.expects_calls]
    matched = sum(turn.text_matched for turn in text_turns)
    if reading.withholds_evidence and gate.outcome != "failed":
        # A text turn that a stop left unasked says nothing about the candidate.
        text_turns = [turn for turn in text_turns if turn.match is not None]
        if not text_turns and is_evidence_missing(gate):
            return not_applicable(metric, _EVIDENCE_MISSING)
    return rate(metric, matched, len(text_turns), "metric.no_text_milestone")


def _turns(reading: Reading) -> Metric:
    asked = [turn for turn in reading.turns if turn.observed is not None]
    advanced = sum(turn.observed.advanced for turn in asked if turn.observed)
    if reading.withholds_evidence:
        # Neither an unanswered turn nor one that the oracle broke is the candidate's.
        asked = [
            turn
            for turn in asked
            if turn.match is not None
            and (not turn.match.matched or (turn.observed and turn.observed.advanced))
        ]
    return rate("turn_success_rate", advanced, len(asked), "metric.no_evaluated_turn")


def _executions(evidence: ExecutionEvidence) -> Metric:
    attempted = [e for e in evidence.executions if e.status != "not_executed"]
    succeeded = sum(execution.status in SUCCEEDED for execution in attempted)
    return rate(
        "tool_execution_success_rate",
        succeeded,
        len(attempted),
        "metric.no_attempted_call",
    )


def _assertions(
    metric: str,
    reading: Reading,
    part: ExecutablePart,
    evidence: ExecutionEvidence,
    category: AssertionCategory | None,
) -> Metric:
    declared = [
        spec
        for spec in part.assertions
        if category is None or spec.category == category
    ]
    if not declared:
        reason = "declared" if category is None else category
        return not_applicable(metric, f"metric.no_{reason}_assertion")
    if reading.withholds_evidence and reading.cut_short:
        return not_applicable(metric, _ASSERTIONS_INCOMPLETE)
    statuses = _statuses(evidence)
    outcomes = [statuses.get(spec.assertion_index) for spec in declared]
    if any(status in (None, "infrastructure_error") for status in outcomes):
        return not_applicable(metric, _ASSERTIONS_INCOMPLETE)
    applicable = [status for status in outcomes if status != "not_applicable"]
    return rate(
        metric,
        applicable.count("passed"),
        len(applicable),
        "metric.all_assertions_not_applicable",
    )


def _path(
    reading: Reading, gates: Gates, part: ExecutablePart, evidence: ExecutionEvidence
) -> Metric:
    metric = "path_success_rate"
    if reading.booking.is_stop:
        return not_applicable(metric, "metric.path_evidence_incomplete")
    if any(gates[name].outcome == "failed" for name in _PATH_GATES):
        return verdict(metric, False)
    statuses = _statuses(evidence)
    outcomes = [
        statuses.get(spec.assertion_index)
        for spec in part.assertions
        if spec.category == "path"
    ]
    return verdict(metric, all(s in ("passed", "not_applicable") for s in outcomes))


def _statuses(evidence: ExecutionEvidence) -> dict[int, str]:
    return {one.assertion_index: one.status for one in evidence.assertions}
