"""A rate over clusters: Wilson's own interval where they are single, wider if alike."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.clusters import CLUSTERED, INDEPENDENT, clustered_interval
from harness.stats.interval import wilson_interval

PAIRS = st.integers(1, 6).flatmap(
    lambda size: st.tuples(st.integers(0, size), st.just(size))
)


@given(successes=st.integers(0, 60), failures=st.integers(0, 60))
def test_single_episodes_give_wilsons_interval(successes, failures):
    found = clustered_interval({(1, 1): successes, (0, 1): failures})

    plain = wilson_interval(successes, successes + failures)
    assert (None if found is None else found.interval) == plain
    if found is not None:
        assert found.method == INDEPENDENT


def test_clusters_that_agree_within_count_once_each():
    alike = clustered_interval({(3, 3): 20, (0, 3): 20})

    assert alike.method == CLUSTERED
    assert alike.effective_n == pytest.approx(39)


def test_clusters_that_all_have_the_same_rate_count_every_episode():
    assert clustered_interval({(1, 2): 30}).effective_n == 60


@pytest.mark.parametrize("pair", [(0, 4), (4, 4)])
def test_nothing_that_differs_counts_clusters_only(pair):
    assert clustered_interval({pair: 10}).effective_n == 10


def test_empty_clusters_are_left_out():
    with_empty = clustered_interval({(1, 2): 3, (0, 2): 3, (0, 0): 50})

    assert with_empty == clustered_interval({(1, 2): 3, (0, 2): 3})
    assert clustered_interval({(0, 0): 4}) is None


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="3 successes of 2"):
        clustered_interval({(3, 2): 1})


@given(st.lists(PAIRS, min_size=1, max_size=40))
def test_interval_holds_the_rate_and_stays_a_share(pairs):
    found = clustered_interval(Counter(pairs))

    rate = sum(c for c, _ in pairs) / sum(m for _, m in pairs)
    assert 0 <= found.interval.low <= rate + 1e-12
    assert rate - 1e-12 <= found.interval.high <= 1
    assert 1 <= found.effective_n <= sum(m for _, m in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "least"), [(0.3, 0.93), (3.0, 0.93)])
def test_interval_covers_the_rate_as_often_as_it_says(spread, least):
    draw = random.Random(7)
    held = 0
    rounds = 1000
    for _ in range(rounds):
        pairs = Counter()
        for _ in range(60):
            chance = draw.betavariate(0.6 * spread, 0.4 * spread)
            pairs[sum(draw.random() < chance for _ in range(4)), 4] += 1
        interval = clustered_interval(pairs).interval
        held += interval.low <= 0.6 <= interval.high

    assert held / rounds >= least
