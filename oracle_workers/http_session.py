"""A worker's session with an endpoint; no pack code ever runs in this process.

`open` brings the credential, which lives here and nowhere else outside the evaluator.
Creating the session is the reset. What the endpoint says that it is goes back to the
evaluator, which compares. When the evaluator lets go of the worker without closing,
the worker deletes its session itself.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from oracle_workers import loop, plain_json
from oracle_workers.http_backend import (
    Credentials,
    HttpClient,
    HttpPack,
    sessions_path,
)
from oracle_workers.loop import NotServedError
from oracle_workers.plain_json import NotJsonError

LONGEST_ID = 1024
"""Longest session id that is accepted, in characters."""


def run(pack: HttpPack, context: dict[str, Any]) -> NoReturn:
    """Serve one session on the protocol descriptor; does not return."""
    session = _HttpSession(pack, context)
    loop.serve(session, _HttpSession.operations, session.leave)


class _HttpSession:
    def __init__(self, pack: HttpPack, context: dict[str, Any]) -> None:
        self._pack = pack
        self._context = context
        self._client = HttpClient(pack, Credentials({}, ()))
        self._id: str | None = None

    def leave(self) -> None:
        """Delete what is still open; there is nobody left to tell how it went."""
        try:
            self._delete_own(self._pack.close_s)
        except (NotServedError, NotJsonError):
            return

    def _open(self, message: dict[str, Any]) -> bytes:
        credentials = Credentials(message["headers"], tuple(message["secrets"]))
        self._client = HttpClient(self._pack, credentials)
        return b"true"

    def _identify(self, message: dict[str, Any]) -> bytes:
        found = {
            "identity": self._client.json("GET", "/v1/metadata"),
            "attestation": self._client.digest("GET", "/v1/conformance")
            if message["attested"]
            else None,
        }
        return plain_json.encode(found)

    def _list_tools(self, _message: dict[str, Any]) -> bytes:
        answer = self._client.json("GET", "/v1/tools")
        if not isinstance(answer, dict) or "tools" not in answer:
            raise NotJsonError(
                type(answer).__name__, "GET /v1/tools: an object with `tools` is due"
            )
        return plain_json.encode(answer["tools"])

    def _reset(self, _message: dict[str, Any]) -> bytes:
        self._delete_own()
        context = plain_json.encode(self._context)
        body = b'{"context":%b,"fixtures":%b}' % (context, self._pack.fixtures)
        answer = self._client.json("POST", "/v1/sessions", body)
        found = answer if isinstance(answer, dict) else {}
        session_id = found.get("session_id")
        if not isinstance(session_id, str) or not 0 < len(session_id) <= LONGEST_ID:
            raise NotJsonError(
                type(answer).__name__, "POST /v1/sessions: no usable session_id"
            )
        self._id = session_id
        return plain_json.encode(
            {"session_id": session_id, "identity": found.get("oracle")}
        )

    def _call_tool(self, message: dict[str, Any]) -> bytes:
        body = plain_json.encode(
            {name: message[name] for name in ("name", "arguments", "turn_index")}
        )
        return plain_json.encode(self._ask("POST", "calls", body))

    def _state(self, _message: dict[str, Any]) -> bytes:
        return plain_json.encode(self._ask("GET", "state"))

    def _state_hash(self, _message: dict[str, Any]) -> bytes:
        return loop.state_hash(self._ask("GET", "state"))

    def _close(self, _message: dict[str, Any]) -> bytes:
        self._delete_own()
        return b"true"

    def _delete(self, message: dict[str, Any]) -> bytes:
        self._client.delete(message["session_id"], may_be_gone=True)
        return b"true"

    def _delete_own(self, timeout_s: float | None = None) -> None:
        session_id, self._id = self._id, None
        if session_id is not None:
            self._client.delete(session_id, timeout_s=timeout_s)

    def _ask(self, method: str, part: str, body: bytes | None = None) -> Any:
        if self._id is None:
            raise NotServedError("the session was not reset", unsent=True)
        path = sessions_path(self._id, part)
        where = f"/v1/sessions/{{id}}/{part}"
        return self._client.json(method, path, body, where=where)

    operations: Final[dict[str, loop.Operation]] = {
        "open": _open,
        "identify": _identify,
        "list_tools": _list_tools,
        "reset": _reset,
        "call_tool": _call_tool,
        "state": _state,
        "state_hash": _state_hash,
        "close": _close,
        "delete": _delete,
    }
