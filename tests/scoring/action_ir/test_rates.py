"""Shares, F1 and means, empty ones and the order of addition included."""

import pytest

from harness.scoring.action_ir.rates import (
    f1,
    plain_mean,
    precision_recall_f1,
    rate,
    ratio,
)


def test_mean_adds_from_left_to_right_without_compensation():
    assert plain_mean([1e16, 1.0, 1.0, -1e16]) == 0.0
    assert plain_mean([0.1] * 10) == 0.09999999999999999


def test_mean_and_share_of_nothing_are_zero():
    assert (plain_mean([]), ratio(0, 0)) == (0.0, 0.0)
    assert rate(0, 0) == {"numerator": 0, "denominator": 0, "value": 0.0}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0), 0.0),
        ((0, 3, 2), 0.0),
        ((2, 0, 0), 1.0),
        ((1, 1, 1), 0.5),
        ((4, 0, 10), 0.4444444444444445),
    ],
)
def test_f1_is_taken_from_precision_and_recall(counts, expected):
    assert f1(*counts) == expected
    assert precision_recall_f1(*counts)["f1"] == expected


def test_precision_and_recall_keep_their_counts():
    assert precision_recall_f1(1, 3, 0) == {
        "precision": 0.25,
        "recall": 1.0,
        "f1": 0.4,
        "true_positive": 1,
        "false_positive": 3,
        "false_negative": 0,
    }
