"""One candidate's scores, fed in plan order, to one record (spec 3.13).

A partial, reordered, duplicated or foreign score is refused, never averaged. Memory
is 32 bytes an episode; everything else is a count. Every stop stays visible: both
success rates, the counts beside them, who owns what did not succeed, and the bounds
within which the rate would lie had every stop been judged (interfaces 5 and 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import sha256
from operator import attrgetter
from typing import Final

from harness.canonical import content_hash, quoted
from harness.causes import CAUSES, Attribution
from harness.errors import ScoringError
from harness.evidence.episode import Scope
from harness.evidence.records import Record
from harness.scoring.gates import GATE_NAMES, is_evidence_missing
from harness.scoring.metric import NO_APPLICABLE_TASK, Metric, MetricSum, rate
from harness.scoring.records import GateName, TaskScore
from harness.scoring.refusal import aggregation_invalid
from harness.scoring.score_hashes import ScoreHashes
from harness.stats.bounds import SuccessBounds, success_bounds

AGGREGATE_VERSION: Final = "1.0"
SUCCESS_WITHOUT_STOPS: Final = "task_success_rate_without_stops"
STOPS_OVER_CAP: Final = "stops.share_over_cap"
HASHES_NAME: Final = b'"task_score_hashes":['
"""What stands before the hashes in an aggregate's text."""
_COMPLETED: Final = "episode.completed"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What all scores of one aggregate share."""

    scope: Scope
    candidate_alias: str
    canonical_model_identity: str
    plan_identity: str
    eval_config_hash: str
    scoring_policy_hash: str
    scoring_contract_hash: str
    source_verification_identity: str
    oracle_verification_identity: str | None

    @classmethod
    def of(cls, score: TaskScore) -> RunIdentity:
        """Return the identity that a score was made under."""
        return cls(**{name: getattr(score, name) for name in cls.__slots__})


_identity_of = attrgetter(*RunIdentity.__slots__)
"""Reads the same names of a score and of a run's identity."""


@dataclass(frozen=True, slots=True)
class Companions(Record):
    """Counts of episodes that stand beside every score and never change it."""

    planned: int
    stops: int
    timeouts: int
    """Episodes whose time budget ended."""
    turn_limit_stops: int
    suspected_call_markup: int
    suspected_truncation: int
    serving_parse_loss: int
    arguments_empty: int
    stops_after_mismatch: int


@dataclass(frozen=True, slots=True)
class GateCount(Record):
    """How often one gate came out which way."""

    gate: GateName
    passed: int
    failed: int
    not_applicable: int
    """Without the episodes counted in `evidence_missing`."""
    evidence_missing: int


@dataclass(frozen=True, slots=True)
class LedgerEntry(Record):
    """How many episodes that are no success one party owns for one cause."""

    owner: str
    cause: str
    """A row of the cause table; for a completed episode the first failed gate."""
    is_stop: bool
    count: int


@dataclass(frozen=True, slots=True)
class Aggregate(Record):
    """One candidate's whole run."""

    schema_version: str
    scope: Scope
    candidate_alias: str
    canonical_model_identity: str
    plan_identity: str
    eval_config_hash: str
    scoring_policy_hash: str
    scoring_contract_hash: str
    source_verification_identity: str
    oracle_verification_identity: str | None
    task_ids: tuple[str, ...]
    task_ids_hash: str
    trials: int
    task_score_hashes: Sequence[str]
    """In plan order: all trials of a task, then the next task. `ScoreHashes` where
    memory counts."""
    task_count: int
    """Planned episodes: tasks times trials."""
    successful_tasks: int
    non_candidate_stops: int
    metrics: tuple[Metric, ...]
    companions: Companions
    gates: tuple[GateCount, ...]
    ledger: tuple[LedgerEntry, ...]
    success_bounds: SuccessBounds

    @property
    def aggregate_hash(self) -> str:
        """The identity of this aggregate."""
        return self.identity_hash()

    def identity_hash(self) -> str:
        """Return the content hash of the identity payload."""
        digest = sha256()
        for piece in self._pieces(Aggregate.identity_bytes):
            digest.update(piece)
        return "sha256:" + digest.hexdigest()

    def semantic_pieces(self) -> Iterator[bytes]:
        """Yield the canonical JSON of the semantic payload piece by piece."""
        return self._pieces(Aggregate.semantic_bytes)

    def _pieces(self, text_of: Callable[[Aggregate], bytes]) -> Iterator[bytes]:
        """Put the hashes into the text of all the rest, never all of it in memory."""
        rest = text_of(self.but(task_score_hashes=()))
        # Quotes inside a string are escaped, so only the field's own name reads so.
        before, name, after = rest.partition(HASHES_NAME)
        yield before + name
        hashes = self.task_score_hashes
        if isinstance(hashes, ScoreHashes):
            yield from map(str.encode, hashes.texts())
        else:
            yield ",".join(map(quoted, hashes)).encode("utf-8")
        yield after

    @property
    def stops_by_cause(self) -> dict[str, int]:
        """Counts of the non-candidate stops by their row of the cause table."""
        return {entry.cause: entry.count for entry in self.ledger if entry.is_stop}

    def metric(self, name: str) -> Metric:
        """Return one metric; raise KeyError for a name the scope does not have."""
        for metric in self.metrics:
            if metric.metric == name:
                return metric
        raise KeyError(name)


class Counts:
    """What an aggregate counts, over any scores in any order."""

    def __init__(self) -> None:
        self.episodes = 0
        self.successes = 0
        self.stops = 0
        self._sums: dict[str, MetricSum] = {}
        self._marks: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._gates: Counter[tuple[GateName, str]] = Counter()
        self._ledger: Counter[tuple[str, str, bool]] = Counter()

    def add(self, score: TaskScore) -> None:
        """Count one score."""
        self.episodes += 1
        self.successes += score.task_success
        self.stops += score.non_candidate_stop
        for metric in score.metrics:
            summed = self._sums.get(metric.metric)
            if summed is None:
                summed = self._sums[metric.metric] = MetricSum(metric.metric)
            summed.add(metric)
        for mark in score.companions:
            self._marks[mark] += 1
        self._statuses[score.episode_status] += 1
        for gate in score.gates:
            missing = is_evidence_missing(gate)
            outcome = "evidence_missing" if missing else gate.outcome
            self._gates[gate.gate, outcome] += 1
        if not score.task_success:
            self._ledger[blame_of(score)] += 1

    def metrics(self) -> tuple[Metric, ...]:
        """Return every metric summed, and the successes over what was judged."""
        sums = [summed.total() for summed in self._sums.values()]
        return (*sums, without_stops(self.successes, self.stops, self.episodes))

    def companions(self) -> Companions:
        """Return the counts that stand beside every score."""
        return Companions(
            planned=self.episodes,
            stops=self.stops,
            timeouts=self._statuses["episode_timeout"],
            turn_limit_stops=self._statuses["max_turns_exceeded"],
            suspected_call_markup=self._marks["suspected_call_markup"],
            suspected_truncation=self._marks["suspected_truncation"],
            serving_parse_loss=self._marks["serving_parse_loss"],
            arguments_empty=self._marks["arguments_empty"],
            stops_after_mismatch=self._marks["stops_after_mismatch"],
        )

    def gates(self) -> tuple[GateCount, ...]:
        """Return how often each gate came out which way."""
        seen = {gate for gate, _ in self._gates}
        return tuple(
            GateCount(
                gate,
                self._gates[gate, "passed"],
                self._gates[gate, "failed"],
                self._gates[gate, "not_applicable"],
                self._gates[gate, "evidence_missing"],
            )
            for gate in GATE_NAMES
            if gate in seen
        )

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return who owns how many episodes that are no success."""
        return tuple(
            LedgerEntry(owner, cause, is_stop, count)
            for (owner, cause, is_stop), count in sorted(self._ledger.items())
        )


def without_stops(successes: int, stops: int, episodes: int) -> Metric:
    """Return the successes over the episodes that no stop ended.

    A stop is never a success, so the same successes stand over both.
    """
    judged = episodes - stops
    return rate(SUCCESS_WITHOUT_STOPS, successes, judged, NO_APPLICABLE_TASK)


class Aggregator:
    """Takes one candidate's scores in plan order."""

    def __init__(
        self, identity: RunIdentity, task_ids: Sequence[str], trials: int
    ) -> None:
        self._identity = identity
        self._expected = _identity_of(identity)
        self._task_ids = tuple(task_ids)
        self._trials = trials
        if not self._task_ids or len(set(self._task_ids)) < len(self._task_ids):
            raise self._refusal("plan", "tasks, each once", f"{len(task_ids)} tasks")
        if trials < 1:
            raise self._refusal("plan", "at least one trial", trials)
        self._counts = Counts()
        self._hashes = ScoreHashes()

    def add(self, score: TaskScore, score_hash: str | None = None) -> None:
        """Add the next score of the plan; `score_hash` spares working it out again.

        Raises ScoringError (`eval_*_aggregation_invalid`) for any other score.
        """
        self._check_next(score)
        self._hashes.append(score_hash or score.score_hash)
        self._counts.add(score)

    def result(self) -> Aggregate:
        """Return the record; raise ScoringError while scores are missing."""
        planned = len(self._task_ids) * self._trials
        counts = self._counts
        if counts.episodes != planned:
            raise self._refusal("end", f"{planned} scores", counts.episodes)
        return Aggregate(
            schema_version=AGGREGATE_VERSION,
            **asdict(self._identity),
            task_ids=self._task_ids,
            task_ids_hash=content_hash(list(self._task_ids)),
            trials=self._trials,
            task_score_hashes=self._hashes,
            task_count=planned,
            successful_tasks=counts.successes,
            non_candidate_stops=counts.stops,
            metrics=counts.metrics(),
            companions=counts.companions(),
            gates=counts.gates(),
            ledger=counts.ledger(),
            success_bounds=success_bounds(counts.successes, counts.stops, planned),
        )

    def _check_next(self, score: TaskScore) -> None:
        position = self._counts.episodes
        task, trial = divmod(position, self._trials)
        if task >= len(self._task_ids):
            raise self._refusal(
                f"score {position}", f"no more than {position} scores", score.task_id
            )
        expected = (self._task_ids[task], trial)
        if (score.task_id, score.trial) != expected:
            raise self._refusal(
                f"score {position}",
                f"task {expected[0]}, trial {expected[1]}",
                f"task {score.task_id}, trial {score.trial}",
            )
        if _identity_of(score) != self._expected:
            identity = RunIdentity.of(score)
            differing = [
                name
                for name in RunIdentity.__slots__
                if getattr(identity, name) != getattr(self._identity, name)
            ]
            raise self._refusal(
                f"task {score.task_id}, trial {score.trial}",
                "scores of one candidate, plan, config, policy, source and oracle",
                f"another {', '.join(differing)}",
            )

    def _refusal(self, where: str, expected: str, actual: object) -> ScoringError:
        return aggregation_invalid(
            self._identity.scope,
            "scores do not make one whole run in plan order",
            where=f"candidate {self._identity.candidate_alias}, {where}",
            expected=expected,
            actual=str(actual),
        )


def stop_share_exceeded(aggregate: Aggregate, max_stop_share: float) -> bool:
    """Tell whether stops pass the cap, so that no score may be published.

    The cap is read as the decimal that the config states: 0.1 of 10 is exactly 1.
    """
    share = Fraction(aggregate.non_candidate_stops, aggregate.task_count)
    return share > Fraction(repr(max_stop_share))


def blame_of(score: TaskScore) -> tuple[str, str, bool]:
    """Return owner, cause and whether it is a stop, of an episode without success."""
    cause = CAUSES[score.cause]
    if score.non_candidate_stop and cause.attribution is not Attribution.INFRASTRUCTURE:
        # `strict-002` also calls a stop what broke after the candidate's own failure.
        unread = "executable.assertion_state_unavailable" in score.failure_codes
        status = "oracle_state_failed" if unread else "assertion_infrastructure_failed"
        cause = CAUSES[f"episode.{status}"]
    if cause.code != _COMPLETED:
        return cause.owner.value, cause.code, score.non_candidate_stop
    gate = next(gate for gate in score.gates if gate.outcome == "failed")
    return cause.owner.value, gate.reason_code, score.non_candidate_stop
