"""The nearest of some vectors by cosine, and the same one on every Python.

Products are summed exactly before they are rounded once, so no version of Python and
no order of numbers changes a similarity. Of equals the first counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul


def nearest(vector: Sequence[float], others: Sequence[Sequence[float]]) -> int:
    """Return the position of the nearest of `others`, which may not be empty.

    Raises ValueError where two vectors have different lengths.
    """
    best, best_similarity = 0, -math.inf
    for position, other in enumerate(others):
        similarity = cosine(vector, other)
        if similarity > best_similarity:
            best, best_similarity = position, similarity
    return best


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 where one of them is zero."""
    if len(left) != len(right):
        raise ValueError(f"vectors of {len(left)} and {len(right)} numbers")
    # Scaled by the largest number, so that no square leaves the range of a double.
    left, right = _scaled(left), _scaled(right)
    norms = math.sqrt(_dot(left, left)) * math.sqrt(_dot(right, right))
    return _dot(left, right) / norms if norms else 0.0


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(map(mul, left, right))


def _scaled(vector: Sequence[float]) -> Sequence[float]:
    largest = max(map(abs, vector), default=0.0)
    if 1e-100 < largest < 1e100 or not largest:
        return vector
    return [number / largest for number in vector]
