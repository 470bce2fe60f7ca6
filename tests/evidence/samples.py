"""Small whole records for the tests of the evidence room."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from harness.canonical import canonical_bytes, content_hash, hash_bytes
from harness.evidence.episode import (
    Attempt,
    CandidateResponse,
    Episode,
    Event,
    Outcome,
)
from harness.evidence.log_line import LogFormat

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
    head: dict[str, Any]
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
        head=head,
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
