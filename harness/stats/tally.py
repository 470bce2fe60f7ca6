"""What one candidate's counts allow to say: intervals, and chances over repeats.

Episodes come in plan order, all trials of a task together. Memory grows with templates
and with trials, never with tasks. Every number says how it was worked out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from harness.evidence.records import Record
from harness.stats.clusters import clustered_interval
from harness.stats.repeats import TrialCount, mean_pass_at_k, mean_pass_hat_k

ALL: Final = "task_success_rate"
JUDGED: Final = "task_success_rate_without_stops"
REPEATS_METHOD: Final = "without-replacement-mean-over-tasks"
_EVERY_K: Final = 8
Clusters = Literal["task", "template"]


@dataclass(frozen=True, slots=True)
class RateInterval(Record):
    """The 95 % interval of one headline rate."""

    metric: str
    clusters: Clusters
    """What is alike: trials of a task, or all episodes of a template."""
    method: str
    effective_n: float
    """Independent episodes that would be as certain."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RepeatChance(Record):
    """The chances of k trials of a task, as means over tasks."""

    k: int
    pass_at_k: float
    """At least one succeeds."""
    pass_hat_k: float
    """All succeed (pass^k)."""


@dataclass(frozen=True, slots=True)
class Repeats(Record):
    """What repeats say; a stopped trial is no success."""

    method: str
    trials: int
    tasks_by_successes: tuple[int, ...]
    """How many tasks succeeded in 0, 1, ... of their trials."""
    chances: tuple[RepeatChance, ...]


@dataclass(frozen=True, slots=True)
class Statistics(Record):
    """One candidate's intervals and repeats."""

    intervals: tuple[RateInterval, ...]
    repeats: Repeats | None
    """None where each task was asked once."""


class StatisticsTally:
    """Takes one candidate's episodes in plan order."""

    def __init__(self, trials: int) -> None:
        self._trials = trials
        self._asked = 0
        self._successes = 0
        self._stops = 0
        self._tasks: Counter[tuple[int, int]] = Counter()
        """Tasks by (successes, stops)."""
        self._templates: dict[str, list[int]] = {}
        """Successes, stops and episodes by template."""

    def add(self, template_id: str, *, success: bool, stop: bool) -> None:
        """Take the next episode."""
        counts = self._templates.setdefault(template_id, [0, 0, 0])
        counts[0] += success
        counts[1] += stop
        counts[2] += 1
        self._asked += 1
        self._successes += success
        self._stops += stop
        if self._asked == self._trials:
            self._tasks[self._successes, self._stops] += 1
            self._asked = self._successes = self._stops = 0

    def result(self) -> Statistics:
        """Return the statistics of all whole tasks."""
        tasks: dict[str, Counter[tuple[int, int]]] = {ALL: Counter(), JUDGED: Counter()}
        for (successes, stops), number in self._tasks.items():
            tasks[ALL][successes, self._trials] += number
            tasks[JUDGED][successes, self._trials - stops] += number
        templates: dict[str, Counter[tuple[int, int]]] = {
            ALL: Counter(),
            JUDGED: Counter(),
        }
        for successes, stops, episodes in self._templates.values():
            templates[ALL][successes, episodes] += 1
            templates[JUDGED][successes, episodes - stops] += 1
        found = [
            _interval(metric, clusters, counts[metric])
            for metric in (ALL, JUDGED)
            for clusters, counts in _named(tasks, templates)
        ]
        return Statistics(
            tuple(each for each in found if each is not None), self._repeats()
        )

    def _repeats(self) -> Repeats | None:
        if self._trials == 1:
            return None
        by_successes = [0] * (self._trials + 1)
        for (successes, _), number in self._tasks.items():
            by_successes[successes] += number
        counts = {
            TrialCount(self._trials, successes): number
            for successes, number in enumerate(by_successes)
        }
        chances = []
        for k in _sizes(self._trials):
            at_k, hat_k = mean_pass_at_k(counts, k), mean_pass_hat_k(counts, k)
            if at_k is not None and hat_k is not None:
                chances.append(RepeatChance(k, float(at_k), float(hat_k)))
        return Repeats(
            REPEATS_METHOD, self._trials, tuple(by_successes), tuple(chances)
        )


def _named(
    tasks: dict[str, Counter[tuple[int, int]]],
    templates: dict[str, Counter[tuple[int, int]]],
) -> tuple[tuple[Clusters, dict[str, Counter[tuple[int, int]]]], ...]:
    return ("task", tasks), ("template", templates)


def _interval(
    metric: str, clusters: Clusters, counts: Counter[tuple[int, int]]
) -> RateInterval | None:
    found = clustered_interval(counts)
    if found is None:
        return None
    return RateInterval(
        metric,
        clusters,
        found.method,
        found.effective_n,
        found.interval.low,
        found.interval.high,
    )


def _sizes(trials: int) -> list[int]:
    """Return the k that are stated: each up to 8, then powers of two, and all."""
    sizes = set(range(1, min(trials, _EVERY_K) + 1)) | {trials}
    k = 2 * _EVERY_K
    while k < trials:
        sizes.add(k)
        k *= 2
    return sorted(sizes)
