"""Statistics of one candidate, fed in plan order."""

import pytest

from harness.stats.interval import wilson_interval
from harness.stats.tally import ALL, JUDGED, StatisticsTally


def tallied(trials, *tasks):
    """Feed tasks of `(template, outcomes)`; an outcome is `+`, `-` or `s` for stop."""
    tally = StatisticsTally(trials)
    for template, outcomes in tasks:
        for outcome in outcomes:
            tally.add(template, success=outcome == "+", stop=outcome == "s")
    return tally.result()


def by_name(statistics):
    return {(each.metric, each.clusters): each for each in statistics.intervals}


def test_tasks_asked_once_have_wilsons_interval_and_no_repeats():
    statistics = tallied(1, ("a", "+"), ("a", "-"), ("b", "+"), ("b", "s"))

    found = by_name(statistics)[ALL, "task"]
    plain = wilson_interval(2, 4)
    assert (found.low, found.high) == (plain.low, plain.high)
    assert found.method == "wilson-95"
    assert statistics.repeats is None


def test_stopped_episodes_are_outside_the_second_rate():
    found = by_name(tallied(1, ("a", "+"), ("a", "-"), ("b", "s")))[JUDGED, "task"]

    plain = wilson_interval(1, 2)
    assert (found.low, found.high) == (plain.low, plain.high)


def test_templates_that_differ_make_the_rate_less_certain():
    tasks = [("a", "+")] * 30 + [("b", "-")] * 30 + [("c", "+")] * 30
    found = by_name(tallied(1, *tasks))

    assert found[ALL, "template"].effective_n < found[ALL, "task"].effective_n
    assert found[ALL, "template"].method == "wilson-95-effective-n"


def test_repeats_are_chances_over_tasks():
    repeats = tallied(3, ("a", "+++"), ("a", "+-s")).repeats

    assert repeats.tasks_by_successes == (0, 1, 0, 1)
    assert [each.k for each in repeats.chances] == [1, 2, 3]
    assert repeats.chances[0].pass_at_k == pytest.approx(2 / 3)
    assert repeats.chances[2].pass_at_k == 1
    assert repeats.chances[2].pass_hat_k == 0.5


def test_many_trials_state_some_k_and_all():
    repeats = tallied(40, ("a", "+" * 40)).repeats

    assert [each.k for each in repeats.chances] == [*range(1, 9), 16, 32, 40]


def test_run_in_which_everything_stopped_has_no_second_interval():
    statistics = tallied(1, ("a", "s"), ("b", "s"))

    assert (JUDGED, "task") not in by_name(statistics)
    assert by_name(statistics)[ALL, "task"].low == 0.0
