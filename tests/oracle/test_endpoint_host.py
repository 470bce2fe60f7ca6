"""Hosts of endpoint packs: trust, identity, deadlines, ends, and where secrets are."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from harness.errors import OracleError
from harness.oracle.contracts import OracleFault, WorkerLimits
from tests.oracle.endpoints import (
    DEADLINES,
    TASK,
    endpoint_host,
    scripted_oracle,
    write_endpoint,
)
from tests.servers import Reply, json_reply

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
SECRET = "s3cret-" + "0123456789abcdef"


@pytest.fixture(scope="module")
def served():
    with scripted_oracle() as (oracle, server):
        yield oracle, server


@pytest.fixture
def oracle(served):
    served[0].begin()
    return served[0]


@pytest.fixture
def pack(served, tmp_path):
    """Return a function that writes an endpoint pack with changed keys."""
    return lambda **changes: write_endpoint(tmp_path / "pack", served[1], **changes)


def with_host(code, scenario=None, **options):
    """Run `await scenario(host)` with a started host."""

    async def main():
        async with endpoint_host(code, **options) as host:
            return None if scenario is None else await scenario(host)

    return anyio.run(main)


async def opened(host, episode_s=30.0):
    session = await host.open_session(TASK, deadline=anyio.current_time() + episode_s)
    await session.reset()
    return session


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_session_works_at_every_level(oracle, pack, served, level, name, zoo):
    base_url = f"https://{name}:{served[1].port}/base"
    code = pack(base_url=base_url)

    async def scenario(host):
        session = await opened(host)
        result = await session.call_tool("count", {}, turn_index=0)
        verdict = await session.run_assertion("assert_code", {"code": "state['count']"})
        await session.close()
        return result, verdict.status, host.applied

    result, status, applied = with_host(
        code, scenario, level=level, scratch=zoo.scratch
    )

    assert (result, status) == ({"count": 1}, "passed")
    assert oracle.open() == []
    client = applied["endpoint_client"]
    assert (applied["level"], client["level"]) == (level, level)
    assert client["network"] == "relay"
    if level != "process":
        assert client["seccomp"]["sockets"] == applied["seccomp"]["sockets"] == "none"


def test_authority_that_the_pack_does_not_name_is_refused(oracle, pack, level):
    with pytest.raises(OracleFault) as caught:
        with_host(pack(tls=None), level=level)

    assert "the certificate is refused: self-signed certificate" in caught.value.detail
    assert not caught.value.sent


def test_certificate_of_another_name_is_refused(oracle, pack, served):
    code = pack(base_url=f"https://127.1:{served[1].port}/base")

    with pytest.raises(OracleFault, match="certificate is refused"):
        with_host(code)


def test_closed_port_is_a_fault_that_sent_nothing(oracle, pack):
    with pytest.raises(OracleFault, match="Connection refused") as caught:
        with_host(pack(base_url="https://127.0.0.1:1"))

    assert not caught.value.sent


def test_unknown_name_is_a_fault_that_sent_nothing(oracle, pack):
    with pytest.raises(OracleFault, match="no connection") as caught:
        with_host(pack(base_url="https://no-such-host.invalid"))

    assert not caught.value.sent


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("oracle_id", "other"),
        ("oracle_version", "4"),
        ("content_digest", "sha256:" + "b" * 64),
        ("permission_digest", "sha256:" + "c" * 64),
    ],
)
def test_another_oracle_is_refused_at_the_start(oracle, pack, field, other):
    expected = {
        "oracle_id": "counter",
        "oracle_version": "3",
        "content_digest": "sha256:" + "a" * 64,
        field: other,
    }

    with pytest.raises(OracleError, match=f"its {field} is another one") as caught:
        with_host(pack(expected=expected))

    assert caught.value.code == "eval_oracle_identity_drift"
    assert oracle.created == []


@pytest.mark.parametrize("identity", [None, [], "x", {"protocol_version": "2"}])
def test_no_identity_is_another_one(oracle, pack, identity):
    oracle.begin(lambda r: json_reply(identity) if "metadata" in r.path else None)

    with pytest.raises(OracleError, match="protocol_version"):
        with_host(pack())


def test_another_conformance_document_is_refused(oracle, pack):
    other = {
        "kind": "bfcl-endpoint-conformance-v1",
        "expected_digest": "sha256:" + 64 * "0",
    }

    with pytest.raises(OracleError, match="not the attested one") as caught:
        with_host(pack(attestation=other))

    assert caught.value.code == "eval_oracle_identity_drift"


def test_undeclared_attestation_is_not_asked_for(oracle, pack, served):
    since = len(served[1].requests)

    with_host(pack(attestation=None))

    assert [r.path for r in served[1].requests[since:]] == ["/base/v1/metadata"]


def test_hanging_call_is_killed_in_time_and_others_do_not_notice(oracle, pack):
    def disturb(received):
        hangs = received.path.endswith("0/calls")
        return Reply(fault="hang") if hangs else None

    oracle.begin(disturb)
    hasty = replace(DEADLINES, call_s=0.5)

    async def scenario(host):
        stuck, other = await opened(host), await opened(host)
        laps = []

        async def work():
            for _ in range(10):
                await other.call_tool("count", {}, turn_index=0)
                laps.append(anyio.current_time())

        started = anyio.current_time()
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            with pytest.raises(OracleFault) as caught:
                await stuck.call_tool("count", {}, turn_index=0)
            took = anyio.current_time() - started
        await other.close()
        return caught.value, took, laps[-1] - started, stuck.evidence()

    fault, took, others_took, evidence = with_host(pack(), scenario, deadlines=hasty)

    assert (fault.operation, fault.kind) == ("call", "timeout")
    assert took < 1.5
    assert others_took < 0.5
    assert evidence["remote_session"] == "deleted by a second client"
    assert oracle.open() == []


def test_creation_that_is_answered_too_late_is_deleted_all_the_same(oracle, pack):
    def disturb(received):
        if received.path.endswith("/sessions"):
            reply = oracle.create()
            time.sleep(0.6)
            return reply
        return None

    oracle.begin(disturb)
    hasty = replace(DEADLINES, reset_s=0.3)

    async def scenario(host):
        session = await host.open_session(TASK, deadline=anyio.current_time() + 30)
        with pytest.raises(OracleFault) as caught:
            await session.reset()
        await session.close()
        return caught.value

    fault = with_host(pack(), scenario, deadlines=hasty)

    assert (fault.operation, fault.kind) == ("reset", "timeout")
    assert len(oracle.created) == 1
    assert oracle.open() == []


def test_deletion_that_is_never_answered_is_bounded(oracle, pack):
    oracle.begin(lambda r: Reply(fault="hang") if r.method == "DELETE" else None)
    hasty = replace(DEADLINES, close_s=0.3)

    async def scenario(host):
        session = await opened(host)
        started = anyio.current_time()
        with pytest.raises(OracleFault) as caught:
            await session.close()
        return caught.value, anyio.current_time() - started, session.evidence()

    fault, took, evidence = with_host(pack(), scenario, deadlines=hasty)

    assert (fault.operation, fault.kind) == ("close", "timeout")
    assert took < 2
    assert evidence["remote_session"].startswith("not deleted: ")


def test_host_that_ends_deletes_every_session(oracle, pack):
    async def scenario(host):
        for _ in range(3):
            await opened(host)
        assert len(oracle.open()) == 3

    with_host(pack(), scenario)

    assert oracle.open() == []


EVALUATOR = """
import sys
import anyio
from pathlib import Path
from harness.oracle.contracts import PackCode
from tests.oracle.endpoints import TASK, endpoint_host

async def main(root, level):
    code = PackCode(root, None, root / "endpoint_config.yaml", root / "assertions.py")
    async with endpoint_host(code, level=level) as host:
        session = await host.open_session(TASK, deadline=anyio.current_time() + 60)
        await session.reset()
        print("open", flush=True)
        await anyio.sleep_forever()

anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_evaluator_that_is_stopped_leaves_no_session(oracle, pack, number):
    assert _sessions_left_by(oracle, pack(), "process", number) == []


def test_evaluator_that_is_killed_leaves_no_session(oracle, pack, level):
    assert _sessions_left_by(oracle, pack(), level, signal.SIGKILL) == []


def _sessions_left_by(oracle, code, level, number):
    with subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(code.root), level],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as evaluator:
        assert evaluator.stdout.readline() == b"open\n"
        evaluator.send_signal(number)
        evaluator.wait(10)
    oracle.wait_for(lambda: oracle.deleted)
    return oracle.open()


HUNT = """
import os
SECRET = {secret!r}.encode()
found = []
def look(path, size):
    try:
        with open(path, "rb") as stream:
            if SECRET in stream.read(size):
                found.append(path)
    except OSError:
        pass
def look_through(pid):
    try:
        maps = open(f"/proc/{{pid}}/maps").read().splitlines()
        memory = open(f"/proc/{{pid}}/mem", "rb", 0)
    except OSError:
        return
    for line in maps:
        start, _, end = line.split()[0].partition("-")
        try:
            memory.seek(int(start, 16))
            if SECRET in memory.read(min(int(end, 16) - int(start, 16), 1 << 24)):
                found.append(f"/proc/{{pid}}/mem")
        except (OSError, ValueError, OverflowError):
            pass
own = os.getpid()
try:
    names = os.listdir("/proc")
    held = os.listdir("/proc/self/fd")
except PermissionError:
    names, held = [], []
for name in names:
    if name.isdigit() and int(name) != own:
        for part in ("environ", "cmdline"):
            look(f"/proc/{{name}}/{{part}}", 1 << 20)
        if int(name) in {pids!r}:
            look_through(name)
assert not found, found
assert SECRET not in repr(dict(os.environ)).encode()
assert "899" not in held, held
"""


def test_assertions_cannot_reach_the_credential(oracle, pack, served, level, tmp_path):
    policy = tmp_path / "policy.json"
    base_url = f"https://127.0.0.1:{served[1].port}/base"
    grant = {"base_url": base_url, "credential_references": ["TOKEN"]}
    schema = "bfcl-endpoint-credential-policy-v1"
    policy.write_text(json.dumps({"schema_version": schema, "grants": [grant]}))
    environment = {"TOKEN": SECRET, "BFCL_ENDPOINT_CREDENTIAL_POLICY": str(policy)}
    code = pack(auth={"bearer_token_env": "TOKEN"})

    async def scenario(host):
        session = await opened(host)
        client = session._client.pid
        pids = {client, host._clients.keeper_pid, os.getpid()}
        hunt = HUNT.format(secret=SECRET, pids=pids)
        verdict = await session.run_assertion("assert_code", {"code": hunt})
        await session.close()
        return verdict, session.evidence()

    verdict, evidence = with_host(code, scenario, level=level, environment=environment)

    assert (verdict.status, verdict.detail) == ("passed", "")
    assert SECRET not in json.dumps(evidence)
    assert served[1].requests[-1].headers["authorization"] == f"Bearer {SECRET}"


CARELESS = """
import sys
from oracle_workers import syscalls
syscalls.drop_capabilities()
print("here", flush=True)
sys.stdin.read()
"""


def test_hunter_finds_a_secret_that_is_within_reach(oracle, pack):
    """A process with the same rights and no protection is seen by the hunt above."""
    careless = subprocess.Popen(
        [sys.executable, "-c", CARELESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TOKEN": SECRET, "PYTHONPATH": str(ROOT)},
    )
    with careless:
        careless.stdout.readline()
        hunt = HUNT.format(secret=SECRET, pids={careless.pid})

        async def scenario(host):
            session = await opened(host)
            verdict = await session.run_assertion("assert_code", {"code": hunt})
            await session.close()
            return verdict

        verdict = with_host(pack(), scenario)
        careless.stdin.close()

    assert verdict.status == "failed"
    assert f"/proc/{careless.pid}/environ" in verdict.detail


def test_assertions_have_no_network_when_confined(oracle, pack, strong_level, served):
    code = (
        "import socket\n"
        "try:\n"
        f"    socket.create_connection(('127.0.0.1', {served[1].port}), 1)\n"
        "except OSError:\n"
        "    pass\n"
        "else:\n"
        "    assert False, 'reached'\n"
    )

    async def scenario(host):
        session = await opened(host)
        verdict = await session.run_assertion("assert_code", {"code": code})
        await session.close()
        return verdict

    assert with_host(pack(), scenario, level=strong_level).status == "passed"


def test_answer_over_the_workers_own_cap_is_malformed(oracle, pack):
    oracle.begin(
        lambda r: json_reply({"x": "y" * 9000}) if "/calls" in r.path else None
    )

    async def scenario(host):
        session = await opened(host)
        with pytest.raises(OracleFault) as caught:
            await session.call_tool("count", {}, turn_index=0)
        await session.close()
        return caught.value

    fault = with_host(pack(), scenario, limits=WorkerLimits(output_bytes=4000))

    assert (fault.operation, fault.kind) == ("call", "malformed")
    assert oracle.open() == []


def test_assertions_that_do_not_import_are_an_import_fault(oracle, pack):
    code = pack()
    code.assertions.write_text("import no_such_module\n")

    with pytest.raises(OracleFault, match="no_such_module") as caught:
        with_host(code)

    assert (caught.value.operation, caught.value.kind) == ("import", "error")
