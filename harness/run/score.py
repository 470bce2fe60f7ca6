"""From evidence to aggregates: the only way in which scores come about.

A run scores what it has just recorded in the same way in which a replay scores what
was recorded years ago, so the two cannot differ. Episodes are read in plan order and
one at a time; memory holds one of them and one hash for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from harness.candidates.request import Endpoint
from harness.evidence.plan_file import PlannedCandidate
from harness.evidence.task_row import TaskRow, sum_traffic, task_row
from harness.run.recorded import RecordedEpisode, RunEvidence
from harness.scoring.aggregate import Aggregate, Aggregator, RunIdentity
from harness.scoring.records import TaskScore
from harness.scoring.score import score_episode
from harness.stats.slices import SliceCount, Slices

TakeRow = Callable[[TaskRow], None]


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """One candidate's aggregate and its counts by kind of task."""

    aggregate: Aggregate
    slices: tuple[SliceCount, ...]


def score_run(evidence: RunEvidence, take_row: TakeRow) -> tuple[ScoredCandidate, ...]:
    """Score every planned episode; `take_row` gets the task table's rows in order.

    Raises EvidenceError for evidence that is not there or contradicts itself, and
    ScoringError where it does not fit its task, plan or policy.
    """
    return anyio.run(_score_all, evidence, take_row)


async def _score_all(
    evidence: RunEvidence, take_row: TakeRow
) -> tuple[ScoredCandidate, ...]:
    return tuple(
        [
            await _score_candidate(evidence, planned, take_row)
            for planned in evidence.plan.header.candidates
        ]
    )


async def _score_candidate(
    evidence: RunEvidence, planned: PlannedCandidate, take_row: TakeRow
) -> ScoredCandidate:
    endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
    aggregator: Aggregator | None = None
    slices = Slices()
    trials = evidence.plan.header.trials
    for task in evidence.tasks_of(planned):
        for trial in range(trials):
            recorded = await evidence.episode(endpoint, task, trial)
            score = _score(evidence, recorded)
            if aggregator is None:
                aggregator = Aggregator(
                    RunIdentity.of(score), evidence.task_ids_of(planned), trials
                )
            aggregator.add(score)
            slices.add(
                {
                    "turn_policy": task.spec.turn_policy,
                    "category": task.spec.category,
                    "difficulty": task.spec.difficulty,
                },
                success=score.task_success,
                stop=score.non_candidate_stop,
            )
            take_row(_row(score, recorded))
    if aggregator is None:
        raise AssertionError("authorization lets no empty plan through")
    return ScoredCandidate(aggregator.result(), slices.result())


def _score(evidence: RunEvidence, recorded: RecordedEpisode) -> TaskScore:
    config = evidence.config
    return score_episode(
        recorded.episode,
        recorded.task,
        config.scoring_policy,
        eval_config_hash=config.eval_config_hash,
        scoring_policy_hash=config.scoring_policy_hash,
        plan_identity=evidence.plan.header.plan_identity,
    )


def _row(score: TaskScore, recorded: RecordedEpisode) -> TaskRow:
    traffic = sum_traffic(len(recorded.outcomes), recorded.attempts, recorded.outcomes)
    return task_row(score, recorded.task.spec, recorded.episode, traffic)
