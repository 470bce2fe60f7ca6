"""The failure list of an episode and the taxonomy that its codes come from.

One record `episode.<status>` stands for an incomplete episode, then one for each
failed gate (spec 3.14). The taxonomy's hash is cited by report and manifest, so a
reader can tell that two runs mean the same by the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from harness.canonical import content_hash
from harness.causes import CAUSES, is_non_candidate_stop
from harness.evidence.episode import EpisodeStatus
from harness.scoring.booking import Booking
from harness.scoring.metric import NOT_APPLICABLE_CODES
from harness.scoring.records import FailureRecord, Gate

TAXONOMY_VERSION: Final = "1.0"

REASON_NAMESPACES: Final = (
    "arguments",
    "assertion",
    "assertions",
    "call_grouping",
    "call_ordering",
    "candidate",
    "commit_state",
    "commit_state_known",
    "conversation",
    "dependency",
    "dependency_resolution",
    "episode",
    "executable",
    "executable_completion",
    "metric",
    "oracle",
    "oracle_execution",
    "schema_valid",
    "text_turn",
    "tool_execution",
    "tool_selection",
    "trace",
    "trace_completion",
    "turn",
)
"""What may stand before the first dot of a reason code."""

TRACE_STATUSES: Final = (
    "completed",
    "candidate_mismatch",
    "malformed_response",
    "candidate_call_failed",
    "unusable_tool_call_ids",
    "max_turns_exceeded",
    "episode_timeout",
)
"""Statuses that an episode can end with in trace mode (spec 3.7)."""


def failure_records(
    booking: Booking, gates: Iterable[Gate]
) -> tuple[FailureRecord, ...]:
    """Return why an episode is no success; () for a success."""
    records = []
    if booking.status != "completed":
        records.append(
            FailureRecord(
                "episode",
                f"episode.{booking.status}",
                status_attribution(booking.status),
                "episode",
            )
        )
    records += [
        FailureRecord("gate", gate.reason_code, gate.failure_class, gate.gate)
        for gate in gates
        if gate.failure_class is not None
    ]
    return tuple(records)


def status_attribution(
    status: EpisodeStatus,
) -> Literal["success", "candidate", "infrastructure"]:
    """Return `success`, `candidate` or `infrastructure` for an episode status."""
    if status == "completed":
        return "success"
    return "infrastructure" if is_non_candidate_stop(status) else "candidate"


def _taxonomy() -> dict[str, object]:
    statuses: tuple[EpisodeStatus, ...] = get_args(EpisodeStatus)
    return {
        "version": TAXONOMY_VERSION,
        "trace_statuses": {
            status: status_attribution(status)
            for status in statuses
            if status in TRACE_STATUSES
        },
        "executable_statuses": {
            status: status_attribution(status) for status in statuses
        },
        "causes": {
            cause.code: [cause.level, cause.owner.value, cause.attribution.value]
            for cause in CAUSES.values()
        },
        "not_applicable_codes": sorted(NOT_APPLICABLE_CODES),
        "reason_namespaces": list(REASON_NAMESPACES),
    }


ERROR_TAXONOMY_HASH: Final = content_hash(_taxonomy())
"""Identity of all status maps, fatal codes, N/A codes and namespaces."""
