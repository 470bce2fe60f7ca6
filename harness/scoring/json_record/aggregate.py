"""Record scores to the contract's metrics, with their integer counts.

Every row is in every denominator. The field accuracies are over all fields that the
schema declares or some gold has, so a key of one gold is wrong on the rows whose gold
lacks it. Their mean is one division of two integers: no sum of floats, and so the same
last digit on every Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.canonical import Json
from harness.scoring.answers import AnswerRow, primary_metric, share
from harness.scoring.json_record.equality import COMPARER_VERSION
from harness.scoring.json_record.record import METRIC_VERSION, RecordScore, field_names

TASK = "json"


@dataclass(slots=True)
class RecordAggregator:
    """Takes scored rows in and gives the aggregate out; holds counts only."""

    document: Json
    """The schema."""
    metric: str = primary_metric(TASK)
    """The primary metric."""
    fields: Counter[str] = field(default_factory=Counter)
    """Credited rows by field, zeros included, in the order of the contract."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        primary_metric(TASK, self.metric)
        self._declare(field_names(self.document, {}))

    def add(self, row: AnswerRow, score: RecordScore) -> None:
        """Take one row in."""
        if not row.gold.keys() <= self.fields.keys():
            self._declare(row.gold)
        for name, is_right in score.fields.items():
            self.fields[name] += is_right
        counts = self.counts
        counts["rows"] += 1
        counts["parseable"] += score.parseable
        counts["schema_valid"] += score.schema_valid
        counts["record"] += score.record
        counts["extra"] += bool(score.extra_fields)
        counts["failed"] += score.failed
        counts["truncated"] += row.is_truncated
        counts["no_text"] += not row.is_text and not row.is_failed
        counts["undecided"] += score.schema == "undecided"

    def result(self) -> dict[str, Json]:
        """Return the aggregate; shares of no rows are None."""
        counts, rows = self.counts, self.counts["rows"]
        metrics = {
            "rows": rows,
            "parseable_rate": share(counts["parseable"], rows),
            "schema_valid_rate": share(counts["schema_valid"], rows),
            "whole_record_accuracy": share(counts["record"], rows),
            "field_accuracy": {
                name: share(credited, rows) for name, credited in self.fields.items()
            },
            "mean_field_accuracy": share(
                sum(self.fields.values()), rows * len(self.fields)
            ),
            "records_with_extra_fields": counts["extra"],
            "inference_failures": counts["failed"],
            "truncated": counts["truncated"],
        }
        return {
            "contract": "json-records",
            "metric_version": METRIC_VERSION,
            "comparer_version": COMPARER_VERSION,
            "primary": {"metric": self.metric, "value": metrics[self.metric]},
            "metrics": metrics,
            "counts": {
                "parseable": counts["parseable"],
                "schema_valid": counts["schema_valid"],
                "record": counts["record"],
                "fields": dict(self.fields),
            },
            "companions": {
                "outputs_not_text": counts["no_text"],
                "schema_undecided": counts["undecided"],
            },
        }

    def _declare(self, names: Iterable[str]) -> None:
        for name in names:
            self.fields.setdefault(name, 0)
