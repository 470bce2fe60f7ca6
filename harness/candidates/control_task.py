"""One published row as a control candidate knows it.

A control sees what a model sees, and the gold of the published row: the script, the
tools with their compiled schemas, and which boolean parameter stands for a user's
confirmation. Published tools carry no `x-` keys, so that parameter is read off the
rows: it is called `confirm`, or it is the boolean that the gold of a `confirmation`
task sets to true after a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.canonical import Json
from harness.conversation.script import (
    ConversationScript,
    ScriptedTurn,
    script_from_row,
)
from harness.json_schema import ToolCatalog, compile_tools

UNVERIFIED_SOURCE = "sha256:" + "0" * 64
"""Stands where a script names its source: a control verifies none and scores none."""
DEFAULT_CONFIRMATION_PARAMETER = "confirm"


@dataclass(frozen=True, slots=True)
class ControlTask:
    """A row, read once."""

    script: ConversationScript
    turn_policy: str
    has_assertions: bool
    catalog: ToolCatalog
    parameters: dict[str, dict[str, Any]]
    """Tool name to its parameter schema."""
    confirmation: dict[str, str]
    """Tool name to the parameter that stands for the user's confirmation."""

    @property
    def task_id(self) -> str:
        """The id of the row."""
        return self.script.task_id

    @property
    def turns(self) -> tuple[ScriptedTurn, ...]:
        """The scripted turns."""
        return self.script.turns

    def call_turns(self) -> tuple[ScriptedTurn, ...]:
        """Return the turns whose gold is a group of calls."""
        return tuple(turn for turn in self.turns if turn.expects_calls)

    def calls_after(self, turn_index: int) -> bool:
        """Tell whether gold calls stand in later turns than this one."""
        return any(turn.expects_calls for turn in self.turns[turn_index + 1 :])

    def is_confirmed(self, name: str, arguments: Mapping[str, Json]) -> bool:
        """Tell whether a call claims that the user has confirmed it."""
        parameter = self.confirmation.get(name)
        return parameter is not None and arguments.get(parameter) is True


def read_tasks(rows: Iterable[dict[str, Json]]) -> tuple[ControlTask, ...]:
    """Read published rows as tasks, in the order given.

    Raises ConversationError where a row does not read as a script.
    """
    read = [(row, script_from_row(row, UNVERIFIED_SOURCE)) for row in rows]
    learned: dict[str, str] = {}
    for row, script in read:
        if row["turn_policy"] == "confirmation":
            learned.update(_confirmed_in_gold(script))
    return tuple(_task(row, script, learned) for row, script in read)


def _task(
    row: dict[str, Json], script: ConversationScript, learned: dict[str, str]
) -> ControlTask:
    parameters = _parameters(script)
    return ControlTask(
        script=script,
        turn_policy=row["turn_policy"],
        has_assertions=bool(row["success_assertions"]),
        catalog=compile_tools(script.tools),
        parameters=parameters,
        confirmation={
            name: parameter
            for name, schema in parameters.items()
            if (parameter := _confirmation(name, schema, learned)) is not None
        },
    )


def _parameters(script: ConversationScript) -> dict[str, dict[str, Any]]:
    return {
        tool["function"]["name"]: tool["function"].get("parameters") or {}
        for tool in script.tools
    }


def _confirmation(
    name: str, schema: dict[str, Json], learned: dict[str, str]
) -> str | None:
    if _is_boolean(schema, DEFAULT_CONFIRMATION_PARAMETER):
        return DEFAULT_CONFIRMATION_PARAMETER
    parameter = learned.get(name)
    return parameter if parameter and _is_boolean(schema, parameter) else None


def _is_boolean(schema: dict[str, Json], parameter: str) -> bool:
    declared = schema.get("properties", {}).get(parameter)
    return isinstance(declared, dict) and declared.get("type") == "boolean"


def _confirmed_in_gold(script: ConversationScript) -> dict[str, str]:
    parameters = _parameters(script)
    found: dict[str, str] = {}
    for turn in script.turns:
        if not turn.calls or asked_before(script, turn.turn_index) is None:
            continue
        for call in turn.calls:
            schema = parameters.get(call.function_name, {})
            true = [
                name
                for name, value in call.arguments.items()
                if value is True and _is_boolean(schema, name)
            ]
            if len(true) == 1:
                found[call.function_name] = true[0]
    return found


def asked_before(script: ConversationScript, turn_index: int) -> int | None:
    """Return the last answered text turn before a turn, None if there is none."""
    answered = (
        turn.turn_index
        for turn in reversed(script.turns[:turn_index])
        if not turn.expects_calls and turn.releases_user_message is not None
    )
    return next(answered, None)
