"""The two checks of a verification that need more than the standard library."""

from __future__ import annotations

from collections.abc import Iterator

from harness.config import EvalConfig
from harness.evidence.task_row import TaskRow
from harness.evidence.task_table import task_rows
from harness.run.table_comparison import TABLE_FILE, TableComparison
from harness.verification.bundle import RunFiles
from harness.verification.verify import Extras


def all_extras() -> Extras:
    """Return both checks, with their libraries."""
    return Extras(_open_table, EvalConfig.from_resolved)


def _open_table(files: RunFiles) -> TableComparison:
    return TableComparison(_rows(files))


def _rows(files: RunFiles) -> Iterator[TaskRow]:
    with files.windows[TABLE_FILE].open() as stream:
        yield from task_rows(stream, TABLE_FILE)
