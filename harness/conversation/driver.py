"""One driver for trace and executable mode.

The driver walks a script turn by turn. Where a tool result comes from is the only
difference between the modes: from the published row, or from a live oracle. All
else (prompt, audit, matching, release, budgets, precedence of errors) is shared, so
the modes cannot drift apart (`design/architecture.md` 3, ruling 6). The driver
reads no clock of its own: the candidate's outcomes say when the budget ended, which
is what lets a recorded conversation be driven again to the same episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.candidates.candidate import Candidate
from harness.candidates.request import Endpoint, RequestWriter
from harness.canonical import content_hash
from harness.conversation.companions import turn_companions
from harness.conversation.dependencies import resolve, substitute
from harness.conversation.drafts import TurnDraft
from harness.conversation.ending import (
    COMPLETED,
    End,
    ended,
    unanswered,
    unless_ended,
)
from harness.conversation.matching import TurnMatch
from harness.conversation.prompt import Prompt
from harness.conversation.release import Release, earn_release
from harness.conversation.script import (
    ConversationScript,
    ScriptedCall,
    ScriptedTurn,
)
from harness.conversation.task import ScoringPolicy
from harness.evidence.episode import (
    EPISODE_VERSION,
    DependencyOutcome,
    Episode,
    EpisodeStatus,
    Event,
    EventKind,
    ExecutionEvidence,
    Outcome,
)
from harness.json_schema import ToolCatalog
from harness.scoring.reading import ScorableTask

if TYPE_CHECKING:
    # Only a live run needs what a live oracle needs; a replay has the standard library.
    from harness.conversation.execution import LiveOracle


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """Everything that fixes one episode before it starts."""

    task: ScorableTask
    endpoint: Endpoint
    policy: ScoringPolicy
    plan_identity: str
    trial: int
    attempt: int
    max_turns: int
    around: tuple[bytes, bytes] | None = None
    """What `around_messages` gave for endpoint and tools, where it is known."""


async def drive(
    request: EpisodeRequest,
    candidate: Candidate,
    *,
    deadline: float,
    oracle: LiveOracle | None = None,
) -> Episode:
    """Hold one conversation and return what happened.

    `deadline` is the episode's, on the event loop's clock. `oracle` None means trace
    mode. Raises CandidateError where the endpoint stops the run; every other end is
    an episode status.
    """
    conversation = _Conversation(request, candidate, deadline, oracle)
    try:
        end = await conversation.hold()
        if oracle is not None:
            conversation.note("state_snapshot", "oracle.final_state_recorded")
            end = unless_ended(end, await oracle.finish(end.status))
            conversation.note("assertions", "assertions.completed")
    finally:
        closed = None if oracle is None else await oracle.close()
    return conversation.episode(unless_ended(end, closed))


_event = lru_cache(maxsize=1024)(Event)
"""Episodes consist of the same few events."""


@dataclass(slots=True)
class _Conversation:
    """The state of one episode while it lasts."""

    request: EpisodeRequest
    candidate: Candidate
    deadline: float
    oracle: LiveOracle | None
    script: ConversationScript = field(init=False)
    catalog: ToolCatalog = field(init=False)
    prompt: Prompt = field(init=False)
    writer: RequestWriter = field(init=False)
    turns: list[TurnDraft] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    dependencies: list[DependencyOutcome] = field(default_factory=list)
    results: dict[int, list[Any]] = field(default_factory=dict)
    """Live results by the gold call that each candidate call was paired with."""
    issued_names: tuple[str, ...] = ()
    pending: Release | None = None
    released_user_turns: int = 0
    released_tool_results: int = 0

    def __post_init__(self) -> None:
        self.script = self.request.task.spec.script
        self.catalog = self.request.task.catalog
        self.prompt = Prompt(self.script)
        self.writer = RequestWriter(
            self.request.endpoint,
            self.script.task_id,
            self.request.trial,
            self.script.tools,
            around=self.request.around,
        )

    def note(
        self, kind: EventKind, reason_code: str, turn_index: int | None = None
    ) -> None:
        events = self.events
        events.append(_event(len(events), kind, turn_index, reason_code))

    async def hold(self) -> End:
        self.note("seed", "episode.answer_free_seed")
        if self.oracle is not None:
            failed = await self.oracle.reset()
            if failed is not None:
                return failed
            self.note("oracle_reset", "oracle.reset.completed")
        for turn in self.script.turns:
            end = await self.take(turn)
            if end is not None:
                return end
        return COMPLETED

    async def take(self, turn: ScriptedTurn) -> End | None:
        """Ask for one scripted turn; return the end of the episode, if it is."""
        if turn.turn_index >= self.request.max_turns:
            return ended("max_turns_exceeded")
        expected, unresolved = self.expected_calls(turn)
        if unresolved is not None:
            return unresolved
        self.hand_over()
        prepared = self.writer.write(turn.turn_index, self.prompt.audited_messages())
        outcome = await self.candidate.exchange(prepared, deadline=self.deadline)
        self.note("candidate_turn", "candidate.turn.completed", turn.turn_index)
        observed = self.observe(turn, outcome)
        end = unanswered(outcome)
        if end is not None:
            observed.reason_code = f"turn.{outcome.status}"
            self.turns.append(observed)
            return end
        return await self.judge(turn, expected, observed)

    def expected_calls(
        self, turn: ScriptedTurn
    ) -> tuple[tuple[ScriptedCall, ...], End | None]:
        if self.oracle is None:
            return turn.calls, None
        declared = self.oracle.part.dependencies
        outcomes = resolve(declared, turn, self.results, self.catalog)
        self.dependencies.extend(outcomes)
        for outcome in outcomes:
            if outcome.status != "resolved":
                return turn.calls, End(
                    "dependency_resolution_failed",
                    f"episode.dependency.{outcome.status}",
                    outcome.detail,
                )
        return substitute(turn.calls, declared, outcomes), None

    def hand_over(self) -> None:
        """Put what the last turn earned into the prompt, now that it is needed."""
        release, self.pending = self.pending, None
        if release is None:
            return
        self.prompt.add_release(release)
        index = release.turn_index
        if release.results:
            self.released_tool_results += len(release.results)
            kind = "live" if self.oracle is not None else "recorded"
            self.note("tool_results", f"conversation.{kind}_results_released", index)
        if release.user_message is not None:
            self.released_user_turns += 1
            self.note("user_turn", "conversation.scripted_user_released", index)
            spoken = content_hash(release.user_message)
            self.turns[index].released_user_message_hash = spoken

    def observe(self, turn: ScriptedTurn, outcome: Outcome) -> TurnDraft:
        response = outcome.response
        companions: tuple[str, ...] = ()
        if response is not None:
            companions = turn_companions(
                response,
                expects_calls=turn.expects_calls,
                tool_names=self.catalog.names,
                max_tokens=self.request.endpoint.inference.get("max_tokens"),
            )
        return TurnDraft(
            turn.turn_index, outcome, companions, "turn.observed", outcome.detail
        )

    async def judge(
        self,
        turn: ScriptedTurn,
        expected: tuple[ScriptedCall, ...],
        observed: TurnDraft,
    ) -> End | None:
        """Match, execute and advance a turn that was answered."""
        calls = observed.tool_calls
        outcome = observed.outcome
        if outcome.detail_code == "unusable_tool_call_ids":
            return self.refuse(observed, "unusable_call_id", "unusable_tool_call_ids")
        incomplete = outcome.wire_class in ("truncated", "content_filter")
        match = self.request.task.matcher.match(
            turn,
            expected,
            text=observed.text,
            tool_calls=calls,
            incomplete=incomplete,
            policy=self.request.policy,
            issued_names=self.issued_names,
        )
        self.issued_names += tuple([call.function_name or "" for call in calls])
        observed.matched = match.matched
        observed.paired_call_indexes = match.paired_call_indexes
        observed.detail = match.detail
        if incomplete:
            return self.refuse(observed, "incomplete_response", "candidate_mismatch")
        if self.oracle is not None and calls:
            observed.execution_indexes, failed = await self.oracle.execute(
                turn.turn_index, calls, matched=match.matched
            )
            self.note("tool_execution", "tool.execution.completed", turn.turn_index)
            if failed is not None:
                self.turns.append(observed)
                return failed
        if not match.matched:
            self.turns.append(observed)
            return ended("candidate_mismatch", match.detail)
        self.advance(turn, expected, observed, match)
        return None

    def refuse(
        self, observed: TurnDraft, execution_reason: str, status: EpisodeStatus
    ) -> End:
        """End on a turn of which nothing may run."""
        incomplete = status == "candidate_mismatch"
        if self.oracle is not None:
            observed.execution_indexes = self.oracle.refuse_all(
                observed.turn_index,
                observed.tool_calls,
                f"tool_execution.{execution_reason}",
            )
        if incomplete:
            observed.reason_code = "turn.incomplete_finish"
        self.turns.append(observed)
        if incomplete:
            return End(status, "episode.incomplete_finish")
        return ended(status)

    def advance(
        self,
        turn: ScriptedTurn,
        expected: tuple[ScriptedCall, ...],
        observed: TurnDraft,
        match: TurnMatch,
    ) -> None:
        """Take a matched turn into the conversation and keep what it earned."""
        observed.advanced = True
        observed.reason_code = "turn.terminal" if turn.is_terminal else "turn.advanced"
        self.turns.append(observed)
        self.remember_results(observed, match)
        response = observed.outcome.response
        if turn.is_terminal or response is None:
            return
        self.prompt.add_candidate_turn(turn.turn_index, response)
        if self.oracle is not None:
            contents: Sequence[str] = self.oracle.released(observed.execution_indexes)
        else:
            recorded = {c.call_index: c.recorded_result or "null" for c in expected}
            contents = [
                recorded[index]
                for index in match.paired_call_indexes
                if index is not None
            ]
        self.pending = earn_release(
            turn,
            match,
            observed.tool_calls,
            contents,
            "recorded_result" if self.oracle is None else "live_result",
        )

    def remember_results(self, observed: TurnDraft, match: TurnMatch) -> None:
        if self.oracle is None:
            return
        for gold, index in zip(
            match.paired_call_indexes, observed.execution_indexes, strict=True
        ):
            if gold is not None:
                result = self.oracle.drafts[index].result
                self.results.setdefault(gold, []).append(result)

    def episode(self, end: End) -> Episode:
        self.note("terminal", end.reason_code)
        request = self.request
        script = self.script
        oracle = self.oracle
        return Episode(
            schema_version=EPISODE_VERSION,
            scope="trace" if oracle is None else "trace_and_executable",
            candidate_alias=request.endpoint.alias,
            canonical_model_identity=request.endpoint.canonical_id,
            task_id=script.task_id,
            trial=request.trial,
            plan_identity=request.plan_identity,
            source_verification_identity=script.source_verification_identity,
            script_hash=request.task.script_hash,
            status=end.status,
            reason_code=end.reason_code,
            cause_detail=end.cause_detail,
            turns=tuple([turn.record() for turn in self.turns]),
            events=tuple(self.events),
            released_user_turns=self.released_user_turns,
            released_tool_results=self.released_tool_results,
            execution=None
            if oracle is None
            else ExecutionEvidence(
                oracle_verification_identity=oracle.part.oracle_verification_identity,
                task_spec_hash=request.task.spec_hash or "",
                executions=oracle.executions(),
                dependencies=tuple(self.dependencies),
                assertions=tuple(oracle.assertions),
                final_state_hash=oracle.final_state_hash,
                worker=oracle.evidence(),
            ),
            attempt=request.attempt,
            replayed=False,
            duration_s=None,
            detail=end.detail,
        )
