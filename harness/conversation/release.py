"""What a turn has earned: tool results and the next scripted user message.

A `Release` can only be made here, and only for a turn that equals its script and
whose calls carry usable ids. Each result is addressed to the id that the
candidate's own call carried. This is the `scripted` policy; an open one, where the
oracle's state decides, would be a second constructor beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from harness.conversation.matching import TurnMatch
from harness.conversation.script import ScriptedTurn
from harness.errors import ConversationError
from harness.evidence.episode import ToolCall

ResultProvenance = Literal["recorded_result", "live_result"]


class ReleasedResult(NamedTuple):
    """One tool message, addressed to the candidate's own call."""

    tool_call_id: str
    content: str
    """Canonical JSON text of the result."""


class Release(NamedTuple):
    """All that one advanced turn hands to the candidate."""

    turn_index: int
    provenance: ResultProvenance
    results: tuple[ReleasedResult, ...]
    user_message: str | None


def earn_release(
    turn: ScriptedTurn,
    match: TurnMatch,
    tool_calls: Sequence[ToolCall],
    contents: Sequence[str],
    provenance: ResultProvenance,
) -> Release:
    """Return what a matched turn has earned.

    `contents` holds one canonical-JSON result for each call of the candidate, in
    the candidate's order. Raises ConversationError for a turn that earned nothing.
    """
    identifiers = [call.id for call in tool_calls]
    usable = all(identifiers) and len(set(identifiers)) == len(identifiers)
    if not match.matched or not usable or len(contents) != len(identifiers):
        raise ConversationError(
            "eval_conversation_transition_invalid",
            "a turn asked for a release that it did not earn",
            where=f"turn {turn.turn_index}",
            expected="a matched turn with one result and one id for each call",
            actual=f"matched={match.matched}, ids={identifiers}, "
            f"results={len(contents)}",
            recovery="report this: the driver must not ask",
        )
    return Release(
        turn.turn_index,
        provenance,
        tuple(map(ReleasedResult, map(str, identifiers), contents)),
        turn.releases_user_message,
    )
