"""Wilson's interval: known values, exact ends, and its coverage."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.interval import Z_95, wilson_interval


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775327998628892),
        (5, 10, 0.2365931, 0.7634069),
        (10, 10, 0.7224672001371108, 1.0),
    ],
)
def test_known_values(successes, total, low, high):
    interval = wilson_interval(successes, total)

    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)


def test_nothing_counted_has_no_interval():
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(("successes", "total"), [(-1, 2), (3, 2)])
def test_impossible_counts_are_refused(successes, total):
    with pytest.raises(ValueError, match="successes of"):
        wilson_interval(successes, total)


COUNTS = st.integers(1, 500).flatmap(
    lambda total: st.tuples(st.integers(0, total), st.just(total))
)


@given(COUNTS)
def test_interval_holds_the_rate_and_mirrors(counts):
    successes, total = counts
    interval = wilson_interval(successes, total)
    mirror = wilson_interval(total - successes, total)

    assert 0 <= interval.low <= successes / total <= interval.high <= 1
    assert interval.low == pytest.approx(1 - mirror.high)


@given(COUNTS.filter(lambda counts: 0 < counts[0] < counts[1]))
def test_ends_are_the_rates_that_the_score_test_just_accepts(counts):
    successes, total = counts
    interval = wilson_interval(successes, total)

    for end in (interval.low, interval.high):
        distance = (successes / total - end) ** 2
        assert distance == pytest.approx(Z_95**2 * end * (1 - end) / total)


@given(COUNTS, st.integers(2, 20))
def test_more_of_the_same_narrows_it(counts, factor):
    successes, total = counts
    one = wilson_interval(successes, total)
    more = wilson_interval(successes * factor, total * factor)

    assert more.high - more.low < one.high - one.low


@pytest.mark.parametrize("truth", [0.05, 0.3, 0.5, 0.9])
def test_interval_covers_the_truth_about_as_often_as_it_says(truth):
    total = 60
    covered = 0.0
    for successes in range(total + 1):
        interval = wilson_interval(successes, total)
        if interval.low <= truth <= interval.high:
            covered += (
                comb(total, successes)
                * truth**successes
                * (1 - truth) ** (total - successes)
            )

    assert 0.92 <= covered <= 0.985
