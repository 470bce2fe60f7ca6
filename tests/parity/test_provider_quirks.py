"""Every line of `provider-quirks/responses.jsonl`, served over a socket to the client.

Compared as wire contract A1 says: class, calls, text and wait always; the fine reason
and the calls seen where the candidate is to blame. Values compare as typed JSON.
"""

import base64
from datetime import datetime

from harness.canonical import json_equal
from tests.candidates.recording import NOON, exchange
from tests.parity.folders import fixture_lines
from tests.servers import Reply, ScriptedServer

FOLDER = "provider-quirks"
CANDIDATE_CLASSES = ("ok", "candidate_malformed", "truncated", "content_filter")
DRIP_DEADLINE_S = 0.4


def pytest_generate_tests(metafunc):
    cases = fixture_lines(metafunc.config, FOLDER, "responses.jsonl")
    metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])


def reply_of(case):
    body = case.get("body") or ""
    data = base64.b64decode(body) if case["body_encoding"] == "base64" else body
    wire = dict(case.get("wire") or {})
    if case["http_status"] is None:
        wire.setdefault("fault", "close_before_response")
    return Reply(
        case["http_status"],
        case.get("headers") or {},
        data if isinstance(data, bytes) else data.encode("utf-8"),
        **wire,
    )


def ask(case):
    clock = case.get("clock")
    is_slow = (case.get("wire") or {}).get("fault") == "total_deadline_drip"
    with ScriptedServer([reply_of(case)]) as server:
        return exchange(
            server.url,
            now=datetime.fromisoformat(clock) if clock else NOON,
            timeout_s=DRIP_DEADLINE_S if is_slow else 20.0,
            inference=case.get("request") or {},
        )


def observed(exchanged):
    (attempt,) = exchanged.records.attempts
    response = exchanged.outcome.response if exchanged.outcome else None
    calls = response.tool_calls if response else ()
    is_ok = attempt.wire_class == "ok"
    found = {
        "class": attempt.wire_class,
        "text": response.text if response else None,
        "tool_calls": [
            {"id": c.id, "name": c.function_name, "arguments": c.parsed_arguments}
            for c in calls
        ]
        if is_ok
        else None,
    }
    if attempt.wire_class == "transport_retryable":
        found["retry_after_s"] = attempt.retry_after_s
    if attempt.wire_class in CANDIDATE_CLASSES:
        found["detail"] = attempt.detail_code
        found["calls_seen"] = [] if is_ok else [seen(c, response) for c in calls]
    return found


def seen(call, response):
    """One call as it is kept for the per-call gates, with its id as received."""
    as_received = response.message["tool_calls"][call.index]
    found = {
        "id": as_received.get("id"),
        "name": call.function_name,
        "arguments_status": call.arguments_status,
    }
    if call.parse_code is not None:
        found["parse_code"] = call.parse_code
    return found


def expected_of(case):
    expected = case["expected"]
    names = ["class", "tool_calls", "text"]
    found = {name: expected[name] for name in names}
    if expected["class"] == "transport_retryable":
        found["retry_after_s"] = expected["retry_after_s"]
    if expected["class"] in CANDIDATE_CLASSES:
        found["detail"] = expected["detail"]
        found["calls_seen"] = expected.get("calls_seen", [])
    return found


def test_response_is_classified_as_the_contract_says(case):
    exchanged = ask(case)

    found, expected = observed(exchanged), expected_of(case)
    assert json_equal(expected, found), f"expected {expected}\nfound    {found}"


def test_records_of_the_exchange_can_be_written(case):
    exchanged = ask(case)

    assert "test-key-7f3a9c41d2" not in exchanged.records.as_text()
