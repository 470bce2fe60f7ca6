"""A view keeps counts and never rounds a miss away."""

import pytest

from harness.report.run_view import Ratio, view_run
from tests.report.reports import candidate, report


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


def test_stops_are_grouped_by_their_owner():
    stops = {
        "episode.oracle_timeout": 1,
        "episode.candidate_call_failed.rate_limited": 2,
        "episode.episode_timeout": 1,
    }

    (view,) = view_run(report(candidate(stops_by_cause=stops, stops=4))).candidates

    assert [(stop.owner, stop.cause, stop.count) for stop in view.stop_counts] == [
        ("driver", "episode.episode_timeout", 1),
        ("oracle", "episode.oracle_timeout", 1),
        ("provider", "episode.candidate_call_failed.rate_limited", 2),
    ]


def test_report_without_a_field_is_refused():
    payload = report()
    del payload["publication_allowed"]

    with pytest.raises(KeyError, match="publication_allowed"):
        view_run(payload)
