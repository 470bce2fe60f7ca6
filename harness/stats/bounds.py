"""What a rate could have been, had everything unscored been scored.

The lower bound counts every unscored episode as failed, the upper one as passed;
no assumption enters, so the bounds hold however the stops came about.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from harness.evidence.records import Record


@dataclass(frozen=True, slots=True)
class SuccessBounds(Record):
    """Two numerators over the same planned count."""

    lowest_numerator: int
    highest_numerator: int
    denominator: int

    @property
    def lowest(self) -> Fraction:
        """The rate if every unscored episode had failed."""
        return Fraction(self.lowest_numerator, self.denominator)

    @property
    def highest(self) -> Fraction:
        """The rate if every unscored episode had passed."""
        return Fraction(self.highest_numerator, self.denominator)


def success_bounds(successes: int, unscored: int, planned: int) -> SuccessBounds:
    """Return the bounds; raise ValueError for counts that cannot be."""
    if min(successes, unscored) < 0 or successes + unscored > planned or planned == 0:
        raise ValueError(f"{successes} successes and {unscored} of {planned} planned")
    return SuccessBounds(successes, successes + unscored, planned)
