"""Figures and versions of each scoring contract, as a record states them.

A contract's aggregate has its own form; here each becomes named metrics with the
integers of every rate beside it. Means that are no rate of two counts have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from harness.canonical import Json
from harness.evaluations.record import MetricValue
from harness.scoring.action_ir.mobile import SCORER_VERSION
from harness.scoring.action_ir.sample import EVALUATOR_VERSION
from harness.scoring.action_ir.unmeasured import measures
from harness.scoring.aggregate import AGGREGATE_VERSION
from harness.scoring.answers import SELECTABLE
from harness.scoring.classification import label
from harness.scoring.json_record import record as json_record
from harness.scoring.json_record.equality import COMPARER_VERSION
from harness.scoring.mlperf_agentic.diagnostics import CONTRACT as MLPERF_CONTRACT
from harness.scoring.mlperf_agentic.diagnostics import table_hash
from harness.scoring.records import TASK_SCORE_VERSION

TASK_OF_CONTRACT: Final[Mapping[str, str]] = {
    "action-ir": "action-ir",
    "classification": "classification",
    "json-records": "json",
    "mlperf-agentic": "mlperf-agentic",
    "executable": "executable",
    "trace": "trace",
}
"""The row of the table of metrics for each contract."""
_NO_ROWS: Final = "no row counts towards this metric"
_JSON_COUNTS: Final = {
    "parseable_rate": "parseable",
    "schema_valid_rate": "schema_valid",
    "whole_record_accuracy": "record",
}


def scorer_versions(contract: str) -> dict[str, Json]:
    """Return the versions of everything that makes scores of a contract."""
    if contract == "mlperf-agentic":
        return {
            "contract": contract,
            "metric_version": MLPERF_CONTRACT,
            "table_hash": table_hash(),
        }
    return dict(_SCORERS[contract])


def metric_fields(contract: str, name: str) -> dict[str, Json]:
    """Return the `metric` group of a protocol."""
    return {"name": name, "version": scorer_versions(contract)["metric_version"]}


def contract_fields(contract: str, declaration: str | None) -> dict[str, Json]:
    """Return the `contract` group; `declaration` is the hash of schema or labels."""
    versions = scorer_versions(contract)
    # The version of the metric is a reason of its own.
    del versions["metric_version"]
    return {**versions, "declaration": declaration}


class SubjectFigures(TypedDict):
    """Metrics and counts by the names that `Subject` takes."""

    metrics: dict[str, MetricValue]
    counts: dict[str, Json]


def answer_metrics(contract: str, aggregate: Mapping[str, Json]) -> SubjectFigures:
    """Return the figures of an aggregate of single-turn rows."""
    if contract == "action-ir":
        return _action_ir(aggregate)
    counts = aggregate["counts"]
    rows = aggregate["metrics"]["rows"]
    if contract == "classification":
        parts = {"accuracy": (counts["correct"], rows)}
    else:
        fields = counts["fields"]
        parts = {name: (counts[each], rows) for name, each in _JSON_COUNTS.items()}
        parts["mean_field_accuracy"] = sum(fields.values()), rows * len(fields)
    found = {
        name: _figure(aggregate["metrics"][name], *parts.get(name, (None, None)))
        for name in SELECTABLE[TASK_OF_CONTRACT[contract]]
    }
    shown = ("rows", "inference_failures", "truncated")
    more = ("invalid_predictions", "records_with_extra_fields")
    return {
        "metrics": found,
        "counts": {
            name: aggregate["metrics"][name]
            for name in (*shown, *more)
            if name in aggregate["metrics"]
        },
    }


def mlperf_metrics(
    head: Mapping[str, Json], diagnostics: Mapping[str, Json]
) -> SubjectFigures:
    """Return metrics and counts of an MLPerf-agentic score file and its extras.

    Turn scores are shares themselves, so the mean over turns has no two counts.
    """
    answered = diagnostics["answered_only"]
    return {
        "metrics": {
            "score": _figure(head["score"]),
            "answered_only_score": _figure(answered["score"]),
        },
        "counts": {**head["turns"], "answered_only": answered["scored"]},
    }


def _action_ir(aggregate: Mapping[str, Json]) -> SubjectFigures:
    measured = measures(aggregate)
    found = {}
    for name in SELECTABLE["action-ir"]:
        stated = aggregate[name]
        parts: tuple[int | None, int | None] = (None, None)
        if isinstance(stated, dict) and stated.get("denominator"):
            parts = stated["numerator"], stated["denominator"]
        found[name] = _figure(measured[name], *parts)
    return {
        "metrics": found,
        "counts": {
            "rows": aggregate["sample_count"],
            "failures": dict(aggregate["failure_counts"]),
        },
    }


def _figure(
    value: float | None, numerator: int | None = None, denominator: int | None = None
) -> MetricValue:
    if value is None:
        return MetricValue(None, reason=_NO_ROWS)
    return MetricValue(value, numerator, denominator)


_SCORERS: Final[Mapping[str, Mapping[str, Json]]] = {
    "action-ir": {
        "contract": "action-ir",
        "metric_version": EVALUATOR_VERSION,
        "scorer_version": SCORER_VERSION,
    },
    "json-records": {
        "contract": "json-records",
        "metric_version": json_record.METRIC_VERSION,
        "comparer_version": COMPARER_VERSION,
    },
    "classification": {
        "contract": "classification",
        "metric_version": label.METRIC_VERSION,
        "comparer_version": label.COMPARER_VERSION,
    },
    "executable": {
        "contract": "executable",
        "metric_version": AGGREGATE_VERSION,
        "task_score_version": TASK_SCORE_VERSION,
    },
    "trace": {
        "contract": "trace",
        "metric_version": AGGREGATE_VERSION,
        "task_score_version": TASK_SCORE_VERSION,
    },
}
