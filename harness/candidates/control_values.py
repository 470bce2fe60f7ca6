"""Live values in the place of recorded ones.

Gold arguments may hold a value that the gold run read from an earlier result. Where
the conversation shows another value in that place, a candidate that copies what it
sees would send the live one, so controls do. A value is taken for copied when an
earlier recorded result holds it and no user message states it; where several places
hold it and disagree now, nobody can tell, and gold's value stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.candidates.control_answers import PlannedCall
from harness.candidates.control_conversation import Conversation
from harness.candidates.control_task import ControlTask
from harness.canonical import Json, canonical_json, json_equal
from harness.strict_json import StrictJsonError, decode

_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One earlier gold call: what the gold run answered, and what is answered now."""

    recorded: Json
    live: Json


def live_arguments(
    task: ControlTask, call: PlannedCall, conversation: Conversation, turn_index: int
) -> dict[str, Json]:
    """Return the arguments of a planned call as the conversation makes them."""
    if call.gold is None:
        return call.arguments
    exchanges = list(_moved(task, conversation, turn_index))
    if not exchanges:
        return call.arguments
    users = 1 + task.turns[min(turn_index, len(task.turns) - 1)].user_turn_index
    stated = "\n".join(conversation.users[:users])
    return {
        name: value if name == call.changed else _replaced(value, exchanges, stated)
        for name, value in call.arguments.items()
    }


def _moved(
    task: ControlTask, conversation: Conversation, turn_index: int
) -> Iterator[_Exchange]:
    """Yield the earlier exchanges if any of them went otherwise than recorded."""
    exchanges = []
    moved = False
    for turn in task.turns[:turn_index]:
        for position, call in enumerate(turn.calls):
            live = conversation.result_of(
                turn.turn_index,
                position,
                call.function_name,
                canonical_json(call.arguments),
            )
            try:
                recorded = decode(call.recorded_result)
            except StrictJsonError:
                continue
            exchanges.append(_Exchange(recorded, live))
            moved = moved or not json_equal(recorded, live)
    if moved:
        yield from exchanges


def _replaced(value: Json, exchanges: list[_Exchange], stated: str) -> Json:
    if isinstance(value, dict):
        return {k: _replaced(v, exchanges, stated) for k, v in value.items()}
    if isinstance(value, list):
        return [_replaced(item, exchanges, stated) for item in value]
    text = value if isinstance(value, str) else canonical_json(value)
    if value is None or isinstance(value, bool) or not text or text in stated:
        return value
    seen = [
        live
        for exchange in exchanges
        for live in _live_places(exchange.recorded, exchange.live, value)
    ]
    if seen and all(json_equal(live, seen[0]) for live in seen):
        return seen[0]
    return value


def _live_places(recorded: Json, live: Json, value: Json) -> Iterator[Json]:
    """Yield what stands now wherever the recorded result held the value."""
    if isinstance(recorded, dict):
        for key in sorted(recorded):
            inner = live.get(key, _MISSING) if isinstance(live, dict) else _MISSING
            yield from _live_places(recorded[key], inner, value)
    elif isinstance(recorded, list):
        for index, item in enumerate(recorded):
            within = isinstance(live, list) and index < len(live)
            yield from _live_places(item, live[index] if within else _MISSING, value)
    elif json_equal(recorded, value) and _is_scalar(live):
        yield live


def _is_scalar(value: object) -> bool:
    return value is not _MISSING and not isinstance(value, dict | list)
