"""BFCL Oracle HTTP v1, the client's side: blocking, one request at a time.

Connections come from the relay; TLS, the credential and every check are here. There
is no redirect, no retry and no repair: a status outside 2xx, a body over its cap, cut
or not strict JSON, or one that repeats a credential is a failure in plain words, and
none of them quotes what the server sent. A connection is used again only while it is
fresh, since a server may close an idle one at any time and nothing is sent twice.
"""

from __future__ import annotations

import hashlib
import select
import ssl
import time
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote

from oracle_workers import plain_json, relay
from oracle_workers.contain import RELAY_DESCRIPTOR
from oracle_workers.loop import NotServedError
from oracle_workers.plain_json import NotJsonError

REUSE_S = 1.0
"""Longest idle time after which a connection is used again; servers wait longer."""
SHORTEST_SECRET = 8
"""Anything shorter stands in answers by chance, so it is not looked for there."""
_AGENT = "fairtrial-oracle-client/1"


class HttpPack:
    """What every session with one endpoint shares: trust, limits and fixtures."""

    def __init__(self, endpoint: dict[str, Any], fixtures: bytes) -> None:
        self.host: str = endpoint["host"]
        self.port: int = endpoint["port"]
        self.prefix: str = endpoint["prefix"]
        self.max_request_bytes: int = endpoint["max_request_bytes"]
        self.max_response_bytes: int = endpoint["max_response_bytes"]
        self.timeout_s: float = endpoint["timeout_s"]
        """Longest silence on a connection; the evaluator's deadlines are nearer."""
        self.close_s: float = endpoint["close_s"]
        self.fixtures = fixtures
        self.trust = _trust(endpoint["ca_bundle"])

    @classmethod
    def load(cls, paths: dict[str, Any]) -> HttpPack:
        """Prepare the client; no connection is made."""
        fixtures = b"{}"
        if paths["fixtures"] is not None:
            with open(paths["fixtures"], "rb") as stream:
                fixtures = plain_json.encode(plain_json.decode(stream.read()))
        return cls(paths["endpoint"], fixtures)


def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    """Return a context that trusts the pack's bundle alone, or the system's."""
    # Not `create_default_context`: what that one checks depends on the interpreter.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_bundle is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=ca_bundle)
    return context


class Credentials(NamedTuple):
    """Headers that prove who asks, and the secrets in them."""

    headers: dict[str, str]
    secrets: tuple[str, ...]

    def are_in(self, content: bytes, value: Any) -> bool:
        """Tell whether an answer spells a secret, plainly or in JSON's escapes."""
        decoded = b"" if value is None else plain_json.encode(value)
        return any(
            secret.encode() in content or plain_json.encode(secret)[1:-1] in decoded
            for secret in self.secrets
            if len(secret) >= SHORTEST_SECRET
        )


class HttpClient:
    """Requests to one endpoint, over one connection at a time."""

    def __init__(self, pack: HttpPack, credentials: Credentials) -> None:
        self._pack = pack
        self._credentials = credentials
        self._connection: HTTPSConnection | None = None
        self._last_used = 0.0

    def json(
        self, method: str, path: str, body: bytes | None = None, *, where: str = ""
    ) -> Any:
        """Exchange JSON; raise NotServedError, and NotJsonError for a bad answer.

        `where` names the route in messages, for ids in paths are the server's words.
        """
        where = f"{method} {where or path}"
        content = self._exchange(where, method, path, body)
        try:
            value = plain_json.decode_strictly(content)
            revealed = self._credentials.are_in(content, value)
        except NotJsonError as error:
            if self._credentials.are_in(content, None):
                raise _repeats(where) from None
            raise NotJsonError(error.type_name, f"{where}: {error.detail}") from None
        if revealed:
            raise _repeats(where)
        return value

    def digest(self, method: str, path: str) -> str:
        """Return the content hash of a document's bytes as they came."""
        content = self._exchange(f"{method} {path}", method, path, None)
        return f"sha256:{hashlib.sha256(content).hexdigest()}"

    def delete(
        self,
        session_id: str,
        *,
        may_be_gone: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Delete a session; raise NotServedError unless the answer is a 2xx.

        With `may_be_gone`, an answer that there is no such session will do.
        """
        path = sessions_path(session_id)
        fine = (404, 410) if may_be_gone else ()
        where = "DELETE /v1/sessions/{id}"
        self._exchange(where, "DELETE", path, None, fine=fine, timeout_s=timeout_s)

    def _exchange(
        self,
        where: str,
        method: str,
        path: str,
        body: bytes | None,
        *,
        fine: tuple[int, ...] = (),
        timeout_s: float | None = None,
    ) -> bytes:
        limit = self._pack.max_request_bytes
        if body is not None and len(body) > limit:
            raise NotServedError(
                f"{where}: the request has {len(body)} bytes, at most {limit} are sent",
                unsent=True,
            )
        connection = self._connect(where, timeout_s or self._pack.timeout_s)
        try:
            self._send(connection, method, path, body)
            response = connection.getresponse()
            content = self._content(where, response, fine)
        except (OSError, HTTPException) as error:
            self._drop()
            raise NotServedError(f"{where}: {_words(error)}") from None
        except BaseException:
            self._drop()
            raise
        if response.will_close:
            self._drop()
        self._last_used = time.monotonic()
        return content

    def _connect(self, where: str, timeout_s: float) -> HTTPSConnection:
        """Return a fresh connection; what fails here has sent nothing."""
        if self._connection is not None and self._is_fresh(self._connection):
            self._connection.sock.settimeout(timeout_s)
            return self._connection
        self._drop()
        pack = self._pack
        try:
            reached = relay.connect(RELAY_DESCRIPTOR, timeout_s)
        except relay.RelayError as error:
            raise NotServedError(f"{where}: {error}", unsent=True) from None
        try:
            reached.settimeout(timeout_s)
            # An end that TLS does not announce must not pass as the end of a body.
            secured = pack.trust.wrap_socket(
                reached, server_hostname=pack.host, suppress_ragged_eofs=False
            )
        except (OSError, ValueError) as error:
            reached.close()
            raise NotServedError(f"{where}: {_words(error)}", unsent=True) from None
        connection = HTTPSConnection(pack.host, pack.port, context=pack.trust)
        connection.auto_open = 0
        connection.sock = secured
        self._connection = connection
        return connection

    def _is_fresh(self, connection: HTTPSConnection) -> bool:
        if time.monotonic() - self._last_used > REUSE_S:
            return False
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        # Something to read before anything was asked is the end, or not for us.
        return not connection.sock.pending() and not poll.poll(0)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send(
        self, connection: HTTPSConnection, method: str, path: str, body: bytes | None
    ) -> None:
        connection.putrequest(
            method, self._pack.prefix + path, skip_accept_encoding=True
        )
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": _AGENT,
            **self._credentials.headers,
        }
        if body is not None:
            headers |= {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
            }
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)

    def _content(
        self, where: str, response: HTTPResponse, fine: tuple[int, ...]
    ) -> bytes:
        status, limit = response.status, self._pack.max_response_bytes
        if not 200 <= status < 300 and status not in fine:
            words = "a redirect, which is not followed" if status // 100 == 3 else ""
            raise NotServedError(f"{where}: status {status}{words and ', ' + words}")
        if response.getheader("Content-Encoding", "identity").lower() != "identity":
            raise NotServedError(f"{where}: the body is encoded, unasked")
        if response.length is not None and response.length > limit:
            raise _oversize(where, response.length, limit)
        content = response.read(limit + 1)
        if len(content) > limit:
            raise _oversize(where, len(content), limit)
        if response.length:
            raise NotServedError(f"{where}: the body was cut short")
        # Reads the end of a chunked body, without which the next answer is lost.
        response.read()
        return content


def sessions_path(session_id: str, *parts: str) -> str:
    """Return the path of a session, its id escaped whole."""
    return "/".join(("/v1/sessions", quote(session_id, safe=""), *parts))


def _oversize(where: str, size: int, limit: int) -> NotJsonError:
    return NotJsonError(
        "text", f"{where}: a body of {size} bytes or more, at most {limit} are read"
    )


def _repeats(where: str) -> NotServedError:
    return NotServedError(f"{where}: the answer repeats a credential; it was not kept")


def _words(error: Exception) -> str:
    """Say what went wrong without anything that the server chose."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError):
        return "the connection ended, and TLS did not say that it would"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or type(error).__name__}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return f"the connection failed: {error.strerror or type(error).__name__}"
    return f"not HTTP/1.1, or cut short: {type(error).__name__}"
