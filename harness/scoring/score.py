"""One episode to one score: the room's door.

Pure and synchronous. The same evidence, task and policy give the same `score_hash`
wherever and whenever it is computed (spec 3.12). Trace and executable episodes go
through the same function; a trace episode has no execution evidence.
"""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

from harness.conversation.task import ScoringPolicy, TaskSpec
from harness.evidence.episode import Episode, ObservedTurn
from harness.scoring.consistency import check_evidence, check_identities
from harness.scoring.courses import Verdict, course_of
from harness.scoring.executable import SUCCEEDED, executable_gates
from harness.scoring.failures import failure_records
from harness.scoring.metrics import executable_metrics, trace_metrics
from harness.scoring.reading import (
    Reading,
    ScorableTask,
    TurnReading,
    read_episode,
)
from harness.scoring.records import (
    TASK_SCORE_VERSION,
    Gate,
    ScoredCall,
    ScoredTurn,
    TaskCompanion,
    TaskScore,
)
from harness.scoring.refusal import policy_unsupported
from harness.scoring.trace import trace_gates

COMPANIONS: Final[tuple[TaskCompanion, ...]] = get_args(TaskCompanion)


class JudgedEpisode(NamedTuple):
    """One episode's score with its hash."""

    score: TaskScore
    score_hash: str


def judge_episode(
    episode: Episode,
    task: ScorableTask,
    policy: ScoringPolicy,
    *,
    eval_config_hash: str,
    scoring_policy_hash: str,
    plan_identity: str | None = None,
) -> JudgedEpisode:
    """Score one episode and hash the score; raises as `score_episode` does."""
    rules = (policy, eval_config_hash, scoring_policy_hash)
    verdict, episode_hash = _verdict(episode, task, rules, plan_identity)
    trial = episode.trial
    return JudgedEpisode(
        verdict.score_of(trial, episode_hash), verdict.hash_of(trial, episode_hash)
    )


def score_episode(
    episode: Episode,
    task: TaskSpec | ScorableTask,
    policy: ScoringPolicy,
    *,
    eval_config_hash: str,
    scoring_policy_hash: str,
    plan_identity: str | None = None,
) -> TaskScore:
    """Score one episode; give a `ScorableTask` where a task has many.

    Raises ScoringError: `eval_*_evidence_mismatch` where the episode disagrees with
    its task, with `plan_identity` (if given) or with itself, and
    `eval_*_scoring_policy_unsupported` where the policy cannot be applied to it.
    """
    if isinstance(task, TaskSpec):
        task = ScorableTask.of(task)
    rules = (policy, eval_config_hash, scoring_policy_hash)
    verdict, episode_hash = _verdict(episode, task, rules, plan_identity)
    return verdict.score_of(episode.trial, episode_hash)


def _verdict(
    episode: Episode,
    task: ScorableTask,
    rules: tuple[ScoringPolicy, str, str],
    plan_identity: str | None,
) -> tuple[Verdict, str]:
    """Return the verdict on an episode, and the episode's hash."""
    policy, eval_config_hash, scoring_policy_hash = rules
    _check_policy(episode, task, policy)
    check_identities(episode, task, plan_identity)
    episode_hash = episode.identity_hash()

    def judge() -> TaskScore:
        reading = read_episode(episode, task, policy)
        check_evidence(reading)
        return _score(reading, episode_hash, eval_config_hash, scoring_policy_hash)

    if episode.execution is not None:
        return Verdict(judge()), episode_hash
    course = (rules, course_of(episode, task.spec.script))
    return task.courses.verdict(course, judge), episode_hash


def _check_policy(episode: Episode, task: ScorableTask, policy: ScoringPolicy) -> None:
    if policy.allow_llm_repair:
        raise policy_unsupported(
            episode.scope,
            "nothing repairs a candidate's output before it is scored",
            expected="allow_llm_repair: false",
        )
    if policy.task_success == "assertions_only":
        part = task.spec.executable
        if episode.scope == "trace" or part is None or not part.assertions:
            raise policy_unsupported(
                episode.scope,
                "assertions_only needs an executed task with an assertion",
                expected="task_success: all_applicable_gates",
            )


def _score(
    reading: Reading,
    episode_hash: str,
    eval_config_hash: str,
    scoring_policy_hash: str,
) -> TaskScore:
    episode, policy = reading.episode, reading.policy
    gates = trace_gates(reading)
    if reading.executable is not None:
        gates += executable_gates(reading, *reading.executable)
    success = _task_success(gates, policy)
    by_name = {gate.gate: gate for gate in gates}
    metrics = (
        trace_metrics(by_name, success)
        if reading.executable is None
        else executable_metrics(reading, by_name, success, *reading.executable)
    )
    part, evidence = reading.executable or (None, None)
    executions = () if evidence is None else evidence.executions
    calls = [call for turn in reading.judged for call in turn.calls]
    return TaskScore(
        schema_version=TASK_SCORE_VERSION,
        scope=episode.scope,
        task_id=episode.task_id,
        trial=episode.trial,
        candidate_alias=episode.candidate_alias,
        canonical_model_identity=episode.canonical_model_identity,
        plan_identity=episode.plan_identity,
        eval_config_hash=eval_config_hash,
        scoring_policy_hash=scoring_policy_hash,
        scoring_contract_hash=policy.contract_hash,
        scoring_policy=policy,
        source_verification_identity=episode.source_verification_identity,
        oracle_verification_identity=None
        if evidence is None
        else evidence.oracle_verification_identity,
        task_spec_hash=None if evidence is None else evidence.task_spec_hash,
        script_hash=episode.script_hash,
        episode_hash=episode_hash,
        episode_status=episode.status,
        booked_status=reading.booking.status,
        cause=reading.booking.cause.code,
        non_candidate_stop=_is_stop(reading, gates),
        expected_calls=len(reading.task.spec.script.gold_calls),
        observed_calls=len(calls),
        matched_calls=sum(call.arguments_matched for call in calls),
        attempted_calls=sum(e.status != "not_executed" for e in executions),
        successful_executions=sum(e.status in SUCCEEDED for e in executions),
        expected_dependencies=0 if part is None else len(part.dependencies),
        required_assertions=0 if part is None else len(part.assertions),
        turns=_scored_turns(reading),
        gates=gates,
        metrics=metrics,
        task_success=success,
        failure_records=failure_records(reading.booking, gates),
        companions=_companions(reading),
        detail=episode.detail,
    )


def _task_success(gates: tuple[Gate, ...], policy: ScoringPolicy) -> bool:
    if policy.task_success == "all_applicable_gates":
        return all(gate.outcome != "failed" for gate in gates)
    return all(gate.failure_class != "infrastructure" for gate in gates) and any(
        gate.gate == "assertions" and gate.outcome == "passed" for gate in gates
    )


def _is_stop(reading: Reading, gates: tuple[Gate, ...]) -> bool:
    return reading.booking.is_stop or any(
        gate.failure_class == "infrastructure" for gate in gates
    )


def _companions(reading: Reading) -> tuple[TaskCompanion, ...]:
    marks = {mark for turn in reading.episode.turns for mark in turn.companions}
    mismatched = any(turn.match and not turn.match.matched for turn in reading.judged)
    if reading.booking.is_stop and mismatched:
        marks.add("stops_after_mismatch")
    return tuple(mark for mark in COMPANIONS if mark in marks)


def _scored_turns(reading: Reading) -> tuple[ScoredTurn, ...]:
    return tuple(
        _scored_turn(turn, turn.observed)
        for turn in reading.turns
        if turn.observed is not None
    )


def _scored_turn(turn: TurnReading, observed: ObservedTurn) -> ScoredTurn:
    match = turn.match
    return ScoredTurn(
        turn_index=turn.index,
        kind="tool_calls" if turn.scripted.expects_calls else "text",
        call_status=observed.call_status,
        advanced=observed.advanced,
        finish_reason=observed.finish_reason,
        calls=_scored_calls(turn, observed),
        group_size_matched=None if match is None else match.group_size_matched,
        text_matched=None
        if match is None or turn.scripted.expects_calls
        else turn.text_matched,
        order_respected=None if match is None else match.order_respected,
        order_detail="" if match is None else match.order_detail,
        detail=observed.detail if match is None else match.detail,
    )


def _scored_calls(turn: TurnReading, observed: ObservedTurn) -> tuple[ScoredCall, ...]:
    gold_names = {call.call_index: call.function_name for call in turn.scripted.calls}
    return tuple(
        ScoredCall(
            turn_index=turn.index,
            position_in_turn=match.position_in_turn,
            gold_call_index=match.gold_call_index,
            gold_function_name=None
            if match.gold_call_index is None
            else gold_names[match.gold_call_index],
            predicted_function_name=call.function_name,
            predicted_type=call.type,
            arguments_status=call.arguments_status,
            name_matched=match.name_matched,
            arguments_matched=match.arguments_matched,
            missing=match.missing,
            unexpected=match.unexpected,
            differing=match.differing,
            schema_failures=match.schema_failures,
            detail=match.detail,
        )
        for match, call in zip(turn.calls, observed.tool_calls, strict=False)
    )
