"""What the records of a run state about themselves and each other.

A line's hash says that nobody changed it since it was written; these checks say that
it was written by somebody who had the bytes. A request's hashes follow from its body,
an attempt's from the raw response, the recorded answer from decoding that response
again, a result's from the result.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Final

from harness.candidates.recovery import recovered_outcome
from harness.candidates.wire import Classification, classify
from harness.canonical import hash_bytes
from harness.conversation.task import TaskSpec
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.episode import Attempt, Episode, Outcome
from harness.evidence.episode_log import episode_of
from harness.evidence.log_line import Entry
from harness.evidence.sent_request import AFTER_BODY, check_body
from harness.evidence.traffic_order import attempt_of, is_completion, outcome_of
from harness.strict_json import StrictJsonError, decode_document
from harness.verification.findings import Findings

_ASKING: Final = Outcome.OUTSIDE_IDENTITY
DECODED_AGAIN: Final = "answers decoded again from raw responses"
_CUT: Final = ("timeout", "transport_error")
"""How a response ends whose body may be cut, which only the attempt knows."""
_SHARED: Final = ("request_id", "task_id", "trial", "turn_index")
_USUAL: Final = re.compile(
    (
        r',"body_hash":"(?P<body>sha256:[0-9a-f]{64})","head":\{"base_url":TEXT,'
        r'"candidate_alias":TEXT,"canonical_model_identity":TEXT,"model":TEXT,'
        r'"provider":TEXT,"provider_api_version":TEXT,"request_body_hash":"(?P=body)",'
        r'"request_id":(?P<id>TEXT),"schema_version":TEXT,"task_id":(?P<task>TEXT),'
        r'"trial":(?P<trial>COUNT),"turn_index":(?P<turn>COUNT)\},'
        r'"request_hash":"(?P<key>sha256:[0-9a-f]{64})","request_id":(?P=id),'
        r'"task_id":(?P=task),"trial":(?P=trial),"turn_index":(?P=turn)\}\}'
    )
    .replace("TEXT", r'"[^"\\\x00-\x1f]*"')
    .replace("COUNT", "(?:0|[1-9][0-9]{0,17})")
    .encode()
)
"""All behind a request's body, where it states nothing in two ways and no text has an
escape: what reads so need not be decoded to be compared."""


def check_request(entry: Entry) -> None:
    """Refuse a request whose key does not follow from its head and its body.

    The body is hashed as it stands in the record: the bytes that were sent. Raises
    EvidenceError.
    """
    check_body(entry)
    payload = entry.payload_bytes
    behind_body = payload.rfind(AFTER_BODY)
    usual = _USUAL.fullmatch(payload, behind_body)
    if usual is not None and usual["key"] == entry.key.encode("ascii"):
        return
    try:
        request = decode_document(b"{" + payload[behind_body + 1 : -1])
        head = request["head"]
        keys = [request["request_hash"], head["request_body_hash"]]
        shared = [(request[name], head[name]) for name in _SHARED]
        ours = [entry.key, request["body_hash"]]
    except (StrictJsonError, LookupError, TypeError, ValueError) as error:
        raise entry.refusal(f"the request cannot be read ({error})") from None
    if keys != ours:
        raise entry.refusal(f"the request states {keys}, and not its own {ours}")
    if any(own != other for own, other in shared):
        raise entry.refusal("the request and its head name different turns")


def check_attempt(attempt: Attempt, where: str, findings: Findings) -> None:
    """Hash the raw response of an attempt again, and judge one without an answer."""
    _check_end(attempt, where, findings)
    if attempt.raw_response is None:
        return
    if attempt.raw_response_encoding is None:
        findings.differs(where, "a raw response has no encoding", "its name", "null")
    findings.count("raw responses hashed")
    try:
        body = (
            base64.b64decode(attempt.raw_response, validate=True)
            if attempt.raw_response_encoding == "base64"
            else attempt.raw_response.encode("utf-8")
        )
    except (binascii.Error, ValueError) as error:
        findings.differs(
            where, "the raw response is no text of its encoding", "bytes", str(error)
        )
        return
    actual = hash_bytes(body)
    if actual != attempt.raw_response_hash:
        findings.differs(
            where,
            "raw_response_hash is not the hash of the raw response",
            actual,
            str(attempt.raw_response_hash),
        )
    elif not is_completion(attempt) and attempt.detail_code not in _CUT:
        _check_class(attempt, body, where, findings)


def _check_end(attempt: Attempt, where: str, findings: Findings) -> None:
    """Report a status that is not the one of the class."""
    stated = (attempt.status, attempt.retryable)
    if attempt.wire_class == "ok" and stated == ("completed", False):
        return
    found = Classification(attempt.wire_class, attempt.detail_code)
    derived = (found.attempt_status, found.retryable)
    if attempt.status != "cancelled" and stated != derived:
        findings.differs(
            where,
            "status and class of an attempt are of two ends",
            f"{derived[0]}, retryable {derived[1]}",
            f"{stated[0]}, retryable {stated[1]}",
        )


def _check_class(attempt: Attempt, body: bytes, where: str, findings: Findings) -> None:
    """Judge again a whole body in which there was no answer."""
    found = classify(
        attempt.http_status or 0,
        attempt.response_headers,
        body,
        now=datetime.fromisoformat(attempt.observed_at),
    )
    again = (found.wire_class, found.detail_code)
    if again != (attempt.wire_class, attempt.detail_code):
        findings.differs(
            where,
            "the raw response reads as something else than was recorded",
            f"{again[0]} {again[1] or ''}".strip(),
            f"{attempt.wire_class} {attempt.detail_code or ''}".strip(),
        )


def check_response(
    outcome: Outcome,
    attempts: Sequence[Attempt],
    where: str,
    findings: Findings,
    *,
    echo_reasoning: bool,
) -> None:
    """Decode the raw response again and compare it with the recorded answer."""
    if not is_completion(outcome):
        return
    findings.count(DECODED_AGAIN)
    try:
        again = recovered_outcome(
            outcome.request_hash, attempts, echo_reasoning=echo_reasoning
        )
    except EvidenceError as error:
        findings.add(error.violations)
        return
    if again is None:
        findings.differs(
            where, "no raw response of a recorded answer", "its newest attempt", "none"
        )
    elif _read(again) != _read(outcome):
        findings.differs(
            where,
            "the recorded answer is not what its raw response says",
            str(_meaning(again))[:400],
            str(_meaning(outcome))[:400],
        )


_read = attrgetter(
    *(field.name for field in fields(Outcome) if field.name not in _ASKING)
)
"""Reads everything of an outcome but how often it was asked and read."""


def _meaning(outcome: Outcome) -> dict[str, object]:
    """Return what `_read` reads as plain JSON."""
    payload = outcome.semantic_payload()
    return {name: payload[name] for name in payload if name not in _ASKING}


def count_derived(episode: Episode, findings: Findings) -> None:
    """Count what the proof of an episode has hashed again (`run.provenance`)."""
    findings.count("requests derived again", len(episode.turns))
    if episode.execution is None:
        return
    hashed = sum(e.result_hash is not None for e in episode.execution.executions)
    spoken = sum(t.released_user_message_hash is not None for t in episode.turns)
    findings.count("tool results hashed", hashed)
    findings.count("released user messages hashed", spoken)


READ_BY_SCORING: Final = ("attempt", "completion", "failure", "task")
"""Record types of any log whose content a score may rest on."""


def read_unused(entry: Entry, findings: Findings) -> None:
    """Decode a record that no planned episode needed; raise EvidenceError."""
    where = f"{entry.log.file_name}, record {entry.sequence}"
    findings.count("other records decoded")
    if entry.record_type == "task":
        TaskSpec.from_payload(entry.member("task"), where)
    elif entry.log is not CANDIDATE_LOG:
        episode_of(entry)
    elif entry.record_type == "attempt":
        check_attempt(attempt_of(entry), where, findings)
    else:
        outcome_of(entry)
