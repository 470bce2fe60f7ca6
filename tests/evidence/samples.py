"""Small whole records for the tests of the evidence room."""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from harness.canonical import canonical_bytes, content_hash, hash_bytes
from harness.conversation.script import ConversationScript, ScriptedTurn
from harness.conversation.task import ScoringPolicy, TaskSpec
from harness.evidence.episode import (
    Attempt,
    CandidateResponse,
    Episode,
    Event,
    ObservedTurn,
    Outcome,
)
from harness.evidence.log_line import LogFormat
from harness.evidence.task_row import TaskRow
from harness.scoring.records import FailureRecord

NOTES = LogFormat(
    file_name="notes.jsonl",
    record_types=("first", "second"),
    key_field="subject",
    number_field="attempt",
    invalid_code="eval_candidate_cache_invalid",
    conflict_code="eval_candidate_cache_conflict",
)


def key(number: int) -> str:
    return "sha256:" + hashlib.sha256(b"%d" % number).hexdigest()


def colliding(number: int) -> str:
    """A key that shares its first 64 bits with every other of this kind."""
    return f"sha256:{'ab' * 8}{number:048x}"


@dataclass(frozen=True)
class Request:
    request_id: str
    request_hash: str
    body: bytes
    head_bytes: bytes
    task_id: str = "t0"
    trial: int = 0
    turn_index: int = 0
    body_hash: str = field(default="")


def request(turn: int = 0, *, alias: str = "gold", text: str = "hi") -> Request:
    body = {"messages": [{"role": "user", "content": text}], "model": "m"}
    head = {"candidate_alias": alias, "task_id": "t0", "turn_index": turn}
    return Request(
        request_id=f"{alias}:t0:0:{turn}",
        request_hash=content_hash({**head, "body": body}),
        body=canonical_bytes(body),
        head_bytes=canonical_bytes(head),
        turn_index=turn,
        body_hash=content_hash(body),
    )


def attempt(index: int = 0, *, status: str = "completed", body: str = "{}") -> Attempt:
    done = status == "completed"
    return Attempt(
        attempt_index=index,
        observed_at="2026-01-01T00:00:00Z",
        status=status,
        wire_class="ok" if done else "transport_retryable",
        detail_code=None if done else status,
        retryable=not done,
        http_status=200 if done else None,
        latency_s=0.25,
        raw_response=body if done else None,
        raw_response_encoding="utf-8" if done else None,
        raw_response_hash=hash_bytes(body.encode()) if done else None,
        response_headers={},
        provider_request_id=None,
        diagnostic=None,
        retry_after_s=None,
    )


def response(text: str = "Yes.") -> CandidateResponse:
    return CandidateResponse(
        provider_response_id="r1",
        provider_request_id=None,
        served_model="m",
        server=None,
        message={"role": "assistant", "content": text},
        text=text,
        tool_calls=(),
        finish_reason="stop",
        usage={"completion_tokens": 2, "prompt_tokens": 5},
        selected_attempt=0,
        raw_response_hash=hash_bytes(text.encode()),
    )


def completion(request_hash: str, text: str = "Yes.") -> Outcome:
    return Outcome(
        request_hash=request_hash,
        status="completed",
        wire_class="ok",
        detail_code=None,
        response=response(text),
        attempt_count=1,
        replayed=False,
        detail="",
    )


def failure(request_hash: str, detail_code: str = "timeout") -> Outcome:
    return Outcome(
        request_hash=request_hash,
        status="retry_exhausted",
        wire_class="transport_retryable",
        detail_code=detail_code,
        response=None,
        attempt_count=1,
        replayed=False,
        detail="",
    )


def episode(
    number: int = 1, *, task_id: str = "t0", status: str = "completed"
) -> Episode:
    return Episode(
        schema_version="1.0",
        scope="trace",
        candidate_alias="gold",
        canonical_model_identity="local:m@x",
        task_id=task_id,
        trial=0,
        plan_identity=key(1),
        source_verification_identity=key(2),
        script_hash=key(3),
        status=status,
        reason_code=f"episode.{status}",
        cause_detail=None,
        turns=(),
        events=(Event(0, "seed", None, "seed"), Event(1, "terminal", None, "end")),
        released_user_turns=0,
        released_tool_results=0,
        execution=None,
        attempt=number,
        replayed=False,
        duration_s=None,
        detail="",
    )


POLICY = ScoringPolicy(
    contract_hash=key(70),
    argument_matching="schema_then_canonical",
    insert_declared_defaults=True,
    respect_call_order=True,
    respect_call_group=True,
    allow_llm_repair=False,
    task_success="all_applicable_gates",
    intermediate_text_matching="structural",
    attribution="wire-1",
)


def task(task_id: str = "t0") -> TaskSpec:
    script = ConversationScript(
        schema_version="1.0",
        task_id=task_id,
        source_verification_identity=key(2),
        seed_messages=({"role": "user", "content": "Is BK-100 in? Größe 😀"},),
        tools=(),
        turns=(ScriptedTurn(0, 0, None, (), "Yes.", None, is_terminal=True),),
        user_turns=("Is BK-100 in? Größe 😀",),
        required_tools=(),
        call_order="strict",
        call_order_prefix=None,
    )
    return TaskSpec(
        schema_version="1.0",
        script=script,
        template_id="status",
        category="lookup",
        difficulty=None,
        turn_policy="irrelevant",
        slot_bindings=None,
        executable=None,
    )


def row(task_id: str = "t0", **changes: Any) -> TaskRow:
    values = TaskRow(
        candidate_alias="gold",
        candidate_canonical_id="local:m@x",
        task_id=task_id,
        mode="trace",
        episode_status="completed",
        non_candidate_stop=False,
        task_success=False,
        failure_codes=("text_turn.mismatch",),
        failure_records=(
            FailureRecord("gate", "text_turn.mismatch", "candidate", "text_turn"),
        ),
        schema_valid=None,
        tool_name_correct=True,
        arguments_correct=None,
        call_group_correct=None,
        call_order_correct=None,
        required_subset_correct=True,
        milestones_correct=False,
        execution_success=None,
        assertions_passed=None,
        final_answer_passed=None,
        trial=0,
        template_id="status",
        category=None,
        difficulty="easy",
        turn_policy="irrelevant",
        cause="episode.completed",
        owner="candidate",
        scripted_turns=1,
        asked_turns=1,
        expected_calls=0,
        observed_calls=0,
        matched_calls=0,
        executed_calls=0,
        requests=1,
        attempts=2,
        latency_ms=500,
        prompt_tokens=5,
        completion_tokens=None,
        suspected_call_markup=False,
        suspected_truncation=False,
        serving_parse_loss=False,
        arguments_empty=False,
        stops_after_mismatch=False,
        episode_hash=key(3),
        score_hash=key(4),
    )
    return replace(values, **changes)


def observed_turn(turn_index: int, request_hash: str) -> ObservedTurn:
    return ObservedTurn(
        turn_index=turn_index,
        request_hash=request_hash,
        call_status="completed",
        wire_class="ok",
        detail_code=None,
        response_hash=None,
        finish_reason="stop",
        text="Yes.",
        tool_calls=(),
        paired_call_indexes=(),
        execution_indexes=(),
        released_user_message_hash=None,
        advanced=True,
        matched=True,
        companions=(),
        reason_code="turn.observed",
        detail="",
    )
