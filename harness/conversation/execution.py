"""Executable mode's half of a turn: run what was proposed, and say what happened.

Calls run in the candidate's order, one at a time, even if the turn does not equal
the script; what may not run is recorded as refused with its reason (spec 3.9). A
mutating call is bracketed by state hashes, is never sent twice, and becomes unknown
when its reply is lost. After the conversation the final state is read and the
assertions run, unless the oracle itself has failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from harness.canonical import Json, canonical_json, hash_bytes
from harness.conversation.drafts import ExecutionDraft
from harness.conversation.ending import End, ended
from harness.conversation.task import ExecutablePart, ToolPolicy
from harness.evidence.episode import (
    AssertionOutcome,
    EpisodeStatus,
    Execution,
    ExecutionStatus,
    StateCommit,
    ToolCall,
)
from harness.json_schema import ToolCatalog
from harness.oracle.contracts import OracleFault, PackSession
from harness.scoring.executable import ORACLE_DEAD

_UNEARNED: Final = "tool_execution.confirmation_not_earned"
_NOT_REACHED: Final = "tool_execution.prior_call_failed"


@dataclass(slots=True)
class LiveOracle:
    """One oracle session and the record of all that it was asked."""

    open_session: Callable[[], Awaitable[PackSession]]
    part: ExecutablePart
    catalog: ToolCatalog
    deadline: float
    """The episode's, on the event loop's clock."""
    drafts: list[ExecutionDraft] = field(default_factory=list)
    """All calls so far, by execution index."""
    assertions: list[AssertionOutcome] = field(default_factory=list)
    final_state_hash: str | None = None
    _session: PackSession | None = None
    _opening: OracleFault | None = None
    """Why no session began."""
    _policies: dict[str, ToolPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the tool policies by name."""
        self._policies = {p.function_name: p for p in self.part.tool_policies}

    async def reset(self) -> End | None:
        """Open the session and bring it to the task's initial state."""
        try:
            self._session = await self.open_session()
            await self._session.reset()
        except OracleFault as fault:
            self._opening = fault
            return ended("oracle_reset_failed", str(fault))
        return None

    @property
    def session(self) -> PackSession:
        """The session that `reset` opened."""
        if self._session is None:
            raise AssertionError("the oracle was asked before its reset")
        return self._session

    def executions(self) -> tuple[Execution, ...]:
        """Return all calls as evidence."""
        return tuple([draft.record(index) for index, draft in enumerate(self.drafts)])

    def evidence(self) -> dict[str, Any]:
        """Return what the worker left behind; how it failed, where none was started."""
        if self._session is not None:
            return self._session.evidence()
        return {} if self._opening is None else {"ended": self._opening.as_json()}

    def refuse_all(
        self, turn_index: int, tool_calls: Sequence[ToolCall], reason: str
    ) -> tuple[int, ...]:
        """Record a turn of which nothing may run."""
        return tuple(
            self._keep(ExecutionDraft(turn_index, position, call, reason))
            for position, call in enumerate(tool_calls)
        )

    async def execute(
        self, turn_index: int, tool_calls: Sequence[ToolCall], *, matched: bool
    ) -> tuple[tuple[int, ...], End | None]:
        """Run the calls of one turn; return their execution indexes and any end."""
        indexes = []
        end: End | None = None
        may_confirm = matched and turn_index in self.part.confirmed_call_turns
        for position, call in enumerate(tool_calls):
            draft = ExecutionDraft(turn_index, position, call, _NOT_REACHED)
            if end is None:
                self._inspect(draft, may_confirm)
                if not draft.reason_code:
                    end = await self._run(draft)
                elif draft.reason_code == _UNEARNED:
                    end = ended("confirmation_not_earned", _UNEARNED)
            indexes.append(self._keep(draft))
        return tuple(indexes), end

    def released(self, indexes: Sequence[int]) -> list[str]:
        """Mark executions as released and return their results as canonical text."""
        drafts = [self.drafts[index] for index in indexes]
        for draft in drafts:
            draft.released_to_model = True
        return [draft.result_text for draft in drafts]

    async def finish(self, status: EpisodeStatus) -> End | None:
        """Read the final state and run the assertions where that makes sense."""
        if status in ORACLE_DEAD:
            return None
        names = [spec.name for spec in self.part.assertions]
        self.session.foresee_end(names, self.part.assertion_task)
        try:
            self.final_state_hash = await self.session.state_hash()
        except OracleFault as fault:
            return ended("oracle_state_failed", str(fault))
        for spec in self.part.assertions:
            try:
                reply = await self.session.run_assertion(
                    spec.name, self.part.assertion_task
                )
            except OracleFault as fault:
                self.assertions.append(
                    AssertionOutcome(
                        spec.assertion_index,
                        spec.name,
                        spec.category,
                        "infrastructure_error",
                        f"assertion.{fault.kind}",
                        str(fault),
                    )
                )
            else:
                self.assertions.append(
                    AssertionOutcome(
                        spec.assertion_index,
                        spec.name,
                        spec.category,
                        reply.status,
                        reply.reason_code,
                        reply.detail,
                    )
                )
            last = self.assertions[-1]
            if last.status == "infrastructure_error":
                return ended("assertion_infrastructure_failed", last.detail)
        return None

    async def close(self) -> End | None:
        """End the session; its process tree is gone afterwards."""
        if self._session is None:
            return None
        with anyio.CancelScope(shield=True):
            try:
                await self._session.close()
            except OracleFault as fault:
                return ended("oracle_session_failed", str(fault))
        return None

    def _keep(self, draft: ExecutionDraft) -> int:
        self.drafts.append(draft)
        return len(self.drafts) - 1

    def _inspect(self, draft: ExecutionDraft, may_confirm: bool) -> None:
        """Note the reason why a call may not run, or none."""
        call = draft.call
        if call.type not in (None, "function") or not call.function_name:
            draft.reason_code = "tool_execution.invalid_call_shape"
            return
        if call.parsed_arguments is None:
            draft.reason_code = "tool_execution.invalid_arguments"
            return
        policy = self._policies.get(call.function_name)
        if policy is None:
            draft.reason_code = "tool_execution.undeclared_tool"
            return
        failures = self.catalog.failures(call.function_name, call.parsed_arguments)
        draft.schema_valid = not failures
        draft.schema_failures = failures
        draft.reason_code = "tool_execution.schema_invalid" if failures else ""
        parameter = policy.confirmation_parameter
        if (
            not failures
            and policy.requires_confirmation
            and parameter is not None
            and call.parsed_arguments.get(parameter) is True
            and not may_confirm
        ):
            draft.reason_code = _UNEARNED

    async def _run(self, draft: ExecutionDraft) -> End | None:
        """Run one call; a mutating one stands between two state hashes."""
        call = draft.call
        name = str(call.function_name)
        arguments = dict(call.parsed_arguments or {})
        mutates = self._policies[name].mutates
        started = anyio.current_time()
        if mutates:
            self.session.foresee_call(name, arguments, turn_index=draft.turn_index)
        try:
            before = await self.session.state_hash() if mutates else None
        except OracleFault as fault:
            return self._faulted(draft, fault, "not_started", started)
        draft.state_before_hash = before
        try:
            result = await self.session.call_tool(
                name, arguments, turn_index=draft.turn_index
            )
        except OracleFault as fault:
            commit = await self._commit(draft, mutates=mutates)
            if not fault.sent:
                commit = "not_started"
            return self._faulted(draft, fault, commit, started)
        commit = await self._commit(draft, mutates=mutates)
        draft.status, end = _judge(result, commit)
        draft.state_commit = commit
        draft.result = result
        draft.result_text = canonical_json(result)
        draft.result_hash = hash_bytes(draft.result_text.encode("utf-8"))
        draft.reason_code = f"tool_execution.{draft.status}"
        draft.duration_s = anyio.current_time() - started
        return end

    async def _commit(self, draft: ExecutionDraft, *, mutates: bool) -> StateCommit:
        """Say whether the state moved; unknown when nobody can read it any more."""
        if not mutates:
            return "not_applicable"
        try:
            after = await self.session.state_hash()
        except OracleFault:
            return "unknown"
        draft.state_after_hash = after
        return "not_committed" if after == draft.state_before_hash else "committed"

    def _faulted(
        self,
        draft: ExecutionDraft,
        fault: OracleFault,
        commit: StateCommit,
        started: float,
    ) -> End:
        draft.status, end = self._fault_status(fault, commit)
        draft.state_commit = commit
        if fault.kind == "malformed":
            draft.malformed_result = fault.value
            draft.malformed_result_type = fault.value_type
        draft.reason_code = f"tool_execution.{draft.status}"
        draft.detail = str(fault)
        draft.duration_s = anyio.current_time() - started
        return ended(end, str(fault))

    def _fault_status(
        self, fault: OracleFault, commit: StateCommit
    ) -> tuple[ExecutionStatus, EpisodeStatus]:
        if commit == "unknown":
            return "unknown_commit_state", "unknown_commit_state"
        if fault.kind == "malformed":
            return "malformed_result", "oracle_result_malformed"
        if fault.kind == "timeout":
            spent = anyio.current_time() >= self.deadline
            return "timeout", "episode_timeout" if spent else "oracle_timeout"
        return "infrastructure_error", "oracle_call_failed"


def _judge(
    result: dict[str, Any], commit: StateCommit
) -> tuple[ExecutionStatus, End | None]:
    """Classify an object that a tool returned (spec 1.5, 3.9)."""
    if commit == "unknown":
        detail = "the state after a mutating call could not be read"
        return "unknown_commit_state", ended("unknown_commit_state", detail)
    error: Json = result.get("error")
    if not isinstance(error, dict):
        return "completed", None
    code = error.get("code")
    if isinstance(code, str) and code:
        return "business_rejection", None
    return "tool_error", ended(
        "oracle_call_failed", "a tool returned an error object without a code"
    )
