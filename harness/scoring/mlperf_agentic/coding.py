"""The coding rule: how far two lists of actions agree as multisets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Overlap(NamedTuple):
    """Sizes of the multiset intersection and union of two lists."""

    intersection: int
    union: int

    @property
    def score(self) -> float:
        """The share; the union is never empty where there is ground truth."""
        return self.intersection / self.union


def overlap(truth: Sequence[str], model: Sequence[str]) -> Overlap:
    """Compare two lists of actions; order and position never matter."""
    shared = 0
    if truth == model:
        shared = len(truth)
    elif model:
        left = list(truth)
        for name in model:
            if name in left:
                left.remove(name)
                shared += 1
    return Overlap(shared, len(truth) + len(model) - shared)
