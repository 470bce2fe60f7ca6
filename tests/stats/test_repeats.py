"""pass@k and pass^k are the exact chances of drawing k trials."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.repeats import (
    TrialCount,
    mean_pass_at_k,
    mean_pass_hat_k,
    pass_at_k,
    pass_hat_k,
)


@st.composite
def draws(draw):
    trials = draw(st.integers(1, 7))
    successes = draw(st.integers(0, trials))
    return TrialCount(trials, successes), draw(st.integers(1, trials))


@given(draws())
def test_estimators_equal_counting_all_draws(case):
    count, k = case
    outcomes = [True] * count.successes + [False] * (count.trials - count.successes)
    all_draws = list(combinations(outcomes, k))

    assert pass_at_k(count, k) == Fraction(sum(map(any, all_draws)), len(all_draws))
    assert pass_hat_k(count, k) == Fraction(sum(map(all, all_draws)), len(all_draws))


@given(draws())
def test_one_draw_is_the_plain_rate_and_more_draws_part_from_it(case):
    count, k = case

    assert pass_at_k(count, 1) == pass_hat_k(count, 1)
    assert pass_hat_k(count, k) <= pass_hat_k(count, 1) <= pass_at_k(count, k)


@pytest.mark.parametrize(
    ("trials", "successes", "k"),
    [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1), (0, 0, 1)],
)
def test_impossible_draws_are_refused(trials, successes, k):
    with pytest.raises(ValueError, match="trials"):
        pass_at_k(TrialCount(trials, successes), k)
    with pytest.raises(ValueError, match="trials"):
        pass_hat_k(TrialCount(trials, successes), k)


def test_each_task_counts_once():
    counts = {TrialCount(2, 1): 3, TrialCount(4, 4): 1}

    assert mean_pass_at_k(counts, 2) == 1
    assert mean_pass_hat_k(counts, 2) == Fraction(1, 4)


def test_no_task_has_no_mean():
    assert mean_pass_at_k({}, 1) is None
    assert mean_pass_hat_k({}, 1) is None
