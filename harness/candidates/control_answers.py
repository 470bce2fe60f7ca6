"""What a control answers, turn by turn, and where that leaves gold.

A plan is the whole list of answers that one control gives to one task. It departs
from gold at one turn, its mistake; what a scorer says of that turn alone is declared
with it. Answers are data: ids and live values are put in when a request is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.candidates.control_task import ControlTask
from harness.canonical import Json
from harness.conversation.script import ScriptedCall, ScriptedTurn

CLOSING_TEXT = "That is all I can do in this conversation."
"""Answers a request after the last planned answer."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of an answer."""

    name: str
    arguments: dict[str, Json]
    gold: ScriptedCall | None
    """The gold call that it copies; live values are looked up through it."""
    changed: str | None = None
    """The argument that was changed on purpose and never follows a live value."""
    is_broken: bool = False
    """Whether the argument text is to be no JSON."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One assistant message."""

    text: str
    calls: tuple[PlannedCall, ...] = ()
    finish_reason: Literal["stop", "tool_calls", "length"] = "stop"
    repeats_ids: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All answers to one task, and the mistake among them."""

    answers: tuple[Answer, ...]
    mistake_turn: int
    """The first turn that is not as gold."""
    fails: frozenset[str]
    """Gates that the mistaken turn alone fails, in both modes."""
    is_refused: bool = False
    """Whether executable mode leaves a call of the turn unexecuted in any case."""


def calls_answer(calls: tuple[PlannedCall, ...]) -> Answer:
    """Return an answer that makes calls and says nothing."""
    return Answer("", calls, "tool_calls" if calls else "stop")


def copied(call: ScriptedCall) -> PlannedCall:
    """Return a gold call as a planned one."""
    return PlannedCall(call.function_name, call.arguments, call)


def gold_answer(turn: ScriptedTurn) -> Answer:
    """Return what gold answers at one turn."""
    if turn.expects_calls:
        return calls_answer(tuple(copied(call) for call in turn.calls))
    return Answer(turn.expected_assistant_content or "")


def gold_answers(task: ControlTask) -> tuple[Answer, ...]:
    """Return what gold answers, turn by turn."""
    return tuple(gold_answer(turn) for turn in task.turns)


def departing(
    task: ControlTask,
    turn_index: int,
    *answers: Answer,
    fails: frozenset[str],
    is_refused: bool = False,
) -> Plan:
    """Return a plan that is gold but for `answers`, said in place of one turn."""
    gold = gold_answers(task)
    said = (*gold[:turn_index], *answers, *gold[turn_index + 1 :])
    return Plan(said, turn_index, fails, is_refused)
