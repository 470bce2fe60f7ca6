"""Why an episode is over: one value, made in one place for each kind of end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.evidence.episode import EpisodeStatus, Outcome


@dataclass(frozen=True, slots=True)
class End:
    """The terminal status of an episode with its reason."""

    status: EpisodeStatus
    reason_code: str
    detail: str = ""
    cause_detail: str | None = None
    """The wire detail of a failed candidate call, for the cause table."""


COMPLETED: Final = End("completed", "episode.completed")


def ended(status: EpisodeStatus, detail: str = "") -> End:
    """Return the end whose reason is the plain one of its status (spec 3.9)."""
    reason = "episode.timeout" if status == "episode_timeout" else f"episode.{status}"
    return End(status, reason, detail)


def unanswered(outcome: Outcome) -> End | None:
    """Return the end that a request without a usable message means, if it is one."""
    if outcome.status == "completed":
        return None
    if outcome.status == "episode_deadline":
        return ended("episode_timeout", outcome.detail)
    if outcome.status == "malformed_response":
        return ended("malformed_response", outcome.detail)
    return End(
        "candidate_call_failed",
        f"episode.candidate_call_failed.{outcome.detail_code}",
        outcome.detail,
        outcome.detail_code,
    )


def unless_ended(end: End, later: End | None) -> End:
    """Let a late oracle failure end an episode that nothing else has ended."""
    return end if later is None or end.status != "completed" else later
