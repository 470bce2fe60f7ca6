"""Whether an executed episode ended as its own parts say.

How far a status lets the script be walked is for scoring to check. Here each end is
held to what brings it about: the last answer as the candidate log has it, the calls of
the last turn as they came out, the final state and the assertions. The events are
written in one way for one course of an episode, so they are written again. A close
that failed leaves no trace but its words, and nothing contradicts a reset that failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.conversation.ending import COMPLETED, End, ended, unanswered
from harness.conversation.script import ConversationScript, ScriptedTurn
from harness.evidence.episode import (
    Episode,
    EpisodeStatus,
    EventKind,
    Execution,
    ExecutionEvidence,
    ExecutionStatus,
    ObservedTurn,
    Outcome,
)
from harness.scoring.executable import ORACLE_DEAD

_UNEARNED: Final = "tool_execution.confirmation_not_earned"
_NO_IDS: Final = "unusable_tool_call_ids"
_CUT: Final = ("truncated", "content_filter")
_ENDS: Final[dict[ExecutionStatus, tuple[EpisodeStatus, ...]]] = {
    "tool_error": ("oracle_call_failed",),
    "infrastructure_error": ("oracle_call_failed",),
    "malformed_result": ("oracle_result_malformed",),
    "timeout": ("oracle_timeout", "episode_timeout"),
    "unknown_commit_state": ("unknown_commit_state",),
}
"""How an episode may end with a call that came out so; with all others it goes on."""
Course = tuple[EventKind, int | None, str]
"""An event without its number: kind, turn, reason."""


def possible_ends(
    episode: Episode, outcomes: Sequence[Outcome], scripted: int
) -> tuple[End, ...]:
    """Return the ends to which the evidence of an episode can lead.

    `outcomes` are those of its turns, `scripted` the number of turns of its script.
    """
    evidence = episode.execution
    if evidence is None:
        return ()
    ends = _ends_of_turns(episode, evidence, outcomes, scripted)
    if ends is not None:
        return ends
    if evidence.final_state_hash is None:
        return (ended("oracle_state_failed"),)
    if any(each.status == "infrastructure_error" for each in evidence.assertions):
        return (ended("assertion_infrastructure_failed"),)
    return (COMPLETED, ended("oracle_session_failed"))


def _ends_of_turns(
    episode: Episode,
    evidence: ExecutionEvidence,
    outcomes: Sequence[Outcome],
    scripted: int,
) -> tuple[End, ...] | None:
    """Return how the turns ended the episode; None where all were taken."""
    for dependency in evidence.dependencies:
        if dependency.status != "resolved":
            reason = f"episode.dependency.{dependency.status}"
            return (End("dependency_resolution_failed", reason),)
    if not episode.turns:
        return (ended("oracle_reset_failed"),)
    last, outcome = episode.turns[-1], outcomes[-1]
    if last.advanced:
        return (
            None if len(episode.turns) == scripted else (ended("max_turns_exceeded"),)
        )
    failed = unanswered(outcome)
    if failed is not None:
        return (failed,)
    if outcome.detail_code == _NO_IDS:
        return (ended(_NO_IDS),)
    if outcome.wire_class in _CUT:
        return (End("candidate_mismatch", "episode.incomplete_finish"),)
    calls = [evidence.executions[index] for index in last.execution_indexes]
    return tuple(map(ended, _end_of_calls(calls) or ("candidate_mismatch",)))


def _end_of_calls(calls: Sequence[Execution]) -> tuple[EpisodeStatus, ...]:
    for call in calls:
        if call.status in _ENDS:
            return _ENDS[call.status]
        if call.reason_code == _UNEARNED:
            return ("confirmation_not_earned",)
    return ()


def is_told_whole(episode: Episode, declared: int) -> bool:
    """Tell whether state and assertions were told as far as the status says.

    Nothing is asked of an oracle that failed; one that did not, is asked everything.
    `declared` is the number of the task's assertions.
    """
    evidence = episode.execution
    if evidence is None:
        return True
    if episode.status in ORACLE_DEAD:
        return evidence.final_state_hash is None and not evidence.assertions
    if episode.status in (COMPLETED.status, "oracle_session_failed"):
        return len(evidence.assertions) == declared
    return True


def course(
    episode: Episode, outcomes: Sequence[Outcome], script: ConversationScript
) -> Iterator[Course]:
    """Yield the events that the driver notes of such an episode, in order."""
    yield "seed", None, "episode.answer_free_seed"
    if episode.status != "oracle_reset_failed":
        yield "oracle_reset", None, "oracle.reset.completed"
    for index, (turn, outcome) in enumerate(zip(episode.turns, outcomes, strict=True)):
        before = index - 1
        if index and episode.turns[before].tool_calls:
            yield "tool_results", before, "conversation.live_results_released"
        if index and script.turns[before].releases_user_message is not None:
            yield "user_turn", before, "conversation.scripted_user_released"
        yield "candidate_turn", index, "candidate.turn.completed"
        if (
            turn.tool_calls
            and outcome.status == "completed"
            and outcome.detail_code != _NO_IDS
            and outcome.wire_class not in _CUT
        ):
            yield "tool_execution", index, "tool.execution.completed"
    yield "state_snapshot", None, "oracle.final_state_recorded"
    yield "assertions", None, "assertions.completed"
    yield "terminal", None, episode.reason_code


def turn_reason(turn: ObservedTurn, scripted: ScriptedTurn) -> str:
    """Return the reason that the driver gives a turn."""
    if turn.advanced:
        return "turn.terminal" if scripted.is_terminal else "turn.advanced"
    if turn.call_status != "completed":
        return f"turn.{turn.call_status}"
    cut = turn.wire_class in _CUT and turn.detail_code != _NO_IDS
    return "turn.incomplete_finish" if cut else "turn.observed"
