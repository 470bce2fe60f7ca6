"""Collect evidence: hold every planned conversation once and record it whole.

Nothing is scored here. A bounded number of episodes is in flight; each ends in one
row of the cause table and is on its way to disk before the next one starts in its
place. Work that an earlier, interrupted process completed is not asked again: a
received completion is served from the candidate log, a whole executable episode
from the episode log. A stop that a retry could have cured gets a new attempt, and so
does an episode whose worker or pack host was killed from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import anyio

from harness.candidates.request import Endpoint
from harness.causes import Cause, Owner, episode_cause, is_non_candidate_stop
from harness.config import EvalConfig
from harness.conversation.driver import EpisodeRequest, drive
from harness.conversation.execution import LiveOracle
from harness.conversation.task import ExecutablePart
from harness.errors import FairtrialError, StopLimitError
from harness.evidence.episode import Episode
from harness.evidence.episode_log import EpisodeLog
from harness.oracle.contracts import PackHost, SessionContext
from harness.run.keys import episode_key
from harness.run.resuming import ResumingCandidate
from harness.run.superseded import was_killed
from harness.scoring.reading import ScorableTask

MOST_LOST: Final = 4
"""How often one process begins an episode whose worker is killed each time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished episode, for whoever watches the run."""

    candidate_alias: str
    done: int
    planned: int
    stops: int
    reused: bool


@dataclass(slots=True)
class Collector:
    """The running part of one candidate's evaluation."""

    config: EvalConfig
    endpoint: Endpoint
    candidate: ResumingCandidate
    plan_identity: str
    planned: int
    """Episodes of this candidate: tasks times trials."""
    episodes: EpisodeLog | None
    host: PackHost | None
    check_source: Callable[[], None]
    """Looks at the source's files before each task; raises SourceError."""
    watch: Callable[[Progress], None]
    gave_up: bool
    """Whether the run was given up before, so that every stop is held again."""
    stops_before: int
    """Non-candidate stops of earlier candidates: the limit is the run's."""
    note_recorded: Callable[[int], None]
    """Is told of each episode, by its place among this candidate's, once it is
    recorded."""
    done: int = 0
    stops: int = 0
    failure: FairtrialError | None = None
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def collect(self, tasks: Iterator[ScorableTask]) -> None:
        """Hold every conversation; raise what stopped the run, if something did."""
        work = enumerate(
            (task, trial) for task in tasks for trial in range(self.config.eval.trials)
        )
        with self._scope:
            async with anyio.create_task_group() as group:
                for _ in range(self.config.limits.max_parallel_tasks):
                    group.start_soon(self._work_off, work)
        if self.failure is not None:
            raise self.failure

    async def _work_off(
        self, work: Iterator[tuple[int, tuple[ScorableTask, int]]]
    ) -> None:
        for place, (task, trial) in work:
            try:
                self.check_source()
                episode = await self._episode(task, trial)
                self.note_recorded(place)
                self._count(episode)
            except FairtrialError as error:
                self.failure = self.failure or error
                self._scope.cancel()
                return

    async def _episode(self, task: ScorableTask, trial: int) -> Episode:
        request = EpisodeRequest(
            task=task,
            endpoint=self.endpoint,
            policy=self.config.scoring_policy,
            plan_identity=self.plan_identity,
            trial=trial,
            attempt=1,
            max_turns=self.config.limits.max_turns,
        )
        part = task.spec.executable
        if self.episodes is None or self.host is None or part is None:
            deadline = anyio.current_time() + self.config.limits.episode_timeout_s
            return await drive(request, self.candidate, deadline=deadline)
        key = episode_key(self.config, request)
        known = self.episodes.lookup(key)
        if known is not None and self._stands(known):
            return known
        for _ in range(MOST_LOST):
            episode = await self._attempt(self.episodes, key, request, part)
            if not self._lost(episode):
                break
        return episode

    async def _attempt(
        self,
        episodes: EpisodeLog,
        key: str,
        request: EpisodeRequest,
        part: ExecutablePart,
    ) -> Episode:
        """Hold the next attempt of one executable episode and record it."""
        request = replace(request, attempt=episodes.attempts(key) + 1)
        spec = request.task.spec
        head = {"task_id": spec.task_id, "trial": request.trial}
        episodes.begin(
            key, request.attempt, {**head, "candidate_alias": self.endpoint.alias}
        )
        started = anyio.current_time()
        deadline = started + self.config.limits.episode_timeout_s
        oracle = self._oracle(request.task, part, deadline)
        episode = await drive(request, self.candidate, deadline=deadline, oracle=oracle)
        episode = replace(episode, duration_s=anyio.current_time() - started)
        episodes.complete(key, episode)
        return episode

    def _stands(self, episode: Episode) -> bool:
        """Tell whether a recorded episode is not to be held again."""
        if _cause(episode).retried == "request" or self._lost(episode):
            return False
        if self.gave_up and _may_be_held_again(episode):
            return False
        return self.candidate.backs(episode)

    def _lost(self, episode: Episode) -> bool:
        """Tell whether somebody killed the world of an episode.

        All of a local pack's state was in the worker, so another attempt begins from
        nothing, with the answers that were received. What an endpoint did is not gone
        with the worker that asked for it, and no call is made again whose reply was
        lost while it may have changed something.
        """
        oracle = self.config.source_oracle
        if oracle is None or oracle.kind != "python":
            return False
        return episode.status != "unknown_commit_state" and was_killed(episode)

    def _oracle(
        self, task: ScorableTask, part: ExecutablePart, deadline: float
    ) -> LiveOracle:
        if self.host is None:
            raise AssertionError("executable episodes need a host")
        context = SessionContext(task.spec.task_id, part.seed, part.oracle_clock)
        return LiveOracle(
            partial(self.host.open_session, context, deadline=deadline),
            part,
            task.catalog,
            deadline,
        )

    def _count(self, episode: Episode) -> None:
        self.done += 1
        if is_non_candidate_stop(episode.status):
            self.stops += 1
            self._hold_limit(_cause(episode))
        self.watch(
            Progress(
                self.endpoint.alias,
                self.done,
                self.planned,
                self.stops,
                episode.replayed,
            )
        )

    def _hold_limit(self, last: Cause) -> None:
        limit = self.config.limits.max_stops
        stops = self.stops_before + self.stops
        if stops <= limit:
            return
        endpoint = last.owner in (Owner.PROVIDER, Owner.TRANSPORT, Owner.DRIVER)
        raise StopLimitError(
            "eval_candidate_stop_limit" if endpoint else "eval_oracle_stop_limit",
            "too many episodes stopped for reasons that are not the candidate's",
            where=f"candidate {self.endpoint.alias}",
            expected=f"at most {limit} stops (limits.max_stops)",
            actual=f"{stops} stops, the last one {last.code}",
            recovery="mend the cause, then `fairtrial run CONFIG --resume`; "
            "completed work is kept",
        )


def _may_be_held_again(episode: Episode) -> bool:
    """Tell whether a stop is one that another attempt cannot make worse."""
    return (
        is_non_candidate_stop(episode.status)
        and episode.status != "unknown_commit_state"
    )


def _cause(episode: Episode) -> Cause:
    return episode_cause(episode.status, episode.reason_code, episode.cause_detail)
