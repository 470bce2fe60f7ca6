"""What a request states of itself is held against its body and its head."""

import pytest

from harness.canonical import canonical_bytes, content_hash
from harness.errors import EvidenceError
from harness.evidence.candidate_log import CANDIDATE_LOG
from harness.evidence.log_line import decode_line, encode_line
from harness.verification.record_check import check_request

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
