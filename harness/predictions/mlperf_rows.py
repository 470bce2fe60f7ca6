"""Rules for the rows of an MLPerf-agentic data set, one conversation at a time.

A conversation is turns 1 to N of users, assistants and tools in the grammar of the
original's loader. Whatever that loader refuses is refused, all of it at once; pairing
of tool results with calls is not checked there and is not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.canonical import Json

Row = dict[str, Json]

_NEXT: Final = {
    None: ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
    "tool": ("assistant", "user"),
}
"""Roles that may follow each role; None is the start."""
ROLES: Final = ("user", "assistant", "tool")


def conversation_id_of(row: Row) -> str | None:
    """Return a row's conversation id as text; None where it has no usable one."""
    name = row.get("conversation_id")
    if type(name) is int:
        return str(name)
    if not isinstance(name, str) or not name:
        return None
    return name if name.isascii() and name.isprintable() else None


def conversation_problems(rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with rows sorted by turn, each with the row's index."""
    for index, row in enumerate(rows):
        if row["turn"] != index + 1:
            yield index, f"turn {row['turn']} where turn {index + 1} belongs"
            break
    before: Row | None = None
    for index, row in enumerate(rows):
        for problem in (*_order_problems(before, row), *_PROBLEMS_OF[row["role"]](row)):
            yield index, problem
        before = row


def row_problem(row: Row) -> str | None:
    """Return what keeps a row from being placed in its conversation, if anything."""
    if conversation_id_of(row) is None:
        return "conversation_id is not text of printable ASCII characters"
    turn = row.get("turn")
    if isinstance(turn, float) and turn.is_integer():
        turn = row["turn"] = int(turn)
    if type(turn) is not int:
        return "turn is no whole number"
    if row.get("role") not in ROLES:
        return f"role is {row.get('role')!r}, expected one of {', '.join(ROLES)}"
    return None


def _order_problems(before: Row | None, row: Row) -> Iterator[str]:
    role = row["role"]
    previous = None if before is None else before["role"]
    if role not in _NEXT[previous]:
        place = f"after {previous}" if previous else "at the start"
        yield f"a row of {role} {place}"
    if before is None or previous != "assistant":
        return
    has_called = before.get("tool_calls") is not None
    if role == "user" and has_called:
        yield "a user row directly after an assistant row that called tools"
    if role == "tool" and not has_called:
        yield "a tool row after an assistant row without calls"


def _user_problems(row: Row) -> Iterator[str]:
    if not row.get("content"):
        yield "a user row without content"


def _assistant_problems(row: Row) -> Iterator[str]:
    calls = row.get("tool_calls")
    if calls is None:
        if not row.get("content"):
            yield "an assistant row with neither text nor calls"
        return
    if not isinstance(calls, list) or not calls:
        yield "tool_calls is no array with at least one call"
        return
    for index, call in enumerate(calls):
        problem = _call_problem(call)
        if problem:
            yield f"tool_calls[{index}]: {problem}"


def _call_problem(call: Json) -> str | None:
    if not isinstance(call, dict):
        return "no object"
    if not isinstance(call.get("id"), str) or not call["id"]:
        return "no id"
    if call.get("type", "function") != "function":
        return "type is not function"
    function = call.get("function")
    if not isinstance(function, dict):
        return "function is no object"
    if not isinstance(function.get("name"), str) or not function["name"]:
        return "function without a name"
    if not isinstance(function.get("arguments"), str | dict):
        return "arguments are neither text nor an object"
    return None


def _tool_problems(row: Row) -> Iterator[str]:
    results = row.get("tool_results")
    if not isinstance(results, list) or not results:
        yield "a tool row without tool_results"
        return
    for index, result in enumerate(results):
        if not isinstance(result, dict) or not isinstance(
            result.get("tool_call_id"), str
        ):
            yield f"tool_results[{index}]: no object with a tool_call_id"


_PROBLEMS_OF: Final = {
    "user": _user_problems,
    "assistant": _assistant_problems,
    "tool": _tool_problems,
}
