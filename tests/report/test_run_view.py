"""A view keeps counts and never rounds a miss away."""

import json

import pytest

from harness.report.run_view import Ratio, view_run
from tests.report.reports import blame, candidate, report


@pytest.mark.parametrize(
    ("numerator", "denominator", "counts", "percent"),
    [
        (3, 5, "3/5", "60.0 %"),
        (0, 5, "0/5", "0.0 %"),
        (5, 5, "5/5", "100.0 %"),
        (0, 0, "n/a", "n/a"),
        (9_999, 10_000, "9999/10000", ">99.9 %"),
        (1, 10_000, "1/10000", "<0.1 %"),
        (1, 3, "1/3", "33.3 %"),
    ],
)
def test_ratio_shows_counts_and_an_honest_percentage(
    numerator, denominator, counts, percent
):
    ratio = Ratio(numerator, denominator)

    assert (ratio.counts, ratio.percent) == (counts, percent)


def test_headline_rates_stand_apart_from_the_metrics():
    (view,) = view_run(report(candidate(successful=3, stops=1))).candidates

    assert view.success == Ratio(3, 5)
    assert view.success_without_stops == Ratio(3, 4)
    assert [name for name, _ in view.metrics] == [
        "argument_accuracy",
        "state_match_rate",
    ]


def test_ledger_lists_stops_first_and_the_frequent_before_the_rare():
    ledger = [
        blame("candidate", "episode.candidate_mismatch", 9, is_stop=False),
        blame("oracle", "episode.oracle_timeout", 1),
        blame("provider", "episode.candidate_call_failed.rate_limited", 2),
    ]

    (view,) = view_run(report(candidate(ledger=ledger, stops=3))).candidates

    assert [(entry.owner, entry.count) for entry in view.ledger] == [
        ("provider", 2),
        ("oracle", 1),
        ("candidate", 9),
    ]
    assert view.ledger[1].summary == "A read-only call passed its deadline."


def test_failed_gate_of_a_completed_episode_is_named():
    ledger = [blame("candidate", "executable.assertion_failed", 1, is_stop=False)]

    (view,) = view_run(report(candidate(ledger=ledger))).candidates

    assert view.ledger[0].summary == "A gate failed in an episode that completed."


def test_stops_widen_what_the_rate_could_be():
    (view,) = view_run(report(candidate(successful=2, stops=1))).candidates

    assert view.could_be == (Ratio(2, 5), Ratio(3, 5))


def test_report_without_a_field_is_refused():
    payload = report()
    del payload["publication_allowed"]

    with pytest.raises(KeyError, match="publication_allowed"):
        view_run(payload)


def test_view_of_a_stored_report_is_that_of_a_fresh_one():
    fresh = report(candidate(), candidate("words"))

    stored = json.loads(json.dumps(fresh, sort_keys=True))

    assert view_run(stored) == view_run(fresh)
