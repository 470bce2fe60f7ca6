"""Records while they are being made: what an episode knows so far of a turn or a call.

Evidence is frozen, and a turn or a call becomes known in steps. A draft takes the
steps and becomes its record once, when the episode is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.evidence.episode import (
    Execution,
    ExecutionStatus,
    ObservedTurn,
    Outcome,
    StateCommit,
    ToolCall,
)


@dataclass(slots=True)
class TurnDraft:
    """One scripted turn that was asked; its fields are those of `ObservedTurn`."""

    turn_index: int
    outcome: Outcome
    companions: tuple[str, ...]
    reason_code: str
    detail: str
    paired_call_indexes: tuple[int | None, ...] = ()
    execution_indexes: tuple[int, ...] = ()
    released_user_message_hash: str | None = None
    advanced: bool = False
    matched: bool | None = None

    @property
    def text(self) -> str | None:
        """The text of the answer, None where none came."""
        response = self.outcome.response
        return None if response is None else response.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the answer, () where none came."""
        response = self.outcome.response
        return () if response is None else response.tool_calls

    def record(self) -> ObservedTurn:
        """Return the turn as evidence."""
        outcome = self.outcome
        response = outcome.response
        # By position: matching names would cost as much as filling in the record.
        return ObservedTurn(
            self.turn_index,
            outcome.request_hash,
            outcome.status,
            outcome.wire_class,
            outcome.detail_code,
            None if response is None else response.identity_hash(),
            None if response is None else response.finish_reason,
            self.text,
            self.tool_calls,
            self.paired_call_indexes,
            self.execution_indexes,
            self.released_user_message_hash,
            self.advanced,
            self.matched,
            self.companions,
            self.reason_code,
            self.detail,
        )


@dataclass(slots=True)
class ExecutionDraft:
    """One proposed call; its fields are those of `Execution`."""

    turn_index: int
    position_in_turn: int
    call: ToolCall
    reason_code: str
    """Why it did not run; empty while nothing speaks against it."""
    status: ExecutionStatus = "not_executed"
    state_commit: StateCommit = "not_started"
    schema_valid: bool | None = None
    schema_failures: tuple[dict[str, Any], ...] = ()
    state_before_hash: str | None = None
    state_after_hash: str | None = None
    result: Any = None
    result_text: str = "null"
    """The result as canonical JSON, which is what a candidate is told."""
    result_hash: str | None = None
    released_to_model: bool = False
    malformed_result: Any = None
    malformed_result_type: str | None = None
    detail: str = ""
    duration_s: float | None = None

    def record(self, execution_index: int) -> Execution:
        """Return the call as evidence."""
        call = self.call
        return Execution(
            execution_index=execution_index,
            turn_index=self.turn_index,
            position_in_turn=self.position_in_turn,
            provider_call_index=call.index,
            call_id=call.id,
            function_name=call.function_name,
            parsed_arguments=call.parsed_arguments,
            schema_valid=self.schema_valid,
            schema_failures=self.schema_failures,
            status=self.status,
            state_commit=self.state_commit,
            state_before_hash=self.state_before_hash,
            state_after_hash=self.state_after_hash,
            result=self.result,
            result_hash=self.result_hash,
            released_to_model=self.released_to_model,
            malformed_result=self.malformed_result,
            malformed_result_type=self.malformed_result_type,
            reason_code=self.reason_code,
            detail=self.detail,
            duration_s=self.duration_s,
        )
