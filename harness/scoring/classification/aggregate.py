"""Label scores to the contract's metrics, with their integer counts.

Every row is in the denominator of accuracy. Macro F1 is the mean over the classes
that occur in gold. An answer that names no label, or none at all, is a miss for its
gold class and a false alarm for no class. The mean is taken of exact fractions and
rounded once, so that equal means are equal numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from harness.canonical import Json
from harness.scoring.answers import AnswerRow, primary_metric, share
from harness.scoring.classification.label import (
    COMPARER_VERSION,
    METRIC_VERSION,
    LabelScore,
)

TASK = "classification"


@dataclass(slots=True)
class LabelAggregator:
    """Takes scored rows in and gives the aggregate out; holds counts only."""

    metric: str = primary_metric(TASK)
    """The primary metric."""
    hits: Counter[str] = field(default_factory=Counter)
    """True positives by folded class."""
    gold: Counter[str] = field(default_factory=Counter)
    predicted: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        primary_metric(TASK, self.metric)

    def add(self, row: AnswerRow, score: LabelScore) -> None:
        """Take one row in."""
        self.gold[score.gold_class] += 1
        if score.predicted_class is not None:
            self.predicted[score.predicted_class] += 1
        if score.correct:
            self.hits[score.gold_class] += 1
        counts = self.counts
        counts["rows"] += 1
        counts["invalid"] += not score.valid and not score.failed
        counts["failed"] += score.failed
        counts["truncated"] += row.is_truncated
        counts["no_text"] += not row.is_text and not row.is_failed

    def result(self) -> dict[str, Json]:
        """Return the aggregate; shares of no rows are None."""
        counts, rows = self.counts, self.counts["rows"]
        classes = {name: self._class(name) for name in sorted(self.gold)}
        correct = self.hits.total()
        metrics = {
            "rows": rows,
            "accuracy": share(correct, rows),
            "macro_f1": float(sum(map(_f1, classes.values())) / len(classes))
            if classes
            else None,
            "invalid_predictions": counts["invalid"],
            "inference_failures": counts["failed"],
            "truncated": counts["truncated"],
        }
        return {
            "contract": "classification",
            "metric_version": METRIC_VERSION,
            "comparer_version": COMPARER_VERSION,
            "primary": {"metric": self.metric, "value": metrics[self.metric]},
            "metrics": metrics,
            "counts": {"correct": correct, "classes": classes},
            "companions": {"outputs_not_text": counts["no_text"]},
        }

    def _class(self, name: str) -> dict[str, int]:
        hits = self.hits[name]
        return {
            "tp": hits,
            "fp": self.predicted[name] - hits,
            "fn": self.gold[name] - hits,
        }


def _f1(counts: dict[str, int]) -> Fraction:
    # A class that occurs in gold has a hit or a miss, so that nothing divides by zero.
    hits = counts["tp"]
    return Fraction(2 * hits, 2 * hits + counts["fp"] + counts["fn"])
