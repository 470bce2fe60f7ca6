"""What every row of an evaluation was answered under, as sets of values with counts.

Conditions are taken from each row and never from one row for all. Objects are spread
out (`versions.torch`), so that a difference names what differs. A row that does not
state a condition that other rows state counts as `unknown`. Where rows differ the
condition is `mixed`. Memory is bounded: past `MOST_VALUES` different values of one
condition, further ones are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from harness.canonical import Json, canonical_json
from harness.evaluations.numbers import plain_numbers

UNKNOWN: Final = "unknown"
"""Stands for what nobody can tell; two unknown values are not the same value."""
MOST_VALUES: Final = 50
REST: Final = "further values"


@dataclass(slots=True)
class _Values:
    """The values of one condition, by their canonical text."""

    values: dict[str, Json] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, value: Json, rows: int) -> None:
        value = plain_numbers(value)
        text = canonical_json(value)
        if text not in self.values and len(self.values) >= MOST_VALUES:
            value, text = REST, canonical_json(REST)
        self.values.setdefault(text, value)
        self.counts[text] = self.counts.get(text, 0) + rows


@dataclass(slots=True)
class ConditionCounts:
    """Takes the conditions of rows in and gives their sets of values out."""

    rows: int = 0
    _found: dict[str, _Values] = field(default_factory=dict)

    def add(self, conditions: Mapping[str, Json], rows: int = 1) -> None:
        """Take in what `rows` rows were answered under."""
        self.rows += rows
        for name, value in _spread(conditions):
            self._found.setdefault(name, _Values()).add(value, rows)

    def result(self) -> dict[str, Json]:
        """Return `{name: {values, rows, mixed}}`; `rows` counts each value's rows.

        Values stand in the order of their canonical text.
        """
        return {name: self._member(self._found[name]) for name in sorted(self._found)}

    def _member(self, found: _Values) -> dict[str, Json]:
        silent = self.rows - sum(found.counts.values())
        if silent:
            # Rows that say nothing of a condition say that it is unknown.
            found.add(UNKNOWN, silent)
        texts = sorted(found.values)
        return {
            "values": [found.values[text] for text in texts],
            "rows": [found.counts[text] for text in texts],
            "mixed": len(texts) > 1,
        }


def _spread(
    conditions: Mapping[str, Json], lead: str = ""
) -> Iterator[tuple[str, Json]]:
    for name, value in conditions.items():
        if isinstance(value, Mapping) and value:
            yield from _spread(value, f"{lead}{name}.")
        else:
            yield f"{lead}{name}", value
