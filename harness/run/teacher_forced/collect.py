"""Collect evidence: put every recorded turn to the candidate, and record what comes.

Conversations are in flight side by side; within one the next turn is sent only after
the one before was answered or has failed. What the model says goes into no later
request. A turn that an earlier process got an answer to is not sent again, and nothing
is waited for before it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from harness.candidates.request import PreparedRequest
from harness.causes import CAUSES, Cause
from harness.config.teacher_forced import TeacherForcedConfig
from harness.errors import FairtrialError, StopLimitError
from harness.evidence.episode import Outcome
from harness.evidence.traffic_order import is_completion
from harness.run.resuming import ResumingCandidate
from harness.run.teacher_forced.answers import answer_score
from harness.run.teacher_forced.history import AskedTurn
from harness.run.teacher_forced.requests import Pass, RequestPlan


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """One turn more, for whoever watches the run."""

    candidate_alias: str
    turns: int
    planned_turns: int
    conversations: int
    """Passes that are over."""
    planned_conversations: int
    failed: int
    """Turns that have failed, and those that were given up after one."""
    score: float | None
    """The mean so far over turns with ground truth; None while there is none."""


def failure_cause(outcome: Outcome) -> Cause | None:
    """Return the row of the cause table for a turn without an answer, else None."""
    if is_completion(outcome):
        return None
    detail = outcome.detail_code or "timeout"
    return CAUSES[f"episode.candidate_call_failed.{detail}"]


@dataclass(slots=True)
class TurnCollector:
    """The running part of one evaluation."""

    config: TeacherForcedConfig
    plan: RequestPlan
    candidate: ResumingCandidate
    watch: Callable[[TurnProgress], None]
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """How the time before a turn passes."""
    failure: FairtrialError | None = None
    _turns: int = 0
    _passes: int = 0
    _failed: int = 0
    _given_up: int = 0
    _scored: int = 0
    _points: float = 0.0
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def collect(self) -> None:
        """Ask every turn of every pass; raise what stopped the run, if anything."""
        work = self.plan.passes()
        with self._scope:
            async with anyio.create_task_group() as group:
                for _ in range(self.config.limits.max_parallel_conversations):
                    group.start_soon(self._work_off, work)
        if self.failure is not None:
            raise self.failure

    async def _work_off(self, work: Iterator[Pass]) -> None:
        for part in work:
            try:
                await self._converse(part)
            except FairtrialError as error:
                self.failure = self.failure or error
                self._scope.cancel()
                return

    async def _converse(self, part: Pass) -> None:
        aborts = self.config.asking.on_failed_turn == "abort_conversation"
        asked = 0
        for turn, request in self.plan.requests(part):
            outcome = await self._ask(turn, request, is_first=not asked)
            asked += 1
            self._turns += 1
            cause = failure_cause(outcome)
            self._score(turn, outcome if cause is None else None)
            if cause is not None:
                self._failed += 1
                self._hold_limit(cause)
                if aborts:
                    break
            if asked < len(part.conversation.turns):
                self._show()
        for turn in part.conversation.turns[asked:]:
            self._score(turn, None)
        left = len(part.conversation.turns) - asked
        self._turns += left
        self._given_up += left
        self._passes += 1
        self._show()

    async def _ask(
        self, turn: AskedTurn, request: PreparedRequest, *, is_first: bool
    ) -> Outcome:
        known = self.candidate.known(request)
        if known is not None:
            # Lets the others, and the log's sync, have their turn.
            await anyio.lowlevel.checkpoint()
            return known
        delay_s = self.plan.delay_s(turn, is_first=is_first)
        if delay_s:
            await self.sleep(delay_s)
        return await self.candidate.live.exchange(request, deadline=math.inf)

    def _show(self) -> None:
        self.watch(
            TurnProgress(
                self.config.candidate.alias,
                self._turns,
                self.plan.turns,
                self._passes,
                len(self.plan.conversations) * self.config.asking.repeats,
                self._failed + self._given_up,
                self._points / self._scored if self._scored else None,
            )
        )

    def _score(self, turn: AskedTurn, outcome: Outcome | None) -> None:
        if turn.truth.names:
            self._scored += 1
            if outcome is not None:
                self._points += answer_score(turn.truth, outcome.response)

    def _hold_limit(self, last: Cause) -> None:
        limit = self.config.limits.max_stops
        if self._failed <= limit:
            return
        raise StopLimitError(
            "eval_candidate_stop_limit",
            "too many turns failed for reasons that are not the candidate's",
            where=f"candidate {self.config.candidate.alias}",
            expected=f"at most {limit} failed turns (limits.max_stops)",
            actual=f"{self._failed} failed turns, the last one {last.code}",
            recovery="mend the cause, then `fairtrial run CONFIG --resume`; "
            "completed work is kept",
        )
