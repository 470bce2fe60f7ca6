"""The controls as a real process behind a real socket."""

import http.client
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.candidates.control import ControlCandidate
from harness.candidates.control_policies import CONTROL_NAMES
from harness.canonical import canonical_bytes
from tests.candidates.control_rows import ROWS, SINGLE, request_at

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 20
SERVE = """
import anyio, json, os, sys
from harness.candidates.control import ControlCandidate
from harness.candidates.control_server import serve_controls
with open(sys.argv[1]) as stream:
    controls = ControlCandidate(json.load(stream))
anyio.run(lambda: serve_controls(controls, port=int(sys.argv[2]), parent=os.getppid()))
"""
WITHOUT_DESCRIPTORS = """
import os
def refused(*_):
    raise OSError("no process descriptors here")
os.pidfd_open = refused
"""
STARTED_BY_A_CHILD = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]])
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    return path


@contextmanager
def started(*command):
    with subprocess.Popen(
        [sys.executable, "-c", *map(str, command)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ready_line(process):
    readable, _, _ = select.select([process.stdout], [], [], DEADLINE_S)
    assert readable, "no ready line in time"
    line = process.stdout.readline()
    assert line, process.stderr.read().decode()
    return json.loads(line)


@pytest.fixture(scope="module")
def server(rows_file):
    with started(SERVE, rows_file, 0) as process:
        yield ready_line(process)


@pytest.fixture
def connection(server):
    port = int(server["url"].split(":")[2].split("/")[0])
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    yield made
    made.close()


def call(connection, method, path, body=None):
    connection.request(method, path, body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def chat(connection, body):
    return call(connection, "POST", "/v1/chat/completions", json.dumps(body))


def test_ready_line_names_url_controls_and_tasks(server):
    assert server["url"].startswith("http://127.0.0.1:")
    assert server["url"].endswith("/v1")
    assert (server["controls"], server["tasks"]) == (list(CONTROL_NAMES), len(ROWS))


def test_health(connection):
    assert call(connection, "GET", "/healthz") == (
        200,
        {"status": "ok", "tasks": len(ROWS)},
    )


def test_models(connection):
    status, payload = call(connection, "GET", "/v1/models")

    assert status == 200
    assert [model["id"] for model in payload["data"]] == list(CONTROL_NAMES)


@pytest.mark.parametrize("model", CONTROL_NAMES)
def test_answer_over_the_wire_is_the_answer_of_the_pure_part(connection, model):
    body = request_at(SINGLE, 0, model=model)
    connection.request("POST", "/v1/chat/completions", json.dumps(body))

    assert connection.getresponse().read() == canonical_bytes(
        ControlCandidate(ROWS).respond(model, body).payload
    )


def test_key_order_of_the_request_does_not_matter(connection):
    body = request_at(SINGLE, 0)
    turned = dict(reversed(body.items()))

    assert chat(connection, body) == chat(connection, turned)


def test_one_connection_serves_many_requests(connection):
    statuses = [chat(connection, request_at(SINGLE, i % 2))[0] for i in range(20)]

    assert statuses == [200] * 20


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/chat/completions", "{", 400),
        ("POST", "/v1/chat/completions", "[]", 400),
        ("POST", "/v1/chat/completions", '{"model":1}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gold","model":"gold"}', 400),
        ("POST", "/v1/chat/completions", b'{"model":"\xff"}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gold","user":"\\ud800"}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gold","stream":true}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gold","n":2}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gold"}', 400),
        ("POST", "/v1/chat/completions", '{"model":"gpt"}', 404),
        ("GET", "/v1/chat/completions", None, 405),
        ("POST", "/v1/models", "{}", 405),
        ("GET", "/v1/completions", None, 404),
    ],
)
def test_bad_request_gets_an_error_object(connection, method, path, body, status):
    answered, payload = call(connection, method, path, body)

    assert answered == status
    assert payload["error"].keys() == {"message", "type", "param", "code"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_server(rows_file, number):
    with started(SERVE, rows_file, 0) as process:
        ready_line(process)
        process.send_signal(number)

        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize("prelude", ["", WITHOUT_DESCRIPTORS])
def test_server_stops_when_its_parent_dies(rows_file, prelude):
    with started(STARTED_BY_A_CHILD, prelude + SERVE, rows_file, 0) as parent:
        server = os.pidfd_open(ready_line(parent)["pid"])
        try:
            parent.kill()
            ended, _, _ = select.select([server], [], [], DEADLINE_S)
        finally:
            os.close(server)

    assert ended == [server]


@pytest.mark.slow
def test_taken_port_is_refused_with_what_to_do(server, rows_file):
    port = server["url"].split(":")[2].split("/")[0]
    with started(SERVE, rows_file, port) as process:
        process.wait(DEADLINE_S)

        assert b"choose another --port" in process.stderr.read()
