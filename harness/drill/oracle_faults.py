"""Every fault that the oracle of the drill can have, with the cell it belongs in.

One row for each way in which pack code can break an operation: reset, a call that
only reads, a call that changes, the readings of the state around it and at the end,
an assertion, the close. A reply that is lost around a change is an unknown commit; a
result that came whole and is no object is a malformed one. A lie that is well formed
and fits the schema cannot be told from the truth by anybody and is not among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.drill import cells
from harness.drill.cells import SUCCESS, Cell

Place = Literal[
    "reset",
    "reading call",
    "changing call",
    "state before a change",
    "state after a change",
    "final state",
    "assertion",
    "state for an assertion",
    "close",
    "producer of a dependency",
]
Moment = Literal["before", "after"]
"""Before or after the pack's own work for the operation."""


@dataclass(frozen=True, slots=True)
class OracleFaultKind:
    """One kind of fault in pack code."""

    name: str
    cell: Cell
    place: Place
    do: str
    """An action of `harness.drill.saboteur`."""
    moment: Moment = "before"

    @property
    def loses_a_change(self) -> bool:
        """Tell whether a mutating call's reply is lost, so that nobody knows."""
        return self.cell is cells.UNKNOWN_COMMIT


_DEATHS = ("exit", "exit leaving a child", "kill itself", "close the protocol")
_HANGS = ("hang", "freeze")
_ERRORS = ("raise", "raise SystemExit")
_NO_OBJECTS = ("return a list", "return text", "return nothing")
_NO_JSON = ("return NaN", "return a set", "return too deep", "return too much")


def _rows(
    place: Place, cell: Cell, *actions: str, moment: Moment = "before"
) -> list[OracleFaultKind]:
    done = ", done" if moment == "after" else ""
    return [
        OracleFaultKind(f"{place}{done}: {action}", cell, place, action, moment)
        for action in actions
    ]


def oracle_faults() -> tuple[OracleFaultKind, ...]:
    """Return every kind, in a fixed order."""
    reading: Place = "reading call"
    changing: Place = "changing call"
    unknown = cells.UNKNOWN_COMMIT
    return (
        *_rows("reset", cells.RESET, *_DEATHS, *_HANGS, *_ERRORS),
        *_rows(reading, cells.CALL, *_DEATHS, *_ERRORS),
        *_rows(reading, cells.CALL_TIMEOUT, *_HANGS),
        *_rows(reading, cells.RESULT, *_NO_OBJECTS, *_NO_JSON, moment="after"),
        *_rows(reading, cells.RESULT, "garble the protocol"),
        *_rows(reading, cells.CALL, "return an error without a code", moment="after"),
        *_rows(reading, SUCCESS, "print", "leave a child", "be slow"),
        *_rows(changing, unknown, *_DEATHS, *_HANGS, *_ERRORS),
        *_rows(changing, unknown, *_DEATHS, *_HANGS, *_ERRORS, moment="after"),
        *_rows(changing, unknown, "garble the protocol", moment="after"),
        *_rows(changing, unknown, *_NO_JSON, moment="after"),
        *_rows(changing, cells.RESULT, *_NO_OBJECTS, moment="after"),
        *_rows(changing, cells.CALL, "return an error without a code", moment="after"),
        *_rows("state before a change", cells.CALL, "exit", "raise"),
        *_rows("state before a change", cells.CALL_TIMEOUT, "hang"),
        *_rows("state after a change", unknown, "exit", "raise", "hang"),
        *_rows("state after a change", unknown, "return a list"),
        *_rows("final state", cells.STATE, *_DEATHS, *_HANGS, "raise"),
        *_rows("final state", cells.STATE, "return a list", "return NaN"),
        *_rows("assertion", cells.ASSERTION, *_DEATHS, *_HANGS, *_ERRORS),
        *_rows("assertion", cells.ASSERTION, "return text", "return a list"),
        *_rows("state for an assertion", cells.ASSERTION, "exit", "raise"),
        *_rows("close", cells.CLOSE, "exit", "kill itself", *_HANGS),
        *_rows(
            "producer of a dependency",
            cells.DEPENDENCY,
            "drop",
            "retype",
            moment="after",
        ),
    )
