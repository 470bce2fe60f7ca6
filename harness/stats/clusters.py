"""Wilson's interval for a rate whose episodes come in clusters.

Trials of one task are alike, and so are tasks of one template. The rate's variance is
that of a ratio over clusters (linearised); it says how many independent episodes would
be as certain, and Wilson's formula takes that number. Clusters of one episode each give
Wilson's own interval. Everything up to the last step is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from harness.stats.interval import Interval, wilson_of_rate

INDEPENDENT: Final = "wilson-95"
CLUSTERED: Final = "wilson-95-effective-n"


@dataclass(frozen=True, slots=True)
class ClusteredInterval:
    """An interval, how it was made, and the independent episodes it stands for."""

    method: str
    effective_n: float
    interval: Interval


def clustered_interval(
    clusters: Mapping[tuple[int, int], int],
) -> ClusteredInterval | None:
    """Return the interval of a rate; None where nothing was counted.

    `clusters` says how many clusters have (successes, episodes). Raises ValueError for
    counts that cannot be.
    """
    for successes, episodes in clusters:
        if not 0 <= successes <= episodes:
            raise ValueError(f"{successes} successes of {episodes}")
    sizes = {pair: n for pair, n in clusters.items() if pair[1] > 0}
    number = sum(sizes.values())
    successes = sum(pair[0] * n for pair, n in sizes.items())
    episodes = sum(pair[1] * n for pair, n in sizes.items())
    if not episodes:
        return None
    rate = Fraction(successes, episodes)
    if number == episodes:
        interval = wilson_of_rate(rate, Fraction(episodes))
        return ClusteredInterval(INDEPENDENT, float(episodes), interval)
    effective = _effective(sizes, number, rate, episodes)
    interval = wilson_of_rate(rate, effective)
    return ClusteredInterval(CLUSTERED, float(effective), interval)


def _effective(
    sizes: Mapping[tuple[int, int], int], number: int, rate: Fraction, episodes: int
) -> Fraction:
    """Return how many independent episodes are as certain as these clusters."""
    if number == 1 or rate in (0, 1):
        # Nothing differs, so nothing says how alike a cluster's episodes are.
        return Fraction(number)
    squares = sum(((c - rate * m) ** 2 * n for (c, m), n in sizes.items()), Fraction(0))
    if not squares:
        return Fraction(episodes)
    variance = squares * number / (number - 1) / episodes**2
    return min(Fraction(episodes), max(Fraction(1), rate * (1 - rate) / variance))
