"""One line of the task table: an episode's verdict with what it cost.

The columns of spec 3.16 come first; a gate that does not apply is null, never
false. Beside them stand the trial, what kind of task it was, who ended the episode,
and counts of turns, calls, requests, tokens and time. All of it follows from
recorded evidence, so writing the table again gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.causes import CAUSES
from harness.conversation.task import TaskSpec
from harness.evidence.episode import Episode, Outcome
from harness.evidence.records import Record
from harness.scoring.metric import Metric
from harness.scoring.records import FailureRecord, Gate, GateName, TaskScore

Mode = Literal["trace", "executable"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an episode's requests cost; None where an endpoint did not say."""

    requests: int
    attempts: int
    latency_ms: int
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class TaskRow(Record):
    """One episode: one candidate on one task, once."""

    candidate_alias: str
    candidate_canonical_id: str
    task_id: str
    mode: Mode
    episode_status: str
    non_candidate_stop: bool
    task_success: bool
    failure_codes: tuple[str, ...]
    failure_records: tuple[FailureRecord, ...]
    schema_valid: bool | None
    tool_name_correct: bool | None
    arguments_correct: bool | None
    call_group_correct: bool | None
    call_order_correct: bool | None
    required_subset_correct: bool | None
    milestones_correct: bool | None
    execution_success: bool | None
    assertions_passed: bool | None
    final_answer_passed: bool | None
    trial: int
    template_id: str
    category: str | None
    difficulty: str | None
    turn_policy: str
    cause: str
    owner: str
    scripted_turns: int
    asked_turns: int
    expected_calls: int
    observed_calls: int
    matched_calls: int
    executed_calls: int
    requests: int
    attempts: int
    latency_ms: int
    prompt_tokens: int | None
    completion_tokens: int | None
    suspected_call_markup: bool
    suspected_truncation: bool
    serving_parse_loss: bool
    arguments_empty: bool
    stops_after_mismatch: bool
    episode_hash: str
    score_hash: str


def task_row(
    score: TaskScore,
    score_hash: str,
    spec: TaskSpec,
    episode: Episode,
    traffic: Traffic,
) -> TaskRow:
    """Return the table's row of one scored episode; `score_hash` is its score's."""
    executable = score.scope == "trace_and_executable"
    gates = {gate.gate: gate for gate in score.gates}
    metrics = {metric.metric: metric for metric in score.metrics}
    return TaskRow(
        candidate_alias=score.candidate_alias,
        candidate_canonical_id=score.canonical_model_identity,
        task_id=score.task_id,
        mode="executable" if executable else "trace",
        episode_status=score.episode_status,
        non_candidate_stop=score.non_candidate_stop,
        task_success=score.task_success,
        failure_codes=score.failure_codes,
        failure_records=score.failure_records,
        schema_valid=_gate(gates, "schema_valid"),
        # The contract gives this column two meanings; see spec 3.16.
        tool_name_correct=_metric(metrics, "tool_name_accuracy")
        if executable
        else _gate(gates, "tool_selection"),
        arguments_correct=_gate(gates, "arguments"),
        call_group_correct=_gate(gates, "call_grouping"),
        call_order_correct=_gate(gates, "call_ordering"),
        required_subset_correct=_gate(gates, "tool_selection"),
        milestones_correct=_metric(metrics, "milestone_accuracy"),
        execution_success=_metric(metrics, "tool_execution_success_rate"),
        assertions_passed=_assertions(gates),
        final_answer_passed=_metric(metrics, "final_answer_success_rate"),
        trial=score.trial,
        template_id=spec.template_id,
        category=spec.category,
        difficulty=spec.difficulty,
        turn_policy=spec.turn_policy,
        cause=score.cause,
        owner=CAUSES[score.cause].owner.value,
        scripted_turns=len(spec.script.turns),
        asked_turns=len(episode.turns),
        expected_calls=score.expected_calls,
        observed_calls=score.observed_calls,
        matched_calls=score.matched_calls,
        executed_calls=score.attempted_calls,
        requests=traffic.requests,
        attempts=traffic.attempts,
        latency_ms=traffic.latency_ms,
        prompt_tokens=traffic.prompt_tokens,
        completion_tokens=traffic.completion_tokens,
        suspected_call_markup="suspected_call_markup" in score.companions,
        suspected_truncation="suspected_truncation" in score.companions,
        serving_parse_loss="serving_parse_loss" in score.companions,
        arguments_empty="arguments_empty" in score.companions,
        stops_after_mismatch="stops_after_mismatch" in score.companions,
        episode_hash=score.episode_hash,
        score_hash=score_hash,
    )


def sum_traffic(
    requests: int, latencies_s: Sequence[float], outcomes: Iterable[Outcome]
) -> Traffic:
    """Sum exchanges and usage; a token count is None unless every response has it."""
    usages = [
        outcome.response.usage for outcome in outcomes if outcome.response is not None
    ]
    return Traffic(
        requests,
        len(latencies_s),
        round(1000 * sum(latencies_s)),
        _tokens(usages, "prompt_tokens"),
        _tokens(usages, "completion_tokens"),
    )


def _tokens(usages: list[dict[str, object] | None], name: str) -> int | None:
    total = 0
    for usage in usages:
        count = None if usage is None else usage.get(name)
        if type(count) is not int or not 0 <= count < 1 << 53:
            return None
        total += count
    return total if usages else None


def _gate(gates: Mapping[GateName, Gate], name: GateName) -> bool | None:
    gate = gates.get(name)
    if gate is None or gate.outcome == "not_applicable":
        return None
    return gate.outcome == "passed"


def _assertions(gates: Mapping[GateName, Gate]) -> bool | None:
    """Return null where an assertion itself broke: it judged nothing."""
    gate = gates.get("assertions")
    if gate is not None and gate.failure_class == "infrastructure":
        return None
    return _gate(gates, "assertions")


def _metric(metrics: Mapping[str, Metric], name: str) -> bool | None:
    metric = metrics.get(name)
    if metric is None or not metric.denominator:
        return None
    return metric.numerator == metric.denominator
