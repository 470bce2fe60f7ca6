"""The relay leads to one address, tells why it cannot, and ends with its keeper."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.oracle import paths
from harness.oracle.sandbox import detect_sandbox
from tests.oracle_workers.relays import is_gone, listening

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
KEEPER = """
import json, os, sys
from oracle_workers import relay
from oracle_workers.contain import UnavailableError
destination, level, asked = json.loads(sys.argv[1])
try:
    started = relay.start(destination, level)
except UnavailableError as error:
    print(json.dumps({"missing": error.missing}))
    sys.exit()
answers = []
for _ in range(asked):
    try:
        reached = relay.connect(started.line.fileno(), 5.0)
    except relay.RelayError as error:
        answers.append(str(error))
    else:
        reached.sendall(b"x")
        answers.append(reached.recv(1).decode())
print(json.dumps({"pid": started.pid, "answers": answers}), flush=True)
sys.stdin.read()
"""


def keep(port, *, host="127.0.0.1", level="process", asked=1, timeout_s=5.0):
    """Start a relay in a process of its own, ask it, and return what came out."""
    destination = {
        "host": host,
        "port": port,
        "timeout_s": timeout_s,
        "readable": paths.interpreter(),
    }
    with subprocess.Popen(
        [sys.executable, "-c", KEEPER, json.dumps([destination, level, asked])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as keeper:
        found = json.loads(keeper.stdout.readline())
        keeper.stdin.close()
        keeper.wait(10)
    return found


@pytest.fixture(scope="module")
def confined():
    found = detect_sandbox()["levels"]["confined"]
    return "confined" if found["available"] else None


def test_every_question_gets_a_connection_of_its_own():
    with listening() as server:
        found = keep(server.port, asked=3)

        assert found["answers"] == ["0", "1", "2"]


def test_confined_relay_reaches_its_address_by_name(confined):
    if confined is None:
        pytest.skip("no file rules on this machine")
    with listening() as server:
        assert keep(server.port, host="localhost", level=confined)["answers"] == ["0"]


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("127.0.0.1", 1, "no connection: Connection refused"),
        ("no-such-host.invalid", 443, "no connection: "),
    ],
)
def test_address_that_cannot_be_reached_is_said(host, port, words):
    (answer,) = keep(port, host=host)["answers"]

    assert answer.startswith(words)


def test_relay_ends_with_its_keeper():
    with listening() as server:
        pid = keep(server.port, asked=0)["pid"]

        assert is_gone(pid)
