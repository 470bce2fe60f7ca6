"""`explain`: one recorded episode, laid out for a person, from the evidence alone.

Messages are those of the recorded requests, so what is shown as sent was sent. A
release is what the next request holds beyond the one before and the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from harness.candidates.request import Endpoint
from harness.canonical import Json
from harness.causes import CAUSES
from harness.conversation.script import ScriptedTurn
from harness.errors import UsageError
from harness.evidence.episode import Attempt, Execution, ObservedTurn
from harness.evidence.plan_file import PlannedCandidate
from harness.run.recorded import Evidence, RecordedEpisode
from harness.run.rescored_folder import open_evidence
from harness.run.score import ScoredEpisode, readable, score_recorded
from harness.scoring.aggregate import blame_of
from harness.scoring.divergence import first_divergence
from harness.scoring.reading import ScorableTask, read_episode
from harness.scoring.records import TaskScore

EXPLANATION_VERSION: Final = "1.0"


def explain_episode(
    folder: Path, task_id: str, *, candidate: str | None, trial: int
) -> dict[str, Json]:
    """Return everything about one episode as a JSON payload.

    `task_id` may be the beginning of ids: the plan's first such task is taken. Without
    `candidate` it is the plan's first one that has the task. Raises UsageError for an
    episode that was not planned, and what a replay raises for its evidence.
    """
    with open_evidence(folder) as evidence:
        task_id = _task_id(evidence, task_id)
        planned, others = _chosen(evidence, task_id, candidate)
        if not 0 <= trial < evidence.plan.header.trials:
            raise _not_planned(
                f"--trial {trial}", f"0 to {evidence.plan.header.trials - 1}"
            )
        task = ScorableTask.of(evidence.plan.task(task_id))
        endpoint = Endpoint(**evidence.config.endpoint(planned.alias))
        scored = score_recorded(evidence, endpoint, task, trial)
        with readable(f"task {task_id}, trial {trial}"):
            return _explanation(evidence, scored, others)


def _chosen(
    evidence: Evidence, task_id: str, alias: str | None
) -> tuple[PlannedCandidate, list[str]]:
    header = evidence.plan.header
    having = [c for c in header.candidates if task_id in evidence.task_ids_of(c)]
    found = next((c for c in having if alias in (None, c.alias)), None)
    if found is None:
        expected = ", ".join(c.alias for c in having)
        raise _not_planned(f"--candidate {alias}", expected)
    return found, [c.alias for c in having if c is not found]


def _task_id(evidence: Evidence, text: str) -> str:
    if text in evidence.plan:
        return text
    task_ids = evidence.plan.header.task_ids
    found = next((each for each in task_ids if text and each.startswith(text)), None)
    if found is None:
        raise _not_planned(f"task {text}", _some(task_ids))
    return found


def _some(task_ids: Sequence[str]) -> str:
    listed = ", ".join(task_ids[:3])
    return f"one of {len(task_ids)} task ids, like {listed}"


def _not_planned(where: str, expected: str) -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        "the run has no such episode",
        where=where,
        expected=expected,
        recovery="`eval_plan.jsonl` lists every task and candidate in its first line",
    )


def _explanation(
    evidence: Evidence, scored: ScoredEpisode, others: list[str]
) -> dict[str, Json]:
    recorded, score = scored.recorded, scored.score
    episode, spec = recorded.episode, recorded.task.spec
    reading = read_episode(episode, recorded.task, score.scoring_policy)
    divergence = first_divergence(reading)
    return {
        "schema_version": EXPLANATION_VERSION,
        "candidate_alias": episode.candidate_alias,
        "other_candidates": list(others),
        "canonical_id": episode.canonical_model_identity,
        "task_id": episode.task_id,
        "trial": episode.trial,
        "turn_policy": spec.turn_policy,
        "scope": episode.scope,
        "verdict": _verdict(score),
        "episode_status": episode.status,
        "reason_code": episode.reason_code,
        "detail": episode.detail,
        "blame": _blame(score),
        "turns": _turns(evidence, recorded),
        "unasked_turns": [
            _script(turn) for turn in spec.script.turns[len(episode.turns) :]
        ],
        "gates": [gate.semantic_payload() for gate in score.gates],
        "assertions": _assertions(recorded),
        "divergence": None if divergence is None else divergence.semantic_payload(),
        "episode_hash": score.episode_hash,
        "score_hash": score.score_hash,
    }


def _verdict(score: TaskScore) -> str:
    if score.task_success:
        return "success"
    return "stop" if score.non_candidate_stop else "failure"


def _blame(score: TaskScore) -> dict[str, Json]:
    """Say who the verdict belongs to; nobody is to blame for a success."""
    if score.task_success:
        owner, code = "nobody", score.cause
    else:
        owner, code, _ = blame_of(score)
    row = CAUSES.get(code)
    summary = row.summary if row else "A gate failed in an episode that completed."
    return {"owner": owner, "cause": code, "summary": summary}


def _turns(evidence: Evidence, recorded: RecordedEpisode) -> list[Json]:
    turns = recorded.episode.turns
    sent = [_messages(evidence, turn) for turn in turns]
    found = []
    seen = 0
    for index, turn in enumerate(turns):
        own = sent[index]
        after = sent[index + 1] if index + 1 < len(turns) else None
        found.append(
            {
                "turn_index": turn.turn_index,
                "script": _script(recorded.task.spec.script.turns[turn.turn_index]),
                "sent": own[seen:],
                "messages_before": seen,
                "answer": _answer(turn, recorded.attempts_by_turn[index]),
                "executions": _executions(recorded, turn),
                "advanced": turn.advanced,
                "released": None if after is None else after[len(own) + 1 :],
                "release_reason": _release_reason(turn, asked_on=after is not None),
            }
        )
        # The next request repeats all this and the answer, which is shown as such.
        seen = len(own) + 1
    return found


def _messages(evidence: Evidence, turn: ObservedTurn) -> list[Json]:
    request = evidence.candidate_log.request_of(turn.request_hash)
    messages: list[Json] = [] if request is None else request["body"]["messages"]
    return messages


def _script(turn: ScriptedTurn) -> dict[str, Json]:
    return {
        "kind": "tool_calls" if turn.expects_calls else "text",
        "calls": [
            {"function_name": call.function_name, "arguments": call.arguments}
            for call in turn.calls
        ],
        "releases_user_message": turn.releases_user_message is not None,
        "is_terminal": turn.is_terminal,
    }


def _answer(turn: ObservedTurn, attempts: Sequence[Attempt]) -> dict[str, Json]:
    return {
        "call_status": turn.call_status,
        "wire_class": turn.wire_class,
        "detail_code": turn.detail_code,
        "finish_reason": turn.finish_reason,
        "text": turn.text,
        "tool_calls": [
            {
                "id": call.id,
                "function_name": call.function_name,
                "raw_arguments": call.raw_arguments,
                "arguments_status": call.arguments_status,
            }
            for call in turn.tool_calls
        ],
        "attempts": [_attempt(attempt) for attempt in attempts],
        "marks": list(turn.companions),
    }


def _attempt(attempt: Attempt) -> dict[str, Json]:
    return {
        "http_status": attempt.http_status,
        "status": attempt.status,
        "detail_code": attempt.detail_code,
        "latency_s": attempt.latency_s,
    }


def _executions(recorded: RecordedEpisode, turn: ObservedTurn) -> list[Json]:
    evidence = recorded.episode.execution
    if evidence is None:
        return []
    return [_execution(evidence.executions[i]) for i in turn.execution_indexes]


def _execution(execution: Execution) -> dict[str, Any]:
    return {
        "execution_index": execution.execution_index,
        "function_name": execution.function_name,
        "status": execution.status,
        "reason_code": execution.reason_code,
        "state_commit": execution.state_commit,
        "state_changed": execution.state_before_hash != execution.state_after_hash,
        "result": execution.result,
        "released_to_model": execution.released_to_model,
        "detail": execution.detail,
    }


def _release_reason(turn: ObservedTurn, *, asked_on: bool) -> str:
    if asked_on:
        return "the turn equals the script"
    if turn.advanced and turn.reason_code == "turn.terminal":
        return "nothing: the script ends here"
    if turn.advanced:
        return "earned, and never sent: the episode ended before the next request"
    if turn.matched is False:
        return "nothing: the turn differs from the script"
    return "nothing: the episode ended on this turn"


def _assertions(recorded: RecordedEpisode) -> list[Json]:
    evidence = recorded.episode.execution
    if evidence is None:
        return []
    return [each.semantic_payload() for each in evidence.assertions]
