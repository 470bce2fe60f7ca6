"""A measurement as two integers; its value is derived and forks no identity.

A zero denominator has no value and says why with a reason code, so nothing that was
never measured can look like 0 or 1 (spec 3.13, wire contract B38).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final

from harness.errors import EvidenceError
from harness.evidence.records import RepeatedRecord

NO_APPLICABLE_TASK: Final = "metric.no_applicable_task"
NOT_APPLICABLE_CODES: Final = (
    "metric.gate_not_applicable",
    "metric.no_expected_call",
    "metric.no_text_milestone",
    "metric.no_evaluated_turn",
    "metric.no_attempted_call",
    "metric.no_declared_assertion",
    "metric.assertion_evidence_incomplete",
    "metric.all_assertions_not_applicable",
    "metric.no_state_assertion",
    "metric.path_evidence_incomplete",
    "metric.no_final_answer_assertion",
    "metric.evidence_missing",
    NO_APPLICABLE_TASK,
)
"""Every reason for which a metric may have no value.

`metric.evidence_missing` is ours: a stop prevented what the metric would judge.
"""


@dataclass(frozen=True, slots=True)
class Metric(RepeatedRecord):
    """One named rate, on one task or summed over many."""

    OUTSIDE_IDENTITY: ClassVar[frozenset[str]] = frozenset({"value"})

    metric: str
    numerator: int
    denominator: int
    value: float | None
    """Numerator / denominator; None exactly when the denominator is 0."""
    not_applicable_reason: str | None

    def __post_init__(self) -> None:
        """Refuse a metric that contradicts itself."""
        value = self.numerator / self.denominator if self.denominator > 0 else None
        if (
            not 0 <= self.numerator <= self.denominator
            or value != self.value
            or (value is None) != (self.not_applicable_reason is not None)
        ):
            raise EvidenceError(
                "eval_evidence_invalid",
                "a metric contradicts itself",
                where=self.metric,
                expected="0 <= numerator <= denominator, the value that follows from "
                "them, and a reason exactly when the denominator is 0",
                actual=f"{self.numerator}/{self.denominator}, value {self.value}, "
                f"reason {self.not_applicable_reason}",
                recovery="use the file that the run wrote; records are never edited",
            )


def rate(metric: str, numerator: int, denominator: int, otherwise: str) -> Metric:
    """Return a rate, or with a zero denominator the reason `otherwise`."""
    if denominator == 0:
        return not_applicable(metric, otherwise)
    value = numerator / denominator
    return Metric(metric, numerator, denominator, value, None)


@cache
def verdict(metric: str, passed: bool) -> Metric:
    """Return a yes or no as a rate over one."""
    return rate(metric, int(passed), 1, "")


@cache
def not_applicable(metric: str, reason: str) -> Metric:
    """Return a metric without a value."""
    return Metric(metric, 0, 0, None, reason)


class MetricSum:
    """Sums one metric over episodes: numerators, denominators, a shared reason."""

    __slots__ = ("_denominator", "_metric", "_numerator", "_reasons")

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._numerator = 0
        self._denominator = 0
        self._reasons: set[str] = set()

    def add(self, one: Metric) -> None:
        """Add one episode's measurement."""
        self._numerator += one.numerator
        self._denominator += one.denominator
        if one.not_applicable_reason is not None:
            self._reasons.add(one.not_applicable_reason)

    def total(self) -> Metric:
        """Return the sum; a reason is kept only if all episodes share it."""
        reason = NO_APPLICABLE_TASK
        if len(self._reasons) == 1:
            (reason,) = self._reasons
        return rate(self._metric, self._numerator, self._denominator, reason)
