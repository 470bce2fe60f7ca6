"""The ledger cells that injected faults have to land in.

Written out here by hand, from the contract and not from the cause table: the drill
compares what a run booked with these rows, so a wrong row of the table shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOBODY: Final = "nobody"
"""Owns an episode that succeeded and a fault that a retry or a resume cured."""
OWNERS: Final = (
    "candidate",
    "provider",
    "transport",
    "driver",
    "oracle",
    "assertion",
    "pack",
    "operator",
    NOBODY,
)
"""Rows and columns of the confusion matrix."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the ledger."""

    status: str
    """The episode's status; `run` for what stops a whole run."""
    cause: str
    """The row of the cause table."""
    owner: str

    def as_text(self) -> str:
        """Return the cell in words."""
        return f"{self.owner}: {self.cause} ({self.status})"


def _call_failed(detail: str, owner: str) -> Cell:
    cause = f"episode.candidate_call_failed.{detail}"
    return Cell("candidate_call_failed", cause, owner)


def _ended(status: str, owner: str) -> Cell:
    return Cell(status, f"episode.{status}", owner)


SUCCESS: Final = Cell("completed", "episode.completed", NOBODY)
"""An untouched episode, and one whose fault was cured."""

TIMEOUT: Final = _call_failed("timeout", "transport")
TRANSPORT_ERROR: Final = _call_failed("transport_error", "transport")

RATE_LIMITED: Final = _call_failed("rate_limited", "provider")
UNAVAILABLE: Final = _call_failed("provider_unavailable", "provider")
ENVELOPE: Final = _call_failed("envelope_malformed", "provider")
ABORTED: Final = _call_failed("generation_aborted", "provider")
QUOTA: Final = _call_failed("quota_exhausted", "provider")
CONTEXT: Final = _call_failed("context_length", "provider")
OVERSIZE: Final = _call_failed("oversize_body", "provider")
CHOICES: Final = _call_failed("multiple_choices", "provider")
FINISH_REASON: Final = _call_failed("unknown_finish_reason", "provider")
REJECTED: Final = _call_failed("provider_rejected", "provider")
PROMPT_FILTER: Final = _call_failed("content_filter_prompt", "provider")
ECHOED_KEY: Final = _call_failed("credential_echoed", "provider")

MALFORMED: Final = _ended("malformed_response", "candidate")
BAD_IDS: Final = _ended("unusable_tool_call_ids", "candidate")
MISMATCH: Final = _ended("candidate_mismatch", "candidate")
INCOMPLETE: Final = Cell("candidate_mismatch", "episode.incomplete_finish", "candidate")

EPISODE_TIMEOUT: Final = _ended("episode_timeout", "driver")

RESET: Final = _ended("oracle_reset_failed", "oracle")
CALL: Final = _ended("oracle_call_failed", "oracle")
CALL_TIMEOUT: Final = _ended("oracle_timeout", "oracle")
RESULT: Final = _ended("oracle_result_malformed", "oracle")
STATE: Final = _ended("oracle_state_failed", "oracle")
CLOSE: Final = _ended("oracle_session_failed", "oracle")
UNKNOWN_COMMIT: Final = _ended("unknown_commit_state", "oracle")
ASSERTION: Final = _ended("assertion_infrastructure_failed", "assertion")
DEPENDENCY: Final = _ended("dependency_resolution_failed", "pack")

STOP_LIMIT: Final = Cell("run", "eval_candidate_stop_limit", "provider")
KEY_REFUSED: Final = Cell("run", "eval_candidate_authentication_failed", "provider")
PACK_REFUSED: Final = Cell("run", "eval_source_oracle_resource_mismatch", "operator")
CANDIDATE_LOG: Final = Cell("run", "eval_candidate_cache_invalid", "operator")
EPISODE_LOG: Final = Cell("run", "eval_tool_trace_cache_invalid", "operator")
RESUMED: Final = Cell("run", "resumed", NOBODY)
"""A torn log: the run goes on and comes out with the hashes that it had."""
