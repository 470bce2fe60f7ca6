"""What the reference oracle answers: a local pack behind the routes of HTTP v1.

Each session is one contained worker of one pack host. Requests of one session wait
for each other; a session ends by DELETE, by a fault, by its lifetime, or with the
server. Everything is told to `log`: a request, and what became of each session.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import anyio

from harness.benchmark.endpoint_config import PROTOCOL
from harness.benchmark.pack import Pack
from harness.canonical import Json, canonical_bytes
from harness.oracle.contracts import OracleFault, SessionContext
from harness.oracle.host import OracleHost
from harness.oracle.session import OracleSession
from harness.strict_json import StrictJsonError, decode_document

Log = Callable[[dict[str, Json]], None]
Shape = Mapping[str, type | tuple[type, ...]]
LIFETIME_S: Final = 600.0
MAX_SESSIONS: Final = 64

_SESSION_ROUTE = re.compile(r"/v1/sessions/(?P<id>[^/]+)(?:/(?P<part>calls|state))?")
_CONTEXT: Final[Shape] = {
    "clock": str,
    "seed": int,
    "timeout_s": (int, float),
    "task_id": str,
}
_CALL: Final[Shape] = {"name": str, "arguments": dict, "turn_index": int}


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and a body; None is an empty one."""

    status: int
    body: bytes | None


class _RefusedError(Exception):
    """The request cannot be served; the reply says why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.reply = Reply(
            status, canonical_bytes({"error": {"code": code, "message": message}})
        )
        super().__init__(message)


@dataclass(slots=True)
class _Session:
    worker: OracleSession
    deadline: float
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class ReferenceOracle:
    """The routes; `host` is entered already."""

    def __init__(
        self,
        pack: Pack,
        host: OracleHost,
        *,
        conformance: bytes | None = None,
        lifetime_s: float = LIFETIME_S,
        max_sessions: int = MAX_SESSIONS,
        log: Log = lambda _: None,
    ) -> None:
        self._pack = pack
        self._host = host
        self._conformance = conformance
        self._lifetime_s = lifetime_s
        self._max_sessions = max_sessions
        self._log = log
        self._sessions: dict[str, _Session] = {}

    @property
    def identity(self) -> dict[str, str]:
        """What the oracle says of itself; the digest is the pack's fingerprint."""
        return identity_of(self._pack)

    async def answer(self, method: str, path: str, body: bytes) -> Reply:
        """Answer one request."""
        try:
            await self._expire()
            reply = await self._route(method, path, body)
        except _RefusedError as refused:
            reply = refused.reply
        self._log(
            {"event": "request", "method": method, "path": path, "status": reply.status}
        )
        return reply

    async def end(self) -> None:
        """End every session that is still open."""
        for session_id in tuple(self._sessions):
            await self._drop(session_id, "ended with the server")

    async def _route(self, method: str, path: str, body: bytes) -> Reply:
        fixed: dict[tuple[str, str], Callable[[], Awaitable[Reply]]] = {
            ("GET", "/v1/metadata"): self._metadata,
            ("GET", "/v1/tools"): self._tools,
            ("GET", "/v1/conformance"): self._document,
            ("POST", "/v1/sessions"): lambda: self._create(body),
        }
        if (method, path) in fixed:
            return await fixed[method, path]()
        match = _SESSION_ROUTE.fullmatch(path)
        allowed = {"calls": "POST", "state": "GET", None: "DELETE"}
        if match is None or allowed[match["part"]] != method:
            raise _RefusedError(404, "no_such_route", f"{method} is no route here")
        session_id = unquote(match["id"])
        session = self._sessions.get(session_id)
        if session is None:
            raise _RefusedError(404, "no_such_session", "no session has this id")
        async with session.lock:
            try:
                if match["part"] == "calls":
                    return await self._call(session, body)
                if match["part"] == "state":
                    return _json(await session.worker.state())
                await session.worker.close()
            except OracleFault as fault:
                await self._drop(session_id, f"fault: {fault.operation} {fault.kind}")
                raise _fault(fault) from None
            await self._drop(session_id, "deleted")
            return Reply(204, None)

    async def _metadata(self) -> Reply:
        return _json(self.identity)

    async def _tools(self) -> Reply:
        return _json({"tools": list(self._pack.tools.by_name)})

    async def _document(self) -> Reply:
        if self._conformance is None:
            raise _RefusedError(404, "no_document", "nothing is attested here")
        return Reply(200, self._conformance)

    async def _create(self, body: bytes) -> Reply:
        request = _object(body, {"context": dict, "fixtures": dict})
        context = _shaped(request["context"], _CONTEXT)
        if len(self._sessions) >= self._max_sessions:
            raise _RefusedError(503, "too_many_sessions", "delete one and try again")
        session_id = secrets.token_urlsafe(18)
        deadline = anyio.current_time() + self._lifetime_s
        try:
            worker = await self._host.open_session(
                SessionContext(
                    context["task_id"],
                    context["seed"],
                    context["clock"],
                    float(context["timeout_s"]),
                ),
                deadline=deadline,
            )
            self._sessions[session_id] = _Session(worker, deadline)
            self._tell("created", session_id, context["task_id"])
            await worker.reset(request["fixtures"] or None)
        except OracleFault as fault:
            await self._drop(session_id, f"fault: {fault.operation} {fault.kind}")
            raise _fault(fault) from None
        return _json({"session_id": session_id, "oracle": self.identity})

    async def _call(self, session: _Session, body: bytes) -> Reply:
        call = _object(body, _CALL)
        try:
            result: Json = await session.worker.call_tool(
                call["name"], call["arguments"], turn_index=call["turn_index"]
            )
        except OracleFault as fault:
            if session.worker.is_over:
                raise
            # A whole result of another type: what it means is the client's to say.
            result = fault.value
        return _json(result)

    async def _expire(self) -> None:
        now = anyio.current_time()
        for session_id, session in tuple(self._sessions.items()):
            if session.deadline <= now and not session.lock.locked():
                await self._drop(session_id, "expired")

    async def _drop(self, session_id: str, how: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.worker.abort(how)
            self._tell(how, session_id)

    def _tell(self, event: str, session_id: str, task_id: str | None = None) -> None:
        line: dict[str, Json] = {"event": event, "session_id": session_id}
        self._log(line if task_id is None else {**line, "task_id": task_id})


def identity_of(pack: Pack) -> dict[str, str]:
    """Return the identity under which the reference server serves a pack."""
    return {
        "protocol_version": PROTOCOL,
        "oracle_id": pack.pack_id,
        "oracle_version": pack.version,
        "content_digest": pack.fingerprint.value,
    }


def _json(value: Json) -> Reply:
    return Reply(200, canonical_bytes(value))


def _fault(fault: OracleFault) -> _RefusedError:
    status = 504 if fault.kind == "timeout" else 502
    return _RefusedError(status, f"oracle_{fault.kind}", str(fault))


def _object(body: bytes, shape: Shape) -> dict[str, Json]:
    try:
        value = decode_document(body)
    except StrictJsonError as error:
        raise _RefusedError(400, "not_json", str(error)) from None
    return _shaped(value, shape)


def _shaped(value: Json, shape: Shape) -> dict[str, Json]:
    if not isinstance(value, dict) or value.keys() != shape.keys():
        raise _RefusedError(400, "other_keys", f"an object of {sorted(shape)} is due")
    for name, kind in shape.items():
        if not isinstance(value[name], kind) or isinstance(value[name], bool):
            raise _RefusedError(400, "other_type", f"{name} has another type")
    return value
