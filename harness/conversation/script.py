"""A published row as the conversation that it scripts.

Leading `system` messages and the first `user` message are the **seed**. Each
`assistant` message after it is one scripted turn: either a group of calls or a
text. A `user` message belongs to the turn before it and is released by that turn.
The last turn is terminal and releases nothing (`spec/executable-evaluator.md` 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.canonical import Json, canonical_json, json_equal
from harness.errors import ConversationError
from harness.evidence.records import Record
from harness.strict_json import StrictJsonError, decode, decode_object

SCRIPT_VERSION = "1.0"
CallOrder = Literal["strict", "any", "prefix"]


@dataclass(frozen=True, slots=True)
class ScriptedCall(Record):
    """One gold call."""

    call_index: int
    """Position among all gold calls of the task, from 0."""
    position_in_group: int
    function_name: str
    arguments: dict[str, Any]
    recorded_result: str | None
    """Canonical JSON of the gold run's result; None where a live oracle answers."""


@dataclass(frozen=True, slots=True)
class ScriptedTurn(Record):
    """One assistant turn: calls or text, never both."""

    turn_index: int
    user_turn_index: int
    call_group: int | None
    calls: tuple[ScriptedCall, ...]
    expected_assistant_content: str | None
    releases_user_message: str | None
    is_terminal: bool

    @property
    def expects_calls(self) -> bool:
        """Tell a call turn from a text turn."""
        return bool(self.calls)


@dataclass(frozen=True, slots=True)
class ConversationScript(Record):
    """All that the driver needs to hold one conversation, gold included."""

    schema_version: str
    task_id: str
    source_verification_identity: str
    seed_messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    turns: tuple[ScriptedTurn, ...]
    user_turns: tuple[str, ...]
    required_tools: tuple[str, ...]
    call_order: CallOrder
    call_order_prefix: int | None

    @property
    def gold_calls(self) -> tuple[ScriptedCall, ...]:
        """All gold calls in issue order."""
        return tuple(call for turn in self.turns for call in turn.calls)


def script_from_row(
    row: dict[str, Json], source_verification_identity: str
) -> ConversationScript:
    """Read a published row (31 columns as plain JSON) as a script.

    Raises ConversationError (`eval_conversation_script_invalid`) where `messages`
    and `expected_tool_calls` disagree or the conversation breaks the reading rule.
    """
    reader = _Reader(row)
    turns = reader.turns()
    return ConversationScript(
        schema_version=SCRIPT_VERSION,
        task_id=row["task_id"],
        source_verification_identity=source_verification_identity,
        seed_messages=tuple(reader.seed),
        tools=tuple(row["tools"]),
        turns=turns,
        user_turns=tuple(
            message["content"]
            for message in row["messages"]
            if message["role"] == "user"
        ),
        required_tools=tuple(row["required_tools"]),
        call_order=row["call_order"],
        call_order_prefix=row["call_order_prefix"],
    )


class _Reader:
    """Walks the messages of one row; knows the row for its refusals."""

    def __init__(self, row: dict[str, Json]) -> None:
        self.row = row
        messages = row["messages"]
        first_user = next(
            (i for i, m in enumerate(messages) if m["role"] != "system"), None
        )
        if first_user is None or messages[first_user]["role"] != "user":
            raise self.refusal(0, "system messages and then a user message")
        self.seed = [
            {"role": m["role"], "content": m["content"]}
            for m in messages[: first_user + 1]
        ]
        self.messages = messages
        self.position = first_user + 1
        self.issued = 0
        self.groups = 0
        self.user_turn_index = 0

    def refusal(self, position: int, expected: str) -> ConversationError:
        """Build the one error of this module."""
        actual = "the end of the conversation"
        if position < len(self.row["messages"]):
            actual = canonical_json(self.row["messages"][position])[:200]
        return ConversationError(
            "eval_conversation_script_invalid",
            "a published row does not read as a scripted conversation",
            where=f"task {self.row['task_id']}, messages[{position}]",
            expected=expected,
            actual=actual,
            recovery="publish the pack again with a conforming generator",
        )

    def turns(self) -> tuple[ScriptedTurn, ...]:
        turns: list[ScriptedTurn] = []
        while self.position < len(self.messages):
            turns.append(self.turn(len(turns)))
        if not turns:
            raise self.refusal(self.position, "at least one assistant message")
        if turns[-1].releases_user_message is not None:
            raise self.refusal(
                len(self.messages) - 1, "an assistant message after the last user"
            )
        if self.issued != len(self.row["expected_tool_calls"]):
            raise self.refusal(
                self.position,
                f"{len(self.row['expected_tool_calls'])} calls as in "
                "expected_tool_calls",
            )
        turns[-1] = replace(turns[-1], is_terminal=True)
        return tuple(turns)

    def turn(self, turn_index: int) -> ScriptedTurn:
        position = self.position
        message = self.messages[position]
        if message["role"] != "assistant":
            raise self.refusal(position, "an assistant message")
        self.position += 1
        calls: tuple[ScriptedCall, ...] = ()
        group = None
        content = None
        if message.get("tool_calls"):
            calls = self.calls(message["tool_calls"], turn_index)
            group = self.groups
            self.groups += 1
        else:
            content = message["content"]
            if not isinstance(content, str) or not content.strip():
                raise self.refusal(position, "an assistant message with text or calls")
        user_turn_index = self.user_turn_index
        return ScriptedTurn(
            turn_index,
            user_turn_index,
            group,
            calls,
            content,
            self.released_user_message(),
            is_terminal=False,
        )

    def calls(
        self, tool_calls: list[Json], turn_index: int
    ) -> tuple[ScriptedCall, ...]:
        expected = self.row["expected_tool_calls"]
        calls = []
        for position, tool_call in enumerate(tool_calls):
            call_index = self.issued
            name = tool_call["function"]["name"]
            try:
                arguments = decode_object(tool_call["function"]["arguments"])
            except StrictJsonError as error:
                raise self.refusal(
                    self.position - 1, f"arguments as a strict JSON object ({error})"
                ) from None
            gold = expected[call_index] if call_index < len(expected) else None
            if gold is None or not _agrees(
                gold, turn_index, self.groups, position, name, arguments
            ):
                raise self.refusal(
                    self.position - 1, f"the call of expected_tool_calls[{call_index}]"
                )
            calls.append(
                ScriptedCall(
                    call_index, position, name, arguments, self.result(tool_call["id"])
                )
            )
            self.issued += 1
        return tuple(calls)

    def result(self, call_id: str) -> str:
        position = self.position
        if position >= len(self.messages):
            raise self.refusal(position, f"the tool message of call {call_id}")
        message = self.messages[position]
        if message["role"] != "tool" or message["tool_call_id"] != call_id:
            raise self.refusal(position, f"the tool message of call {call_id}")
        self.position += 1
        content: str = message["content"]
        return content

    def released_user_message(self) -> str | None:
        if self.position >= len(self.messages):
            return None
        message = self.messages[self.position]
        if message["role"] != "user":
            return None
        self.position += 1
        self.user_turn_index += 1
        content: str = message["content"]
        return content


def _agrees(
    gold: dict[str, Json],
    turn_index: int,
    group: int,
    position: int,
    name: str,
    arguments: dict[str, Json],
) -> bool:
    stated = {key: decode(text) for key, text in gold["arguments"].items()}
    return (
        gold["turn_index"] == turn_index
        and gold["call_group"] == group
        and gold["position_in_group"] == position
        and gold["function_name"] == name
        and json_equal(stated, arguments)
    )
