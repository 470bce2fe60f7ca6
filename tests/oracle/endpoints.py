"""A scripted endpoint over real TLS, packs that point at it, and hosts of those."""

import json
import ssl
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import anyio
import anyio.from_thread

from harness.canonical import hash_bytes
from harness.oracle.contracts import PackCode, SessionContext, WorkerDeadlines
from harness.oracle.endpoint_host import EndpointHost
from tests.servers import Reply, ScriptedServer, json_reply

TLS = Path(__file__).parent.parent / "fixtures" / "tls"
CERTIFICATE = TLS / "certificate.pem"
IDENTITY = {
    "protocol_version": "bfcl-oracle-http-v1",
    "oracle_id": "counter",
    "oracle_version": "3",
    "content_digest": "sha256:" + "a" * 64,
}
CONFORMANCE = b'{ "kind": "bfcl-endpoint-conformance-v1" }\n'
CLOCK = "2025-03-01T09:30:00+00:00"
TASK = SessionContext("task-1", 7, CLOCK)
SESSION_ID = "a/b c?ü"
"""An id that needs escaping everywhere."""
DEADLINES = WorkerDeadlines(
    import_s=20, reset_s=20, call_s=20, state_s=20, assertion_s=20, close_s=10
)
ASSERTIONS = """
def assert_seen(*, state, trace, task, ctx):
    seen = [state, trace, ctx.task_id, ctx.seed]
    assert seen == task["expected"], seen


def assert_code(*, state, trace, task, ctx):
    exec(task["code"], {"state": state, "trace": trace})
"""


class Oracle:
    """Counts calls for each session, in threads; `disturb` may answer instead."""

    def __init__(self):
        self.disturb = lambda received: None
        self.identity = dict(IDENTITY)
        self.created = []
        self.deleted = []
        self.states = {}
        self._changed = threading.Condition()

    def begin(self, disturb=lambda received: None):
        """Forget what was, and answer as said from now on."""
        self.disturb = disturb
        self.identity = dict(IDENTITY)
        with self._changed:
            self.created, self.deleted = [], []

    def open(self):
        """The ids of sessions that were created and not deleted."""
        with self._changed:
            return [item for item in self.created if item not in self.deleted]

    def wait_for(self, condition):
        """Block until a condition of this object holds."""
        with self._changed:
            assert self._changed.wait_for(condition, 10)

    def __call__(self, received):
        instead = self.disturb(received)
        if instead is not None:
            return instead
        parts = received.path.removeprefix("/base").split("/")[2:]
        if received.method == "DELETE":
            return self._delete(unquote(parts[1]))
        answer = {
            "metadata": lambda: json_reply(self.identity),
            "tools": lambda: json_reply({"tools": ["count", "fail"]}),
            "conformance": lambda: Reply(body=CONFORMANCE),
            "sessions": lambda: self._session(received, parts[1:]),
        }
        return answer[parts[0]]()

    def create(self):
        """Create a session and return its reply."""
        with self._changed:
            session_id = SESSION_ID + str(len(self.created))
            self.created.append(session_id)
            self.states[session_id] = 0
            self._changed.notify_all()
        return json_reply({"session_id": session_id, "oracle": self.identity})

    def _session(self, received, parts):
        if not parts:
            return self.create()
        session_id = unquote(parts[0])
        if session_id not in self.open():
            return json_reply({"error": "no such session"}, 404)
        if parts[1] == "state":
            return json_reply({"count": self.states[session_id]})
        self.states[session_id] += 1
        return json_reply({"count": self.states[session_id]})

    def _delete(self, session_id):
        known = session_id in self.open()
        with self._changed:
            self.deleted.append(session_id)
            self._changed.notify_all()
        return Reply(204) if known else json_reply({"error": "gone"}, 404)


def server_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
    return context


def write_endpoint(root, server, **changes):
    """Write an endpoint pack for a server and return what a host needs of it.

    `changes` replaces whole keys of endpoint_config.yaml; None takes one out.
    """
    root.mkdir(parents=True)
    (root / "ca.pem").write_bytes(CERTIFICATE.read_bytes())
    (root / "assertions.py").write_text(ASSERTIONS)
    (root / "fixtures.json").write_text('{"rows": [{"id": 1, "name": "é"}]}')
    expected = {k: v for k, v in IDENTITY.items() if k != "protocol_version"}
    content = {
        "protocol_version": IDENTITY["protocol_version"],
        "base_url": f"https://127.0.0.1:{server.port}/base/",
        "expected": expected,
        "tls": {"ca_bundle_path": "ca.pem"},
        "attestation": {
            "kind": "bfcl-endpoint-conformance-v1",
            "expected_digest": hash_bytes(CONFORMANCE),
        },
        **changes,
    }
    endpoint = root / "endpoint_config.yaml"
    kept = {key: value for key, value in content.items() if value is not None}
    endpoint.write_text(json.dumps(kept))
    return PackCode(
        root, None, endpoint, root / "assertions.py", root / "fixtures.json"
    )


def endpoint_host(code, *, level="process", environment=None, **options):
    """Return a host of an endpoint pack, not started yet."""
    return EndpointHost(
        code,
        code.endpoint,
        level=level,
        environment={} if environment is None else environment,
        **{"deadlines": DEADLINES, **options},
    )


@contextmanager
def scripted_oracle():
    """Serve an Oracle: yields it and its server."""
    oracle = Oracle()
    with ScriptedServer(oracle, tls=server_tls()) as server:
        yield oracle, server


class Running:
    """A host that runs in a thread's event loop, for many short tests."""

    def __init__(self, oracle, server, host, portal):
        self.oracle = oracle
        self.server = server
        self.host = host
        self._portal = portal

    def run(self, scenario):
        """Run `await scenario(session)` in a fresh session that was reset."""

        async def main():
            session = await self.host.open_session(
                TASK, deadline=anyio.current_time() + 30
            )
            try:
                await session.reset()
                return await scenario(session)
            finally:
                self.evidence = None
                try:
                    await session.close()
                finally:
                    self.evidence = session.evidence()

        return self._portal.call(main)

    def call(self, function, *arguments):
        """Run an async function in the host's event loop."""
        return self._portal.call(function, *arguments)

    def paths(self, since=0):
        """What was asked for: method and path, from a request on."""
        return [(r.method, r.path) for r in self.server.requests[since:]]


@contextmanager
def running(code, oracle, server, **options):
    """Run a host of an endpoint pack while the context lasts."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(endpoint_host(code, **options)) as host,
    ):
        yield Running(oracle, server, host, portal)
