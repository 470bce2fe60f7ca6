"""Wilson's score interval for a proportion of independent episodes.

It stays inside [0, 1], has a width at 0 and at 1 too, and needs no continuity
assumption. Trials of one task are not independent of each other: give it tasks, or
say that it treats trials as if they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

Z_95: Final = 1.959963984540054
"""The two-sided 95 % quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends of a confidence interval, each in [0, 1]."""

    low: float
    high: float


def wilson_interval(successes: int, total: int, z: float = Z_95) -> Interval | None:
    """Return the interval of `successes / total`; None where nothing was counted.

    Raises ValueError for counts that cannot be.
    """
    if not 0 <= successes <= total:
        raise ValueError(f"{successes} successes of {total}")
    if total == 0:
        return None
    return wilson_of_rate(Fraction(successes, total), Fraction(total), z)


def wilson_of_rate(rate: Fraction, size: Fraction, z: float = Z_95) -> Interval:
    """Return the interval of a rate that stands for so many independent episodes."""
    share, total = float(rate), float(size)
    square = z * z
    centre = (share * total + square / 2) / (total + square)
    spread = z * math.sqrt(total * share * (1 - share) + square / 4) / (total + square)
    # Rounding must not move an end that is exact by construction.
    low = 0.0 if rate == 0 else max(0.0, centre - spread)
    high = 1.0 if rate == 1 else min(1.0, centre + spread)
    return Interval(low, high)
