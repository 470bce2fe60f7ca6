"""Sessions with an endpoint over real TLS: routes, refusals, deletions."""

import json
import os
import re
import signal
from pathlib import Path

import anyio
import pytest

from harness.errors import OracleError
from harness.oracle.contracts import OracleFault
from tests.oracle.endpoints import (
    CLOCK,
    SESSION_ID,
    TASK,
    running,
    scripted_oracle,
    write_endpoint,
)
from tests.servers import Reply, json_reply

pytestmark = pytest.mark.slow

TOKEN = 'tok-1234567890/"x'
HEADER = "second-secret-value"
ENVIRONMENT = {"TOKEN": TOKEN, "HEADER": HEADER}
SESSION_PATH = "/base/v1/sessions/a%2Fb%20c%3F%C3%BC0"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A running host with credentials; one for the module, for it starts slowly."""
    root = tmp_path_factory.mktemp("endpoint")
    with scripted_oracle() as (oracle, server):
        code = write_endpoint(
            root / "pack",
            server,
            auth={"bearer_token_env": "TOKEN", "headers": {"X-Desk": "env:HEADER"}},
            max_request_bytes=2000,
            max_response_bytes=3000,
        )
        policy = root / "policy.json"
        grant = {
            "base_url": f"https://127.0.0.1:{server.port}/base",
            "credential_references": ["env:TOKEN", "HEADER"],
        }
        policy.write_text(
            json.dumps(
                {
                    "schema_version": "bfcl-endpoint-credential-policy-v1",
                    "grants": [grant],
                }
            )
        )
        environment = {**ENVIRONMENT, "BFCL_ENDPOINT_CREDENTIAL_POLICY": str(policy)}
        with running(code, oracle, server, environment=environment) as bench:
            yield bench


@pytest.fixture(autouse=True)
def nothing_left_open(bench):
    """Whatever a test does, every session at the endpoint is deleted after it."""
    bench.oracle.begin()
    yield
    assert bench.oracle.open() == []


async def count(session, **arguments):
    return await session.call_tool("count", arguments, turn_index=2)


def parent_of(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^PPid:\s*(\d+)$", status, re.MULTILINE)[1])


def on(method, part, reply):
    """Answer requests of one method whose path ends so with this reply."""

    def disturb(received):
        if received.method == method and received.path.endswith(part):
            return reply(received) if callable(reply) else reply
        return None

    return disturb


def test_each_operation_is_its_route(bench):
    since = len(bench.server.requests)

    async def scenario(session):
        return [
            await session.list_tools(),
            await count(session, x=[1.5, "é"]),
            await session.state(),
            await session.state_hash(),
        ]

    values = bench.run(scenario)

    assert values[:3] == [["count", "fail"], {"count": 1}, {"count": 1}]
    assert values[3].startswith("sha256:")
    assert bench.paths(since) == [
        ("POST", "/base/v1/sessions"),
        ("GET", "/base/v1/tools"),
        ("POST", f"{SESSION_PATH}/calls"),
        ("GET", f"{SESSION_PATH}/state"),
        ("GET", f"{SESSION_PATH}/state"),
        ("DELETE", SESSION_PATH),
    ]
    assert bench.evidence["remote_session"] == "deleted"


def test_bodies_are_what_the_protocol_says(bench):
    since = len(bench.server.requests)

    bench.run(lambda session: count(session, x=[1.5, "é"]))

    created, called, _ = bench.server.requests[since:]
    assert created.json() == {
        "context": {"clock": CLOCK, "seed": 7, "timeout_s": 20, "task_id": "task-1"},
        "fixtures": {"rows": [{"id": 1, "name": "é"}]},
    }
    assert called.json() == {
        "name": "count",
        "arguments": {"x": [1.5, "é"]},
        "turn_index": 2,
    }


def test_every_request_carries_the_credentials(bench):
    since = len(bench.server.requests)

    bench.run(count)

    sent = bench.server.requests[since:]
    assert {r.headers["authorization"] for r in sent} == {f"Bearer {TOKEN}"}
    assert {r.headers["x-desk"] for r in sent} == {HEADER}
    assert {r.headers["host"] for r in sent} == {f"127.0.0.1:{bench.server.port}"}


def test_operations_of_one_moment_share_a_connection(bench):
    since = len(bench.server.requests)

    bench.run(count)

    assert len({r.connection for r in bench.server.requests[since:]}) == 1


def test_connection_that_the_server_closed_is_replaced(bench):
    closed = Reply(body=b'{"count":9}', close=True)
    bench.oracle.begin(on("POST", "/calls", closed))

    async def scenario(session):
        await count(session)
        await anyio.sleep(0.05)
        return await session.state()

    assert bench.run(scenario) == {"count": 0}


def test_assertion_sees_state_trace_and_task(bench):
    async def scenario(session):
        await count(session, x=1)
        call = {"tool": "count", "arguments": {"x": 1}, "turn_index": 2}
        trace = [{**call, "result": {"count": 1}}]
        return await session.run_assertion(
            "assert_seen", {"expected": [{"count": 1}, trace, "task-1", 7]}
        )

    reply = bench.run(scenario)

    assert (reply.status, reply.detail) == ("passed", "")


@pytest.mark.parametrize("value", [None, [1], "text", 3, True])
def test_whole_non_object_keeps_the_session_and_the_trace(bench, value):
    bench.oracle.begin(on("POST", "/calls", json_reply(value)))

    async def scenario(session):
        with pytest.raises(OracleFault) as caught:
            await count(session)
        reply = await session.run_assertion(
            "assert_code", {"code": f"assert trace[0]['result'] == {value!r}, trace"}
        )
        return caught.value, reply, await session.state()

    fault, reply, state = bench.run(scenario)

    assert (fault.operation, fault.kind, fault.value) == ("call", "malformed", value)
    assert (reply.status, state) == ("passed", {"count": 0})


BAD_ANSWERS = {
    "redirect": (
        Reply(302, {"Location": "/base/v1/tools"}),
        "error",
        "status 302, a redirect, which is not followed",
    ),
    "server error": (Reply(500, body=b"{}"), "error", "status 500"),
    "client error": (json_reply({"error": {"code": "x"}}, 422), "error", "status 422"),
    "not json": (Reply(body=b"<html>"), "malformed", "not strict JSON"),
    "empty": (Reply(body=b""), "malformed", "not strict JSON"),
    "repeated key": (Reply(body=b'{"a":1,"a":2}'), "malformed", "repeats a key"),
    "nan": (Reply(body=b'{"a":NaN}'), "malformed", "NaN is not a JSON number"),
    "infinite": (Reply(body=b'{"a":1e999}'), "malformed", "not a JSON number"),
    "broken utf-8": (Reply(body=b'{"a":"\xff"}'), "malformed", "not strict JSON"),
    "surrogate": (Reply(body=b'{"a":"\\ud800"}'), "malformed", "surrogate"),
    "deep": (Reply(body=b"[" * 100 + b"]" * 100), "malformed", "deeper"),
    "two values": (Reply(body=b"{} {}"), "malformed", "not strict JSON"),
    "announced too large": (Reply(body=b" " * 3001), "malformed", "at most 3000"),
    "chunked too large": (
        Reply(headers={"Transfer-Encoding": "chunked"}, body=b" " * 4000),
        "malformed",
        "at most 3000",
    ),
    "encoded": (
        Reply(headers={"Content-Encoding": "gzip"}, body=b"{}"),
        "error",
        "encoded, unasked",
    ),
    "cut": (
        Reply(body=b'{"count": 1}', fault="content_length_short", send_bytes=5),
        "error",
        "",
    ),
    "cut chunks": (
        Reply(
            headers={"Transfer-Encoding": "chunked"},
            body=b'{"count": 1}',
            fault="chunk_truncated",
            send_bytes=9,
        ),
        "error",
        "connection ended",
    ),
    "no length, no goodbye": (
        Reply(raw=b'HTTP/1.1 200 OK\r\n\r\n{"count": 1}', close=True),
        "error",
        "connection ended",
    ),
    "closed": (Reply(fault="close_before_response"), "error", ""),
    "reset": (
        Reply(body=b'{"count": 1}', fault="reset_mid_body", send_bytes=3),
        "error",
        "connection",
    ),
    "no http": (Reply(raw=b"SSH-2.0-x\r\n", close=True), "error", "not HTTP/1.1"),
    "token in the answer": (json_reply({"a": TOKEN}), "error", "repeats a credential"),
    "token in escapes": (
        Reply(body=b'{"a":"\\u0074ok-1234567890\\/\\"x"}'),
        "error",
        "repeats a credential",
    ),
    "header in broken json": (
        Reply(body=f"<b>{HEADER}</b>".encode()),
        "error",
        "repeats a credential",
    ),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_bad_answer_ends_the_session_in_plain_words(bench, name):
    answer, kind, words = BAD_ANSWERS[name]
    bench.oracle.begin(on("POST", "/calls", answer))
    since = len(bench.server.requests)

    async def scenario(session):
        with pytest.raises(OracleFault) as caught:
            await count(session)
        with pytest.raises(OracleFault, match="has ended"):
            await session.state()
        return caught.value

    fault = bench.run(scenario)

    assert (fault.operation, fault.kind, fault.sent) == ("call", kind, True)
    assert words in fault.detail
    told = json.dumps([str(fault), bench.evidence])
    assert not any(
        secret in told for secret in (TOKEN, json.dumps(TOKEN)[1:-1], HEADER)
    )
    # Sent once, nothing followed, and the session deleted by a second client.
    assert bench.paths(since) == [
        ("POST", "/base/v1/sessions"),
        ("POST", f"{SESSION_PATH}/calls"),
        ("DELETE", SESSION_PATH),
    ]
    assert bench.evidence["remote_session"] == "deleted by a second client"


@pytest.mark.parametrize(
    "answer",
    [Reply(500), json_reply({"oracle": {}}), json_reply([]), Reply(body=b"{")],
    ids=["error", "no id", "no object", "no json"],
)
def test_creation_that_fails_is_a_reset_fault(bench, answer):
    bench.oracle.begin(on("POST", "/sessions", answer))

    with pytest.raises(OracleFault) as caught:
        bench.run(count)

    assert caught.value.operation == "reset"
    assert bench.evidence["remote_session"].startswith("unknown")


@pytest.mark.parametrize("answer", [json_reply([1]), Reply(500), Reply(body=b"{")])
def test_state_that_is_none_is_a_state_fault(bench, answer):
    bench.oracle.begin(on("GET", "/state", answer))

    with pytest.raises(OracleFault) as caught:
        bench.run(lambda session: session.state_hash())

    assert caught.value.operation == "state"


def test_request_over_its_cap_is_never_sent(bench):
    since = len(bench.server.requests)

    async def scenario(session):
        with pytest.raises(OracleFault) as caught:
            await count(session, x="y" * 2000)
        return caught.value

    fault = bench.run(scenario)

    assert (fault.operation, fault.kind, fault.sent) == ("call", "error", False)
    assert "at most 2000 are sent" in fault.detail
    assert not any(path.endswith("/calls") for _, path in bench.paths(since))


def test_another_oracle_at_the_creation_stops_the_run(bench):
    def other(_received):
        bench.oracle.identity["content_digest"] = "sha256:" + "b" * 64

    bench.oracle.begin(on("POST", "/sessions", other))

    with pytest.raises(OracleError, match="content_digest") as caught:
        bench.run(count)

    assert caught.value.code == "eval_oracle_identity_drift"
    assert bench.evidence["remote_session"] == "deleted"


def test_identity_that_moves_within_the_run_stops_it(bench):
    def other(_received):
        bench.oracle.identity["principal_digest"] = "sha256:" + "b" * 64

    bench.oracle.begin(on("POST", "/sessions", other))

    with pytest.raises(OracleError, match="describes itself differently"):
        bench.run(count)


@pytest.mark.parametrize("part", ["/metadata", "/conformance"])
def test_identity_is_asked_again_on_demand(bench, part):
    bench.call(bench.host.confirm_identity)
    other = json_reply({**bench.oracle.identity, "oracle_version": "4"})
    bench.oracle.begin(on("GET", part, other))

    with pytest.raises(OracleError) as caught:
        bench.call(bench.host.confirm_identity)

    assert caught.value.code == "eval_oracle_identity_drift"


def test_deletion_that_is_refused_is_a_close_fault_and_not_repeated(bench):
    refused = []

    def disturb(received):
        if received.method == "DELETE" and not refused:
            refused.append(received.path)
            return Reply(500)
        return None

    bench.oracle.begin(disturb)
    since = len(bench.server.requests)

    with pytest.raises(OracleFault) as caught:
        bench.run(count)

    assert (caught.value.operation, caught.value.kind) == ("close", "error")
    assert bench.evidence["remote_session"].startswith("not deleted: close error")
    assert [method for method, _ in bench.paths(since)].count("DELETE") == 1
    bench.oracle.deleted += bench.oracle.open()


def test_second_reset_deletes_the_first_session(bench):
    async def scenario(session):
        await count(session)
        await session.reset()
        return await session.state()

    assert bench.run(scenario) == {"count": 0}
    assert bench.oracle.deleted == [SESSION_ID + "0", SESSION_ID + "1"]


def test_cancelled_call_deletes_its_session(bench):
    bench.oracle.begin(on("POST", "/calls", Reply(fault="hang")))

    async def scenario(session):
        with anyio.move_on_after(0.2) as scope:
            await count(session)
        return scope.cancelled_caught

    assert bench.run(scenario)
    assert bench.evidence["remote_session"] == "deleted by a second client"


def test_host_death_deletes_the_sessions_of_its_workers(bench):
    async def scenario(session):
        os.kill(parent_of(session._client.pid), signal.SIGKILL)
        # The kernel ends the worker with its host, but not in the same instant.
        await anyio.wait_readable(session._client.channel.handle)
        with pytest.raises(OracleFault) as caught:
            await count(session)
        return caught.value

    assert bench.run(scenario).kind == "session"
    assert bench.evidence["remote_session"] == "deleted by a second client"


def test_session_can_be_closed_after_the_episodes_deadline(bench):
    async def scenario():
        session = await bench.host.open_session(
            TASK, deadline=anyio.current_time() + 0.5
        )
        await session.reset()
        await anyio.sleep(0.5)
        await session.close()
        return session.evidence()["remote_session"]

    assert bench.call(scenario) == "deleted by a second client"


def test_broken_assertion_leaves_the_client_to_delete(bench):
    async def scenario(session):
        with pytest.raises(OracleFault) as caught:
            await session.run_assertion(
                "assert_code", {"code": "import os; os._exit(3)"}
            )
        return caught.value

    fault = bench.run(scenario)

    assert (fault.operation, fault.kind) == ("assertion", "crashed")
    assert bench.evidence["remote_session"] == "deleted"
