"""One HTTP response as one class: whose fault it is and whether to ask again.

The table is `spec/wire-contract.md` A3, first match wins. What lies inside
`choices[0].message` is the candidate's, everything around it the provider's; prose
is never read. This module is pure: the caller passes the bytes, the headers (lower
case names) and the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from harness.candidates.message import (
    UNUSABLE_IDS,
    DecodedMessage,
    decode_message,
    is_unicode,
)
from harness.candidates.retry_timing import retry_after_s
from harness.canonical import Json
from harness.evidence.episode import CallStatus, WireClass
from harness.strict_json import StrictJsonError, decode_document

BODY_CAP_BYTES: Final = 16 * 1024 * 1024

_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
_FILTER_INNER = "ResponsibleAIPolicyViolation"
_CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_NOT_SERVER_FAULTS = frozenset({501, 505})
_ABORTED = frozenset(
    {"error", "abort", "network_error", "insufficient_system_resource"}
)
_TRUNCATED = frozenset(
    {
        "length",
        "max_tokens",
        "MAX_TOKENS",
        "model_length",
        "model_context_window_exceeded",
    }
)
_FILTERED = frozenset({"content_filter", "safety", "SAFETY", "sensitive", "refusal"})
_CALL_VERDICTS = frozenset(
    {
        "malformed_function_call",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
        "function_call_filter: UNEXPECTED_TOOL_CALL",
    }
)
_FINISHED = frozenset(
    {
        "stop",
        "tool_calls",
        "function_call",
        "end_turn",
        "tool_use",
        "stop_sequence",
        "eos",
        "eos_token",
    }
)
_KNOWN_REASONS = _FINISHED | _TRUNCATED | _FILTERED | _CALL_VERDICTS
_RETRYABLE_STATUS: Final[dict[str, CallStatus]] = {
    "rate_limited": "rate_limited",
    "timeout": "timeout",
    "transport_error": "transport_error",
}


class Classification(NamedTuple):
    """What one response means."""

    wire_class: WireClass
    detail_code: str | None
    """The fine reason of A4; None for `ok`."""
    note: str = ""
    """What was seen, in words for a person; never a piece of an error body."""
    retry_after_s: float | None = None
    message: DecodedMessage | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    usage: dict[str, Any] | None = None

    @property
    def retryable(self) -> bool:
        """Tell whether the same request may be sent again."""
        return self.wire_class == "transport_retryable"

    @property
    def generated(self) -> bool:
        """Tell whether the candidate's generation ended: a received completion."""
        return self.wire_class in ("ok", "candidate_malformed", "truncated") or (
            self.detail_code == "content_filter_output"
        )

    @property
    def text(self) -> str | None:
        """The text of the turn; None when none can be formed."""
        return None if self.message is None else self.message.text

    @property
    def attempt_status(self) -> CallStatus:
        """The status of one attempt that ended so (`interfaces.md` 5)."""
        if self.generated:
            return _completion_status(self.wire_class, self.detail_code or "")
        if self.wire_class == "auth_fatal":
            return "authentication_failed"
        if self.wire_class == "transport_retryable":
            return _RETRYABLE_STATUS.get(self.detail_code or "", "provider_unavailable")
        return "provider_rejected"

    @property
    def outcome_status(self) -> CallStatus:
        """The status of a request whose last attempt ended so."""
        return "retry_exhausted" if self.retryable else self.attempt_status


def _completion_status(wire_class: WireClass, detail: str) -> CallStatus:
    if wire_class != "candidate_malformed":
        return "completed"
    if detail == UNUSABLE_IDS or detail.startswith("arguments."):
        return "completed"
    return "malformed_response"


def no_response(detail: str, note: str) -> Classification:
    """Return the class of an exchange without a complete response (A3 row 1)."""
    return Classification("transport_retryable", detail, note)


def oversize_body() -> Classification:
    """Return the class of a body over the cap (A3 row 2)."""
    return Classification(
        "transport_fatal", "oversize_body", f"body over {BODY_CAP_BYTES} bytes"
    )


def credential_echoed() -> Classification:
    """Return the class of a body that may not be kept: it holds the credential."""
    return Classification(
        "transport_fatal", "credential_echoed", "the body repeats the API key"
    )


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    echo_reasoning: bool = False,
) -> Classification:
    """Classify one complete response; `body` is decoded from its content coding."""
    if len(body) > BODY_CAP_BYTES:
        return oversize_body()
    if status == 200:
        found = _classify_success(body, echo_reasoning)
    else:
        found = _by_status(status, _error_of_failure(body))
    if found.retryable:
        return found._replace(retry_after_s=retry_after_s(headers, now))
    return found


def _error_of_failure(body: bytes) -> dict[str, Json]:
    """Return the error object of a response that is no 200, or an empty one."""
    try:
        document = decode_document(body, allow_bom=True)
    except StrictJsonError:
        return {}
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if error is None:
        return document
    return error if isinstance(error, dict) else {}


def _by_status(status: int, error: dict[str, Json]) -> Classification:
    note = f"HTTP status {status}"
    if _has_filter_marker(error):
        return Classification("content_filter", "content_filter_prompt", note)
    if status in (401, 407) or (status == 403 and not _names_upstream(error)):
        return Classification("auth_fatal", "authentication_failed", note)
    if status == 402 or _is_out_of_quota(error):
        return Classification("transport_fatal", "quota_exhausted", note)
    if status in (408, 409, 425, 429) or (
        500 <= status <= 599 and status not in _NOT_SERVER_FAULTS
    ):
        details = {429: "rate_limited", 408: "timeout"}
        return Classification(
            "transport_retryable", details.get(status, "provider_unavailable"), note
        )
    if status in (400, 422) and _has_failed_generation(error):
        return Classification(
            "candidate_malformed", "provider_verdict_malformed_call", note
        )
    if _CONTEXT_CODES & {_word(error.get("code")), _word(error.get("type"))}:
        return Classification("transport_fatal", "context_length", note)
    return Classification("transport_fatal", "provider_rejected", note)


def _has_filter_marker(error: dict[str, Json]) -> bool:
    if _word(error.get("code")) in _FILTER_CODES:
        return True
    nested = _object(error.get("provider_specific_fields"))
    for holder in (error, nested):
        if _object(holder.get("innererror")).get("code") == _FILTER_INNER:
            return True
    reasons = _object(error.get("metadata")).get("reasons")
    return isinstance(reasons, list) and bool(reasons)


def _names_upstream(error: dict[str, Json]) -> bool:
    return _object(error.get("metadata")).get("provider_name") is not None


def _is_out_of_quota(error: dict[str, Json]) -> bool:
    code = error.get("code")
    return code in ("insufficient_quota", "billing_not_active") or (
        error.get("type") == "insufficient_quota"
    )


def _has_failed_generation(error: dict[str, Json]) -> bool:
    generation = error.get("failed_generation")
    return (
        error.get("code") == "tool_use_failed"
        and isinstance(generation, str)
        and bool(generation)
    )


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _plain_text(value: Json) -> str | None:
    """Return a provider's field where it is text that a record can hold."""
    return value if isinstance(value, str) and is_unicode(value) else None


def _broken_envelope(note: str) -> Classification:
    return Classification("transport_retryable", "envelope_malformed", note)


def _classify_success(body: bytes, echo_reasoning: bool) -> Classification:
    try:
        envelope = decode_document(body, allow_bom=True)
    except StrictJsonError as error:
        return _broken_envelope(f"body is not one strict JSON object: {error.code}")
    if not isinstance(envelope, dict):
        return _broken_envelope("body is JSON and no object")
    if envelope.get("error") is not None:
        return _by_error_in_success(envelope["error"], "provider_unavailable")
    if envelope.get("object") == "error" or envelope.get("type") == "error":
        return _by_error_in_success(envelope, "provider_unavailable")
    choices = envelope.get("choices")
    if not isinstance(choices, list) or not choices:
        return _broken_envelope("no choices")
    if len(choices) > 1:
        return Classification(
            "transport_fatal", "multiple_choices", f"{len(choices)} choices for n=1"
        )
    if not isinstance(choices[0], dict):
        return _broken_envelope("the choice is no object")
    # The body is UTF-8, so only an escape can stand for something that is no Unicode.
    escaped = b"\\u" in body
    usage = envelope.get("usage")
    if not isinstance(usage, dict) or (escaped and not is_unicode(usage)):
        usage = None
    told: dict[str, Any] = {
        "response_id": _plain_text(envelope.get("id")),
        "served_model": _plain_text(envelope.get("model")),
        "system_fingerprint": _plain_text(envelope.get("system_fingerprint")),
        "usage": usage,
    }
    return _classify_choice(choices[0], told, echo_reasoning, escaped)


def _by_error_in_success(value: Json, retryable_detail: str) -> Classification:
    """Classify an error inside a 200 (A3 rows 10 and 13)."""
    error = _object(value)
    status = _status_code(error.get("code"))
    if status is not None:
        found = _by_status(status, error)
        return found._replace(note=f"HTTP status 200 with an error of code {status}")
    note = "HTTP status 200 with an error object"
    if _is_out_of_quota(error):
        return Classification("transport_fatal", "quota_exhausted", note)
    if _has_filter_marker(error):
        return Classification("content_filter", "content_filter_output", note)
    return Classification("transport_retryable", retryable_detail, note)


def _status_code(code: Json) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool) and 300 <= code <= 599:
        return code
    return None


def _classify_choice(
    choice: dict[str, Json], told: dict[str, Any], echo_reasoning: bool, escaped: bool
) -> Classification:
    """Classify the one choice; `told` is what the envelope says beside it."""
    if choice.get("error") is not None:
        found = _by_error_in_success(choice["error"], "generation_aborted")
        return found._replace(**told)
    reason = choice.get("finish_reason")
    if reason is None or (isinstance(reason, str) and reason in _ABORTED):
        return Classification(
            "transport_retryable",
            "generation_aborted",
            f"finish_reason {reason}",
            **told,
        )
    if not isinstance(reason, str) or reason not in _KNOWN_REASONS:
        return Classification(
            "transport_fatal",
            "unknown_finish_reason",
            f"finish_reason {ascii(reason)[:200]}",
            finish_reason=_plain_text(reason),
            **told,
        )
    content = choice.get("message")
    if not isinstance(content, dict):
        return _broken_envelope("the message is no object")._replace(**told)
    message = decode_message(content, echo_reasoning=echo_reasoning, escaped=escaped)
    wire_class, detail = _by_finish_reason(reason, message.defect)
    return Classification(
        wire_class, detail, message=message, finish_reason=reason, **told
    )


def _by_finish_reason(reason: str, defect: str | None) -> tuple[WireClass, str | None]:
    if reason in _TRUNCATED:
        return "truncated", "incomplete_finish"
    if reason in _FILTERED:
        return "content_filter", "content_filter_output"
    if reason in _CALL_VERDICTS:
        return "candidate_malformed", "provider_verdict_malformed_call"
    return ("ok", None) if defect is None else ("candidate_malformed", defect)
