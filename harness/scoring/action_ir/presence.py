"""Tools by presence: whether a row's gold and a row's prediction name a tool.

A row counts once for a tool however often it calls it. Balanced accuracy is the mean
recall of the classes that occur, so a tool that every row has is judged by that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.canonical import Json
from harness.scoring.action_ir.action import Action
from harness.scoring.action_ir.rates import plain_mean, precision_recall_f1, ratio


@dataclass(slots=True)
class _Counts:
    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0


@dataclass(slots=True)
class ToolPresence:
    """Collects rows and says how well each tool is chosen."""

    rows: int = 0
    by_tool: dict[str, _Counts] = field(default_factory=dict)

    def add(self, gold: Action, prediction: Action | None) -> None:
        """Take one row in; `prediction` is None where none is valid."""
        self.rows += 1
        wanted = gold.tools
        named = frozenset[str]() if prediction is None else prediction.tools
        for tool in wanted | named:
            counts = self.by_tool.setdefault(tool, _Counts())
            if tool not in named:
                counts.false_negative += 1
            elif tool in wanted:
                counts.true_positive += 1
            else:
                counts.false_positive += 1

    def per_tool(self) -> dict[str, dict[str, Json]]:
        """Return the figures of every tool, in the order of names."""
        return {
            tool: self._figures(self.by_tool[tool]) for tool in sorted(self.by_tool)
        }

    def _figures(self, counts: _Counts) -> dict[str, Json]:
        hits, alarms = counts.true_positive, counts.false_positive
        misses = counts.false_negative
        quiet = self.rows - hits - alarms - misses
        recalls = [
            ratio(right, right + wrong)
            for right, wrong in ((hits, misses), (quiet, alarms))
            if right + wrong
        ]
        return {
            **precision_recall_f1(hits, alarms, misses),
            "balanced_accuracy": plain_mean(recalls),
            "true_negative": quiet,
        }
