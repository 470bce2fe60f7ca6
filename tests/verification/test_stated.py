"""What an aggregate states beside withheld episodes is held to those that are whole."""

from dataclasses import replace

import pytest

from harness.candidates.request import Endpoint
from harness.run.recorded import RunEvidence
from harness.run.score import score_recorded
from harness.scoring.aggregate import Counts
from harness.scoring.metric import Metric
from harness.verification.findings import Findings
from harness.verification.stated import check_bounds
from harness.verification.verify import verify


@pytest.fixture(scope="module")
def aggregates(executable_run):
    return {
        each.aggregate.candidate_alias: each.aggregate
        for each in verify(executable_run).scored
    }


@pytest.fixture(scope="module")
def partial_counts(executable_run):
    """The counts of each candidate over all episodes but the last."""
    found = {}
    with RunEvidence(executable_run) as evidence:
        for planned in evidence.plan.header.candidates:
            endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
            found[planned.alias] = counts = Counts()
            for task in list(evidence.tasks_of(planned))[:-1]:
                counts.add(score_recorded(evidence, endpoint, task, 0).score)
    return found


def problems(aggregate, counts, withheld=1):
    findings = Findings()
    check_bounds(aggregate, counts, withheld, findings)
    return [each.where.partition(", candidate ")[2] for each in findings.violations]


@pytest.mark.parametrize("alias", ["gold", "wrong-argument"])
def test_true_aggregate_lies_within(aggregates, partial_counts, alias):
    assert problems(aggregates[alias], partial_counts[alias]) == []


def raised(metrics, name, numerator, denominator):
    new = Metric(name, numerator, denominator, numerator / denominator, None)
    return tuple(new if each.metric == name else each for each in metrics)


@pytest.mark.parametrize(
    "name", ["task_success_rate", "task_success_rate_without_stops"]
)
def test_headline_follows_from_the_counts(aggregates, partial_counts, name):
    forged = aggregates["wrong-argument"]
    forged = forged.but(metrics=raised(forged.metrics, name, 3, 3))

    assert f"wrong-argument, {name}" in problems(
        forged, partial_counts["wrong-argument"]
    )


def test_metric_cannot_lose_what_was_missed(aggregates, partial_counts):
    forged = aggregates["wrong-argument"]
    metrics = raised(forged.metrics, "argument_accuracy", 9, 9)

    found = problems(forged.but(metrics=metrics), partial_counts["wrong-argument"])
    assert found == ["wrong-argument, argument_accuracy, misses"]


def test_count_outside_of_its_bounds_is_named(aggregates, partial_counts):
    true = aggregates["wrong-argument"]
    gates = tuple(
        replace(
            each, passed=true.task_count, failed=0, not_applicable=0, evidence_missing=0
        )
        for each in true.gates
    )
    found = problems(true.but(gates=gates), partial_counts["wrong-argument"])

    assert any(where.startswith("wrong-argument, gates.") for where in found)


@pytest.mark.parametrize(
    "members",
    [
        {"task_count": 4},
        {"trials": 2},
        {"task_ids_hash": "sha256:" + "0" * 64},
        {"successful_tasks": 2},
        {"non_candidate_stops": 1},
        {"ledger": ()},
        {"task_ids": ("a",)},
    ],
    ids=lambda members: next(iter(members)),
)
def test_aggregate_contradicts_itself_nowhere(aggregates, partial_counts, members):
    forged = aggregates["wrong-argument"].but(**members)

    assert problems(forged, partial_counts["wrong-argument"]) != []
