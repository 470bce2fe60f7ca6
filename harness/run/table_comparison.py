"""The task table beside what the evidence gives, row by row, while both stream by."""

from __future__ import annotations

from collections.abc import Iterator

from harness.canonical import canonical_json
from harness.errors import Violation
from harness.evidence.folder import ARTIFACT_FILES
from harness.evidence.task_row import TaskRow
from harness.run.difference import RECOVERY

TABLE_FILE = ARTIFACT_FILES["eval_task_results"]


class TableComparison:
    """Takes recomputed rows in order and keeps the first difference."""

    def __init__(self, stored: Iterator[TaskRow] | None) -> None:
        """Compare with nothing where `stored` is None."""
        self._stored = stored
        self._difference: Violation | None = None
        self.rows = 0
        self.requests = 0

    def take(self, row: TaskRow) -> None:
        """Compare the next recomputed row; raises as reading the table does."""
        self.requests += row.requests
        if self._stored is not None:
            self._compare(row, next(self._stored, None))
        self.rows += 1

    def end(self) -> tuple[Violation, ...]:
        """Return the first difference, a surplus of stored rows included."""
        if self._stored is not None:
            self._compare(None, next(self._stored, None))
        return () if self._difference is None else (self._difference,)

    def _compare(self, row: TaskRow | None, stored: TaskRow | None) -> None:
        if row == stored or self._difference is not None:
            return
        for name, ours, theirs in _cells(row, stored):
            if ours != theirs:
                self._difference = Violation(
                    "eval_artifact_invalid",
                    f"{TABLE_FILE}, row {self.rows}, column {name}",
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
