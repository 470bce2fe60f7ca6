"""A request's messages as a control candidate reads them.

The visible prefix is what system and user said and what the candidate itself
answered; tool messages are kept apart, since a live oracle may answer otherwise than
the gold run did. Only structure is read here: which task it is, `control` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.canonical import Json, canonical_json
from harness.strict_json import StrictJsonError, decode

Opening = tuple[tuple[str, ...], str]
"""The system texts and the first user text: what every request starts with."""


class UnreadableConversationError(ValueError):
    """The messages are not a chat that a control can follow; `where` says which."""

    def __init__(self, where: str, problem: str) -> None:
        self.where = where
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class SaidCall:
    """One call of an earlier answer: its id, and its name and arguments as text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Said:
    """One earlier answer of the candidate."""

    text: str
    calls: tuple[SaidCall, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of one request."""

    system: tuple[str, ...]
    users: tuple[str, ...]
    answers: tuple[Said, ...]
    results: tuple[dict[str, str], ...]
    """For each answer, the tool messages that followed it, by call id."""

    @property
    def opening(self) -> Opening:
        """What identifies a task before anything was answered."""
        return self.system, self.users[0]

    def result_of(
        self, turn_index: int, position: int, name: str, arguments: str
    ) -> Json:
        """Return the tool result of one earlier call, None if there is none.

        The call is the one that reads so, else the one at the position: where order
        is free the calls may have been made in another one, and with live values they
        read otherwise than gold. A result that is not strict JSON counts as its text.
        """
        calls = self.answers[turn_index].calls
        places = [position, *range(len(calls))]
        alike = (
            place
            for place in places
            if place < len(calls)
            and (calls[place].name, calls[place].arguments) == (name, arguments)
        )
        place = next(alike, position)
        if place >= len(calls):
            return None
        text = self.results[turn_index].get(calls[place].call_id)
        if text is None:
            return None
        try:
            return decode(text)
        except StrictJsonError:
            return text


def opening_of(seed_messages: Sequence[dict[str, Json]]) -> Opening:
    """Return the opening that a script's seed messages make."""
    system = tuple(m["content"] for m in seed_messages if m["role"] == "system")
    return system, seed_messages[-1]["content"]


def read_conversation(messages: Json) -> Conversation:
    """Read the `messages` of a request; raise UnreadableConversationError."""
    if not isinstance(messages, list) or not messages:
        raise UnreadableConversationError("messages", "expected a non-empty list")
    system: list[str] = []
    users: list[str] = []
    answers: list[Said] = []
    results: list[dict[str, str]] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise UnreadableConversationError(where, "expected an object")
        match message.get("role"):
            case "system" | "developer":
                system.append(_text(message.get("content"), where))
            case "user":
                users.append(_text(message.get("content"), where))
            case "assistant":
                answers.append(_said(message, where))
                results.append({})
            case "tool":
                if not results:
                    raise UnreadableConversationError(where, "a result without a call")
                call_id = message.get("tool_call_id")
                if not isinstance(call_id, str):
                    raise UnreadableConversationError(where, "no tool_call_id")
                results[-1][call_id] = _text(message.get("content"), where)
            case _:
                raise UnreadableConversationError(where, "an unknown role")
    if not users:
        raise UnreadableConversationError("messages", "expected a user message")
    return Conversation(tuple(system), tuple(users), tuple(answers), tuple(results))


def _text(content: Json, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        texts = [part.get("text") for part in content]
        return "".join(text for text in texts if isinstance(text, str))
    raise UnreadableConversationError(where, "content is neither text nor text parts")


def _said(message: dict[str, Json], where: str) -> Said:
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise UnreadableConversationError(where, "a tool call without a function")
        calls.append(
            SaidCall(
                str(call.get("id")),
                str(function.get("name")),
                canonical_arguments(function.get("arguments")),
            )
        )
    return Said(_text(message.get("content"), where).strip(), tuple(calls))


def canonical_arguments(arguments: Json) -> str:
    """Return argument text in canonical form; text that is not JSON stays as it is."""
    if not isinstance(arguments, str):
        return canonical_json(arguments)
    try:
        return canonical_json(decode(arguments))
    except StrictJsonError:
        return arguments
