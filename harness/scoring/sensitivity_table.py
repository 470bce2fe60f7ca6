"""How scores, places and verdicts move from policy to policy.

Episodes may be added in any order; the result depends on what was added alone. A score
is a count of successes over the planned episodes, from the lowest, where every unknown
verdict is none, to the highest, where every one is. Places are taken over the tasks
that all candidates share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.evidence.records import Record
from harness.scoring.sensitivity import BASELINE, POLICY_NAMES, PolicyName, Verdict
from harness.stats.ranking import Place, places


@dataclass(frozen=True, slots=True)
class PolicyScore(Record):
    """One candidate under one policy; counts of episodes."""

    policy: str
    success: int
    failure: int
    stop: int
    unknown: int
    place: Place

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest number of successes."""
        return self.success, self.success + self.unknown


@dataclass(frozen=True, slots=True)
class CandidateScores(Record):
    """One candidate under every policy, in the order of the declared set."""

    alias: str
    planned: int
    policies: tuple[PolicyScore, ...]


@dataclass(frozen=True, slots=True)
class Flip(Record):
    """One episode whose verdict is another one than the run's own."""

    policy: str
    candidate_alias: str
    task_id: str
    trial: int
    recorded: str
    verdict: str
    reason_code: str
    turn_index: int | None


@dataclass(frozen=True, slots=True)
class Sensitivity(Record):
    """The whole table."""

    candidates: tuple[CandidateScores, ...]
    shared_tasks: int
    """Tasks that places are taken over."""
    flips: tuple[Flip, ...]
    """By policy, candidate, task and trial."""


class SensitivityTally:
    """Takes the verdicts of every episode of every candidate."""

    def __init__(self, tasks: Mapping[str, Sequence[str]]) -> None:
        """Declare each candidate's planned tasks, by alias in the plan's order."""
        self._aliases = tuple(tasks)
        shared = set.intersection(*(set(each) for each in tasks.values()))
        self._shared = frozenset(shared)
        self._counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._shared_counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(
            Counter
        )
        self._flips: list[Flip] = []

    def add(
        self,
        alias: str,
        task_id: str,
        trial: int,
        verdicts: Mapping[PolicyName, Verdict],
    ) -> None:
        """Add one episode."""
        recorded = verdicts[BASELINE].value
        for policy in POLICY_NAMES:
            verdict = verdicts[policy]
            self._counts[alias, policy][verdict.value] += 1
            if task_id in self._shared:
                self._shared_counts[alias, policy][verdict.value] += 1
            if verdict.value != recorded:
                self._flips.append(
                    Flip(
                        policy,
                        alias,
                        task_id,
                        trial,
                        recorded,
                        verdict.value,
                        verdict.reason_code,
                        verdict.turn_index,
                    )
                )

    def result(self) -> Sensitivity:
        """Return the table of all that was added."""
        by_policy = {policy: self._places(policy) for policy in POLICY_NAMES}
        return Sensitivity(
            candidates=tuple(
                CandidateScores(
                    alias,
                    sum(self._counts[alias, BASELINE].values()),
                    tuple(
                        self._score(alias, policy, by_policy[policy][alias])
                        for policy in POLICY_NAMES
                    ),
                )
                for alias in self._aliases
            ),
            shared_tasks=len(self._shared),
            flips=tuple(sorted(self._flips, key=self._order)),
        )

    def _order(self, flip: Flip) -> tuple[int, int, str, int]:
        return (
            POLICY_NAMES.index(flip.policy),
            self._aliases.index(flip.candidate_alias),
            flip.task_id,
            flip.trial,
        )

    def _places(self, policy: PolicyName) -> dict[str, Place]:
        bounds = {}
        for alias in self._aliases:
            counts = self._shared_counts[alias, policy]
            lowest = counts["success"]
            bounds[alias] = (lowest, lowest + counts["unknown"])
        return places(bounds)

    def _score(self, alias: str, policy: PolicyName, place: Place) -> PolicyScore:
        counts = self._counts[alias, policy]
        return PolicyScore(
            policy,
            counts["success"],
            counts["failure"],
            counts["stop"],
            counts["unknown"],
            place,
        )
