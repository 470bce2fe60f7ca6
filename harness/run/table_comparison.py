"""The task table beside what the evidence gives, while both stream by.

Rows are compared a stretch at a time, and one by one only to name what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from harness.canonical import canonical_json
from harness.errors import Violation
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import STRETCH, Stretch
from harness.run.difference import RECOVERY

TABLE_FILE = ARTIFACT_FILES["eval_task_results"]


class TableComparison:
    """Takes recomputed rows in order and keeps the first difference."""

    def __init__(self, stored: Iterator[Stretch] | None) -> None:
        """Compare with nothing where `stored` is None."""
        self._stored = stored
        self._waiting: list[TaskRow] = []
        """Rows that make no whole stretch yet."""
        self._difference: Violation | None = None
        self.rows = 0
        self.requests = 0

    def take(self, row: TaskRow) -> None:
        """Compare the next recomputed row; raises as reading the table does."""
        self.requests += row.requests
        self.rows += 1
        if self._stored is not None:
            self._waiting.append(row)
            if len(self._waiting) == STRETCH:
                self._compare(self._stored)

    def end(self) -> tuple[Violation, ...]:
        """Return the first difference, a surplus of stored rows included."""
        if self._stored is not None:
            self._compare(self._stored)
            self._compare(self._stored)
        return () if self._difference is None else (self._difference,)

    def _compare(self, stretches: Iterator[Stretch]) -> None:
        """Compare the waiting rows with the stretch that belongs there."""
        rows, self._waiting = self._waiting, []
        stored = next(stretches, None)
        if stored is None or not stored.holds(rows):
            first = self.rows - len(rows)
            theirs = () if stored is None else stored.rows()
            for place, (row, other) in enumerate(zip_longest(rows, theirs), first):
                self._compare_row(place, row, other)

    def _compare_row(
        self, place: int, row: TaskRow | None, stored: TaskRow | None
    ) -> None:
        if row == stored or self._difference is not None:
            return
        for name, ours, theirs in _cells(row, stored):
            if ours != theirs:
                self._difference = Violation(
                    "eval_artifact_invalid",
                    f"{TABLE_FILE}, row {place}, column {name}",
                    "the task table is not what the evidence gives",
                    ours,
                    theirs,
                    RECOVERY,
                )
                return


def _cells(row: TaskRow | None, stored: TaskRow | None) -> list[tuple[str, str, str]]:
    ours = {} if row is None else row.semantic_payload()
    theirs = {} if stored is None else stored.semantic_payload()
    names = ours or theirs
    return [
        (name, canonical_json(ours.get(name)), canonical_json(theirs.get(name)))
        for name in names
    ]
