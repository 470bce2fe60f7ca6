"""The outcome of a request whose completion was received and never concluded.

A run that is killed between the record of an attempt and that of its completion has
the body on disk. A received completion is never sampled again, so the body is read
once more and concluded as it would have been then (`spec/wire-contract.md` A6).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from harness.candidates.attempts import response_of
from harness.candidates.delivered import Delivered
from harness.candidates.wire import classify
from harness.errors import EvidenceError
from harness.evidence.episode import Attempt, Outcome


def recovered_outcome(
    request_hash: str, attempts: Sequence[Attempt], *, echo_reasoning: bool
) -> Outcome | None:
    """Return the outcome that the newest recorded body gives, None for no completion.

    `attempts` are all recorded ones in their order. Raises EvidenceError where the
    body no longer reads as the attempt says.
    """
    newest = attempts[-1] if attempts else None
    # A cut body is kept too, and only the attempt knows that it was cut.
    if newest is None or newest.raw_response is None or newest.retryable:
        return None
    delivery = Delivered(
        newest.http_status or 0, newest.response_headers, body_of(newest)
    )
    found = classify(
        *delivery,
        now=datetime.fromisoformat(newest.observed_at),
        echo_reasoning=echo_reasoning,
    )
    if (found.wire_class, found.detail_code) != (newest.wire_class, newest.detail_code):
        raise EvidenceError(
            "eval_candidate_cache_conflict",
            "a recorded response reads as something else than was recorded",
            where=f"candidate_io_cache.jsonl, request {request_hash}, "
            f"attempt {newest.attempt_index}",
            expected=f"{newest.wire_class} {newest.detail_code or ''}".strip(),
            actual=f"{found.wire_class} {found.detail_code or ''}".strip(),
            recovery="resume with the version that began the run",
        )
    if not found.generated:
        return None
    return Outcome(
        request_hash=request_hash,
        status=found.outcome_status,
        wire_class=found.wire_class,
        detail_code=found.detail_code,
        response=response_of(found, newest, delivery),
        attempt_count=newest.attempt_index + 1,
        replayed=False,
        detail=found.note,
    )


def body_of(attempt: Attempt) -> bytes:
    """Return the recorded body as its bytes; empty where none was kept."""
    text = attempt.raw_response or ""
    if attempt.raw_response_encoding == "base64":
        return base64.b64decode(text)
    return text.encode("utf-8")
