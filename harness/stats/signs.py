"""The exact sign test over pairs: wins against losses, ties left out.

Under the assumption that a pair that is no tie is as likely a win as a loss, and that
pairs are independent of each other, the wins are binomial with one half. The test is
two-sided and exact; no approximation is made at any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb


@dataclass(frozen=True, slots=True)
class SignCounts:
    """How often the left of a pair was better, worse or equal."""

    wins: int
    losses: int
    ties: int

    @property
    def pairs(self) -> int:
        """All pairs, ties included."""
        return self.wins + self.losses + self.ties

    @property
    def p_value(self) -> Fraction:
        """The two-sided probability of a split at least as uneven; 1 without one."""
        decided = self.wins + self.losses
        fewer = min(self.wins, self.losses)
        tail = sum(comb(decided, k) for k in range(fewer + 1))
        return min(Fraction(1), Fraction(2 * tail, 1 << decided))


def count_signs(pairs: Iterable[tuple[Fraction, Fraction]]) -> SignCounts:
    """Count the pairs by which side is higher."""
    wins = losses = ties = 0
    for left, right in pairs:
        wins += left > right
        losses += left < right
        ties += left == right
    return SignCounts(wins, losses, ties)
