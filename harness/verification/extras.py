"""The two checks of a verification that need more than the standard library."""

from __future__ import annotations

from collections.abc import Iterator

from harness.config import EvalConfig
from harness.evidence.task_table import Stretch, stretches
from harness.run.table_comparison import TABLE_FILE, TableComparison
from harness.verification.bundle import RunFiles
from harness.verification.verify import Extras


def all_extras() -> Extras:
    """Return both checks, with their libraries."""
    return Extras(_open_table, EvalConfig.from_resolved)


def _open_table(files: RunFiles) -> TableComparison:
    return TableComparison(_stretches(files))


def _stretches(files: RunFiles) -> Iterator[Stretch]:
    with files.windows[TABLE_FILE].open() as stream:
        yield from stretches(stream, TABLE_FILE)
