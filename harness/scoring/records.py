"""What a score is made of (spec 3.11 to 3.14).

A `TaskScore` is a pure projection of one episode under one policy. It holds no
clock reading and no free text that enters its hash: `score_hash` drops every own
`detail` and `order_detail`. Executions, dependencies and assertions are not copied
into it, since `episode_hash` commits to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import ArgumentsStatus, CallStatus, EpisodeStatus, Scope
from harness.evidence.records import Record, RepeatedRecord
from harness.scoring.metric import Metric

TASK_SCORE_VERSION = "1.0"

GateName = Literal[
    "tool_selection",
    "arguments",
    "schema_valid",
    "call_grouping",
    "call_ordering",
    "text_turn",
    "trace_completion",
    "oracle_execution",
    "dependency_resolution",
    "commit_state_known",
    "assertions",
    "executable_completion",
]
GateOutcome = Literal["passed", "failed", "not_applicable"]
FailureClass = Literal["candidate", "infrastructure"]
TaskCompanion = Literal[
    "suspected_call_markup",
    "suspected_truncation",
    "serving_parse_loss",
    "arguments_empty",
    "stops_after_mismatch",
]


@dataclass(frozen=True, slots=True)
class Gate(RepeatedRecord):
    """One gate's verdict, with where to look when it failed."""

    gate: GateName
    outcome: GateOutcome
    reason_code: str
    failure_class: FailureClass | None
    """Whose the failure is; None unless the gate failed."""
    turn_index: int | None
    execution_index: int | None
    assertion_index: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class ScoredCall(Record):
    """One call of the candidate with its verdict."""

    turn_index: int
    position_in_turn: int
    gold_call_index: int | None
    gold_function_name: str | None
    predicted_function_name: str | None
    predicted_type: str | None
    arguments_status: ArgumentsStatus
    name_matched: bool
    arguments_matched: bool
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    differing: tuple[str, ...]
    schema_failures: tuple[dict[str, Any], ...]
    detail: str


@dataclass(frozen=True, slots=True)
class ScoredTurn(Record):
    """One asked turn with its verdict; None where a question does not apply."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"detail", "order_detail"})

    turn_index: int
    kind: Literal["tool_calls", "text"]
    call_status: CallStatus
    advanced: bool
    finish_reason: str | None
    calls: tuple[ScoredCall, ...]
    group_size_matched: bool | None
    text_matched: bool | None
    order_respected: bool | None
    order_detail: str
    detail: str


@dataclass(frozen=True, slots=True)
class FailureRecord(Record):
    """Why an episode is no success: one line of the failure list (spec 3.14)."""

    layer: Literal["gate", "episode", "setup"]
    code: str
    attribution: Literal[
        "success",
        "candidate",
        "infrastructure",
        "evidence",
        "fatal_setup",
        "not_applicable",
    ]
    subject: str


@dataclass(frozen=True, slots=True)
class TaskScore(Record):
    """The verdict on one episode: one candidate, one task, one trial."""

    schema_version: str
    scope: Scope
    task_id: str
    trial: int
    candidate_alias: str
    canonical_model_identity: str
    plan_identity: str
    eval_config_hash: str
    scoring_policy_hash: str
    scoring_contract_hash: str
    scoring_policy: ScoringPolicy
    source_verification_identity: str
    oracle_verification_identity: str | None
    task_spec_hash: str | None
    script_hash: str
    episode_hash: str
    episode_status: EpisodeStatus
    """As recorded."""
    booked_status: EpisodeStatus
    """As the attribution profile reads it; differs only under `strict-002`."""
    cause: str
    """The row of the cause table that the booked status means."""
    non_candidate_stop: bool
    expected_calls: int
    observed_calls: int
    matched_calls: int
    attempted_calls: int
    successful_executions: int
    expected_dependencies: int
    required_assertions: int
    turns: tuple[ScoredTurn, ...]
    gates: tuple[Gate, ...]
    metrics: tuple[Metric, ...]
    task_success: bool
    failure_records: tuple[FailureRecord, ...]
    companions: tuple[TaskCompanion, ...]
    """Marks that are counted beside the score and never change it."""
    detail: str

    @property
    def score_hash(self) -> str:
        """The identity of this score."""
        return self.identity_hash()

    @property
    def failure_codes(self) -> tuple[str, ...]:
        """The codes of all failure records, in order."""
        return tuple(record.code for record in self.failure_records)

    def gate(self, name: GateName) -> Gate:
        """Return one gate; raise KeyError where the scope does not have it."""
        for gate in self.gates:
            if gate.gate == name:
                return gate
        raise KeyError(name)
