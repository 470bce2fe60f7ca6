"""Figures of an engine: cold and warm apart, and no value without a reason."""

import pytest

from harness.engines.measuring import (
    first_token_figures,
    own_peak_memory,
    rate_figure,
    upper_median,
)


@pytest.mark.parametrize(
    ("values", "middle"),
    [([], None), ([3.0], 3.0), ([2.0, 1.0], 2.0), ([9.0, 1.0, 5.0], 5.0)],
)
def test_upper_median_takes_the_higher_of_two_middles(values, middle):
    assert upper_median(values) == middle


def test_first_row_is_cold_and_the_others_are_warm():
    cold, warm = first_token_figures([9.0, 1.0, 2.0, 3.0, 4.0], "from a to b")

    assert (cold.name, cold.value, cold.unit) == ("first_token_cold_s", 9.0, "s")
    assert (warm.name, warm.value, warm.unit) == ("first_token_warm_s", 3.0, "s")
    assert cold.boundary == "from a to b; the first row"
    assert warm.boundary == "from a to b; upper median of 4 rows after the first"


def test_one_row_gives_no_warm_figure_and_says_so():
    cold, warm = first_token_figures([9.0], "from a to b")

    assert (cold.value, warm.value) == (9.0, None)
    assert warm.boundary == "not measured: it takes two answered rows; from a to b"


def test_no_row_gives_no_figure():
    assert [each.value for each in first_token_figures([], "x")] == [None, None]


def test_rate_leaves_the_first_row_out():
    rate = rate_figure([(1, 100.0), (10, 2.0), (10, 5.0), (10, 1.0)], "whole answer")

    assert (rate.value, rate.unit) == (5.0, "tokens/s")
    assert rate.boundary == "whole answer; upper median of 3 rows after the first"


def test_rate_of_one_row_is_not_measured():
    rate = rate_figure([(1, 1.0)], "whole answer")

    assert rate.value is None
    assert rate.boundary.startswith("not measured: ")


def test_peak_memory_is_this_process_in_bytes():
    peak = own_peak_memory()

    assert peak.value > 10_000_000
    assert "ru_maxrss" in peak.boundary
