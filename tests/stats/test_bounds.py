"""Bounds of a rate over what was not scored."""

from fractions import Fraction

import pytest

from harness.stats.bounds import success_bounds


def test_unscored_episodes_fail_at_one_end_and_pass_at_the_other():
    bounds = success_bounds(6, 2, 10)

    assert (bounds.lowest, bounds.highest) == (Fraction(3, 5), Fraction(4, 5))


def test_everything_scored_leaves_one_value():
    bounds = success_bounds(3, 0, 4)

    assert bounds.lowest == bounds.highest == Fraction(3, 4)


@pytest.mark.parametrize(
    ("successes", "unscored", "planned"), [(-1, 0, 1), (0, -1, 1), (1, 1, 1), (0, 0, 0)]
)
def test_impossible_counts_are_refused(successes, unscored, planned):
    with pytest.raises(ValueError, match="planned"):
        success_bounds(successes, unscored, planned)
