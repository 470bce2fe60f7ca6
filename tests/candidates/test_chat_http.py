"""One exchange over a real socket: retries, deadlines, records, and the key."""

import gzip
import json
import socket
from dataclasses import replace

import anyio
import httpx
import pytest

from harness.candidates.chat_http import ChatHttpCandidate
from harness.candidates.http1 import HEAD_CAP_BYTES
from harness.candidates.wire import BODY_CAP_BYTES
from harness.causes import CAUSES
from harness.errors import CandidateError
from harness.evidence.episode import Attempt, Outcome
from tests.candidates.recording import (
    NOON,
    Records,
    endpoint,
    exchange,
    prepared,
)
from tests.servers import Reply, ScriptedServer, completion, json_reply, tool_call

KEY = "test-key-7f3a9c41d2"
OVERLOADED = Reply(503, body=b"busy")
HI = completion("Hi")


def ask(replies, **options):
    with ScriptedServer(replies) as server:
        return exchange(server.url, **options), server


def end_of(exchanged):
    outcome = exchanged.outcome
    return outcome.status, outcome.wire_class, outcome.detail_code


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def gzipped(body):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return Reply(200, headers, body)


CUT_ON_THE_WIRE = {
    "close before response": Reply(fault="close_before_response"),
    "short content-length": replace(HI, fault="content_length_short", send_bytes=20),
    "cut chunk": replace(
        HI,
        headers={"Transfer-Encoding": "chunked"},
        fault="chunk_truncated",
        send_bytes=20,
    ),
    "reset": replace(HI, fault="reset_mid_body", send_bytes=20),
    "cut gzip": gzipped(gzip.compress(HI.body)[:-9]),
    "unknown coding": replace(HI, headers={"Content-Encoding": "br"}),
    "no HTTP": Reply(raw=b"nonsense\r\n\r\n", close=True),
    "endless head": Reply(raw=b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_CAP_BYTES * 2),
}


@pytest.mark.parametrize("name", CUT_ON_THE_WIRE)
def test_response_that_does_not_arrive_whole_is_retried(name):
    exchanged, _ = ask([CUT_ON_THE_WIRE[name], HI], max_retries=1)

    assert exchanged.statuses == ["transport_error", "completed"]
    assert exchanged.outcome.response.text == "Hi"


def test_refused_connection_ends_as_exhausted_retries():
    exchanged = exchange(f"http://127.0.0.1:{free_port()}/v1", max_retries=2)

    assert exchanged.statuses == ["transport_error"] * 3
    assert end_of(exchanged) == (
        "retry_exhausted",
        "transport_retryable",
        "transport_error",
    )


def test_cut_body_is_kept_as_evidence_and_is_no_answer():
    cut = replace(HI, fault="content_length_short", send_bytes=20)
    exchanged, _ = ask([cut])

    (attempt,) = exchanged.records.attempts
    assert attempt.raw_response == HI.body[:20].decode()
    assert exchanged.outcome.response is None


@pytest.mark.slow
def test_slow_drip_is_stopped_by_the_total_deadline():
    drip = replace(HI, fault="total_deadline_drip", bytes_per_s=50)
    exchanged, _ = ask([drip], timeout_s=0.3, max_retries=3)

    assert exchanged.statuses == ["timeout"]
    assert end_of(exchanged) == ("retry_exhausted", "transport_retryable", "timeout")


def test_end_of_the_episode_is_told_apart_from_the_requests_own():
    exchanged, _ = ask([Reply(fault="hang")], episode_s=0.05)

    assert exchanged.statuses == ["timeout"]
    assert exchanged.outcome.status == "episode_deadline"


def test_episode_that_is_over_sends_nothing():
    exchanged, server = ask([HI], episode_s=-1.0)

    assert (server.requests, exchanged.records.attempts) == ([], [])
    assert end_of(exchanged) == ("episode_deadline", None, None)


@pytest.mark.slow
def test_oversize_body_is_dropped_and_not_retried():
    oversize = Reply(fault="oversize_body", body_bytes=BODY_CAP_BYTES + 1)
    exchanged, server = ask([oversize], max_retries=2)

    assert len(server.requests) == 1
    assert end_of(exchanged) == (
        "provider_rejected",
        "transport_fatal",
        "oversize_body",
    )


def test_small_gzip_of_an_oversize_body_is_dropped():
    bomb = gzipped(gzip.compress(b" " * (BODY_CAP_BYTES + 1), 9))
    exchanged, _ = ask([bomb])

    assert exchanged.outcome.detail_code == "oversize_body"


def test_blank_lines_before_the_body_are_fine():
    exchanged, _ = ask([replace(HI, body=b"\n\n\n" + HI.body)])

    assert exchanged.outcome.wire_class == "ok"


def test_redirect_is_never_followed():
    with ScriptedServer([HI]) as elsewhere:
        location = f"{elsewhere.url}/chat/completions"
        exchanged, server = ask([Reply(307, {"Location": location})], max_retries=2)

    assert (elsewhere.connections, len(server.requests)) == (0, 1)
    assert exchanged.outcome.detail_code == "provider_rejected"


def test_overload_is_retried_until_the_completion():
    exchanged, _ = ask([Reply(429), OVERLOADED, HI], max_retries=2)

    assert exchanged.statuses == ["rate_limited", "provider_unavailable", "completed"]
    assert exchanged.outcome.response.selected_attempt == 2


def test_endless_overload_is_given_up_after_the_retries():
    exchanged, server = ask([OVERLOADED], max_retries=2)

    assert len(server.requests) == 3
    assert end_of(exchanged) == (
        "retry_exhausted",
        "transport_retryable",
        "provider_unavailable",
    )


def test_every_attempt_sends_the_same_bytes():
    _, server = ask([OVERLOADED], max_retries=2)

    assert {r.body for r in server.requests} == {prepared(endpoint()).body}


@pytest.mark.parametrize(
    "reply",
    [
        completion(calls=[tool_call("get_weather", "{")]),
        completion(calls=[tool_call("get_weather", {}, "")]),
        completion("Hi", finish_reason="length"),
        completion("", finish_reason="content_filter"),
        completion("", function_call={}),
        json_reply(
            {"error": {"code": "tool_use_failed", "failed_generation": "f("}}, 400
        ),
    ],
    ids=["arguments", "ids", "length", "filter", "legacy", "verdict"],
)
def test_received_completion_is_never_sampled_again(reply):
    exchanged, server = ask([reply], max_retries=3)

    assert len(server.requests) == 1
    assert exchanged.outcome.response is not None


def test_request_is_recorded_before_its_attempts_and_its_outcome():
    exchanged, _ = ask([OVERLOADED, HI], max_retries=1)

    assert exchanged.records.order == ["request", "attempt", "attempt", "outcome"]


def test_attempt_numbers_go_on_from_those_on_record():
    exchanged, _ = ask([OVERLOADED, HI], max_retries=1, attempts_made=4)

    indexes = [attempt.attempt_index for attempt in exchanged.records.attempts]
    assert indexes == [4, 5]


def test_backoff_grows_and_is_the_same_in_every_run():
    unused = f"http://127.0.0.1:{free_port()}/v1"
    first = exchange(unused, max_retries=2)
    second = exchange(unused, max_retries=2)

    assert first.waits == second.waits
    assert 0.18 < first.waits[0] < 0.32 < first.waits[1] < 0.63


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Mon, 05 Jan 2026 12:00:09 GMT"}, 9.0),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
    ],
)
def test_servers_wish_is_the_shortest_wait(headers, wait_s):
    exchanged, _ = ask([Reply(429, headers), HI], max_retries=1)

    assert exchanged.waits == [wait_s]


def test_own_backoff_counts_where_the_server_wants_less():
    exchanged, _ = ask([Reply(429, {"Retry-After": "0"}), HI], max_retries=1)

    assert exchanged.waits[0] > 0.18


def test_wait_beyond_the_requests_budget_ends_at_once():
    refusal = Reply(429, {"Retry-After": "3600"})
    exchanged, server = ask([refusal], max_retries=5)

    assert (len(server.requests), exchanged.waits) == (1, [])
    assert end_of(exchanged) == (
        "retry_exhausted",
        "transport_retryable",
        "rate_limited",
    )


def test_wait_beyond_the_episode_alone_ends_it_at_once():
    refusal = Reply(429, {"Retry-After": "10"})
    exchanged, _ = ask([refusal], max_retries=5, timeout_s=60.0, episode_s=5.0)

    assert exchanged.waits == []
    assert exchanged.outcome.status == "episode_deadline"


@pytest.mark.parametrize("status", [401, 403, 407])
def test_refused_key_stops_the_run_after_its_attempt_is_recorded(status):
    exchanged, server = ask([Reply(status)], max_retries=3)

    assert exchanged.error.code == "eval_candidate_authentication_failed"
    assert exchanged.records.order == ["request", "attempt"]
    assert len(server.requests) == 1
    assert exchanged.error.violations[0].actual == f"HTTP status {status}"


def test_key_refused_inside_a_success_is_told_as_such():
    exchanged, _ = ask([json_reply({"error": {"code": 401}})])

    assert exchanged.error.violations[0].actual == (
        "HTTP status 200 with an error of code 401"
    )


def test_refused_request_is_sent_once_and_only_its_hash_is_kept():
    refusal = json_reply({"error": {"code": "context_length_exceeded"}}, 400)
    exchanged, server = ask([refusal], max_retries=3)

    (attempt,) = exchanged.records.attempts
    assert len(server.requests) == 1
    assert (attempt.detail_code, attempt.raw_response) == ("context_length", None)
    assert attempt.raw_response_hash is not None


def test_body_that_is_no_utf8_is_kept_as_base64():
    exchanged, _ = ask([Reply(body=b"\xff\xfe")])

    (attempt,) = exchanged.records.attempts
    found = (attempt.raw_response, attempt.raw_response_encoding)
    assert found == ("//4=", "base64")


def test_few_headers_are_kept():
    headers = {
        "Content-Type": "application/json",
        "Server": "uvicorn",
        "X-Request-Id": "req-1",
        "Set-Cookie": "a=b",
        "X-Nv-Request-Id": "x" * 300,
    }
    exchanged, _ = ask([replace(HI, headers=headers)])

    (attempt,) = exchanged.records.attempts
    assert attempt.response_headers == {
        "content-type": "application/json",
        "server": "uvicorn",
        "x-request-id": "req-1",
    }
    assert attempt.provider_request_id == "req-1"


def test_response_says_who_answered():
    reply = replace(HI, headers={"Server": "uvicorn"})
    exchanged, _ = ask([reply])

    response = exchanged.outcome.response
    assert (response.served_model, response.server) == ("scripted", "uvicorn")
    assert response.usage["total_tokens"] == 2


def test_records_read_back_as_they_were_written():
    exchanged, _ = ask([completion("é", [tool_call("f", {"a": 2**60})])])

    (attempt,) = exchanged.records.attempts
    outcome = exchanged.outcome
    assert Attempt.from_payload(attempt.semantic_payload()) == attempt
    assert Outcome.from_payload(outcome.semantic_payload()) == outcome


def test_escaped_and_literal_spelling_are_one_value_in_two_bodies():
    literal = completion(calls=[tool_call("f", '{"a":"Zürich"}')])
    escaped = completion(calls=[tool_call("f", '{"a":"Z\\u00fcrich"}')])
    found = [ask([reply])[0].outcome.response for reply in (literal, escaped)]

    values = [response.tool_calls[0].parsed_arguments for response in found]
    assert values[0] == values[1]
    assert found[0].raw_response_hash != found[1].raw_response_hash


def test_text_that_is_no_unicode_stays_in_the_raw_body_alone():
    calls = [tool_call("f\ud800", "{}"), tool_call("g", '{"a":"\ud83d"}', "b")]
    exchanged, _ = ask([completion("a\ud800", calls)])

    exchanged.records.as_text()
    (attempt,) = exchanged.records.attempts
    assert end_of(exchanged) == (
        "malformed_response",
        "candidate_malformed",
        "invalid_unicode",
    )
    assert "\\ud800" in attempt.raw_response


@pytest.mark.parametrize("status", [200, 400, 429, 500])
@pytest.mark.parametrize("spelling", [KEY, "\\u0074" + KEY[1:]])
def test_key_that_comes_back_is_in_no_record(status, spelling):
    body = json.dumps({"error": "?"}).replace("?", f"bad key {spelling}").encode()
    headers = {"X-Request-Id": KEY, "Content-Type": "application/json"}
    exchanged, server = ask([Reply(status, headers, body)], api_key=KEY)

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    text = exchanged.records.as_text()
    assert (KEY in text, spelling in text) == (False, False)


def test_completion_that_repeats_the_key_is_not_kept():
    exchanged, server = ask([completion(f"it is {KEY}")], api_key=KEY, max_retries=2)

    (attempt,) = exchanged.records.attempts
    assert len(server.requests) == 1
    assert end_of(exchanged) == (
        "provider_rejected",
        "transport_fatal",
        "credential_echoed",
    )
    assert (attempt.raw_response, attempt.raw_response_hash) == (None, None)


def test_refused_key_is_not_in_the_error():
    exchanged, _ = ask([Reply(401, body=KEY.encode())], api_key=KEY)

    assert KEY not in f"{exchanged.error!r} {exchanged.error}"
    assert KEY not in exchanged.records.as_text()


def test_cut_body_that_begins_the_key_is_not_kept():
    reply = completion(f"it is {KEY}")
    cut = reply.body.index(KEY.encode()) + len(KEY) - 2
    exchanged, _ = ask(
        [replace(reply, fault="content_length_short", send_bytes=cut)], api_key=KEY
    )

    assert exchanged.records.attempts[0].raw_response is None


def test_without_a_key_no_authorization_is_sent():
    _, server = ask([HI], api_key=None)

    assert "authorization" not in server.requests[0].headers


def test_every_stop_has_a_row_in_the_cause_table():
    replies = [Reply(429), Reply(402), Reply(404), Reply(408), OVERLOADED, Reply()]
    ends = [ask([reply])[0].outcome.detail_code for reply in replies]

    assert all(f"episode.candidate_call_failed.{end}" in CAUSES for end in ends)


MALFORMED = [
    "",
    None,
    '{}""',
    "{}{}",
    '"{\\"a\\": 1}"',
    "null",
    "[1]",
    '{"city": "Par',
    '{"a":1,"a":2}',
    '{"a":NaN}',
    "{'a': 1}",
    "```json\n{}\n```",
    '{"a":1,}',
    "{} // done",
    '{"a":1e400}',
    '{"a":"\t"}',
    "true",
    "\ufeff{}",
    '{"a":' + "[" * 70 + "]" * 70 + "}",
    "{",
]


def test_twenty_malformed_answers_at_once_are_twenty_candidate_failures():
    def answer(request):
        number = int(request.json()["messages"][0]["content"])
        call = tool_call("get_weather", "{}")
        call["function"]["arguments"] = MALFORMED[number]
        return completion(calls=[call])

    async def run(url):
        asked = endpoint(url)
        records = Records()
        limiter = anyio.CapacityLimiter(4)
        async with (
            ChatHttpCandidate(
                asked,
                KEY,
                candidate_timeout_s=20,
                max_retries=2,
                recorder=records,
            ) as candidate,
            anyio.create_task_group() as tasks,
        ):

            async def one(number):
                request = prepared(
                    asked,
                    task_id=f"task-{number}",
                    messages=[{"role": "user", "content": str(number)}],
                )
                async with limiter:
                    await candidate.exchange(
                        request, deadline=anyio.current_time() + 20
                    )

            for number in range(len(MALFORMED)):
                tasks.start_soon(one, number)
        return records

    with ScriptedServer(answer) as server:
        records = anyio.run(run, server.url)

    classes = [outcome.wire_class for outcome in records.outcomes]
    assert (len(server.requests), classes) == (20, ["candidate_malformed"] * 20)
    assert all(
        o.response.tool_calls[0].parsed_arguments is None for o in records.outcomes
    )


def test_users_own_transport_is_used():
    def handle(request):
        assert request.headers["host"] == "model.invalid"
        return httpx.Response(200, content=HI.body)

    exchanged = exchange(
        "https://model.invalid/v1", transport=httpx.MockTransport(handle)
    )

    assert exchanged.outcome.response.text == "Hi"


def test_httpx_own_transport_works():
    with ScriptedServer([gzipped(gzip.compress(HI.body))]) as server:
        exchanged = exchange(
            server.url, transport=httpx.AsyncHTTPTransport(trust_env=False)
        )

    assert exchanged.outcome.response.text == "Hi"


def test_cut_gzip_is_an_error_over_a_foreign_transport_too():
    with ScriptedServer([gzipped(gzip.compress(HI.body)[:-9])]) as server:
        exchanged = exchange(
            server.url, transport=httpx.AsyncHTTPTransport(trust_env=False)
        )

    assert exchanged.statuses == ["transport_error"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (httpx.ReadTimeout("user:pass@proxy"), "timeout"),
        (httpx.ProxyError("user:pass@proxy"), "transport_error"),
        (OSError("user:pass@proxy"), "transport_error"),
    ],
)
def test_fault_of_a_foreign_transport_is_named_without_its_words(error, status):
    def handle(request):
        raise error

    exchanged = exchange(
        "http://model.invalid/v1", transport=httpx.MockTransport(handle)
    )

    assert exchanged.statuses == [status]
    assert "user:pass" not in exchanged.records.as_text()


@pytest.mark.parametrize(
    "base_url", ["ftp://host/v1", "no url", "http://", "http://host:port", ""]
)
def test_base_url_that_cannot_be_called_is_refused(base_url):
    with pytest.raises(CandidateError) as caught:
        exchange(base_url)

    assert caught.value.code == "eval_candidate_client_invalid"


def test_oversize_body_of_a_foreign_transport_is_dropped():
    def handle(request):
        return httpx.Response(200, content=b" " * (BODY_CAP_BYTES + 1))

    exchanged = exchange(
        "http://model.invalid/v1", transport=httpx.MockTransport(handle)
    )

    assert exchanged.outcome.detail_code == "oversize_body"


def test_transport_with_a_blocking_body_is_refused():
    class Blocking(httpx.SyncByteStream):
        def __iter__(self):
            yield b"{}"

    def handle(request):
        return httpx.Response(200, stream=Blocking())

    exchanged = exchange(
        "http://model.invalid/v1", transport=httpx.MockTransport(handle)
    )

    assert exchanged.error.code == "eval_candidate_client_invalid"


def test_cancelled_request_leaves_an_attempt_and_no_outcome():
    async def run(url):
        asked = endpoint(url)
        records = Records()
        async with ChatHttpCandidate(
            asked,
            KEY,
            candidate_timeout_s=20,
            max_retries=2,
            recorder=records,
            now=lambda: NOON,
        ) as candidate:
            with anyio.move_on_after(0.05):
                await candidate.exchange(
                    prepared(asked), deadline=anyio.current_time() + 20
                )
        return records

    with ScriptedServer([Reply(fault="hang")]) as server:
        records = anyio.run(run, server.url)

    assert records.order == ["request", "attempt"]
    assert records.attempts[0].status == "cancelled"


def with_header(base_url, **options):
    """Ask once with a header that belongs to this request alone."""
    request = prepared(endpoint(base_url))
    routed = request._replace(headers=((b"X-Session-ID", b"talk 7"),))

    async def ask_twice():
        candidate = ChatHttpCandidate(
            endpoint(base_url),
            KEY,
            candidate_timeout_s=5.0,
            max_retries=0,
            recorder=Records(),
            **options,
        )
        async with candidate:
            await candidate.exchange(routed, deadline=anyio.current_time() + 5)
            await candidate.exchange(request, deadline=anyio.current_time() + 5)

    anyio.run(ask_twice)


def test_header_of_one_request_goes_with_that_request_alone():
    with ScriptedServer([HI]) as server:
        with_header(server.url)
        sent = [received.headers for received in server.requests]

    assert sent[0]["x-session-id"] == "talk 7"
    assert sent[0]["authorization"] == f"Bearer {KEY}"
    assert "x-session-id" not in sent[1]


def test_header_of_one_request_goes_through_a_foreign_transport_too():
    seen = []

    def handle(request):
        seen.append(request.headers.get("x-session-id"))
        return httpx.Response(200, content=HI.body)

    with_header("http://model.invalid/v1", transport=httpx.MockTransport(handle))

    assert seen == ["talk 7", None]
