"""What a resumed run asks of a candidate: only what was not received before."""

from __future__ import annotations

from dataclasses import dataclass

from harness.candidates.candidate import Candidate
from harness.candidates.recovery import recovered_outcome
from harness.candidates.request import PreparedRequest
from harness.causes import CAUSES, is_non_candidate_stop
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.episode import Episode, Outcome
from harness.evidence.episode_log import EpisodeLog
from harness.evidence.traffic_order import is_completion


@dataclass(frozen=True, slots=True)
class ResumingCandidate:
    """Serves what was received before and asks only for what was not."""

    live: Candidate
    log: CandidateLog
    echo_reasoning: bool
    """Whether the endpoint's answers are echoed with their reasoning."""
    gave_up: bool = False
    """Whether the run was given up before, so that every stop is asked again."""

    async def exchange(self, request: PreparedRequest, *, deadline: float) -> Outcome:
        """Return the recorded completion, else the outcome of a live exchange."""
        known = self.known(request)
        if known is not None:
            return known
        return await self.live.exchange(request, deadline=deadline)

    def known(self, request: PreparedRequest) -> Outcome | None:
        """Return the outcome of a request that is not to be sent again, else None."""
        if not self.log.knows(request.request_hash):
            return None
        known = self.log.outcome_of(request.request_hash)
        if known is not None and is_completion(known):
            return known
        # What was received when a stop was asked again comes before that stop.
        received = recovered_outcome(
            request.request_hash,
            self.log.attempts_of(request.request_hash),
            echo_reasoning=self.echo_reasoning,
        )
        if received is not None:
            self.log.outcome(received)
            return received
        return None if known is None or self._may_be_asked_again(known) else known

    def backs(self, episode: Episode) -> bool:
        """Tell whether the log still says how every request of an episode ended.

        A power cut may take the end of this log and leave the episode log whole.
        """
        for turn in episode.turns:
            outcome = self.log.outcome_of(turn.request_hash)
            if outcome is None or outcome.status != turn.call_status:
                return False
        return True

    def _may_be_asked_again(self, outcome: Outcome) -> bool:
        cause = CAUSES.get(f"episode.candidate_call_failed.{outcome.detail_code}")
        return self.gave_up or cause is None or cause.retried == "request"


def stops_recorded(log: CandidateLog, episodes: EpisodeLog | None) -> int:
    """Count the episodes that stand as non-candidate stops, in a run not finished."""
    if episodes is None:
        return log.failures()
    return sum(is_non_candidate_stop(each.status) for each in episodes.newest())
