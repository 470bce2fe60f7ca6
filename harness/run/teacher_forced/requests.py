"""What is sent at each turn of each pass: one body, one identity, one routing header.

A pass is one conversation in one repeat. Its id is the source id, with `__repeat_N`
from the second repeat on; a source id that ends so itself has one from the first, since
the contract cuts the last one off. Everything here follows from config and data set, so
a resumed run and a replay make the same requests again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.candidates.request import (
    Endpoint,
    PreparedRequest,
    identified_request,
    inference_fields,
)
from harness.canonical import Json, canonical_bytes
from harness.config.teacher_forced import TeacherForcedConfig
from harness.run.teacher_forced.history import AskedTurn, TaughtConversation
from harness.scoring.mlperf_agentic.conversation_ids import conversation_of


@dataclass(frozen=True, slots=True)
class Pass:
    """One conversation in one repeat."""

    conversation: TaughtConversation
    repeat: int
    """From 1."""

    @property
    def conversation_id(self) -> str:
        """The id in the event log and in the routing header."""
        source_id = self.conversation.source_id
        if self.repeat == 1 and conversation_of(source_id).source_id == source_id:
            return source_id
        return f"{source_id}__repeat_{self.repeat}"


class RequestPlan:
    """All requests of one run, made when they are asked for."""

    def __init__(
        self, config: TeacherForcedConfig, conversations: Sequence[TaughtConversation]
    ) -> None:
        self.conversations = conversations
        self.endpoint = endpoint_of(config)
        self._asking = config.asking
        asked = sum(len(each.turns) for each in conversations)
        self.turns = asked * config.asking.repeats
        """Turns of all passes."""
        self._fields = inference_fields(self.endpoint)
        self._around: dict[bytes, tuple[bytes, bytes]] = {}
        """What stands around the messages, by the tools and fields of a turn."""

    def passes(self) -> Iterator[Pass]:
        """Yield every pass: all conversations once, then again."""
        for repeat in range(1, self._asking.repeats + 1):
            for conversation in self.conversations:
                yield Pass(conversation, repeat)

    def requests(self, part: Pass) -> Iterator[tuple[AskedTurn, PreparedRequest]]:
        """Yield the turns of a pass in their order, each with its request."""
        conversation = part.conversation
        system = self._system(part)
        head = [] if system is None else [canonical_bytes(system)]
        name = self._asking.routing_header
        routing = None if name is None else (name, part.conversation_id)
        for turn in conversation.turns:
            before, after = self._around_messages(turn)
            texts = [*head, *conversation.messages[: turn.messages]]
            yield (
                turn,
                identified_request(
                    self.endpoint,
                    task_id=conversation.source_id,
                    trial=part.repeat - 1,
                    turn_index=turn.client_turn,
                    body=b"%b[%b]%b" % (before, b",".join(texts), after),
                    routing=routing,
                ),
            )

    def delay_s(self, turn: AskedTurn, *, is_first: bool) -> float:
        """Return how long to wait before a turn is sent."""
        between = 0.0 if is_first else self._asking.inter_turn_delay_s
        return between + turn.delay_s

    def _system(self, part: Pass) -> dict[str, Json] | None:
        text, salt = part.conversation.system, self._asking.salt
        if salt is not None:
            before = _marker(salt, "repeat", str(part.repeat))
            after = _marker(salt, "conversation", part.conversation_id)
            text = "\n\n".join(filter(None, (before, text, after)))
        return None if text is None else {"role": "system", "content": text}

    def _around_messages(self, turn: AskedTurn) -> tuple[bytes, bytes]:
        fields = dict(self._fields)
        choice = fields.pop("tool_choice")
        if turn.tools:
            # A choice between no tools is an error to most servers.
            fields |= {"tools": list(turn.tools), "tool_choice": choice}
        fields |= turn.overrides
        key = canonical_bytes(fields)
        if key not in self._around:
            first = {k: v for k, v in fields.items() if k < "messages"}
            last = {k: v for k, v in fields.items() if k > "messages"}
            before = canonical_bytes({**first, "messages": None}).removesuffix(b"null}")
            self._around[key] = before, b"," + canonical_bytes(last)[1:]
        return self._around[key]


def endpoint_of(config: TeacherForcedConfig) -> Endpoint:
    """Return the endpoint that is asked.

    Answers keep their reasoning, for the workflow rule reads it; whether recorded
    reasoning is sent is the history's matter.
    """
    fields: dict[str, Any] = config.candidate.endpoint()
    return Endpoint(**{**fields, "echo_reasoning": True})


def _marker(salt: str, kind: str, name: str) -> str:
    """Return four hex digits that follow from a salt and what is salted."""
    digest = hashlib.sha256(f"{kind}\n{name}\n{salt}".encode()).hexdigest()
    return f"[{digest[:4]}]"
