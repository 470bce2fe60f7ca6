"""Whose an ended episode is, under the policy's attribution profile.

`wire-1` follows the wire contract: the recorded status stands. `strict-002` re-books
the same evidence by spec 3.5: a 200 whose envelope is broken, oversized or offers
several choices is `malformed_response`, and so the candidate's. An episode holds the
last attempt of a request only, and a completion that the wire contract refused for
its finish reason holds no decoded message; what `strict-002` would make of those
cannot be known from an episode, so they stay stops.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.causes import CAUSES, Attribution, Cause, episode_cause
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import Episode, EpisodeStatus
from harness.scoring.first_response import BROKEN_200
from harness.scoring.refusal import evidence_mismatch


@dataclass(frozen=True, slots=True)
class Booking:
    """The end of an episode as the profile reads it."""

    status: EpisodeStatus
    cause: Cause
    rebooked: bool

    @property
    def is_stop(self) -> bool:
        """Whether the end belongs to another party than the candidate."""
        return self.cause.attribution is Attribution.INFRASTRUCTURE


def book(episode: Episode, policy: ScoringPolicy) -> Booking:
    """Return the booking of an episode; raise ScoringError for an unknown end."""
    if (
        policy.attribution == "strict-002"
        and episode.status == "candidate_call_failed"
        and episode.cause_detail in BROKEN_200
    ):
        cause = CAUSES["episode.malformed_response"]
        return Booking("malformed_response", cause, rebooked=True)
    try:
        cause = episode_cause(episode.status, episode.reason_code, episode.cause_detail)
    except KeyError as error:
        raise evidence_mismatch(
            episode.scope,
            "an episode ends for a reason that the cause table does not have",
            where=f"task {episode.task_id}, trial {episode.trial}",
            expected="a row of the cause table",
            actual=str(error),
        ) from None
    return Booking(episode.status, cause, rebooked=False)
