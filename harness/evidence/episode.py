"""What happened in one episode, whole: the only input that scoring has.

One record serves both modes. In trace mode `execution` is None and results are the
recorded ones; in executable mode it holds every execution, dependency, assertion
and snapshot (`spec/executable-evaluator.md` 3.5, 3.7, 3.9). Times, attempt numbers
and what a worker printed are diagnostics and stand outside every identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from harness.evidence.record_code import FieldRule
from harness.evidence.records import Record, RepeatedRecord

EPISODE_VERSION = "1.0"
CANDIDATE_VERSION = "1.0"

Scope = Literal["trace", "trace_and_executable"]
WireClass = Literal[
    "ok",
    "candidate_malformed",
    "truncated",
    "content_filter",
    "transport_retryable",
    "transport_fatal",
    "auth_fatal",
]
CallStatus = Literal[
    "completed",
    "malformed_response",
    "provider_rejected",
    "rate_limited",
    "timeout",
    "transport_error",
    "provider_unavailable",
    "authentication_failed",
    "cancelled",
    "retry_exhausted",
    "episode_deadline",
]
"""`episode_deadline`: the episode's budget ended before or during the request."""
ArgumentsStatus = Literal[
    "valid_object", "invalid_json", "json_not_object", "missing", "wrong_type"
]
EpisodeStatus = Literal[
    "completed",
    "candidate_mismatch",
    "malformed_response",
    "unusable_tool_call_ids",
    "confirmation_not_earned",
    "candidate_call_failed",
    "max_turns_exceeded",
    "episode_timeout",
    "oracle_reset_failed",
    "oracle_call_failed",
    "oracle_timeout",
    "oracle_result_malformed",
    "oracle_state_failed",
    "oracle_session_failed",
    "unknown_commit_state",
    "dependency_resolution_failed",
    "assertion_infrastructure_failed",
]
ExecutionStatus = Literal[
    "completed",
    "business_rejection",
    "malformed_result",
    "tool_error",
    "timeout",
    "infrastructure_error",
    "unknown_commit_state",
    "not_executed",
]
StateCommit = Literal[
    "not_started", "not_applicable", "committed", "not_committed", "unknown"
]
AssertionStatus = Literal["passed", "failed", "not_applicable", "infrastructure_error"]
DependencyStatus = Literal[
    "resolved",
    "producer_missing",
    "producer_ambiguous",
    "result_unavailable",
    "result_path_missing",
    "result_type_mismatch",
    "consumer_schema_invalid",
]
MAX_DURATION_S: Final = 1e9
"""Longest time of a record, in seconds; its milliseconds fit every table."""
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3,6})?Z"
)


def is_moment(text: str) -> bool:
    """Tell whether a text is a moment in UTC as records write it."""
    if _MOMENT.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_duration(seconds: float) -> bool:
    """Tell whether a number is a time that something can take, in seconds."""
    return 0.0 <= seconds <= MAX_DURATION_S


Moment = Annotated[str, FieldRule("a moment in UTC", is_moment)]
Seconds = Annotated[float, FieldRule("seconds from 0 to 1e9", is_duration)]
EventKind = Literal[
    "seed",
    "oracle_reset",
    "candidate_turn",
    "tool_execution",
    "tool_results",
    "user_turn",
    "state_snapshot",
    "assertions",
    "terminal",
]


@dataclass(frozen=True, slots=True)
class ToolCall(RepeatedRecord):
    """One tool call as the candidate made it."""

    index: int
    """Position in the message, from 0."""
    id: str | None
    type: str | None
    """As sent; null and absent both mean `function`."""
    function_name: str | None
    raw_arguments: Any
    """The argument text as sent; whatever stood there if it was no text."""
    parsed_arguments: dict[str, Any] | None
    arguments_status: ArgumentsStatus
    parse_code: str | None
    """The strict decoder's code when `arguments_status` is not `valid_object`."""


@dataclass(frozen=True, slots=True)
class CandidateResponse(Record):
    """One received completion, decoded once and never repaired."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {
            "provider_response_id",
            "provider_request_id",
            "served_model",
            "server",
            "usage",
            "selected_attempt",
            "raw_response_hash",
        }
    )

    provider_response_id: str | None
    provider_request_id: str | None
    served_model: str | None
    server: str | None
    """The `server` header and the system fingerprint, where the server tells."""
    message: dict[str, Any] | None
    """What the next request echoes: role, content and tool_calls as received."""
    text: str | None
    """The text of the message (`""` for none); None when none can be formed."""
    tool_calls: tuple[ToolCall, ...]
    """Well-formed and malformed calls alike, in array order."""
    finish_reason: str | None
    usage: dict[str, Any] | None
    selected_attempt: int
    raw_response_hash: str


@dataclass(frozen=True, slots=True)
class Attempt(Record):
    """One HTTP exchange, kept as the bytes came."""

    attempt_index: int
    observed_at: Moment
    status: CallStatus
    wire_class: WireClass
    detail_code: str | None
    """The fine reason of wire contract A4."""
    retryable: bool
    http_status: int | None
    latency_s: Seconds
    raw_response: str | None
    """The body where it holds what a candidate generated; None for other errors."""
    raw_response_encoding: Literal["utf-8", "base64"] | None
    raw_response_hash: str | None
    response_headers: dict[str, str]
    """The few headers that classification or companions read."""
    provider_request_id: str | None
    diagnostic: str | None
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class Outcome(Record):
    """How one candidate request ended, after its bounded retries."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {"attempt_count", "replayed", "detail"}
    )

    request_hash: str
    status: CallStatus
    wire_class: WireClass | None
    """None when no request was sent."""
    detail_code: str | None
    """The fine reason of wire contract A4; None for `ok`."""
    response: CandidateResponse | None
    attempt_count: int
    replayed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Execution(Record):
    """One proposed call in executable mode: run, refused or not reached."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"detail", "duration_s"})

    execution_index: int
    turn_index: int
    position_in_turn: int
    provider_call_index: int
    call_id: str | None
    function_name: str | None
    parsed_arguments: dict[str, Any] | None
    schema_valid: bool | None
    schema_failures: tuple[dict[str, Any], ...]
    status: ExecutionStatus
    state_commit: StateCommit
    state_before_hash: str | None
    state_after_hash: str | None
    result: Any
    result_hash: str | None
    released_to_model: bool
    malformed_result: Any
    malformed_result_type: str | None
    reason_code: str
    detail: str
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class DependencyOutcome(Record):
    """Whether one `from_result` argument found its live value."""

    dependency_index: int
    consumer_call_index: int
    consumer_turn_index: int
    producer_call_index: int
    status: DependencyStatus
    value: Any
    reason_code: str
    detail: str


@dataclass(frozen=True, slots=True)
class AssertionOutcome(Record):
    """The verdict of one success assertion."""

    assertion_index: int
    name: str
    category: str
    status: AssertionStatus
    reason_code: str
    detail: str


@dataclass(frozen=True, slots=True)
class ObservedTurn(Record):
    """One scripted turn that was asked, and what came of it."""

    turn_index: int
    request_hash: str
    call_status: CallStatus
    wire_class: WireClass | None
    detail_code: str | None
    response_hash: str | None
    finish_reason: str | None
    text: str | None
    tool_calls: tuple[ToolCall, ...]
    paired_call_indexes: tuple[int | None, ...]
    """For each call of the candidate the gold call it was paired with."""
    execution_indexes: tuple[int, ...]
    released_user_message_hash: str | None
    advanced: bool
    matched: bool | None
    """Whether the turn equals the script; None when it was not judged."""
    companions: tuple[str, ...]
    """Marks that are counted beside the score and never change it."""
    reason_code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Event(RepeatedRecord):
    """One step of the episode in the order in which it happened."""

    event_index: int
    kind: EventKind
    turn_index: int | None
    reason_code: str


@dataclass(frozen=True, slots=True)
class ExecutionEvidence(Record):
    """What only executable mode has."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"worker"})

    oracle_verification_identity: str
    task_spec_hash: str
    executions: tuple[Execution, ...]
    dependencies: tuple[DependencyOutcome, ...]
    assertions: tuple[AssertionOutcome, ...]
    final_state_hash: str | None
    worker: dict[str, Any]
    """Containment as applied, what the worker printed (capped), its end."""


@dataclass(frozen=True, slots=True)
class Episode(Record):
    """One candidate on one task, once."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        {"detail", "replayed", "attempt", "duration_s"}
    )

    schema_version: str
    scope: Scope
    candidate_alias: str
    canonical_model_identity: str
    task_id: str
    trial: int
    plan_identity: str
    source_verification_identity: str
    script_hash: str
    status: EpisodeStatus
    reason_code: str
    """`episode.<status>` or one of its finer forms (spec 3.9)."""
    cause_detail: str | None
    """What the cause table needs beside the status: the wire detail of a stop."""
    turns: tuple[ObservedTurn, ...]
    events: tuple[Event, ...]
    released_user_turns: int
    released_tool_results: int
    execution: ExecutionEvidence | None
    attempt: int
    """Which try of this episode it is, from 1; a resumed run starts the next."""
    replayed: bool
    duration_s: float | None
    detail: str
