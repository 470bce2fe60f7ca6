"""The candidate's prompt: nothing enters it without a provenance.

A prompt starts as the script's seed. After that only three things can be added: an
assistant turn that the candidate itself produced, and the results and the user
message of a `Release`. There is no general append. Messages leave the prompt by
`audited_messages` alone, which re-derives from the script and the evidence where
each of them came from, so no request can be built from an unaudited prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.conversation.release import Release
from harness.conversation.script import ConversationScript
from harness.errors import ConversationError
from harness.evidence.episode import CandidateResponse

Provenance = Literal[
    "seed", "candidate", "recorded_result", "live_result", "scripted_user"
]
_MESSAGE_KEYS = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}


@dataclass(frozen=True, slots=True)
class _Entry:
    message: dict[str, Any]
    provenance: Provenance
    turn_index: int
    """The turn that produced or released the message; -1 for the seed."""


class Prompt:
    """The messages of one conversation and where each came from."""

    def __init__(self, script: ConversationScript) -> None:
        self._script = script
        self._entries = [
            _Entry(message, "seed", -1) for message in script.seed_messages
        ]
        self._responses: dict[int, CandidateResponse] = {}
        self._releases: dict[int, Release] = {}

    def add_candidate_turn(self, turn_index: int, response: CandidateResponse) -> None:
        """Add an assistant turn exactly as the candidate sent it."""
        if turn_index in self._responses or response.message is None:
            raise self._refusal(turn_index, "one usable response for each turn")
        self._responses[turn_index] = response
        self._entries.append(_Entry(response.message, "candidate", turn_index))

    def add_release(self, release: Release) -> None:
        """Add the results and the user message that a turn has earned."""
        turn_index = release.turn_index
        if turn_index in self._releases or turn_index not in self._responses:
            raise self._refusal(turn_index, "one release after the turn's response")
        self._releases[turn_index] = release
        for result in release.results:
            message = {
                "role": "tool",
                "tool_call_id": result.tool_call_id,
                "content": result.content,
            }
            self._entries.append(_Entry(message, release.provenance, turn_index))
        if release.user_message is not None:
            message = {"role": "user", "content": release.user_message}
            self._entries.append(_Entry(message, "scripted_user", turn_index))

    def audited_messages(self) -> list[dict[str, Any]]:
        """Return the messages to send, after proving each one's provenance.

        Raises ConversationError `eval_conversation_answer_key_leak` for a message
        that nothing accounts for.
        """
        position = self._audit_seed()
        for turn_index in range(len(self._responses)):
            position = self._audit_turn(turn_index, position)
        if position != len(self._entries):
            raise self._leak(position)
        if self._entries[-1].provenance == "candidate":
            raise self._refusal(len(self._responses), "something to answer")
        return [entry.message for entry in self._entries]

    def _audit_seed(self) -> int:
        seed = self._script.seed_messages
        for position, message in enumerate(seed):
            self._audit_entry(position, message, "seed", -1)
        return len(seed)

    def _audit_turn(self, turn_index: int, position: int) -> int:
        response = self._responses[turn_index]
        turn = self._script.turns[turn_index]
        self._audit_entry(position, response.message, "candidate", turn_index)
        position += 1
        release = self._releases.get(turn_index)
        if release is None:
            return position
        own_ids = [call.id for call in response.tool_calls]
        if [result.tool_call_id for result in release.results] != own_ids:
            raise self._leak(position)
        for result in release.results:
            message = {
                "role": "tool",
                "tool_call_id": result.tool_call_id,
                "content": result.content,
            }
            self._audit_entry(position, message, release.provenance, turn_index)
            position += 1
        if release.user_message != turn.releases_user_message:
            raise self._leak(position)
        if release.user_message is not None:
            message = {"role": "user", "content": release.user_message}
            self._audit_entry(position, message, "scripted_user", turn_index)
            position += 1
        return position

    def _audit_entry(
        self,
        position: int,
        message: dict[str, Any] | None,
        provenance: Provenance,
        turn_index: int,
    ) -> None:
        if position >= len(self._entries):
            raise self._leak(position)
        entry = self._entries[position]
        keys = _MESSAGE_KEYS.get(entry.message.get("role", ""))
        if (
            entry.message != message
            or entry.provenance != provenance
            or entry.turn_index != turn_index
            or (keys is not None and entry.message.keys() != keys)
            or (provenance == "candidate") != (keys is None)
        ):
            raise self._leak(position)

    def _refusal(self, turn_index: int, expected: str) -> ConversationError:
        return ConversationError(
            "eval_conversation_transition_invalid",
            "the conversation was asked for a step that its script does not have",
            where=f"task {self._script.task_id}, turn {turn_index}",
            expected=expected,
            recovery="report this: the driver must not ask",
        )

    def _leak(self, position: int) -> ConversationError:
        return ConversationError(
            "eval_conversation_answer_key_leak",
            "the prompt holds a message that nothing accounts for",
            where=f"task {self._script.task_id}, messages[{position}]",
            expected="seed, candidate turns, earned results and scripted users only",
            recovery="report this: nothing was sent",
        )
