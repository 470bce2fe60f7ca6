"""Places in a ranking when scores are known only within bounds.

A place counts from 1; equal scores share the better place. The best place of one is
what it has when its own score is as high and all others are as low as they can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.evidence.records import Record


@dataclass(frozen=True, slots=True)
class Place(Record):
    """The places that are possible; equal where only one is."""

    best: int
    worst: int


def places(bounds: Mapping[str, tuple[int, int]]) -> dict[str, Place]:
    """Return the possible places of each name.

    `bounds` holds the lowest and the highest score over one shared set of tasks.
    """
    found = {}
    for name, (lowest, highest) in bounds.items():
        others = [bound for other, bound in bounds.items() if other != name]
        found[name] = Place(
            best=1 + sum(low > highest for low, _ in others),
            worst=1 + sum(high > lowest for _, high in others),
        )
    return found
