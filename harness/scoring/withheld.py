"""What one task withholds, and which of it can give a reader away.

A script tells a candidate some values late: slots that the first message does not
state, values that a correction brings, and scalars that only a later tool result
holds. A candidate that writes such a value before it was told has it from elsewhere,
or guessed. `countable` is the rule `premature-1`: what anybody would write by chance
is no evidence, so booleans, null, short numbers and single plain words never count.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Literal

from harness.canonical import Json, canonical_json
from harness.conversation.task import TaskSpec
from harness.strict_json import StrictJsonError, decode

RULE: Final = "premature-1"
SHORTEST_TEXT: Final = 3
"""Characters of a text with a digit in it."""
SHORTEST_WORDS: Final = 8
"""Characters of a text without a digit; it must be of several words."""
SHORTEST_NUMBER: Final = 3
"""Digits of a number."""
LARGEST_POOL: Final = 64
"""Values kept of one source."""
MOST_DECOYS: Final = 8
"""Decoys that stand beside one withheld value."""

Scalars = list[tuple[str, Json]]
"""Scalars of a value with their paths."""
Kind = Literal["slot", "correction", "result", "confirmation"]
KINDS: Final[tuple[Kind, ...]] = ("slot", "correction", "result", "confirmation")


@dataclass(frozen=True, slots=True)
class WithheldValue:
    """One value, and where the task has it from."""

    kind: Kind
    source: str
    """The slot, or the result's call and path; the same in all tasks of a template."""
    text: str
    """The value as it is written."""


def countable(value: Json) -> bool:
    """Tell whether writing this value by chance is unlikely enough to be counted."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return sum(map(str.isdigit, str(value))) >= SHORTEST_NUMBER
    if not isinstance(value, str):
        return False
    text = value.strip()
    if any(map(str.isdigit, text)):
        return len(text) >= SHORTEST_TEXT
    return len(text) >= SHORTEST_WORDS and len(text.split()) > 1


def written(value: Json) -> str:
    """Return a scalar as a text or an argument shows it."""
    return value.strip() if isinstance(value, str) else canonical_json(value)


def scalars(value: Json) -> Scalars:
    """Return path and value of every scalar; list indexes are not told apart."""
    found: Scalars = []
    _collect(value, "", found)
    return found


def _collect(value: Json, path: str, found: Scalars) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list | tuple):
        for inner in value:
            _collect(inner, f"{path}[]", found)
    else:
        found.append((path, value))


def recorded_scalars(spec: TaskSpec) -> list[Scalars]:
    """Return the scalars of each gold call's recorded result, in the calls' order."""
    calls = spec.script.gold_calls
    return [scalars(_result_of(call.recorded_result)) for call in calls]


def withheld_values(
    spec: TaskSpec, recorded: Sequence[Scalars]
) -> tuple[WithheldValue, ...]:
    """Return each countable value that the task may withhold, once.

    `recorded` is what `recorded_scalars` gives for the task.
    """
    found: dict[str, WithheldValue] = {}
    for kind, source, value in _candidates(spec, recorded):
        if countable(value):
            text = written(value)
            found.setdefault(text, WithheldValue(kind, source, text))
    return tuple(found.values())


def _candidates(
    spec: TaskSpec, recorded: Sequence[Scalars]
) -> Iterator[tuple[Kind, str, Json]]:
    bindings = spec.slot_bindings or {}
    slots = bindings.get("slots", {})
    for name in bindings.get("withheld", ()):
        if name in slots:
            yield "slot", f"slot {name}", slots[name]
    for update in bindings.get("slot_updates", ()):
        for name, value in update.get("values", {}).items():
            yield "correction", f"slot {name}", value
    calls = spec.script.gold_calls
    for call, result in zip(calls, recorded, strict=True):
        for path, value in result:
            yield "result", f"result {call.call_index} {path}", value
    # An executable plan keeps no gold results; what its calls take from them it has.
    for each in spec.executable.dependencies if spec.executable else ():
        consumer: Json = calls[each.consumer_call_index].arguments
        source = f"result {each.producer_call_index} {'.'.join(each.result_path)}"
        yield "result", source, _at(consumer, each.argument_path)


def _result_of(recorded: str | None) -> Json:
    """Return a recorded result as JSON; a text that is none stands for itself."""
    if recorded is None:
        return None
    try:
        return decode(recorded)
    except StrictJsonError:
        return recorded


def _at(value: Json, path: Iterable[str]) -> Json:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


class DecoyPool:
    """The values of every source over a whole plan: equally withheld, never told.

    To one task the values that its siblings have from the same source are decoys. A
    published row may bring decoys of its own. Memory grows with sources, not tasks.
    """

    def __init__(self, specs: Iterable[TaskSpec] = ()) -> None:
        self._values: dict[tuple[str, str], dict[str, None]] = {}
        for spec in specs:
            self.add(spec)

    def add(self, spec: TaskSpec) -> None:
        """Keep one task's values, up to `LARGEST_POOL` of each source."""
        for value in withheld_values(spec, recorded_scalars(spec)):
            pool = self._values.setdefault((spec.template_id, value.source), {})
            if len(pool) < LARGEST_POOL:
                pool[value.text] = None

    def decoys(self, spec: TaskSpec, value: WithheldValue, shown: str) -> list[str]:
        """Return decoys for a value; `shown` is all that the conversation says.

        Which of many are taken hangs on the task alone.
        """
        own = (spec.slot_bindings or {}).get("decoys", {})
        name = value.source.removeprefix("slot ")
        declared = own.get(name, ()) if name != value.source else ()
        pool = list(self._values.get((spec.template_id, value.source), ()))
        start = zlib.crc32(spec.task_id.encode()) % len(pool) if pool else 0
        texts = [written(each) for each in declared if countable(each)]
        found: dict[str, None] = {}
        for text in chain(texts, islice(pool, start, None), islice(pool, start)):
            if text.casefold() not in shown:
                found[text] = None
                if len(found) == MOST_DECOYS:
                    break
        return list(found)
