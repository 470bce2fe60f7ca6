"""A recorded conversation as what a model is shown: gold history, turn by turn.

A client row that a recorded answer follows is a turn to ask. It is asked with the
system prompt, every row before it, recorded answers included, and itself; no message is
made from a later row. Messages are encoded once, and have only the keys that are named
here, so that no column of the data set can slip into a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

from harness.canonical import Json, canonical_bytes
from harness.errors import ScoringError, Violation
from harness.predictions.mlperf_dataset import read_conversations
from harness.scoring.mlperf_agentic.recorded import ASSISTANT_ROLE, CLIENT_ROLES
from harness.scoring.mlperf_agentic.turns import Truth, truth_of

_SHOWN: Final = 10
_CAPS: Final = ("max_completion_tokens", "max_new_tokens")
"""Columns with a row's cap of tokens, the first one that is there counts."""
_SAMPLING: Final[dict[str, type | tuple[type, ...]]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": int,
    "min_p": (int, float),
    "seed": int,
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "repetition_penalty": (int, float),
    "stop": (str, list),
}


class AskedTurn(NamedTuple):
    """One client row with a recorded answer after it."""

    client_turn: int
    assistant_turn: int
    messages: int
    """How many of the conversation's messages stand in its request."""
    tools: tuple[Json, ...]
    """As the row, or else the first user row, declares them."""
    delay_s: float
    """`delay_seconds` of the row; 0 where delays do not count."""
    overrides: dict[str, Json]
    """Body fields that the row holds; none where they do not count."""
    truth: Truth


@dataclass(frozen=True, slots=True)
class TaughtConversation:
    """One conversation, ready to be asked."""

    source_id: str
    system: str | None
    messages: tuple[bytes, ...]
    """Encoded, the system prompt apart."""
    turns: tuple[AskedTurn, ...]


class RowUse(NamedTuple):
    """What of a row counts, beside its words."""

    reasoning: bool
    """Recorded answers keep their reasoning."""
    delays: bool
    overrides: bool


class _RowError(ValueError):
    """What keeps a row from being sent."""


def read_taught(path: Path, use: RowUse) -> list[TaughtConversation]:
    """Read a data set as conversations to ask, in file order.

    Raises ScoringError (`eval_predictions_invalid`) for rows that the contract refuses
    or that cannot be sent.
    """
    taught: list[TaughtConversation] = []
    problems: list[Violation] = []
    for source_id, rows in read_conversations(path):
        builder = _Builder(rows, use)
        conversation = builder.conversation(source_id)
        taught.append(conversation)
        problems += (
            _violation(path, source_id, turn, text)
            for turn, text in sorted(builder.problems)
        )
    if problems:
        raise ScoringError.from_violations(tuple(problems[:_SHOWN]))
    return taught


@dataclass(slots=True)
class _Builder:
    """Builds one conversation and notes what cannot be sent."""

    rows: Sequence[dict[str, Json]]
    use: RowUse
    problems: list[tuple[int, str]] = field(default_factory=list)

    def conversation(self, source_id: str) -> TaughtConversation:
        messages: list[bytes] = []
        counts: list[int] = []
        for row in self.rows:
            for message in self._messages(row):
                messages += self._encoded(row, message)
            counts.append(len(messages))
        turns = tuple(
            self._asked(source_id, client, answer, count)
            for (client, answer), count in zip(
                pairwise(self.rows), counts, strict=False
            )
            if client["role"] in CLIENT_ROLES and answer["role"] == ASSISTANT_ROLE
        )
        return TaughtConversation(source_id, self._system(), tuple(messages), turns)

    def _messages(self, row: dict[str, Json]) -> Iterator[dict[str, Json]]:
        if row["role"] == "tool":
            for result in row["tool_results"]:
                yield {
                    "role": "tool",
                    "tool_call_id": result["tool_call_id"],
                    "content": _result_text(result.get("content")),
                }
            return
        message: dict[str, Json] = {"role": row["role"], "content": row.get("content")}
        if row["role"] == ASSISTANT_ROLE:
            if row.get("tool_calls") is not None:
                message["tool_calls"] = [_call(call) for call in row["tool_calls"]]
            reasoning = row.get("reasoning_content")
            if self.use.reasoning and reasoning is not None:
                message["reasoning_content"] = reasoning
        yield message

    def _encoded(self, row: dict[str, Json], message: Json) -> Iterator[bytes]:
        try:
            yield canonical_bytes(message)
        except (TypeError, ValueError) as error:
            self._note(row, f"cannot be sent as JSON in UTF-8: {error}")

    def _asked(
        self, source_id: str, client: dict[str, Json], answer: dict[str, Json], n: int
    ) -> AskedTurn:
        delay = 0.0
        overrides: dict[str, Json] = {}
        try:
            delay = _delay(client) if self.use.delays else 0.0
            overrides = _overrides(client) if self.use.overrides else {}
        except _RowError as error:
            self._note(client, str(error))
        return AskedTurn(
            client["turn"],
            answer["turn"],
            n,
            self._tools(client),
            delay,
            overrides,
            truth_of(source_id, answer),
        )

    def _tools(self, client: dict[str, Json]) -> tuple[Json, ...]:
        row = client if client.get("tools") is not None else self.rows[0]
        tools = row.get("tools")
        if tools is None:
            return ()
        if not isinstance(tools, list) or not all(isinstance(t, dict) for t in tools):
            self._note(row, "tools is no array of objects")
            return ()
        # Encoded once, so that what JSON cannot hold is refused here.
        return tuple(tools) if any(self._encoded(row, tools)) else ()

    def _system(self) -> str | None:
        for row in self.rows:
            system = row.get("system")
            if system is None:
                continue
            if isinstance(system, str) and any(self._encoded(row, system)):
                return system
            if not isinstance(system, str):
                self._note(row, "system is no text")
            return None
        return None

    def _note(self, row: dict[str, Json], problem: str) -> None:
        if (row["turn"], problem) not in self.problems:
            self.problems.append((row["turn"], problem))


def _call(call: dict[str, Json]) -> dict[str, Json]:
    function = call["function"]
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _result_text(content: Json) -> Json:
    """Return a tool's result as a message may hold it: text, or parts."""
    if content is None:
        return ""
    if isinstance(content, str | list):
        return content
    return json.dumps(content, ensure_ascii=False)


def _delay(row: dict[str, Json]) -> float:
    delay = row.get("delay_seconds")
    if delay is None:
        return 0.0
    is_number = isinstance(delay, int | float) and not isinstance(delay, bool)
    if not is_number or not isfinite(delay) or delay < 0:
        raise _RowError(f"delay_seconds is {delay!r}, expected seconds from 0")
    return float(delay)


def _overrides(row: dict[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    cap = next((row[name] for name in _CAPS if row.get(name) is not None), None)
    if cap is not None:
        if type(cap) is not int or cap < 1:
            raise _RowError(f"a cap of tokens is {cap!r}, expected a whole number")
        found["max_tokens"] = cap
    for name, kinds in _SAMPLING.items():
        value = row.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise _RowError(f"{name} is {value!r}, a value of another type")
        if isinstance(value, float) and not isfinite(value):
            raise _RowError(f"{name} is {value!r}, expected a finite number")
        found[name] = value
    return found


def _violation(path: Path, source_id: str, turn: int, problem: str) -> Violation:
    return Violation(
        "eval_predictions_invalid",
        f"{path.name}, {source_id}, turn {turn}",
        problem,
        expected="rows that can be sent to a chat endpoint",
        recovery="mend the data set; nothing was sent",
    )
