"""The sockets of the reference oracle: TLS, HTTP/1.1, and a bearer token if asked.

The standard library's server blocks, so each connection has a thread; all that
concerns the pack happens in the event loop that the threads ask.
"""

from __future__ import annotations

import hmac
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from harness.oracle.reference_sessions import Reply

Ask = Callable[[str, str, bytes], Reply]
"""From method, path and body to a reply; called in a connection's thread."""
MAX_BODY_BYTES: Final = 32 << 20
IDLE_S: Final = 30.0
"""How long a connection may be silent."""


@contextmanager
def https_server(
    ask: Ask,
    *,
    address: str,
    port: int,
    certificate: Path,
    key: Path,
    bearer_token: str | None = None,
) -> Iterator[int]:
    """Serve in threads while the context lasts; yields the port. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = _Server((address, port), ask, bearer_token)
    # The handshake belongs to the connection's thread: a silent client stops nobody.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], ask: Ask, bearer_token: str | None
    ) -> None:
        self.ask = ask
        self.authorization = None if bearer_token is None else f"Bearer {bearer_token}"
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Drop the connection: a client that went away or refused the certificate."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "fairtrial-reference-oracle"
    sys_version = ""
    timeout = IDLE_S
    disable_nagle_algorithm = True
    error_content_type = "application/json"
    error_message_format = '{"error":{"code":"http","message":"%(message)s"}}'
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (inherited)
        """Stay silent: requests are logged where they are answered."""

    def do_GET(self) -> None:
        """Answer a request of any method."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif not self._is_authorized():
            self.rfile.read(int(length))
            self._send(Reply(HTTPStatus.UNAUTHORIZED, b'{"error":{"code":"token"}}'))
        else:
            body = self.rfile.read(int(length))
            self._send(self.server.ask(self.command, self.path, body))

    do_POST = do_DELETE = do_GET  # noqa: N815 (the library's names)

    def _is_authorized(self) -> bool:
        expected = self.server.authorization
        given = self.headers.get("Authorization", "")
        return expected is None or hmac.compare_digest(
            given.encode(), expected.encode()
        )

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(Reply(status, b'{"error":{"code":"length"}}'))

    def _send(self, reply: Reply) -> None:
        body = reply.body or b""
        self.send_response(reply.status)
        if reply.body is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
