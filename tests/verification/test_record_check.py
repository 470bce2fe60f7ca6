"""What a request states of itself is held against its body and its head."""

import pytest

from harness.canonical import canonical_bytes, content_hash, hash_bytes
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.log_line import decode_line, encode_line
from harness.verification.findings import Findings
from harness.verification.record_check import check_attempt, check_request
from tests.evidence.samples import attempt

BODY = {"messages": [{"role": "user", "content": 'a ",\\"body_hash\\":" of its own'}]}


def request(**changes):
    """Return a recorded request; changes of head fields are hashed anew."""
    head = {
        "base_url": "http://127.0.0.1:9/v1",
        "candidate_alias": "one",
        "canonical_model_identity": "local:one@0",
        "model": "one",
        "provider": "local",
        "provider_api_version": "v1",
        "request_body_hash": content_hash(BODY),
        "request_id": "one:t:0:0",
        "schema_version": "1.0",
        "task_id": "t",
        "trial": 0,
        "turn_index": 0,
    }
    head |= changes
    return {
        "body": BODY,
        "body_hash": content_hash(BODY),
        "head": head,
        "request_hash": content_hash(head),
        **{name: head[name] for name in ("request_id", "task_id", "trial")},
        "turn_index": head["turn_index"],
    }


def recorded(payload, key=None):
    line, _ = encode_line(
        CANDIDATE_LOG,
        sequence=1,
        record_type="request",
        key=key or content_hash(payload["head"]),
        number=None,
        payload=canonical_bytes({"request": payload}),
    )
    return decode_line(CANDIDATE_LOG, line[:-1], 1, 0)


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"task_id": 'a "quoted" name', "trial": 12},
        {"task_id": "größer"},
        {"routing_header": {"name": "X-Route", "value": "7"}},
        {"another_field": {"of": ["a", "later", "version"]}},
    ],
    ids=["usual", "escapes", "no ASCII", "routed", "another version"],
)
def test_a_request_that_agrees_with_itself_is_sound(head):
    check_request(recorded(request(**head)))


@pytest.mark.parametrize(
    ("name", "other"),
    [("request_id", "one:t:0:1"), ("task_id", "u"), ("trial", 1), ("turn_index", 10)],
)
def test_a_request_that_names_another_turn_than_its_head_is_refused(name, other):
    payload = request() | {name: other}

    with pytest.raises(EvidenceError, match="different turns"):
        check_request(recorded(payload))


def test_a_request_that_states_another_hash_than_its_key_is_refused():
    payload = request() | {"request_hash": content_hash("another")}

    with pytest.raises(EvidenceError, match="not its own"):
        check_request(recorded(payload))


def test_a_request_without_a_field_is_refused():
    payload = request()
    del payload["trial"]

    with pytest.raises(EvidenceError, match="cannot be read"):
        check_request(recorded(payload))


def test_a_head_that_names_another_body_is_refused():
    payload = request(request_body_hash=content_hash("another"))

    with pytest.raises(EvidenceError, match="the body hashes to"):
        check_request(recorded(payload))


def test_a_request_under_another_key_is_refused():
    with pytest.raises(EvidenceError, match="does not follow from the head"):
        check_request(recorded(request(), content_hash("another")))


ENVELOPE = {
    "wire_class": "transport_retryable",
    "detail_code": "envelope_malformed",
    "status": "provider_unavailable",
    "retryable": True,
}
CUT = ENVELOPE | {"detail_code": "transport_error", "status": "transport_error"}
STOPPED = {"status": "cancelled", "wire_class": "transport_retryable"}


def exchanged(body, **fields):
    """Return an attempt that kept a body."""
    kept = {"raw_response": body, "raw_response_encoding": "utf-8", "http_status": 200}
    hashed = {"raw_response_hash": hash_bytes(body.encode())}
    return attempt().but(**kept, **hashed, **fields)


def problems(checked):
    findings = Findings()
    check_attempt(checked, "here", findings)
    return [violation.problem for violation in findings.violations]


WHOLE = (
    '{"choices":[{"finish_reason":"stop","message":'
    '{"role":"assistant","content":"Hi"}}]}'
)


@pytest.mark.parametrize(
    "checked",
    [
        attempt(),
        attempt(status="timeout"),
        attempt(status="timeout").but(**STOPPED, detail_code=None),
        exchanged('{"choices":[]}', **ENVELOPE),
        exchanged(WHOLE[:20], **CUT),
        exchanged(WHOLE, **CUT),
    ],
    ids=["answered", "timeout", "stopped", "no choice", "cut", "cut behind its end"],
)
def test_an_attempt_that_agrees_with_itself_is_sound(checked):
    assert problems(checked) == []


def test_an_answer_that_is_called_an_outage_is_named():
    assert problems(exchanged(WHOLE, **ENVELOPE)) == [
        "the raw response reads as something else than was recorded"
    ]


@pytest.mark.parametrize(
    "fields",
    [{"status": "timeout"}, {"retryable": True}, {"wire_class": "auth_fatal"}],
)
def test_an_attempt_of_two_ends_is_named(fields):
    assert "status and class of an attempt are of two ends" in problems(
        attempt().but(**fields)
    )


def test_a_body_without_an_encoding_is_named():
    assert problems(attempt().but(raw_response_encoding=None)) == [
        "a raw response has no encoding"
    ]
