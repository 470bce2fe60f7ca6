"""The sign test is exact, symmetric and leaves ties out."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.signs import SignCounts, count_signs

SMALL = st.integers(0, 40)


@pytest.mark.parametrize(
    ("wins", "losses", "expected"),
    [
        (0, 0, Fraction(1)),
        (1, 0, Fraction(1)),
        (6, 0, Fraction(1, 32)),
        (5, 5, Fraction(1)),
        (8, 2, Fraction(112, 1024)),
    ],
)
def test_known_values(wins, losses, expected):
    assert SignCounts(wins, losses, 3).p_value == expected


@pytest.mark.parametrize("decided", range(9))
def test_probability_is_that_of_all_outcomes_at_least_as_uneven(decided):
    outcomes = [sum(each) for each in product((0, 1), repeat=decided)]
    for wins in range(decided + 1):
        uneven = abs(2 * wins - decided)
        as_uneven = sum(abs(2 * each - decided) >= uneven for each in outcomes)

        assert SignCounts(wins, decided - wins, 0).p_value == Fraction(
            as_uneven, len(outcomes)
        )


@given(SMALL, SMALL, SMALL)
def test_sides_can_be_exchanged(wins, losses, ties):
    assert SignCounts(wins, losses, ties).p_value == SignCounts(losses, wins, 0).p_value


@given(st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, 1))))
def test_every_pair_is_counted_once(pairs):
    found = count_signs(pairs)
    back = count_signs((right, left) for left, right in pairs)

    assert found.pairs == len(pairs)
    assert (found.wins, found.losses, found.ties) == (back.losses, back.wins, back.ties)
