"""The nearest of some vectors by cosine, and the same one on every Python.

Products are summed exactly before they are rounded once, so no version of Python and
no order of numbers changes a similarity. Similarities that rounding could have parted
or put in order are compared as exact fractions. Of equals the first counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Final

_ROUNDING: Final = 1e-14
"""Cosines that differ by more are in their order whatever was rounded."""


def nearest(vector: Sequence[float], others: Sequence[Sequence[float]]) -> int:
    """Return the position of the nearest of `others`, which may not be empty.

    Raises ValueError where two vectors have different lengths.
    """
    best, best_similarity = 0, cosine(vector, others[0])
    for position, other in enumerate(others[1:], 1):
        similarity = cosine(vector, other)
        if abs(similarity - best_similarity) <= _ROUNDING:
            is_nearer = _is_nearer(vector, other, others[best])
        else:
            is_nearer = similarity > best_similarity
        if is_nearer:
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


def _is_nearer(
    vector: Sequence[float], other: Sequence[float], best: Sequence[float]
) -> bool:
    if other == best:
        return False
    return _signed_square(vector, other) > _signed_square(vector, best)


def _signed_square(vector: Sequence[float], other: Sequence[float]) -> Fraction:
    """Return the cosine times its size and the vector's squared length, exactly."""
    pairs = list(zip(map(Fraction, vector), map(Fraction, other), strict=True))
    norm = sum((right * right for _, right in pairs), Fraction())
    dot = sum((left * right for left, right in pairs), Fraction())
    return dot * abs(dot) / norm if norm else Fraction()


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(map(mul, left, right))


def _scaled(vector: Sequence[float]) -> Sequence[float]:
    largest = max(map(abs, vector), default=0.0)
    if 1e-100 < largest < 1e100 or not largest:
        return vector
    return [number / largest for number in vector]
