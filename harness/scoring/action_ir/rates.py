"""Shares and F1 figures with their counts, and the one way in which means are taken.

A mean is a plain sum from left to right over the count. Python 3.12 made the built-in
sum of floats compensated, which moves the last digit and with it every published hash,
so nothing here calls it on floats. An empty ratio is 0.0 in the file of the contract;
`unmeasured` tells which zeros are no measurement.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.canonical import Json


def ratio(numerator: float, denominator: float) -> float:
    """Divide; 0.0 where there is nothing to divide by."""
    return numerator / denominator if denominator else 0.0


def rate(numerator: int, denominator: int) -> dict[str, Json]:
    """Return a share as the contract writes it."""
    return {
        "numerator": numerator,
        "denominator": denominator,
        "value": ratio(numerator, denominator),
    }


def f1(true_positive: int, false_positive: int, false_negative: int) -> float:
    """Return the harmonic mean of precision and recall, in the contract's order."""
    precision = ratio(true_positive, true_positive + false_positive)
    recall = ratio(true_positive, true_positive + false_negative)
    return ratio(2 * precision * recall, precision + recall)


def precision_recall_f1(
    true_positive: int, false_positive: int, false_negative: int
) -> dict[str, Json]:
    """Return precision, recall and F1 with their counts."""
    return {
        "precision": ratio(true_positive, true_positive + false_positive),
        "recall": ratio(true_positive, true_positive + false_negative),
        "f1": f1(true_positive, false_positive, false_negative),
        "true_positive": true_positive,
        "false_positive": false_positive,
        "false_negative": false_negative,
    }


def plain_mean(values: Iterable[float]) -> float:
    """Return the left-to-right mean; 0.0 of nothing."""
    total = 0.0
    count = 0
    for value in values:
        total += value
        count += 1
    return ratio(total, count)
