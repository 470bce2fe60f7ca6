"""From evidence to aggregates: the only way in which scores come about.

A run scores what it has just recorded in the same way in which a replay scores what
was recorded years ago, so the two cannot differ. Episodes are read in plan order and
one at a time; memory holds one of them and one hash for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from harness.candidates.request import Endpoint
from harness.conversation.task import TaskSpec
from harness.errors import EvidenceError, FairtrialError
from harness.evidence.plan_file import PlannedCandidate
from harness.evidence.task_row import TaskRow, sum_traffic, task_row
from harness.run.recorded import Evidence, RecordedEpisode, concluded
from harness.scoring.aggregate import Aggregate, Aggregator, RunIdentity
from harness.scoring.premature import PrematureKnowledge, PrematureTally
from harness.scoring.reading import ScorableTask
from harness.scoring.records import TaskScore
from harness.scoring.score import JudgedEpisode, judge_episode
from harness.scoring.withheld import DecoyPool
from harness.stats.servers import ServedBy, Servers
from harness.stats.slices import SliceCount, Slices
from harness.stats.tally import Statistics, StatisticsTally

TakeRow = Callable[[TaskRow], None]

UNREADABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""How reading fails where somebody made up a record and hashed it anew."""


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """One candidate's aggregate and its counts by kind of task."""

    aggregate: Aggregate
    slices: tuple[SliceCount, ...]
    served_by: tuple[ServedBy, ...]
    premature: PrematureKnowledge | None = None
    """None where not every episode was looked through."""
    statistics: Statistics | None = None
    """None where not every episode was scored."""


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """One episode with its verdict."""

    recorded: RecordedEpisode
    score: TaskScore
    row: TaskRow

    @property
    def spec(self) -> TaskSpec:
        """The task that was asked."""
        return self.recorded.task.spec

    @property
    def servers(self) -> Iterator[tuple[str | None, str | None]]:
        """Server and served model of each received completion."""
        for outcome in self.recorded.outcomes:
            if outcome.response is not None:
                yield outcome.response.server, outcome.response.served_model


def score_run(evidence: Evidence, take_row: TakeRow) -> tuple[ScoredCandidate, ...]:
    """Score every planned episode; `take_row` gets the task table's rows in order.

    Raises EvidenceError for evidence that is not there or contradicts itself, and
    ScoringError where it does not fit its task, plan or policy.
    """
    scored: list[ScoredCandidate] = []
    for _ in scoring_steps(evidence, take_row, scored.append):
        continue
    return tuple(scored)


def scoring_steps(
    evidence: Evidence,
    take_row: TakeRow,
    take_candidate: Callable[[ScoredCandidate], None],
) -> Iterator[int | None]:
    """Score a run step by step, for a reader that has other things to do as well.

    Each step yields the place in the plan, over all candidates, of the episode that
    the next step reads; None where that reads none. Raises as `score_run` does.
    """
    yield from _gather_decoys(evidence)
    place = 0
    for planned in evidence.plan.header.candidates:
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        tally = CandidateTally(evidence, planned)
        for task in evidence.tasks_of(planned):
            for trial in range(evidence.plan.header.trials):
                yield place
                place += 1
                scored = score_recorded(evidence, endpoint, task, trial)
                tally.add(scored)
                take_row(scored.row)
        take_candidate(tally.result())


def score_recorded(
    evidence: Evidence, endpoint: Endpoint, task: ScorableTask, trial: int
) -> ScoredEpisode:
    """Score one recorded episode; raises as `score_run` does."""
    with readable(f"task {task.spec.task_id}, trial {trial}"):
        recorded = concluded(evidence.episode(endpoint, task, trial))
        judged = _judged(evidence, recorded)
        return ScoredEpisode(recorded, judged.score, _row(judged, recorded))


class CandidateTally:
    """Takes one candidate's scores in plan order."""

    def __init__(self, evidence: Evidence, planned: PlannedCandidate) -> None:
        self._evidence = evidence
        self._premature: PrematureTally | None = None
        self._task_ids = evidence.task_ids_of(planned)
        self._trials = evidence.plan.header.trials
        self._aggregator: Aggregator | None = None
        self._slices = Slices()
        self._statistics = StatisticsTally(self._trials)
        self._servers = Servers()

    def add(self, scored: ScoredEpisode) -> None:
        """Add the next score; raise ScoringError for any other one."""
        score, spec = scored.score, scored.spec
        if self._aggregator is None:
            self._aggregator = Aggregator(
                RunIdentity.of(score), self._task_ids, self._trials
            )
        self._aggregator.add(score, scored.row.score_hash)
        self._slices.add(
            {
                "turn_policy": spec.turn_policy,
                "category": spec.category,
                "difficulty": spec.difficulty,
            },
            success=score.task_success,
            stop=score.non_candidate_stop,
        )
        self._statistics.add(
            spec.template_id, success=score.task_success, stop=score.non_candidate_stop
        )
        for server, served_model in scored.servers:
            self._servers.add(server, served_model)
        if self._premature is None:
            self._premature = PrematureTally(_decoys(self._evidence))
        with readable(f"task {spec.task_id}, trial {score.trial}"):
            self._premature.add(spec, scored.recorded.episode)

    def result(self) -> ScoredCandidate:
        """Return the candidate's counts; raise EvidenceError for an empty plan."""
        if self._aggregator is None:
            raise EvidenceError(
                "eval_artifact_invalid",
                "the plan asks a candidate nothing",
                where="eval_plan.jsonl, record 1",
                expected="at least one task for each candidate",
                recovery="use the file that the run wrote",
            )
        return ScoredCandidate(
            self._aggregator.result(),
            self._slices.result(),
            self._servers.result(),
            None if self._premature is None else self._premature.result(),
            self._statistics.result(),
        )


def _decoys(evidence: Evidence) -> DecoyPool:
    for _ in _gather_decoys(evidence):
        continue
    if evidence.decoys is None:
        raise AssertionError("they were gathered")
    return evidence.decoys


def _gather_decoys(evidence: Evidence) -> Iterator[None]:
    """Look through the plan for decoys, a task a step, unless that was done."""
    if evidence.decoys is not None:
        return
    decoys = DecoyPool()
    for task_id in evidence.plan.header.task_ids:
        # A task that cannot be read is refused where it is scored.
        with suppress(FairtrialError), readable(f"task {task_id}"):
            decoys.add(evidence.plan.task(task_id))
        yield
    evidence.decoys = decoys


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Refuse evidence whose hashes fit and whose content does not (EvidenceError)."""
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(where, error) from error


def unreadable(where: str, error: Exception) -> EvidenceError:
    """Return the refusal of such evidence."""
    return EvidenceError(
        "eval_evidence_invalid",
        "a record whose hash is right holds what no run writes",
        where=where,
        expected="evidence as the run wrote it",
        actual=f"{type(error).__name__}: {error}"[:300],
        recovery="bring back an intact copy; report a defect if there is no other",
    )


def _judged(evidence: Evidence, recorded: RecordedEpisode) -> JudgedEpisode:
    config = evidence.config
    return judge_episode(
        recorded.episode,
        recorded.task,
        config.scoring_policy,
        eval_config_hash=config.eval_config_hash,
        scoring_policy_hash=config.scoring_policy_hash,
        plan_identity=evidence.plan.header.plan_identity,
    )


def _row(judged: JudgedEpisode, recorded: RecordedEpisode) -> TaskRow:
    outcomes = recorded.outcomes
    traffic = sum_traffic(len(outcomes), recorded.latencies_s, outcomes)
    return task_row(*judged, recorded.task.spec, recorded.episode, traffic)
