"""Executable mode's half of a turn: run what was proposed, and say what happened.

Calls run in the candidate's order, one at a time, even if the turn does not equal
the script; what may not run is recorded as refused with its reason (spec 3.9). A
mutating call is bracketed by state hashes, is never sent twice, and becomes unknown
when its reply is lost. After the conversation the final state is read and the
assertions run, unless the oracle itself has failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio

from harness.canonical import Json, canonical_json, content_hash
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


@dataclass(slots=True)
class LiveOracle:
    """One oracle session and the record of all that it was asked."""

    open_session: Callable[[], Awaitable[PackSession]]
    part: ExecutablePart
    catalog: ToolCatalog
    deadline: float
    """The episode's, on the event loop's clock."""
    executions: list[Execution] = field(default_factory=list)
    assertions: list[AssertionOutcome] = field(default_factory=list)
    final_state_hash: str | None = None
    _session: PackSession | None = None
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
            return ended("oracle_reset_failed", str(fault))
        return None

    @property
    def session(self) -> PackSession:
        """The session that `reset` opened."""
        if self._session is None:
            raise AssertionError("the oracle was asked before its reset")
        return self._session

    def evidence(self) -> dict[str, Any]:
        """Return what the worker left behind, empty when none was started."""
        return {} if self._session is None else self._session.evidence()

    def refuse_all(
        self, turn_index: int, tool_calls: Sequence[ToolCall], reason: str
    ) -> tuple[int, ...]:
        """Record a turn of which nothing may run."""
        return tuple(
            self._record(_not_executed(turn_index, i, call, reason))
            for i, call in enumerate(tool_calls)
        )

    async def execute(
        self, turn_index: int, tool_calls: Sequence[ToolCall], *, matched: bool
    ) -> tuple[tuple[int, ...], End | None]:
        """Run the calls of one turn; return their execution indexes and any end."""
        indexes = []
        end: End | None = None
        may_confirm = matched and turn_index in self.part.confirmed_call_turns
        for position, call in enumerate(tool_calls):
            execution = _not_executed(
                turn_index, position, call, "tool_execution.prior_call_failed"
            )
            if end is None:
                execution = self._inspected(execution, call, may_confirm)
                if not execution.reason_code:
                    execution, end = await self._run(execution, turn_index, call)
                elif execution.reason_code == _UNEARNED:
                    end = ended("confirmation_not_earned", _UNEARNED)
            indexes.append(self._record(execution))
        return tuple(indexes), end

    def released(self, indexes: Sequence[int]) -> list[str]:
        """Mark executions as released and return their results as canonical text."""
        contents = []
        for index in indexes:
            self.executions[index] = replace(
                self.executions[index], released_to_model=True
            )
            contents.append(canonical_json(self.executions[index].result))
        return contents

    async def finish(self, status: EpisodeStatus) -> End | None:
        """Read the final state and run the assertions where that makes sense."""
        if status in ORACLE_DEAD:
            return None
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

    def _record(self, execution: Execution) -> int:
        index = len(self.executions)
        self.executions.append(replace(execution, execution_index=index))
        return index

    def _inspected(
        self, execution: Execution, call: ToolCall, may_confirm: bool
    ) -> Execution:
        """Return the call with the reason why it may not run, or with none."""
        if call.type not in (None, "function") or not call.function_name:
            return replace(execution, reason_code="tool_execution.invalid_call_shape")
        if call.parsed_arguments is None:
            return replace(execution, reason_code="tool_execution.invalid_arguments")
        policy = self._policies.get(call.function_name)
        if policy is None:
            return replace(execution, reason_code="tool_execution.undeclared_tool")
        failures = self.catalog.failures(call.function_name, call.parsed_arguments)
        reason = "tool_execution.schema_invalid" if failures else ""
        parameter = policy.confirmation_parameter
        if (
            not failures
            and policy.requires_confirmation
            and parameter is not None
            and call.parsed_arguments.get(parameter) is True
            and not may_confirm
        ):
            reason = _UNEARNED
        return replace(
            execution,
            schema_valid=not failures,
            schema_failures=failures,
            reason_code=reason,
        )

    async def _run(
        self, execution: Execution, turn_index: int, call: ToolCall
    ) -> tuple[Execution, End | None]:
        """Run one call; a mutating one stands between two state hashes."""
        name = str(call.function_name)
        mutates = self._policies[name].mutates
        started = anyio.current_time()
        try:
            before = await self.session.state_hash() if mutates else None
        except OracleFault as fault:
            return self._faulted(execution, fault, "not_started", started)
        try:
            result = await self.session.call_tool(
                name, dict(call.parsed_arguments or {}), turn_index=turn_index
            )
        except OracleFault as fault:
            commit, after = await self._commit(before, mutates=mutates)
            if not fault.sent:
                commit = "not_started"
            execution = replace(
                execution, state_before_hash=before, state_after_hash=after
            )
            return self._faulted(execution, fault, commit, started)
        commit, after = await self._commit(before, mutates=mutates)
        status, end = _judge(result, commit)
        done = replace(
            execution,
            status=status,
            state_commit=commit,
            state_before_hash=before,
            state_after_hash=after,
            result=result,
            result_hash=content_hash(result),
            reason_code=f"tool_execution.{status}",
            duration_s=anyio.current_time() - started,
        )
        return done, end

    async def _commit(
        self, before: str | None, *, mutates: bool
    ) -> tuple[StateCommit, str | None]:
        """Say whether the state moved; unknown when nobody can read it any more."""
        if not mutates:
            return "not_applicable", None
        try:
            after = await self.session.state_hash()
        except OracleFault:
            return "unknown", None
        return ("not_committed" if after == before else "committed"), after

    def _faulted(
        self,
        execution: Execution,
        fault: OracleFault,
        commit: StateCommit,
        started: float,
    ) -> tuple[Execution, End]:
        status, end = self._fault_status(fault, commit)
        malformed = fault.kind == "malformed"
        faulted = replace(
            execution,
            status=status,
            state_commit=commit,
            malformed_result=fault.value if malformed else None,
            malformed_result_type=fault.value_type if malformed else None,
            reason_code=f"tool_execution.{status}",
            detail=str(fault),
            duration_s=anyio.current_time() - started,
        )
        return faulted, ended(end, str(fault))

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


def _not_executed(
    turn_index: int, position: int, call: ToolCall, reason: str
) -> Execution:
    return Execution(
        execution_index=-1,
        turn_index=turn_index,
        position_in_turn=position,
        provider_call_index=call.index,
        call_id=call.id,
        function_name=call.function_name,
        parsed_arguments=call.parsed_arguments,
        schema_valid=None,
        schema_failures=(),
        status="not_executed",
        state_commit="not_started",
        state_before_hash=None,
        state_after_hash=None,
        result=None,
        result_hash=None,
        released_to_model=False,
        malformed_result=None,
        malformed_result_type=None,
        reason_code=reason,
        detail="",
        duration_s=None,
    )
