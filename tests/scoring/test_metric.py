"""A rate keeps its two integers, and nothing counted is never 0 or 1."""

import json

import pytest

from harness.errors import EvidenceError
from harness.scoring.metric import (
    NOT_APPLICABLE_CODES,
    Metric,
    MetricSum,
    not_applicable,
    rate,
    verdict,
)


def summed(*metrics):
    total = MetricSum("m")
    for metric in metrics:
        total.add(metric)
    return total.total()


def test_value_follows_from_the_integers():
    assert rate("m", 3, 4, "") == Metric("m", 3, 4, 0.75, None)


def test_zero_denominator_has_a_reason_and_no_value():
    metric = rate("m", 0, 0, "metric.no_expected_call")

    assert (metric.value, metric.not_applicable_reason) == (
        None,
        "metric.no_expected_call",
    )
    assert "NaN" not in json.dumps(metric.semantic_payload())


def test_value_is_outside_the_identity():
    assert "value" not in verdict("m", True).identity_payload()


@pytest.mark.parametrize(
    "change",
    [
        {"value": 0.5},
        {"value": None},
        {"numerator": 2},
        {"numerator": -1},
        {"denominator": 0},
        {"not_applicable_reason": "metric.no_expected_call"},
    ],
)
def test_edited_metric_does_not_read_back(change):
    payload = verdict("m", True).semantic_payload() | change
    with pytest.raises(EvidenceError):
        Metric.from_payload(payload)


def test_absent_metric_needs_its_reason():
    payload = not_applicable("m", "metric.no_expected_call").semantic_payload()
    with pytest.raises(EvidenceError):
        Metric.from_payload(payload | {"not_applicable_reason": None})


def test_sum_adds_numerators_and_denominators():
    parts = (rate("m", 1, 3, ""), rate("m", 2, 2, ""), not_applicable("m", "x"))

    assert summed(*parts) == rate("m", 3, 5, "")


def test_shared_reason_is_kept():
    assert summed(not_applicable("m", "x"), not_applicable("m", "x")) == (
        not_applicable("m", "x")
    )


@pytest.mark.parametrize("reasons", [("x", "y"), ()])
def test_mixed_or_no_reasons_become_no_applicable_task(reasons):
    parts = [not_applicable("m", reason) for reason in reasons]

    assert summed(*parts).not_applicable_reason == "metric.no_applicable_task"


def test_codes_are_listed_once():
    assert len(set(NOT_APPLICABLE_CODES)) == len(NOT_APPLICABLE_CODES)
