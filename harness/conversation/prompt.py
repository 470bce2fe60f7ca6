"""The candidate's prompt: nothing enters it without a provenance.

A prompt starts as the script's seed. After that only three things can be added: an
assistant turn that the candidate itself produced, and the results and the user
message of a `Release`. There is no general append. Messages leave the prompt by
`audited_messages` alone, which re-derives from the script and the evidence where
each of them came from, so no request can be built from an unaudited prompt.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Final, Literal

from harness.conversation.release import Release
from harness.conversation.script import ConversationScript
from harness.errors import ConversationError
from harness.evidence.episode import CandidateResponse

Provenance = Literal[
    "seed", "candidate", "recorded_result", "live_result", "scripted_user"
]
_SEED_KEYS: Final = frozenset({"role", "content"})
_SEED_ROLES: Final = frozenset({"system", "user"})
_ROLES_OF_OTHERS: Final = frozenset({"system", "user", "tool"})
"""Roles in which a candidate does not speak."""
_Entry = tuple[dict[str, Any], Provenance, int]
"""A message, where it came from, and the turn that produced or released it; the turn
is -1 for the seed."""


class Prompt:
    """The messages of one conversation and where each came from."""

    def __init__(self, script: ConversationScript) -> None:
        self._script = script
        self._entries: list[_Entry] = [
            (message, "seed", -1) for message in script.seed_messages
        ]
        self._responses: dict[int, CandidateResponse] = {}
        self._releases: dict[int, Release] = {}

    def add_candidate_turn(self, turn_index: int, response: CandidateResponse) -> None:
        """Add an assistant turn exactly as the candidate sent it."""
        if turn_index in self._responses or response.message is None:
            raise self._refusal(turn_index, "one usable response for each turn")
        self._responses[turn_index] = response
        self._entries.append((response.message, "candidate", turn_index))

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
            self._entries.append((message, release.provenance, turn_index))
        if release.user_message is not None:
            message = {"role": "user", "content": release.user_message}
            self._entries.append((message, "scripted_user", turn_index))

    def audited_messages(self) -> list[dict[str, Any]]:
        """Return the messages to send, after proving each one's provenance.

        Raises ConversationError `eval_conversation_answer_key_leak` for a message
        that nothing accounts for.
        """
        entries = self._entries
        accounted: list[_Entry] = []
        for message in self._script.seed_messages:
            if message.keys() != _SEED_KEYS or message["role"] not in _SEED_ROLES:
                raise self._leak(len(accounted))
            accounted.append((message, "seed", -1))
        for turn_index in range(len(self._responses)):
            self._account_turn(turn_index, accounted)
        if entries != accounted:
            pairs = zip(entries, accounted, strict=False)
            same = takewhile(lambda pair: pair[0] == pair[1], pairs)
            raise self._leak(sum(1 for _ in same))
        if entries[-1][1] == "candidate":
            raise self._refusal(len(self._responses), "something to answer")
        return [message for message, _, _ in entries]

    def _account_turn(self, turn_index: int, accounted: list[_Entry]) -> None:
        """Add what the evidence of one turn and its script account for."""
        response = self._responses[turn_index]
        said = response.message
        if said is None or said.get("role") in _ROLES_OF_OTHERS:
            raise self._leak(len(accounted))
        accounted.append((said, "candidate", turn_index))
        release = self._releases.get(turn_index)
        if release is None:
            return
        calls, results = response.tool_calls, release.results
        if len(calls) != len(results):
            raise self._leak(len(accounted))
        provenance = release.provenance
        for call, result in zip(calls, results, strict=True):
            message = {
                "role": "tool",
                "tool_call_id": call.id,
                "content": result.content,
            }
            accounted.append((message, provenance, turn_index))
        spoken = self._script.turns[turn_index].releases_user_message
        if spoken is not None:
            message = {"role": "user", "content": spoken}
            accounted.append((message, "scripted_user", turn_index))

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
