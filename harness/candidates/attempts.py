"""From one exchange to its records: what of a response is kept, and what never is.

Kept: every 200 body and the body of a provider's verdict on a generation, the few
headers that classification and companions read, and a hash of any other body. Never
kept: a body or header that spells the credential, and text that is not Unicode.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Literal

from harness.candidates.credential import Credential
from harness.candidates.delivered import Delivered, Undelivered
from harness.candidates.wire import Classification, no_response
from harness.canonical import hash_bytes
from harness.evidence.episode import Attempt, CallStatus, CandidateResponse

KEPT_HEADERS = (
    "content-type",
    "content-encoding",
    "retry-after",
    "retry-after-ms",
    "server",
    "x-request-id",
    "request-id",
    "x-nv-request-id",
)
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-nv-request-id")
_HEADER_CAP = 256

Encoding = Literal["utf-8", "base64"]


def attempt_of(
    index: int,
    observed_at: datetime,
    latency_s: float,
    found: Classification,
    delivery: Delivered | Undelivered,
    credential: Credential,
) -> Attempt:
    """Return the record of one attempt that ended by itself."""
    headers = _kept_headers(delivery, credential)
    raw, encoding, digest = _kept_body(found, delivery, credential)
    return Attempt(
        attempt_index=index,
        observed_at=_timestamp(observed_at),
        status=found.attempt_status,
        wire_class=found.wire_class,
        detail_code=found.detail_code,
        retryable=found.retryable,
        http_status=delivery.status,
        latency_s=latency_s,
        raw_response=raw,
        raw_response_encoding=encoding,
        raw_response_hash=digest,
        response_headers=headers,
        provider_request_id=_request_id(headers),
        diagnostic=found.note or None,
        retry_after_s=found.retry_after_s,
    )


def interrupted_attempt(
    index: int, observed_at: datetime, latency_s: float, status: CallStatus
) -> tuple[Attempt, Classification]:
    """Return the record and class of an attempt that was stopped from our side.

    `status` is `timeout` for the deadline and `cancelled` for everything else.
    """
    found = no_response("timeout", f"no complete response; stopped by {status}")
    attempt = Attempt(
        attempt_index=index,
        observed_at=_timestamp(observed_at),
        status=status,
        wire_class=found.wire_class,
        detail_code=found.detail_code if status == "timeout" else None,
        retryable=found.retryable,
        http_status=None,
        latency_s=latency_s,
        raw_response=None,
        raw_response_encoding=None,
        raw_response_hash=None,
        response_headers={},
        provider_request_id=None,
        diagnostic=found.note,
        retry_after_s=None,
    )
    return attempt, found


def response_of(
    found: Classification, attempt: Attempt, delivery: Delivered | Undelivered
) -> CandidateResponse | None:
    """Return the completion that an attempt brought, or None where it brought none."""
    if not found.generated or isinstance(delivery, Undelivered):
        return None
    message = found.message
    server = (attempt.response_headers.get("server"), found.system_fingerprint)
    return CandidateResponse(
        provider_response_id=found.response_id,
        provider_request_id=attempt.provider_request_id,
        served_model=found.served_model,
        server="; ".join(name for name in server if name) or None,
        message=None if message is None else message.echo,
        text=found.text,
        tool_calls=() if message is None else message.calls,
        finish_reason=found.finish_reason,
        usage=found.usage,
        selected_attempt=attempt.attempt_index,
        raw_response_hash=attempt.raw_response_hash or hash_bytes(delivery.body),
    )


def _kept_headers(
    delivery: Delivered | Undelivered, credential: Credential
) -> dict[str, str]:
    if isinstance(delivery, Undelivered):
        return {}
    return {
        name: value
        for name in KEPT_HEADERS
        if (value := delivery.headers.get(name)) is not None
        and len(value) <= _HEADER_CAP
        and not credential.is_in(value.encode("latin-1"))
    }


def _request_id(headers: dict[str, str]) -> str | None:
    for name in _REQUEST_ID_HEADERS:
        if headers.get(name):
            return headers[name]
    return None


def _kept_body(
    found: Classification, delivery: Delivered | Undelivered, credential: Credential
) -> tuple[str | None, Encoding | None, str | None]:
    """Return the body as text, how it is encoded, and its hash."""
    if isinstance(delivery, Undelivered):
        if delivery.status != 200 or not delivery.partial:
            return None, None, None
        if credential.may_begin_in(delivery.partial):
            return None, None, None
        return *_as_text(delivery.partial), hash_bytes(delivery.partial)
    if credential.is_in(delivery.body):
        return None, None, None
    digest = hash_bytes(delivery.body)
    if delivery.status != 200 and not found.generated:
        return None, None, digest
    return *_as_text(delivery.body), digest


def _as_text(body: bytes) -> tuple[str, Encoding]:
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), "base64"


def _timestamp(moment: datetime) -> str:
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
