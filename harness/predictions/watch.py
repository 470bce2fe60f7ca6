"""Whoever looks on while rows are scored, and adds a file of its own to the output."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from harness.canonical import Json

Row = TypeVar("Row")
Scored = TypeVar("Scored")
Scored_contra = TypeVar("Scored_contra", contravariant=True)


class ScoringWatch(Protocol[Scored_contra]):
    """Sees every row, then the folder before it gets its name."""

    def take(self, row_id: Json, gold: Json, asked: Json = None) -> None:
        """See the next row: what names it, what would be right, what was asked."""

    def finish(self, folder: Path, scored: Scored_contra) -> None:
        """See the folder with all files of the contract in it; may add to it."""


def watched(
    watch: ScoringWatch[Scored] | None,
    rows: Iterable[Row],
    told: Callable[[Row], tuple[Json, Json, Json]],
) -> Iterable[Row]:
    """Pass rows through; whoever looks on is told id, gold and what was asked."""
    return rows if watch is None else _taken(watch, rows, told)


def _taken(
    watch: ScoringWatch[Scored],
    rows: Iterable[Row],
    told: Callable[[Row], tuple[Json, Json, Json]],
) -> Iterable[Row]:
    for row in rows:
        watch.take(*told(row))
        yield row
