"""A run folder read back: the conversations as they were, without the world.

A trace episode is the driver walking the script again, with every outcome served
from the candidate log; an executable episode is the recorded one, and its requests
and turns must follow from its script and the candidate log. No network, key, pack or
worker is involved, and a request that was never recorded is a refusal, never an
answer.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from harness.candidates.request import Endpoint, PreparedRequest, around_messages
from harness.conversation.driver import EpisodeRequest, drive
from harness.errors import EvidenceError
from harness.evidence.artifacts import read_json_artifact
from harness.evidence.candidate_log import (
    CandidateLog,
    CandidateRecords,
    NotedLatencies,
    check_bodies,
)
from harness.evidence.episode import Attempt, Episode, Outcome
from harness.evidence.episode_log import EpisodeLog, EpisodeRecords
from harness.evidence.folder import RunFolder
from harness.evidence.log_reader import LogReader
from harness.evidence.manifest import RecordRoot
from harness.evidence.plan_file import PlanFile, PlannedCandidate
from harness.json_schema import ToolCatalog
from harness.run.keys import episode_key
from harness.run.provenance import EpisodeProof
from harness.run.settings import RunSettings
from harness.run.superseded import check_superseded
from harness.scoring.reading import ScorableTask
from harness.scoring.withheld import DecoyPool

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """A candidate that answers from the log and from nothing else."""

    log: CandidateRecords
    given: list[Outcome] = field(default_factory=list)
    """What it has answered so far."""

    async def exchange(self, request: PreparedRequest, *, deadline: float) -> Outcome:
        """Return the recorded outcome; raise EvidenceError if there is none."""
        outcome = _recorded(self.log, request.request_hash, request.request_id)
        self.given.append(outcome)
        return outcome


def _recorded(log: CandidateRecords, request_hash: str, request_id: str) -> Outcome:
    outcome = log.outcome_of(request_hash)
    if outcome is None:
        raise EvidenceError(
            "eval_candidate_cache_invalid",
            "the run never recorded how this request ended",
            where=f"candidate_io_cache.jsonl, request {request_id}",
            expected="a completion or a failure of it",
            recovery="use the whole folder of a finished run",
        )
    return outcome


def _require_of(episode: Episode, request: EpisodeRequest) -> None:
    """Refuse an episode that says to be another one than its key."""
    planned = (
        request.endpoint.alias,
        request.endpoint.canonical_id,
        request.task.spec.task_id,
        request.trial,
    )
    stated = (
        episode.candidate_alias,
        episode.canonical_model_identity,
        episode.task_id,
        episode.trial,
    )
    if stated != planned:
        raise EvidenceError(
            "eval_tool_trace_cache_invalid",
            "an episode stands under the key of another one",
            where=f"tool_trace_cache.jsonl, task {request.task.spec.task_id}, "
            f"trial {request.trial}, candidate {request.endpoint.alias}",
            expected=str(planned),
            actual=str(stated)[:300],
            recovery="bring back an intact copy of the run folder",
        )


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """One episode with the outcome of each of its requests."""

    task: ScorableTask
    episode: Episode
    outcomes: tuple[Outcome, ...]
    evidence: Evidence

    @property
    def attempts_by_turn(self) -> tuple[tuple[Attempt, ...], ...]:
        """The exchanges of each turn, read when they are asked for."""
        read = self.evidence.attempts_of
        return tuple([read(turn.request_hash) for turn in self.episode.turns])

    @property
    def latencies_s(self) -> list[float]:
        """The seconds of all exchanges, turn by turn."""
        read = self.evidence.latencies_of
        return [s for turn in self.episode.turns for s in read(turn.request_hash)]


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """What a manifest says of one evidence file."""

    content_hash: str
    root: RecordRoot


class Evidence:
    """The evidence of one run, wherever it is read from."""

    config: RunSettings
    plan: PlanFile
    candidate_log: CandidateRecords
    episode_log: EpisodeRecords | None
    """None in trace mode."""
    decoys: DecoyPool | None = None
    """The plan's withheld values by their source; worked out when first needed."""
    _frame: tuple[tuple[str, ToolCatalog], tuple[bytes, bytes]] | None = None
    """Endpoint and tools of the last episode, with what their requests share."""

    async def episode(
        self, endpoint: Endpoint, task: ScorableTask, trial: int
    ) -> RecordedEpisode:
        """Return one recorded episode; raise EvidenceError if it is not there."""
        request = EpisodeRequest(
            task=task,
            endpoint=endpoint,
            policy=self.config.scoring_policy,
            plan_identity=self.plan.header.plan_identity,
            trial=trial,
            attempt=1,
            max_turns=self.config.max_turns,
            around=self._around(endpoint, task),
        )
        if self.episode_log is None:
            # The turns are made from these very outcomes, so the two agree.
            candidate = RecordedCandidate(self.candidate_log)
            episode = await drive(request, candidate, deadline=math.inf)
            outcomes = tuple(candidate.given)
        else:
            episode = self._whole_episode(self.episode_log, request)
            outcomes = tuple(
                _recorded(
                    self.candidate_log,
                    turn.request_hash,
                    f"{endpoint.alias}:{task.spec.task_id}:{trial}:{turn.turn_index}",
                )
                for turn in episode.turns
            )
            EpisodeProof(
                endpoint,
                task,
                episode,
                outcomes,
                self.candidate_log,
                around=request.around,
            ).check()
        return RecordedEpisode(task, episode, outcomes, self)

    def _around(self, endpoint: Endpoint, task: ScorableTask) -> tuple[bytes, bytes]:
        """Return what all requests with these tools share, encoded once."""
        # Tasks with equal tools have one catalog.
        key = (endpoint.alias, task.catalog)
        known = self._frame
        if known is None or known[0] != key:
            self._frame = known = (
                key,
                around_messages(endpoint, task.spec.script.tools),
            )
        return known[1]

    def attempts_of(self, request_hash: str) -> tuple[Attempt, ...]:
        """Return the recorded exchanges of one request."""
        return self.candidate_log.attempts_of(request_hash)

    def latencies_of(self, request_hash: str) -> tuple[float, ...]:
        """Return the seconds of each recorded exchange of one request."""
        return self.candidate_log.latencies_of(request_hash)

    def _whole_episode(self, log: EpisodeRecords, request: EpisodeRequest) -> Episode:
        completed = log.completed(episode_key(self.config, request))
        if not completed:
            raise EvidenceError(
                "eval_tool_trace_cache_invalid",
                "the run never recorded this episode",
                where=f"tool_trace_cache.jsonl, task {request.task.spec.task_id}, "
                f"trial {request.trial}, candidate {request.endpoint.alias}",
                expected="one completed episode for each planned one",
                recovery="finish the run with `fairtrial run CONFIG --resume`",
            )
        for episode in completed:
            _require_of(episode, request)
        if len(completed) > 1:
            check_superseded(completed, self.candidate_log)
        return completed[-1]

    def logs(self) -> dict[str, LogReader]:
        """Return the evidence files that scoring reads, by their manifest names."""
        logs = {
            "eval_plan": self.plan.log,
            "candidate_io_cache": self.candidate_log.log,
        }
        if self.episode_log is not None:
            logs["tool_trace_cache"] = self.episode_log.log
        return logs

    def roots(self) -> dict[str, RecordRoot]:
        """Return the root of every evidence file, as opening worked them out."""
        return {
            name: RecordRoot(len(log), log.merkle_root)
            for name, log in self.logs().items()
        }

    def files(self) -> dict[str, EvidenceFile]:
        """Return hash and root of every evidence file."""
        roots, logs = self.roots(), self.logs()
        return {n: EvidenceFile(logs[n].content_hash, roots[n]) for n in logs}

    def task_ids_of(self, planned: PlannedCandidate) -> tuple[str, ...]:
        """Return a candidate's task ids in plan order."""
        if planned.task_ids is not None:
            return planned.task_ids
        return self.plan.header.task_ids

    def tasks_of(self, planned: PlannedCandidate) -> Iterator[ScorableTask]:
        """Yield a candidate's tasks in plan order."""
        return map(ScorableTask.of, self.plan.tasks_for(planned))


class LiveEvidence(Evidence):
    """The evidence of a run that is under way, read from the logs that it writes."""

    def __init__(
        self,
        config: RunSettings,
        plan: PlanFile,
        candidate_log: CandidateLog,
        episode_log: EpisodeLog | None,
    ) -> None:
        self.config = config
        self.plan = plan
        self.candidate_log = candidate_log
        self.episode_log = episode_log


class RunEvidence(Evidence):
    """The evidence in a run folder, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self._folder = RunFolder(folder)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open and verify plan and logs; raises EvidenceError or ArtifactError."""
        latencies = NotedLatencies(check_bodies)
        with ExitStack() as stack:
            resolved = read_json_artifact(self._folder.file("resolved_eval_config"))
            self.config = RunSettings.from_resolved(resolved)
            self.plan = stack.enter_context(
                PlanFile.open(self._folder.file("eval_plan"))
            )
            self.candidate_log = stack.enter_context(
                CandidateLog.open(
                    self._folder.file("candidate_io_cache"),
                    writable=False,
                    visit=latencies.note,
                )
            )
            self.candidate_log.noted = latencies
            self.episode_log = (
                stack.enter_context(
                    EpisodeLog.open(
                        self._folder.file("tool_trace_cache"), writable=False
                    )
                )
                if self.config.is_executable
                else None
            )
            self._stack = stack.pop_all()
        for log in (self.candidate_log, self.episode_log):
            if log is not None:
                log.log.forget_use()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def concluded(conversation: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a conversation with the evidence, which waits for nobody."""
    try:
        conversation.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    conversation.close()
    raise AssertionError("a conversation with the evidence has nothing to wait for")
