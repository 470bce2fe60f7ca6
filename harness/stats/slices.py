"""Success counts by what kind of task it was.

A slice is a dimension (`turn_policy`, `category`, `difficulty`) and a label; a task
without a label is counted under None, so every dimension sums to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.evidence.records import Record


@dataclass(frozen=True, slots=True)
class SliceCount(Record):
    """The episodes of one slice."""

    dimension: str
    label: str | None
    planned: int
    successes: int
    stops: int


class Slices:
    """Counts episodes by label; memory grows with labels, not with episodes."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str | None], list[int]] = {}

    def add(
        self, labels: Mapping[str, str | None], *, success: bool, stop: bool
    ) -> None:
        """Count one episode under each of its labels."""
        for dimension, label in labels.items():
            count = self._counts.setdefault((dimension, label), [0, 0, 0])
            count[0] += 1
            count[1] += success
            count[2] += stop

    def result(self) -> tuple[SliceCount, ...]:
        """Return all slices, sorted by dimension and label, None last."""
        return tuple(
            SliceCount(dimension, label, *counts)
            for (dimension, label), counts in sorted(
                self._counts.items(),
                key=lambda item: (item[0][0], item[0][1] is None, item[0][1] or ""),
            )
        )
