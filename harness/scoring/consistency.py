"""Whether an episode can be what its task, its plan and its own parts say it is.

A disagreement raises ScoringError `eval_*_evidence_mismatch`: evidence of something
else is never scored low. The driver's own conclusions (`matched`,
`paired_call_indexes`, the status) are compared with what matching says now.
"""

from __future__ import annotations

from typing import Final, Literal, NoReturn

from harness.canonical import json_equal
from harness.conversation.task import ExecutablePart
from harness.evidence.episode import (
    Episode,
    EpisodeStatus,
    Execution,
    ExecutionEvidence,
    ObservedTurn,
)
from harness.scoring.failures import TRACE_STATUSES
from harness.scoring.reading import Reading, ScorableTask, TurnReading
from harness.scoring.refusal import evidence_mismatch

_Walk = Literal["whole", "held", "between", "none", "open"]
"""How far a status lets the script be walked: to its end; up to a last turn that did
not advance; up to a turn that was not asked; not at all; anywhere short of the end."""

_WALKS: Final[dict[EpisodeStatus, _Walk]] = {
    "completed": "whole",
    "candidate_mismatch": "held",
    "malformed_response": "held",
    "unusable_tool_call_ids": "held",
    "confirmation_not_earned": "held",
    "candidate_call_failed": "held",
    "max_turns_exceeded": "between",
    "episode_timeout": "open",
    "oracle_reset_failed": "none",
    "oracle_call_failed": "held",
    "oracle_timeout": "held",
    "oracle_result_malformed": "held",
    "oracle_state_failed": "whole",
    "oracle_session_failed": "whole",
    "unknown_commit_state": "held",
    "dependency_resolution_failed": "between",
    "assertion_infrastructure_failed": "whole",
}
_LAST_STATE: Final[dict[EpisodeStatus, str]] = {
    "malformed_response": "malformed",
    "candidate_call_failed": "unanswered",
}
"""State of the turn that a `held` walk ends on; `answered` for all others."""


class _Check:
    """Raises mismatches that name the episode."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode

    def refuse(self, where: str, expected: object, actual: object) -> NoReturn:
        """Raise the one error of this module."""
        episode = self.episode
        raise evidence_mismatch(
            episode.scope,
            "an episode contradicts its task or itself",
            where=f"candidate {episode.candidate_alias}, task {episode.task_id}, "
            f"trial {episode.trial}, {where}",
            expected=str(expected),
            actual=str(actual),
        )

    def equal(self, where: str, expected: object, actual: object) -> None:
        """Refuse two values that differ."""
        if expected != actual:
            self.refuse(where, expected, actual)


def check_identities(
    episode: Episode, task: ScorableTask, plan_identity: str | None
) -> None:
    """Refuse an episode of another task, script, source, plan or oracle."""
    check = _Check(episode)
    script = task.spec.script
    check.equal("task_id", script.task_id, episode.task_id)
    check.equal("script_hash", task.script_hash, episode.script_hash)
    check.equal(
        "source_verification_identity",
        script.source_verification_identity,
        episode.source_verification_identity,
    )
    if plan_identity is not None:
        check.equal("plan_identity", plan_identity, episode.plan_identity)
    executable = episode.scope == "trace_and_executable"
    check.equal("execution evidence present", executable, episode.execution is not None)
    if episode.execution is None:
        return
    if task.spec.executable is None:
        check.refuse("scope", "trace, for a task without executable part", "executable")
    check.equal("task_spec_hash", task.spec_hash, episode.execution.task_spec_hash)
    check.equal(
        "oracle_verification_identity",
        task.spec.executable.oracle_verification_identity,
        episode.execution.oracle_verification_identity,
    )
    _check_declared(check, task.spec.executable, episode.execution)


def _check_declared(
    check: _Check, part: ExecutablePart, evidence: ExecutionEvidence
) -> None:
    """Refuse a dependency that the task does not declare, before it is put in."""
    declared = {
        d.dependency_index: (
            d.consumer_call_index,
            d.consumer_turn_index,
            d.producer_call_index,
        )
        for d in part.dependencies
    }
    for outcome in evidence.dependencies:
        check.equal(
            f"dependency {outcome.dependency_index}",
            declared.get(outcome.dependency_index),
            (
                outcome.consumer_call_index,
                outcome.consumer_turn_index,
                outcome.producer_call_index,
            ),
        )


def check_evidence(reading: Reading) -> None:
    """Refuse an episode whose parts contradict each other or the matching."""
    check = _Check(reading.episode)
    _check_walk(check, reading)
    for turn in reading.turns:
        if turn.observed is not None:
            _check_turn(check, reading, turn, turn.observed)
    if reading.executable is None:
        if reading.episode.status not in TRACE_STATUSES:
            check.refuse("status", "a trace status", reading.episode.status)
        return
    part, evidence = reading.executable
    _check_executions(check, reading, evidence)
    _check_dependencies(check, reading, part, evidence)
    _check_assertions(check, part, evidence)


def _check_walk(check: _Check, reading: Reading) -> None:
    turns = reading.episode.turns
    scripted = len(reading.turns)
    status = reading.episode.status
    walk = _WALKS[status]
    check.equal(
        "turn_index of turns", list(range(len(turns))), [t.turn_index for t in turns]
    )
    advanced = [turn.advanced for turn in turns]
    whole = len(turns) == scripted and all(advanced)
    held = bool(turns) and not advanced[-1] and all(advanced[:-1])
    between = len(turns) < scripted and all(advanced)
    sound = {
        "whole": whole,
        "held": held,
        "between": between,
        "none": not turns,
        "open": held or between,
    }[walk]
    if len(turns) > scripted or not sound:
        check.refuse(
            f"status {status}",
            f"a walk that is {walk} over {scripted} scripted turn(s)",
            f"advanced={advanced}",
        )
    if walk == "held":
        last = reading.turns[len(turns) - 1]
        state = _LAST_STATE.get(status, "answered")
        if reading.booking.rebooked:
            state = "malformed"
        check.equal(f"state of the turn that ended as {status}", state, last.state)


def _check_turn(
    check: _Check, reading: Reading, turn: TurnReading, observed: ObservedTurn
) -> None:
    where = f"turn {turn.index}"
    status = reading.episode.status
    if turn.match is None or turn.state != "answered":
        check.equal(f"{where}: advanced", False, observed.advanced)
        check.equal(f"{where}: matched", None, observed.matched)
        return
    if turn.match.incomplete_finish and status == "completed":
        # Claimed completion over a cut generation is what gate 7 reports.
        return
    if observed.matched is None and status == "unusable_tool_call_ids":
        check.equal(f"{where}: advanced", False, observed.advanced)
        return
    check.equal(f"{where}: matched", turn.match.matched, observed.matched)
    check.equal(
        f"{where}: paired_call_indexes",
        turn.match.paired_call_indexes,
        observed.paired_call_indexes,
    )
    if observed.advanced and not turn.match.matched:
        check.refuse(where, "an unmatched turn does not advance", "advanced")
    if status == "candidate_mismatch" and not observed.advanced and turn.match.matched:
        check.refuse(where, "a turn that does not match", "a matching turn")


def _check_executions(
    check: _Check, reading: Reading, evidence: ExecutionEvidence
) -> None:
    indexes: list[int] = []
    for turn in reading.turns:
        observed = turn.observed
        if observed is None:
            continue
        where = f"turn {turn.index}: execution_indexes"
        indexes.extend(observed.execution_indexes)
        expected = len(observed.tool_calls) if turn.state == "answered" else 0
        check.equal(where, expected, len(observed.execution_indexes))
        check.equal(where, list(range(len(indexes))), indexes)
        for position, index in enumerate(observed.execution_indexes):
            if index >= len(evidence.executions):
                check.refuse(where, "a recorded execution", index)
            _check_execution(
                check, observed, position, index, evidence.executions[index]
            )
    check.equal("executions", len(indexes), len(evidence.executions))


def _check_execution(
    check: _Check,
    observed: ObservedTurn,
    position: int,
    index: int,
    execution: Execution,
) -> None:
    call = observed.tool_calls[position]
    check.equal(
        f"execution {index}",
        (
            index,
            observed.turn_index,
            position,
            call.id,
            call.function_name,
        ),
        (
            execution.execution_index,
            execution.turn_index,
            execution.position_in_turn,
            execution.call_id,
            execution.function_name,
        ),
    )
    if not json_equal(call.parsed_arguments, execution.parsed_arguments):
        check.refuse(
            f"execution {index}: parsed_arguments",
            call.parsed_arguments,
            execution.parsed_arguments,
        )
    if execution.status == "not_executed" and execution.result is not None:
        check.refuse(f"execution {index}", "no result of a refused call", "a result")


def _check_dependencies(
    check: _Check, reading: Reading, part: ExecutablePart, evidence: ExecutionEvidence
) -> None:
    asked = len(reading.episode.turns)
    broken = [o for o in evidence.dependencies if o.status != "resolved"]
    failed = reading.episode.status == "dependency_resolution_failed"
    check.equal("an unresolved dependency", failed, bool(broken))
    reached = {
        d.dependency_index
        for d in part.dependencies
        if d.consumer_turn_index < asked + int(failed)
    }
    seen = [outcome.dependency_index for outcome in evidence.dependencies]
    check.equal("dependencies reached", sorted(reached), sorted(seen))


def _check_assertions(
    check: _Check, part: ExecutablePart, evidence: ExecutionEvidence
) -> None:
    declared = [(a.assertion_index, a.name, a.category) for a in part.assertions]
    ran = [(a.assertion_index, a.name, a.category) for a in evidence.assertions]
    check.equal("assertions", declared[: len(ran)], ran)
    if ran and evidence.final_state_hash is None:
        check.refuse("assertions", "a final state before any assertion", None)
