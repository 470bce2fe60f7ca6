"""The trade of coverage for risk, where every row carries a confidence.

One point for each distinct confidence, from the highest down: answer the rows at or
above it and leave the others out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.canonical import Json
from harness.scoring.action_ir.rates import ratio
from harness.scoring.action_ir.sample import SampleScore


@dataclass(slots=True)
class _Accepted:
    rows: int = 0
    successes: int = 0
    eligible: int = 0
    false_actions: int = 0


@dataclass(slots=True)
class RiskCoverage:
    """Collects rows; without a confidence on every row there is no curve."""

    by_confidence: dict[float, _Accepted] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, score: SampleScore) -> None:
        """Take one row in."""
        if score.confidence is None:
            self.is_complete = False
            return
        point = self.by_confidence.setdefault(score.confidence, _Accepted())
        point.rows += 1
        point.successes += score.policy_safe_executable_success
        point.eligible += score.false_action_eligible
        point.false_actions += score.false_action

    def curve(self) -> list[dict[str, Json]]:
        """Return the points, highest threshold first."""
        if not self.is_complete:
            return []
        total = sum(point.rows for point in self.by_confidence.values())
        return list(_points(sorted(self.by_confidence.items(), reverse=True), total))


def _points(
    groups: list[tuple[float, _Accepted]], total: int
) -> Iterable[dict[str, Json]]:
    accepted = _Accepted()
    for threshold, group in groups:
        accepted.rows += group.rows
        accepted.successes += group.successes
        accepted.eligible += group.eligible
        accepted.false_actions += group.false_actions
        yield {
            "threshold": threshold,
            "coverage": accepted.rows / total,
            "risk": 1.0 - accepted.successes / accepted.rows,
            "false_action_rate": ratio(accepted.false_actions, accepted.eligible),
            "accepted": accepted.rows,
        }
