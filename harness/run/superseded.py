"""Which episode may be held again: one that nobody has judged.

A resumed run holds an episode again where it stopped for a reason that is not the
candidate's, where its worker was killed from outside, or where a power cut took the
end of the candidate log, so that it is not known any more how its requests ended.
A judged episode that the log of traffic still backs stands. Where two of them are
recorded for one planned episode, they have to have come out alike: the later one
would replace a verdict that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from harness.causes import is_non_candidate_stop
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CandidateRecords
from harness.evidence.episode import Episode
from harness.evidence.episode_log import EPISODE_LOG


def check_superseded(episodes: Sequence[Episode], requests: CandidateRecords) -> None:
    """Refuse another verdict in the place of one that stands (EvidenceError).

    `episodes` are the completed attempts of one planned episode in their order.
    """
    stand = [each for each in episodes if _stands(each, requests)]
    for earlier, later in pairwise(stand):
        if _verdict(earlier) != _verdict(later):
            raise EvidenceError(
                EPISODE_LOG.conflict_code,
                "an episode that was judged was held again, and another verdict counts",
                where=f"{EPISODE_LOG.file_name}, candidate {later.candidate_alias}, "
                f"task {later.task_id}, trial {later.trial}",
                expected=f"attempt {earlier.attempt} alone: {earlier.reason_code}",
                actual=f"attempt {later.attempt} as well: {later.reason_code}",
                recovery="do not use the run, or bring back an intact copy of its "
                "folder",
            )


def was_killed(episode: Episode) -> bool:
    """Tell whether somebody killed the worker of an episode."""
    if episode.execution is None:
        return False
    ended = episode.execution.worker.get("ended")
    return isinstance(ended, dict) and ended.get("killed") is True


def _stands(episode: Episode, requests: CandidateRecords) -> bool:
    if is_non_candidate_stop(episode.status) or was_killed(episode):
        return False
    for turn in episode.turns:
        outcome = requests.outcome_of(turn.request_hash)
        if outcome is None or outcome.status != turn.call_status:
            return False
        response = outcome.response
        known = None if response is None else response.identity_hash()
        if known != turn.response_hash:
            return False
    return True


def _verdict(episode: Episode) -> tuple[object, ...]:
    assertions = () if episode.execution is None else episode.execution.assertions
    return (
        episode.status,
        episode.reason_code,
        [turn.matched for turn in episode.turns],
        [each.status for each in assertions],
    )
