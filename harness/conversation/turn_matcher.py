"""Matching for one task: answers that say the same are compared once.

Matching is a pure function of the script, the policy, the turn, its gold calls and
what the candidate's calls say. Driver and scorer both ask, and trials of a task often
answer alike; ids and the spelling of arguments change nothing. The key holds values
as canonical JSON, so that `1` and `1.0` are two answers here as everywhere.
"""

from __future__ import annotations

from typing import Final

from harness.canonical import canonical_json
from harness.conversation.matching import TurnMatch, has_text, match_turn
from harness.conversation.script import ConversationScript, ScriptedCall, ScriptedTurn
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import ToolCall
from harness.json_schema import ToolCatalog

MOST_KEPT: Final = 256
"""Different answers that are kept for one task; at the next one all are forgotten."""


class TurnMatcher:
    """`match_turn` for the turns of one task, with a memory of its verdicts."""

    def __init__(self, script: ConversationScript, catalog: ToolCatalog) -> None:
        self._script = script
        self._catalog = catalog
        self._policy: ScoringPolicy | None = None
        self._verdicts: dict[tuple[object, ...], TurnMatch] = {}

    def match(
        self,
        turn: ScriptedTurn,
        expected: tuple[ScriptedCall, ...],
        *,
        text: str | None,
        tool_calls: tuple[ToolCall, ...],
        incomplete: bool,
        policy: ScoringPolicy,
        issued_names: tuple[str, ...],
    ) -> TurnMatch:
        """Judge one answered turn of the task; the arguments are `match_turn`'s."""
        if policy is not self._policy or len(self._verdicts) == MOST_KEPT:
            self._policy = policy
            self._verdicts.clear()
        key = (
            turn.turn_index,
            incomplete,
            issued_names,
            tuple([_said(call) for call in tool_calls]),
            None
            if expected is turn.calls
            else canonical_json([call.arguments for call in expected]),
            None
            if turn.expects_calls
            else (has_text(text), text == turn.expected_assistant_content),
        )
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = match_turn(
                turn,
                expected,
                text=text,
                tool_calls=tool_calls,
                incomplete=incomplete,
                catalog=self._catalog,
                policy=policy,
                script=self._script,
                issued_names=issued_names,
            )
        return verdict


def _said(call: ToolCall) -> tuple[object, ...]:
    arguments = canonical_json(call.parsed_arguments)
    return call.type, call.function_name, call.arguments_status, arguments
