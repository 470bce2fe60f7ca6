"""A published task as the drill sees it: which faults have a place in it.

Places are counted along the gold conversation, for the drill's candidate is gold up
to its fault: requests by turn, calls in their order, readings of the state as the
driver makes them (before and after each mutating call, once at the end, and once for
each assertion).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.benchmark.pack import Pack
from harness.benchmark.projection import project_task
from harness.candidates.control_conversation import Opening, opening_of
from harness.candidates.control_task import UNVERIFIED_SOURCE
from harness.canonical import Json
from harness.conversation.script import script_from_row
from harness.drill import oracle_faults, serving_faults


@dataclass(frozen=True, slots=True)
class OraclePlace:
    """Where a fault in pack code strikes."""

    at: str
    """The saboteur's name of the operation."""
    index: int
    """Which one of its kind in the session, from 0."""
    path: tuple[str, ...] = ()
    """The part of a result that is to be spoiled."""
    call: int | None = None
    """The gold call that it strikes at or around; None outside calls."""


@dataclass(frozen=True, slots=True)
class TaskLayout:
    """The places of one task."""

    task_id: str
    opening: Opening
    turns: tuple[bool, ...]
    """For each turn, whether gold makes calls there."""
    changes: tuple[bool, ...]
    """For each gold call in order, whether its tool mutates."""
    assertions: int
    producers: tuple[tuple[int, tuple[str, ...]], ...]
    """For each dependency, the producing call and the path in its result."""
    is_recognised: bool
    """Whether no other task opens alike, so that a request names its task."""

    def turns_for(self, place: serving_faults.Place) -> tuple[int | None, ...]:
        """Return the turns at which a serving fault may strike; None: all of them."""
        if not self.is_recognised:
            return ()
        if place == "every":
            return (None,) if len(self.turns) >= serving_faults.MIN_SLOW_TURNS else ()
        wanted = {"call": (True,), "text": (False,)}.get(place, (True, False))
        return tuple(i for i, calls in enumerate(self.turns) if calls in wanted)

    def places_for(self, place: oracle_faults.Place) -> tuple[OraclePlace, ...]:
        """Return where a fault of pack code may strike."""
        readings = 2 * sum(self.changes)
        reading = [i for i, changes in enumerate(self.changes) if not changes]
        changing = [i for i, changes in enumerate(self.changes) if changes]
        after = readings + 1
        found: dict[oracle_faults.Place, list[OraclePlace]] = {
            "reset": [OraclePlace("reset", 0)],
            "close": [OraclePlace("close", 0)],
            "reading call": [OraclePlace("call", i, call=i) for i in reading],
            "changing call": [OraclePlace("call", i, call=i) for i in changing],
            "state before a change": [
                OraclePlace("state", 2 * n, call=i) for n, i in enumerate(changing)
            ],
            "state after a change": [
                OraclePlace("state", 2 * n + 1, call=i) for n, i in enumerate(changing)
            ],
            "final state": [OraclePlace("state", readings)],
            "assertion": [OraclePlace("assertion", n) for n in range(self.assertions)],
            "state for an assertion": [
                OraclePlace("state", after + n) for n in range(self.assertions)
            ],
            "producer of a dependency": [
                OraclePlace("call", call, path, call) for call, path in self.producers
            ],
        }
        return tuple(found[place])


def layouts(pack: Pack, rows: Sequence[dict[str, Json]]) -> tuple[TaskLayout, ...]:
    """Return the layout of every row, in publication order."""
    scripts = [script_from_row(row, UNVERIFIED_SOURCE) for row in rows]
    openings = [opening_of(script.seed_messages) for script in scripts]
    count = Counter(openings)
    found = []
    for row, script, opening in zip(rows, scripts, openings, strict=True):
        part = project_task(pack, row, script, UNVERIFIED_SOURCE)
        mutating = {p.function_name for p in part.tool_policies if p.mutates}
        found.append(
            TaskLayout(
                task_id=script.task_id,
                opening=opening,
                turns=tuple(turn.expects_calls for turn in script.turns),
                changes=tuple(c.function_name in mutating for c in script.gold_calls),
                assertions=len(part.assertions),
                producers=tuple(
                    (d.producer_call_index, d.result_path) for d in part.dependencies
                ),
                is_recognised=count[opening] == 1,
            )
        )
    return tuple(found)
